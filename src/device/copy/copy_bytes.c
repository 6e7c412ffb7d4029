/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy_bytes.c: copies a chunk whose bytes need not begin or end with a block
 * (EXTENDED COPY, segment descriptor 0Ah: SPC-4 §6.4.6.12). The source blocks
 * with the bytes are read. With exclusive access, the destination blocks are
 * read, changed and written, so that the bytes around the copy keep their
 * values, also those that other commands write meanwhile.
 */
#include <assert.h>
#include <string.h>

#include "device/copy/copy.h"
#include "device/unit/range.h"

/* one half for the source's blocks, one for the destination's */
#define HALF  (DEV_CHUNK / 2)
#define CHUNK (64u << 10)

static_assert(CHUNK + 2 * COPY_BLOCK_MOST <= HALF,
	      "a chunk and the blocks at its ends have room");

/* The blocks that contain a range of bytes. */
struct cover {
	uint64_t off;
	uint32_t len, skip; /* the range begins `skip` bytes after off */
};

static struct cover cover_of(const struct dev_lu *lu, uint64_t off, uint32_t n)
{
	uint32_t block = lu->block_size, skip = (uint32_t)(off % block);

	return (struct cover){ .off = off - skip,
			       .len = (skip + n + block - 1) / block * block,
			       .skip = skip };
}

static uint8_t *source_buf(const struct dev_task *t)
{
	return (uint8_t *)t->own.mem.aux + COPY_DATA_AT;
}

static uint8_t *dest_buf(const struct dev_task *t)
{
	return source_buf(t) + HALF;
}

static void do_io(struct dev_task *t, struct dev_lu *lu, enum bs_op op,
		  unsigned flags, uint8_t *buf, const struct cover *c)
{
	t->own.mem.iov[1] = (struct iovec){ buf, c->len };
	t->own.req.data = bufv_of(&t->own.mem.iov[1], 1);
	dev_step_io_on(t, lu, op, flags, c->off, c->len);
}

static void read_source(struct dev_task *t, struct dev_job *j,
			const struct dev_segment *s)
{
	uint32_t n = (uint32_t)MIN(s->len - j->done, (uint64_t)CHUNK);
	struct cover c = cover_of(s->from, s->from_off + j->done, n);
	unsigned shift = s->from->block_shift;

	if (DEV_PROTECTION(s->from) && !j->holds_source) {
		j->holds_source = true;
		dev_step_source(t, s->from, c.off >> shift, c.len >> shift);
		return;
	}
	t->own.count = n;
	do_io(t, s->from, BS_READ, 0, source_buf(t), &c);
}

static void take_place(struct dev_task *t, struct dev_job *j,
		       const struct dev_segment *s)
{
	struct cover c = cover_of(s->to, s->to_off + j->done, t->own.count);
	unsigned shift = s->to->block_shift;

	if (j->holds_source)
		dev_range_drop(&t->own.range);
	j->holds_source = false;
	j->was_read = true;
	dev_step_range(t, s->to, c.off >> shift, c.len >> shift, true);
}

static void write_dest(struct dev_task *t, const struct dev_job *j,
		       const struct dev_segment *s, const struct cover *c)
{
	struct cover from =
		cover_of(s->from, s->from_off + j->done, t->own.count);

	memcpy(dest_buf(t) + c->skip, source_buf(t) + from.skip, t->own.count);
	t->own.steps.wrote = true;
	do_io(t, s->to, BS_WRITE, dev_fua(s->to, false), dest_buf(t), c);
}

void dev_copy_bytes(struct dev_task *t, struct dev_job *j,
		    const struct dev_segment *s)
{
	struct cover c = cover_of(s->to, s->to_off + j->done, t->own.count);

	if (t->own.count == 0) {
		read_source(t, j, s);
	} else if (!j->was_read) {
		take_place(t, j, s);
	} else if (c.len != t->own.count && !j->dest_read) {
		j->dest_read = true;
		do_io(t, s->to, BS_READ, 0, dest_buf(t), &c);
	} else {
		write_dest(t, j, s, &c);
	}
}
