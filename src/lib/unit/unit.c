/* SPDX-License-Identifier: BSD-2-Clause */
/* unit.c: opening a unit: which commands it supports and up to which length, by
 * SPC-4, SBC-3 and MMC-6. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/unit/jobs.h"
#include "scsi/cdb.h"

#define TYPE_CD	       0x05
#define QUALIFIER_MASK 0xe0

/* Most bytes of a command where the unit reports no limit: requests are cut into
 * commands that proceed at the same time. */
#define TRANSFER_MAX (1u << 20)
#define UNMAP_MAX    (1u << 22) /* blocks */
#define SAME_MAX     (1u << 22) /* blocks */

/* GET CONFIGURATION, MMC-6 §5.3.5 */
#define RANDOM_WRITABLE 0x20
#define IS_CURRENT	0x01

/* ---- answers ---- */

/* Copies an INQUIRY string without padding; other bytes than visible ASCII
 * characters become spaces. */
static void set_text(char *out, const uint8_t *p, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		out[i] = p[i] > ' ' && p[i] < 0x7f ? (char)p[i] : ' ';
		if (out[i] != ' ')
			n = i + 1;
	}
	out[n] = '\0';
}

/* Returns the error that ends the opening, or 0. */
static int take_inquiry(struct unit_open *o)
{
	const uint8_t *b = o->ask.who.inquiry;

	if (b[0] & QUALIFIER_MASK)
		return ISER_E_NOT_FOUND;
	if (!lib_has_capacity(b[0]))
		return ISER_E_UNSUPPORTED;
	o->info.type = b[0] & 0x1f;
	o->info.read_only = o->info.type == TYPE_CD;
	if (o->ask.who.inquiry_len >= 36) {
		set_text(o->info.vendor, b + 8, 8);
		set_text(o->info.product, b + 16, 16);
		set_text(o->info.revision, b + 32, 4);
	}
	return 0;
}

static void take_capacity(struct unit_open *o)
{
	const struct iser_capacity *c = &o->ask.who.capacity;

	o->info.bytes = c->bytes;
	o->info.block_size = c->block_size;
	o->info.physical_block_size = c->physical_block_size;
	o->info.thin = c->thin;
	o->info.reads_zeros = c->reads_zeros;
	o->blocks = c->blocks;
}

/* The medium of a drive is writable if the feature is current. */
static void take_configuration(struct unit_open *o)
{
	const uint8_t *b = o->params.data;

	if (!o->io.err && o->io.transferred >= 11 &&
	    get_be16(b + 8) == RANDOM_WRITABLE && (b[10] & IS_CURRENT))
		o->info.read_only = false;
}

/* Returns the smaller one of a limit that the unit reports (0: none) and the
 * limit of this library. */
static uint32_t limit_of(uint64_t reported, uint32_t most)
{
	return reported && reported < most ? (uint32_t)reported : most;
}

/* VPD page B0h, SBC-3 §6.6.3. */
static void take_block_limits(struct unit_open *o)
{
	uint8_t b[64] = { 0 };
	size_t came = o->io.err ? 0 : MIN(o->io.transferred, sizeof(b));
	struct unit_limits *l = &o->limits;
	uint32_t block = o->info.block_size, most = TRANSFER_MAX / block;

	if (came && o->params.data[1] != 0xb0)
		came = 0; /* another page: some targets ignore PAGE CODE */
	memcpy(b, o->params.data, came);
	l->compare = b[5];
	l->transfer = limit_of(get_be32(b + 8), MAX(most, 1u));
	l->unmap = limit_of(get_be32(b + 20), UNMAP_MAX);
	l->same = limit_of(get_be64(b + 36), SAME_MAX);
	/* 0 in both fields: UNMAP is not supported (SBC-3 table 170) */
	l->by_unmap = o->info.type != TYPE_CD &&
		      (came < 28 || (get_be32(b + 20) && get_be32(b + 24)));
}

/* VPD page B2h, SBC-3 §6.6.4. */
static void take_provisioning(struct unit_open *o)
{
	const uint8_t *b = o->params.data;
	bool came = !o->io.err && o->io.transferred >= 6 && b[1] == 0xb2;

	o->limits.by_unmap &= came && (b[5] & 0x80);
	o->limits.by_same = came && (b[5] & 0x40);
}

/* WP and DPOFUA in the header of MODE SENSE(6), SBC-3 §6.4.1. The header of a
 * drive has neither (MMC-6 §7.2). */
static void take_mode(struct unit_open *o)
{
	const uint8_t *b = o->params.data;

	if (o->io.err || o->io.transferred < 4 || o->info.type == TYPE_CD)
		return;
	o->info.read_only = b[2] & 0x80;
	o->info.has_fua = b[2] & 0x10;
}

/* ---- queries ---- */

static void set_query(struct unit_open *o, uint8_t opcode, size_t len)
{
	memset(o->io.cdb, 0, sizeof(o->io.cdb));
	o->io.cdb[0] = opcode;
	o->io.cdb_len = (uint8_t)scsi_cdb_len(opcode);
	o->io.direction = ISER_READ;
	o->io.short_ok = true;
	o->params.iov = (struct iovec){ o->params.data, len };
	o->io.iov = &o->params.iov;
	o->io.niov = 1;
}

static void prep_query(struct iser_unit *u)
{
	struct unit_open *o = &u->open;

	memset(&o->params, 0, sizeof(o->params));
	switch (o->query) {
	case UNIT_CONFIGURATION:
		set_query(o, SCSI_GET_CONFIGURATION, 16);
		o->io.cdb[1] = 2; /* one feature */
		o->io.cdb[3] = RANDOM_WRITABLE;
		o->io.cdb[8] = 16;
		break;
	case UNIT_BLOCK_LIMITS:
		iser_prep_inquiry(&o->io, u->lun, 0xb0, &o->params);
		break;
	case UNIT_PROVISIONING:
		iser_prep_inquiry(&o->io, u->lun, 0xb2, &o->params);
		break;
	case UNIT_MODE:
		set_query(o, SCSI_MODE_SENSE_6, 192);
		o->io.cdb[1] = 0x08; /* DBD */
		o->io.cdb[2] = 0x3f; /* all pages */
		o->io.cdb[4] = 192;
		break;
	case UNIT_OPENED:
		break;
	}
}

static void (*const take_answer[])(struct unit_open *o) = {
	[UNIT_CONFIGURATION] = take_configuration,
	[UNIT_BLOCK_LIMITS] = take_block_limits,
	[UNIT_PROVISIONING] = take_provisioning,
	[UNIT_MODE] = take_mode,
};

/* Returns whether the unit does not need this query. */
static bool can_skip(const struct unit_open *o, enum unit_query q)
{
	bool is_cd = o->info.type == TYPE_CD;

	switch (q) {
	case UNIT_CONFIGURATION:
		return !is_cd;
	case UNIT_BLOCK_LIMITS: /* its defaults count, too */
	case UNIT_OPENED:
		return false;
	case UNIT_PROVISIONING:
	case UNIT_MODE:
		return is_cd;
	}
	return false;
}

/* ---- the end ---- */

/* Takes over what the queries found. */
static int commit_properties(struct iser_unit *u)
{
	struct unit_open *o = &u->open;
	struct iser_unit_info *i = &o->info;
	struct unit_limits *l = &o->limits;
	uint32_t block = i->block_size;

	if (lib_may_be_iser(u->session))
		l->transfer = MIN(l->transfer, LIB_ISER_TRANSFER / block);
	l->compare = MIN(l->compare, l->transfer);
	if (!u->sink)
		u->sink = malloc(65536); /* the largest block */
	if (!u->zeros)
		u->zeros = calloc(1, LIB_ZEROS);
	if (!u->sink || !u->zeros)
		return ISER_E_NOMEM;
	i->max_transfer = l->transfer * block;
	i->max_compare_and_write = l->compare * block;
	i->atomic_partial = l->compare > 0;
	i->can_trim = !i->read_only && (l->by_unmap || l->by_same);
	i->can_zero = !i->read_only && i->type != TYPE_CD;
	/* what a unit has refused is not tried again after a refresh */
	l->no_same = i->type == TYPE_CD || u->limits.no_same;
	l->no_status = u->limits.no_status;
	i->can_zero &= !l->no_same;
	u->info = *i;
	u->limits = *l;
	u->blocks = o->blocks;
	u->identity = o->ask.who.identity;
	u->is_open = true;
	return 0;
}

static void end_open(struct iser_unit *u, int err)
{
	void (*done)(void *, struct iser_unit *, int) = u->open.done;

	if (!err)
		err = commit_properties(u);
	if (err == ISER_E_NOMEM)
		lib_fail(u->ctx, err, "out of memory");
	u->open.in_progress = false;
	u->open.done = NULL;
	if (done)
		done(u->open.arg, u, err);
}

/* Submits the first query from `q` on that the unit needs, or ends the opening. */
static void query_from(struct iser_unit *u, enum unit_query q)
{
	struct unit_open *o = &u->open;

	while (can_skip(o, q))
		q++;
	o->query = q;
	if (q == UNIT_OPENED || !o->done) { /* iser_unit_close waits */
		end_open(u, q == UNIT_OPENED ? 0 : ISER_E_CLOSED);
		return;
	}
	prep_query(u);
	iser_submit(u->session, &o->io);
}

static void query_completed(struct iser_io *io)
{
	struct iser_unit *u = io->arg;

	take_answer[u->open.query](&u->open);
	query_from(u, u->open.query + 1);
}

/* Sets iser_message; by: the command that has failed. */
static int fail_open(struct iser_unit *u, int err, const struct iser_io *by)
{
	char text[200];

	if (lib_has_reason(err))
		return err;
	if (by->err == err) {
		iser_io_describe(by, text, sizeof(text));
		return lib_fail(u->ctx, err, "LUN %d of %s: %s", u->lun,
				u->session->url.target, text);
	}
	return lib_fail(u->ctx, err,
			"LUN %d of %s: answer to command %02xh: %s", u->lun,
			u->session->url.target, by->cdb[0], iser_strerror(err));
}

static void on_asked(struct lib_ask *a, int err)
{
	struct unit_open *o = container_of(a, struct unit_open, ask);
	struct iser_unit *u = container_of(o, struct iser_unit, open);

	if (!err)
		err = take_inquiry(o);
	if (err == ISER_E_UNSUPPORTED)
		lib_fail_no_capacity(u->session, u->lun, a->who.inquiry[0]);
	else if (!err && a->capacity_err && a->is_impossible)
		err = lib_fail_capacity(u->session, u->lun, a->last,
					a->block_size);
	else if (err || a->capacity_err)
		err = fail_open(u, err ? err : a->capacity_err,
				a->failed.cdb_len ? &a->failed : &a->io);
	if (err) {
		end_open(u, err);
		return;
	}
	take_capacity(o);
	err = lib_guard_learn(u->session, u->lun, &a->who);
	if (err)
		end_open(u, err);
	else
		query_from(u, UNIT_CONFIGURATION);
}

static void begin_queries(struct iser_unit *u,
			  void (*done)(void *arg, struct iser_unit *u, int err),
			  void *arg)
{
	u->open = (struct unit_open){ .in_progress = true,
				      .done = done,
				      .arg = arg };
	u->open.io.lun = u->lun;
	u->open.io.done = query_completed;
	u->open.io.arg = u;
	u->open.ask = (struct lib_ask){ .session = u->session,
					.lun = u->lun,
					.submit = iser_submit,
					.done = on_asked };
	lib_ask_begin(&u->open.ask);
}

/* ---- the interface ---- */

struct iser_unit *
iser_unit_open_start(struct iser_session *s, int lun,
		     void (*done)(void *arg, struct iser_unit *u, int err),
		     void *arg, int *err)
{
	struct iser_unit *u;

	*err = 0;
	if (lun < 0 || lun > 16383) {
		*err = lib_fail(s->ctx, ISER_E_INVALID,
				"LUN %d: expected a number from 0 to 16383",
				lun);
		return NULL;
	}
	u = calloc(1, sizeof(*u));
	if (!u) {
		*err = lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
		return NULL;
	}
	u->session = s;
	u->ctx = s->ctx;
	u->lun = lun;
	lib_jobs_init(u, lib_job_advance);
	begin_queries(u, done, arg);
	return u;
}

int iser_unit_refresh_start(struct iser_unit *u,
			    void (*done)(void *arg, struct iser_unit *u,
					 int err),
			    void *arg)
{
	if (u->open.in_progress)
		return lib_fail(u->ctx, ISER_E_INVALID,
				"LUN %d of %s: its properties are being read "
				"already",
				u->lun, u->session->url.target);
	begin_queries(u, done, arg);
	return 0;
}

struct open_wait {
	bool over;
	int err;
};

static void on_open_end(void *arg, struct iser_unit *u, int err)
{
	struct open_wait *w = arg;

	(void)u;
	w->over = true;
	w->err = err;
}

struct iser_unit *iser_unit_open(struct iser_session *s, int lun, int *err)
{
	struct open_wait w = { 0 };
	struct iser_unit *u =
		iser_unit_open_start(s, lun, on_open_end, &w, err);

	if (!u)
		return NULL;
	*err = lib_wait(s->ctx, &w.over);
	if (!*err)
		*err = w.err;
	if (!*err)
		return u;
	u->open.done = NULL;
	iser_unit_close(u);
	return NULL;
}

int iser_unit_refresh(struct iser_unit *u)
{
	struct open_wait w = { 0 };
	int err = iser_unit_refresh_start(u, on_open_end, &w);

	if (!err)
		err = lib_wait(u->ctx, &w.over);
	if (!w.over)
		u->open.done = NULL; /* w ends with this call */
	return err ? err : w.err;
}

void iser_unit_close(struct iser_unit *u)
{
	if (!u)
		return;
	u->open.done = NULL;
	/* bounded as the commands are */
	while ((u->requests || u->open.in_progress) &&
	       !iser_service(u->ctx, -1))
		;
	lib_jobs_fini(u);
	free(u->sink);
	free(u->zeros);
	free(u);
}

void iser_unit_get_info(const struct iser_unit *u, struct iser_unit_info *info)
{
	*info = u->info;
}

struct iser_session *iser_unit_session(const struct iser_unit *u)
{
	return u->session;
}

bool iser_unit_is_same(const struct iser_unit *a, const struct iser_unit *b)
{
	return (a->lun == b->lun &&
		!strcasecmp(a->session->url.target, b->session->url.target)) ||
	       lib_identity_compare(&a->identity, &b->identity) == LIB_SAME;
}
