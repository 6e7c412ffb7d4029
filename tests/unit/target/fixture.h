/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fixture.h: a target with a unit on a ram store below a hold filter, and
 * connections whose datamover is the test: it feeds PDUs to the role and
 * records what the role sends. No socket, no clock.
 */
#ifndef TESTS_TARGET_FIXTURE_H
#define TESTS_TARGET_FIXTURE_H

#include "backstore/backstore.h"
#include "device/device.h"
#include "device/task.h"
#include "target/directory.h"
#include "target/target.h"

#define FIXTURE_TARGET	"iqn.2026-01.org.example:disk"
#define FIXTURE_SECOND	"iqn.2026-01.org.example:other"
#define FIXTURE_INI	"iqn.2026-01.org.example:initiator"
#define FIXTURE_BLOCKS	2048u
#define FIXTURE_SENT	512
#define FIXTURE_WORKERS 3

/* A PDU that the role sent. */
struct sent {
	struct iscsi_pdu pdu;
	uint8_t *data; /* a copy */
	size_t len;
	struct dm_task *task;
	bool put;	   /* by Put_Data */
	bool acknowledged; /* DM_RESPONSE_SENT or DM_PUT was given */
};

struct peer { /* one connection, seen from the wire */
	struct dm_conn dm;
	struct fixture *fixture;
	struct list link;
	struct sent sent[FIXTURE_SENT];
	unsigned nsent, next; /* next: the first that the test has not taken */
	bool enabled, terminated, gone;
	enum dm_terminate how;
	int terminate_err;
	/* the last Get_Data */
	struct dm_task *get_task;
	uint32_t get_offset, get_len;
	struct dm_task *last_task; /* the task of the last SCSI Command */
	bool release_later;	   /* deallocation answers ERR_AGAIN */
	bool silent; /* the initiator acknowledges no status (ERL 1 and 2) */
	unsigned adopted; /* calls of dm_adopt */
	bool has_remote;  /* of the last one */
	struct dm_remote remote;
	uint32_t exp_datasn; /* of the last one */
	struct dm_task *releasing;
	int send_error; /* send_control fails with it */
	struct iscsi_params params;
	struct dm_progress progress; /* the target reads it */
	/* the initiator's numbers */
	uint32_t cmdsn, itt;
	uint8_t attr, priority; /* of its commands; 0: SIMPLE */
	uint64_t lun;		/* of its commands */
	const uint8_t *ahs;	/* of the next commands */
	uint8_t ahs_len;
};

struct fixture {
	struct tgt *tgt;
	struct tgt_config cfg;
	struct dev_server *server;
	struct bs *hold; /* holds requests while `holding` */
	bool holding;
	unsigned fault_nth;
	int fault_err;
	uint8_t *memory;
	struct list peers;
	struct dev_msg *messages[FIXTURE_WORKERS],
		**message_end[FIXTURE_WORKERS];
	bool rearmed;
	bool no_buffers; /* buf_get gives none */
	unsigned buffers;
	struct trace trace;
	char last_trace[1100];
};

/* fixture_new: a target with nworkers workers; change (may be NULL) alters
 * its configuration. */
struct fixture *fixture_new(unsigned nworkers,
			    void (*change)(struct tgt_config *cfg));
/* fixture_new_faulty: the nth request to the store fails with err. */
struct fixture *fixture_new_faulty(unsigned nworkers,
				   void (*change)(struct tgt_config *cfg),
				   unsigned nth, int err);
void fixture_free(struct fixture *r);
#define FIXTURE_TAG 1 /* of the portal group of each peer */
/* fixture_directory returns a directory with portal group 0, which has the tag
 * FIXTURE_TAG, and in it a target of this name. */
struct tgt_directory *fixture_directory(const char *name);
/* fixture_target adds one more target to it; returns its index. */
unsigned fixture_target(struct tgt_directory *d, const char *name);
/* fixture_apply brings d into force. */
void fixture_apply(struct fixture *r, struct tgt_directory *d);
/* fixture_messages runs posted messages until there are none. */
void fixture_messages(struct fixture *r);
/* fixture_message_one runs one message; false: there is none. */
bool fixture_message_one(struct fixture *r);
/* fixture_settle runs messages, terminations and transmissions until nothing
 * is left. */
void fixture_settle(struct fixture *r);
void fixture_release(struct fixture *r); /* completes all held I/O */

struct peer *peer_new(struct fixture *r, unsigned worker);
/* NULL: the target refused the connection; *err has the reason. */
struct peer *peer_try(struct fixture *r, unsigned worker, const char *host,
		      int *err);
/* The connection is lost. */
void peer_cut(struct peer *p, int err);
/* peer_rx feeds a PDU; returns what control_notify did. */
int peer_rx(struct peer *p, struct iscsi_pdu *pdu, const void *data);
/* The next PDU that the role sent; fails the test if there is none. */
struct sent *peer_next(struct peer *p);
struct sent *peer_expect(struct peer *p, enum iscsi_opcode op);
void peer_expect_status(struct peer *p, uint8_t status);
void peer_expect_tmf(struct peer *p, uint32_t itt, uint8_t response);
bool peer_quiet(const struct peer *p);
/* Completes the transmission of all that was sent. */
void peer_flush(struct peer *p);

/* peer_login sends one Login Request with these keys ("a=b\0c=d\0") and
 * returns status class << 8 | detail. */
uint16_t peer_login(struct peer *p, const char *keys, size_t len,
		    const uint8_t isid[6], uint16_t tsih);
/* A new connection in full feature phase. */
struct peer *peer_session(struct fixture *r, unsigned worker, uint8_t isid);
struct peer *peer_discovery(struct fixture *r);

/* Commands: each returns the ITT. */
uint32_t peer_read(struct peer *p, uint32_t lba, uint16_t blocks);
uint32_t peer_write(struct peer *p, uint32_t lba, uint16_t blocks);
uint32_t peer_tur(struct peer *p); /* TEST UNIT READY */
/* Unsolicited data: n bytes of byte; then the completion. */
void peer_unsolicited(struct peer *p, struct dm_task *t, uint8_t byte,
		      uint32_t n, int err);
void peer_solicited(struct peer *p, uint8_t byte, int err);
/* A task management function; immediate. Returns its ITT. */
uint32_t peer_tmf(struct peer *p, enum iscsi_tmf function, uint64_t lun,
		  uint32_t rtt, uint32_t ref_cmdsn);
/* A SCSI Command with any CDB and EDTL. */
uint32_t peer_command(struct peer *p, const uint8_t cdb[16], bool read,
		      bool write, uint32_t edtl);
/* Clears the unit attentions. */
void peer_ready(struct peer *p);

#endif
