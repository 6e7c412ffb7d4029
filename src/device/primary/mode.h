/* SPDX-License-Identifier: BSD-2-Clause */
/* mode.h: the mode pages, one row each, and what they change. */
#ifndef DEVICE_MODE_H
#define DEVICE_MODE_H

#include "device/unit/unit.h"

struct dev_mode_page {
	uint8_t code, subpage;
	uint8_t len;			      /* with its header */
	enum dev_type type;		      /* of the units that have it */
	bool (*has)(const struct dev_lu *lu); /* NULL: all of that type */
	/* Fill in and take out what is behind the header; p is the page's
	 * first byte. */
	void (*fill)(const struct dev_lu *lu, const struct dev_control *c,
		     uint8_t *p);
	void (*mask)(const struct dev_lu *lu, uint8_t *p); /* changeable */
	void (*take)(struct dev_control *c, const uint8_t *p);
	/* NULL: whatever the mask allows may be set. Else where the first
	 * byte is that can't be as it is; 0: none is. Blocks of the unit; 0:
	 * of a unit that had as many when the page was saved. */
	unsigned (*bad)(const uint8_t *p, uint64_t blocks);
};
extern const struct dev_mode_page dev_mode_pages[];
extern const size_t dev_mode_npages;
size_t dev_mode_header_len(const struct dev_mode_page *m);
struct dev_control dev_ctl_load(const struct dev_control *from);
void dev_ctl_store(struct dev_control *to, const struct dev_control *c);
/* Back to what is saved (SPC-4 §5.9: the rest is lost by a reset). */
void dev_mode_reset(struct dev_lu *lu);

/* ---- mode.c: the values as pages, one after the other ---- */

#define DEV_MODES_MAX 1024u

size_t dev_mode_encode(const struct dev_lu *lu, const struct dev_control *c,
		       uint8_t p[DEV_MODES_MAX]);
/* Pages and bits that the unit has not are left out. ERR_FORMAT. */
int dev_mode_decode(const struct dev_lu *lu, const uint8_t *p, size_t len,
		    struct dev_control *c);
/* The values as they stand in the record of a unit (keep.h). From a record:
 * ERR_FORMAT. */
void dev_mode_to_record(const struct dev_lu *lu, const struct dev_control *c,
			struct dev_record *r);
int dev_mode_from_record(const struct dev_lu *lu, const struct dev_record *r,
			 struct dev_control *c);
/* dev_mode_restore: the values of lu's record are saved and current ones from
 * now on; before the first nexus. ERR_FORMAT. */
int dev_mode_restore(struct dev_lu *lu);
/* MODE SENSE would tell the same of both. */
bool dev_mode_same(const struct dev_lu *lu, const struct dev_control *a,
		   const struct dev_control *b);

#endif
