/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_test.c: the verbs provider on a fake device: signalling, copies,
 * completion of requests; listeners, events, removal of devices.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "net/conn.h"
#include "net/verbs.h"
#include "unit/rcap/fake_verbs.h"

extern const struct verbs_module openiser_verbs;

#define SENDS 16
#define LARGE 20000u

struct world {
	struct io_loop *l;
	struct verbs *v;
	struct verbs_conn *c;
	struct rcap_wr *done[128];
	unsigned ndone, naborted, nreceived, nrequests, nestablished;
	int closed_err;
	bool closed;
	char why[120], said[4][80];
	unsigned nsaid;
	struct verbs_request *request;
	struct verbs_listener *listener;
	uint8_t peer_data[8];
	struct rcap_recv last;
};

static const struct sockaddr_in address = { .sin_family = AF_INET };

static const struct sockaddr *sa(void)
{
	return (const struct sockaddr *)(const void *)&address;
}

/* ---- the user ---- */

static void on_request(void *arg, const struct rcap_cm *cm)
{
	struct world *w = arg;

	w->nrequests++;
	memcpy(w->peer_data, cm->private_data, cm->private_len);
}

static void on_established(void *arg, const struct rcap_cm *cm)
{
	struct world *w = arg;

	(void)cm;
	w->nestablished++;
}

static void on_done(void *arg, struct rcap_wr *wr, int err)
{
	struct world *w = arg;

	w->naborted += err == ERR_ABORTED;
	if (!err)
		w->done[w->ndone++] = wr;
}

static void on_received(void *arg, struct rcap_recv *r, int err)
{
	struct world *w = arg;

	w->naborted += err == ERR_ABORTED;
	w->nreceived += !err;
	w->last = *r;
}

static void on_closed(void *arg, int err, const char *why)
{
	struct world *w = arg;

	w->closed = true;
	w->closed_err = err;
	snprintf(w->why, sizeof(w->why), "%s", why);
}

static const struct rcap_user user = {
	.connect_request = on_request,
	.established = on_established,
	.wr_done = on_done,
	.received = on_received,
	.closed = on_closed,
};

static void on_event(void *arg, const char *text)
{
	struct world *w = arg;

	snprintf(w->said[w->nsaid++ % 4], sizeof(w->said[0]), "%s", text);
}

static void turn(struct world *w)
{
	for (int i = 0; i < 6; i++)
		assert_true(io_loop_turn(w->l, 0) >= 0);
}

static void begin(struct world *w, bool wait)
{
	const struct verbs_host host = { .wait = wait,
					 .event = on_event,
					 .arg = w };
	int err;

	*w = (struct world){ .ndone = 0 };
	w->l = io_loop_new(IO_EPOLL, &err);
	assert_non_null(w->l);
	w->v = openiser_verbs.open(w->l, &host, &err);
	assert_non_null(w->v);
}

static void end(struct world *w)
{
	openiser_verbs.free(w->c);
	openiser_verbs.close(w->v);
	io_loop_free(w->l);
	fake_end();
}

static const struct verbs_config config = { .ird = 4,
					    .ord = 4,
					    .sends = SENDS,
					    .recvs = 8,
					    .connect_time = 10 * XTIME_S };

/* An established connection, on the active side. */
static void connected(struct world *w)
{
	int err;

	begin(w, false);
	w->c = openiser_verbs.connect(w->v, sa(), &config, &err);
	assert_non_null(w->c);
	rcap_set_user(openiser_verbs.qp(w->c), &user, w);
	fake_cm(w->c->id, NULL, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	fake_cm(w->c->id, NULL, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	fake_cm(w->c->id, NULL, RDMA_CM_EVENT_ESTABLISHED, NULL);
	turn(w);
	assert_int_equal(w->nestablished, 1);
}

static uint8_t memory[128][LARGE];

struct request {
	struct rcap_wr wr;
	struct iovec iov;
};

static struct rcap_wr *make(struct request *r, enum rcap_op op, size_t len)
{
	static unsigned n;
	uint8_t *at = memory[n++ % 128];

	memset(at, 0x40 + (int)(n % 64), len);
	r->iov = (struct iovec){ at, len };
	r->wr = (struct rcap_wr){ .op = op,
				  .data = bufv_of(&r->iov, 1),
				  .stag = 0x1234,
				  .to = 0x9000 };
	return &r->wr;
}

static void post(struct world *w, struct rcap_wr *wr)
{
	assert_int_equal(rcap_post(&w->c->qp, &wr, 1), 0);
}

static struct fake_send *sent(unsigned i)
{
	assert_true(i < fake.nsends);
	return &fake.sends[i];
}

static void complete(struct world *w, unsigned i)
{
	fake_sent(w->c->cq.send, sent(i)->wr_id, IBV_WC_SUCCESS);
}

/* ---- work requests ---- */

/* The requests of a turn are posted in one call, small payload inline; the last
 * one is signalled, and all are returned without a completion. */
static void test_small_inline_one_signal(void **state)
{
	struct request r[4];
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	assert_int_equal(w.c->sq.max_inline, 80); /* 256 and 128 were refused */
	post(&w, make(&r[0], RCAP_WRITE, 36));
	post(&w, make(&r[1], RCAP_SEND, 76));
	post(&w, make(&r[2], RCAP_WRITE, 4096));
	post(&w, make(&r[3], RCAP_SEND, 76));
	assert_int_equal(fake.send_calls, 0);
	assert_int_equal(w.ndone, 0); /* not from within the post */
	turn(&w);
	assert_int_equal(fake.send_calls, 1);
	assert_int_equal(fake.nsends, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(!!(sent(i)->flags & IBV_SEND_SIGNALED),
				 i == 3);
		assert_int_equal(!!(sent(i)->flags & IBV_SEND_INLINE), i != 2);
		assert_int_equal(sent(i)->len, r[i].iov.iov_len);
		assert_memory_equal(sent(i)->bytes, r[i].iov.iov_base, 36);
		assert_ptr_equal(w.done[i], &r[i].wr);
	}
	assert_int_equal(w.ndone, 4);
	assert_false(fake_armed(w.c->cq.send)); /* no request waits */
	assert_true(fake_armed(w.c->cq.recv));
	complete(&w, 3);
	assert_int_equal(w.c->sq.in_device, 4);
	verbs_poll(w.c);
	/* all four, by one completion */
	assert_int_equal(w.c->sq.in_device, 0);
	end(&w);
}

/* siw sends a page or more of an unsignalled request by reference, and TCP may
 * read it after later completions: so each such request is signalled, which
 * makes siw copy. */
static void test_pages_over_siw_are_signalled(void **state)
{
	static const size_t len[] = { 4095, 4096, SLOT_LEN, 76 };
	struct request r[4];
	struct world w;

	(void)state;
	for (int iwarp = 0; iwarp < 2; iwarp++) {
		fake_begin();
		fake.is_iwarp = iwarp;
		fake_other_device(); /* made with it */
		connected(&w);
		for (unsigned i = 0; i < 4; i++)
			post(&w, make(&r[i], i % 2 ? RCAP_WRITE : RCAP_SEND,
				      len[i]));
		turn(&w);
		assert_int_equal(fake.nsends, 4);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(!!(sent(i)->flags & IBV_SEND_SIGNALED),
					 iwarp && len[i] >= 4096);
		assert_true(sent(3)->flags & IBV_SEND_SIGNALED);
		assert_int_equal(w.ndone, 4); /* no request waits for that */
		end(&w);
	}
}

/* A request that uses memory of its owner is signalled and waited for; later
 * requests are returned after it. */
static void test_large_is_waited_for(void **state)
{
	struct request r[2];
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	post(&w, make(&r[0], RCAP_WRITE, LARGE));
	post(&w, make(&r[1], RCAP_SEND, 76));
	turn(&w);
	assert_true(sent(0)->flags & IBV_SEND_SIGNALED);
	assert_ptr_equal(sent(0)->at, r[0].iov.iov_base); /* in place */
	assert_int_equal(w.ndone, 0);
	assert_true(fake_armed(w.c->cq.send));
	complete(&w, 0);
	turn(&w);
	assert_int_equal(w.ndone, 2);
	assert_ptr_equal(w.done[0], &r[0].wr);
	assert_int_equal(w.c->sq.in_device, 1);
	end(&w);
}

/* siw reports a Send before the Read that was posted first: the Read is done
 * with its own completion, and is still returned first. */
static void test_read_told_late(void **state)
{
	struct request r[2];
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	post(&w, make(&r[0], RCAP_READ, 512));
	post(&w, make(&r[1], RCAP_SEND, 76));
	turn(&w);
	complete(&w, 1);
	turn(&w);
	assert_int_equal(w.ndone, 0);
	memset(sent(0)->at, 0x99, 512);
	complete(&w, 0);
	turn(&w);
	assert_int_equal(w.ndone, 2);
	assert_ptr_equal(w.done[0], &r[0].wr);
	assert_int_equal(((uint8_t *)r[0].iov.iov_base)[511], 0x99);
	assert_int_equal(w.c->sq.in_device, 0);
	end(&w);
}

/* siw refuses a Read without a sink, even one of no bytes, which shows that earlier
 * Writes were placed (RFC 7145 §7.3.5). */
static void test_read_of_nothing(void **state)
{
	struct request r[2];
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	post(&w, make(&r[0], RCAP_WRITE, 76));
	post(&w, make(&r[1], RCAP_READ, 0));
	turn(&w);
	assert_int_equal(sent(1)->opcode, IBV_WR_RDMA_READ);
	assert_int_equal(sent(1)->pieces, 1);
	assert_int_equal(sent(1)->len, 0);
	assert_true(sent(1)->flags & IBV_SEND_SIGNALED);
	assert_int_equal(w.ndone, 1);
	complete(&w, 1);
	turn(&w);
	assert_ptr_equal(w.done[1], &r[1].wr);
	end(&w);
}

/* More requests than the device has room for: one in a while is signalled, and
 * the rest is posted when it completes. */
static void test_queue_full(void **state)
{
	struct request r[40];
	struct world w;
	unsigned signalled = 0;

	(void)state;
	fake_begin();
	connected(&w);
	for (unsigned i = 0; i < 40; i++)
		post(&w, make(&r[i], RCAP_SEND, 100 + i));
	turn(&w);
	assert_int_equal(fake.nsends, SENDS);
	for (unsigned i = 0; i < SENDS; i++)
		signalled += !!(sent(i)->flags & IBV_SEND_SIGNALED);
	assert_int_equal(signalled, 4); /* a quarter of the queue each */
	assert_true(fake_armed(w.c->cq.send));
	complete(&w, 7);
	turn(&w);
	assert_int_equal(fake.nsends, SENDS + 8);
	complete(&w, 15);
	complete(&w, 23);
	turn(&w);
	assert_int_equal(fake.nsends, 40);
	assert_int_equal(w.ndone, 40);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(sent(i)->bytes[0],
				 *(uint8_t *)r[i].iov.iov_base);
	end(&w);
}

/* [RFC 5040 §4.3] the region is named in the field of the interface and in the
 * field that siw reads; no inline data with siw. */
static void test_send_with_invalidate(void **state)
{
	struct request r;
	struct world w;

	(void)state;
	for (int iwarp = 0; iwarp < 2; iwarp++) {
		fake_begin();
		fake.is_iwarp = iwarp;
		fake_other_device(); /* made with it */
		connected(&w);
		make(&r, RCAP_SEND, 76)->flags = RCAP_INVALIDATE;
		assert_true(w.c->qp.send_inv);
		post(&w, &r.wr);
		turn(&w);
		assert_int_equal(sent(0)->opcode, IBV_WR_SEND_WITH_INV);
		assert_int_equal(sent(0)->invalidate, 0x1234);
		assert_int_equal(sent(0)->rkey, 0x1234);
		assert_int_equal(!(sent(0)->flags & IBV_SEND_INLINE), iwarp);
		end(&w);
	}
}

static void test_receives_in_one_call(void **state)
{
	static uint8_t buf[4][256];
	struct rcap_recv r[4] = { 0 };
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	for (unsigned i = 0; i < 4; i++) {
		r[i].buf = buf[i];
		r[i].cap = 256;
		assert_int_equal(rcap_post_recv(&w.c->qp, &r[i]), 0);
	}
	turn(&w);
	assert_int_equal(fake.recv_calls, 1);
	assert_int_equal(fake.nrecvs, 4);
	fake_received(w.c->cq.recv, fake.recvs[0], 17, IBV_WC_WITH_INV, 0x77);
	turn(&w);
	assert_int_equal(w.nreceived, 1);
	assert_int_equal(w.last.len, 17);
	assert_true(w.last.invalidated);
	assert_int_equal(w.last.stag, 0x77);
	assert_true(fake_armed(w.c->cq.recv)); /* again */
	openiser_verbs.free(w.c);
	w.c = NULL;
	assert_int_equal(w.naborted, 3);
	end(&w);
}

/* ---- the end ---- */

/* Posted requests are sent before the connection ends. */
static void test_disconnect_waits(void **state)
{
	struct request r;
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	post(&w, make(&r, RCAP_SEND, 76));
	rcap_disconnect(&w.c->qp);
	turn(&w);
	assert_int_equal(fake.nsends, 1);
	assert_int_equal(fake.disconnects, 0);
	complete(&w, 0);
	turn(&w);
	assert_int_equal(fake.disconnects, 1);
	fake_cm(w.c->id, NULL, RDMA_CM_EVENT_DISCONNECTED, NULL);
	turn(&w);
	assert_true(w.closed);
	assert_int_equal(w.closed_err, 0);
	end(&w);
}

/* The peer has its time to disconnect first; then this end does. */
static void test_disconnect_after_the_peer(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct world w;

		fake_begin();
		connected(&w);
		rcap_disconnect_after(&w.c->qp, k ? XTIME_MS : 15 * XTIME_S);
		turn(&w);
		assert_int_equal(fake.disconnects, 0);
		while (k && !fake.disconnects)
			turn(&w);
		fake_cm(w.c->id, NULL, RDMA_CM_EVENT_DISCONNECTED, NULL);
		turn(&w);
		assert_true(w.closed);
		assert_int_equal(w.closed_err, 0);
		end(&w);
	}
}

/* An error ends the connection; all requests are returned. */
static void test_error_flushes(void **state)
{
	struct request r[3];
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	post(&w, make(&r[0], RCAP_SEND, 76));
	post(&w, make(&r[1], RCAP_WRITE, LARGE));
	post(&w, make(&r[2], RCAP_SEND, 76));
	turn(&w);
	assert_int_equal(w.ndone, 1);
	fake_sent(w.c->cq.send, sent(1)->wr_id, IBV_WC_RETRY_EXC_ERR);
	fake_sent(w.c->cq.send, sent(2)->wr_id, IBV_WC_WR_FLUSH_ERR);
	turn(&w);
	assert_int_equal(w.closed_err, ERR_RESET);
	assert_non_null(strstr(w.why, "retries exceeded"));
	assert_int_equal(w.naborted, 2);
	end(&w);
}

/* A region ends with its connection at the latest; one that was invalidated, or
 * is invalidated only afterwards, is not ended twice. */
static void test_regions_end(void **state)
{
	struct iovec one[1] = { { memory[0], LARGE } };
	struct iovec two[2] = { { memory[1], 512 }, { memory[3], 512 } };
	struct bufv in_one = bufv_of(one, 1), in_two = bufv_of(two, 2);
	struct rcap_mr mr[3];
	unsigned mrs;
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	mrs = fake.mrs;
	assert_int_equal(
		rcap_reg(&w.c->qp, &in_one, 0, RCAP_REMOTE_READ, &mr[0]), 0);
	assert_int_equal(
		rcap_reg(&w.c->qp, &in_two, 0, RCAP_REMOTE_WRITE, &mr[1]), 0);
	assert_int_equal(
		rcap_reg(&w.c->qp, &in_two, 0, RCAP_REMOTE_READ, &mr[2]), 0);
	rcap_invalidate(&w.c->qp, &mr[0]);
	assert_int_equal(fake.mrs, mrs + 2);
	rcap_terminate(&w.c->qp, ERR_PROTOCOL, "enough");
	turn(&w);
	assert_true(w.closed);
	assert_int_equal(fake.mrs, 0);
	rcap_invalidate(&w.c->qp, &mr[1]);
	end(&w);
}

/* What the peer has written to memory in several pieces stays written if the connection
 * is lost: the peer may know that it was placed (RFC 7145 §7.3.5). */
static void test_written_data_stay_rfc7145_7_3_5(void **state)
{
	struct iovec two[2] = { { memory[1], 512 }, { memory[3], 512 } };
	struct bufv data = bufv_of(two, 2);
	struct rcap_mr mr;
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	memset(memory[1], 0x11, 512);
	memset(memory[3], 0x11, 512);
	assert_int_equal(rcap_reg(&w.c->qp, &data, 0, RCAP_REMOTE_WRITE, &mr),
			 0);
	memset((void *)(uintptr_t)mr.base, 0x22, 600);
	rcap_terminate(&w.c->qp, ERR_PROTOCOL, "enough");
	turn(&w);
	assert_true(w.closed);
	assert_int_equal(memory[1][511], 0x22);
	assert_int_equal(memory[3][87], 0x22);
	assert_int_equal(memory[3][88], 0x11);
	end(&w);
}

static void test_post_fails(void **state)
{
	struct request r;
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	fake.post_error = ENOMEM;
	post(&w, make(&r, RCAP_SEND, 76));
	turn(&w);
	assert_int_equal(w.closed_err, ERR_RESET);
	assert_non_null(strstr(w.why, strerror(ENOMEM)));
	end(&w);
}

/* ---- what a device says unasked ---- */

static void test_async_events(void **state)
{
	static const enum ibv_event_type fatal[] = { IBV_EVENT_QP_FATAL,
						     IBV_EVENT_QP_ACCESS_ERR,
						     IBV_EVENT_CQ_ERR };
	struct ibv_qp other = { .qp_num = 7 };
	struct world w;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(fatal); i++) {
		fake_begin();
		connected(&w);
		fake_async(IBV_EVENT_PORT_ERR, NULL, NULL);
		fake_async(IBV_EVENT_QP_FATAL, &other, NULL);
		turn(&w);
		assert_string_equal(w.said[0], "fake0: port error");
		assert_false(w.closed); /* not meant */
		fake_async(fatal[i],
			   fatal[i] == IBV_EVENT_CQ_ERR ? NULL : w.c->id->qp,
			   w.c->cq.recv);
		turn(&w);
		assert_int_equal(w.closed_err, ERR_RESET);
		end(&w);
	}
}

/* ---- listeners ---- */

static void on_asked(void *arg, struct verbs_request *r)
{
	struct world *w = arg;

	w->request = r;
}

static void on_accepted(void *arg, struct verbs_conn *c)
{
	struct world *w = arg;

	w->c = c;
	rcap_set_user(openiser_verbs.qp(c), &user, w);
}

static void listening(struct world *w, struct verbs_listener **l)
{
	int err;

	begin(w, true);
	*l = openiser_verbs.listen(w->v, sa(), &config, on_asked, w, &err);
	assert_non_null(*l);
	assert_int_equal(err, fake.no_device ? -ENODEV : 0);
}

/* A helper thread lists the devices. */
static void look(struct world *w)
{
	verbs_look(&w->v->look);
	while (w->v->is_listing)
		assert_true(io_loop_turn(w->l, XTIME_S) >= 0);
	turn(w);
}

/* There is no device, then there is one, it is removed, and another one
 * appears. */
static void test_device_comes_and_goes(void **state)
{
	struct verbs_listener *l;
	struct ibv_context *old;
	struct world w;

	(void)state;
	fake_begin();
	fake.no_device = fake.no_class = true;
	listening(&w, &l);
	look(&w);
	fake.no_class = false;
	look(&w);
	assert_null(l->id);
	fake.no_device = false;
	look(&w);
	assert_non_null(l->id);
	assert_string_equal(w.said[0], "listening, device fake0");
	old = fake.ctx;
	fake_cm(l->id, NULL, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL);
	turn(&w);
	assert_null(l->id);
	assert_string_equal(w.said[1], "fake0: the device was removed");
	/* the descriptors of librdmacm lead to /dev/null now */
	assert_int_equal(write(old->cmd_fd, "x", 1), 1);
	fake_other_device();
	look(&w);
	assert_string_equal(w.said[2], "listening, device fake1");
	openiser_verbs.unlisten(l);
	end(&w);
}

/* A removed device without an event is missed in the listing; its connections
 * end. */
static void test_device_vanishes(void **state)
{
	struct verbs_listener *l;
	struct world w;

	(void)state;
	fake_begin();
	listening(&w, &l);
	fake_cm(fake_id(l->id), l->id, RDMA_CM_EVENT_CONNECT_REQUEST, "abc");
	turn(&w);
	openiser_verbs.take(w.request, on_accepted, &w);
	assert_int_equal(w.nrequests, 1);
	assert_memory_equal(w.peer_data, "abc", 3);
	assert_int_equal(w.c->qp.ird, 4);
	fake.no_device = true;
	look(&w);
	turn(&w);
	assert_true(w.closed);
	assert_null(l->id);
	openiser_verbs.unlisten(l);
	end(&w);
}

/* A device that appears after the listing started is not in it. */
static void test_listing_is_older(void **state)
{
	struct ibv_device *none[] = { NULL };
	struct world w;

	(void)state;
	fake_begin();
	connected(&w);
	w.v->listed = none;
	verbs_devices_look(w.v);
	turn(&w);
	assert_false(w.closed);
	verbs_devices_look_for(w.v);
	verbs_devices_look(w.v);
	turn(&w);
	assert_true(w.closed);
	w.v->listed = NULL;
	end(&w);
}

static void on_asked_once(void *arg, struct verbs_request *r)
{
	struct world *w = arg;

	w->request = r;
	openiser_verbs.unlisten(w->listener);
}

/* A listener may end when a device has appeared. */
static void test_unlisten_when_asked(void **state)
{
	struct world w;
	int err;

	(void)state;
	fake_begin();
	begin(&w, true);
	w.listener = openiser_verbs.listen(w.v, sa(), &config, on_asked_once,
					   &w, &err);
	assert_non_null(w.listener);
	fake_cm(fake_id(w.listener->id), w.listener->id,
		RDMA_CM_EVENT_CONNECT_REQUEST, "abc");
	turn(&w);
	assert_int_equal(fake.ids, 1);
	openiser_verbs.take(w.request, on_accepted, &w);
	assert_int_equal(w.nrequests, 1);
	end(&w);
}

/* The reason of a rejection is reported. */
static void test_no_queue_pair(void **state)
{
	struct verbs_listener *l;
	struct world w;

	(void)state;
	fake_begin();
	listening(&w, &l);
	fake.qp_error = ENOMEM;
	fake_cm(fake_id(l->id), l->id, RDMA_CM_EVENT_CONNECT_REQUEST, "abc");
	turn(&w);
	openiser_verbs.take(w.request, on_accepted, &w);
	assert_null(w.c);
	assert_int_equal(fake.rejects, 1);
	assert_string_equal(w.said[0],
			    "connection rejected: queue pair: Cannot "
			    "allocate memory (ulimit -l?)");
	openiser_verbs.unlisten(l);
	end(&w);
}

/* An event that another thread has posted and that is still unhandled. */
static void test_told_at_the_end(void **state)
{
	struct world w, other;

	(void)state;
	fake_begin();
	connected(&w);
	begin(&other, false);
	fake_async(IBV_EVENT_PORT_ERR, NULL, NULL);
	turn(&w);
	assert_true(other.v->noted);
	openiser_verbs.close(other.v);
	turn(&other);
	io_loop_free(other.l);
	end(&w);
}

/* The same memory, with more room. */
static void test_receive_grows(void **state)
{
	static uint8_t buf[64];
	struct rcap_recv r = { .buf = buf, .cap = 32 };
	struct world w;
	unsigned mrs;

	(void)state;
	fake_begin();
	connected(&w);
	assert_int_equal(rcap_post_recv(&w.c->qp, &r), 0);
	turn(&w);
	mrs = fake.mrs;
	fake_received(w.c->cq.recv, fake.recvs[0], 5, 0, 0);
	turn(&w);
	r.cap = 64;
	assert_int_equal(rcap_post_recv(&w.c->qp, &r), 0);
	turn(&w);
	assert_int_equal(fake.mrs, mrs + 1);
	end(&w);
}

/* ---- net/conn.c on a device's connection ---- */

const struct verbs_module *net_verbs_module(const struct net_verbs *v)
{
	(void)v;
	return &openiser_verbs;
}

static int too_many(void *arg, struct dm_conn *dm)
{
	(void)arg;
	(void)dm;
	return ERR_LIMIT;
}

static void never_closed(void *arg, int err)
{
	(void)arg;
	(void)err;
	fail();
}

static void take_for_net(void *arg, struct verbs_conn *vc)
{
	static const struct net_conn_ops ops = { .opened = too_many,
						 .closed = never_closed };
	struct world *w = arg;
	struct net_conn_config cfg;
	struct net_conn *c;

	net_conn_config_default(&cfg, ISCSI_TARGET);
	c = net_conn_new_verbs(w->l, NULL, vc, &cfg);
	assert_non_null(c);
	assert_int_equal(net_conn_start(c, &ops, w), ERR_LIMIT);
	net_conn_refuse_verbs(c);
}

/* The datamover has posted its first receive by then. */
static void test_too_many(void **state)
{
	struct verbs_listener *l;
	struct world w;

	(void)state;
	fake_begin();
	listening(&w, &l);
	fake_cm(fake_id(l->id), l->id, RDMA_CM_EVENT_CONNECT_REQUEST, "abc");
	turn(&w);
	openiser_verbs.take(w.request, take_for_net, &w);
	turn(&w);
	assert_int_equal(fake.rejects, 1);
	assert_int_equal(fake.accepts, 0);
	openiser_verbs.unlisten(l);
	end(&w);
}

/* A request moves to the channel of another thread, and its peer may have given
 * up by then. */
static void test_hand(void **state)
{
	static uint8_t buf[64];
	struct rcap_recv recv = { .buf = buf, .cap = sizeof(buf) };
	struct verbs_listener *l;
	struct sockaddr_storage peer;
	struct world w, other;
	struct verbs *v2;
	int err;

	(void)state;
	fake_begin();
	listening(&w, &l);
	begin(&other, true);
	v2 = other.v;
	fake_cm(fake_id(l->id), l->id, RDMA_CM_EVENT_CONNECT_REQUEST, "abc");
	turn(&w);
	w.request->id->route.addr.dst_sin =
		(struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = 0x01020304 };
	openiser_verbs.asker(w.request, &peer);
	assert_memory_equal(&peer, &w.request->id->route.addr.dst_sin,
			    sizeof(struct sockaddr_in));
	fake.migrate_error = EINVAL;
	err = openiser_verbs.hand(w.request, v2);
	assert_int_equal(err, -EINVAL);
	assert_ptr_equal(w.request->v, w.v);
	fake.migrate_error = 0;
	assert_int_equal(openiser_verbs.hand(w.request, v2), 0);
	assert_int_equal(fake.migrations, 2);
	openiser_verbs.take(w.request, on_accepted, &other);
	assert_ptr_equal(other.c->v, v2);
	/* its first message arrives before the connection is established */
	assert_int_equal(rcap_post_recv(&other.c->qp, &recv), 0);
	turn(&other);
	fake_received(other.c->cq.recv, fake.recvs[0], 5, 0, 0);
	turn(&other);
	assert_int_equal(other.nreceived, 0);
	fake_cm(other.c->id, NULL, RDMA_CM_EVENT_ESTABLISHED, NULL);
	turn(&other);
	assert_int_equal(other.nestablished, 1);
	assert_int_equal(other.nreceived, 1);
	/* the first thread reads an event that concerns the second */
	fake_async(IBV_EVENT_QP_FATAL, other.c->id->qp, NULL);
	turn(&w);
	turn(&other);
	assert_true(other.closed);
	openiser_verbs.free(other.c);
	other.c = NULL;
	/* a request whose peer gave up meanwhile */
	fake_cm(fake_id(l->id), l->id, RDMA_CM_EVENT_CONNECT_REQUEST, "abc");
	turn(&w);
	fake_cm(w.request->id, NULL, RDMA_CM_EVENT_REJECTED, NULL);
	turn(&w);
	openiser_verbs.take(w.request, on_accepted, &w);
	assert_null(w.c);
	assert_int_equal(fake.rejects, 0);
	/* a request that the user does not take */
	fake_cm(fake_id(l->id), l->id, RDMA_CM_EVENT_CONNECT_REQUEST, "abc");
	turn(&w);
	openiser_verbs.refuse(w.request);
	assert_int_equal(fake.rejects, 1);
	openiser_verbs.unlisten(l);
	openiser_verbs.close(v2);
	io_loop_free(other.l);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_inline_one_signal),
		cmocka_unit_test(test_pages_over_siw_are_signalled),
		cmocka_unit_test(test_large_is_waited_for),
		cmocka_unit_test(test_read_told_late),
		cmocka_unit_test(test_read_of_nothing),
		cmocka_unit_test(test_queue_full),
		cmocka_unit_test(test_send_with_invalidate),
		cmocka_unit_test(test_receives_in_one_call),
		cmocka_unit_test(test_disconnect_waits),
		cmocka_unit_test(test_disconnect_after_the_peer),
		cmocka_unit_test(test_error_flushes),
		cmocka_unit_test(test_regions_end),
		cmocka_unit_test(test_written_data_stay_rfc7145_7_3_5),
		cmocka_unit_test(test_post_fails),
		cmocka_unit_test(test_async_events),
		cmocka_unit_test(test_device_comes_and_goes),
		cmocka_unit_test(test_device_vanishes),
		cmocka_unit_test(test_listing_is_older),
		cmocka_unit_test(test_unlisten_when_asked),
		cmocka_unit_test(test_no_queue_pair),
		cmocka_unit_test(test_told_at_the_end),
		cmocka_unit_test(test_receive_grows),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
