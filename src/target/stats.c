/* SPDX-License-Identifier: BSD-2-Clause */
/* stats.c: the counters of a worker. */
#include "target/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cold.h"
#include "target/internal.h"
#include "target/probes.h"

/* ---- latencies ---- */

unsigned tgt_latency_bucket(xtime latency)
{
	uint64_t v = latency > 0 ? (uint64_t)latency : 0;
	unsigned octave;

	if (v < 1u << TGT_LATENCY_FIRST)
		return 0;
	if (v >> TGT_LATENCY_LAST)
		return TGT_LATENCY_BUCKETS - 1;
	octave = 63 - (unsigned)__builtin_clzll(v);
	return 1 + 4 * (octave - TGT_LATENCY_FIRST) +
	       (unsigned)(v >> (octave - 2) & 3);
}

xtime tgt_latency_limit(unsigned b)
{
	unsigned octave = TGT_LATENCY_FIRST + b / 4;

	if (b >= TGT_LATENCY_BUCKETS - 1)
		return XTIME_NEVER;
	return (xtime)(4 + b % 4) << (octave - 2);
}

uint64_t tgt_latency_total(const struct tgt_latency *l)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < TGT_LATENCY_BUCKETS; i++)
		n += l->count[i];
	return n;
}

void tgt_latency_add(struct tgt_latency *to, const struct tgt_latency *from)
{
	for (unsigned i = 0; i < TGT_LATENCY_BUCKETS; i++)
		to->count[i] += from->count[i];
	to->sum += from->sum;
}

/* ---- names ---- */

const char *tgt_op_name(enum tgt_op op)
{
	static const char *const names[TGT_OPS] = {
		[TGT_OP_READ] = "read",
		[TGT_OP_WRITE] = "write",
		[TGT_OP_OTHER] = "other",
	};

	return names[op];
}

const char *tgt_error_name(enum tgt_error e)
{
	static const char *const names[TGT_ERRORS] = {
		[TGT_ERROR_MEDIUM] = "medium_error",
		[TGT_ERROR_ATTENTION] = "unit_attention",
		[TGT_ERROR_CHECK] = "check_condition",
		[TGT_ERROR_BUSY] = "busy",
		[TGT_ERROR_CONFLICT] = "reservation_conflict",
		[TGT_ERROR_OTHER] = "other",
	};

	return names[e];
}

/* ---- units ---- */

/* Returns the kind of a command; 7Fh has its service action in bytes 8 and 9. */
static enum tgt_op op_of(const uint8_t cdb[16])
{
	/* 0: other; else 1 + the number */
	static const uint8_t kinds[256] = {
		[0x08] = 1, [0x28] = 1, [0xa8] = 1, [0x88] = 1, /* READ */
		[0x0a] = 2, [0x2a] = 2, [0xaa] = 2, [0x8a] = 2, /* WRITE */
		[0x2e] = 2, [0xae] = 2, [0x8e] = 2, /* WRITE AND VERIFY */
	};

	if (cdb[0] == 0x7f && cdb[8] == 0)
		return cdb[9] == 0x09			  ? TGT_OP_READ
		       : cdb[9] == 0x0b || cdb[9] == 0x0c ? TGT_OP_WRITE
							  : TGT_OP_OTHER;
	return kinds[cdb[0]] ? (enum tgt_op)(kinds[cdb[0]] - 1) : TGT_OP_OTHER;
}

static enum tgt_error error_of(const struct dev_task *d, uint8_t status)
{
	/* fixed and descriptor format (SPC-4 §4.5) */
	bool fixed = d->sense.len && (d->sense.data[0] & 0x7e) == 0x70;
	uint8_t key = d->sense.len ? d->sense.data[fixed ? 2 : 1] & 0xf : 0;

	switch (status) {
	case SCSI_CHECK_CONDITION:
		return key == 3 || key == 4 ? TGT_ERROR_MEDIUM
		       : key == 6	    ? TGT_ERROR_ATTENTION
					    : TGT_ERROR_CHECK;
	case SCSI_BUSY:
	case SCSI_TASK_SET_FULL:
		return TGT_ERROR_BUSY;
	case SCSI_RESERVATION_CONFLICT:
		return TGT_ERROR_CONFLICT;
	default:
		return TGT_ERROR_OTHER;
	}
}

/* Makes room for the counters of the unit with this number. */
static bool grow(struct tgt_stats *s, unsigned lun)
{
	unsigned n = MAX(2 * s->nunits, lun + 1u);
	struct tgt_unit_stats **p = realloc(s->units, n * sizeof(*p));

	if (!p)
		return false;
	memset(p + s->nunits, 0, (n - s->nunits) * sizeof(*p));
	s->units = p;
	s->nunits = n;
	return true;
}

/* The first command of a worker to a unit; without memory it is not counted. */
static COLD struct tgt_unit_stats *
new_unit(struct tgt_stats *s, const struct dev_lu *lu, uint16_t lun)
{
	struct tgt_unit_stats *u;

	if (lun >= s->nunits && !grow(s, lun))
		return NULL;
	u = s->units[lun];
	if (!u)
		u = s->units[lun] = malloc(sizeof(*u));
	if (u)
		*u = (struct tgt_unit_stats){ .lu = lu, .lun = lun };
	return u;
}

/* A number may be given to another unit when its unit is gone. */
static inline struct tgt_unit_stats *
unit_of(struct tgt_stats *s, const struct dev_lu *lu, uint16_t lun)
{
	struct tgt_unit_stats *u = lun < s->nunits ? s->units[lun] : NULL;

	return u && u->lu == lu ? u : new_unit(s, lu, lun);
}

void tgt_stats_begin(struct tgt_task *t)
{
	const struct tgt_worker *w = t->session->worker;
	const struct tgt_config *cfg = &w->tgt->cfg;

	PROBE_COMMAND_BEGIN(t, t->dev.cdb[0], t->session->id.initiator_name,
			    t->dm.lun);
	if (cfg->clock)
		t->arrived = cfg->clock(cfg->arg, w->index, false);
}

static COLD void log_slow(const struct tgt_task *t, xtime latency,
			  uint8_t status)
{
	const uint64_t bytes = t->dev.edtl.in + t->dev.edtl.out;
	const uint64_t ms = (uint64_t)(latency / XTIME_MS);
	char opcode[4], end[4];
	uint16_t lun = 0;
	const struct trace_field fields[] = {
		{ "lun", NULL, dev_lun_decode(t->dev.lun, &lun) ? 0 : lun },
		{ "opcode", opcode, 0 },
		{ "lba", NULL, t->dev.lba },
		{ "bytes", NULL, bytes },
		{ "milliseconds", NULL, ms },
		{ "status", end, 0 },
	};
	struct trace_about about = tgt_conn_about(t->conn);

	snprintf(opcode, sizeof(opcode), "%02x", t->dev.cdb[0]);
	snprintf(end, sizeof(end), "%02x", status);
	about.backstore = dev_lu_name(t->dev.lu);
	about.fields = fields;
	about.nfields = ARRAY_LEN(fields);
	trace_emit_about(
		t->session->worker->tgt->cfg.trace, TRACE_SLOW, &about,
		"%s %s: backstore %s: command %s, LBA %llu, %llu bytes "
		"took %llu ms and ended with status %s; %u commands in "
		"progress",
		t->conn->info.peer, tgt_conn_who(t->conn), about.backstore,
		opcode, (unsigned long long)t->dev.lba,
		(unsigned long long)bytes, (unsigned long long)ms, end,
		t->session->tasks.used);
}

/* Logs a command that took long. */
static COLD void check_slow(struct tgt_worker *w, const struct tgt_task *t,
			    uint8_t status)
{
	const struct tgt_config *cfg = &w->tgt->cfg;
	xtime latency = cfg->clock(cfg->arg, w->index, true) - t->arrived;

	if (latency < w->settings.slow_time)
		return;
	w->stats.total.slow++;
	if (t->conn)
		log_slow(t, latency, status);
}

void tgt_worker_count(struct tgt_worker *w)
{
	const struct tgt_config *cfg = &w->tgt->cfg;
	struct tgt_stats *s = &w->stats;
	xtime now = s->ndue ? cfg->clock(cfg->arg, w->index, true) : 0;
	xtime arrived = now, latency = 0;
	unsigned bucket = tgt_latency_bucket(0);

	for (unsigned i = 0; i < s->ndue; i++) {
		struct tgt_latency *l = &s->due[i].op->latency;

		/* most commands arrive in the same turn */
		if (s->due[i].arrived != arrived) {
			arrived = s->due[i].arrived;
			latency = now - arrived;
			bucket = tgt_latency_bucket(latency);
		}
		l->count[bucket]++;
		l->sum += (uint64_t)latency;
	}
	s->ndue = 0;
}

static void count_later(struct tgt_worker *w, struct tgt_op_stats *op,
			xtime arrived)
{
	const struct tgt_config *cfg = &w->tgt->cfg;
	struct tgt_stats *s = &w->stats;

	if (s->ndue == ARRAY_LEN(s->due))
		tgt_worker_count(w);
	s->due[s->ndue].op = op;
	s->due[s->ndue].arrived = arrived;
	if (!s->ndue++)
		cfg->count_later(cfg->arg, w->index);
}

static COLD void count_failure(struct tgt_unit_stats *u,
			       const struct dev_task *d, uint8_t status)
{
	u->errors[error_of(d, status)]++;
}

void tgt_stats_end(struct tgt_task *t, uint8_t status)
{
	const struct dev_task *d = &t->dev;
	struct tgt_worker *w = t->session->worker;
	const struct tgt_config *cfg = &w->tgt->cfg;
	bool failed = status && status != SCSI_CONDITION_MET;
	struct tgt_unit_stats *u;
	struct tgt_op_stats *o;

	PROBE_COMMAND_END(t, d->cdb[0], status, d->in.len + d->out_len);
	t->conn->count.errors += failed;
	if (!cfg->clock || !tgt_task_is_begun(t) || !d->lu)
		return;
	u = unit_of(&w->stats, d->lu, t->unit);
	if (!u)
		return;
	o = &u->op[op_of(d->cdb)];
	o->bytes += d->in.len + d->out_len;
	count_later(w, o, t->arrived);
	if (failed)
		count_failure(u, d, status);
	if (w->settings.slow_time != XTIME_NEVER)
		check_slow(w, t, status);
}

/* Adds t to the queue depth of its unit. */
static void count_task(struct tgt_worker *w, const struct tgt_task *t)
{
	struct tgt_stats *s = &w->stats;

	if (tgt_task_is_begun(t) && t->dev.lu) {
		struct tgt_unit_stats *u = unit_of(s, t->dev.lu, t->unit);

		if (u)
			u->depth++;
	}
}

void tgt_worker_units(struct tgt_worker *w,
		      void (*fn)(void *arg, const struct tgt_unit_stats *u),
		      void *arg)
{
	struct tgt_stats *s = &w->stats;

	tgt_worker_count(w);
	for (unsigned i = 0; i < s->nunits; i++)
		if (s->units[i])
			s->units[i]->depth = 0;
	list_for_each(it, &w->sessions) {
		const struct tgt_session *n =
			list_entry(it, struct tgt_session, link);

		list_for_each(at, &n->tasks.active)
			count_task(w, list_entry(at, struct tgt_task, link));
	}
	for (unsigned i = 0; i < s->nunits; i++)
		if (s->units[i])
			fn(arg, s->units[i]);
}

/* ---- sessions ---- */

void tgt_counters_add(struct tgt_counters *to, const struct tgt_counters *from)
{
	to->commands += from->commands;
	to->bytes_read += from->bytes_read;
	to->bytes_written += from->bytes_written;
	to->errors += from->errors;
	to->solicited += from->solicited;
	to->waits += from->waits;
}

static struct tgt_ended *ended_of(struct tgt_stats *s, const char *target,
				  const char *transport)
{
	struct tgt_ended *e;

	list_for_each(it, &s->ended) {
		e = list_entry(it, struct tgt_ended, link);
		if (!strcmp(e->target, target) &&
		    !strcmp(e->transport, transport))
			return e;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->transport = transport;
	snprintf(e->target, sizeof(e->target), "%s", target);
	list_push_front(&s->ended, &e->link);
	return e;
}

void tgt_stats_conn_ended(const struct tgt_conn *c, int err)
{
	struct tgt_session *s = c->session;
	struct tgt_stats *all = &c->worker->stats;
	struct tgt_ended *e;

	all->total.dropped += err != 0;
	if (!s)
		return;
	e = ended_of(all, s->node ? s->id.target_name : "", c->dm->transport);
	if (e)
		tgt_counters_add(&e->count, &c->count);
}

void tgt_worker_ended(const struct tgt_worker *w,
		      void (*fn)(void *arg, const struct tgt_ended *e),
		      void *arg)
{
	list_for_each(it, &w->stats.ended)
		fn(arg, list_entry(it, struct tgt_ended, link));
}

/* ---- the worker ---- */

void tgt_stats_refused(struct tgt_worker *w, uint16_t status)
{
	unsigned class = status >> 8, detail = status & 0xff;

	if ((class == 2 || class == 3) && detail < 16)
		w->stats.total.refused[16 * (class - 2) + detail]++;
}

static void count_state(const struct tgt_task *t, struct tgt_worker_stats *s)
{
	switch (t->state) {
	case TGT_TASK_DATA:
		s->data++;
		break;
	case TGT_TASK_MEMORY:
		s->memory++;
		break;
	case TGT_TASK_TURN:
		s->turn++;
		break;
	case TGT_TASK_RUN:
		s->device++;
		break;
	case TGT_TASK_PUT:
	case TGT_TASK_RESPONSE:
		s->transport++;
		break;
	default:
		s->abort += tgt_task_is_aborting(t);
		break;
	}
}

void tgt_worker_stats(const struct tgt_worker *w, struct tgt_worker_stats *s)
{
	*s = w->stats.total;
	list_for_each(it, &w->sessions) {
		const struct tgt_session *n =
			list_entry(it, struct tgt_session, link);

		list_for_each(at, &n->tasks.active)
			count_state(list_entry(at, struct tgt_task, link), s);
	}
}

void tgt_stats_init(struct tgt_stats *s)
{
	list_init(&s->ended);
}

void tgt_stats_fini(struct tgt_stats *s)
{
	struct list *n;

	while ((n = list_pop_front(&s->ended)))
		free(list_entry(n, struct tgt_ended, link));
	for (unsigned i = 0; i < s->nunits; i++)
		free(s->units[i]);
	free(s->units);
}
