/* SPDX-License-Identifier: BSD-2-Clause */
/* tgt_names.h: the name that tgt gives a unit, for those that come from tgt. */
#ifndef TOOLS_TGT_NAMES_H
#define TOOLS_TGT_NAMES_H

#include <stdbool.h>
#include <string.h>

#include "base/hex.h"

#define TGT_NAA_SIZE 33 /* of 32 digits */
#define TGT_ID_MAX   36 /* characters of scsi_id; tgt cuts the rest */
/* of a name: with fewer digits, disks of other machines have it, too */
#define TGT_NAME_DIGITS 8

/* tgt_naa writes the NAA identifier that tgt makes of scsi_id: 6h (SPC-4 §7.8.6.6.6)
 * and its last 31 characters as hexadecimal digits, others than digits as zeros.
 * Returns whether there are enough digits for a name. */
static inline bool tgt_naa(const char *scsi_id, char naa[TGT_NAA_SIZE])
{
	const size_t all = TGT_NAA_SIZE - 1;
	size_t len = strnlen(scsi_id, TGT_ID_MAX);
	size_t n = len < all ? len : all - 1;
	unsigned digits = 0;

	memset(naa, '0', all);
	naa[0] = '6';
	naa[all] = '\0';
	for (size_t i = 0; i < n; i++) {
		int digit = hex_digit(scsi_id[len - n + i]);

		if (digit < 0)
			continue;
		naa[all - n + i] = "0123456789abcdef"[digit];
		digits++;
	}
	return digits >= TGT_NAME_DIGITS;
}

#endif
