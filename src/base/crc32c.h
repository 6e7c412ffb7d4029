/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crc32c.h: CRC32C (Castagnoli), the digest of iSCSI (RFC 7143 §13.1) and of
 * MPA (RFC 5044 §4.4). ISA-L computes long runs; short runs such as a header
 * use the processor's crc32 instruction where it exists.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define CRC32C_SEED 0xffffffffu

/*
 * crc32c_update continues crc, which begins as CRC32C_SEED, over len bytes. It
 * returns the CRC register, which crc32c_wire complements.
 */
uint32_t crc32c_update(uint32_t crc, const void *buf, size_t len);

/* crc32c_copy copies len bytes to dst and continues crc over the copy. The two
 * agree even if another thread writes to src meanwhile. */
uint32_t crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len);

/*
 * crc32c_wire converts the register to the number to be stored by put_le32:
 * RFC 7143 §13.1 and RFC 5044 §4.4 send the bit-reflected CRC with its least
 * significant byte first.
 */
static inline uint32_t crc32c_wire(uint32_t crc)
{
	return ~crc;
}

#endif
