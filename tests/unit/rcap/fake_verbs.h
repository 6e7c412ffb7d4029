/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_verbs.h: the part of libibverbs and librdmacm that the verbs provider
 * uses, with one device: a test sees the posted requests and sets their
 * results.
 */
#ifndef UNIT_RCAP_FAKE_VERBS_H
#define UNIT_RCAP_FAKE_VERBS_H

#include "rcap/verbs/internal.h"

#define FAKE_SENDS  256
#define FAKE_BYTES  128
#define FAKE_INLINE 100 /* capabilities of the device */

struct fake_send {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	int pieces;
	uint32_t len, rkey, invalidate;
	uint8_t *at; /* not for inline data */
	uint8_t bytes[FAKE_BYTES];
};

struct fake {
	/* set by the test */
	bool no_device, no_class, is_iwarp;
	int post_error, migrate_error, qp_error;
	/* seen by the test */
	struct fake_send sends[FAKE_SENDS];
	unsigned nsends, send_calls;
	uint64_t recvs[FAKE_SENDS];
	unsigned nrecvs, recv_calls;
	unsigned mrs, ids, qps, cqs, channels; /* existing objects */
	unsigned disconnects, rejects, accepts, migrations;
	unsigned cq_events, cq_acks, async_events, async_acks;
	struct rdma_cm_id *last_id; /* made last */
	struct ibv_cq *last_cq;	    /* the second one of a pair, for receives */
	struct ibv_context *ctx;
};
extern struct fake fake;

void fake_begin(void);
void fake_end(void); /* fails unless all objects were destroyed */
bool fake_armed(const struct ibv_cq *cq);
void fake_sent(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void fake_received(struct ibv_cq *cq, uint64_t wr_id, uint32_t len,
		   unsigned flags, uint32_t inv);
/* An event of the connection manager; listen: for a CONNECT_REQUEST. */
void fake_cm(struct rdma_cm_id *id, struct rdma_cm_id *listen,
	     enum rdma_cm_event_type type, const char *private_data);
struct rdma_cm_id *fake_id(struct rdma_cm_id *listen);
void fake_async(enum ibv_event_type type, struct ibv_qp *qp, struct ibv_cq *cq);
/* The device is removed and another one appears. */
void fake_other_device(void);

#endif
