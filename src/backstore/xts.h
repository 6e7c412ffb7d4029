/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xts.h: AES-256-XTS (IEEE 1619) of sectors of 512 bytes, whatever the size of
 * a unit's blocks; the tweak is the sector's number from the beginning of the
 * store, 128 bits, least significant byte first. dm-crypt calls this
 * aes-xts-plain64. Private to this room.
 */
#ifndef BACKSTORE_XTS_H
#define BACKSTORE_XTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XTS_SECTOR 512u

struct xts; /* one thread's */

/* xts_new: key has BS_CRYPT_KEY bytes, whose halves differ. NULL: libcrypto
 * does not do it (no memory, halves alike). */
struct xts *xts_new(const uint8_t *key);
void xts_free(struct xts *x); /* wipes what it knows of the key; NULL is fine */

/* Both work in place, on whole sectors; off is that of the first byte in the
 * store. False: libcrypto refused. */
bool xts_encrypt(struct xts *x, uint64_t off, uint8_t *p, size_t len);
/* xts_decrypt leaves sectors alone that are all zeros: nothing was written
 * there (crypt.c). */
bool xts_decrypt(struct xts *x, uint64_t off, uint8_t *p, size_t len);

#endif
