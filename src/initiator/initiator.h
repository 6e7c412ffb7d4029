/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * initiator.h: the initiator role of RFC 7143: login, the task table, the
 * command window, task management, NOPs, text, logout. One session, one
 * connection. It talks to a Datamover below and knows no transport or clock.
 *
 * Threads: a session belongs to the thread of its connection's driver.
 * Every request that was accepted ends in exactly one call of its done.
 */
#ifndef INITIATOR_INITIATOR_H
#define INITIATOR_INITIATOR_H

#include "base/trace.h"
#include "base/xtime.h"
#include "datamover/datamover.h"
#include "iscsi/login.h"
#include "scsi/sense.h"

struct ini_session;

struct ini_config {
	struct iscsi_login_config login; /* role, want, id, CHAP, random */
	unsigned depth;			 /* requests in flight, 1 to 4096 */
	xtime login_time;		 /* from start to full feature phase */
	xtime idle_time;   /* silence before a ping; XTIME_NEVER: none */
	xtime ping_time;   /* for its answer */
	xtime logout_time; /* for the answer to a logout */
	xtime query_time;  /* until QUERY TASK asks for a command; never: not */
	struct trace *trace; /* may be NULL */
	/* The login is over: 0, or why not (iscsi_login_failure tells more).
	 * May submit; may not free the session. */
	void (*logged_in)(void *arg, int err);
	/* The connection is over; every request has been ended before. Last
	 * call. */
	void (*closed)(void *arg, int err);
	/* The target asks for something (§11.9): event, Time2Wait... */
	void (*async)(void *arg, const struct iscsi_async *a);
	/* A deadline may have come closer. */
	void (*rearm)(void *arg);
	void *arg;
};

void ini_config_default(struct ini_config *cfg);

/* ini_new copies cfg (not what it points to) and attaches itself to dm.
 * NULL: out of memory. */
struct ini_session *ini_new(const struct ini_config *cfg, struct dm_conn *dm);
/* ini_free: before ini_start, or after closed. */
void ini_free(struct ini_session *s);

/* ini_start begins the login: the transport is connected. */
void ini_start(struct ini_session *s, xtime now);

const struct iscsi_login_failure *ini_failure(const struct ini_session *s);
const struct iscsi_params *ini_params(const struct ini_session *s);
int ini_tpgt(const struct ini_session *s);
const char *ini_transport(const struct ini_session *s);

/* ---- SCSI commands ---- */

#define INI_SENSE_MAX 252

struct ini_task {
	/* set by the caller */
	uint64_t lun; /* wire form */
	uint8_t cdb[48];
	uint8_t cdb_len;
	bool read, write;
	uint8_t attr;	  /* enum iscsi_attr */
	uint8_t priority; /* RFC 7144 §5.1.1; 0: none */
	bool immediate;
	struct bufv in, out; /* borrowed until done */
	xtime deadline;	     /* XTIME_NEVER: none */
	void (*done)(struct ini_task *t);
	/* set before done */
	/* 0: status is there. ERR_TIMEOUT, ERR_CLOSED, ...; ERR_ABORTED: the
	 * target has dropped it, and will not answer */
	int err;
	uint8_t status;
	bool underflow, overflow;
	uint32_t resid;
	uint16_t sense_len;
	uint8_t sense[INI_SENSE_MAX];
	uint32_t in_done; /* bytes of `in` that came */
	/* the session's own */
	struct dm_task dm;
	struct ini_session *session;
	struct list link;
	uint32_t cmdsn;
	uint8_t state;
	/* cleared.c */
	xtime looked_at; /* sent, or last asked about */
	uint8_t missing; /* how often in turn the target knew nothing of it */
	bool suspect;	 /* an attention says that it may be gone */
};

/* ini_submit: t is borrowed until done, which may come from within only when
 * the connection is gone already. */
void ini_submit(struct ini_session *s, struct ini_task *t, xtime now);

/* ---- everything else that is answered ---- */

struct ini_request {
	/* rsp: NULL when err is not 0. Borrowed for the call. */
	void (*done)(struct ini_request *r, int err,
		     const struct dm_control *rsp);
	xtime deadline;
	/* the session's own */
	uint32_t itt;
	struct list link;
};

/* Each returns 0 (done will be called) or an error (it will not). */
int ini_task_management(struct ini_session *s, struct ini_request *r,
			enum iscsi_tmf function, uint64_t lun,
			const struct ini_task *ref, xtime deadline);
int ini_ping(struct ini_session *s, struct ini_request *r, const void *data,
	     size_t len, xtime deadline);
/* ini_text sends text (len bytes) with F set; ttt is ISCSI_RESERVED_TAG, or
 * the tag of a response that is to be continued (§11.10.4). */
int ini_text(struct ini_session *s, struct ini_request *r, const void *text,
	     size_t len, uint32_t ttt, xtime deadline);

/* ini_logout ends the session orderly; closed follows. */
void ini_logout(struct ini_session *s, xtime now);
/* ini_kill drops the connection; closed follows. */
void ini_kill(struct ini_session *s, int err);

xtime ini_deadline(const struct ini_session *s);
void ini_expire(struct ini_session *s, xtime now);

/* Commands in flight and waiting for the window. */
unsigned ini_in_flight(const struct ini_session *s);

#endif
