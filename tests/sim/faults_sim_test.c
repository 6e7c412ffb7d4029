/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults_sim_test.c: sessions of 1, 2 and 4 connections at ErrorRecoveryLevel 0, 1 and
 * 2 with every kind of fault of enum fault, on a virtual clock. Each connection has its
 * own delays, so that requests arrive in an order that is not that of their CmdSN. With the
 * argument iser all of them are in RDMA mode (RFC 7145 §10.2), by either start: PDUs are
 * not lost there, and a damaged byte ends the connection with an RDMAP Terminate.
 *
 * The oracle, ledger.c: each command ends exactly once, although none has a deadline; an
 * acknowledged write is not lost; a read returns no older data, and no data of a command
 * after it in the order of CmdSN (RFC 7143 §4.2.2.1); where the level recovers the fault
 * (§7.1.5), every command succeeds within a minute and the session goes on; at the end
 * nothing is left in either role. At level 2, half of the sessions are continued (§6.3.6)
 * after the loss of their last connection, by a connection without faults.
 *
 * A seed determines a run. FAULTS_SEED=N runs one with a log; FAULTS_SEEDS=N and
 * FAULTS_FIRST=N select how many and the first.
 *
 *    faults_sim_test [iser]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"
#include "sim/ledger.h"
#include "sim/mangler.h"
#include "sim/thin.h"
#include "sim/transport.h"
#include "sim/world.h"

#define SEEDS	 (2000u / SIM_THIN)
#define LEVELS	 3u
#define COMMANDS 30u
#define DEPTH	 8u
#define SESSIONS 5u /* one after the other */
#define LINES	 (SESSIONS * 8u)
#define PATIENCE (400 * XTIME_S)
#define RECOVERY (60 * XTIME_S) /* the most that a command waits for it */

enum fault {
	FAULT_NONE,
	FAULT_DATA,   /* damaged data segments */
	FAULT_LOST,   /* PDUs that are lost as a whole */
	FAULT_HEADER, /* a damaged header, or FPDU, on one connection */
	FAULT_RESET,  /* of one connection */
	FAULT_STALL,  /* one connection pauses */
	FAULT_HANG,   /* ... for ever */
	FAULT_MIX,
	FAULTS,
};

static const char *const fault_names[FAULTS] = { "none",   "data",  "lost",
						 "header", "reset", "stall",
						 "hang",   "mix" };

/* Those that there are over iSER. */
static const enum fault rdma_faults[] = { FAULT_NONE,  FAULT_HEADER,
					  FAULT_RESET, FAULT_STALL,
					  FAULT_HANG,  FAULT_MIX };

/* A connection. */
struct line {
	struct wire wire;
	struct sim_transport transport[2]; /* initiator, target */
	struct mangler mangler;
	xtime deaf_from, deaf_until;
	bool deaf[2];
	/* RDMA: bytes of either end up to the one that is damaged, or UINT64_MAX */
	uint64_t damage_after[2];
};

struct sim {
	struct world world;
	struct trace trace;
	struct line line[LINES];
	unsigned nlines, first_line; /* of the present session */
	struct ini_session *ini;
	xtime clock; /* the timer of the initiator */
	struct ini_config cfg;
	unsigned level, conns;
	enum sim_way way;
	enum fault fault;
	/* FAULT_MIX: one connection of this session, and of each, has no fatal
	 * fault */
	bool survives, all_survive;
	bool logged_in, closed;
	unsigned joined, sessions, continued;
	struct ledger *ledger;
	unsigned todo, in_flight;
	uint32_t seed;
};

static uint32_t random_below(struct sim *s, uint32_t n)
{
	return mangler_random(&s->seed, n);
}

/* ---- time ---- */

static void listen(struct line *l, xtime now)
{
	for (unsigned i = 0; i < 2; i++)
		l->wire.end[i].deaf = l->deaf[i] && now >= l->deaf_from &&
				      now < l->deaf_until;
}

static xtime line_next(const struct line *l, xtime now)
{
	xtime next = wire_next(&l->wire);

	if (l->deaf_from > now)
		next = MIN(next, l->deaf_from);
	if (l->deaf_until > now)
		next = MIN(next, l->deaf_until);
	return next;
}

static void run_clocks(struct sim *s)
{
	world_run_clock(&s->world, s->world.now);
	if (!s->ini || s->closed || s->clock > s->world.now)
		return;
	ini_expire(s->ini, s->world.now);
	s->clock = s->closed ? XTIME_NEVER : ini_deadline(s->ini);
}

/* Everything that is due now. */
static xtime run_now(struct sim *s)
{
	xtime next;

	run_clocks(s);
	for (unsigned i = 0; i < s->nlines; i++) {
		listen(&s->line[i], s->world.now);
		wire_run(&s->line[i].wire, s->world.now);
		world_run_mail(&s->world);
	}
	next = s->world.clock;
	if (s->ini && !s->closed)
		next = MIN(next, s->clock);
	for (unsigned i = 0; i < s->nlines; i++)
		next = MIN(next, line_next(&s->line[i], s->world.now));
	return next;
}

static void run_until(struct sim *s, xtime until, bool (*done)(struct sim *s))
{
	while (!done(s)) {
		xtime next = run_now(s);

		if (next > until)
			break;
		s->world.now = MAX(s->world.now, next);
	}
	if (!done(s))
		s->world.now = until;
}

static bool never(struct sim *s)
{
	(void)s;
	return false;
}

static bool is_settled(struct sim *s)
{
	return s->in_flight == 0;
}

/* ---- a session ---- */

static void on_logged_in(void *arg, int err)
{
	((struct sim *)arg)->logged_in = err == 0;
}

static void on_joined(void *arg, struct ini_conn *c, int err)
{
	(void)c;
	((struct sim *)arg)->joined += err == 0;
}

static void on_closed(void *arg, int err)
{
	struct sim *s = arg;

	(void)err;
	assert_false(s->closed);
	s->closed = true;
}

static void on_rearm(void *arg)
{
	((struct sim *)arg)->clock = 0;
}

static size_t filter(void *arg, unsigned from, uint8_t *out, const uint8_t *in,
		     size_t n)
{
	return mangler_filter(&((struct line *)arg)->mangler, from, out, in, n);
}

static void damage(void *arg, unsigned from, uint8_t *p, size_t n)
{
	uint64_t *after = &((struct line *)arg)->damage_after[from];

	if (*after == UINT64_MAX)
		return;
	if (*after < n) {
		p[*after] ^= 0x10;
		*after = UINT64_MAX;
	} else {
		*after -= n;
	}
}

static struct line *new_line(struct sim *s)
{
	struct line *l = &s->line[s->nlines++];
	static const struct mangler_plan no_faults;
	struct wire_config wc = {
		.seed = random_below(s, 1u << 30),
		.max_chunk = random_below(s, 2) ? 0 : 3000,
		.max_delay = (1 + random_below(s, 5)) * XTIME_MS,
		.cut = { WIRE_NO_CUT, WIRE_NO_CUT },
		.arg = l,
	};

	assert_true(s->nlines <= LINES);
	if (s->way == SIM_TCP)
		wc.filter = filter;
	else
		wc.damage = damage;
	l->damage_after[0] = l->damage_after[1] = UINT64_MAX;
	wire_init(&l->wire, &wc);
	l->wire.now = s->world.now;
	l->deaf_from = l->deaf_until = XTIME_NEVER;
	mangler_init(&l->mangler, random_below(s, 1u << 30),
		     !s->cfg.login.header_digest_none_ok, true, &no_faults);
	for (unsigned end = 0; end < 2; end++)
		sim_transport_init(&l->transport[end], &l->wire, end, s->way);
	return l;
}

static void accept_line(struct sim *s, struct line *l)
{
	const struct tgt_conn_info info = { .peer = "sim:1",
					    .local = "sim:3260",
					    .portal_group = TAG };

	assert_int_equal(tgt_conn_accept(tgt_worker(s->world.tgt, 0),
					 sim_transport_dm(&l->transport[1]),
					 &info, s->world.now),
			 0);
	sim_transport_go(&l->transport[0]);
	sim_transport_go(&l->transport[1]);
}

static bool is_up(struct sim *s)
{
	return s->logged_in || s->closed;
}

static void open_leading(struct sim *s)
{
	struct line *l = new_line(s);

	s->logged_in = s->closed = false;
	s->joined = 0;
	s->first_line = s->nlines - 1;
	s->ini = ini_new(&s->cfg, sim_transport_dm(&l->transport[0]));
	assert_non_null(s->ini);
	accept_line(s, l);
	ini_start(s->ini, s->world.now);
	run_until(s, s->world.now + 10 * XTIME_S, is_up);
	assert_true(s->logged_in);
	assert_int_equal(ini_params(s->ini)->error_recovery_level, s->level);
}

static void open_further(struct sim *s, unsigned i)
{
	struct line *l = new_line(s);
	struct ini_conn *c;

	c = ini_conn_new(s->ini, sim_transport_dm(&l->transport[0]),
			 (uint16_t)i);
	assert_non_null(c);
	accept_line(s, l);
	ini_conn_start(c, s->world.now);
	run_until(s, s->world.now + XTIME_S / 10, never);
	assert_int_equal(s->joined, i);
}

static void ignore_done(struct ini_task *t)
{
	assert_int_equal(t->err, 0);
}

static void clear_attention(struct sim *s)
{
	struct ini_task t = { .cdb = { SCSI_TEST_UNIT_READY },
			      .cdb_len = 6,
			      .deadline = XTIME_NEVER,
			      .done = ignore_done };

	ini_submit(s->ini, &t, s->world.now);
	run_until(s, s->world.now + XTIME_S, never);
}

/* Also where a session with the same name is left (session reinstatement, §6.3.5). */
static void open_session(struct sim *s)
{
	assert_true(s->sessions++ < SESSIONS);
	open_leading(s);
	for (unsigned i = 1; i < s->conns; i++)
		open_further(s, i);
	clear_attention(s);
}

static bool is_waiting(struct sim *s)
{
	return s->ini && !s->closed && ini_is_waiting(s->ini);
}

static bool is_not_waiting(struct sim *s)
{
	return !is_waiting(s);
}

/* The session has lost its last connection: after Time2Wait another one reinstates that, or
 * has a CID of its own. */
static void continue_session(struct sim *s)
{
	uint16_t cid = random_below(s, 2) ? ini_lost_cid(s->ini) : 9;
	unsigned joined = s->joined;
	struct ini_conn *c;
	struct line *l;

	run_until(s,
		  s->world.now +
			  ini_params(s->ini)->default_time2wait * XTIME_S,
		  is_not_waiting);
	assert_true(is_waiting(s));
	l = new_line(s);
	c = ini_conn_new(s->ini, sim_transport_dm(&l->transport[0]), cid);
	assert_non_null(c);
	accept_line(s, l);
	ini_conn_start(c, s->world.now);
	run_until(s, s->world.now + 10 * XTIME_S, is_not_waiting);
	assert_true(ini_is_up(s->ini));
	assert_int_equal(s->joined, joined + 1);
	s->continued++;
}

/* RFC 7145 §6. */
static void make_rdma_wishes(struct sim *s)
{
	static const uint32_t lens[] = { 512, 1024, 2048, 8192 };
	struct iscsi_login_config *l = &s->cfg.login;

	l->header_digest_none_ok = l->data_digest_none_ok = true;
	l->header_digest_crc_ok = l->data_digest_crc_ok = false;
	l->want.rdma_extensions = true;
	l->want.target_recv_dsl = lens[random_below(s, 4)];
	l->want.initiator_recv_dsl = lens[random_below(s, 4)];
	l->want.tagged_buffer_for_solicited_data_only = random_below(s, 2);
	if (s->way == SIM_ISER_SWITCH)
		l->want.iser_hello_required = random_below(s, 2);
}

static void make_wishes(struct sim *s)
{
	static const uint32_t lens[] = { 512, 1024, 2048, 8192 };
	struct iscsi_params *p = &s->cfg.login.want;

	world_host_config(&s->world, &s->cfg, DEPTH);
	p->error_recovery_level = (uint8_t)s->level;
	p->max_connections = 4;
	p->initial_r2t = random_below(s, 2);
	p->immediate_data = random_below(s, 2);
	p->max_recv_dsl = lens[random_below(s, 4)];
	p->max_burst_length = lens[random_below(s, 4)];
	p->first_burst_length =
		MIN(p->max_burst_length, lens[random_below(s, 4)]);
	p->max_outstanding_r2t = (uint16_t)(1 + random_below(s, 4));
	p->data_pdu_in_order = random_below(s, 4);
	p->data_sequence_in_order = random_below(s, 4);
	p->default_time2wait = (uint16_t)random_below(s, 3);
	p->default_time2retain = 20;
	p->protocol_level = random_below(s, 2) ? 2 : 1;
	s->cfg.continues = s->level == 2 && random_below(s, 2);
	s->cfg.login.header_digest_none_ok =
		s->fault != FAULT_HEADER && random_below(s, 2);
	s->cfg.login.header_digest_crc_ok = !s->cfg.login.header_digest_none_ok;
	s->cfg.login.data_digest_none_ok = false;
	if (s->way != SIM_TCP)
		make_rdma_wishes(s);
	s->cfg.idle_time = s->cfg.ping_time = 5 * XTIME_S;
	if (s->level && s->fault <= FAULT_LOST && random_below(s, 2))
		s->cfg.idle_time = XTIME_NEVER; /* recovery needs no pings */
	s->cfg.trace = s->world.trace;
	s->cfg.logged_in = on_logged_in;
	s->cfg.joined = on_joined;
	s->cfg.closed = on_closed;
	s->cfg.rearm = on_rearm;
	s->cfg.arg = s;
}

/* ---- faults ---- */

static void pause_line(struct sim *s, struct line *l, xtime time)
{
	unsigned ends = 1 + random_below(s, 3);

	l->deaf[0] = ends & 1;
	l->deaf[1] = ends & 2;
	l->deaf_from = s->world.now + random_below(s, 60) * XTIME_MS;
	l->deaf_until = time == XTIME_NEVER ? XTIME_NEVER : l->deaf_from + time;
}

static void break_line(struct sim *s, struct line *l, enum fault fault)
{
	struct mangler_plan *p = &l->mangler.plan;
	unsigned end = random_below(s, 2);

	switch (fault) {
	case FAULT_DATA:
		p->one_in[MANGLE_DATA] = 3 + random_below(s, 20);
		p->most = 1 + random_below(s, 12);
		break;
	case FAULT_LOST:
		p->one_in[MANGLE_LOSE] = 10 + random_below(s, 30);
		p->most = 1 + random_below(s, 3);
		break;
	case FAULT_HEADER:
		if (s->way != SIM_TCP)
			l->damage_after[end] = random_below(s, 20000);
		p->one_in[MANGLE_HEADER] = 20;
		p->most = 1;
		break;
	case FAULT_RESET:
		l->wire.cfg.cut[end] =
			l->wire.end[end].sent + random_below(s, 20000);
		break;
	case FAULT_STALL:
		pause_line(s, l, (1 + random_below(s, 8)) * XTIME_S);
		break;
	case FAULT_HANG:
		pause_line(s, l, XTIME_NEVER);
		break;
	default:
		break;
	}
}

/* The connection ends. */
static bool is_fatal(enum fault fault)
{
	return fault == FAULT_HEADER || fault == FAULT_RESET ||
	       fault == FAULT_HANG;
}

static void break_any(struct sim *s, struct line *l)
{
	enum fault fault = s->way == SIM_TCP
				   ? (enum fault)random_below(s, FAULT_MIX)
				   : rdma_faults[random_below(s, 5)];

	s->survives |= !is_fatal(fault);
	break_line(s, l, fault);
}

static void begin_faults(struct sim *s)
{
	struct line *first = &s->line[s->first_line];
	struct line *victim = first + random_below(s, s->conns);
	bool all = s->fault == FAULT_DATA || s->fault == FAULT_LOST;

	s->survives = false;
	for (unsigned i = 0; i < s->conns; i++)
		if (s->fault == FAULT_MIX)
			break_any(s, first + i);
		else if (all || first + i == victim)
			break_line(s, first + i, s->fault);
	s->all_survive &= s->survives;
}

static void end_faults(struct sim *s)
{
	for (unsigned i = 0; i < s->nlines; i++) {
		struct line *l = &s->line[i];

		l->mangler.plan.most = 0;
		l->damage_after[0] = l->damage_after[1] = UINT64_MAX;
		l->wire.cfg.cut[0] = l->wire.cfg.cut[1] = WIRE_NO_CUT;
		if (l->deaf_until != XTIME_NEVER)
			l->deaf_until = s->world.now;
	}
}

/* §7.1.5: what each level recovers. */
static bool is_recovered(const struct sim *s)
{
	switch (s->fault) {
	case FAULT_NONE:
	case FAULT_STALL:
		return true;
	case FAULT_DATA:
	case FAULT_LOST:
		return s->level >= 1;
	case FAULT_HEADER:
	case FAULT_RESET:
	case FAULT_HANG:
		return s->level == 2 && (s->conns > 1 || s->cfg.continues);
	default:
		return s->level == 2 && (s->survives || s->cfg.continues);
	}
}

/* ---- commands ---- */

static void start_one(struct sim *s);

static void on_done(struct ini_task *t)
{
	struct entry *e = container_of(t, struct entry, task);
	struct sim *s = e->arg;

	if (s->world.trace && (t->err || t->status))
		printf("%llu us: command %u, %s, ends with %d, status %u, sense "
		       "%02x/%02x\n",
		       (unsigned long long)(s->world.now / XTIME_US), e->number,
		       e->write ? "WRITE" : "READ", t->err, t->status,
		       t->sense_len > 12 ? t->sense[2] : 0,
		       t->sense_len > 12 ? t->sense[12] : 0);
	ledger_end(e);
	s->in_flight--;
	if (is_recovered(s) && !e->good)
		fail_msg("command %u was not recovered", e->number);
	if (is_recovered(s) && s->world.now - e->time > RECOVERY)
		fail_msg("command %u took %u s", e->number,
			 (unsigned)((s->world.now - e->time) / XTIME_S));
	if (s->todo && ini_is_up(s->ini))
		start_one(s);
}

static void submit(struct sim *s, struct entry *e)
{
	struct ini_task *t = &e->task;

	e->arg = s;
	e->time = s->world.now;
	*t = (struct ini_task){
		.read = !e->write,
		.write = e->write,
		.attr = e->ordered ? ISCSI_ATTR_ORDERED : ISCSI_ATTR_SIMPLE,
		.deadline = XTIME_NEVER,
		.done = on_done,
	};
	t->cdb_len =
		(uint8_t)scsi_cdb_rw(t->cdb, e->write, e->lba, e->blocks, 0);
	if (e->write)
		t->out = bufv_of(&e->iov, 1);
	else
		t->in = bufv_of(&e->iov, 1);
	s->in_flight++;
	ini_submit(s->ini, t, s->world.now);
}

static void start_one(struct sim *s)
{
	s->todo--;
	submit(s, ledger_begin_any(s->ledger, &s->seed));
}

/* ---- one run ---- */

static void end_session(struct sim *s)
{
	assert_true(s->closed);
	assert_int_equal(s->in_flight, 0);
	ini_free(s->ini);
	s->ini = NULL;
	s->clock = XTIME_NEVER;
}

static bool is_settled_or_waiting(struct sim *s)
{
	return is_waiting(s) || is_settled(s);
}

/* Commands until none is left, or the session is lost. */
static void work(struct sim *s)
{
	open_session(s);
	begin_faults(s);
	for (;;) {
		while (s->in_flight < DEPTH && s->todo && ini_is_up(s->ini))
			start_one(s);
		run_until(s, s->world.now + PATIENCE, is_settled_or_waiting);
		if (!is_waiting(s))
			break;
		continue_session(s);
	}
	assert_int_equal(s->in_flight, 0); /* none waits for ever */
}

static bool is_closed(struct sim *s)
{
	return s->closed;
}

/* Reads all blocks over a session without faults. */
static void read_back(struct sim *s)
{
	end_faults(s);
	run_until(s, s->world.now + 30 * XTIME_S, is_waiting);
	if (is_waiting(s))
		continue_session(s);
	run_until(s, s->world.now + 30 * XTIME_S, never);
	if (s->closed) {
		end_session(s);
		open_session(s);
	}
	for (uint32_t lba = 0; lba < LEDGER_BLOCKS; lba += LEDGER_SLOT) {
		struct entry *e =
			ledger_begin(s->ledger, false, lba, LEDGER_SLOT, true);

		submit(s, e);
		run_until(s, s->world.now + PATIENCE, is_settled);
		assert_true(e->good);
	}
}

static bool all_lines_closed(struct sim *s)
{
	for (unsigned i = 0; i < s->nlines; i++)
		for (unsigned end = 0; end < 2; end++)
			if (wire_is_open(&s->line[i].wire, end))
				return false;
	return tgt_worker_idle(tgt_worker(s->world.tgt, 0));
}

static void log_out(struct sim *s)
{
	ini_logout(s->ini, s->world.now);
	run_until(s, s->world.now + PATIENCE, is_closed);
	end_session(s);
	run_until(s, s->world.now + PATIENCE, all_lines_closed);
	assert_true(all_lines_closed(s));
	for (unsigned i = 0; i < s->nlines; i++) {
		for (unsigned end = 0; end < 2; end++)
			sim_transport_fini(&s->line[i].transport[end]);
		wire_fini(&s->line[i].wire);
	}
}

static void print_event(struct trace *t, enum trace_event event,
			const struct trace_about *about, const char *text)
{
	const struct sim *s = container_of(t, struct sim, trace);

	printf("%llu us: %s: %s %s\n",
	       (unsigned long long)(s->world.now / XTIME_US),
	       trace_event_name(event), about->peer ? about->peer : "-", text);
}

static void choose(struct sim *s, uint32_t seed, bool rdma)
{
	uint32_t rest = seed / LEVELS / 3;

	s->fault = (enum fault)(rest % FAULTS);
	s->way = SIM_TCP;
	if (!rdma)
		return;
	s->fault = rdma_faults[rest % ARRAY_LEN(rdma_faults)];
	s->way = rest / ARRAY_LEN(rdma_faults) % 2 ? SIM_ISER_SWITCH
						   : SIM_ISER_FIRST;
}

static struct sim *begin(uint32_t seed, bool rdma, bool loud)
{
	static const unsigned conns[] = { 1, 2, 4 };
	struct sim *s = calloc(1, sizeof(*s));

	s->seed = seed * 2654435761u + 1;
	s->level = seed % LEVELS;
	s->conns = conns[seed / LEVELS % 3];
	choose(s, seed, rdma);
	s->all_survive = true;
	s->todo = COMMANDS;
	s->clock = XTIME_NEVER;
	s->trace = (struct trace){ .level = TRACE_LEVEL_DEBUG,
				   .emit = print_event };
	s->ledger = ledger_new(COMMANDS + LEDGER_BLOCKS / LEDGER_SLOT);
	world_open_recovery(&s->world, (uint8_t)s->level, 4,
			    loud ? &s->trace : NULL);
	s->world.now = XTIME_S;
	if (loud)
		printf("seed %u: %s, ErrorRecoveryLevel %u, %u connections, "
		       "fault: %s\n",
		       seed, sim_way_name(s->way), s->level, s->conns,
		       fault_names[s->fault]);
	make_wishes(s);
	return s;
}

struct totals {
	unsigned runs, lost_sessions, continued, damaged[MANGLES],
		ops[MANGLES][64];
};

static void count(struct totals *n, const struct sim *s)
{
	n->runs++;
	n->lost_sessions += s->sessions - 1;
	n->continued += s->continued;
	for (unsigned i = 0; i < s->nlines; i++)
		for (unsigned what = 0; what < MANGLES; what++) {
			const struct mangler *m = &s->line[i].mangler;

			n->damaged[what] += m->done[what];
			for (unsigned op = 0; op < 64; op++)
				n->ops[what][op] += m->ops[what][op];
		}
}

static uint32_t current; /* for the report of a failure */

static void run_seed(uint32_t seed, bool rdma, bool loud, struct totals *n)
{
	struct sim *s = begin(seed, rdma, loud);

	current = seed;
	work(s);
	while (s->todo && s->sessions < SESSIONS - 1) {
		run_until(s, s->world.now + PATIENCE, is_closed);
		end_session(s);
		work(s);
	}
	read_back(s);
	if (is_recovered(s) && (s->fault != FAULT_MIX || s->all_survive))
		assert_int_equal(s->sessions, 1);
	ledger_check(s->ledger);
	ledger_check_medium(s->ledger, s->world.medium);
	count(n, s);
	log_out(s);
	world_close(&s->world);
	ledger_free(s->ledger);
	free(s);
	current = 0;
}

static uint32_t number(const char *name, uint32_t none)
{
	const char *text = getenv(name);

	return text ? (uint32_t)strtoul(text, NULL, 10) : none;
}

/* Returns whether all seeds ran; else one ran, or some. */
static bool run_seeds(bool rdma, struct totals *total)
{
	uint32_t one = number("FAULTS_SEED", 0);
	uint32_t n = number("FAULTS_SEEDS", SEEDS);
	uint32_t first = number("FAULTS_FIRST", 1);

	if (one) {
		run_seed(one, rdma, true, total);
		return false;
	}
	for (uint32_t seed = first; seed - first < n; seed++)
		run_seed(seed, rdma, false, total);
	return n >= SEEDS;
}

static void test_faults_over_iser_rfc7145_10_2(void **state)
{
	struct totals total = { 0 };

	(void)state;
	if (!run_seeds(true, &total))
		return;
	assert_true(total.lost_sessions > total.runs / 20);
	assert_true(total.continued > total.runs / 50);
}

static void test_faults_rfc7143_7_1(void **state)
{
	struct totals total = { 0 };
	unsigned n;

	(void)state;
	if (!run_seeds(false, &total))
		return;
	n = total.runs;
	/* otherwise the faults come too late to show anything */
	assert_true(total.lost_sessions > n / 20);
	assert_true(total.continued > n / 50);
	for (unsigned what = 0; what < MANGLES; what++)
		assert_true(total.damaged[what] > n / 50);
	for (enum iscsi_opcode op = ISCSI_SCSI_COMMAND; op <= ISCSI_DATA_OUT;
	     op += ISCSI_DATA_OUT - ISCSI_SCSI_COMMAND)
		assert_true(total.ops[MANGLE_DATA][op] > 10 &&
			    total.ops[MANGLE_LOSE][op] > 10);
	assert_true(total.ops[MANGLE_DATA][ISCSI_DATA_IN] > 10);
	assert_true(total.ops[MANGLE_LOSE][ISCSI_DATA_IN] > 10);
	assert_true(total.ops[MANGLE_LOSE][ISCSI_R2T] > 10);
	assert_true(total.ops[MANGLE_LOSE][ISCSI_SCSI_RESPONSE] > 10);
	/* so are the requests of the recovery, and their answers */
	assert_true(total.ops[MANGLE_LOSE][ISCSI_SNACK_REQUEST] &&
		    total.ops[MANGLE_LOSE][ISCSI_NOP_OUT] &&
		    total.ops[MANGLE_LOSE][ISCSI_NOP_IN] &&
		    total.ops[MANGLE_LOSE][ISCSI_TMF_REQUEST]);
}

static int report_seed(void **state)
{
	(void)state;
	if (current)
		print_error("FAULTS_SEED=%u repeats this failure\n", current);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tcp[] = {
		cmocka_unit_test_teardown(test_faults_rfc7143_7_1, report_seed),
	};
	const struct CMUnitTest iser[] = {
		cmocka_unit_test_teardown(test_faults_over_iser_rfc7145_10_2,
					  report_seed),
	};

	if (argc > 1 && strcmp(argv[1], "iser") == 0)
		return cmocka_run_group_tests(iser, NULL, NULL);
	return cmocka_run_group_tests(tcp, NULL, NULL);
}
