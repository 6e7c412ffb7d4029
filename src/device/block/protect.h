/* SPDX-License-Identifier: BSD-2-Clause */
/* protect.h: protection information on the wire. */
#ifndef DEVICE_PROTECT_H
#define DEVICE_PROTECT_H

#include "device/unit/command.h"

/* The byte that has RDPROTECT, DPO, FUA or the like (SBC-3 §5). */
static inline unsigned dev_flags_at(const struct dev_task *t)
{
	return t->row->len == 32 ? 10 : 1;
}

static inline uint8_t dev_flags(const struct dev_task *t)
{
	return t->cdb[dev_flags_at(t)];
}

/* Whether its CDB brings the tags that are expected: the 32-byte commands of
 * type 2. */
static inline bool dev_brings_tags(const struct dev_task *t)
{
	return t->row->flags & CMD_TAGS;
}

/* ---- apptag.c: the Application Tag mode page ---- */

bool dev_has_tags(const struct dev_lu *lu);
void dev_tags_fill(const struct dev_lu *lu, const struct dev_control *c,
		   uint8_t *p);
void dev_tags_mask(const struct dev_lu *lu, uint8_t *p);
void dev_tags_take(struct dev_control *c, const uint8_t *p);
unsigned dev_tags_bad(const uint8_t *p, uint64_t blocks);
/* The tag that a block is to have; false: it may have any. */
bool dev_tag_of(const struct dev_lu *lu, uint64_t lba, uint16_t *tag);
/* Whether the page counts (SPC-4 §7.5.8). */
static inline bool dev_tags_count(const struct dev_lu *lu)
{
	return DEV_CTL(lu, atmpe) && DEV_CTL(lu, ato) && DEV_PROTECTION(lu);
}

/* ---- protect.c ---- */

/* In prepare, of a command with such a field: sets protect and judged. Returns
 * as prepare. */
int dev_protect_look(struct dev_task *t);
static inline int dev_protect_prepare(struct dev_task *t)
{
	return (dev_flags(t) & 0xe0) || dev_brings_tags(t) ||
			       dev_tags_count(t->lu)
		       ? dev_protect_look(t)
		       : 0;
}
/* The most blocks of one command; on the wire they may be more bytes. */
static inline uint64_t dev_most_blocks(const struct dev_lu *lu)
{
	return lu->server->max_transfer >> lu->block_shift;
}
/* Before a judged command runs: one that has no information on the wire does
 * not care if the unit was formatted anew. */
static inline void dev_protect_renew(struct dev_task *t)
{
	if (!t->protect.field && !dev_brings_tags(t))
		t->protect.type = DEV_PROTECTION(t->lu);
}
/* Before a judged command with data-out runs: t->mem.buf has only blocks then,
 * t->mem.pi the rest, checked. False: the task was ended. */
bool dev_protect_take(struct dev_task *t);
void dev_protect_read(struct dev_task *t);
/* n blocks, the first of which is the command's first-th. False: ended. */
bool dev_protect_check(struct dev_task *t, const uint8_t *data,
		       const uint8_t *pi, uint64_t first, uint64_t n);
bool dev_protect_differs(const struct dev_task *t, const uint8_t *a,
			 const uint8_t *b);
/* Of the i-th block where all are like the first. */
void dev_protect_same(const struct dev_task *t, const uint8_t *first,
		      uint64_t i, uint8_t *pi);
/* t->mem.aux: a chunk of at most DEV_CHUNK, and its information if the command is
 * judged (else NULL). False: none left. */
bool dev_aux_chunk(struct dev_task *t, uint64_t len);
/* The same for all of them at once, however many. */
bool dev_aux_blocks(struct dev_task *t, size_t len);
size_t dev_chunk_len(const struct dev_task *t);
uint8_t *dev_chunk_pi(const struct dev_task *t);

#endif
