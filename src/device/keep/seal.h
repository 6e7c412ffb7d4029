/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seal.h: the front of what is kept over a power loss:
 *
 *    0  8  what it is
 *    8  4  CRC32C of all that follows, big-endian
 *   12 16  the store's UUID
 */
#ifndef DEVICE_SEAL_H
#define DEVICE_SEAL_H

#include <stddef.h>
#include <stdint.h>

#define DEV_SEAL_LEN 28

/* Fills in the front of p[0 .. len), whose rest is there. */
void dev_seal(uint8_t *p, size_t len, const char what[8],
	      const uint8_t uuid[16]);
/* 0, ERR_TRUNCATED, ERR_FORMAT; ERR_DATA_DIGEST: its CRC is wrong;
 * ERR_NOT_FOUND: another store's. */
int dev_seal_check(const uint8_t *p, size_t len, const char what[8],
		   const uint8_t uuid[16]);

#endif
