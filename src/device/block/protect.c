/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * protect.c: protection information (SBC-3 §4.22) between the initiator and the
 * backstore. If RDPROTECT, WRPROTECT or a similar field is not 000b, each block
 * is transferred with 8 bytes of protection information, and the field selects
 * what the unit checks. The 32-byte commands of type 2 always transfer these
 * bytes and have the expected tags in the CDB. The backstore stores and
 * computes protection information (backstore/protect.h).
 */
#include "device/block/protect.h"
#include "base/pi.h"
#include <assert.h>
#include <string.h>

/* ---- validation of the field ---- */

int dev_protect_look(struct dev_task *t)
{
	unsigned at = dev_flags_at(t), field = dev_flags(t) >> 5;
	uint8_t type = DEV_PROTECTION(t->lu);

	if (!type || field > 5) /* 110b, 111b are reserved */
		return dev_bad_field(t, at, 7);
	/* §4.22.2.4: with type 2, only the 32-byte commands may have a field
	 * other than 0 */
	if (field && type == 2 && !dev_brings_tags(t))
		return dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	t->own.protect.field = (uint8_t)field;
	t->own.protect.type = type;
	return 0;
}

/* FORMAT UNIT has changed the protection type since dev_protect_look. */
static bool is_stale(struct dev_task *t)
{
	if (t->own.protect.type == DEV_PROTECTION(t->lu))
		return false;
	dev_bad_field(t, dev_flags_at(t), 7);
	return true;
}

/* ---- what is checked ---- */

/* Bit n: value n of RDPROTECT (§5.11, table 79) and of the similar fields. */
#define GUARD_IS_CHECKED 0x33u
#define TAGS_ARE_CHECKED 0x27u

static bool is_unchecked(const struct dev_task *t)
{
	return !t->own.protect.field && DEV_CTL(t->lu, dpicz);
}

static bool tags_are_checked(const struct dev_task *t)
{
	return TAGS_ARE_CHECKED >> t->own.protect.field & 1 && !is_unchecked(t);
}

/* The rule of all blocks; dev_protect_check adds the application tags of the
 * mode page. */
static struct pi_rule rule_of(const struct dev_task *t)
{
	bool tags = tags_are_checked(t);
	struct pi_rule r = {
		.type = t->own.protect.type,
		.guard = GUARD_IS_CHECKED >> t->own.protect.field & 1 &&
			 !is_unchecked(t),
		/* with type 2 only a 32-byte CDB gives the reference tag */
		.ref = tags && (t->own.protect.type != 2 || dev_brings_tags(t)),
		.ref_want = (uint32_t)t->lba,
	};

	if (dev_brings_tags(t)) {
		r.ref_want = get_be32(t->cdb + 20);
		r.app_want = get_be16(t->cdb + 24);
		r.app_mask = get_be16(t->cdb + 26);
		/* §5.12: application tag and mask are ignored if ATO is 0 */
		r.app = tags && DEV_CTL(t->lu, ato);
	}
	return r;
}

static void failed(struct dev_task *t, int err, uint64_t lba)
{
	dev_sense(t, &(struct scsi_sense){ .key = SENSE_ABORTED_COMMAND,
					   .asc = dev_protect_asc(err),
					   .has_info = true,
					   .info = lba });
}

bool dev_protect_check(struct dev_task *t, const uint8_t *data,
		       const uint8_t *pi, uint64_t first, uint64_t n)
{
	bool by_page = !dev_brings_tags(t) && tags_are_checked(t) &&
		       dev_tags_count(t->lu);
	size_t block = t->lu->block_size;
	struct pi_rule r = rule_of(t);

	for (uint64_t i = 0; i < n; i++) {
		int err;

		if (by_page) {
			r.app_mask = 0xffff;
			r.app = dev_tag_of(t->lu, t->lba + first + i,
					   &r.app_want);
		}
		err = pi_check(&r, data + i * block, block, pi + i * PI_LEN,
			       first + i);
		if (!err)
			continue;
		failed(t, err, t->lba + first + i);
		return false;
	}
	return true;
}

/* §5.31, table 119: the fields of the protection information that VERIFY
 * compares. */
bool dev_protect_differs(const struct dev_task *t, const uint8_t *a,
			 const uint8_t *b)
{
	bool guard = t->own.protect.field != 2,
	     tags = t->own.protect.field != 4;

	return (guard && memcmp(a, b, 2) != 0) ||
	       (tags && DEV_CTL(t->lu, ato) && memcmp(a + 2, b + 2, 2) != 0) ||
	       (tags && memcmp(a + 4, b + 4, 4) != 0);
}

void dev_protect_same(const struct dev_task *t, const uint8_t *first,
		      uint64_t i, uint8_t *pi)
{
	memcpy(pi, first, PI_LEN);
	/* §5.49: with type 3 the application owns the reference tag */
	if (t->own.protect.type != 3)
		put_be32(pi + 4, get_be32(first + 4) + (uint32_t)i);
}

/* ---- data-out ---- */

/* Splits data-out in place: moves n blocks together, and copies the
 * protection information between them to t->mem.pi. */
static void split_pi(struct dev_task *t, uint64_t n)
{
	size_t block = t->lu->block_size;
	uint8_t *p = t->own.mem.buf;

	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *from = p + i * (block + PI_LEN);

		memcpy((uint8_t *)t->own.mem.pi + i * PI_LEN, from + block,
		       PI_LEN);
		memmove(p + i * block, from, block);
	}
}

bool dev_protect_take(struct dev_task *t)
{
	uint64_t n = t->out_len / dev_wire_block(t), half = n;

	if (is_stale(t))
		return false;
	if (!t->own.protect.field)
		return true;
	if (n == 0) { /* not even one block */
		t->out_len = 0;
		return true;
	}
	if (!dev_pi_buf(t, n))
		return false;
	split_pi(t, n);
	t->out_len = (uint32_t)(n * t->lu->block_size);
	t->own.mem.iov[0].iov_len = t->out_len;
	/* §5.2: compare data, then write data of the same blocks */
	if (t->own.row->op == SCSI_COMPARE_AND_WRITE)
		half = n / 2;
	return dev_protect_check(t, t->own.mem.buf, t->own.mem.pi, 0, half) &&
	       dev_protect_check(
		       t, (uint8_t *)t->own.mem.buf + half * t->lu->block_size,
		       (uint8_t *)t->own.mem.pi + half * PI_LEN, 0, n - half);
}

/* ---- READ ---- */

/* Interleaves in place: moves each of the n blocks from p + head towards the
 * front, followed by its protection information. head is at least the length
 * of all the protection information, so no block is overwritten before it
 * has moved. */
static void interleave(struct dev_task *t, size_t head, uint64_t n)
{
	size_t block = t->lu->block_size;
	uint8_t *p = t->own.mem.buf;

	for (uint64_t i = 0; i < n; i++) {
		uint8_t *to = p + i * (block + PI_LEN);

		memmove(to, p + head + i * block, block);
		memcpy(to + block, (uint8_t *)t->own.mem.pi + i * PI_LEN,
		       PI_LEN);
	}
}

static void read_done(struct dev_task *t, int result)
{
	uint64_t n = t->own.count;
	size_t head = (size_t)t->own.steps.at;

	if (result) {
		dev_io_failed(t, result, t->own.req.off);
		return;
	}
	if (!dev_protect_check(t, (uint8_t *)t->own.mem.buf + head,
			       t->own.mem.pi, 0, n))
		return;
	if (t->own.protect.field)
		interleave(t, head, n);
	t->own.mem.iov[0] =
		(struct iovec){ t->own.mem.buf, MIN(n * dev_wire_block(t),
						    (uint64_t)t->edtl.in) };
	t->in = bufv_of(t->own.mem.iov, 1);
	dev_good(t);
}

void dev_protect_read(struct dev_task *t)
{
	uint32_t wire = dev_wire_block(t), block = t->lu->block_size;
	uint64_t n =
		MIN(t->own.blocks, ((uint64_t)t->edtl.in + wire - 1) / wire);
	size_t head =
		t->own.protect.field ? (n * PI_LEN + 511) & ~(size_t)511 : 0;

	if (is_stale(t))
		return;
	t->total.in = t->own.blocks * wire;
	if (n == 0) {
		dev_good(t);
		return;
	}
	if (!dev_buf(t, head + n * block) || !dev_pi_buf(t, n))
		return;
	t->own.count = (uint32_t)n;
	t->own.steps.at = head;
	t->own.mem.iov[0] =
		(struct iovec){ (uint8_t *)t->own.mem.buf + head, n * block };
	t->own.req.data = bufv_of(t->own.mem.iov, 1);
	t->own.req.pi = t->own.mem.pi;
	dev_submit(t, BS_READ, 0, t->lba << t->lu->block_shift, n * block,
		   read_done);
}

/* ---- a second buffer: blocks, then their protection information ---- */

bool dev_aux_blocks(struct dev_task *t, size_t len)
{
	assert(t->own.row->flags &
	       CMD_CHUNK); /* memory.c has charged the buffer */
	if (t->own.protect.type)
		len += len / t->lu->block_size * PI_LEN;
	return dev_aux(t, len);
}

bool dev_aux_chunk(struct dev_task *t, uint64_t len)
{
	return dev_aux_blocks(t, (size_t)MIN(len, (uint64_t)DEV_CHUNK));
}

size_t dev_chunk_len(const struct dev_task *t)
{
	uint32_t block = t->lu->block_size;

	return t->own.protect.type
		       ? t->own.mem.aux_len / (block + PI_LEN) * block
		       : t->own.mem.aux_len;
}

uint8_t *dev_chunk_pi(const struct dev_task *t)
{
	return t->own.protect.type
		       ? (uint8_t *)t->own.mem.aux + dev_chunk_len(t)
		       : NULL;
}
