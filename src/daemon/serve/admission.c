/* SPDX-License-Identifier: BSD-2-Clause */
/* admission.c: shares of connections, sessions and logins for each address. */
#include "daemon/serve/admission.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* The failures and successes of CHAP are forgotten so long after the last one. */
#define FORGET_TIME (600 * XTIME_S)

/* Where those of all pairs are that have no place of their own. */
#define SHARED (ADMISSION_PROVEN + ADMISSION_PAIRS)

/* How many idle addresses are looked at for one without failed CHAP before the
 * oldest is forgotten. */
#define FORGET_SEARCH 16

/* The number of recent connections of an address halves in this time. */
#define HALF_LIFE (10 * XTIME_S)

struct key {
	uint8_t bytes[17]; /* family, address with the host bits cleared */
};

/* The failures of an account and an initiator name, whose hash is who (0: none). */
struct failures {
	uint64_t who;
	unsigned n; /* since the last success */
	xtime last; /* the last failure, or the last success */
	xtime refused_until;
};

struct admission_source {
	struct list link; /* its bucket */
	struct list idle; /* linked while it has no entry */
	struct key key;
	unsigned entries; /* that have not left */
	unsigned starting, discovery, sessions;
	/* token bucket: the time at which it is full again */
	xtime full_at;
	/* connections without a session, halved every HALF_LIFE: heat_of() */
	uint32_t recent;
	xtime recent_at;
	/* CHAP: first the pairs that have proven their secret, then those that have failed,
	 * unused if n is 0; the last one is of all pairs for which there is no room */
	struct failures failed[SHARED + 1];
	unsigned nfailed; /* whose n is not 0 */
};

/* Half-open connections get a quarter of the descriptors, discovery sessions an
 * eighth, sessions the rest. */
bool admission_limits_fit(struct admission_limits *l, unsigned descriptors)
{
	if (l->sessions + l->full + l->discovery <= descriptors)
		return false;
	l->full = MAX(MIN(l->full, descriptors / 4), 1u);
	l->start = MIN(l->start, (l->full + 1) / 2);
	l->source_startups = MIN(l->source_startups, (l->full + 1) / 2);
	l->discovery = MAX(MIN(l->discovery, descriptors / 8), 1u);
	l->source_discovery = MIN(l->source_discovery, (l->discovery + 1) / 2);
	if (descriptors > l->full + l->discovery)
		l->sessions =
			MIN(l->sessions, descriptors - l->full - l->discovery);
	else
		l->sessions = 1;
	return true;
}

const char *admission_verdict_str(enum admission_verdict v)
{
	static const char *const texts[] = {
		[ADMISSION_OK] = "admitted",
		[ADMISSION_TOO_FAST] = "too many connections per second from "
				       "this address (--login-rate)",
		[ADMISSION_PENALTY] = "CHAP of this account and initiator "
				      "failed too often at this address "
				      "(--penalty)",
		[ADMISSION_CROWDED] = "too many connections are logging in, "
				      "and most of this address lately "
				      "(--max-startups)",
		[ADMISSION_FULL] = "too many sessions (--max-sessions, "
				   "--max-discovery)",
		[ADMISSION_SHARE] = "too many sessions of this address "
				    "(--max-sessions, --max-discovery)",
		[ADMISSION_NO_MEMORY] = "out of memory",
	};

	return v < ARRAY_LEN(texts) ? texts[v] : "?";
}

/* ---- addresses ---- */

static void keep_bits(uint8_t *p, size_t len, unsigned bits)
{
	for (size_t i = 0; i < len; i++) {
		unsigned left = bits > 8 * i ? bits - 8 * (unsigned)i : 0;

		if (left < 8)
			p[i] &= (uint8_t)(0xff00u >> left);
	}
}

/* Connections that have no IP address count as one address. */
static struct key key_of(const struct admission_limits *l,
			 const struct sockaddr_storage *peer)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const void *sa = peer;
	const uint8_t *v6 =
		((const struct sockaddr_in6 *)sa)->sin6_addr.s6_addr;
	const void *v4 = &((const struct sockaddr_in *)sa)->sin_addr;
	struct key k = { { 0 } };

	if (peer->ss_family == AF_INET6 && !memcmp(v6, mapped, 12))
		v4 = v6 + 12; /* RFC 4291 §2.5.5.2 */
	else if (peer->ss_family == AF_INET6)
		v4 = NULL;
	else if (peer->ss_family != AF_INET)
		return k;
	k.bytes[0] = v4 ? 4 : 6;
	memcpy(k.bytes + 1, v4 ? v4 : v6, v4 ? 4 : 16);
	keep_bits(k.bytes + 1, v4 ? 4 : 16, v4 ? l->v4_bits : l->v6_bits);
	return k;
}

/* A peer can choose its address: without the random seed it could choose
 * addresses that collide. */
static struct list *bucket_of(struct admission *a, const struct key *k)
{
	uint64_t h = a->seed;

	for (size_t i = 0; i < sizeof(k->bytes); i++) {
		h = (h ^ k->bytes[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return &a->buckets[(h ^ h >> 32) % ADMISSION_BUCKETS];
}

static void source_free(struct admission *a, struct admission_source *s)
{
	assert(s->entries == 0);
	if (list_linked(&s->idle)) {
		list_del(&s->idle);
		a->nidle--;
	}
	a->counts.penalized -= s->nfailed != 0;
	a->counts.sources--;
	list_del(&s->link);
	free(s);
}

/* Frees one idle address to make room for another: preferably one without
 * failed CHAP. */
static void forget_one(struct admission *a)
{
	struct admission_source *oldest = NULL;
	unsigned looked = 0;

	list_for_each(it, &a->idle) {
		struct admission_source *s =
			list_entry(it, struct admission_source, idle);

		if (!oldest || !s->nfailed)
			oldest = s;
		if (!s->nfailed || ++looked == FORGET_SEARCH)
			break;
	}
	if (oldest)
		source_free(a, oldest);
}

static struct admission_source *source_get(struct admission *a,
					   const struct key *k)
{
	struct list *bucket = bucket_of(a, k);
	struct admission_source *s;

	list_for_each(it, bucket) {
		s = list_entry(it, struct admission_source, link);
		if (!memcmp(s->key.bytes, k->bytes, sizeof(k->bytes)))
			return s;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->key = *k;
	list_init(&s->idle);
	list_push_back(bucket, &s->link);
	a->counts.sources++;
	return s;
}

/* Puts s on the list of idle addresses if it has no entry any more. */
static void source_set_idle(struct admission *a, struct admission_source *s)
{
	if (s->entries || list_linked(&s->idle))
		return;
	if (a->nidle >= a->limits.remembered)
		forget_one(a);
	list_push_back(&a->idle, &s->idle);
	a->nidle++;
}

/* Returns the number of recent connections without a session, which is halved
 * every HALF_LIFE. */
static uint32_t heat_of(const struct admission_source *s, xtime now)
{
	xtime halves = (now - s->recent_at) / HALF_LIFE;

	return halves < 32 ? s->recent >> MAX(halves, (xtime)0) : 0;
}

static void add_heat(struct admission_source *s, xtime now)
{
	xtime halves = (now - s->recent_at) / HALF_LIFE;

	s->recent = heat_of(s, now) + 1;
	s->recent_at = s->recent == 1 ? now : s->recent_at + halves * HALF_LIFE;
}

static bool is_forgettable(const struct admission_source *s, xtime now)
{
	for (unsigned i = 0; i < ARRAY_LEN(s->failed); i++)
		if (s->failed[i].last && now - s->failed[i].last < FORGET_TIME)
			return false;
	return s->full_at <= now && heat_of(s, now) == 0;
}

void admission_age(struct admission *a, xtime now)
{
	list_for_each_safe(it, &a->idle) {
		struct admission_source *s =
			list_entry(it, struct admission_source, idle);

		if (is_forgettable(s, now))
			source_free(a, s);
	}
}

/* ---- counting ---- */

static void uncount_entry(struct admission *a, struct admission_entry *e)
{
	struct admission_source *s = e->source;

	switch (e->state) {
	case ADMISSION_STARTING:
		a->counts.starting--;
		s->starting--;
		break;
	case ADMISSION_DISCOVERY:
		a->counts.discovery--;
		s->discovery--;
		break;
	case ADMISSION_SESSION:
		a->counts.sessions--;
		s->sessions--;
		break;
	default:
		return;
	}
	list_del(&e->link);
}

static void count_as(struct admission *a, struct admission_entry *e,
		     enum admission_state state)
{
	struct admission_source *s = e->source;

	uncount_entry(a, e);
	e->state = state;
	if (state == ADMISSION_STARTING) {
		a->counts.starting++;
		s->starting++;
		list_push_back(&a->starting, &e->link);
	} else if (state == ADMISSION_DISCOVERY) {
		a->counts.discovery++;
		s->discovery++;
		list_push_back(&a->discovery, &e->link);
	} else if (state == ADMISSION_SESSION) {
		a->counts.sessions++;
		s->sessions++;
	}
}

/* ---- victims ---- */

static unsigned held_in(const struct admission_source *s,
			enum admission_state state)
{
	return state == ADMISSION_STARTING ? s->starting : s->discovery;
}

/* Returns whether s, which has ns connections in a state, loses one before t,
 * which has nt: the address with more of them does, then the address with more
 * recent connections. */
static bool is_greedier(const struct admission_source *s, unsigned ns,
			const struct admission_source *t, unsigned nt,
			xtime now)
{
	return ns != nt ? ns > nt : heat_of(s, now) > heat_of(t, now);
}

/* Returns the oldest connection of s in this state or, if s is NULL, of the
 * address that loses one before all others. Discovery sessions that passed CHAP
 * are skipped. */
static struct admission_entry *oldest_entry(const struct admission *a,
					    enum admission_state state,
					    const struct admission_source *s,
					    xtime now)
{
	const struct list *all =
		state == ADMISSION_STARTING ? &a->starting : &a->discovery;
	struct admission_entry *best = NULL;

	list_for_each(it, all) {
		struct admission_entry *e =
			list_entry(it, struct admission_entry, link);

		if (e->proven || (s && e->source != s))
			continue;
		if (s)
			return e;
		if (!best || is_greedier(e->source, held_in(e->source, state),
					 best->source,
					 held_in(best->source, state), now))
			best = e;
	}
	return best;
}

/* Returns the connection to drop for one more of s in this state: of another
 * address, or of s if s would have the most. NULL: s would have the most and
 * has none in this state. */
static struct admission_entry *find_victim(const struct admission *a,
					   enum admission_state state,
					   const struct admission_source *s,
					   xtime now)
{
	struct admission_entry *e = oldest_entry(a, state, NULL, now);

	if (e && !is_greedier(s, held_in(s, state) + 1, e->source,
			      held_in(e->source, state), now))
		return e;
	return oldest_entry(a, state, s, now);
}

static struct admission_entry *choose_victim(struct admission *a,
					     struct admission_entry *e)
{
	if (!e)
		return NULL;
	a->counts.dropped_starting += e->state == ADMISSION_STARTING;
	a->counts.dropped_discovery += e->state == ADMISSION_DISCOVERY;
	count_as(a, e, ADMISSION_DROPPED);
	return e;
}

struct admission_entry *admission_oldest(struct admission *a, xtime now)
{
	return choose_victim(a, oldest_entry(a, ADMISSION_STARTING, NULL, now));
}

/* Random early drop: returns whether a half-open connection is dropped for a
 * new one. */
static bool is_crowded(const struct admission *a, uint32_t random)
{
	const struct admission_limits *l = &a->limits;
	unsigned n = a->counts.starting, percent;

	if (n >= l->full)
		return true;
	if (n < l->start)
		return false;
	percent = l->rate +
		  (100 - l->rate) * (n - l->start) / (l->full - l->start);
	return random % 100 < percent;
}

/* ---- arrival ---- */

/* The bucket holds per_second * ADMISSION_BURST tokens. */
static bool take_token(const struct admission *a, struct admission_source *s,
		       xtime now)
{
	xtime cost, most;

	if (!a->limits.per_second)
		return true;
	cost = XTIME_S / a->limits.per_second;
	most = ADMISSION_BURST * XTIME_S;
	if (s->full_at < now)
		s->full_at = now;
	if (s->full_at + cost > now + most)
		return false;
	s->full_at += cost;
	return true;
}

static enum admission_verdict count_refusal(struct admission *a,
					    enum admission_verdict why)
{
	a->counts.refused[why]++;
	return why;
}

enum admission_verdict admission_arrive(struct admission *a,
					struct admission_entry *e,
					const struct sockaddr_storage *peer,
					xtime now, uint32_t random,
					struct admission_entry **victim)
{
	const struct key key = key_of(&a->limits, peer);
	struct admission_source *s = source_get(a, &key);
	enum admission_verdict v = ADMISSION_OK;

	*victim = NULL;
	a->counts.arrived++;
	if (!s)
		return count_refusal(a, ADMISSION_NO_MEMORY);
	add_heat(s, now);
	if (!take_token(a, s, now))
		v = ADMISSION_TOO_FAST;
	else if (s->starting >= a->limits.source_startups)
		*victim = choose_victim(a, oldest_entry(a, ADMISSION_STARTING,
							s, now));
	else if (is_crowded(a, random)) {
		*victim = choose_victim(a, find_victim(a, ADMISSION_STARTING, s,
						       now));
		if (!*victim)
			v = ADMISSION_CROWDED;
	}
	if (v != ADMISSION_OK) {
		source_set_idle(a, s);
		return count_refusal(a, v);
	}
	if (list_linked(&s->idle)) {
		list_del(&s->idle);
		a->nidle--;
	}
	list_init(&e->link);
	e->source = s;
	s->entries++;
	count_as(a, e, ADMISSION_STARTING);
	return ADMISSION_OK;
}

/* ---- failures of CHAP ---- */

static void forget_failures(struct admission *a, struct admission_source *s,
			    struct failures *f)
{
	if (!f->n)
		return;
	f->n = 0;
	f->refused_until = 0;
	a->counts.penalized -= --s->nfailed == 0;
}

/* Returns the failures of a pair: its own, an unused one, or, where there is no room, those
 * of all others. A pair that has proven its secret has its own in any case, so that no
 * neighbour with ever new names keeps it out. */
static struct failures *failures_of(struct admission *a,
				    struct admission_source *s, uint64_t who,
				    xtime now)
{
	struct failures *free_one = &s->failed[SHARED];

	for (unsigned i = SHARED + 1; i-- > 0;) {
		struct failures *f = &s->failed[i];
		bool is_proven = i < ADMISSION_PROVEN;

		if (f->n && now - f->last >= FORGET_TIME)
			forget_failures(a, s, f);
		if (i != SHARED && f->who == who && (is_proven ? who : f->n))
			return f;
		if (!is_proven && !f->n)
			free_one = f;
	}
	return free_one;
}

/* Never 0. A peer that knew the seed could choose names that count as one. */
static uint64_t hash_pair(uint64_t seed, const char *account,
			  const char *initiator)
{
	const char *const both[] = { account, initiator };
	uint64_t h = seed;

	for (unsigned i = 0; i < ARRAY_LEN(both); i++)
		for (const char *p = both[i];; p++) {
			h = (h ^ (uint8_t)*p) * 0x9e3779b97f4a7c15u;
			h ^= h >> 29;
			if (!*p)
				break;
		}
	return h ? h : 1;
}

xtime admission_auth_begin(struct admission *a, struct admission_entry *e,
			   const char *account, const char *initiator,
			   xtime now)
{
	const struct failures *f;

	e->who = hash_pair(a->seed, account, initiator);
	f = failures_of(a, e->source, e->who, now);
	if (now >= f->refused_until)
		return 0;
	(void)count_refusal(a, ADMISSION_PENALTY);
	return f->refused_until - now;
}

xtime admission_auth_failed(struct admission *a, struct admission_entry *e,
			    xtime now)
{
	const struct admission_limits *l = &a->limits;
	struct admission_source *s = e->source;
	struct failures *f = failures_of(a, s, e->who, now);
	xtime delay = l->penalty_first * XTIME_S;
	xtime most = l->penalty_max * XTIME_S;

	a->counts.auth_failures++;
	if (!f->n)
		a->counts.penalized += s->nfailed++ == 0;
	f->who = e->who;
	f->n++;
	f->last = now;
	if (f->n < ADMISSION_FREE || !delay)
		return 0;
	for (unsigned i = ADMISSION_FREE; i < f->n && delay < most; i++)
		delay *= 2;
	delay = MIN(delay, most);
	f->refused_until = now + delay;
	return delay;
}

/* Takes the place of the pair whose success is the oldest. One with failures keeps its
 * place: they must not be forgotten by the successes of others. */
static void remember_proven(struct admission_source *s, uint64_t who, xtime now)
{
	struct failures *oldest = NULL;

	for (unsigned i = 0; i < ADMISSION_PROVEN; i++) {
		struct failures *f = &s->failed[i];

		if (f->who == who) {
			f->last = now;
			return;
		}
		if (!f->n && (!oldest || f->last < oldest->last))
			oldest = f;
	}
	if (oldest)
		*oldest = (struct failures){ .who = who, .last = now };
}

/* The pair has proven its secret. The failures of all others stay: an initiator with one
 * account must not end the penalty of other accounts. */
static void auth_succeeded(struct admission *a, struct admission_entry *e,
			   xtime now)
{
	struct failures *f = failures_of(a, e->source, e->who, now);

	if (f != &e->source->failed[SHARED])
		forget_failures(a, e->source, f);
	remember_proven(e->source, e->who, now);
}

/* ---- login ---- */

static enum admission_verdict admit_discovery(struct admission *a,
					      const struct admission_entry *e,
					      xtime now,
					      struct admission_entry **victim)
{
	const struct admission_source *s = e->source;
	bool share = s->discovery >= a->limits.source_discovery;

	if (!share && a->counts.discovery < a->limits.discovery)
		return ADMISSION_OK;
	*victim = choose_victim(
		a, share ? oldest_entry(a, ADMISSION_DISCOVERY, s, now)
			 : find_victim(a, ADMISSION_DISCOVERY, s, now));
	if (*victim)
		return ADMISSION_OK;
	return share ? ADMISSION_SHARE : ADMISSION_FULL;
}

static enum admission_verdict admit_session(const struct admission *a,
					    const struct admission_entry *e)
{
	if (e->source->sessions >= a->limits.source_sessions)
		return ADMISSION_SHARE;
	return a->counts.sessions < a->limits.sessions ? ADMISSION_OK
						       : ADMISSION_FULL;
}

enum admission_verdict admission_login(struct admission *a,
				       struct admission_entry *e,
				       bool discovery, bool proven, xtime now,
				       struct admission_entry **victim)
{
	struct admission_source *s = e->source;
	enum admission_verdict v;

	*victim = NULL;
	if (e->state != ADMISSION_STARTING)
		return ADMISSION_FULL; /* the caller of another connection has dropped e */
	v = discovery ? admit_discovery(a, e, now, victim)
		      : admit_session(a, e);
	if (v != ADMISSION_OK)
		return count_refusal(a, v);
	e->proven = proven;
	count_as(a, e, discovery ? ADMISSION_DISCOVERY : ADMISSION_SESSION);
	a->counts.logins++;
	if (!discovery || proven)
		s->recent -=
			s->recent != 0; /* heat_of() counts those without one */
	if (proven)
		auth_succeeded(a, e, now);
	return ADMISSION_OK;
}

void admission_end(struct admission *a, struct admission_entry *e)
{
	if (e->state == ADMISSION_DROPPED)
		return;
	uncount_entry(a, e);
	e->state = ADMISSION_NONE;
}

bool admission_leave(struct admission *a, struct admission_entry *e, xtime now)
{
	struct admission_source *s = e->source;
	bool chosen = e->state == ADMISSION_DROPPED;

	admission_end(a, e);
	e->source = NULL;
	s->entries--;
	if (!s->entries && is_forgettable(s, now))
		source_free(a, s);
	else
		source_set_idle(a, s);
	return chosen;
}

/* ---- life ---- */

void admission_init(struct admission *a, const struct admission_limits *l,
		    uint64_t seed)
{
	memset(a, 0, sizeof(*a));
	a->limits = *l;
	a->seed = seed;
	list_init(&a->starting);
	list_init(&a->discovery);
	list_init(&a->idle);
	for (unsigned i = 0; i < ADMISSION_BUCKETS; i++)
		list_init(&a->buckets[i]);
}

void admission_fini(struct admission *a)
{
	while (!list_empty(&a->idle))
		source_free(a, list_entry(a->idle.next, struct admission_source,
					  idle));
}
