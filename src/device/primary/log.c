/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.c: LOG SENSE and LOG SELECT (SPC-4 §§6.7, 6.8) and the log pages, one row
 * each. No log parameter is saved; LOG SELECT only resets the counters.
 */
#include <string.h>

#include "device/block/block.h"
#include "device/primary/primary.h"
#include "device/unit/attention.h"
#include "device/unit/unit.h"

#define PC_CUMULATIVE 1
#define SUBPAGES_ALL  0xff
#define DS	      0x80
#define SPF	      0x40

/* The parameter control byte (SPC-4 §7.3.2.2.2): TSD, because no parameter
 * is saved, and FORMAT AND LINKING. */
#define BINARY_LIST 0x23
#define COUNTER	    0x22 /* FORMAT AND LINKING 10b, as every counter has */

/* ---- parameters into a page ---- */

struct out {
	uint8_t *p;
	size_t at;
	uint16_t from; /* PARAMETER POINTER */
	bool any;
};

/* Appends a parameter; returns where its value goes, or NULL if its code is
 * below PARAMETER POINTER. */
static uint8_t *put(struct out *o, uint16_t code, uint8_t control, uint8_t len)
{
	uint8_t *p = o->p + o->at;

	if (code < o->from)
		return NULL;
	o->any = true;
	put_be16(p, code);
	p[2] = control;
	p[3] = len;
	o->at += 4u + len;
	return p + 4;
}

/* ---- 0Ch, SBC-3 §6.4.5 ---- */

#define SCOPE_SHARED 0x02 /* units of the same file system share the space */

static void put_resource(struct out *o, uint16_t code, uint64_t bytes)
{
	uint8_t *v = put(o, code, BINARY_LIST, 8);

	if (!v)
		return;
	put_be32(v, (uint32_t)MIN(bytes >> 20, (uint64_t)UINT32_MAX));
	v[4] = SCOPE_SHARED;
}

static void fill_provisioning(struct dev_task *t, struct out *o)
{
	put_resource(o, 0x0001, t->own.req.space_left);
	put_resource(o, 0x0002, t->own.req.space_used);
}

static bool has_provisioning(const struct dev_lu *lu)
{
	return dev_threshold_exponent(lu) != 0;
}

/* ---- 19h, SPC-4 §§7.3.5, 7.3.6 ---- */

static struct dev_counter sum(const struct dev_lu *lu, unsigned what)
{
	struct dev_counter s = { 0, 0 };

	for (unsigned i = 0; i < lu->server->env.nworkers; i++) {
		const struct dev_counter *c = &lu->lanes[i].counts[what];

		s.commands += counter_read(&c->commands);
		s.blocks += counter_read(&c->blocks);
	}
	return s;
}

static struct dev_counter since_reset(const struct dev_lu *lu, unsigned what)
{
	const struct dev_counter *base = &lu->counted_before[what];
	struct dev_counter s = sum(lu, what);

	s.commands -= counter_read(&base->commands);
	s.blocks -= counter_read(&base->blocks);
	return s;
}

static void put_count(struct out *o, uint16_t code, uint64_t n)
{
	uint8_t *v = put(o, code, COUNTER, 8);

	if (v)
		put_be64(v, n);
}

/* The unit measures no times: it reports zero intervals of one millisecond
 * (10 to the -3rd of a second). */
static void fill_statistics(struct dev_task *t, struct out *o)
{
	struct dev_counter r = since_reset(t->lu, COUNT_READS);
	struct dev_counter w = since_reset(t->lu, COUNT_WRITES);
	uint8_t *v = put(o, 0x0001, COUNTER, 64);

	if (v) {
		put_be64(v, r.commands);
		put_be64(v + 8, w.commands);
		put_be64(v + 16, w.blocks); /* received */
		put_be64(v + 24, r.blocks); /* transmitted */
	}
	put_count(o, 0x0002, 0); /* idle */
	v = put(o, 0x0003, BINARY_LIST, 8);
	if (v) { /* the interval */
		put_be32(v, 3);
		put_be32(v + 4, 1);
	}
}

/* 0001h and 0002h, the read cache, are left out, because the cache of Linux
 * does not report hits. A write is a cache hit if it ends before the blocks
 * are on the medium. */
static void fill_cache(struct dev_task *t, struct out *o)
{
	put_count(o, 0x0003, since_reset(t->lu, COUNT_CACHED).commands);
	put_count(o, 0x0004, since_reset(t->lu, COUNT_FLUSHES).commands);
}

/* ---- 2Fh, SPC-4 §7.3.11: no exception, no temperature ---- */

static void fill_exceptions(struct dev_task *t, struct out *o)
{
	uint8_t *v = put(o, 0x0000, BINARY_LIST, 4);

	(void)t;
	if (v)
		v[2] = 0xff;
}

/* ---- the table ---- */

static const struct log_page {
	uint8_t code, subpage;
	bool needs_space; /* from BS_SPACE */
	bool counts;	  /* the parameters are counters, so PC applies */
	bool (*has)(const struct dev_lu *lu);
	void (*fill)(struct dev_task *t, struct out *o);
} pages[] = {
	{ 0x0c, 0x00, true, false, has_provisioning, fill_provisioning },
	{ 0x19, 0x00, false, true, NULL, fill_statistics },
	{ 0x19, 0x20, false, true, NULL, fill_cache },
	{ 0x2f, 0x00, false, false, NULL, fill_exceptions },
};

static bool has(const struct dev_lu *lu, const struct log_page *l)
{
	return !l->has || l->has(lu);
}

static uint8_t page_code(const struct dev_task *t)
{
	return t->cdb[2] & 0x3f;
}

/* Returns the page that the CDB names; with SUBPAGES_ALL, the first of its
 * code. */
static const struct log_page *find(const struct dev_task *t)
{
	uint8_t subpage = t->cdb[3];

	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i].code == page_code(t) &&
		    (pages[i].subpage == subpage || subpage == SUBPAGES_ALL) &&
		    has(t->lu, &pages[i]))
			return &pages[i];
	return NULL;
}

static bool has_code(const struct dev_task *t)
{
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i].code == page_code(t) && has(t->lu, &pages[i]))
			return true;
	return page_code(t) == 0;
}

/* Ends t with the field pointer at SUBPAGE CODE if the page code exists,
 * else at PAGE CODE. */
static void no_such_page(struct dev_task *t)
{
	dev_bad_field(t, has_code(t) ? 3 : 2, -1);
}

/* ---- LOG SENSE ---- */

static void put_name(uint8_t *p, size_t *at, uint8_t code, uint8_t subpage,
		     bool subpages)
{
	p[(*at)++] = code;
	if (subpages)
		p[(*at)++] = subpage;
}

/* Page 00h lists the pages; with subpage FFh also their subpages, of one
 * page code or, for page code 00h, of all pages (SPC-4 §§7.3.18 to 7.3.20).
 * Subpage FFh lists itself. */
static void list_pages(struct dev_task *t)
{
	bool subpages = t->cdb[3] == SUBPAGES_ALL;
	uint8_t *p = dev_param_buf(t), only = page_code(t);
	size_t at = 4;

	if (!p)
		return;
	if (!only) {
		put_name(p, &at, 0, 0, subpages);
		if (subpages)
			put_name(p, &at, 0, SUBPAGES_ALL, true);
	}
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		const struct log_page *l = &pages[i];
		bool last = i + 1 == ARRAY_LEN(pages) ||
			    pages[i + 1].code != l->code;

		if (!has(t->lu, l) || (only && l->code != only))
			continue;
		if (subpages || !l->subpage)
			put_name(p, &at, l->code, l->subpage, subpages);
		if (subpages && last)
			put_name(p, &at, l->code, SUBPAGES_ALL, true);
	}
	p[0] = only | (subpages ? SPF : 0);
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
	/* SPC-4 §6.8: PARAMETER POINTER is beyond the last parameter */
	if (!o.any) {
		dev_bad_field(t, 5, -1);
		return;
	}
	o.p[0] = DS | l->code | (l->subpage ? SPF : 0);
	o.p[1] = l->subpage;
	put_be16(o.p + 2, (uint16_t)(o.at - 4));
	dev_return(t, o.at, get_be16(t->cdb + 7));
}

void dev_log_sense(struct dev_task *t)
{
	const struct log_page *l = find(t);
	bool list = page_code(t) == 0 && t->cdb[3] == 0;

	if (list || (t->cdb[3] == SUBPAGES_ALL && has_code(t)))
		list_pages(t);
	else if (!l)
		no_such_page(t);
	else if (l->counts && t->cdb[2] >> 6 != PC_CUMULATIVE)
		/* the counters have no thresholds and no default values */
		dev_bad_field(t, 2, 7);
	else if (l->needs_space)
		dev_submit(t, BS_SPACE, 0, 0, 0, build);
	else
		build(t, 0);
}

/* ---- LOG SELECT ---- */

#define PCR		      0x02
#define PC_DEFAULT_CUMULATIVE 3

/* Resets a counter; false: it was zero already. */
static bool reset_counter(struct dev_lu *lu, enum dev_count what)
{
	struct dev_counter *base = &lu->counted_before[what];
	struct dev_counter now = sum(lu, what);

	bool changed = __atomic_exchange_n(&base->commands, now.commands,
					   __ATOMIC_RELAXED) != now.commands;

	changed |= __atomic_exchange_n(&base->blocks, now.blocks,
				       __ATOMIC_RELAXED) != now.blocks;
	return changed;
}

/* Resets the counters of the pages that the CDB names; returns whether any
 * counter changed. */
static bool reset_pages(struct dev_task *t)
{
	bool all = page_code(t) == 0, changed = false;
	uint8_t subpage = t->cdb[3];
	bool statistics = all || (page_code(t) == 0x19 &&
				  (subpage == 0 || subpage == SUBPAGES_ALL));
	bool cache = all || (page_code(t) == 0x19 && subpage != 0);

	for (unsigned i = 0; i < DEV_NCOUNTS; i++)
		if (i < COUNT_CACHED ? statistics : cache)
			changed |= reset_counter(t->lu, (enum dev_count)i);
	return changed;
}

/* No parameter can be set, so the parameter list must be empty (SPC-4
 * §6.7.2, table 186: the thresholds have no values besides the defaults). */
void dev_log_select(struct dev_task *t)
{
	bool resets =
		t->cdb[1] & PCR || t->cdb[2] >> 6 == PC_DEFAULT_CUMULATIVE;
	bool all = page_code(t) == 0 &&
		   (t->cdb[3] == 0 || t->cdb[3] == SUBPAGES_ALL);

	if (get_be16(t->cdb + 7))
		dev_bad_field(t, 7, -1);
	else if (!all && !find(t))
		no_such_page(t);
	else if (resets && reset_pages(t)) /* §7.3.2.1 */
		dev_attention_others(t, UA_LOG_CHANGED, dev_good);
	else
		dev_good(t);
}
