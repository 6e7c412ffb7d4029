/* SPDX-License-Identifier: BSD-2-Clause */
/* erase.h: overwriting or erasing all blocks of a unit, for SANITIZE and
 * FORMAT UNIT. */
#ifndef DEVICE_ERASE_H
#define DEVICE_ERASE_H

#include "device/unit/condition.h"

struct dev_erase_spec {
	enum dev_condition during, failed;
	bool immediate, unrestricted;
	bool rekey;	 /* change the key first */
	unsigned passes; /* of the pattern; 0: zero all blocks */
	bool invert;	 /* the pattern in every other pass */
	const uint8_t *pattern;
	size_t pattern_len;
	/* set the protection type to `type` (0 to 3) afterwards */
	bool protect;
	uint8_t type;
};

/* dev_erase erases all blocks of t's unit in the background and ends t: at
 * once if spec->immediate, else when the erasure ends. spec and its pattern
 * are borrowed for the call. Ends t with the sense data of the unit's
 * condition if that does not permit an erasure. */
void dev_erase(struct dev_task *t, const struct dev_erase_spec *spec);
/* dev_erase_exit_failure executes SANITIZE EXIT FAILURE MODE: the unit
 * becomes ready again, and its record no longer has the failed SANITIZE.
 * Ends t. */
void dev_erase_exit_failure(struct dev_task *t);

#endif
