/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_verbs.c: see fake_verbs.h. */
#include "unit/rcap/fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cmocka_all.h"

#define QUEUE 512

struct fake_cq {
	struct ibv_cq cq; /* first */
	struct ibv_wc wc[QUEUE];
	unsigned get, put;
	bool armed;
};

struct fake_channel {
	struct ibv_comp_channel channel; /* first */
	struct ibv_cq *events[QUEUE];
	unsigned get, put;
};

struct fake_cm_channel {
	struct rdma_event_channel channel; /* first */
	struct rdma_cm_event events[16];
	unsigned get, put;
};

struct fake fake;
static struct ibv_device device[2];
static unsigned which;
static struct ibv_context context[2];
static struct ibv_async_event async[16];
static unsigned async_get, async_put;

static int counter(void)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);

	assert_true(fd >= 0);
	return fd;
}

static void raise_one(int fd)
{
	uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

static bool take_one(int fd)
{
	uint64_t one;

	return read(fd, &one, sizeof(one)) == sizeof(one);
}

/* ---- the device's own calls ---- */

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct fake_cq *c = (struct fake_cq *)(void *)cq;
	int k = 0;

	while (k < n && c->get != c->put)
		wc[k++] = c->wc[c->get++ % QUEUE];
	return k;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	assert_false(solicited_only);
	((struct fake_cq *)(void *)cq)->armed = true;
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	(void)qp;
	fake.send_calls++;
	*bad = wr;
	for (; wr && !fake.post_error; wr = wr->next) {
		struct fake_send *s = &fake.sends[fake.nsends++ % FAKE_SENDS];
		struct ibv_sge *g = wr->sg_list;

		*s = (struct fake_send){ .wr_id = wr->wr_id,
					 .opcode = wr->opcode,
					 .flags = wr->send_flags,
					 .pieces = wr->num_sge,
					 .rkey = wr->wr.rdma.rkey,
					 .invalidate = wr->invalidate_rkey };
		s->len = wr->num_sge ? g->length : 0;
		if (wr->send_flags & IBV_SEND_INLINE)
			assert_in_range(s->len, 0, FAKE_INLINE);
		else
			s->at = (uint8_t *)(uintptr_t)g->addr;
		if (wr->opcode != IBV_WR_RDMA_READ)
			memcpy(s->bytes, (void *)(uintptr_t)g->addr,
			       MIN(s->len, (uint32_t)FAKE_BYTES));
	}
	return fake.post_error;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	(void)qp;
	(void)bad;
	fake.recv_calls++;
	for (; wr; wr = wr->next)
		fake.recvs[fake.nrecvs++ % FAKE_SENDS] = wr->wr_id;
	return 0;
}

/* ---- for the test ---- */

static void make_context(unsigned i)
{
	device[i].transport_type =
		fake.is_iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	context[i] = (struct ibv_context){ .device = &device[i],
					   .cmd_fd = counter(),
					   .async_fd = counter() };
	context[i].ops.poll_cq = poll_cq;
	context[i].ops.req_notify_cq = req_notify_cq;
	context[i].ops.post_send = post_send;
	context[i].ops.post_recv = post_recv;
	fake.ctx = &context[i];
	which = i;
}

void fake_begin(void)
{
	fake = (struct fake){ .nsends = 0 };
	async_get = async_put = 0;
	make_context(0);
}

void fake_other_device(void)
{
	make_context(1);
}

void fake_end(void)
{
	assert_int_equal(fake.mrs + fake.ids + fake.qps + fake.cqs, 0);
	assert_int_equal(fake.channels, 0);
	assert_int_equal(fake.cq_events, fake.cq_acks);
	assert_int_equal(fake.async_events, fake.async_acks);
	for (unsigned i = 0; i <= which; i++) {
		close(context[i].cmd_fd);
		close(context[i].async_fd);
	}
}

bool fake_armed(const struct ibv_cq *cq)
{
	return ((const struct fake_cq *)(const void *)cq)->armed;
}

static void complete(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct fake_cq *c = (struct fake_cq *)(void *)cq;
	struct fake_channel *ch = (struct fake_channel *)(void *)cq->channel;

	c->wc[c->put++ % QUEUE] = *wc;
	if (!c->armed)
		return;
	c->armed = false;
	ch->events[ch->put++ % QUEUE] = cq;
	raise_one(ch->channel.fd);
}

void fake_sent(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .wr_id = wr_id,
			     .status = status,
			     .opcode = IBV_WC_SEND };

	complete(cq, &wc);
}

void fake_received(struct ibv_cq *cq, uint64_t wr_id, uint32_t len,
		   unsigned flags, uint32_t inv)
{
	struct ibv_wc wc = { .wr_id = wr_id,
			     .opcode = IBV_WC_RECV,
			     .byte_len = len,
			     .wc_flags = flags,
			     .invalidated_rkey = inv };

	complete(cq, &wc);
}

void fake_cm(struct rdma_cm_id *id, struct rdma_cm_id *listen,
	     enum rdma_cm_event_type type, const char *private_data)
{
	struct fake_cm_channel *c =
		(struct fake_cm_channel *)(void *)(listen ? listen : id)
			->channel;
	struct rdma_cm_event *ev = &c->events[c->put++ % 16];

	*ev = (struct rdma_cm_event){ .id = id,
				      .listen_id = listen,
				      .event = type };
	ev->param.conn.responder_resources = 4;
	ev->param.conn.initiator_depth = 4;
	ev->param.conn.private_data = private_data;
	ev->param.conn.private_data_len =
		(uint8_t)(private_data ? strlen(private_data) : 0);
	raise_one(c->channel.fd);
}

void fake_async(enum ibv_event_type type, struct ibv_qp *qp, struct ibv_cq *cq)
{
	struct ibv_async_event *ev = &async[async_put++ % 16];

	*ev = (struct ibv_async_event){ .event_type = type };
	if (qp)
		ev->element.qp = qp;
	else
		ev->element.cq = cq;
	raise_one(fake.ctx->async_fd);
}

bool verbs_class_exists(void)
{
	return !fake.no_class;
}

/* ---- libibverbs ---- */

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(2, sizeof(list[0]));

	assert_non_null(list);
	list[0] = fake.no_device ? NULL : &device[which];
	*n = fake.no_device ? 0 : 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d == &device[0] ? "fake0" : "fake1";
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ERR ? "port error" : "some event";
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "retries exceeded" : "wrong";
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	*attr = (struct ibv_device_attr){
		.max_qp_wr = 64,
		.max_cqe = 1000,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS,
	};
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct fake_channel *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->channel.context = ctx;
	c->channel.fd = counter();
	fake.channels++;
	return &c->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	fake.channels--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int n, void *arg,
			     struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *c = calloc(1, sizeof(*c));

	(void)n;
	(void)vector;
	assert_non_null(c);
	c->cq.context = ctx;
	c->cq.channel = channel;
	c->cq.cq_context = arg;
	fake.last_cq = &c->cq;
	fake.cqs++;
	return &c->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	fake.cqs--;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **ctx)
{
	struct fake_channel *c = (struct fake_channel *)(void *)channel;

	if (!take_one(channel->fd))
		return -1;
	*cq = c->events[c->get++ % QUEUE];
	*ctx = (*cq)->cq_context;
	fake.cq_events++;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	fake.cq_acks += n;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t len, int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	(void)access;
	assert_non_null(mr);
	mr->pd = pd;
	mr->addr = at;
	mr->length = len;
	mr->lkey = mr->rkey = 0x100 + fake.mrs++;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t len,
				uint64_t iova, unsigned access)
{
	(void)iova;
	return ibv_reg_mr(pd, at, len, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	fake.mrs--;
	return 0;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *ev)
{
	if (!take_one(ctx->async_fd))
		return -1;
	*ev = async[async_get++ % 16];
	fake.async_events++;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *ev)
{
	(void)ev;
	fake.async_acks++;
}

/* ---- librdmacm ---- */

/* The id of the event in progress: rdma_destroy_id would never return. */
static const struct rdma_cm_id *unacked;

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct fake_cm_channel *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->channel.fd = counter();
	return &c->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(channel->fd);
	free(channel);
}

int rdma_get_cm_event(struct rdma_event_channel *channel,
		      struct rdma_cm_event **ev)
{
	struct fake_cm_channel *c = (struct fake_cm_channel *)(void *)channel;

	if (!take_one(channel->fd))
		return -1;
	*ev = &c->events[c->get++ % 16];
	unacked = (*ev)->listen_id ? (*ev)->listen_id : (*ev)->id;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *ev)
{
	(void)ev;
	unacked = NULL;
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type type)
{
	(void)type;
	return "an event";
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		   void *arg, enum rdma_port_space space)
{
	struct rdma_cm_id *i = calloc(1, sizeof(*i));

	assert_non_null(i);
	i->channel = channel;
	i->context = arg;
	i->ps = space;
	i->qp_type = IBV_QPT_RC;
	fake.ids++;
	*id = fake.last_id = i;
	return 0;
}

struct rdma_cm_id *fake_id(struct rdma_cm_id *listen)
{
	struct rdma_cm_id *id;

	rdma_create_id(listen->channel, &id, listen->context, RDMA_PS_TCP);
	id->verbs = fake.ctx;
	return id;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	assert_null(id->qp);
	assert_ptr_not_equal(id, unacked);
	free(id);
	fake.ids--;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *sa)
{
	(void)sa;
	id->verbs = fake.ctx;
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)id;
	(void)backlog;
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
		      struct sockaddr *dst, int ms)
{
	(void)src;
	(void)dst;
	(void)ms;
	id->verbs = fake.ctx;
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)id;
	(void)ms;
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	static struct ibv_pd own;

	assert_int_equal(attr->sq_sig_all, 0);
	if (attr->cap.max_inline_data > FAKE_INLINE || fake.qp_error) {
		errno = fake.qp_error ? fake.qp_error : EINVAL;
		return -1;
	}
	id->qp = calloc(1, sizeof(*id->qp));
	assert_non_null(id->qp);
	id->qp->context = id->verbs;
	id->qp->qp_num = 42;
	id->pd = pd ? pd : &own;
	fake.qps++;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	free(id->qp);
	id->qp = NULL;
	fake.qps--;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	(void)id;
	(void)p;
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	(void)id;
	(void)p;
	fake.accepts++;
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	(void)id;
	(void)data;
	(void)len;
	fake.rejects++;
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	fake.disconnects++;
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	fake.migrations++;
	if (fake.migrate_error) {
		errno = fake.migrate_error;
		return -1;
	}
	id->channel = channel;
	return 0;
}
