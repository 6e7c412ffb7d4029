/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser.h: libiser, an iSCSI and iSER initiator.
 *
 * A context is an event loop with sessions. It is used by one thread at a
 * time. Blocking calls turn the loop themselves; a program with a loop of its
 * own polls iser_get_fd and calls iser_service. Callbacks come from within
 * iser_service or a blocking call; a callback may submit, and may not free
 * the session or the context.
 *
 * Functions that return int: 0, or a negative enum iser_error; iser_strerror
 * names it and iser_message(ctx) tells what, where and what to do.
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

enum iser_error {
	ISER_OK = 0,
	ISER_E_NOMEM = -1,
	ISER_E_INVALID = -2,   /* an argument or URL makes no sense */
	ISER_E_CONNECT = -3,   /* the transport could not be connected */
	ISER_E_LOGIN = -4,     /* the target refused the login */
	ISER_E_AUTH = -5,      /* authentication failed */
	ISER_E_NOT_FOUND = -6, /* no such target or unit */
	ISER_E_TIMEOUT = -7,
	ISER_E_CLOSED = -8,    /* the connection was lost */
	ISER_E_SCSI = -9,      /* the command ended with a bad status */
	ISER_E_PROTOCOL = -10, /* the peer broke the protocol */
	ISER_E_UNSUPPORTED = -11,
	ISER_E_SYSTEM = -12, /* the operating system said no */
	/* the target dropped the command: another initiator reset the unit or
	 * cleared its task set, or the target has failed */
	ISER_E_ABORTED = -13,
};

ISER_API const char *iser_strerror(int err);
ISER_API const char *iser_version(void);

/* ---- context ---- */

struct iser_context;

/* iser_context_new: initiator_name is an iqn, or NULL for
 * "iqn.2026-01.org.openiser:HOSTNAME". NULL: out of memory or descriptors. */
ISER_API struct iser_context *iser_context_new(const char *initiator_name);
/* iser_context_free drops what is still connected. */
ISER_API void iser_context_free(struct iser_context *ctx);
/* The last error of a call with this context, as a sentence; never NULL. */
ISER_API const char *iser_message(const struct iser_context *ctx);
/* What the library has to tell: level 0 error .. 4 debug. NULL: silence. */
ISER_API void iser_set_log(struct iser_context *ctx, int level,
			   void (*fn)(void *arg, int level, const char *text),
			   void *arg);

/* For programs with a loop of their own: poll this fd for these events
 * (POLLIN), for at most iser_next_timeout milliseconds (-1: for ever), then
 * call iser_service. */
ISER_API int iser_get_fd(struct iser_context *ctx);
ISER_API int iser_which_events(struct iser_context *ctx);
ISER_API int iser_next_timeout(struct iser_context *ctx);
/* iser_service: one turn of the loop; waits at most timeout_ms (0: not). */
ISER_API int iser_service(struct iser_context *ctx, int timeout_ms);
/* iser_set_spin: before it sleeps, the loop looks for events for up to this
 * many microseconds after the last one; 0, the default: it sleeps at once. */
ISER_API void iser_set_spin(struct iser_context *ctx, unsigned microseconds);

/* ---- URLs: iscsi://[USER[%PASSWORD]@]HOST[:PORT]/IQN/LUN[?KEY=VALUE...] ---- */

#define ISER_NAME_MAX 224

struct iser_url {
	char transport[8]; /* "iscsi", "iser", "auto": see iser_url_parse */
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
	 * priority=N, transport=, start=, compat=, rcap= */
	char initiator[ISER_NAME_MAX];
	char header_digest[16], data_digest[16];
	/* seconds until a command is overdue, each time that it is issued; the
	 * connection is given up then. 0: for ever */
	unsigned timeout;
	unsigned depth; /* commands in flight; 0: the default, 128 */
	/*
	 * How often a session that was lost tries to log in again (without a
	 * command answered in between) before its commands fail; 0, the
	 * default: not at all. Commands that may be done twice (READ, WRITE,
	 * queries...) are issued again, each as often at most, and so are those
	 * that were overdue (timeout) or dropped by the target; others fail
	 * with ISER_E_CLOSED, ISER_E_TIMEOUT, ISER_E_ABORTED. What a unit had in a volatile cache when it lost
	 * power is not known here.
	 */
	unsigned reconnect;
	unsigned priority; /* of commands that have none: see iser_io */
};

/*
 * iser_url_parse reads a full URL, or, where discovery is true, also
 * "HOST[:PORT]" and "iscsi://HOST[:PORT]". iser:// stands for transport=iser.
 *
 * transport: tcp (plain iSCSI, the default of iscsi://), iser, or auto: iSER
 * if the target has it, else iSCSI. start says how iSER begins: rdma (in RDMA
 * mode at once, as Linux does it; the default) or stream (the login goes over
 * TCP and the connection turns to RDMA mode behind it, RFC 7145 §5.1). compat:
 * linux or strict, which of the two readings of RFC 7145 is kept (by default
 * linux for start=rdma, strict for start=stream). rcap, with start=rdma: iwarp
 * (our own, over TCP; the default) or verbs (an RDMA device of this machine).
 * As in libiscsi the environment's
 * LIBISCSI_CHAP_USERNAME, _PASSWORD, _TARGET_USERNAME and _TARGET_PASSWORD
 * fill in what the URL leaves out. why (size bytes) gets a sentence.
 */
ISER_API int iser_url_parse(struct iser_url *url, const char *text,
			    bool discovery, char *why, size_t size);

/* ---- discovery ---- */

struct iser_target {
	struct iser_target *next;
	char name[ISER_NAME_MAX];
	char address[288]; /* "HOST:PORT,TPGT"; the first that was named */
};

/* iser_discover asks the portal for its targets (SendTargets=All). *list is
 * freed with iser_targets_free. */
ISER_API int iser_discover(struct iser_context *ctx, const struct iser_url *url,
			   struct iser_target **list);
ISER_API void iser_targets_free(struct iser_target *list);

/* ---- sessions ---- */

struct iser_session;

/* iser_connect logs in; blocks. NULL: see iser_message; *err why. */
ISER_API struct iser_session *
iser_connect(struct iser_context *ctx, const struct iser_url *url, int *err);
/* iser_connect_start: the same without waiting; done(arg, s, err) follows. A
 * session that failed to connect is freed with iser_disconnect, too. */
ISER_API struct iser_session *
iser_connect_start(struct iser_context *ctx, const struct iser_url *url,
		   void (*done)(void *arg, struct iser_session *s, int err),
		   void *arg, int *err);
/* iser_disconnect logs out (waits for the answer, bounded) and frees s. */
ISER_API void iser_disconnect(struct iser_session *s);
/* Whether commands can be submitted: logged in, or on the way back. */
ISER_API bool iser_is_connected(const struct iser_session *s);
/* Whose message iser_message gives: that of this session's context. */
ISER_API struct iser_context *
iser_session_context(const struct iser_session *s);

/* What was negotiated. */
struct iser_params {
	const char *transport; /* "tcp", "iser" */
	const char *kind;      /* for people: how the transport came about */
	/* iSER: the rules of compatibility that are kept, "CM_HEADER, ..." */
	const char *rules;
	bool header_digest, data_digest, initial_r2t, immediate_data;
	uint32_t max_recv_data_segment_length, max_send_data_segment_length;
	uint32_t max_burst_length, first_burst_length;
	uint32_t max_outstanding_r2t, error_recovery_level;
	int tpgt; /* -1: not told */
};
ISER_API void iser_get_params(const struct iser_session *s,
			      struct iser_params *p);

struct iser_counters {
	uint64_t rx_bytes, tx_bytes; /* on the transport */
	uint64_t rx_calls, tx_calls; /* system calls that moved them */
	/* Payload that passed through a buffer of the library's on its way
	 * between the caller's memory and the socket. */
	uint64_t copied_bytes;
	uint64_t reconnects; /* how often the session came back */
};
ISER_API void iser_get_counters(const struct iser_session *s,
				struct iser_counters *c);

/* iser_ping sends a NOP-Out with len bytes and waits for them to come back;
 * *ns is the time it took. */
ISER_API int iser_ping(struct iser_session *s, size_t len, uint64_t *ns);

/* Task management (RFC 7143 §11.5): waits for the answer. */
ISER_API int iser_lun_reset(struct iser_session *s, int lun);
ISER_API int iser_target_reset(struct iser_session *s);

/* ---- commands ---- */

enum iser_direction {
	ISER_NO_DATA,
	ISER_READ, /* from the unit to iov */
	ISER_WRITE,
};

#define ISER_SENSE_MAX 252

/*
 * One SCSI command. The caller fills the first part and owns the struct and
 * everything it points to; iser_submit borrows both until done is called.
 * Nothing is allocated per command.
 */
struct iser_io {
	int lun;
	uint8_t cdb[32];
	uint8_t cdb_len;
	enum iser_direction direction;
	struct iovec *iov; /* at most 1024 pieces */
	unsigned niov;
	void (*done)(struct iser_io *io);
	void *arg; /* the caller's */
	/* Command priority (SAM-5 §8.7): 1, the highest, to 15; 0: that of the
	 * URL, or none. Needs a target of iSCSIProtocolLevel 2; without one it
	 * is not sent. */
	uint8_t priority;
	/* set before done */
	int err;	/* ISER_E_SCSI: see status and sense */
	uint8_t status; /* SCSI status byte */
	uint32_t resid; /* bytes that were not moved */
	bool overflow;	/* resid is what the unit had more than iov holds */
	uint16_t sense_len;
	uint8_t sense[ISER_SENSE_MAX];
	/* the library's */
	struct iser_io *next;
	struct iser_session *session;
};

/* iser_submit: done follows, from iser_service. Goes out with all others of
 * the turn in one system call. */
ISER_API void iser_submit(struct iser_session *s, struct iser_io *io);
/* iser_run submits and waits; returns io->err. */
ISER_API int iser_run(struct iser_session *s, struct iser_io *io);
/* A sentence about how a command ended. */
ISER_API void iser_io_describe(const struct iser_io *io, char *out,
			       size_t size);

/* ---- block devices: the commands that everybody needs, blocking ---- */

struct iser_capacity {
	uint64_t blocks;
	uint32_t block_size;
	uint32_t physical_block_size;
	bool thin;	  /* LBPME */
	bool reads_zeros; /* LBPRZ: unmapped blocks */
};

/* iser_read_capacity asks as the unit's type wants it, behind an INQUIRY if
 * this session has had none of that unit lately (iser_inquiry with -1 counts).
 * ISER_E_UNSUPPORTED: units of that type have none (tapes, enclosures, ...). */
ISER_API int iser_read_capacity(struct iser_session *s, int lun,
				struct iser_capacity *c);
/* The peripheral device type (byte 0 of INQUIRY data) in words. */
ISER_API const char *iser_device_type(uint8_t type);
/* VPD page (page >= 0) or standard INQUIRY data (-1). Returns bytes. */
ISER_API int iser_inquiry(struct iser_session *s, int lun, int page,
			  uint8_t *buf, size_t size);
/* iser_report_luns returns how many there are; at most max are stored. */
ISER_API int iser_report_luns(struct iser_session *s, int *luns, int max);
/* iser_test_unit_ready retries past unit attentions. */
ISER_API int iser_test_unit_ready(struct iser_session *s, int lun);
ISER_API int iser_flush(struct iser_session *s, int lun);

/* Whole blocks. len is a multiple of the block size and, for one command, at
 * most the unit's limit (iser_max_transfer). */
ISER_API int iser_read(struct iser_session *s, int lun, uint32_t block_size,
		       uint64_t lba, void *buf, size_t len);
ISER_API int iser_write(struct iser_session *s, int lun, uint32_t block_size,
			uint64_t lba, const void *buf, size_t len);
/* Most bytes per command that the unit declares (VPD B0h); 0: no limit. Over
 * iSER never more than 512 KiB, which targets take for granted. */
ISER_API uint64_t iser_max_transfer(struct iser_session *s, int lun,
				    uint32_t block_size);
/* iser_unmap gives [lba, lba + blocks) back. */
ISER_API int iser_unmap(struct iser_session *s, int lun, uint64_t lba,
			uint64_t blocks);

struct iser_extent {
	uint64_t lba, blocks;
	bool mapped;
};
/* iser_lba_status returns the number of extents from lba on, at most max. */
ISER_API int iser_lba_status(struct iser_session *s, int lun, uint64_t lba,
			     struct iser_extent *extents, int max);

/* Fills io->cdb for a READ or WRITE of blocks at lba. */
ISER_API void iser_prep_rw(struct iser_io *io, int lun, bool write,
			   uint64_t lba, uint32_t blocks);

#ifdef __cplusplus
}
#endif

#endif
