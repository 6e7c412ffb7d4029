/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: what the files of libiser share.
 *   context.c  the loop, messages
 *   url.c      URLs
 *   session.c  connecting, closing
 *   io.c       commands
 *   reconnect.c what a lost connection leaves, and the way back
 *   block.c    the blocking calls of a block device
 *   discover.c SendTargets
 *   verbs.c    sessions over RDMA devices
 *   rdma.c, rdma_listen.c, rdma_post.c: RDMA connections (rdma.h)
 */
#ifndef LIB_INTERNAL_H
#define LIB_INTERNAL_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "initiator/initiator.h"
#include "io/io.h"
#include "iser/iser.h"
#include "net/conn.h"

#define DEFAULT_DEPTH	128
#define DEFAULT_TIMEOUT 0
#define CONNECT_TIME	(15 * XTIME_S)
#define DEFAULT_PORT	3260

struct iser_context {
	struct io_loop *loop;
	char initiator[ISCSI_NAME_MAX + 1];
	char message[512];
	struct list sessions; /* iser_session.link */
	struct list rdma;     /* iser_rdma.link */
	struct list rdma_listeners;
	struct net_verbs *verbs; /* NULL until one is wanted */
	uint32_t next_isid;
	struct trace trace;
	void (*log)(void *arg, int level, const char *text);
	void *log_arg;
};

enum session_state {
	SESSION_CONNECTING, /* TCP */
	SESSION_LOGIN,
	SESSION_UP,
	SESSION_AWAY,	 /* lost, and on the way back: commands wait */
	SESSION_CLOSING, /* a logout, or a drop, is under way */
	SESSION_DOWN,	 /* nothing is left of the connection */
};

/* What INQUIRY last said of a unit, block.c's. */
struct lib_type {
	bool is_known;
	uint8_t type;
	int lun;
};

/* A command on the wire, for an iser_io. */
struct lib_task {
	struct ini_task task;
	struct iser_io *io;
	struct lib_task *next; /* free, or to be issued again */
	unsigned tries;	       /* how often it was issued again */
	bool forgave;	       /* it met the unit attention of a new session */
};

/* The way back of a lost session, reconnect.c's. */
struct lib_back {
	unsigned attempts; /* since a command was answered */
	unsigned count;	   /* how often it came back */
	unsigned time2wait;
	bool leaving; /* the target asked for a logout */
	int held;     /* socket of the connection that was lost, or -1 */
	struct io_timer timer;
	struct lib_task *redo, **redo_tail;
};

struct iser_session {
	struct iser_context *ctx;
	struct list link;
	struct iser_url url;
	enum session_state state;
	int err; /* why it is DOWN */
	/* the connection; NULL when there is none */
	struct net_connector *connector;
	struct net_conn *net;
	struct ini_session *ini;
	bool rdma;	     /* it begins in RDMA mode */
	bool plain;	     /* transport=auto came down to iSCSI */
	bool login_answered; /* by a target that refused it */
	bool rdma_failed;    /* it was agreed on, and then did not work */
	struct ini_request probe;
	char rules[128];
	struct io_timer timer;
	struct io_defer rearm;
	struct iscsi_chap_secret chap_out, chap_in;
	uint8_t isid[6]; /* the same in every login: §6.3.5 */
	struct lib_back back;
	/* how connecting ended */
	void (*connected)(void *arg, struct iser_session *s, int err);
	void *connected_arg;
	/* commands */
	struct lib_task *tasks, *free_tasks;
	unsigned depth;
	struct iser_io *queue, **queue_tail;   /* no task is free */
	struct iser_io *failed, **failed_tail; /* to be told from the loop */
	struct io_defer tell_failed;
	struct net_conn_stats past_stats; /* of connections that are gone */
	struct lib_type typed;
};

/* context.c */
int lib_fail(struct iser_context *ctx, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int lib_error(int err); /* ERR_... and -Exxx to enum iser_error */
/* Turns the loop until *flag. */
int lib_wait(struct iser_context *ctx, const bool *flag);

/* rdma.c */
void lib_rdma_free_all(struct iser_context *ctx);

/* verbs.c */
int lib_verbs_connect(struct iser_session *s);
int lib_verbs_open(struct iser_context *ctx);
/* One address; names are looked up in place, which may take its time. */
int lib_verbs_resolve(struct iser_context *ctx, const char *host,
		      uint16_t number, struct net_addr *a);

/* io.c */
int lib_io_init(struct iser_session *s);
void lib_io_fini(struct iser_session *s);
void lib_io_fail_queue(struct iser_session *s, int err);
void lib_io_fail_later(struct iser_session *s, struct iser_io *io, int err);
void lib_io_pump(struct iser_session *s);
xtime lib_io_deadline(const struct iser_session *s, xtime now);

/* block.c */
/* A command of whoever's ended with a status: is it news of the unit's type? */
void lib_type_news(struct iser_session *s, const struct iser_io *io);

/* reconnect.c */
void lib_back_init(struct iser_session *s);
void lib_back_fini(struct iser_session *s);
/* Whether a command may be carried out twice. */
bool lib_back_may_repeat(uint8_t opcode);
/* Whether an ended task is not for the caller yet. */
bool lib_back_keeps(struct iser_session *s, struct lib_task *lt);
/* The connection, or the attempt at one, is over: true if another attempt
 * follows; false: the session is down and its commands have failed. */
bool lib_back_next(struct iser_session *s);
/* The connection is over: its socket may be kept ... */
void lib_back_lost(struct iser_session *s);
/* ... and ends here, ahead of the next one's first byte. */
void lib_back_let_go(struct iser_session *s);
void lib_back_logged_in(struct iser_session *s);
void lib_back_async(struct iser_session *s, const struct iscsi_async *a);
/* Logs out once nothing is under way, if the target asked for that. */
void lib_back_leave(struct iser_session *s);

/* session.c */
/* lib_session_adopt logs in over a device's connection, which it takes over
 * whatever it returns. */
struct verbs_conn;
int lib_session_adopt(struct iser_session *s, struct verbs_conn *vc);
void lib_session_drop(struct iser_session *s, int err);
/* Begins to connect; s->err says why not. */
int lib_session_connect(struct iser_session *s);
void lib_default_url(struct iser_url *url);

#endif
