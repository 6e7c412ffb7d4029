/* SPDX-License-Identifier: BSD-2-Clause */
/* crc.c: CRC32C bit by bit from its polynomial (RFC 7143 §13.1): not fast, but
 * independent of the tables that it checks. */
#include "tools/check/check.h"

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, reflected */

uint32_t check_crc32c(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t crc = 0xffffffffu;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
	}
	return ~crc;
}
