/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_fixture.h: one end of datamover/iser on a fake queue pair, with a role that
 * records its up-calls. The test is the peer and the RDMA fabric.
 */
#ifndef TESTS_DATAMOVER_ISER_FIXTURE_H
#define TESTS_DATAMOVER_ISER_FIXTURE_H

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/iser/dmiser.h"
#include "datamover/iser/header.h"
#include "sim/fake_rcap.h"

#define FIXTURE_TASKS 8
#define FIXTURE_BUF   65536u
#define FIXTURE_PEER  "192.0.2.7:3260"
/* The peer's STags, and their base offsets, with the top bit set as in real
 * ones. */
#define FIXTURE_READ_STAG  0x11223344u
#define FIXTURE_WRITE_STAG 0x55667788u
#define FIXTURE_READ_BASE  0xff149c0e20c34200ull
#define FIXTURE_WRITE_BASE 0xffff888000001080ull

#define ISER_PDU (ISER_HEADER_LEN + ISCSI_BHS_LEN)

struct fixture_task {
	struct dm_task dm;
	bool used;
	unsigned seen[DM_RELEASED + 1]; /* completions, by kind */
	int err;			/* of the last one */
	struct iovec iov[40];
	uint8_t buf[FIXTURE_BUF];
	/* initiator: its response */
	struct iscsi_pdu rsp;
	uint8_t sense[512];
	unsigned stags_left; /* whether the STags were valid when the role got the response */
};

struct fixture {
	struct fake_rcap f;
	struct dmiser_conn *conn;
	struct dm_conn stream_dm; /* the dm_conn of a login over a stream */
	struct dm_conn *dm;
	struct iscsi_params params;
	struct iscsi_numbers numbers;
	struct dm_resources resources;
	struct fixture_task task[FIXTURE_TASKS];
	/* what the role received */
	unsigned controls, errors, terminated, ended;
	int terminate_err, last_err;
	unsigned acks; /* Data_ACK_Notify; the DataSN of the last one */
	uint32_t acked_sn;
	struct iscsi_pdu in; /* the last control-type PDU */
	uint8_t in_data[9000];
	uint16_t in_ahs;
	bool has_remote; /* dm_control.remote of that PDU */
	struct dm_remote remote;
	/* what the role does in its up-calls */
	int answer; /* of control_notify */
	bool no_task, no_enable;
	uint32_t out_len; /* of a write's buffer; 0: EDTL */
	void (*on_command)(struct fixture *r, struct fixture_task *t);
	/* the line of the log */
	struct trace trace;
	unsigned nlog;
	char log[1024];
	/* the peer's memory */
	uint8_t peer_in[FIXTURE_BUF], peer_out[FIXTURE_BUF];
};

struct iscsi_params fixture_params(void);
/* fixture_raw: RDMA mode from the first byte; the queue pair is not up yet
 * (fixture_up). */
void fixture_raw(struct fixture *r, enum iscsi_role role, unsigned rules,
		 const struct iscsi_params *params);
/* fixture_init: the same with the queue pair up; no message was sent. */
void fixture_init(struct fixture *r, enum iscsi_role role, unsigned rules,
		  const struct iscsi_params *params);
/* fixture_login: enters the full feature phase by a login over Sends. */
void fixture_login(struct fixture *r);
/* fixture_switched: full feature phase after a login over a stream; the queue pair
 * is not up yet (fixture_up). */
void fixture_switched(struct fixture *r, enum iscsi_role role, unsigned rules,
		      const struct iscsi_params *params);
/* The same in two steps: the end leaves the stream (false: out of memory). */
void fixture_unswitched(struct fixture *r, enum iscsi_role role, unsigned rules,
			const struct iscsi_params *params);
bool fixture_switch(struct fixture *r);
void fixture_up(struct fixture *r);
/* The peer's private data begin with flags; -1: there are none. */
void fixture_up_with(struct fixture *r, int flags);
/* Both, and then the login. */
void fixture_target(struct fixture *r, unsigned rules,
		    const struct iscsi_params *p);
void fixture_initiator(struct fixture *r, unsigned rules,
		       const struct iscsi_params *p);
/* fixture_fini ends the connection, if necessary, and checks that no resource is in
 * use. */
void fixture_fini(struct fixture *r);

/* ---- the peer ---- */

struct iser_header fixture_plain(void);
/* A message: header, BHS, pdu->ahs_len bytes of AHS, data unpadded. */
size_t fixture_message(uint8_t *to, const struct iser_header *h,
		       const struct iscsi_pdu *pdu, const void *data);
int fixture_deliver(struct fixture *r, const struct iser_header *h,
		    const struct iscsi_pdu *pdu, const void *data);
int fixture_plain_pdu(struct fixture *r, const struct iscsi_pdu *pdu,
		      const void *data);
/* A READ or WRITE with its STag, immediate data of dsl bytes (0x40, 0x41...). */
void fixture_read(struct fixture *r, uint32_t itt, uint32_t edtl);
void fixture_write(struct fixture *r, uint32_t itt, uint32_t edtl, uint32_t dsl,
		   bool final);
void fixture_data_out(struct fixture *r, uint32_t itt, uint32_t datasn,
		      uint32_t off, uint32_t len, bool final);
struct iscsi_pdu fixture_command(uint32_t itt, uint32_t edtl, bool write);
uint8_t fixture_byte(size_t i); /* the byte at each offset of every payload */

/* ---- the role ---- */

struct fixture_task *fixture_find(struct fixture *r, uint32_t itt);
int fixture_respond(struct fixture *r, struct fixture_task *t,
		    uint32_t sense_len);
struct iscsi_pdu fixture_response(const struct fixture_task *t);
/* fixture_start: an initiator's command of len bytes in pieces. */
struct fixture_task *fixture_start(struct fixture *r, uint32_t itt, bool write,
				   uint32_t len, unsigned pieces, int *err);
int fixture_send(struct fixture *r, uint8_t op, uint32_t itt, uint32_t dsl);

/* ---- what was sent ---- */

struct fixture_sent {
	struct rcap_wr *wr;
	struct iser_header h;
	struct iscsi_pdu pdu;
	uint8_t data[FIXTURE_BUF];
	size_t len; /* of the message */
};

/* fixture_sent_at decodes the i-th posted request, which must be a Send of a
 * control-type PDU. */
struct fixture_sent *fixture_sent_at(struct fixture *r, unsigned i);
/* Completes all posted requests. */
void fixture_flush(struct fixture *r);
/* fixture_expect_ended: this end dropped the connection for err, and logged peer and
 * clause. */
void fixture_expect_ended(struct fixture *r, int err, const char *what);
void fixture_expect_alive(struct fixture *r);

#endif
