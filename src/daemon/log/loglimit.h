/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loglimit.h: limits of log lines: a token bucket for each address of a peer,
 * so that a flood from one address does not hide the lines about others, and a
 * limit for each kind of event. No clock, no lock: time is an argument.
 */
#ifndef DAEMON_LOG_LOGLIMIT_H
#define DAEMON_LOG_LOGLIMIT_H

#include "base/trace.h"
#include "base/xtime.h"

#define LOGLIMIT_PEERS 256
#define LOGLIMIT_NAME  56

/* Lines about one address: so many at once, then so many per second. */
#define LOGLIMIT_WARN_BURST   20
#define LOGLIMIT_WARN_RATE    1
#define LOGLIMIT_NOTICE_BURST 200
#define LOGLIMIT_NOTICE_RATE  20

/* Lines per second of one kind of event. Lines about addresses with few recent
 * lines have the limit LOGLIMIT_EVENT_MAX. */
#define LOGLIMIT_EVENT	   50
#define LOGLIMIT_EVENT_MAX 200

/* The summary is due so long after the first suppressed line. */
#define LOGLIMIT_SUMMARY (10 * XTIME_S)

struct loglimit_peer {
	/* an address without port, of IPv6 its /64; "": free */
	char name[LOGLIMIT_NAME];
	xtime warn_full, notice_full; /* when the buckets are full again */
	xtime used;
	unsigned suppressed;
	xtime first;		/* time of the first one */
	enum trace_event event; /* of the suppressed ones, as in the summary */
};

struct loglimit {
	struct loglimit_peer peers[LOGLIMIT_PEERS];
	unsigned nsuppressed; /* peers that have suppressed lines */
	struct {
		xtime since;
		unsigned lines, dropped;
	} events[TRACE_EVENT_COUNT];
};

/* A line that summarizes suppressed lines. */
struct loglimit_summary {
	unsigned n; /* 0: none */
	/* of all the lines; TRACE_CONN_LIMIT: there are several */
	enum trace_event event;
	char name[LOGLIMIT_NAME];
};

/*
 * loglimit_admit returns whether to write text, which begins with the address
 * of its peer if it has one. *dropped: how many lines of that event were
 * dropped before it; s: a summary to write first.
 */
bool loglimit_admit(struct loglimit *l, enum trace_event e, const char *text,
		    xtime now, unsigned *dropped, struct loglimit_summary *s);
/* loglimit_host copies the address without the port from a text like
 * "10.0.0.9:41234 ..." or "[2001:db8::9]:41234 ...". False: text does not begin
 * with the address of a peer. */
bool loglimit_host(const char *text, char name[LOGLIMIT_NAME]);
/* loglimit_due writes a summary that is due to *s; false: none is due. */
bool loglimit_due(struct loglimit *l, xtime now, struct loglimit_summary *s);

#endif
