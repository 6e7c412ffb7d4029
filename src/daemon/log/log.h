/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h: the sink of base/trace.h and of say.h: lines on standard error, within
 * the limits of loglimit.h. Safe from any thread.
 */
#ifndef DAEMON_LOG_LOG_H
#define DAEMON_LOG_LOG_H

#include <pthread.h>

#include "base/trace.h"
#include "daemon/log/log_line.h"
#include "daemon/log/loglimit.h"

#define LOG_PEERS 8

/* A peer whose lines have a level of their own. */
struct log_peer {
	/* the address as IPv6, IPv4 mapped; lines of all addresses with the
	 * same first bits belong to the peer */
	uint8_t address[16];
	unsigned bits;
	enum trace_level level;
	char name[LOGLIMIT_NAME]; /* as the administrator wrote it */
};

struct log {
	/* trace.level is the highest of level and the levels of all peers */
	struct trace trace;
	pthread_mutex_t lock;	/* guards what follows */
	enum log_format format; /* never LOG_AUTO */
	struct loglimit limit;
	enum trace_level level; /* of lines about other peers, or none */
	struct log_peer peers[LOG_PEERS];
	unsigned npeers;
	struct {
		void (*take)(void *arg, const char *line, size_t len);
		void *arg;
	} tap; /* take NULL: none */
};

/* log_init makes l the sink of say, too, until log_fini. */
void log_init(struct log *l, enum trace_level level, enum log_format format);
/* log_fini: say writes to standard error directly again. */
void log_fini(struct log *l);
/* log_set_level sets the level of all lines and forgets the peers that have a
 * level of their own. */
void log_set_level(struct log *l, enum trace_level level);
/* log_set_format changes the form of the lines from then on. */
void log_set_format(struct log *l, enum log_format format);
/*
 * log_set_peer gives lines about a peer a level of their own, if it is higher
 * than that of other lines; else the peer loses its own level. peer is an
 * address, or "ADDRESS/BITS". Returns 0, -EINVAL (not an address) or -ENOSPC
 * (there are LOG_PEERS already).
 */
int log_set_peer(struct log *l, const char *peer, enum trace_level level);
/*
 * log_set_tap makes the log pass each event of level notice or more severe to take,
 * as a line of JSON (log_line.h) that is borrowed for the call, whatever the level and
 * the limits of the log are. take is called on any thread, with the lock of the log, so
 * it must not log. NULL ends that.
 */
void log_set_tap(struct log *l,
		 void (*take)(void *arg, const char *line, size_t len),
		 void *arg);
/* log_flush writes the summaries of suppressed lines that are due. */
void log_flush(struct log *l);

#endif
