/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy.c: copies blocks within and between units, chunk by chunk, for EXTENDED
 * COPY (copy_list.c) and WRITE USING TOKEN (token.c).
 */
#include <assert.h>

#include "device/copy/copy.h"
#include "device/unit/command.h"
#include "device/unit/condition.h"
#include "device/unit/itl.h"
#include "device/unit/range.h"
#include "device/unit/rate.h"

#define ZERO_CHUNK (64u << 20)

static_assert(sizeof(struct dev_job) <= COPY_DATA_AT, "the job has one page");

struct dev_job *dev_job_new(struct dev_task *t)
{
	struct dev_job *j;

	if (!dev_aux(t, COPY_DATA_AT + DEV_CHUNK)) {
		dev_no_resources(t);
		return NULL;
	}
	j = t->own.mem.aux;
	*j = (struct dev_job){ .now = 0 };
	return j;
}

static bool is_reachable(const struct dev_lu *lu)
{
	/* the device knows no blocks of a passthrough unit */
	return !lu->pass.device && dev_condition(lu) == LU_READY;
}

uint16_t dev_copy_from_refusal(const struct dev_nexus *n,
			       const struct dev_lu *from)
{
	const struct dev_itl *i;

	if (!from)
		return 0;
	if (!is_reachable(from))
		return ASC_COPY_TARGET_NOT_REACHABLE;
	i = dev_itl_of(n, from);
	if (!i)
		return ASC_COPY_TARGET_NOT_REACHABLE;
	return dev_denied_at(i, RSV_READ) ? ASC_THIRD_PARTY_DEVICE_FAILURE : 0;
}

uint16_t dev_copy_to_refusal(const struct dev_nexus *n, const struct dev_lu *to)
{
	const struct dev_itl *i = dev_itl_of(n, to);

	if (!i || !is_reachable(to))
		return ASC_COPY_TARGET_NOT_REACHABLE;
	if (dev_itl_write_protected(i))
		return ASC_WRITE_PROTECTED;
	return dev_denied_at(i, RSV_WRITE) ? ASC_THIRD_PARTY_DEVICE_FAILURE : 0;
}

/* ---- chunk by chunk ---- */

/* SPC-4 §5.17.7.4: reports the segment; how many of its blocks are not
 * copied, if any was; and the descriptor of the unit that failed. */
static void report_segment(const struct dev_job *j, bool is_source,
			   struct scsi_sense *s)
{
	const struct dev_segment *now = &j->segments[j->now];

	s->has_segment = true;
	s->segment = (uint16_t)j->now;
	s->has_info = j->done > 0;
	s->info = now->len - j->done;
	if (!now->by_bytes)
		s->info >>= now->to->block_shift;
	s->has_field = true;
	s->field = is_source ? now->from_at : now->to_at;
}

static void put_failure(struct dev_task *t, const struct dev_job *j,
			uint16_t asc, bool is_source)
{
	struct scsi_sense s = { .key = SENSE_COPY_ABORTED, .asc = asc };

	if (j->by_list)
		report_segment(j, is_source, &s);
	dev_copy_fail(t, &s);
}

static bool io_failed(struct dev_task *t, const struct dev_job *j)
{
	put_failure(t, j,
		    t->own.steps.result == ERR_NO_SPACE
			    ? ASC_SPACE_ALLOCATION_FAILED
			    : ASC_THIRD_PARTY_DEVICE_FAILURE,
		    !j->was_read);
	return false;
}

static void chunk_is_done(struct dev_task *t, struct dev_job *j)
{
	const struct dev_segment *s = &j->segments[j->now];
	const unsigned worker = t->nexus->cfg.worker;

	if (s->from)
		dev_rate_charge(s->from, worker, t->own.count);
	dev_rate_charge(s->to, worker, t->own.count);
	dev_range_drop(&t->own.range);
	j->done += t->own.count;
	t->own.copy->bytes += t->own.count;
	j->was_read = j->dest_read = false;
	t->own.count = 0;
	t->own.steps.wrote = false;
}

/* Moves on to the next segment with blocks to copy; false: all segments are
 * copied. */
static bool find_work(const struct dev_task *t, struct dev_job *j)
{
	while (j->now < j->nsegments && j->done == j->segments[j->now].len) {
		j->now++;
		j->done = 0;
		t->own.copy->segments++;
	}
	return j->now < j->nsegments;
}

static void set_data(struct dev_task *t)
{
	t->own.mem.iov[1] =
		(struct iovec){ (uint8_t *)t->own.mem.aux + COPY_DATA_AT,
				t->own.count };
	t->own.req.data = bufv_of(&t->own.mem.iov[1], 1);
}

/* Reads the next chunk; a segment of zeros has none to read. A fence at the
 * source ensures that blocks and their protection information match. */
static void read_chunk(struct dev_task *t, struct dev_job *j,
		       const struct dev_segment *s)
{
	uint32_t n = (uint32_t)MIN(s->len - j->done, (uint64_t)DEV_CHUNK);
	unsigned shift = s->from->block_shift;

	if (DEV_PROTECTION(s->from) && !j->holds_source) {
		j->holds_source = true;
		dev_step_source(t, s->from, (s->from_off + j->done) >> shift,
				n >> shift);
		return;
	}
	t->own.count = n;
	set_data(t);
	dev_step_io_on(t, s->from, BS_READ, 0, s->from_off + j->done,
		       t->own.count);
}

static void take_place(struct dev_task *t, struct dev_job *j,
		       const struct dev_segment *s)
{
	if (j->holds_source)
		dev_range_drop(&t->own.range);
	j->holds_source = false;
	if (!s->from)
		t->own.count =
			(uint32_t)MIN(s->len - j->done, (uint64_t)ZERO_CHUNK);
	j->was_read = true;
	dev_step_range(t, s->to, (s->to_off + j->done) >> s->to->block_shift,
		       t->own.count >> s->to->block_shift, false);
}

static uint32_t erasures(const struct dev_lu *lu)
{
	return __atomic_load_n(&lu->erasure.begun, __ATOMIC_RELAXED);
}

static void write_chunk(struct dev_task *t, const struct dev_job *j,
			const struct dev_segment *s)
{
	unsigned fua = dev_fua(s->to, false);

	t->own.steps.wrote = true;
	if (s->from)
		set_data(t);
	if (s->from)
		dev_step_io_on(t, s->to, BS_WRITE, fua, s->to_off + j->done,
			       t->own.count);
	else
		dev_step_io_on(t, s->to, BS_ZERO, fua | BS_MAY_UNMAP,
			       s->to_off + j->done, t->own.count);
}

/*
 * While the copy runs, another nexus may reserve a unit, set its software write
 * protection, eject its medium or change the access state of the port. The copy
 * manager is then refused like the nexus that sent the command (SPC-4 §5.13.1). False:
 * t was ended.
 */
static bool is_still_permitted(struct dev_task *t, const struct dev_job *j,
			       const struct dev_segment *s)
{
	uint16_t asc = 0;
	bool is_source = false;

	if (!dev_access_is_active(dev_access_at(t->nexus, s->to)) ||
	    (s->from &&
	     !dev_access_is_active(dev_access_at(t->nexus, s->from))))
		asc = ASC_COPY_TARGET_NOT_REACHABLE;
	if (!asc && t->own.count == 0) { /* the source is read next */
		asc = dev_copy_from_refusal(t->nexus, s->from);
		is_source = asc != 0;
	}
	if (!asc)
		asc = dev_copy_to_refusal(t->nexus, s->to);
	if (asc)
		put_failure(t, j, asc, is_source);
	return !asc;
}

/* Each chunk has three steps: read it (t->count is its length), take the
 * fence at the destination (j->was_read), write it (t->steps.wrote). */
static bool step(struct dev_task *t)
{
	struct dev_job *j = t->own.mem.aux;
	const struct dev_segment *s;

	if (t->own.steps.result)
		return io_failed(t, j);
	if (t->own.steps.wrote) /* a chunk was written */
		chunk_is_done(t, j);
	if (t->own.count == 0 && j->token && dev_token_is_bad(j->token)) {
		put_failure(t, j, ASC_TOKEN_REVOKED, true);
		return false;
	}
	if (t->own.count == 0 && !find_work(t, j)) {
		if (j->use_up)
			dev_token_use_up(j->token);
		dev_copy_succeed(t);
		dev_good(t);
		return false;
	}
	s = &j->segments[j->now];
	/* blocks from before an erasure must not be written after it */
	if (j->was_read && s->erasures != erasures(s->to)) {
		put_failure(t, j, ASC_THIRD_PARTY_DEVICE_FAILURE, false);
		return false;
	}
	if (!is_still_permitted(t, j, s))
		return false;
	if (s->by_bytes)
		dev_copy_bytes(t, j, s);
	else if (t->own.count == 0 && s->from)
		read_chunk(t, j, s);
	else if (!j->was_read)
		take_place(t, j, s);
	else
		write_chunk(t, j, s);
	return true;
}

void dev_job_run(struct dev_task *t)
{
	struct dev_job *j = t->own.mem.aux;

	for (uint32_t i = 0; i < j->nsegments; i++)
		j->segments[i].erasures = erasures(j->segments[i].to);
	t->own.steps.wrote = false;
	t->own.count = 0;
	dev_steps(t, step);
}
