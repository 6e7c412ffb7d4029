/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_rig.h: one end of datamover/iser on a fake queue pair, under a role
 * that only takes notes; the test is the peer, and the fabric.
 */
#ifndef TESTS_DATAMOVER_ISER_RIG_H
#define TESTS_DATAMOVER_ISER_RIG_H

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/iser/dmiser.h"
#include "datamover/iser/header.h"
#include "sim/fake_rcap.h"

#define RIG_TASKS 8
#define RIG_BUF	  65536u
#define RIG_PEER  "192.0.2.7:3260"
/* The peer's STags, and where they begin: with the top bit, as seen. */
#define RIG_READ_STAG  0x11223344u
#define RIG_WRITE_STAG 0x55667788u
#define RIG_READ_BASE  0xff149c0e20c34200ull
#define RIG_WRITE_BASE 0xffff888000001080ull

#define ISER_PDU (ISER_HEADER_LEN + ISCSI_BHS_LEN)

struct rig_task {
	struct dm_task dm;
	bool used;
	unsigned seen[DM_RELEASED + 1]; /* completions, by kind */
	int err;			/* of the last one */
	struct iovec iov[40];
	uint8_t buf[RIG_BUF];
	/* initiator: how it ended */
	struct iscsi_pdu rsp;
	uint8_t sense[512];
	unsigned stags_left; /* valid when the response was handed up */
};

struct rig {
	struct fake_rcap f;
	struct dmiser_conn *conn;
	struct dm_conn face; /* where the login went over a stream */
	struct dm_conn *dm;
	struct iscsi_params params;
	struct iscsi_numbers numbers;
	struct dm_resources resources;
	struct rig_task task[RIG_TASKS];
	/* what the role was told */
	unsigned controls, errors, terminated, ended;
	int terminate_err, last_err;
	struct iscsi_pdu in; /* the last control-type PDU */
	uint8_t in_data[9000];
	uint16_t in_ahs;
	/* what it is to do */
	int answer; /* of control_notify */
	bool no_task, no_enable;
	uint32_t out_len; /* of a write's buffer; 0: EDTL */
	void (*on_command)(struct rig *r, struct rig_task *t);
	/* what people were told */
	struct trace trace;
	unsigned nlog;
	char log[1024];
	/* the peer's memory */
	uint8_t peer_in[RIG_BUF], peer_out[RIG_BUF];
};

struct iscsi_params rig_params(void);
/* rig_raw: RDMA from the start; the queue pair is not up yet (rig_up). */
void rig_raw(struct rig *r, enum iscsi_role role, unsigned rules,
	     const struct iscsi_params *params);
/* rig_init: and it is up, nothing said. */
void rig_init(struct rig *r, enum iscsi_role role, unsigned rules,
	      const struct iscsi_params *params);
/* rig_login: to full feature phase over Sends. */
void rig_login(struct rig *r);
/* rig_switched: full feature phase behind a login over a stream; the queue
 * pair is not up yet (rig_up). */
void rig_switched(struct rig *r, enum iscsi_role role, unsigned rules,
		  const struct iscsi_params *params);
/* The same in two steps: the stream is left (false: out of memory). */
void rig_unswitched(struct rig *r, enum iscsi_role role, unsigned rules,
		    const struct iscsi_params *params);
bool rig_switch(struct rig *r);
void rig_up(struct rig *r);
/* The peer's private data begin with flags; -1: there are none. */
void rig_up_with(struct rig *r, int flags);
/* Both, and the login. */
void rig_target(struct rig *r, unsigned rules, const struct iscsi_params *p);
void rig_initiator(struct rig *r, unsigned rules, const struct iscsi_params *p);
/* rig_fini: the connection ends if it has not; nothing may be left over. */
void rig_fini(struct rig *r);

/* ---- the peer ---- */

struct iser_header rig_plain(void);
/* A message: header, BHS, pdu->ahs_len bytes of AHS, data unpadded. */
size_t rig_message(uint8_t *to, const struct iser_header *h,
		   const struct iscsi_pdu *pdu, const void *data);
int rig_deliver(struct rig *r, const struct iser_header *h,
		const struct iscsi_pdu *pdu, const void *data);
int rig_plain_pdu(struct rig *r, const struct iscsi_pdu *pdu, const void *data);
/* A READ or WRITE with its STag, immediate data of dsl bytes (0x40, 0x41...). */
void rig_read(struct rig *r, uint32_t itt, uint32_t edtl);
void rig_write(struct rig *r, uint32_t itt, uint32_t edtl, uint32_t dsl,
	       bool final);
void rig_data_out(struct rig *r, uint32_t itt, uint32_t datasn, uint32_t off,
		  uint32_t len, bool final);
struct iscsi_pdu rig_command(uint32_t itt, uint32_t edtl, bool write);
uint8_t rig_byte(size_t i); /* of every payload, by its place */

/* ---- the role ---- */

struct rig_task *rig_find(struct rig *r, uint32_t itt);
int rig_respond(struct rig *r, struct rig_task *t, uint32_t sense_len);
struct iscsi_pdu rig_response(const struct rig_task *t);
/* rig_start: an initiator's command of len bytes in pieces. */
struct rig_task *rig_start(struct rig *r, uint32_t itt, bool write,
			   uint32_t len, unsigned pieces, int *err);
int rig_send(struct rig *r, uint8_t op, uint32_t itt, uint32_t dsl);

/* ---- what was sent ---- */

struct rig_sent {
	struct rcap_wr *wr;
	struct iser_header h;
	struct iscsi_pdu pdu;
	uint8_t data[RIG_BUF];
	size_t len; /* of the message */
};

/* rig_sent_at decodes the i-th request that is out: it must be a Send of a
 * control-type PDU. */
struct rig_sent *rig_sent_at(struct rig *r, unsigned i);
/* All that is out gets done. */
void rig_flush(struct rig *r);
/* rig_expect_dead: ended by us for err, people were told who and what. */
void rig_expect_dead(struct rig *r, int err, const char *what);
void rig_expect_well(struct rig *r);

#endif
