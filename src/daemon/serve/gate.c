/* SPDX-License-Identifier: BSD-2-Clause */
/* gate.c: the lock, the clock and the log lines around admission.c. */
#include "daemon/serve/gate.h"

#include "base/err.h"
#include "io/io.h"

void gate_init(struct gate *g, const struct admission_limits *l,
	       struct trace *trace)
{
	uint64_t seed;

	pthread_mutex_init(&g->lock, NULL);
	io_random(NULL, (uint8_t *)&seed, sizeof(seed));
	io_random(NULL, (uint8_t *)&g->random, sizeof(g->random));
	g->random |= 1; /* xorshift would stay at 0 */
	g->trace = trace;
	admission_init(&g->admission, l, seed);
}

void gate_set_limits(struct gate *g, const struct admission_limits *l)
{
	struct admission_limits *now = &g->admission.limits;
	unsigned v4_bits = now->v4_bits, v6_bits = now->v6_bits;

	pthread_mutex_lock(&g->lock);
	*now = *l;
	now->v4_bits = v4_bits; /* addresses are counted by them */
	now->v6_bits = v6_bits;
	pthread_mutex_unlock(&g->lock);
}

void gate_fini(struct gate *g)
{
	admission_fini(&g->admission);
	pthread_mutex_destroy(&g->lock);
}

/* xorshift64*: a system call for each connection is not worth its cost here. */
static uint32_t next_random(struct gate *g)
{
	g->random ^= g->random >> 12;
	g->random ^= g->random << 25;
	g->random ^= g->random >> 27;
	return (uint32_t)(g->random * 0x2545f4914f6cdd1du >> 32);
}

static void note_peak(struct gate *g)
{
	const struct admission_counts *c = &g->admission.counts;

	g->peak = MAX(g->peak, c->starting + c->discovery + c->sessions);
}

bool gate_arrive(struct gate *g, struct admission_entry *e,
		 const struct net_addr *peer, struct admission_entry **victim)
{
	enum admission_verdict v;
	char name[NET_ADDR_STR];

	pthread_mutex_lock(&g->lock);
	v = admission_arrive(&g->admission, e, &peer->sa, io_now_exact(),
			     next_random(g), victim);
	note_peak(g);
	pthread_mutex_unlock(&g->lock);
	if (v == ADMISSION_OK)
		return true;
	/* without the lock: a slow reader of the log must not stop accept */
	if (trace_wanted(g->trace, TRACE_LEVEL_WARN)) {
		net_addr_str(peer, name);
		trace_emit(g->trace, TRACE_CONN_LIMIT,
			   "%s connection refused: %s", name,
			   admission_verdict_str(v));
	}
	return false;
}

int gate_login(struct gate *g, struct admission_entry *e, const char *peer,
	       bool discovery, bool proven, struct admission_entry **victim)
{
	enum admission_verdict v;

	pthread_mutex_lock(&g->lock);
	v = admission_login(&g->admission, e, discovery, proven, io_now_exact(),
			    victim);
	pthread_mutex_unlock(&g->lock);
	if (v == ADMISSION_OK)
		return 0;
	trace_emit(g->trace, TRACE_CONN_LIMIT, "%s login refused: %s", peer,
		   admission_verdict_str(v));
	return ERR_LIMIT;
}

xtime gate_auth_begin(struct gate *g, struct admission_entry *e,
		      const char *account, const char *initiator)
{
	xtime wait;

	pthread_mutex_lock(&g->lock);
	wait = admission_auth_begin(&g->admission, e, account, initiator,
				    io_now_exact());
	pthread_mutex_unlock(&g->lock);
	return wait;
}

xtime gate_auth_failed(struct gate *g, struct admission_entry *e,
		       const char *peer)
{
	xtime delay;

	pthread_mutex_lock(&g->lock);
	delay = admission_auth_failed(&g->admission, e, io_now_exact());
	pthread_mutex_unlock(&g->lock);
	if (delay)
		trace_emit(g->trace, TRACE_CONN_LIMIT,
			   "%s CHAP failed again: this account and initiator "
			   "are refused at this address for %u s",
			   peer, (unsigned)(delay / XTIME_S));
	return delay;
}

bool gate_move(struct gate *g, const struct admission_entry *e,
	       struct worker **worker, struct worker *to)
{
	bool moves;

	pthread_mutex_lock(&g->lock);
	moves = e->state != ADMISSION_DROPPED;
	if (moves)
		*worker = to;
	pthread_mutex_unlock(&g->lock);
	return moves;
}

void gate_end(struct gate *g, struct admission_entry *e)
{
	pthread_mutex_lock(&g->lock);
	admission_end(&g->admission, e);
	pthread_mutex_unlock(&g->lock);
}

bool gate_leave(struct gate *g, struct admission_entry *e)
{
	bool chosen;

	pthread_mutex_lock(&g->lock);
	chosen = admission_leave(&g->admission, e, io_now_exact());
	pthread_mutex_unlock(&g->lock);
	return chosen;
}

struct admission_entry *gate_oldest(struct gate *g)
{
	struct admission_entry *e;

	pthread_mutex_lock(&g->lock);
	e = admission_oldest(&g->admission, io_now_exact());
	pthread_mutex_unlock(&g->lock);
	return e;
}

unsigned gate_age(struct gate *g)
{
	unsigned idle;

	pthread_mutex_lock(&g->lock);
	admission_age(&g->admission, io_now_exact());
	idle = g->admission.nidle;
	pthread_mutex_unlock(&g->lock);
	return idle;
}

#define FLOOD_MIN 64 /* connections; the memory of fewer is not worth a trim */

bool gate_shrunk(struct gate *g)
{
	const struct admission_counts *c = &g->admission.counts;
	bool shrunk;
	unsigned n;

	pthread_mutex_lock(&g->lock);
	n = c->starting + c->discovery + c->sessions;
	shrunk = g->peak >= FLOOD_MIN && n < g->peak / 2;
	if (shrunk)
		g->peak = n;
	pthread_mutex_unlock(&g->lock);
	return shrunk;
}

void gate_counts(struct gate *g, struct admission_counts *c)
{
	pthread_mutex_lock(&g->lock);
	*c = g->admission.counts;
	pthread_mutex_unlock(&g->lock);
}
