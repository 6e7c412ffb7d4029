/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h: what a worker counts: commands, errors and latencies of each unit,
 * and counters of sessions that have ended. Each worker has its own counters,
 * so a command pays with a few stores in memory of its own thread. The caller
 * adds the workers up.
 */
#ifndef TARGET_STATS_H
#define TARGET_STATS_H

#include <stdint.h>

#include "base/list.h"
#include "base/xtime.h"

struct dev_lu;
struct tgt_worker;

/* ---- latencies ---- */

/*
 * A histogram of latencies in nanoseconds: bucket 0 has those below
 * 2^TGT_LATENCY_FIRST, the last bucket those from 2^TGT_LATENCY_LAST on, and
 * four buckets of equal width divide each power of two between them.
 */
#define TGT_LATENCY_FIRST   10
#define TGT_LATENCY_LAST    34
#define TGT_LATENCY_BUCKETS (4 * (TGT_LATENCY_LAST - TGT_LATENCY_FIRST) + 2)

struct tgt_latency {
	uint64_t count[TGT_LATENCY_BUCKETS];
	uint64_t sum; /* ns */
};

/* tgt_latency_bucket returns the number of the bucket for a latency. */
unsigned tgt_latency_bucket(xtime latency);
/* tgt_latency_limit returns the lowest latency that is above bucket b;
 * XTIME_NEVER for the last bucket. */
xtime tgt_latency_limit(unsigned b);
/* tgt_latency_total returns the number of latencies in *l. */
uint64_t tgt_latency_total(const struct tgt_latency *l);
/* tgt_latency_add adds the latencies of *from to *to. */
void tgt_latency_add(struct tgt_latency *to, const struct tgt_latency *from);

/* ---- units ---- */

enum tgt_op {
	TGT_OP_READ,  /* READ(6) to READ(32) */
	TGT_OP_WRITE, /* WRITE(6) to WRITE(32), WRITE AND VERIFY */
	TGT_OP_OTHER,
	TGT_OPS,
};

/* How a command ended that did not end with GOOD. */
enum tgt_error {
	TGT_ERROR_MEDIUM,    /* MEDIUM ERROR, HARDWARE ERROR */
	TGT_ERROR_ATTENTION, /* UNIT ATTENTION */
	TGT_ERROR_CHECK,     /* CHECK CONDITION with another sense key */
	TGT_ERROR_BUSY,	     /* BUSY, TASK SET FULL */
	TGT_ERROR_CONFLICT,  /* RESERVATION CONFLICT */
	TGT_ERROR_OTHER,     /* ACA ACTIVE, TASK ABORTED and others */
	TGT_ERRORS,
};

struct tgt_op_stats {
	uint64_t bytes;
	struct tgt_latency latency; /* its total is the number of commands */
};

struct tgt_unit_stats {
	const struct dev_lu *lu; /* compared only: it may be gone */
	uint16_t lun;		 /* dev_lu_lun: the number of the unit */
	struct tgt_op_stats op[TGT_OPS];
	uint64_t errors[TGT_ERRORS];
	/* commands in progress; set by tgt_worker_units */
	unsigned depth;
};

/* tgt_op_name returns "read", "write" or "other". */
const char *tgt_op_name(enum tgt_op op);
/* tgt_error_name returns "medium_error" and so on. */
const char *tgt_error_name(enum tgt_error e);

/* tgt_worker_units calls fn for each unit to which the worker has had a
 * command, by number. The struct is borrowed for the call. On the worker's
 * thread. */
void tgt_worker_units(struct tgt_worker *w,
		      void (*fn)(void *arg, const struct tgt_unit_stats *u),
		      void *arg);

/* tgt_worker_count counts the commands of this turn with their latencies. On the
 * worker's thread. */
void tgt_worker_count(struct tgt_worker *w);

/* ---- sessions ---- */

struct tgt_counters {
	uint64_t commands, bytes_read, bytes_written;
	uint64_t errors;    /* commands that did not end with GOOD */
	uint64_t solicited; /* WRITEs whose data were asked for (R2T, RDMA Read) */
	uint64_t waits;	    /* commands that waited for buffer memory */
};

/* The counters of the sessions of one target over one transport that have
 * ended. */
struct tgt_ended {
	struct list link;
	const char *transport;
	struct tgt_counters count;
	char target[224]; /* ISCSI_NAME_MAX + 1; "" for discovery */
};

/* tgt_worker_ended calls fn for each target and transport. On the worker's
 * thread. */
void tgt_worker_ended(const struct tgt_worker *w,
		      void (*fn)(void *arg, const struct tgt_ended *e),
		      void *arg);
/* tgt_counters_add adds *from to *to. */
void tgt_counters_add(struct tgt_counters *to, const struct tgt_counters *from);

/* ---- the worker ---- */

/* Login statuses that are counted: classes 2 and 3 with details below 16. */
#define TGT_LOGIN_STATUSES 32

struct tgt_worker_stats {
	/* refused logins; [16 * (class - 2) + detail] */
	uint64_t refused[TGT_LOGIN_STATUSES];
	uint64_t rejects;    /* Reject PDUs */
	uint64_t functions;  /* task management functions */
	uint64_t reinstated; /* sessions that a new login replaced */
	uint64_t dropped;    /* connections that ended with an error */
	uint64_t slow;	     /* commands that took tgt_config.slow_time */
	/* tasks now, by what they wait for */
	unsigned data, memory, turn, device, transport, abort;
};

/* tgt_worker_stats fills *s. On the worker's thread. */
void tgt_worker_stats(const struct tgt_worker *w, struct tgt_worker_stats *s);

#endif
