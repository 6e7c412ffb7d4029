/* SPDX-License-Identifier: BSD-2-Clause */
/* record_header.c: see record_header.h. */
#include "base/record_header.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/err.h"

#define TYPE_LEN  8
#define CRC_AT	  8
#define BODY_AT	  12
#define OWNER_LEN 16

static uint32_t crc_of(const uint8_t *p, size_t len)
{
	return crc32c_wire(
		crc32c_update(CRC32C_SEED, p + BODY_AT, len - BODY_AT));
}

void record_header_put(uint8_t *p, size_t len, const char type[8],
		       const uint8_t owner[16])
{
	memcpy(p, type, TYPE_LEN);
	memcpy(p + BODY_AT, owner, OWNER_LEN);
	put_be32(p + CRC_AT, crc_of(p, len));
}

int record_header_check(const uint8_t *p, size_t len, const char type[8],
			const uint8_t owner[16])
{
	if (len < RECORD_HEADER_LEN)
		return ERR_TRUNCATED;
	if (memcmp(p, type, TYPE_LEN) != 0)
		return ERR_FORMAT;
	if (get_be32(p + CRC_AT) != crc_of(p, len))
		return ERR_DATA_DIGEST;
	if (memcmp(p + BODY_AT, owner, OWNER_LEN) != 0)
		return ERR_NOT_FOUND;
	return 0;
}
