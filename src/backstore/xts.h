/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xts.h: AES-256-XTS (IEEE 1619) of sectors of 512 bytes, whatever the block
 * size of the unit; the tweak is the number of the sector in the store, 128
 * bits, least significant byte first. dm-crypt calls this aes-xts-plain64.
 * Private to this room.
 */
#ifndef BACKSTORE_XTS_H
#define BACKSTORE_XTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XTS_SECTOR 512u

struct xts; /* belongs to one thread */

/* xts_new: key has BS_CRYPT_KEY bytes, whose halves differ. NULL: libcrypto
 * failed (out of memory, equal halves). */
struct xts *xts_new(const uint8_t *key);
void xts_free(struct xts *x); /* wipes the key; NULL has no effect */

/* xts_encrypt and xts_decrypt work in place, on whole sectors; off is the
 * offset of p in the store. False: libcrypto failed. */
bool xts_encrypt(struct xts *x, uint64_t off, uint8_t *p, size_t len);
/* xts_decrypt leaves sectors of zeros unchanged: they were never written
 * (crypt.c). */
bool xts_decrypt(struct xts *x, uint64_t off, uint8_t *p, size_t len);

#endif
