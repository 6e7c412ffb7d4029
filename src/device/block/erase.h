/* SPDX-License-Identifier: BSD-2-Clause */
/* erase.h: overwriting or erasing a whole unit, for SANITIZE and FORMAT UNIT. */
#ifndef DEVICE_ERASE_H
#define DEVICE_ERASE_H

#include "device/unit/condition.h"

struct dev_erase_spec {
	enum dev_condition during, failed;
	bool immediate, unrestricted;
	bool rekey;	 /* first; then zeros, where space is given back */
	unsigned passes; /* of the pattern; 0: zeros, space given back */
	bool invert;	 /* every other pass */
	const uint8_t *pattern;
	size_t pattern_len;
	/* then the unit is of protection type 0 to 3 */
	bool protect;
	uint8_t type;
};

/* Erases all of the unit in the background, and ends the task: at once, or
 * when that is over. */
void dev_erase(struct dev_task *t, const struct dev_erase_spec *spec);
/* Ends t once a SANITIZE that failed is forgotten. */
void dev_erase_forgive(struct dev_task *t);

#endif
