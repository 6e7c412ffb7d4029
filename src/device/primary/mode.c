/* SPDX-License-Identifier: BSD-2-Clause */
/* mode.c: MODE SENSE and MODE SELECT (SPC-4 §§6.9 to 6.12). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "device/block/protect.h"
#include "device/keep/keep.h"
#include "device/primary/mode.h"
#include "device/primary/primary.h"
#include "device/unit/attention.h"
#include "device/unit/command.h"
#include "device/unit/itl.h"
#include "device/unit/range.h"
#include "device/unit/shared.h"

/* Page control field, SPC-4 table 165. */
enum page_control {
	PC_CURRENT,
	PC_CHANGEABLE,
	PC_DEFAULT,
	PC_SAVED,
};

#define PAGE_ALL    0x3f
#define SUBPAGE_ALL 0xff
#define PAGE_MAX    256
#define SPF	    0x40
#define PS	    0x80

/* ---- a page as bytes ---- */

static size_t put_page_header(const struct dev_mode_page *m, uint8_t *p)
{
	size_t header = dev_mode_header_len(m);

	p[0] = m->code;
	if (m->subpage) {
		p[0] |= SPF;
		p[1] = m->subpage;
		put_be16(p + 2, (uint16_t)(m->len - header));
	} else {
		p[1] = (uint8_t)(m->len - header);
	}
	return m->len;
}

static struct dev_control values(const struct dev_lu *lu, unsigned pc)
{
	switch (pc) {
	case PC_DEFAULT:
		return dev_mode_defaults;
	case PC_SAVED:
		return dev_ctl_load(&lu->saved);
	default:
		return dev_ctl_load(&lu->ctl);
	}
}

static size_t put_values(const struct dev_lu *lu, const struct dev_mode_page *m,
			 const struct dev_control *c, uint8_t *p)
{
	memset(p, 0, m->len);
	m->fill(lu, c, p);
	return put_page_header(m, p);
}

static size_t put_mask(const struct dev_lu *lu, const struct dev_mode_page *m,
		       uint8_t *p)
{
	memset(p, 0, m->len);
	m->mask(lu, p);
	return put_page_header(m, p);
}

static bool has(const struct dev_lu *lu, const struct dev_mode_page *m)
{
	/* the type first: has() of a disk's page reads the backstore, and an
	 * empty drive has none */
	return m->type == dev_lu_type(lu) && (!m->has || m->has(lu));
}

/* ---- MODE SENSE ---- */

/* Writes the pages that the CDB names; returns their length; 0: the unit
 * does not have the page. */
static size_t put_pages(const struct dev_task *t, uint8_t *p)
{
	unsigned pc = t->cdb[2] >> 6, page = t->cdb[2] & 0x3f;
	const struct dev_control c = values(t->lu, pc);
	uint8_t subpage = t->cdb[3];
	size_t at = 0;

	/* SPC-4 §6.11.1: with page code 3Fh, only subpage codes 00h and FFh
	 * are valid */
	if (page == PAGE_ALL && subpage && subpage != SUBPAGE_ALL)
		return 0;
	for (size_t i = 0; i < dev_mode_npages; i++) {
		const struct dev_mode_page *m = &dev_mode_pages[i];

		if (!has(t->lu, m) || (page != PAGE_ALL && page != m->code) ||
		    (subpage != SUBPAGE_ALL && subpage != m->subpage))
			continue;
		if (pc == PC_CHANGEABLE)
			put_mask(t->lu, m, p + at);
		else
			put_values(t->lu, m, &c, p + at);
		if (dev_keeps(t->lu))
			p[at] |= PS; /* SPC-4 §7.5.7 */
		at += m->len;
	}
	return at;
}

/* SBC-3 §6.5.2: short (8 bytes) or long (16). */
static size_t put_block_descriptor(const struct dev_lu *lu, bool is_long,
				   uint8_t *p)
{
	if (is_long) {
		put_be64(p, lu->blocks);
		put_be32(p + 12, lu->block_size);
		return 16;
	}
	put_be32(p, (uint32_t)MIN(lu->blocks, (uint64_t)UINT32_MAX));
	put_be24(p + 5, lu->block_size);
	return 8;
}

static uint8_t device_specific(const struct dev_itl *i)
{
	if (dev_is_cd(i->lu)) /* reserved */
		return 0;
	return (uint8_t)((dev_itl_write_protected(i) ? 0x80 : 0) |
			 0x10); /* WP, DPOFUA */
}

/* Writes block descriptor and pages after the header of 4 or 8 bytes;
 * returns the length of all; 0: t was ended. */
static size_t build(struct dev_task *t, size_t header, bool long_lba,
		    size_t *descriptor)
{
	uint8_t *p;
	size_t at = header, n;

	if (t->cdb[2] >> 6 == PC_SAVED && !dev_keeps(t->lu)) {
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_SAVING_NOT_SUPPORTED);
		return 0;
	}
	p = dev_param_buf(t);
	if (!p)
		return 0;
	*descriptor = 0;
	/* MMC-6 §7.2 has no block descriptors */
	if (!(t->cdb[1] & 0x08) && !dev_is_cd(t->lu)) /* DBD */
		*descriptor = put_block_descriptor(t->lu, long_lba, p + at);
	at += *descriptor;
	n = put_pages(t, p + at);
	if (n == 0) {
		dev_bad_field(t, t->cdb[3] ? 3 : 2, -1);
		return 0;
	}
	return at + n;
}

static void sense_6(struct dev_task *t)
{
	size_t descriptor, len = build(t, 4, false, &descriptor);
	uint8_t *p = t->own.mem.buf;

	if (len == 0)
		return;
	if (len > 256) { /* more than MODE DATA LENGTH can hold */
		dev_bad_field(t, 3, -1);
		return;
	}
	p[0] = (uint8_t)(len - 1);
	p[2] = device_specific(t->own.begun.itl);
	p[3] = (uint8_t)descriptor;
	dev_return(t, len, t->cdb[4]);
}

void dev_mode_sense_6(struct dev_task *t)
{
	dev_refreshed(t, sense_6);
}

static void sense_10(struct dev_task *t)
{
	bool long_lba = t->cdb[1] & 0x10; /* LLBAA */
	size_t descriptor, len = build(t, 8, long_lba, &descriptor);
	uint8_t *p = t->own.mem.buf;

	if (len == 0)
		return;
	put_be16(p, (uint16_t)(len - 2));
	p[3] = device_specific(t->own.begun.itl);
	p[4] = long_lba && descriptor ? 0x01 : 0;
	put_be16(p + 6, (uint16_t)descriptor);
	dev_return(t, len, get_be16(t->cdb + 7));
}

void dev_mode_sense_10(struct dev_task *t)
{
	dev_refreshed(t, sense_10);
}

/* ---- MODE SELECT ---- */

#define PF 0x10
#define SP 0x01

int dev_prepare_mode_select(struct dev_task *t, uint64_t *out_len)
{
	if (!(t->cdb[1] & PF)) /* no vendor specific page format */
		return dev_bad_field(t, 1, 4);
	if ((t->cdb[1] & SP) && !dev_keeps(t->lu))
		return dev_bad_field(t, 1, 0);
	*out_len = t->own.row->len == 6 ? t->cdb[4] : get_be16(t->cdb + 7);
	t->lba = DEV_STATE_LBA;
	t->own.blocks = 1;
	/* The application tags must not change while a command checks its
	 * blocks: MODE SELECT has exclusive access to the unit. */
	t->own.alone = !dev_is_cd(t->lu) && dev_has_tags(t->lu);
	return 0;
}

static bool too_short(struct dev_task *t)
{
	dev_bad_length(t);
	return false;
}

/* The values of a block descriptor must not change the unit: NUMBER OF
 * LOGICAL BLOCKS is 0, all ones or the current number, the length 0 or the
 * current length. */
static bool check_descriptor(struct dev_task *t, size_t at, bool is_long)
{
	const uint8_t *p = (const uint8_t *)t->own.mem.buf + at;
	uint64_t blocks = is_long ? get_be64(p) : get_be32(p);
	uint32_t size = is_long ? get_be32(p + 12) : get_be24(p + 5);
	uint64_t all = is_long ? UINT64_MAX : UINT32_MAX;

	if (blocks && blocks != all && blocks != t->lu->blocks)
		dev_bad_parameter(t, (unsigned)at);
	else if (size && size != t->lu->block_size)
		dev_bad_parameter(t, (unsigned)at + (is_long ? 12 : 5));
	else
		return true;
	return false;
}

/* Checks the header and the block descriptor; *at gets the offset of the
 * first page. */
static bool skip_descriptors(struct dev_task *t, size_t *at)
{
	const uint8_t *p = t->own.mem.buf;
	size_t header = t->own.row->len == 6 ? 4 : 8, n;
	bool is_long = header == 8 && t->out_len >= 8 && (p[4] & 0x01);

	if (t->out_len < header)
		return too_short(t);
	n = header == 4 ? p[3] : get_be16(p + 6);
	*at = header + n;
	if (*at > t->out_len)
		return too_short(t);
	if (n == 0)
		return true;
	if (n != (is_long ? 16u : 8u)) {
		dev_bad_parameter(t, header == 4 ? 3 : 6);
		return false;
	}
	return check_descriptor(t, header, is_long);
}

static const struct dev_mode_page *find_page(const struct dev_lu *lu,
					     uint8_t code, uint8_t subpage)
{
	for (size_t i = 0; i < dev_mode_npages; i++) {
		const struct dev_mode_page *m = &dev_mode_pages[i];

		if (m->code == code && m->subpage == subpage && has(lu, m))
			return m;
	}
	return NULL;
}

/* SPC-4 §6.9.1: bits that are not changeable must have their current values.
 * find_page has compared the header, except PS, which is reserved in MODE
 * SELECT. */
static bool check_page(struct dev_task *t, const struct dev_mode_page *m,
		       size_t at)
{
	const uint8_t *p = (const uint8_t *)t->own.mem.buf + at;
	const struct dev_control c = values(t->lu, PC_CURRENT);
	uint8_t now[PAGE_MAX], mask[PAGE_MAX];
	size_t header = dev_mode_header_len(m);
	unsigned bad = 0;

	put_values(t->lu, m, &c, now);
	put_mask(t->lu, m, mask);
	for (size_t i = header; i < m->len; i++)
		if ((p[i] ^ now[i]) & ~mask[i]) {
			dev_bad_parameter(t, (unsigned)(at + i));
			return false;
		}
	/* unchanged values are valid, even if the unit has grown since they
	 * were set */
	if (m->bad && memcmp(p + header, now + header, m->len - header) != 0)
		bad = m->bad(p, t->lu->blocks);
	if (bad) {
		dev_bad_parameter(t, (unsigned)at + bad);
		return false;
	}
	return true;
}

/* Reads the page at *at into c, and moves *at to the end of the page. */
static bool take_page(struct dev_task *t, struct dev_control *c, size_t *at)
{
	const uint8_t *p = (const uint8_t *)t->own.mem.buf + *at;
	size_t left = t->out_len - *at;
	bool sub = p[0] & SPF;
	const struct dev_mode_page *m;
	size_t len;

	if (left < (sub ? 4u : 2u))
		return too_short(t);
	m = find_page(t->lu, p[0] & 0x3f, sub ? p[1] : 0);
	if (!m || sub != (m->subpage != 0)) {
		dev_bad_parameter(t, (unsigned)*at);
		return false;
	}
	len = sub ? 4u + get_be16(p + 2) : 2u + p[1];
	if (len != m->len) {
		dev_bad_parameter(t, (unsigned)*at + (sub ? 2 : 1));
		return false;
	}
	if (left < len)
		return too_short(t);
	if (!check_page(t, m, *at))
		return false;
	m->take(c, p);
	*at += len;
	return true;
}

bool dev_mode_same(const struct dev_lu *lu, const struct dev_control *a,
		   const struct dev_control *b)
{
	uint8_t pa[PAGE_MAX], pb[PAGE_MAX];

	for (size_t i = 0; i < dev_mode_npages; i++) {
		const struct dev_mode_page *m = &dev_mode_pages[i];

		if (!has(lu, m))
			continue;
		memset(pa, 0, sizeof(pa));
		memset(pb, 0, sizeof(pb));
		m->fill(lu, a, pa);
		m->fill(lu, b, pb);
		if (memcmp(pa, pb, sizeof(pa)) != 0)
			return false;
	}
	return true;
}

static void selected(struct dev_task *t)
{
	if (t->own.count)
		dev_flush(t, 0);
	else
		dev_good(t);
}

/* SPC-4 §7.5.9 */
static void report_priority(struct dev_task *t)
{
	dev_attention_others(t, UA_PRIORITY_CHANGED, selected);
}

static void set_current(struct dev_lu *lu, const struct dev_control *next)
{
	dev_ctl_store(&lu->ctl, next);
	dev_lu_changed(lu); /* SWP */
}

/* The values are in force. */
static void applied(struct dev_task *t, const struct dev_control *was,
		    const struct dev_control *next)
{
	/* WCE was cleared: the cache has to be flushed */
	t->own.count = next->write_through && !was->write_through;
	/* SPC-4 §6.9.1: all other nexuses get a unit attention */
	if (dev_mode_same(t->lu, was, next))
		selected(t);
	else if (was->initial_priority != next->initial_priority)
		dev_attention_others(t, UA_MODE_CHANGED, report_priority);
	else
		dev_attention_others(t, UA_MODE_CHANGED, selected);
}

/* The parameter list was valid: its values become the current values. */
static void apply(struct dev_task *t, const struct dev_control *next)
{
	const struct dev_control was = values(t->lu, PC_CURRENT);

	set_current(t->lu, next);
	applied(t, &was, next);
}

/* ---- saved values as bytes: PS marks pages that had changeable bits ---- */

static bool can_change(const struct dev_lu *lu, const struct dev_mode_page *m)
{
	uint8_t mask[PAGE_MAX];
	bool any = false;

	put_mask(lu, m, mask);
	for (size_t i = dev_mode_header_len(m); i < m->len; i++)
		any |= mask[i] != 0;
	return any;
}

size_t dev_mode_encode(const struct dev_lu *lu, const struct dev_control *c,
		       uint8_t p[DEV_MODES_MAX])
{
	size_t at = 0;

	for (size_t i = 0; i < dev_mode_npages; i++) {
		const struct dev_mode_page *m = &dev_mode_pages[i];

		if (!has(lu, m))
			continue;
		put_values(lu, m, c, p + at);
		if (can_change(lu, m))
			p[at] |= PS;
		at += m->len;
	}
	return at;
}

bool dev_mode_pages_same(const struct dev_lu *a, const struct dev_lu *b)
{
	const struct dev_control ca = values(a, PC_CURRENT);
	const struct dev_control cb = values(b, PC_CURRENT);
	uint8_t pa[DEV_MODES_MAX], pb[DEV_MODES_MAX];
	size_t n;

	if (a->pass.device || b->pass.device)
		return false;
	n = dev_mode_encode(a, &ca, pa);
	return n == dev_mode_encode(b, &cb, pb) && !memcmp(pa, pb, n);
}

/* LBPERE is one unless MODE SELECT cleared it. A record without PS on page
 * 01h does not say so: the unit had no threshold, or an earlier release
 * without LBPERE wrote the record. */
static bool says_nothing(const struct dev_mode_page *m, const uint8_t *p)
{
	return m->code == 0x01 && !(p[0] & PS);
}

/* Reads the changeable bits of the saved page; all other bits keep their
 * current values, because the unit may have another backstore than at the
 * time of saving. */
static int merge(const struct dev_lu *lu, const struct dev_mode_page *m,
		 const uint8_t *p, struct dev_control *c)
{
	uint8_t page[PAGE_MAX], mask[PAGE_MAX];

	put_values(lu, m, c, page);
	put_mask(lu, m, mask);
	for (size_t i = dev_mode_header_len(m); i < m->len; i++)
		page[i] = (uint8_t)((page[i] & ~mask[i]) | (p[i] & mask[i]));
	if (m->bad && m->bad(page, 0))
		return ERR_FORMAT;
	m->take(c, page);
	return 0;
}

int dev_mode_decode(const struct dev_lu *lu, const uint8_t *p, size_t len,
		    struct dev_control *c)
{
	for (size_t at = 0, n; at < len; at += n) {
		bool sub = p[at] & SPF;
		const struct dev_mode_page *m;
		int err;

		if (len - at < (sub ? 4u : 2u))
			return ERR_FORMAT;
		n = sub ? 4u + get_be16(p + at + 2) : 2u + p[at + 1];
		if (n > len - at)
			return ERR_FORMAT;
		m = find_page(lu, p[at] & 0x3f, sub ? p[at + 1] : 0);
		if (!m || sub != (m->subpage != 0) || says_nothing(m, p + at))
			continue;
		if (n != m->len)
			return ERR_FORMAT;
		err = merge(lu, m, p + at, c);
		if (err)
			return err;
	}
	return 0;
}

void dev_mode_to_record(const struct dev_lu *lu, const struct dev_control *c,
			struct dev_record *r)
{
	static_assert(DEV_MODES_MAX <= KEEP_MODES_MAX, "all pages fit");
	r->modes_len = 0;
	if (!dev_mode_same(lu, c, &dev_mode_defaults))
		r->modes_len = (uint16_t)dev_mode_encode(lu, c, r->modes);
}

int dev_mode_from_record(const struct dev_lu *lu, const struct dev_record *r,
			 struct dev_control *c)
{
	*c = dev_mode_defaults;
	return dev_mode_decode(lu, r->modes, r->modes_len, c);
}

int dev_mode_restore(struct dev_lu *lu)
{
	struct dev_control c;
	int err = dev_mode_from_record(lu, lu->kept, &c);

	if (!err)
		lu->ctl = lu->saved = c;
	return err;
}

/* ---- the record of a shared unit has the current values, too ---- */

static void now_to_record(const struct dev_lu *lu, const struct dev_control *c,
			  struct dev_record *r)
{
	r->now_len = 0;
	if (!dev_mode_same(lu, c, &lu->saved))
		r->now_len = (uint16_t)dev_mode_encode(lu, c, r->now);
}

static int now_from_record(const struct dev_lu *lu, const struct dev_record *r,
			   struct dev_control *c)
{
	int err = dev_mode_from_record(lu, r, c);

	if (err || !r->now_len)
		return err;
	*c = dev_mode_defaults;
	return dev_mode_decode(lu, r->now, r->now_len, c);
}

int dev_mode_check_record(const struct dev_lu *lu, const struct dev_record *r)
{
	struct dev_control c;
	int err = dev_mode_from_record(lu, r, &c);

	return err ? err : now_from_record(lu, r, &c);
}

void dev_mode_adopt(struct dev_lu *lu)
{
	struct dev_control saved, now;

	if (dev_mode_from_record(lu, lu->kept, &saved) ||
	    now_from_record(lu, lu->kept, &now))
		return;
	dev_ctl_store(&lu->saved, &saved);
	if (!dev_mode_same(lu, &lu->ctl, &now))
		set_current(lu, &now);
}

static void no_now(struct keep_op *op, struct dev_record *r)
{
	(void)op;
	r->now_len = 0;
}

static void free_op(struct keep_op *op)
{
	free(op);
}

void dev_mode_forget_now(struct dev_lu *lu)
{
	struct keep_op *op = lu->kept->now_len ? calloc(1, sizeof(*op)) : NULL;

	if (!op)
		return;
	op->lu = lu;
	op->change = no_now;
	op->done = op->forgotten = free_op;
	dev_keep(op);
}

/* ---- SP: saved first (SPC-4 §6.9.1); a shared unit also saves current values ---- */

struct save_op {
	struct keep_op op;
	struct dev_task *task;
	struct dev_control was, next;
	bool saves;	  /* SP */
	uint32_t adopted; /* dev_shared.adopted, before the list was read */
};

static struct save_op *save_of(struct keep_op *op)
{
	return container_of(op, struct save_op, op);
}

static uint32_t adopted(const struct dev_lu *lu)
{
	return lu->shared
		       ? __atomic_load_n(&lu->shared->adopted, __ATOMIC_ACQUIRE)
		       : 0;
}

/* The values that the list does not have are those of an older record if another gateway
 * has changed it meanwhile. */
static void change_modes(struct keep_op *op, struct dev_record *r)
{
	struct save_op *s = save_of(op);

	op->is_stale = s->adopted != adopted(op->lu);
	s->was = values(op->lu, PC_CURRENT);
	if (!dev_mode_same(op->lu, &s->was, &s->next))
		op->tells |= BIT(UA_MODE_CHANGED);
	if (s->was.initial_priority != s->next.initial_priority)
		op->tells |= BIT(UA_PRIORITY_CHANGED);
	if (s->saves) {
		dev_mode_to_record(op->lu, &s->next, r);
		r->now_len = 0;
	} else {
		now_to_record(op->lu, &s->next, r);
	}
}

static void modes_kept(struct keep_op *op)
{
	struct save_op *s = save_of(op);

	if (s->saves)
		dev_ctl_store(&op->lu->saved, &s->next);
	if (op->lu->shared) /* before the next change of this record */
		set_current(op->lu, &s->next);
}

static void modes_saved(struct keep_op *op)
{
	struct save_op *s = save_of(op);
	const struct dev_control was = s->was, next = s->next;
	struct dev_task *t = s->task;
	int err = op->err;

	free(s);
	if (err)
		dev_not_kept(t, err);
	else if (t->lu->shared)
		applied(t, &was, &next);
	else
		apply(t, &next);
}

static void save_then_apply(struct dev_task *t, const struct dev_control *next,
			    uint32_t based_on)
{
	struct save_op *s = calloc(1, sizeof(*s));

	if (!s) {
		dev_no_resources(t);
		return;
	}
	s->task = t;
	s->next = *next;
	s->saves = t->cdb[1] & SP;
	s->adopted = based_on;
	s->op.lu = t->lu;
	s->op.from = t->nexus->cfg.worker;
	s->op.change = change_modes;
	s->op.kept = modes_kept;
	s->op.done = modes_saved;
	dev_keep(&s->op);
}

void dev_mode_select(struct dev_task *t)
{
	size_t len = t->own.row->len == 6 ? t->cdb[4] : get_be16(t->cdb + 7),
	       at;
	uint32_t based_on = adopted(t->lu);
	struct dev_control next = values(t->lu, PC_CURRENT);

	/* an empty list is valid; with SP the current values are saved */
	if (len && !skip_descriptors(t, &at))
		return;
	while (len && at < t->out_len)
		if (!take_page(t, &next, &at))
			return;
	if ((t->cdb[1] & SP) || t->lu->shared)
		save_then_apply(t, &next, based_on);
	else
		apply(t, &next);
}
