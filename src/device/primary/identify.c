/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identify.c: REPORT and SET IDENTIFYING INFORMATION (SPC-4 §§5.6, 6.32, 6.43).
 * The information is in the record of the unit (keep.h). A unit without a
 * record has no information and does not have the SET command.
 */
#include <stdlib.h>
#include <string.h>

#include "device/keep/keep.h"
#include "device/primary/primary.h"
#include "device/unit/attention.h"
#include "device/unit/shared.h"

#define TYPE_IDENTIFYING 0x00
#define TYPE_TEXT	 0x02
#define TYPE_SUPPORTED	 0x7f
#define HEADER		 4

static const struct {
	uint8_t type;
	uint16_t max; /* SPC-4 table 60 */
} kinds[KEEP_INFOS] = {
	[KEEP_IDENTIFYING] = { TYPE_IDENTIFYING, 512 },
	[KEEP_TEXT] = { TYPE_TEXT, 256 },
};

/* Returns the kind that the CDB names; KEEP_INFOS: the unit does not have
 * the kind. */
static enum keep_info kind_of(const struct dev_task *t)
{
	uint8_t type = t->cdb[10] >> 1;

	if (type == TYPE_IDENTIFYING)
		return KEEP_IDENTIFYING;
	return type == TYPE_TEXT && dev_keeps(t->lu) ? KEEP_TEXT : KEEP_INFOS;
}

struct info_op {
	struct keep_op op;
	struct dev_task *task;
	enum keep_info kind;
};

static struct info_op *info_op_new(struct dev_task *t)
{
	struct info_op *i = calloc(1, sizeof(*i));

	if (!i) {
		dev_no_resources(t);
		return NULL;
	}
	i->task = t;
	i->kind = kind_of(t);
	i->op.lu = t->lu;
	i->op.from = t->nexus->cfg.worker;
	return i;
}

/* ---- REPORT IDENTIFYING INFORMATION ---- */

static void return_info(struct dev_task *t, const uint8_t *bytes, uint16_t len)
{
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	put_be16(p + 2, len);
	if (len)
		memcpy(p + HEADER, bytes, len);
	dev_return(t, HEADER + (size_t)len, get_be32(t->cdb + 6));
}

static void info_read(struct keep_op *op)
{
	struct info_op *i = container_of(op, struct info_op, op);

	return_info(i->task, op->next.info[i->kind].bytes,
		    op->next.info[i->kind].len);
	free(i);
}

/* §6.32, table 228: the supported types and their maximum lengths. */
static void return_supported(struct dev_task *t)
{
	unsigned n = dev_keeps(t->lu) ? KEEP_INFOS : 1;
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	put_be16(p + 2, (uint16_t)(4 * n));
	for (unsigned i = 0; i < n; i++) {
		p[HEADER + 4 * i] = (uint8_t)(kinds[i].type << 1);
		if (dev_keeps(t->lu))
			put_be16(p + HEADER + 4 * i + 2, kinds[i].max);
	}
	dev_return(t, HEADER + 4 * n, get_be32(t->cdb + 6));
}

static void report(struct dev_task *t)
{
	struct info_op *i;

	if (t->cdb[10] >> 1 == TYPE_SUPPORTED) {
		return_supported(t);
	} else if (kind_of(t) == KEEP_INFOS) {
		dev_bad_field(t, 10, 7);
	} else if (!dev_keeps(t->lu)) {
		return_info(t, NULL, 0);
	} else {
		i = info_op_new(t);
		if (!i)
			return;
		i->op.done = info_read;
		dev_keep(&i->op);
	}
}

void dev_report_identifying(struct dev_task *t)
{
	dev_refreshed(t, report);
}

/* ---- SET IDENTIFYING INFORMATION ---- */

int dev_prepare_set_identifying(struct dev_task *t, uint64_t *out_len)
{
	enum keep_info kind = kind_of(t);
	uint32_t len = get_be32(t->cdb + 6);

	if (kind == KEEP_INFOS)
		return dev_bad_field(t, 10, 7);
	if (len > kinds[kind].max)
		return dev_bad_field(t, 6, -1);
	*out_len = len;
	return 0;
}

/* Returns the length of the UTF-8 character at p; 0: not a UTF-8 character. */
static size_t utf8_len(const uint8_t *p, size_t left)
{
	size_t n = p[0] < 0x80				   ? 1
		   : (p[0] & 0xe0) == 0xc0 && p[0] >= 0xc2 ? 2
		   : (p[0] & 0xf0) == 0xe0		   ? 3
		   : (p[0] & 0xf8) == 0xf0 && p[0] <= 0xf4 ? 4
							   : 0;

	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Returns whether p is null-terminated UTF-8 (SPC-4 §4.3.2); *bad: the first
 * invalid byte. */
static bool is_text(const uint8_t *p, size_t len, size_t *bad)
{
	size_t at = 0, n;

	for (; at + 1 < len; at += n) {
		n = p[at] ? utf8_len(p + at, len - 1 - at) : 0;
		if (n == 0)
			break;
	}
	*bad = at;
	return at + 1 == len && p[at] == 0;
}

static void set_info(struct keep_op *op, struct dev_record *r)
{
	const struct info_op *i = container_of(op, struct info_op, op);
	const struct dev_task *t = i->task;

	op->tells |= BIT(UA_DEVICE_IDENTIFIER);
	r->info[i->kind].len = (uint16_t)t->out_len;
	memset(r->info[i->kind].bytes, 0, KEEP_INFO_MAX);
	if (t->out_len)
		memcpy(r->info[i->kind].bytes, t->own.mem.buf, t->out_len);
}

static void info_set(struct keep_op *op)
{
	struct info_op *i = container_of(op, struct info_op, op);
	struct dev_task *t = i->task;
	int err = op->err;

	free(i);
	if (err)
		dev_not_kept(t, err);
	else
		dev_attention_others(t, UA_DEVICE_IDENTIFIER, dev_good);
}

void dev_set_identifying(struct dev_task *t)
{
	struct info_op *i;
	size_t bad;

	if (t->out_len != get_be32(t->cdb + 6)) {
		dev_bad_length(t);
		return;
	}
	if (t->out_len && kind_of(t) == KEEP_TEXT &&
	    !is_text(t->own.mem.buf, t->out_len, &bad)) {
		dev_bad_parameter(t, (unsigned)bad);
		return;
	}
	i = info_op_new(t);
	if (!i)
		return;
	i->op.change = set_info;
	i->op.done = info_set;
	dev_keep(&i->op);
}
