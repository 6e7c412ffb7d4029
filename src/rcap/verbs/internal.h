/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: a queue pair of a verbs device.
 *   module.c  the exported table; event channel, devices
 *   cm.c      connecting, accepting, the end
 *   work.c    work requests, completions
 *   memory.c  what a device may touch: slots, registrations
 */
#ifndef RCAP_VERBS_INTERNAL_H
#define RCAP_VERBS_INTERNAL_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/err.h"
#include "rcap/verbs/verbs.h"

#define PRIVATE_MAX 56
/* Sends and all that is small go by slots, registered once. */
#define SLOT_LEN 8704

struct verbs {
	struct io_loop *l;
	struct rdma_event_channel *channel;
	struct io_watch watch;
};

/* What the device works with, of one work request. */
struct transfer {
	struct list link; /* free */
	struct rcap_wr *wr;
	uint8_t *slot;	   /* SLOT_LEN bytes, its own */
	uint8_t *bounce;   /* or memory of this transfer alone */
	struct ibv_mr *mr; /* or a registration of this transfer alone */
	uint8_t *from;	   /* where the bytes are, or come */
	bool copy_back;	   /* a Read whose bytes go on to wr->data */
};

/* A registered receive: they come back again and again. */
struct recv_mr {
	uint8_t *buf;
	struct ibv_mr *mr;
};

struct verbs_conn {
	struct rcap_qp qp; /* first */
	struct verbs *v;
	struct verbs_config cfg;
	uint8_t private_data[PRIVATE_MAX];
	struct rdma_cm_id *id;
	/* the queue pair; NULL before */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct io_watch cq_watch;
	bool watching;
	bool is_iwarp;
	/* work */
	struct list sq;	    /* posted, the device has no room yet */
	struct list flight; /* with the device, in order */
	struct list recvs;  /* posted before there was a queue pair */
	struct list held;   /* receives that the device has */
	unsigned max_sends, in_device;
	struct transfer *transfers;
	struct list free_transfers;
	uint8_t *slots;
	struct ibv_mr *slots_mr;
	struct recv_mr *recv_mrs;
	unsigned nrecv_mrs, max_recv_mrs;
	/* the end */
	bool disconnecting, ending;
	int err;
	char why[120];
	struct io_timer timer;
	struct io_defer end;
	void (*gone)(void *arg);
	void *gone_arg;
};

struct verbs_listener {
	struct verbs *v;
	struct rdma_cm_id *id;
	struct verbs_config cfg;
	void (*accepted)(void *arg, struct verbs_conn *c);
	void *arg;
};

static inline struct verbs_conn *conn_of(struct rcap_qp *qp)
{
	return container_of(qp, struct verbs_conn, qp);
}

/* cm.c */
extern const struct rcap_ops verbs_rcap_ops;
void verbs_cm_event(struct verbs *v, struct rdma_cm_event *ev);
struct verbs_conn *verbs_connect(struct verbs *v, const struct sockaddr *dst,
				 const struct verbs_config *cfg, int *err);
void verbs_conn_free(struct verbs_conn *c);
/* The connection is over; its user hears of it at the end of the turn. */
void verbs_over(struct verbs_conn *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void verbs_drained(struct verbs_conn *c);

/* work.c */
int verbs_work_new(struct verbs_conn *c);  /* with the queue pair */
void verbs_work_end(struct verbs_conn *c); /* everything comes back */
void verbs_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);
void verbs_post_recv(struct rcap_qp *qp, struct rcap_recv *r);
void verbs_poll(struct verbs_conn *c);
void verbs_post_held_recvs(struct verbs_conn *c);

/* memory.c */
int verbs_memory_new(struct verbs_conn *c);
void verbs_memory_free(struct verbs_conn *c);
struct transfer *verbs_transfer(struct verbs_conn *c, struct rcap_wr *wr,
				struct ibv_sge *sge);
void verbs_transfer_done(struct verbs_conn *c, struct transfer *t, bool ok);
struct ibv_mr *verbs_recv_mr(struct verbs_conn *c, const struct rcap_recv *r);
int verbs_reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	      unsigned rights, struct rcap_mr *mr);
void verbs_invalidate(struct rcap_qp *qp, struct rcap_mr *mr);

#endif
