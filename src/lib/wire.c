/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.c: the eight bytes of a LUN. A unit has the LUN that REPORT LUNS returns, all eight
 * bytes of it (SAM-5 §4.7.2). A number of one level has two forms, peripheral and flat
 * addressing (§4.7.7.2, §4.7.7.3), and some targets have a unit at the other one than
 * this library sends: flat addressing below 256, a bus number above. The session keeps
 * for which numbers REPORT LUNS has returned the other form only.
 */
#include <stdlib.h>

#include "lib/internal.h"

int lib_lun_of(uint64_t wire)
{
	bool is_numbered = !(wire & 0xffffffffffffull) && wire >> 62 <= 1;

	return is_numbered ? (int)(wire >> 48 & (LIB_LUNS - 1)) : -1;
}

/* Keeps whether this LUN has the other form. Returns whether that changes. */
static bool keep_form(uint8_t *bits, int lun, bool is_other)
{
	uint8_t bit = (uint8_t)(1 << lun % 8);
	bool was = bits[lun / 8] & bit;

	bits[lun / 8] &= (uint8_t)~bit;
	if (is_other)
		bits[lun / 8] |= bit;
	return was != is_other;
}

/* The usual form comes last: where a number has both, it counts. */
bool lib_wire_note(struct iser_session *s, const uint8_t *answer, size_t len)
{
	size_t n = len < 8 ? 0 : MIN((size_t)get_be32(answer), len - 8) / 8;
	bool has_changed = false;

	for (int usual = 0; usual < 2; usual++)
		for (size_t i = 0; i < n; i++) {
			uint64_t wire = get_be64(answer + 8 + 8 * i);
			int lun = lib_lun_of(wire);

			if (lun < 0 || (wire == lib_usual_form(lun)) != usual)
				continue;
			if (!s->other_luns && !usual)
				s->other_luns = calloc(LIB_LUNS / 8, 1);
			if (s->other_luns)
				has_changed |=
					keep_form(s->other_luns, lun, !usual);
		}
	return has_changed;
}
