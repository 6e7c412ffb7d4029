/* SPDX-License-Identifier: BSD-2-Clause */
/* protect.h: protection information on the wire. */
#ifndef DEVICE_PROTECT_H
#define DEVICE_PROTECT_H

#include "device/unit/command.h"

/* dev_flags_at returns the byte of the CDB that has RDPROTECT, DPO, FUA or
 * similar fields (SBC-3 §5); dev_flags returns its value. */
static inline unsigned dev_flags_at(const struct dev_task *t)
{
	return t->own.row->len == 32 ? 10 : 1;
}

static inline uint8_t dev_flags(const struct dev_task *t)
{
	return t->cdb[dev_flags_at(t)];
}

/* dev_brings_tags returns whether the CDB has the expected tags, as in the
 * 32-byte commands of type 2. */
static inline bool dev_brings_tags(const struct dev_task *t)
{
	return t->own.row->flags & CMD_TAGS;
}

/* ---- apptag.c: the Application Tag mode page ---- */

/* dev_has_tags, dev_tags_fill, dev_tags_mask, dev_tags_take and dev_tags_bad
 * are the functions of the page's row (mode.h). */
bool dev_has_tags(const struct dev_lu *lu);
void dev_tags_fill(const struct dev_lu *lu, const struct dev_control *c,
		   uint8_t *p);
void dev_tags_mask(const struct dev_lu *lu, uint8_t *p);
void dev_tags_take(struct dev_control *c, const uint8_t *p);
unsigned dev_tags_bad(const uint8_t *p, uint64_t blocks);
/* dev_tag_of sets *tag to the expected application tag of the block; false:
 * the page assigns no tag to the block. */
bool dev_tag_of(const struct dev_lu *lu, uint64_t lba, uint16_t *tag);
/* dev_tags_count returns whether the page applies to commands (SPC-4
 * §7.5.8). */
static inline bool dev_tags_count(const struct dev_lu *lu)
{
	return DEV_CTL(lu, atmpe) && DEV_CTL(lu, ato) && DEV_PROTECTION(lu);
}

/* ---- protect.c ---- */

/* dev_protect_look validates RDPROTECT, WRPROTECT or the similar field of t
 * and sets t->protect; the command is then a checked command. Returns the
 * same as prepare (command.h). */
int dev_protect_look(struct dev_task *t);
/* dev_protect_prepare calls dev_protect_look if the command needs any
 * checks; in the prepare function of each command with such a field. */
static inline int dev_protect_prepare(struct dev_task *t)
{
	return (dev_flags(t) & 0xe0) || dev_brings_tags(t) ||
			       dev_tags_count(t->lu)
		       ? dev_protect_look(t)
		       : 0;
}
/* dev_most_blocks returns the most blocks of one command. With protection
 * information they may be more bytes than max_transfer. */
static inline uint64_t dev_most_blocks(const struct dev_lu *lu)
{
	return lu->server->max_transfer >> lu->block_shift;
}
/* dev_protect_renew: before a checked command is executed: if it transfers
 * no protection information, a FORMAT UNIT since dev_task_begin only changes
 * the type. */
static inline void dev_protect_renew(struct dev_task *t)
{
	if (!t->own.protect.field && !dev_brings_tags(t))
		t->own.protect.type = DEV_PROTECTION(t->lu);
}
/* dev_protect_take: before a checked command with data-out is executed:
 * splits and checks data-out, so that t->mem.buf has the blocks and
 * t->mem.pi their protection information. False: t was ended. */
bool dev_protect_take(struct dev_task *t);
/* dev_protect_read executes a checked READ. */
void dev_protect_read(struct dev_task *t);
/* dev_protect_check checks the protection information of n blocks; `first`
 * is the number of the first one within the command. False: t was ended. */
bool dev_protect_check(struct dev_task *t, const uint8_t *data,
		       const uint8_t *pi, uint64_t first, uint64_t n);
/* dev_protect_differs compares the protection information a and b of a
 * block, as far as the field of t requires. */
bool dev_protect_differs(const struct dev_task *t, const uint8_t *a,
			 const uint8_t *b);
/* dev_protect_same sets pi to the protection information of block i of WRITE
 * SAME or VERIFY, whose blocks are all like the first one. */
void dev_protect_same(const struct dev_task *t, const uint8_t *first,
		      uint64_t i, uint8_t *pi);
/* dev_aux_chunk allocates t->mem.aux for blocks of at most len and DEV_CHUNK
 * bytes, followed by their protection information if t is a checked command.
 * False: no memory. */
bool dev_aux_chunk(struct dev_task *t, uint64_t len);
/* dev_aux_blocks allocates t->mem.aux in the same way for all len bytes. */
bool dev_aux_blocks(struct dev_task *t, size_t len);
/* dev_chunk_len returns how many bytes of blocks t->mem.aux has room for;
 * dev_chunk_pi returns the protection information in t->mem.aux, or NULL. */
size_t dev_chunk_len(const struct dev_task *t);
uint8_t *dev_chunk_pi(const struct dev_task *t);

#endif
