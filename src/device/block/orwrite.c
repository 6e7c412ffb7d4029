/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * orwrite.c: ORWRITE(16) (SBC-4 §5.10) and ORWRITE(32) (§5.11) for bitmaps that
 * several initiators update. A set operation ORs data-out into its blocks; a
 * change generation and clear operation ANDs data-out into its blocks and
 * begins a new generation.
 *
 * A set operation names its generation. The latest change operation gives the
 * policy for set operations of earlier generations (table 29). A change
 * operation has exclusive access to the whole unit, so that every set operation
 * which the earlier generation permitted has ended before.
 */
#include <string.h>

#include "base/pi.h"
#include "device/block/block.h"
#include "device/block/protect.h"

#define BMOP_CHANGE 1u

/* ---- generations (§4.27.2) ---- */

#define POLICY_AT_FIRST 7u

enum verdict {
	RESERVED, /* reserved policy code */
	PERFORM,
	DISCARD,
	MISMATCH,
};

/* Table 29: the policies for a set operation of the previous generation, and
 * of any other generation than the current one. */
static const struct {
	enum verdict before, other;
} policies[16] = {
	[0] = { PERFORM, MISMATCH },
	[2] = { DISCARD, MISMATCH },
	[3] = { PERFORM, PERFORM },
	[5] = { DISCARD, DISCARD },
	[POLICY_AT_FIRST] = { MISMATCH, MISMATCH },
};

#define LOAD(m)	    __atomic_load_n(&(m), __ATOMIC_RELAXED)
#define STORE(m, v) __atomic_store_n(&(m), v, __ATOMIC_RELAXED)

void dev_lu_hard_reset(struct dev_lu *lu)
{
	STORE(lu->generation.now, 0);
	STORE(lu->generation.before, 0);
	STORE(lu->generation.policy, POLICY_AT_FIRST);
}

/* Only units with type 2 protection, which have 32-byte CDBs anyway, and
 * units that follow the standard strictly: libiscsi stores 16 bytes of the
 * CDB usage data of REPORT SUPPORTED OPERATION CODES and fails if a disk
 * reports more. */
bool dev_has_generations(const struct dev_lu *lu)
{
	return dev_has_type_2(lu) || lu->cfg.strict;
}

static bool is_change(const struct dev_task *t)
{
	return t->own.row->len == 32 && t->cdb[2] == BMOP_CHANGE;
}

static enum verdict verdict_of(const struct dev_task *t)
{
	const struct dev_generation *g = &t->lu->generation;
	/* §4.27.2.2: ORWRITE(16) is for generation 0 */
	uint32_t meant = t->own.row->len == 32 ? get_be32(t->cdb + 20) : 0;

	if (meant == LOAD(g->now) || !dev_has_generations(t->lu))
		return PERFORM;
	if (is_change(t))
		return MISMATCH;
	if (meant == LOAD(g->before))
		return policies[LOAD(g->policy)].before;
	return policies[LOAD(g->policy)].other;
}

/* A change operation takes effect when all its blocks are written. */
static void end_well(struct dev_task *t)
{
	struct dev_generation *g = &t->lu->generation;

	if (is_change(t)) {
		STORE(g->policy, t->cdb[3]);
		STORE(g->before, LOAD(g->now));
		STORE(g->now, get_be32(t->cdb + 24));
	}
	dev_good(t);
}

/* ---- read a chunk, merge data-out into it, write it ---- */

static bool read_chunk(struct dev_task *t)
{
	t->own.count = (uint32_t)MIN(t->own.steps.end - t->own.steps.at,
				     (uint64_t)dev_chunk_len(t));
	t->own.mem.iov[1] = (struct iovec){ t->own.mem.aux, t->own.count };
	t->own.req.data = bufv_of(&t->own.mem.iov[1], 1);
	t->own.req.pi = dev_chunk_pi(t);
	t->own.steps.wrote = false;
	dev_step_io(t, BS_READ, 0, t->own.steps.at, t->own.count);
	return true;
}

static void merge(const struct dev_task *t, uint64_t first)
{
	const uint8_t *from =
		(const uint8_t *)t->own.mem.buf + (first << t->lu->block_shift);
	uint8_t *to = t->own.mem.aux;

	if (is_change(t))
		for (uint32_t i = 0; i < t->own.count; i++)
			to[i] &= from[i];
	else
		for (uint32_t i = 0; i < t->own.count; i++)
			to[i] |= from[i];
}

/* §4.27.1: the guards are computed from the merged data; the tags are those
 * of data-out. */
static void merge_pi(struct dev_task *t, uint64_t first)
{
	size_t block = t->lu->block_size;
	uint8_t *pi = dev_chunk_pi(t);

	memcpy(pi, (uint8_t *)t->own.mem.pi + first * PI_LEN,
	       t->own.count / block * PI_LEN);
	for (size_t i = 0; i < t->own.count / block; i++)
		put_be16(pi + i * PI_LEN,
			 pi_guard((uint8_t *)t->own.mem.aux + i * block,
				  block));
}

static bool step(struct dev_task *t)
{
	uint64_t first = (t->own.steps.at >> t->lu->block_shift) - t->lba;

	if (t->own.steps.result) {
		dev_io_failed(t, t->own.steps.result, t->own.steps.at);
		return false;
	}
	if (t->own.steps.wrote) { /* a chunk was written */
		t->own.steps.at += t->own.count;
		t->own.count = 0;
	}
	if (t->own.steps.at == t->own.steps.end) {
		end_well(t);
		return false;
	}
	if (t->own.count == 0)
		return read_chunk(t);
	if (t->own.protect.type &&
	    !dev_protect_check(t, t->own.mem.aux, dev_chunk_pi(t), first,
			       t->own.count >> t->lu->block_shift))
		return false;
	merge(t, first);
	if (t->own.protect.field)
		merge_pi(t, first);
	else
		t->own.req.pi = NULL; /* the backstore computes it */
	t->own.steps.wrote = true;
	dev_step_io(t, BS_WRITE, dev_fua(t->lu, dev_flags(t) & 0x08),
		    t->own.steps.at, t->own.count);
	return true;
}

static void perform(struct dev_task *t)
{
	unsigned shift = t->lu->block_shift;
	uint64_t blocks = t->out_len >> shift;

	/* a change operation with a part of its data would change some of
	 * the bitmap only */
	if (is_change(t) && blocks != t->own.blocks) {
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
		return;
	}
	if (blocks == 0) {
		end_well(t);
		return;
	}
	t->own.steps.at = t->lba << shift;
	t->own.steps.end = (t->lba + blocks) << shift;
	t->own.steps.wrote = false;
	if (!dev_aux_chunk(t, t->own.steps.end - t->own.steps.at)) {
		dev_no_resources(t);
		return;
	}
	dev_steps(t, step);
}

void dev_orwrite(struct dev_task *t)
{
	switch (verdict_of(t)) {
	case PERFORM:
		perform(t);
		break;
	case DISCARD:
		dev_good(t);
		break;
	default:
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_ORWRITE_GENERATION);
	}
}

int dev_prepare_orwrite_32(struct dev_task *t, uint64_t *out_len)
{
	if (t->cdb[2] > BMOP_CHANGE)
		return dev_bad_field(t, 2, 2);
	t->own.alone = is_change(t);
	if (t->own.alone && policies[t->cdb[3]].before == RESERVED)
		return dev_bad_field(t, 3, 3);
	return dev_prepare_write(t, out_len);
}
