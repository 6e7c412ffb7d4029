/* SPDX-License-Identifier: BSD-2-Clause */
/* unit.c: target port groups. */
#include "lib/path/unit.h"

#include "base/bytes.h"

bool lib_groups_find(const uint8_t *data, size_t len, uint16_t group,
		     uint8_t *access, bool *preferred)
{
	size_t end;

	if (len < 4)
		return false;
	end = MIN((uint64_t)len, 4 + (uint64_t)get_be32(data));
	for (size_t at = 4; end - at >= 8;) {
		const uint8_t *p = data + at;
		size_t n = 8 + 4u * p[7];

		if (get_be16(p + 2) == group) {
			*access = p[0] & 0x0f;
			*preferred = p[0] & 0x80;
			return true;
		}
		if (n > end - at)
			return false;
		at += n;
	}
	return false;
}
