/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.c: LOG SENSE and LOG SELECT (SPC-4 §§6.7, 6.8) and the log pages, one
 * row each. Nothing is saved; LOG SELECT only starts the counters again.
 */
#include <string.h>

#include "device/handlers.h"
#include "device/internal.h"

#define PC_CUMULATIVE 1
#define SUBPAGES_ALL  0xff
#define SPF	      0x40
#define BINARY_LIST   0x03 /* FORMAT AND LINKING, SPC-4 §7.3.2.2 */

/* ---- parameters into a page ---- */

struct out {
	uint8_t *p;
	size_t at;
	uint16_t from; /* PARAMETER POINTER */
	bool any;
};

/* Room for a parameter's value, or NULL when it is not asked for. */
static uint8_t *put(struct out *o, uint16_t code, uint8_t len)
{
	uint8_t *p = o->p + o->at;

	if (code < o->from)
		return NULL;
	o->any = true;
	put_be16(p, code);
	p[2] = BINARY_LIST;
	p[3] = len;
	o->at += 4u + len;
	return p + 4;
}

/* ---- 0Ch, SBC-3 §6.4.5 ---- */

#define SCOPE_SHARED 0x02 /* not this unit's alone */

static void put_resource(struct out *o, uint16_t code, uint64_t bytes)
{
	uint8_t *v = put(o, code, 8);

	if (!v)
		return;
	put_be32(v, (uint32_t)MIN(bytes >> 20, (uint64_t)UINT32_MAX));
	v[4] = SCOPE_SHARED;
}

static void fill_provisioning(struct dev_task *t, struct out *o)
{
	put_resource(o, 0x0001, t->req.space_left);
	put_resource(o, 0x0002, t->req.space_used);
}

static bool has_provisioning(const struct dev_lu *lu)
{
	return dev_threshold_exponent(lu) != 0;
}

/* ---- 19h, SPC-4 §7.3.9 ---- */

static struct dev_counter sum(const struct dev_lu *lu, bool writes)
{
	struct dev_counter s = { 0, 0 };

	for (unsigned i = 0; i < lu->server->env.nworkers; i++) {
		const struct dev_counter *c =
			writes ? &lu->lanes[i].writes : &lu->lanes[i].reads;

		s.commands += __atomic_load_n(&c->commands, __ATOMIC_RELAXED);
		s.blocks += __atomic_load_n(&c->blocks, __ATOMIC_RELAXED);
	}
	return s;
}

static struct dev_counter since_reset(const struct dev_lu *lu, bool writes)
{
	const struct dev_counter *base = &lu->counted_before[writes];
	struct dev_counter s = sum(lu, writes);

	s.commands -= __atomic_load_n(&base->commands, __ATOMIC_RELAXED);
	s.blocks -= __atomic_load_n(&base->blocks, __ATOMIC_RELAXED);
	return s;
}

static void put_pair(struct out *o, uint16_t code, uint32_t a, uint32_t b)
{
	uint8_t *v = put(o, code, 8);

	if (!v)
		return;
	put_be32(v, a);
	put_be32(v + 4, b);
}

/* Times are not measured: they are zero intervals, which are a millisecond
 * (10 to the -3rd of a second) each. */
static void fill_statistics(struct dev_task *t, struct out *o)
{
	struct dev_counter r = since_reset(t->lu, false);
	struct dev_counter w = since_reset(t->lu, true);
	uint8_t *v = put(o, 0x0001, 64);

	if (v) {
		put_be64(v, r.commands);
		put_be64(v + 8, w.commands);
		put_be64(v + 16, w.blocks); /* received */
		put_be64(v + 24, r.blocks); /* transmitted */
	}
	put_pair(o, 0x0002, 0, 0); /* idle */
	put_pair(o, 0x0003, 3, 1); /* the interval */
}

/* ---- 2Fh, SPC-4 §7.3.11: no exception, no temperature ---- */

static void fill_exceptions(struct dev_task *t, struct out *o)
{
	uint8_t *v = put(o, 0x0000, 4);

	(void)t;
	if (v)
		v[2] = 0xff;
}

/* ---- the table ---- */

static const struct log_page {
	uint8_t code;
	bool needs_space; /* the store is asked first */
	bool (*has)(const struct dev_lu *lu);
	void (*fill)(struct dev_task *t, struct out *o);
} pages[] = {
	{ 0x0c, true, has_provisioning, fill_provisioning },
	{ 0x19, false, NULL, fill_statistics },
	{ 0x2f, false, NULL, fill_exceptions },
};

static bool has(const struct dev_lu *lu, const struct log_page *l)
{
	return !l->has || l->has(lu);
}

static const struct log_page *find(const struct dev_task *t)
{
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i].code == (t->cdb[2] & 0x3f) && t->cdb[3] == 0 &&
		    has(t->lu, &pages[i]))
			return &pages[i];
	return NULL;
}

/* ---- LOG SENSE ---- */

/* 00h: the pages; 00h/FFh: the pages with their subpages (SPC-4 §7.3.17). */
static void list_pages(struct dev_task *t)
{
	bool subpages = t->cdb[3] == SUBPAGES_ALL;
	uint8_t *p = dev_param_buf(t);
	size_t at = 4;

	if (!p)
		return;
	p[at++] = 0;
	if (subpages) {
		p[at++] = 0;
		p[at++] = 0; /* and itself */
		p[at++] = SUBPAGES_ALL;
	}
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		if (!has(t->lu, &pages[i]))
			continue;
		p[at++] = pages[i].code;
		if (subpages)
			p[at++] = 0;
	}
	p[0] = subpages ? SPF : 0;
	p[1] = t->cdb[3];
	put_be16(p + 2, (uint16_t)(at - 4));
	dev_return(t, at, get_be16(t->cdb + 7));
}

static void build(struct dev_task *t, int result)
{
	const struct log_page *l = find(t);
	struct out o = { .at = 4, .from = get_be16(t->cdb + 5) };

	if (result) {
		dev_io_failed(t, result, 0);
		return;
	}
	o.p = dev_param_buf(t);
	if (!o.p)
		return;
	l->fill(t, &o);
	if (!o.any) { /* SPC-4 §6.8: the pointer is behind the last one */
		dev_bad_field(t, 5, -1);
		return;
	}
	o.p[0] = l->code;
	put_be16(o.p + 2, (uint16_t)(o.at - 4));
	dev_return(t, o.at, get_be16(t->cdb + 7));
}

void dev_log_sense(struct dev_task *t)
{
	const struct log_page *l = find(t);
	bool list = (t->cdb[2] & 0x3f) == 0 &&
		    (t->cdb[3] == 0 || t->cdb[3] == SUBPAGES_ALL);

	if (t->cdb[2] >> 6 != PC_CUMULATIVE)
		dev_bad_field(t, 2, 7); /* no thresholds, no defaults */
	else if (list)
		list_pages(t);
	else if (!l)
		dev_bad_field(t, t->cdb[3] ? 3 : 2, -1);
	else if (l->needs_space)
		dev_submit(t, BS_SPACE, 0, 0, 0, build);
	else
		build(t, 0);
}

/* ---- LOG SELECT ---- */

#define PCR 0x02

static void start_again(struct dev_lu *lu)
{
	for (unsigned writes = 0; writes < 2; writes++) {
		struct dev_counter *base = &lu->counted_before[writes];
		struct dev_counter now = sum(lu, writes);

		__atomic_store_n(&base->commands, now.commands,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&base->blocks, now.blocks, __ATOMIC_RELAXED);
	}
}

/* No parameter can be set: a list has to be empty (SPC-4 §6.7). */
void dev_log_select(struct dev_task *t)
{
	if (get_be16(t->cdb + 7)) {
		dev_bad_field(t, 7, -1);
		return;
	}
	if (t->cdb[2] >> 6 != PC_CUMULATIVE) {
		dev_bad_field(t, 2, 7);
		return;
	}
	if ((t->cdb[2] & 0x3f || t->cdb[3]) && !find(t)) {
		dev_bad_field(t, t->cdb[3] ? 3 : 2, -1);
		return;
	}
	if ((t->cdb[1] & PCR) &&
	    ((t->cdb[2] & 0x3f) == 0 || (t->cdb[2] & 0x3f) == 0x19))
		start_again(t->lu);
	dev_good(t);
}
