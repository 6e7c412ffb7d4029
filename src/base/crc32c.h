/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crc32c.h: CRC32C (Castagnoli), the digest of iSCSI (RFC 7143 §13.1) and of
 * MPA (RFC 5044 §4.4). ISA-L computes long runs; runs as short as a header
 * take the crc32 instruction directly where the processor has it.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define CRC32C_SEED 0xffffffffu

/*
 * crc32c_update goes on with crc (CRC32C_SEED at the start) over len bytes.
 * The value is the register, not yet complemented.
 */
uint32_t crc32c_update(uint32_t crc, const void *buf, size_t len);

/* crc32c_copy copies len bytes to dst and goes on with crc over them. */
uint32_t crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len);

/*
 * crc32c_wire turns the register into the 32-bit number that, stored in
 * LITTLE-endian order (put_le32), is the digest on the wire: RFC 7143 §13.1
 * and RFC 5044 §4.4 send the bit-reflected CRC least significant byte first.
 */
static inline uint32_t crc32c_wire(uint32_t crc)
{
	return ~crc;
}

#endif
