/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: a queue pair of a verbs device.
 *   module.c  the exported table, the event channel
 *   listen.c  listeners, and connections that ask until a worker takes them
 *   cm.c      connecting, accepting, the end
 *   device.c  devices: their events, how they go and come back
 *   work.c    work requests
 *   poll.c    completions
 *   memory.c  what a device may touch: slots, registrations
 *   sysfs.c   whether there can be devices at all
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
/* Asked of a device for inline data, the first that it has counts: a response
 * with sense data, a header (ib_iser's and siw's measure), nothing. */
#define INLINE_WISHES \
 {                    \
  256, 128, 80, 0     \
 }
#define INLINE_MAX 256
#define BATCH	   32
/* How often devices are looked for, while somebody listens. */
#define LOOK_EVERY (2 * XTIME_S)

/* What a cm_id's context points to begins with this. */
enum verbs_kind {
	VERBS_LISTENER = 1,
	VERBS_REQUEST,
	VERBS_CONN,
};

/* What a device said, for every thread to look whether it is meant. */
struct verbs_note {
	struct ibv_context *ctx;
	enum ibv_event_type type;
	uint32_t qp_num;
	const struct ibv_cq *cq; /* compared only */
};

#define NOTES_MAX 16

struct verbs {
	struct io_loop *l;
	struct verbs_host host;
	struct rdma_event_channel *channel; /* NULL: no device was there yet */
	struct io_watch watch;
	bool watching;
	struct list conns;     /* verbs_conn.link */
	struct list listeners; /* verbs_listener.link */
	struct io_timer look;
	struct io_file_op listing; /* on a helper thread: it may take long */
	bool is_listing;
	struct ibv_device **listed; /* all devices, as of now */
	int nlisted;
	struct io_defer tidy; /* listeners whose device is gone */
	/* device.c, under its lock */
	struct list process; /* every struct verbs of this process */
	struct list devices; /* verbs_device.link; changed by its thread */
	struct verbs_note notes[NOTES_MAX];
	unsigned nnotes;
	bool noted;
	struct io_post told;
};

/* A device as one struct verbs uses it. */
struct verbs_device {
	struct list link;
	struct verbs *v;
	struct ibv_context *ctx;
	char name[64];
	unsigned users; /* connections and listeners */
	bool gone;
	bool looked_for;       /* it was in use before the listing began */
	struct io_watch watch; /* its asynchronous events */
};

/* rcap_wr.local: whether a posted request may be given back. */
enum {
	WR_WITH_DEVICE,
	WR_FINISHED
};

/* What the device works with, of one work request. */
struct transfer {
	struct list link;   /* free, or in flight */
	struct rcap_wr *wr; /* NULL: its bytes were copied */
	uint8_t *slot;	    /* SLOT_LEN bytes, its own */
	uint8_t *bounce;    /* or memory of this transfer alone */
	struct ibv_mr *mr;  /* or a registration of this transfer alone */
	uint8_t *from;	    /* where the bytes are, or come */
	bool is_read;
	bool copy_back; /* a Read whose bytes go on to wr->data */
};

/* A registered receive: they come back again and again. */
struct recv_mr {
	uint8_t *buf;
	size_t cap;
	struct ibv_mr *mr;
};

struct verbs_conn {
	enum verbs_kind kind; /* first */
	struct rcap_qp qp;
	struct verbs *v;
	struct list link; /* verbs.conns */
	struct verbs_config cfg;
	uint8_t private_data[PRIVATE_MAX];
	struct rdma_cm_id *id;
	struct verbs_device *dev; /* from the queue pair on */
	/* the queue pair; NULL before. Completions of what we sent are told
	 * only while somebody waits for one */
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq;
	bool scq_armed, rcq_armed;
	unsigned scq_events, rcq_events; /* to be acknowledged */
	struct io_watch cq_watch;
	bool watching;
	bool is_iwarp;
	struct io_defer turn; /* what the turn collected goes out */
	/* work requests */
	struct list sq;	    /* posted, not yet with the device */
	struct list owed;   /* with the device or done: to be given back */
	struct list flight; /* transfers that the device has, in order */
	unsigned in_device, waited; /* of them, those somebody waits for */
	unsigned max_sends, unsignalled;
	uint32_t max_inline;
	struct transfer *transfers;
	struct list free_transfers;
	uint8_t *slots;
	struct ibv_mr *slots_mr;
	struct list regions; /* the peer's, until invalidated or the end */
	/* receives */
	struct list recvs; /* posted, not yet with the device */
	struct list held;  /* with the device */
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
	enum verbs_kind kind; /* first */
	struct list link;     /* verbs.listeners */
	struct verbs *v;
	struct rdma_cm_id *id;	  /* NULL: no device has the address now */
	struct verbs_device *dev; /* NULL: all of them */
	bool lost;		  /* its device is gone: id goes soon */
	struct sockaddr_storage sa;
	struct verbs_config cfg;
	void (*asked)(void *arg, struct verbs_request *r);
	void *arg;
};

/* A connection that asks; of one thread at a time. */
struct verbs_request {
	enum verbs_kind kind; /* first */
	struct verbs *v;      /* whose channel its events come by */
	struct rdma_cm_id *id;
	struct verbs_config cfg;
	bool dead; /* it gave up meanwhile */
	struct rcap_cm cm;
	uint8_t private_data[UINT8_MAX];
};

static inline struct verbs_conn *conn_of(struct rcap_qp *qp)
{
	return container_of(qp, struct verbs_conn, qp);
}

/* module.c */
/* The channel of events, made when the first device is there. */
int verbs_channel(struct verbs *v);
int verbs_watch(struct verbs *v); /* on its own thread */
void verbs_say(struct verbs *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* listen.c */
/* verbs_request_new: NULL: out of memory. */
struct verbs_request *verbs_request_new(struct verbs_listener *l,
					const struct rdma_cm_event *ev);
void verbs_request_event(struct verbs_request *r);
void verbs_listener_lost(struct verbs_listener *l);
void verbs_tidy(struct io_defer *d);
void verbs_look(struct io_timer *t);
struct verbs_listener *verbs_listen(struct verbs *v, const struct sockaddr *sa,
				    const struct verbs_config *cfg,
				    void (*asked)(void *arg,
						  struct verbs_request *r),
				    void *arg, int *err);
void verbs_unlisten(struct verbs_listener *l);
int verbs_hand(struct verbs_request *r, struct verbs *to);
void verbs_refuse(struct verbs_request *r);
void verbs_take(struct verbs_request *r,
		void (*accepted)(void *arg, struct verbs_conn *c), void *arg);

/* device.c */
void verbs_join(struct verbs *v);
void verbs_leave(struct verbs *v);
/* verbs_device_get: NULL: out of memory. */
struct verbs_device *verbs_device_get(struct verbs *v, struct ibv_context *ctx);
/* verbs_device_put: after the cm_id that stood for this use is destroyed. */
void verbs_device_put(struct verbs_device *d);
/* All that uses the device ends; in every thread. */
void verbs_device_removed(struct verbs *v, struct ibv_context *ctx);
/* Before and after devices are listed: those in use that are not there any more
 * are removed. */
void verbs_devices_look_for(struct verbs *v);
void verbs_devices_look(struct verbs *v);
bool verbs_any_device(void);

/* sysfs.c */
bool verbs_class_exists(void);

/* cm.c */
extern const struct rcap_ops verbs_rcap_ops;
void verbs_conn_event(struct verbs_conn *c, const struct rdma_cm_event *ev);
struct verbs_conn *verbs_conn_new(struct verbs *v,
				  const struct verbs_config *cfg);
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
void verbs_push(struct verbs_conn *c);
void verbs_push_recvs(struct verbs_conn *c);
void verbs_give_back(struct verbs_conn *c);

/* poll.c */
int verbs_poll_new(struct verbs_conn *c, const struct ibv_device_attr *attr);
void verbs_poll_end(struct verbs_conn *c);  /* nothing is told any more */
void verbs_poll_free(struct verbs_conn *c); /* the queue pair is gone */
/* All that is done is told; false: nothing was. */
bool verbs_poll(struct verbs_conn *c);

/* memory.c */
int verbs_memory_new(struct verbs_conn *c);
void verbs_memory_free(struct verbs_conn *c);
/* verbs_transfer: NULL: none is free, or errno says why not. inl: INLINE_MAX
 * bytes for what goes along with the request. */
struct transfer *verbs_transfer(struct verbs_conn *c, struct rcap_wr *wr,
				struct ibv_sge *sge, uint8_t *inl);
void verbs_transfer_done(struct verbs_conn *c, struct transfer *t, bool ok);
struct ibv_mr *verbs_recv_mr(struct verbs_conn *c, const struct rcap_recv *r);
int verbs_reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	      unsigned rights, struct rcap_mr *mr);
void verbs_invalidate(struct rcap_qp *qp, struct rcap_mr *mr);

#endif
