/* SPDX-License-Identifier: BSD-2-Clause */
/* mode.h: the mode pages, one row each, and their conversion to bytes and
 * back. */
#ifndef DEVICE_MODE_H
#define DEVICE_MODE_H

#include "device/unit/unit.h"

struct dev_mode_page {
	uint8_t code, subpage;
	uint8_t len;			      /* with its header */
	enum dev_type type;		      /* of the units that have it */
	bool (*has)(const struct dev_lu *lu); /* NULL: all of that type */
	/* fill writes the values of c to the page, take reads them; p is the
	 * first byte of the page, and both leave the page's header alone. */
	void (*fill)(const struct dev_lu *lu, const struct dev_control *c,
		     uint8_t *p);
	/* sets the changeable bits */
	void (*mask)(const struct dev_lu *lu, uint8_t *p);
	void (*take)(struct dev_control *c, const uint8_t *p);
	/* bad checks values that a mask cannot describe: returns the offset
	 * of the first invalid byte; 0: the page is valid. NULL: all values
	 * that the mask permits are valid. `blocks` is the size of the unit;
	 * 0: a saved page, of a unit that had the right number of blocks
	 * then. */
	unsigned (*bad)(const uint8_t *p, uint64_t blocks);
};
extern const struct dev_mode_page dev_mode_pages[];
extern const size_t dev_mode_npages;
/* dev_mode_header_len returns the length of the page's header: 2, or 4 for a
 * subpage. */
size_t dev_mode_header_len(const struct dev_mode_page *m);
/* dev_mode_defaults has the default values (PC 10b). */
extern const struct dev_control dev_mode_defaults;
/* dev_ctl_load and dev_ctl_store copy the values member by member with
 * atomic operations, because all workers read them. */
struct dev_control dev_ctl_load(const struct dev_control *from);
void dev_ctl_store(struct dev_control *to, const struct dev_control *c);
/* dev_mode_reset sets the current values to the saved ones (SPC-4 §5.9); on
 * the home worker. */
void dev_mode_reset(struct dev_lu *lu);

/* ---- mode.c: the values as pages, one after the other ---- */

#define DEV_MODES_MAX 1024u

/* dev_mode_encode writes the values c as mode pages of the unit to p;
 * returns their length. */
size_t dev_mode_encode(const struct dev_lu *lu, const struct dev_control *c,
		       uint8_t p[DEV_MODES_MAX]);
/* dev_mode_decode reads the values c from mode pages; ignores pages and bits
 * that the unit does not have. ERR_FORMAT: the pages are damaged. */
int dev_mode_decode(const struct dev_lu *lu, const uint8_t *p, size_t len,
		    struct dev_control *c);
/* dev_mode_to_record writes the values c to the record of a unit (keep.h);
 * dev_mode_from_record reads them from the record. ERR_FORMAT: the record is
 * damaged. */
void dev_mode_to_record(const struct dev_lu *lu, const struct dev_control *c,
			struct dev_record *r);
int dev_mode_from_record(const struct dev_lu *lu, const struct dev_record *r,
			 struct dev_control *c);
/* dev_mode_restore makes the values of lu's record the saved and the current
 * values; before the first nexus. ERR_FORMAT: the record is damaged. */
int dev_mode_restore(struct dev_lu *lu);
/* dev_mode_check_record returns ERR_FORMAT if the mode pages of the record are damaged.
 * dev_mode_adopt puts the values of lu's record, which has been checked, in force, saved
 * and current ones; on the home worker, for a shared unit. */
int dev_mode_check_record(const struct dev_lu *lu, const struct dev_record *r);
void dev_mode_adopt(struct dev_lu *lu);
/* dev_mode_forget_now: after a reset of a shared unit, whose current values are the saved
 * ones now, the record says so, soon. On the home worker. */
void dev_mode_forget_now(struct dev_lu *lu);
/* dev_mode_same returns whether MODE SENSE would return the same pages for a
 * and b. */
bool dev_mode_same(const struct dev_lu *lu, const struct dev_control *a,
		   const struct dev_control *b);
/* dev_mode_pages_same returns whether MODE SENSE returns the same pages for both units,
 * with their current values; false for a passthrough unit, which has its own. */
bool dev_mode_pages_same(const struct dev_lu *a, const struct dev_lu *b);

#endif
