/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser.h: libiser, an iSCSI and iSER initiator.
 *
 * Threads: a context is an event loop with sessions. One thread at a time may
 * use a context, its sessions and their commands; different contexts are
 * independent. Other threads use iser_call. Blocking calls run the loop until they have their result. A
 * program with a loop of its own polls iser_get_fd and calls iser_service.
 * Callbacks are called from within iser_service or a blocking call of the same
 * context. A callback may call functions that do not block; it must not free the
 * session or the context.
 *
 * Ownership: a function borrows what it is given for the duration of the call,
 * unless its comment says otherwise.
 *
 * Errors: a function that returns int returns 0 (or a count where its comment
 * says so), or a negative enum iser_error. iser_strerror describes the code, and
 * iser_message returns the reason with the names that are involved.
 *
 * Units: lengths are bytes, lba and blocks are logical blocks of the unit.
 *
 * Binary interface: version 1.0 of these headers is the first one whose interface
 * stays. Within the soname libiser.so.1 no function changes or disappears, no
 * value changes, and the size and the layout of every struct that a caller
 * allocates stay the same. New members take the place of `reserved` ones, and 0
 * in them has the meaning of today. A caller therefore zeroes such a struct before
 * it fills in members (a designated initializer does); a call that finds a reserved
 * member set fails with ISER_E_INVALID. Structs that the library allocates may
 * become longer at their end, and enums may get further values: treat a value that
 * the program does not know as "another one".
 *
 * Forms of a call: a blocking call has a form that returns at once, iser_X_start
 * with a callback; calls that are one SCSI command have a prepared one, iser_prep_X,
 * for iser_submit; those for bytes (iser/unit.h) are requests for
 * iser_unit_submit.
 */
#ifndef ISER_ISER_H
#define ISER_ISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
# define ISER_API __attribute__((visibility("default")))
#else
# define ISER_API
#endif

/* The results of all functions that return int. */
enum iser_error {
	ISER_OK = 0,
	ISER_E_NOMEM = -1,     /* out of memory */
	ISER_E_INVALID = -2,   /* an argument or URL is not valid */
	ISER_E_CONNECT = -3,   /* the transport could not be connected */
	ISER_E_LOGIN = -4,     /* the target refused the login */
	ISER_E_AUTH = -5,      /* authentication failed */
	ISER_E_NOT_FOUND = -6, /* no such target or unit */
	ISER_E_TIMEOUT = -7,   /* no answer before the deadline */
	ISER_E_CLOSED = -8,    /* the connection was lost */
	ISER_E_SCSI = -9,      /* a SCSI status other than GOOD */
	ISER_E_PROTOCOL = -10, /* the peer broke the protocol */
	ISER_E_UNSUPPORTED = -11,
	ISER_E_SYSTEM = -12, /* a system call failed */
	/* the target dropped the command: another initiator reset the unit or
	 * cleared its task set, or the target has failed */
	ISER_E_ABORTED = -13,
	/* the target reported success and moved fewer bytes than the command
	 * asked for: iser_io.transferred says how many */
	ISER_E_SHORT = -14,
	ISER_E_MISCOMPARE = -15, /* COMPARE AND WRITE: the data differ */
	/* none of the paths, of one or several, carried commands within
	 * replacement_timeout */
	ISER_E_NO_PATH = -16,
	/* the LUN leads to another unit than before, or its block size or size
	 * has changed: no command that reads or changes data is sent */
	ISER_E_CHANGED = -17,
};

/* iser_strerror returns a description of an enum iser_error, a static string. It
 * may be called from any thread. */
ISER_API const char *iser_strerror(int err);
/* The version of this header: a program may test it at compile time. */
#define ISER_VERSION_MAJOR 1
#define ISER_VERSION_MINOR 0

/* iser_version returns the version of the library that is in use, such as "1.0.0", a
 * static string. It may be called from any thread. */
ISER_API const char *iser_version(void);

/* ---- context ---- */

struct iser_context;

/* iser_context_new makes a context, which the caller frees by iser_context_free.
 * initiator_name is an iSCSI name (RFC 7143 §4.2.7), copied, or NULL for
 * "iqn.2026-01.org.openiser:HOSTNAME". Returns NULL without memory or file
 * descriptors, and with errno EINVAL if the name is longer than 223 bytes. */
ISER_API struct iser_context *iser_context_new(const char *initiator_name);
/* iser_context_free disconnects all sessions and RDMA connections of the context,
 * which waits for their logouts (bounded), and frees them with the context. NULL
 * is allowed. */
ISER_API void iser_context_free(struct iser_context *ctx);
/* iser_message returns the reason of the last failure of a call with this
 * context, as escaped text; "" before the first failure. The string is valid
 * until the next call with the context. */
ISER_API const char *iser_message(const struct iser_context *ctx);
/* iser_set_log makes the library log through fn: events of the levels 0 (error)
 * to `level`, at most 4 (debug). fn is called with arg, the level of the event
 * and its text, which is valid during the call; it must not call the library.
 * fn = NULL, the default: no log. */
ISER_API void iser_set_log(struct iser_context *ctx, int level,
			   void (*fn)(void *arg, int level, const char *text),
			   void *arg);

/* iser_get_fd returns the descriptor that a program with a loop of its own polls
 * for iser_which_events, for at most iser_next_timeout milliseconds, before it
 * calls iser_service. The context owns the descriptor. */
ISER_API int iser_get_fd(struct iser_context *ctx);
/* iser_which_events returns the poll events to wait for (POLLIN). */
ISER_API int iser_which_events(struct iser_context *ctx);
/* iser_next_timeout returns the milliseconds until the next deadline of the
 * context; 0: a deadline has passed; -1: there is none. */
ISER_API int iser_next_timeout(struct iser_context *ctx);
/* iser_service runs one turn of the loop, with the callbacks of what has
 * happened. It waits for an event at most timeout_ms milliseconds (0: does not
 * wait; negative: without limit). ISER_E_SYSTEM: the loop has failed. */
ISER_API int iser_service(struct iser_context *ctx, int timeout_ms);
/* iser_set_spin makes the loop poll for up to this many microseconds after the
 * last event before it sleeps; 0, the default: it sleeps at once. */
ISER_API void iser_set_spin(struct iser_context *ctx, unsigned microseconds);

/* A call from another thread. */
struct iser_call {
	void *library[4]; /* private to the library */
	void (*run)(struct iser_call *c);
	void *arg; /* the caller's */
};
/*
 * iser_call makes the thread that uses ctx call c->run, soon and once, from within
 * iser_service or a blocking call. This function alone may be called from any
 * thread, at any time before iser_context_free begins. The caller fills in run and
 * arg; the library borrows c until run is called. Calls of one thread are run in
 * their order.
 */
ISER_API void iser_call(struct iser_context *ctx, struct iser_call *c);

/* ---- URLs: iscsi://[USER[%PASSWORD]@]HOST[:PORT]/IQN/LUN[?KEY=VALUE...] ---- */

#define ISER_NAME_MAX 224

/* How a target reports the end of commands that a function aborts (RFC 7143 §13.23); the
 * values of the URL key task_reporting. */
enum iser_task_reporting {
	/* fast-abort in a session with several connections, else rfc3720 */
	ISER_REPORTING_DEFAULT = 0,
	ISER_REPORTING_RFC3720 = 1,    /* "rfc3720" */
	ISER_REPORTING_FENCE = 2,      /* "response-fence": §4.2.2.3.3 */
	ISER_REPORTING_FAST_ABORT = 3, /* "fast-abort": §4.2.3.4 */
};

/* A parsed URL. The caller may change each member between iser_url_parse and
 * iser_connect. */
struct iser_url {
	char transport[8]; /* "tcp", "iser", "auto": see iser_url_parse */
	char start[8];	   /* "rdma", "stream" */
	char compat[8];	   /* "linux", "strict" */
	char rcap[8];	   /* "iwarp", "verbs" */
	char host[256];
	uint16_t port;
	char target[ISER_NAME_MAX]; /* empty in a discovery URL */
	int lun;		    /* -1: none given */
	/* CHAP, one way and mutual; empty: none */
	char user[ISER_NAME_MAX], password[128];
	char target_user[ISER_NAME_MAX], target_password[128];
	/* keys: initiator=IQN, header_digest= and data_digest= none, crc32c,
	 * none,crc32c or crc32c,none, timeout=SECONDS, depth=N, reconnect=N,
	 * retry=SECONDS, priority=N, connections=N, error_recovery_level=N,
	 * data_pdu_in_order= and data_sequence_in_order= yes or no,
	 * task_reporting= rfc3720, response-fence or fast-abort,
	 * initial_r2t=, immediate_data=, mpa_crc= and iser_hello= yes or no, transport=, start=, compat=, rcap=, password_file= and
	 * target_password_file= a file with the secret in one line, which no other
	 * user may read, and the names of the members from login_timeout on */
	char initiator[ISER_NAME_MAX];
	char header_digest[16], data_digest[16];
	/* Seconds that a command may take, each time it is issued; then the
	 * connection is dropped and the command ends with ISER_E_TIMEOUT. 0,
	 * the default: no limit. */
	unsigned timeout;
	unsigned depth; /* commands in progress; 0: the default, 128 */
	/*
	 * How often a lost session logs in again, without a command answered in
	 * between, before its commands fail; 0, the default: not at all, except
	 * once after a logout that the target asked for. Each
	 * command that may be executed twice (READ, WRITE, queries) is issued
	 * again at most as often, also if it timed out or the target dropped
	 * it. Others fail with ISER_E_CLOSED, ISER_E_TIMEOUT or
	 * ISER_E_ABORTED. The library does not know which data a unit had in a
	 * volatile cache when it lost power.
	 */
	unsigned reconnect;
	/*
	 * Seconds after the first refusal of a command for which the library
	 * issues it again: after BUSY and TASK SET FULL (not before the time of
	 * the status qualifier), and after NOT READY of a unit that is becoming
	 * ready. The status is the caller's after that time. The default is 30;
	 * 0: the status is the caller's at once. After a unit attention a
	 * command is issued again at once, at most eight times, except for
	 * reads and writes if the medium may have changed; after an attention
	 * of doubt (see iser_io) once the unit is identified. None of these
	 * commands was executed (SAM-5 §5.3.1, §5.14).
	 */
	unsigned retry;
	unsigned priority; /* of commands without one: see iser_io */
	/* Connections of the session, 1 to 16; 0: 1. The session has fewer if
	 * the target grants fewer (MaxConnections, RFC 7143 §13.2) or refuses
	 * one; see iser_params. Commands are spread over them. */
	unsigned connections;
	/* ErrorRecoveryLevel that the login proposes, 0 (the default) to 2. At 1, if the
	 * target grants it, PDUs that a data digest finds damaged are recovered (RFC
	 * 7143 §7.1.4.1), which iSER does not need (RFC 7145 §10.2.1); at 2, the
	 * commands of a lost connection also go on over the other connections of the
	 * session (§7.1.4.3), and with `reconnect` a session that has lost its last
	 * connection is continued (§6.3.6): its commands go on, also those that must not
	 * be issued twice. */
	unsigned error_recovery_level;
	/*
	 * Times in seconds, with the names of open-iscsi; 0: the default,
	 * ISER_NO_TIME: none. login_timeout: to connect, and then to log in
	 * (15); logout_timeout: for the answer to a logout (5);
	 * noop_out_interval: silence after which a NOP-Out is sent (5; none: it
	 * is not sent); noop_out_timeout: for its answer, then the connection
	 * is lost (10).
	 */
	unsigned login_timeout, logout_timeout;
	unsigned noop_out_interval, noop_out_timeout;
	/*
	 * Several paths (iser_connect_paths). replacement_timeout: how long
	 * commands wait while no path carries commands, and how long a WRITE
	 * that was in progress on a lost path waits for the end of the old
	 * session before another path gets it (120; none: not at all). With one
	 * path and `reconnect`: how long commands wait for the next login (no
	 * limit; none: not at all), while the attempts go on.
	 * polling_interval: between two checks of a path (5).
	 */
	unsigned replacement_timeout, polling_interval;
	char paths[8];	 /* "all": all portals of the target; or "" */
	char policy[16]; /* "round-robin" (or ""), "queue-length", "failover" */
	char failback[16]; /* "immediate" (or ""), "manual" */
	char alua[16];	   /* "implicit" (or ""), "explicit", "none" */
	/* The algorithms of CHAP that are offered, the best one first: md5, sha1,
	 * sha256, sha3-256, separated by commas (RFC 7143 §12.1.3). "": sha256,
	 * sha3-256, sha1, md5. */
	char auth[32];
	/* MaxOutstandingR2T, 1 to 65535 (RFC 7143 §13.17); 0: the default, 4, or 1
	 * with an error_recovery_level above 0, as §13.19 requires. */
	unsigned max_outstanding_r2t;
	/* The login proposes DataPDUInOrder=No, DataSequenceInOrder=No (§13.18,
	 * §13.19). If the target agrees, it may send data, and ask for them, in any
	 * order. */
	bool data_pdu_in_any_order, data_sequence_in_any_order;
	/* What the login proposes over TCP: InitialR2T, ImmediateData,
	 * MaxBurstLength, FirstBurstLength (RFC 7143 §13.10, §13.11, §13.13,
	 * §13.14), and the MaxRecvDataSegmentLength of this end (§13.12). The
	 * first two are an enum iser_wish; lengths are 512 to 16777215 bytes,
	 * or 0: the default of the library. */
	uint8_t initial_r2t, immediate_data;
	uint32_t first_burst_length, max_burst_length;
	uint32_t max_recv_data_segment_length;
	/* Over software iWARP: do not ask for the CRC of MPA. The connection has
	 * none if the target does not ask for it either (RFC 5044 §4.4). */
	bool no_mpa_crc;
	/* TaskReporting that the login proposes (§13.23): enum iser_task_reporting */
	uint8_t task_reporting;
	/* Over iSER: ask for the Hello exchange, in which the ends declare their versions and
	 * how many RDMA Reads they have (iSERHelloRequired=Yes, RFC 7145 §6.10). A target
	 * that does not know the key is used without it. */
	bool iser_hello;
	uint8_t reserved_bytes[5]; /* 0 */
	uint64_t reserved[14];	   /* 0 */
};

/* A key of iser_url that is yes, no, or not given. */
enum iser_wish {
	ISER_DEFAULT,
	ISER_YES,
	ISER_NO,
};

#define ISER_NO_TIME (~0u)

/*
 * iser_url_parse reads a full URL, or, where discovery is true, also
 * "HOST[:PORT]" and "iscsi://HOST[:PORT]", each also with the tag of a portal group,
 * as in iser_portal. It fills in *url with the defaults of
 * all members that the URL leaves out. ISER_E_INVALID: not such a URL; why (size
 * bytes, always ended) gets the reason.
 *
 * transport: tcp (iSCSI without RDMA, the default of iscsi://), iser (the
 * default of iser://), or auto (iSER if the target supports it, else iSCSI).
 * start says how iSER begins: rdma (in RDMA mode from the first byte, as Linux
 * does; the default) or stream (the login goes over TCP and the connection
 * changes to RDMA mode at its end, RFC 7145 §5.1). compat is linux or strict:
 * which reading of RFC 7145 is used (default: linux for start=rdma, strict for
 * start=stream). rcap, for start=rdma: iwarp (software iWARP over TCP; the
 * default) or verbs (an RDMA device of this machine).
 *
 * URLs of libiscsi are accepted: USER:PASSWORD, %XX in the target name, and the keys
 * "iser" (transport=iser) and "auth=md5". force_usn and LIBISCSI_RDMA_ACK_TIMEOUT
 * are errors. As in libiscsi, the environment variables LIBISCSI_CHAP_USERNAME, _PASSWORD, _TARGET_USERNAME and
 * _TARGET_PASSWORD replace what the URL leaves out.
 */
ISER_API int iser_url_parse(struct iser_url *url, const char *text,
			    bool discovery, char *why, size_t size);

/* ---- discovery ---- */

/* One address of a target. */
struct iser_portal {
	struct iser_portal *next;
	char address[288]; /* "HOST:PORT,TPGT" */
};

/* One target of a discovery. The library allocates these; members may be added at
 * the end. */
struct iser_target {
	struct iser_target *next;
	char name[ISER_NAME_MAX];
	char address[288]; /* of the first portal; may be empty */
	/* The portals in the order of the answer, each once. NULL: none was
	 * named, so the target is at the portal that was asked (RFC 7143
	 * appendix C). */
	struct iser_portal *portals;
};

/*
 * iser_discover asks the portal for its targets (SendTargets=All, RFC 7143
 * appendix C) in a discovery session, and blocks. Each target is in *list once;
 * the caller frees the list by iser_targets_free. *list is NULL after a failure
 * and for a portal without targets. Fails as iser_connect does; an answer of
 * more than 1 MiB, of too many parts or of more than a minute is ISER_E_PROTOCOL
 * or ISER_E_TIMEOUT. Names and addresses come from the peer: escape them before
 * they are shown.
 */
ISER_API int iser_discover(struct iser_context *ctx, const struct iser_url *url,
			   struct iser_target **list);
struct iser_discovery;
/*
 * iser_discover_start does the same and returns at once. done is called once with
 * arg, the result of iser_discover and the list, which the caller frees; the
 * discovery is freed after it. NULL: *err has the reason, and done is not called.
 */
ISER_API struct iser_discovery *
iser_discover_start(struct iser_context *ctx, const struct iser_url *url,
		    void (*done)(void *arg, int err, struct iser_target *list),
		    void *arg, int *err);
/* iser_discover_cancel ends a discovery before its done, which is not called, and
 * frees it. It blocks as iser_disconnect does. NULL is allowed. */
ISER_API void iser_discover_cancel(struct iser_discovery *d);
/* iser_targets_free frees a list of iser_discover. NULL is allowed. */
ISER_API void iser_targets_free(struct iser_target *list);

/* ---- sessions ---- */

struct iser_session;

/*
 * iser_connect connects, logs in and blocks until that has succeeded or failed.
 * Redirections (RFC 7143 §11.13.5) are followed, at most eight, to any host,
 * with the same CHAP secrets. url is copied. Returns a session that the caller
 * frees by iser_disconnect, or NULL with the error in *err, such as
 * ISER_E_CONNECT, ISER_E_LOGIN, ISER_E_AUTH, ISER_E_NOT_FOUND or ISER_E_TIMEOUT.
 */
ISER_API struct iser_session *
iser_connect(struct iser_context *ctx, const struct iser_url *url, int *err);
/*
 * iser_connect_start begins to connect and returns at once. done is called once
 * with arg, the session and the result of iser_connect. The caller frees the
 * session by iser_disconnect in either case, not from within done; before done,
 * that cancels the attempt, and done is not called. Returns NULL, with the error
 * in *err and without a call of done, if connecting cannot begin.
 */
ISER_API struct iser_session *
iser_connect_start(struct iser_context *ctx, const struct iser_url *url,
		   void (*done)(void *arg, struct iser_session *s, int err),
		   void *arg, int *err);
/* iser_disconnect logs out, waits for the answer (bounded) and frees s. Commands
 * that have not completed end with an error before it returns. NULL is
 * allowed. */
ISER_API void iser_disconnect(struct iser_session *s);
/* iser_disconnect_start begins to log out and returns at once. done is called once
 * with arg, after s was freed and all of its commands have ended; from this call
 * on, the caller uses s no more, except for commands whose done was not called
 * yet. done may be NULL. iser_context_free frees s, too; then done is not called. This
 * function may be called from within a callback. */
ISER_API void iser_disconnect_start(struct iser_session *s,
				    void (*done)(void *arg), void *arg);
/* iser_is_connected returns whether commands can be submitted: the session is
 * logged in, or is logging in again after a loss. */
ISER_API bool iser_is_connected(const struct iser_session *s);
/* iser_session_context returns the context of s, for iser_message. */
ISER_API struct iser_context *
iser_session_context(const struct iser_session *s);

/* The negotiated parameters of a session (RFC 7143 §13); the strings are valid as
 * long as the session. */
struct iser_params {
	const char *transport; /* "tcp", "iser"; "none": not connected */
	const char *kind;      /* a description of how it was established */
	/* iSER: the compatibility rules in use, "CM_HEADER ..." */
	const char *rules;
	bool header_digest, data_digest, initial_r2t, immediate_data;
	uint32_t max_recv_data_segment_length, max_send_data_segment_length;
	uint32_t max_burst_length, first_burst_length;
	uint32_t max_outstanding_r2t, error_recovery_level;
	int tpgt; /* target portal group tag; -1: not sent */
	/* connections that the session has, and MaxConnections as negotiated */
	uint32_t connections, max_connections;
	uint64_t reserved[15]; /* 0 */
};
/* iser_get_params fills in *p with what was negotiated. */
ISER_API void iser_get_params(const struct iser_session *s,
			      struct iser_params *p);

/* Counters of a session, over all its connections. */
struct iser_counters {
	uint64_t rx_bytes, tx_bytes; /* on the transport */
	uint64_t rx_calls, tx_calls; /* system calls for these bytes */
	/* payload that was copied between the caller's memory and the socket */
	uint64_t copied_bytes;
	uint64_t reconnects;   /* logins after a loss of the session */
	uint64_t reserved[16]; /* 0 */
};
/* iser_get_counters fills in *c. */
ISER_API void iser_get_counters(const struct iser_session *s,
				struct iser_counters *c);

/* iser_ping sends a NOP-Out (RFC 7143 §11.18) with len bytes, at most 8192, and
 * blocks until the NOP-In returns them. *ns is the time of that in nanoseconds.
 * ISER_E_CLOSED: the session is not connected; ISER_E_PROTOCOL: other data. */
ISER_API int iser_ping(struct iser_session *s, size_t len, uint64_t *ns);

/* iser_ping_start does the same and returns at once. done is called once with arg
 * and the result. An error that this function returns is reported here only. */
ISER_API int iser_ping_start(struct iser_session *s, size_t len,
			     void (*done)(void *arg, int err, uint64_t ns),
			     void *arg);

/*
 * The connections of a session (RFC 7143 §4.2.2): iser_url.connections are made at
 * first. One can be removed, and another one added in its place: at most
 * iser_params.max_connections. One at a time is added or removed. After a login again (iser_url.reconnect) the session has as many as the URL
 * says. ISER_E_INVALID: a session of several paths.
 */
/* iser_get_connections returns how many connections the session has, and writes their
 * connection identifiers to cids, at most max. Of several paths: of the one that the
 * next command would use. */
ISER_API unsigned iser_get_connections(const struct iser_session *s,
				       uint16_t *cids, unsigned max);
/* iser_add_connection adds a connection to the session, blocks until it is logged in,
 * and writes its identifier to *cid. After an error the session goes on as it is:
 * ISER_E_INVALID: the target permits no more; else as iser_connect. */
ISER_API int iser_add_connection(struct iser_session *s, unsigned *cid);
/* iser_add_connection_start does the same and returns at once. done is called once
 * with arg and the result. An error that this function returns is reported here
 * only. */
ISER_API int iser_add_connection_start(struct iser_session *s,
				       void (*done)(void *arg, int err,
						    unsigned cid),
				       void *arg);
/*
 * iser_remove_connection logs out of one connection (RFC 7143 §11.14, "close the
 * connection") and blocks until the connection has ended. The connection gets no new
 * commands, and is logged out when those in progress on it have ended, so that no
 * command is lost. ISER_E_TIMEOUT: that was not so within timeout seconds (0: no
 * limit), and the connection stays; ISER_E_NOT_FOUND: the session has no such
 * connection; ISER_E_INVALID: it is the last one, which iser_disconnect ends.
 */
ISER_API int iser_remove_connection(struct iser_session *s, unsigned cid,
				    unsigned timeout);
/* iser_remove_connection_start does the same and returns at once. done is called once
 * with arg and the result. An error that this function returns is reported here
 * only. */
ISER_API int iser_remove_connection_start(struct iser_session *s, unsigned cid,
					  unsigned timeout,
					  void (*done)(void *arg, int err),
					  void *arg);

/* Task management functions (RFC 7143 §11.5.1, RFC 7144 §5). */
enum iser_function {
	ISER_ABORT_TASK_SET = 2, /* the commands of this session at the unit */
	ISER_CLEAR_TASK_SET = 4, /* of all sessions */
	ISER_LUN_RESET = 5,
	ISER_TARGET_WARM_RESET = 6,
	ISER_TARGET_COLD_RESET = 7, /* drops all connections, too */
	ISER_QUERY_TASK_SET = 10,
	ISER_I_T_NEXUS_RESET = 11,
};
/*
 * iser_manage_tasks sends a task management function and blocks until the
 * response. lun is ignored by functions that concern the whole target. Commands of
 * this session that the function ends, end with ISER_E_ABORTED before it returns.
 * ISER_E_SCSI: the target did not carry it out, for example because it does not
 * support the function; iser_message has the response.
 */
ISER_API int iser_manage_tasks(struct iser_session *s,
			       enum iser_function function, int lun);
/* iser_manage_tasks_start does the same and returns at once. done is called once
 * with arg and the result. An error that this function returns is reported here
 * only. */
ISER_API int iser_manage_tasks_start(struct iser_session *s,
				     enum iser_function function, int lun,
				     void (*done)(void *arg, int err),
				     void *arg);
/* iser_lun_reset sends LOGICAL UNIT RESET: iser_manage_tasks with
 * ISER_LUN_RESET. */
ISER_API int iser_lun_reset(struct iser_session *s, int lun);
/* iser_target_reset sends TARGET WARM RESET; else as iser_lun_reset. */
ISER_API int iser_target_reset(struct iser_session *s);

/*
 * ---- several paths to one unit ----
 *
 * A session may consist of several paths: sessions with the portals, or with the
 * targets, that reach the same unit. All functions that take a session take such
 * a one, too, for this unit alone. The library logs in on each path and checks
 * that all of them reach one unit of one size: a strong designator of the logical unit
 * (VPD page 83h, SPC-4 §7.8.6) has to be the same: an NAA, EUI-64 or UUID, or a
 * serial number (page 80h), that is not a default. Paths to a unit without a strong
 * designator are refused. Commands use the paths with the best
 * access state (SPC-4 §5.16): active/optimized, else active/non-optimized, else
 * LBA dependent; the other states carry checks only.
 *
 * A path that is lost, or that does not answer its check for 30 seconds, gets no
 * commands. The library logs in there again, for as long as the session exists.
 * Commands in progress on it: those that never reached the target are issued on
 * another path, and so are commands that change nothing (READ, queries). Those
 * that change data and may be executed twice (WRITE) follow when the target cannot
 * execute the old one any more: a login with the name of the lost session has ended
 * that session (RFC 7143 §6.3.5), on the path itself or through another path to the same
 * portal group, or the portal refuses connections; else after replacement_timeout. Other commands fail, as iser_url.reconnect says. Each
 * command is issued again at most `reconnect` times, or 5 times if that is 0.
 * A command that the unit refused because of the access state was not
 * executed and goes to another path. RESERVATION CONFLICT is the caller's, and
 * so are persistent reservations: each path is a nexus of its own.
 *
 * While no path carries commands, they wait for replacement_timeout seconds, then
 * they and all further ones end with ISER_E_NO_PATH until a path returns.
 */
#define ISER_PATHS_MAX 16

/*
 * iser_paths_parse reads one URL, or several that are separated by spaces or a
 * comma before "iscsi://" or "iser://", to urls (at most max, at most
 * ISER_PATHS_MAX). The keys polling_interval, replacement_timeout, policy,
 * failback and alua of the first one count. Returns the number of URLs.
 * ISER_E_INVALID: as iser_url_parse.
 */
ISER_API int iser_paths_parse(struct iser_url *urls, unsigned max,
			      const char *text, char *why, size_t size);
/*
 * iser_connect_paths connects a session of n paths, 1 to ISER_PATHS_MAX, and
 * blocks until each path has logged in or failed to, or 3 seconds after the first
 * one has logged in. One is enough. n = 1 without paths=all is iser_connect. With
 * paths=all the paths are all portals of the target that SendTargets at the
 * URL's portal reports, which needs n = 1. ISER_E_INVALID: two paths reach
 * different units, iser_message names both; else as iser_connect.
 */
ISER_API struct iser_session *iser_connect_paths(struct iser_context *ctx,
						 const struct iser_url *urls,
						 unsigned n, int *err);
/* iser_connect_paths_start does the same and returns at once, as
 * iser_connect_start does. */
ISER_API struct iser_session *iser_connect_paths_start(
	struct iser_context *ctx, const struct iser_url *urls, unsigned n,
	void (*done)(void *arg, struct iser_session *s, int err), void *arg,
	int *err);

enum iser_path_state {
	ISER_PATH_DOWN = 0,  /* not connected; the next attempt follows */
	ISER_PATH_LOGIN = 1, /* connecting */
	ISER_PATH_CHECK = 2, /* logged in; the unit is being checked */
	ISER_PATH_READY = 3, /* carries commands if its access state permits */
};

/* One path. The library fills it in; texts are escaped. */
struct iser_path {
	char portal[288]; /* "HOST:PORT" */
	char target[ISER_NAME_MAX];
	int lun;
	enum iser_path_state state;
	/* asymmetric access state (SPC-4 table 248): 0 active/optimized,
	 * 1 active/non-optimized, 2 standby, 3 unavailable, 4 LBA dependent,
	 * 14 offline, 15 transitioning */
	uint8_t access;
	bool preferred; /* of its target port group */
	bool is_used;	/* new commands use it */
	uint8_t reserved_byte;
	uint16_t group, port; /* target port group, relative target port */
	unsigned in_progress; /* commands */
	uint64_t commands;    /* issued on this path */
	uint64_t losses;      /* of its connection */
	int err;	  /* why it is down, or was the last time; 0: never */
	char reason[220]; /* text of err */
	uint64_t reserved[8]; /* 0 */
};
/* iser_get_path fills in *p for the path of this number, from 0. ISER_E_NOT_FOUND:
 * there are not so many, or the session was not made by iser_connect_paths. */
ISER_API int iser_get_path(const struct iser_session *s, unsigned number,
			   struct iser_path *p);
/* iser_fail_back makes a session with failback=manual use its best paths again.
 * ISER_E_INVALID: not a session with several paths. */
ISER_API int iser_fail_back(struct iser_session *s);

/* ---- commands ---- */

/* The direction of the data of a command. */
enum iser_direction {
	ISER_NO_DATA,
	ISER_READ,  /* from the unit to iov */
	ISER_WRITE, /* from iov to the unit */
};

#define ISER_SENSE_MAX 252

/*
 * Which unit a command reaches: before the first command that reads or changes data
 * of a LUN (block commands, copies), after each login, and after a unit attention
 * that says that the unit may be another one or have another size (29h, 2Ah/09h, 3Fh/03h,
 * 3Fh/05h, 3Fh/0Eh), such commands wait until the library has read VPD page 83h, or
 * page 80h, and the capacity. They go on if the unit is the same, has the same block
 * size and not fewer blocks; else they end with ISER_E_CHANGED, also those that were
 * in progress, and no further one is sent. Prepared and other CDBs alike; commands
 * with no_retry do not wait.
 */

/*
 * One SCSI command. The caller zeroes the struct, fills in the first part and
 * owns the struct and all that it points to; the library borrows both from
 * iser_submit until it calls done. The struct may then be submitted again.
 * Nothing is allocated per command.
 */
struct iser_io {
	int lun; /* 0 to 16383 */
	uint8_t cdb[32];
	uint8_t cdb_len;
	enum iser_direction direction;
	struct iovec *iov; /* at most 1024 elements and 2^32 - 1 bytes */
	unsigned niov;
	void (*done)(struct iser_io *io); /* the command has ended */
	void *arg;			  /* the caller's */
	/* Command priority (SAM-5 §8.7): 1, the highest, to 15; 0: that of the
	 * URL, or none. It is sent to targets of iSCSIProtocolLevel 2 only
	 * (RFC 7144). */
	uint8_t priority;
	/* With short_ok, fewer bytes than iov holds are a success, as commands
	 * with an allocation length (INQUIRY, MODE SENSE) need it. Without it
	 * such a command ends with ISER_E_SHORT. */
	bool short_ok;
	/* With no_retry, each status of the unit ends the command, also those
	 * after which the library would issue it again (iser_url.retry). It is sent to
	 * whatever unit the LUN has. */
	bool no_retry;
	uint64_t reserved[4]; /* 0 */
	/* the result, set by the library before done */
	int err;	/* ISER_E_SCSI: see status and sense */
	uint8_t status; /* SCSI status byte */
	uint32_t resid; /* bytes of iov that were not transferred */
	bool overflow;	/* resid is what the unit had beyond iov */
	/*
	 * Bytes of iov, from its start, that the target sent or took: those
	 * that arrived, or fewer if the target's residual says so. Over iSER
	 * only the residual counts, because RDMA transfers are not visible to
	 * the initiator. The rest of iov is undefined.
	 */
	uint32_t transferred;
	uint16_t sense_len;
	uint8_t sense[ISER_SENSE_MAX];
	uint64_t reserved_result[4]; /* 0 */
	/* private to the library */
	struct iser_io *next;
	struct iser_session *session;
	int cause; /* detail of err, for iser_io_describe */
	uint64_t library[4];
};

/* iser_submit starts a command. Its end is reported by io->done, always, and not
 * from within this call. All commands that are submitted within one turn of the
 * loop leave in one system call. More commands than iser_url.depth wait for a
 * free task; their order for each unit is kept. */
ISER_API void iser_submit(struct iser_session *s, struct iser_io *io);
/*
 * One command with data in both directions, such as XDWRITEREAD (RFC 7143 §11.2.2.4).
 * Of io, iov has the data to write, and transferred, resid and overflow are about
 * these; io.direction is the library's. short_ok is for both directions.
 */
struct iser_bidi {
	struct iser_io io;
	struct iovec *in_iov; /* for the data that the unit returns */
	unsigned in_niov;     /* at most 1024 */
	/* the result, as the members of iser_io with these names */
	bool in_overflow;
	uint8_t reserved_bytes[3];
	uint32_t in_resid;
	uint32_t in_transferred;
	uint64_t reserved[8]; /* 0 */
};
/* iser_submit_bidi starts such a command; as iser_submit in all else. The end is
 * reported by io.done. iser_abort and iser_io_describe take &b->io. */
ISER_API void iser_submit_bidi(struct iser_session *s, struct iser_bidi *b);
/*
 * iser_abort ends a command that was submitted, by ABORT TASK if it was sent. io
 * must have been submitted, and its session must exist. The
 * command ends with ISER_E_ABORTED, or with its own result if that comes first or
 * if the target does not abort it; its done is called as always, and not from
 * within this call. After an abort the target may have executed the command in
 * part. ISER_E_CLOSED, ISER_E_NOMEM: the request could not be sent, and the command
 * goes on. 0 also for a command whose end is due.
 */
ISER_API int iser_abort(struct iser_io *io);
/* iser_run submits a command with a done of its own, blocks until it has ended and
 * returns io->err. */
ISER_API int iser_run(struct iser_session *s, struct iser_io *io);
/* iser_io_describe writes the result of a command to out (size bytes, always
 * ended) as text: opcode, error, status, sense key and code. */
ISER_API void iser_io_describe(const struct iser_io *io, char *out,
			       size_t size);

/*
 * ---- queries ----
 *
 * These functions block; data are read and written by requests (iser/unit.h) or by
 * prepared commands. Besides the codes in their comments they fail as
 * iser_io.err does: ISER_E_SCSI, ISER_E_SHORT, ISER_E_CLOSED, ISER_E_TIMEOUT,
 * ISER_E_ABORTED, ISER_E_PROTOCOL.
 */

/* The capacity of a unit, and what it reports about unmapped blocks. */
struct iser_capacity {
	uint64_t blocks;
	uint32_t block_size;
	uint32_t physical_block_size;
	bool thin;	      /* LBPME: logical block provisioning */
	bool reads_zeros;     /* LBPRZ: unmapped blocks read as zeros */
	uint64_t bytes;	      /* blocks * block_size, below 2^63 */
	uint64_t reserved[8]; /* 0 */
};

/*
 * iser_read_capacity fills in *c by READ CAPACITY(16) or (10), as the type of the
 * unit needs it (SBC-3 §5.15, §5.16, MMC-6 §6.24). It sends an INQUIRY first
 * unless iser_inquiry with page -1 has been answered for that unit.
 * ISER_E_UNSUPPORTED: units of that type have no capacity (tapes, enclosures).
 * ISER_E_PROTOCOL: an impossible answer (2^63 bytes or more, a block size that is
 * not a power of two from 512 to 65536), or one that lacks the number of blocks.
 */
ISER_API int iser_read_capacity(struct iser_session *s, int lun,
				struct iser_capacity *c);
/* iser_device_type returns the name of the peripheral device type in byte 0 of
 * INQUIRY data (SPC-4 table 144), a static string. */
ISER_API const char *iser_device_type(uint8_t type);
/* iser_inquiry reads a VPD page (page >= 0) or standard INQUIRY data (page -1) to
 * buf. Returns the number of bytes that came, which is at most size; the rest of
 * buf is zeros. */
ISER_API int iser_inquiry(struct iser_session *s, int lun, int page,
			  uint8_t *buf, size_t size);
/* iser_report_luns stores the LUNs of the target (REPORT LUNS) to luns, at most
 * max. Returns the number of units that the target reports, which may be more. LUNs of
 * several levels have no number here and do not count. Later commands of this
 * session have the eight bytes that the target reports for their LUN. */
ISER_API int iser_report_luns(struct iser_session *s, int *luns, int max);
/* iser_test_unit_ready returns 0 if the unit is ready for commands. ISER_E_SCSI:
 * it is not; iser_message has the reason. */
ISER_API int iser_test_unit_ready(struct iser_session *s, int lun);

/*
 * ---- prepared commands ----
 *
 * These functions fill in lun, cdb, cdb_len, direction and short_ok of a zeroed
 * io, for iser_submit or iser_run, and send nothing. The caller sets done and,
 * unless the function has a struct iser_parameters, iov and niov. With it, io
 * points to it: it must stay valid until the command has ended.
 */

/* The data of a command other than blocks: a parameter list or an answer. */
struct iser_parameters {
	struct iovec iov;
	uint8_t data[2056]; /* room for REPORT LUNS of 256 units */
};

/* iser_prep_rw prepares a READ or WRITE of blocks from lba on. */
ISER_API void iser_prep_rw(struct iser_io *io, int lun, bool write,
			   uint64_t lba, uint32_t blocks);
/* iser_prep_compare_and_write prepares a COMPARE AND WRITE (SBC-3 §5.2): iov has
 * the blocks to compare with, then the blocks to write. A difference ends the
 * command with ISER_E_SCSI and the sense key MISCOMPARE. */
ISER_API void iser_prep_compare_and_write(struct iser_io *io, int lun,
					  uint64_t lba, uint8_t blocks);
/* iser_prep_write_same prepares a WRITE SAME(16) (SBC-3 §5.50) of one block, in
 * iov, to `blocks` blocks from lba on. With unmap the unit may unmap the blocks,
 * if they read like that block then. */
ISER_API void iser_prep_write_same(struct iser_io *io, int lun, uint64_t lba,
				   uint32_t blocks, bool unmap);
/* iser_set_fua sets the FUA bit of a prepared READ, WRITE or COMPARE AND WRITE
 * whose CDB has at least 10 bytes: the data are durable before the command
 * ends. */
ISER_API void iser_set_fua(struct iser_io *io);
/* iser_prep_flush prepares a SYNCHRONIZE CACHE of `blocks` blocks from lba on; 0:
 * to the end of the unit. It has no data. */
ISER_API void iser_prep_flush(struct iser_io *io, int lun, uint64_t lba,
			      uint32_t blocks);

/* Blocks to deallocate. */
struct iser_unmap_range {
	uint64_t lba;
	uint32_t blocks;
	uint32_t reserved; /* 0 */
};
/* iser_prep_unmap prepares an UNMAP (SBC-3 §5.28) of n ranges. ISER_E_INVALID: n is
 * 0 or more than 128, or a reserved member is not 0. */
ISER_API int iser_prep_unmap(struct iser_io *io, int lun,
			     struct iser_parameters *p,
			     const struct iser_unmap_range *ranges, unsigned n);
/* iser_prep_test_unit_ready prepares a TEST UNIT READY, which has no data. */
ISER_API void iser_prep_test_unit_ready(struct iser_io *io, int lun);
/* iser_prep_inquiry prepares an INQUIRY: a VPD page (page >= 0) or standard INQUIRY
 * data (page -1). The answer is the first io->transferred bytes of p->data. */
ISER_API void iser_prep_inquiry(struct iser_io *io, int lun, int page,
				struct iser_parameters *p);
/* iser_prep_read_capacity prepares a READ CAPACITY(16). Units without logical block
 * provisioning may not support it; iser_read_capacity then sends READ
 * CAPACITY(10). */
ISER_API void iser_prep_read_capacity(struct iser_io *io, int lun,
				      struct iser_parameters *p);
/* iser_parse_capacity reads the answer of a command of iser_prep_read_capacity that
 * has succeeded. ISER_E_SHORT: it lacks the number of blocks; ISER_E_PROTOCOL: it
 * is impossible, as for iser_read_capacity. */
ISER_API int iser_parse_capacity(const struct iser_io *io,
				 struct iser_capacity *c);
/* iser_prep_report_luns prepares a REPORT LUNS of at most 256 units. For more, the
 * caller replaces io->iov and sets bytes 6 to 9 of the CDB, the allocation length
 * (SPC-4 §6.33). */
ISER_API void iser_prep_report_luns(struct iser_io *io,
				    struct iser_parameters *p);
/* iser_parse_luns reads the answer of a command of iser_prep_report_luns that has
 * succeeded. Returns what iser_report_luns does. */
ISER_API int iser_parse_luns(const struct iser_io *io, int *luns, int max);

/* A run of blocks with one provisioning status. */
struct iser_extent {
	uint64_t lba, blocks;
	bool mapped;	     /* false: deallocated or anchored */
	uint8_t reserved[7]; /* 0 */
};
/* iser_prep_lba_status prepares a GET LBA STATUS (SBC-3 §5.4) for at most max
 * extents from lba on, and at most 64. */
ISER_API void iser_prep_lba_status(struct iser_io *io, int lun, uint64_t lba,
				   int max, struct iser_parameters *p);
/* iser_parse_lba_status stores the extents of the answer of a command of
 * iser_prep_lba_status that has succeeded, at most max. The first one begins at the lba
 * of the command, each further one at the end of the one before. Returns their number,
 * or an error. */
ISER_API int iser_parse_lba_status(const struct iser_io *io,
				   struct iser_extent *extents, int max);

#ifdef __cplusplus
}
#endif

#endif
