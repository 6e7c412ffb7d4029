/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy_list.c: EXTENDED COPY(LID1) (SPC-4 §6.4): copies blocks or bytes between
 * units which the initiator could read and write itself over this nexus. All
 * descriptors are checked before the first block is copied.
 */

#include "device/copy/copy.h"
#include "device/unit/itl.h"
#include "device/unit/names.h"

#define HEADER	       16u
#define MAX_PARAMETERS 8192u
#define TARGET_E4      0xe4
#define SEGMENT_B2B    0x02 /* block to block (§6.4.6.4) */
#define SEGMENT_BYTES  0x0a /* block to block with offsets (§6.4.6.12) */
#define USAGE_DISCARD  2
#define USAGE_NONE     3
#define LU_ID_TYPE     0xc0
#define NULL_DEVICE    0x20
#define COUNT_IS_DEST  0x02 /* DC */

/* ---- the parameter list ---- */

int dev_prepare_extended_copy(struct dev_task *t, uint64_t *out_len)
{
	return dev_copy_prepare_list(t, MAX_PARAMETERS, out_len);
}

/* Checks list identifier, its usage and the length of inline data (bytes 0,
 * 1, 12). */
static bool check_header(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	unsigned usage = p[1] >> 3 & 3;

	if (p[1] & 0xc0 || usage == 1)
		dev_bad_parameter(t, 1);
	else if (usage == USAGE_NONE && p[0])
		dev_bad_parameter(t, 0);
	else if (get_be32(p + 12))
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INLINE_DATA_LENGTH);
	else
		return true;
	return false;
}

/* Checks that both descriptor lists are complete and not too long. */
static bool check_lengths(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	uint32_t targets, segments;

	if (t->out_len < HEADER)
		goto bad;
	targets = get_be16(p + 2);
	segments = get_be32(p + 8);
	if (segments > COPY_MAX_LIST || targets + segments > COPY_MAX_LIST ||
	    HEADER + targets + segments > t->out_len)
		goto bad;
	if (targets % COPY_TARGET_LEN) {
		dev_bad_parameter(t, 2);
		return false;
	}
	if (targets / COPY_TARGET_LEN > COPY_MAX_TARGETS) {
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_TOO_MANY_TARGETS);
		return false;
	}
	return true;
bad:
	dev_bad_length(t);
	return false;
}

static bool check_targets(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	uint32_t end = HEADER + get_be16(p + 2);

	for (uint32_t at = HEADER; at < end; at += COPY_TARGET_LEN) {
		if (p[at] != TARGET_E4) {
			dev_check(t, SENSE_ILLEGAL_REQUEST,
				  ASC_TARGET_DESCRIPTOR_TYPE);
			return false;
		}
		if (p[at + 7] > 20) {
			dev_bad_parameter(t, at + 7);
			return false;
		}
	}
	return true;
}

/* Returns the length of a segment descriptor; 0: unsupported type. */
static uint32_t segment_len(uint8_t type)
{
	return type == SEGMENT_B2B ? 28 : type == SEGMENT_BYTES ? 32 : 0;
}

/* Checks type and length of each segment descriptor; returns their number,
 * or -1: t was ended. */
static int count_segments(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	uint32_t at = HEADER + get_be16(p + 2), end = at + get_be32(p + 8);
	unsigned n = 0;

	for (; at < end; at += segment_len(p[at]), n++) {
		if (!segment_len(p[at])) {
			dev_check(t, SENSE_ILLEGAL_REQUEST,
				  ASC_SEGMENT_DESCRIPTOR_TYPE);
			return -1;
		}
		if (n == COPY_MAX_SEGMENTS) {
			dev_check(t, SENSE_ILLEGAL_REQUEST,
				  ASC_TOO_MANY_SEGMENTS);
			return -1;
		}
		if (end - at < segment_len(p[at]) ||
		    get_be16(p + at + 2) != segment_len(p[at]) - 4) {
			dev_bad_parameter(t, at + 2);
			return -1;
		}
	}
	return (int)n;
}

/* ---- the units and blocks of the descriptors ---- */

/* Returns the offset of target descriptor i; 0: the list has no such
 * descriptor. */
static uint16_t target_at(const struct dev_task *t, unsigned i)
{
	unsigned n =
		get_be16((const uint8_t *)t->own.mem.buf + 2) / COPY_TARGET_LEN;

	return i < n ? (uint16_t)(HEADER + i * COPY_TARGET_LEN) : 0;
}

/* Returns the unit that the target descriptor at `at` names, among the units
 * of this nexus, or NULL. */
static struct dev_lu *resolve(const struct dev_task *t, uint16_t at)
{
	const uint8_t *d = (const uint8_t *)t->own.mem.buf + at;

	/* LU ID TYPE and NUL in byte 1 are ignored (SPC-4 §6.4.5.2) */
	if (!at || d[5] & 0x30) /* ASSOCIATION must be 00b, a logical unit */
		return NULL;
	for (const struct dev_itl *i = dev_itl_first(t->nexus); i;
	     i = dev_itl_next(i))
		/* block devices only */
		if (i->lu->cfg.type == DEV_DISK &&
		    dev_lu_has_name(i->lu, d[4] & 0xf, d[5] & 0xf, d + 8, d[7]))
			return i->lu;
	return NULL;
}

/* Each descriptor once: a nexus may have thousands of units. */
static void resolve_targets(const struct dev_task *t, struct dev_job *j)
{
	for (unsigned i = 0; i < COPY_MAX_TARGETS; i++)
		j->targets[i] = resolve(t, target_at(t, i));
}

static struct dev_lu *target(const struct dev_job *j, unsigned i)
{
	return i < COPY_MAX_TARGETS ? j->targets[i] : NULL;
}

/* The additional sense code of an invalid segment, and the invalid byte of
 * the list. */
struct fault {
	uint16_t asc;
	uint32_t at;
};

/* SPC-4 §5.17.7.4: the field pointer of an unreachable unit is its target
 * descriptor. */
static bool resolve_units(const struct dev_task *t, const struct dev_job *j,
			  uint32_t at, struct dev_segment *s, struct fault *f)
{
	const uint8_t *d = (const uint8_t *)t->own.mem.buf + at;

	s->from_at = target_at(t, get_be16(d + 4));
	s->to_at = target_at(t, get_be16(d + 6));
	s->from = target(j, get_be16(d + 4));
	s->to = target(j, get_be16(d + 6));
	if (s->from && s->to)
		return true;
	f->asc = ASC_COPY_TARGET_NOT_REACHABLE;
	if (!s->from)
		f->at = s->from_at ? s->from_at : at + 4;
	else
		f->at = s->to_at ? s->to_at : at + 6;
	return false;
}

/* Blocks beyond the end of a unit count as an unreachable unit. */
static bool resolve_ranges(const struct dev_task *t, uint32_t at,
			   struct dev_segment *s, struct fault *f)
{
	const uint8_t *d = (const uint8_t *)t->own.mem.buf + at;
	uint64_t from = get_be64(d + 12), to = get_be64(d + 20), n;

	n = (uint64_t)get_be16(d + 10)
	    << (d[1] & COUNT_IS_DEST ? s->to : s->from)->block_shift;
	s->len = n;
	if (n % s->from->block_size || n % s->to->block_size)
		*f = (struct fault){ ASC_INEXACT_SEGMENT, at + 10 };
	else if (!range_ok(from, n >> s->from->block_shift, s->from->blocks))
		*f = (struct fault){ ASC_COPY_TARGET_NOT_REACHABLE, at + 12 };
	else if (!range_ok(to, n >> s->to->block_shift, s->to->blocks))
		*f = (struct fault){ ASC_COPY_TARGET_NOT_REACHABLE, at + 20 };
	if (f->asc)
		return false;
	s->from_off = from << s->from->block_shift;
	s->to_off = to << s->to->block_shift;
	return true;
}

/* Sets *off to the byte offset of n bytes that begin `skip` bytes after
 * block lba; false: some of the bytes are beyond the end of the unit. */
static bool place_bytes(const struct dev_lu *lu, uint64_t lba, uint32_t skip,
			uint64_t n, uint64_t *off)
{
	if (lba > lu->blocks)
		return false;
	*off = (lba << lu->block_shift) + skip;
	return range_ok(*off, n, lu->blocks << lu->block_shift);
}

/* §6.4.6.12 */
static bool resolve_bytes(const struct dev_task *t, uint32_t at,
			  struct dev_segment *s, struct fault *f)
{
	const uint8_t *d = (const uint8_t *)t->own.mem.buf + at;
	uint32_t from_skip = get_be16(d + 28), to_skip = get_be16(d + 30);

	s->by_bytes = true;
	s->len = get_be32(d + 8);
	if (s->from->block_size > COPY_BLOCK_MOST ||
	    s->to->block_size > COPY_BLOCK_MOST)
		*f = (struct fault){ ASC_SEGMENT_DESCRIPTOR_TYPE, at };
	else if (from_skip >= s->from->block_size)
		*f = (struct fault){ ASC_INVALID_FIELD_IN_PARAMETERS, at + 28 };
	else if (to_skip >= s->to->block_size)
		*f = (struct fault){ ASC_INVALID_FIELD_IN_PARAMETERS, at + 30 };
	else if (!place_bytes(s->from, get_be64(d + 12), from_skip, s->len,
			      &s->from_off))
		*f = (struct fault){ ASC_COPY_TARGET_NOT_REACHABLE, at + 12 };
	else if (!place_bytes(s->to, get_be64(d + 20), to_skip, s->len,
			      &s->to_off))
		*f = (struct fault){ ASC_COPY_TARGET_NOT_REACHABLE, at + 20 };
	return !f->asc;
}

/* Fills *s from the segment descriptor at `at`; false: *f has the reason. */
static bool resolve_segment(const struct dev_task *t, const struct dev_job *j,
			    uint32_t at, struct dev_segment *s, struct fault *f)
{
	bool by_bytes =
		*((const uint8_t *)t->own.mem.buf + at) == SEGMENT_BYTES;

	*f = (struct fault){ 0 };
	if (!resolve_units(t, j, at, s, f) ||
	    !(by_bytes ? resolve_bytes(t, at, s, f)
		       : resolve_ranges(t, at, s, f)))
		return false;
	*f = (struct fault){ dev_copy_from_refusal(t->nexus, s->from),
			     s->from_at };
	if (!f->asc)
		*f = (struct fault){ dev_copy_to_refusal(t->nexus, s->to),
				     s->to_at };
	return !f->asc;
}

static bool resolve_all(struct dev_task *t, struct dev_job *j)
{
	const uint8_t *p = t->own.mem.buf;
	uint32_t at = HEADER + get_be16(p + 2);
	struct fault f;

	resolve_targets(t, j);
	for (uint32_t i = 0; i < j->nsegments; i++) {
		if (resolve_segment(t, j, at, &j->segments[i], &f)) {
			at += segment_len(p[at]);
			continue;
		}
		dev_sense(t, &(struct scsi_sense){ .key = SENSE_COPY_ABORTED,
						   .asc = f.asc,
						   .has_segment = true,
						   .segment = (uint16_t)i,
						   .has_field = true,
						   .field = (uint16_t)f.at });
		return false;
	}
	return true;
}

void dev_extended_copy(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	unsigned usage;
	struct dev_job *j;
	int n;

	if (get_be32(t->cdb + 10) == 0) {
		dev_good(t); /* an empty parameter list is valid */
		return;
	}
	if (!check_lengths(t) || !check_header(t) || !check_targets(t))
		return;
	usage = p[1] >> 3 & 3;
	n = count_segments(t);
	if (n < 0)
		return;
	j = dev_job_new(t);
	if (!j)
		return;
	j->nsegments = (uint32_t)n;
	j->by_list = true;
	if (resolve_all(t, j) &&
	    dev_copy_begin(t, COPY_BY_LID1,
			   usage == USAGE_NONE ? COPY_NO_ID : p[0],
			   usage >= USAGE_DISCARD))
		dev_job_run(t);
}
