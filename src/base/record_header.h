/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record_header.h: the header of each state file:
 *
 *    0  8  type of the record
 *    8  4  CRC32C of all bytes that follow, big-endian
 *   12 16  owner: UUID of the backstore; zeroes: none
 */
#ifndef BASE_RECORD_HEADER_H
#define BASE_RECORD_HEADER_H

#include <stddef.h>
#include <stdint.h>

#define RECORD_HEADER_LEN 28

/* record_header_put writes the header of the record p[0 .. len), whose other
 * bytes are already there. */
void record_header_put(uint8_t *p, size_t len, const char type[8],
		       const uint8_t owner[16]);
/* record_header_check returns 0 if the header is that of a record of this
 * type and owner. ERR_TRUNCATED; ERR_FORMAT: another type; ERR_DATA_DIGEST: the
 * CRC is wrong; ERR_NOT_FOUND: the record belongs to another owner. */
int record_header_check(const uint8_t *p, size_t len, const char type[8],
			const uint8_t owner[16]);

#endif
