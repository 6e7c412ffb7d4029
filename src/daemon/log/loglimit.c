/* SPDX-License-Identifier: BSD-2-Clause */
/* loglimit.c: limits of log lines, per address and per kind of event. */
#include "daemon/log/loglimit.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

/* Replaces "[2001:db8::1:2:3:4]" by "[2001:db8::/64]": one host can use each
 * address of its /64. Addresses with a zone, which are link-local, and mapped
 * IPv4 addresses stay as they are. */
static void cut_to_prefix(char name[LOGLIMIT_NAME])
{
	size_t len = strlen(name);
	char text[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (*name != '[' || len < 3 || len - 2 >= sizeof(text))
		return;
	memcpy(text, name + 1, len - 2);
	text[len - 2] = '\0';
	if (inet_pton(AF_INET6, text, &a) != 1 || IN6_IS_ADDR_V4MAPPED(&a))
		return;
	memset(a.s6_addr + 8, 0, 8);
	inet_ntop(AF_INET6, &a, text, sizeof(text));
	snprintf(name, LOGLIMIT_NAME, "[%s/64]", text);
}

bool loglimit_host(const char *text, char name[LOGLIMIT_NAME])
{
	size_t len = strcspn(text, " "), host = len;

	if (!isdigit((unsigned char)*text) && *text != '[')
		return false;
	while (host > 0 && isdigit((unsigned char)text[host - 1]))
		host--;
	if (host < 2 || host == len || text[host - 1] != ':' ||
	    --host >= LOGLIMIT_NAME)
		return false;
	memcpy(name, text, host);
	name[host] = '\0';
	return true;
}

static void take_summary(struct loglimit *l, struct loglimit_peer *p,
			 struct loglimit_summary *s)
{
	s->n = p->suppressed;
	s->event = p->event;
	memcpy(s->name, p->name, sizeof(s->name));
	l->nsuppressed -= p->suppressed != 0;
	p->suppressed = 0;
}

/* Returns the entry of the peer. A new peer gets the least recently used entry,
 * whose summary is then in *s. */
static struct loglimit_peer *find_peer(struct loglimit *l, const char *name,
				       struct loglimit_summary *s)
{
	struct loglimit_peer *oldest = &l->peers[0];

	for (unsigned i = 0; i < LOGLIMIT_PEERS; i++) {
		struct loglimit_peer *p = &l->peers[i];

		if (!strcmp(p->name, name))
			return p;
		if (p->used < oldest->used)
			oldest = p;
	}
	take_summary(l, oldest, s);
	memset(oldest, 0, sizeof(*oldest));
	strcpy(oldest->name, name);
	return oldest;
}

static bool take_line_token(xtime *full, xtime now, unsigned burst,
			    unsigned rate)
{
	xtime cost = XTIME_S / rate;

	if (*full < now)
		*full = now;
	if (*full + cost > now + burst * cost)
		return false;
	*full += cost;
	return true;
}

static bool peer_may(struct loglimit *l, struct loglimit_peer *p,
		     enum trace_event e, xtime now)
{
	bool may = trace_event_level(e) <= TRACE_LEVEL_WARN
			   ? take_line_token(&p->warn_full, now,
					     LOGLIMIT_WARN_BURST,
					     LOGLIMIT_WARN_RATE)
			   : take_line_token(&p->notice_full, now,
					     LOGLIMIT_NOTICE_BURST,
					     LOGLIMIT_NOTICE_RATE);

	if (!may) {
		if (p->suppressed++ == 0) {
			p->first = now;
			p->event = e;
			l->nsuppressed++;
		}
		if (p->event != e)
			p->event = TRACE_CONN_LIMIT;
	}
	return may;
}

/* The peer has had at most two recent warnings, and few notices. */
static bool is_quiet(const struct loglimit_peer *p, xtime now)
{
	return p && p->warn_full - now <= 2 * XTIME_S / LOGLIMIT_WARN_RATE &&
	       p->notice_full - now <= 2 * XTIME_S;
}

static bool event_may(struct loglimit *l, enum trace_event e, xtime now,
		      unsigned most, unsigned *dropped)
{
	if (now - l->events[e].since >= XTIME_S) {
		*dropped = l->events[e].dropped;
		l->events[e].since = now;
		l->events[e].lines = 0;
		l->events[e].dropped = 0;
	}
	if (l->events[e].lines >= most) {
		l->events[e].dropped++;
		return false;
	}
	l->events[e].lines++;
	return true;
}

bool loglimit_admit(struct loglimit *l, enum trace_event e, const char *text,
		    xtime now, unsigned *dropped, struct loglimit_summary *s)
{
	struct loglimit_peer *p = NULL;
	char name[LOGLIMIT_NAME];

	*dropped = 0;
	s->n = 0;
	if (loglimit_host(text, name)) {
		cut_to_prefix(name);
		p = find_peer(l, name, s);
		p->used = now;
		if (!peer_may(l, p, e, now))
			return false;
		if (p->suppressed)
			take_summary(l, p, s);
	}
	return event_may(l, e, now,
			 is_quiet(p, now) ? LOGLIMIT_EVENT_MAX : LOGLIMIT_EVENT,
			 dropped);
}

bool loglimit_due(struct loglimit *l, xtime now, struct loglimit_summary *s)
{
	for (unsigned i = 0; l->nsuppressed && i < LOGLIMIT_PEERS; i++) {
		struct loglimit_peer *p = &l->peers[i];

		if (p->suppressed && now - p->first >= LOGLIMIT_SUMMARY) {
			take_summary(l, p, s);
			return true;
		}
	}
	return false;
}
