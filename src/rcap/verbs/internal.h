/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h: internals of the provider for RDMA devices. Private to this room.
 *   common.c  functions that all of the following files call
 *   module.c  the exported table, the event channel
 *   listen.c  listeners; connection requests until a worker takes them
 *   cm.c      connecting, accepting, closing
 *   device.c  devices: their events, removal and return
 *   work.c    work requests
 *   poll.c    completions
 *   memory.c  memory that a device may access: slots, registrations
 *   sysfs.c   whether there can be devices at all
 */
#ifndef RCAP_VERBS_INTERNAL_H
#define RCAP_VERBS_INTERNAL_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/err.h"
#include "rcap/verbs/verbs.h"

#define PRIVATE_MAX 56
/* Sends and small payload are copied to slots, which are registered once. */
#define SLOT_LEN 8704
/* Sizes of inline data to request; the first that a device accepts is used: a
 * response with sense data, a header (the size that ib_iser and siw use),
 * none. */
#define INLINE_WISHES \
 {                    \
  256, 128, 80, 0     \
 }
#define INLINE_MAX 256
#define BATCH	   32
/* How often to list the devices while there is a listener. */
#define LOOK_EVERY (2 * XTIME_S)

/* The first member of every object that a cm_id's context points to. */
enum verbs_kind {
	VERBS_LISTENER = 1,
	VERBS_REQUEST,
	VERBS_CONN,
};

/* An event of a device, copied for each thread, which looks for the object that
 * it concerns. */
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
	/* NULL: no device has been found yet */
	struct rdma_event_channel *channel;
	struct io_watch watch;
	bool watching;
	struct list conns;     /* verbs_conn.link */
	struct list listeners; /* verbs_listener.link */
	struct io_timer look;
	/* on a helper thread: listing can take long */
	struct io_file_op listing;
	bool is_listing;
	struct ibv_device **listed; /* the devices that the listing found */
	int nlisted;
	struct io_defer tidy; /* closes listeners whose device was removed */
	/* device.c, guarded by its lock */
	/* link of the list of all struct verbs of this process */
	struct list process;
	/* verbs_device.link; only this thread changes it */
	struct list devices;
	struct verbs_note notes[NOTES_MAX];
	unsigned nnotes;
	bool noted;
	struct io_post told;
};

/* A device in use by one struct verbs. */
struct verbs_device {
	struct list link;
	struct verbs *v;
	struct ibv_context *ctx;
	char name[64];
	unsigned users; /* connections and listeners */
	bool gone;
	bool looked_for;       /* was in use when the listing started */
	struct io_watch watch; /* its asynchronous events */
};

/* rcap_wr.local: whether the request is done. */
enum {
	WR_WITH_DEVICE,
	WR_FINISHED
};

/* The device's share of a work request. */
struct transfer {
	struct list link; /* of verbs_conn.sq: free_transfers or flight */
	/* NULL: the bytes have been copied and the request is done */
	struct rcap_wr *wr;
	uint8_t *slot;	   /* SLOT_LEN bytes, of this transfer for good */
	uint8_t *bounce;   /* or memory allocated for this request */
	struct ibv_mr *mr; /* or a registration made for this request */
	uint8_t *from;	   /* the memory that the device reads or writes */
	bool is_read;
	bool copy_back; /* a Read: copy the bytes to wr->data when it is done */
};

/* A registered receive buffer; users post the same ones again and again. */
struct recv_mr {
	uint8_t *buf;
	size_t cap;
	struct ibv_mr *mr;
};

struct verbs_conn {
	enum verbs_kind kind; /* first */
	bool is_iwarp;
	struct rcap_qp qp;
	struct verbs *v;
	struct list link; /* verbs.conns */
	struct verbs_config cfg;
	uint8_t private_data[PRIVATE_MAX];
	struct rdma_cm_id *id;
	struct verbs_device *dev; /* set with the queue pair */
	/* the completion queues of the queue pair; NULL before it exists. That of
	 * the send queue reports completions only while a user waits for one */
	struct {
		struct ibv_comp_channel *channel;
		struct ibv_cq *send, *recv;
		bool send_armed, recv_armed;
		unsigned send_events, recv_events; /* to acknowledge */
		struct io_watch watch;
		bool watching;
	} cq;
	struct io_defer turn; /* posts what the turn has collected */
	/* the send queue: work requests and their memory */
	struct {
		struct list pending; /* not yet posted to the device */
		/* posted to the device or done, not yet returned to the user */
		struct list owed;
		struct list flight; /* transfers posted to the device, in order */
		/* waited: those whose request is not done */
		unsigned in_device, waited;
		unsigned max, unsignalled;
		uint32_t max_inline;
		struct transfer *transfers;
		struct list free_transfers;
		uint8_t *slots;
		struct ibv_mr *slots_mr;
	} sq;
	/* regions for the peer, until they are invalidated */
	struct list regions;
	/* the receive queue: receives and their memory */
	struct {
		struct list pending; /* not yet posted to the device */
		struct list held;    /* posted to the device */
		struct recv_mr *mrs;
		unsigned nmrs, max_mrs;
	} rq;
	/* how the connection ends, and whom to inform */
	struct {
		bool peer_first; /* the peer has until the timer to disconnect */
		bool disconnecting, begun;
		int err;
		char why[120];
		struct io_timer timer; /* of connecting and of disconnecting */
		struct io_defer report;
		void (*gone)(void *arg);
		void *gone_arg;
	} end;
};

struct verbs_listener {
	enum verbs_kind kind; /* first */
	struct list link;     /* verbs.listeners */
	struct verbs *v;
	/* NULL: no device has the address at present */
	struct rdma_cm_id *id;
	struct verbs_device *dev; /* NULL: all devices */
	/* its device was removed: id is destroyed at the end of the turn */
	bool lost;
	struct sockaddr_storage sa;
	struct verbs_config cfg;
	void (*asked)(void *arg, struct verbs_request *r);
	void *arg;
};

/* A connection request; belongs to one thread at a time. */
struct verbs_request {
	enum verbs_kind kind; /* first */
	struct verbs *v;      /* its events come through v's channel */
	struct rdma_cm_id *id;
	struct verbs_config cfg;
	bool dead; /* the peer has given up */
	struct rcap_cm cm;
	uint8_t private_data[UINT8_MAX];
};

static inline struct verbs_conn *conn_of(struct rcap_qp *qp)
{
	return container_of(qp, struct verbs_conn, qp);
}

/*  */
/* common.c */
/* verbs_channel creates the event channel when the first device is found. 0 or
 * -Exxx. */
/*  */
int verbs_channel(struct verbs *v);
/* verbs_watch watches it; on v's thread. 0 or -Exxx. */
int verbs_watch(struct verbs *v);
/* verbs_report gives the host a message. */
void verbs_report(struct verbs *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* verbs_listener_lost: the device was removed; the listener closes its id at
 * the end of the turn and may find another device later. */
void verbs_listener_lost(struct verbs_listener *l);
/* verbs_over ends the connection; its user is informed at the end of the
 * turn. The reason of the first call counts. */
void verbs_over(struct verbs_conn *c, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* verbs_drained: all requests are done; a disconnect may proceed. */
void verbs_drained(struct verbs_conn *c);
/* verbs_give_back returns requests that are done to the user, in order. */
void verbs_give_back(struct verbs_conn *c);

/* listen.c: verbs_request_new: NULL: out of memory. */
struct verbs_request *verbs_request_new(struct verbs_listener *l,
					const struct rdma_cm_event *ev);
/* verbs_request_event: any further event means that the peer gave up. */
void verbs_request_event(struct verbs_request *r);
/* verbs_tidy, verbs_look: callbacks of struct verbs. */
void verbs_tidy(struct io_defer *d);
void verbs_look(struct io_timer *t);
/* verbs_listen and the next four: see struct verbs_module. */
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

/* device.c: verbs_join and verbs_leave: v receives events of devices. */
void verbs_join(struct verbs *v);
void verbs_leave(struct verbs *v);
/* verbs_device_get counts a use of the device. NULL: out of memory. */
struct verbs_device *verbs_device_get(struct verbs *v, struct ibv_context *ctx);
/* verbs_device_put ends a use, after its cm_id is destroyed. NULL has no
 * effect. */
void verbs_device_put(struct verbs_device *d);
/* verbs_device_removed ends all uses of the device, in every thread. */
void verbs_device_removed(struct verbs *v, struct ibv_context *ctx);
/* verbs_devices_look_for marks the devices in use before a listing;
 * verbs_devices_look removes those that the listing did not find. */
void verbs_devices_look_for(struct verbs *v);
void verbs_devices_look(struct verbs *v);
/* verbs_any_device: libibverbs finds a device now. */
bool verbs_any_device(void);

/* sysfs.c: verbs_class_exists: the kernel part of RDMA is loaded. */
bool verbs_class_exists(void);

/*  */
/* cm.c */
extern const struct rcap_ops verbs_rcap_ops;
/* verbs_conn_event handles an event of the connection manager. */
void verbs_conn_event(struct verbs_conn *c, const struct rdma_cm_event *ev);
/* verbs_conn_new: without cm_id and queue pair. NULL: out of memory. */
struct verbs_conn *verbs_conn_new(struct verbs *v,
				  const struct verbs_config *cfg);
/* verbs_connect, verbs_conn_free: see struct verbs_module. */
struct verbs_conn *verbs_connect(struct verbs *v, const struct sockaddr *dst,
				 const struct verbs_config *cfg, int *err);
void verbs_conn_free(struct verbs_conn *c);

/*  */
/* work.c: verbs_work_new makes the queue pair. 0 or -Exxx. */
int verbs_work_new(struct verbs_conn *c);
/* verbs_work_end destroys the queue pair and returns all requests and receives
 * with ERR_ABORTED. is_there: the memory of the regions still exists. */
void verbs_work_end(struct verbs_conn *c, bool is_there);
/* verbs_post, verbs_post_recv: see rcap_ops. */
void verbs_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);
void verbs_post_recv(struct rcap_qp *qp, struct rcap_recv *r);
/* verbs_push posts requests to the device, as many as it has room for. */
void verbs_push(struct verbs_conn *c);
/* verbs_push_recvs posts all receives to the device. */
void verbs_push_recvs(struct verbs_conn *c);

/*  */
/* poll.c: verbs_poll_new makes the completion queues. 0 or -Exxx. */
int verbs_poll_new(struct verbs_conn *c, const struct ibv_device_attr *attr);
/* verbs_poll_end: the loop reports no completion any more. */
void verbs_poll_end(struct verbs_conn *c);
/* verbs_poll_free: after the queue pair is destroyed. */
void verbs_poll_free(struct verbs_conn *c);
/* verbs_poll_sends handles completions of sends; false: there was none. */
bool verbs_poll_sends(struct verbs_conn *c);
/* verbs_arm asks for events of the next completions. True: a completion may
 * have arrived before: poll again. */
bool verbs_arm(struct verbs_conn *c);
/* verbs_poll handles all completions; false: there was none. */
bool verbs_poll(struct verbs_conn *c);

/*  */
/* memory.c: verbs_memory_new makes the slots. 0 or -Exxx. */
int verbs_memory_new(struct verbs_conn *c);
void verbs_memory_free(struct verbs_conn *c, bool is_there);
/* verbs_transfer prepares the memory of a request and fills sge. NULL: no
 * transfer is free, or errno has the reason. inl: INLINE_MAX bytes for inline
 * data. */
struct transfer *verbs_transfer(struct verbs_conn *c, struct rcap_wr *wr,
				struct ibv_sge *sge, uint8_t *inl);
/* verbs_transfer_done frees t; ok: a Read gets its bytes. */
void verbs_transfer_done(struct verbs_conn *c, struct transfer *t, bool ok);
/* verbs_recv_mr: the registration of a receive; NULL: errno has the reason. */
struct ibv_mr *verbs_recv_mr(struct verbs_conn *c, const struct rcap_recv *r);
/* verbs_reg, verbs_invalidate: see rcap_ops. */
int verbs_reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	      unsigned rights, struct rcap_mr *mr);
void verbs_invalidate(struct rcap_qp *qp, struct rcap_mr *mr);

#endif
