/* SPDX-License-Identifier: BSD-2-Clause */
/* rbench_server.c: the server of iser rbench, and the codec of the messages. */
#include <stdlib.h>
#include <string.h>

#include "tools/rdma/rbench.h"

#define MAX_CLIENTS 16

static const char magic[4] = "ORB1";

/* ---- messages ---- */

void rbench_put_plan(const struct rbench_plan *p, uint8_t out[RBENCH_PLAN])
{
	memset(out, 0, RBENCH_PLAN);
	memcpy(out, magic, sizeof(magic));
	rdma_put_be(out + 4, p->test, 4);
	rdma_put_be(out + 8, p->size, 4);
}

bool rbench_get_plan(struct rbench_plan *p, const void *in, size_t len)
{
	const uint8_t *b = in;
	uint64_t test;

	/* the connection manager of InfiniBand pads private data */
	if (len < RBENCH_PLAN || memcmp(b, magic, sizeof(magic)))
		return false;
	test = rdma_get_be(b + 4, 4);
	p->size = (uint32_t)rdma_get_be(b + 8, 4);
	if (test >= RBENCH_TESTS || p->size == 0 || p->size > RBENCH_SIZE_MAX)
		return false;
	p->test = (enum rbench_test)test;
	return true;
}

void rbench_put_region(const struct rbench_region *r,
		       uint8_t out[RBENCH_CONTROL])
{
	rdma_put_be(out, r->base, 8);
	rdma_put_be(out + 8, r->stag, 4);
	rdma_put_be(out + 12, r->len, 4);
}

void rbench_get_region(struct rbench_region *r,
		       const uint8_t in[RBENCH_CONTROL])
{
	r->base = rdma_get_be(in, 8);
	r->stag = (uint32_t)rdma_get_be(in + 8, 4);
	r->len = (uint32_t)rdma_get_be(in + 12, 4);
}

static void message_sent(struct iser_rdma_wr *wr)
{
	(void)wr;
}

int rbench_send(struct iser_rdma *c, struct rbench_message *m,
		const struct rbench_region *r, unsigned flags, uint32_t stag)
{
	struct iser_rdma_wr *one = &m->wr;

	rbench_put_region(r, m->body);
	m->iov = (struct iovec){ m->body, RBENCH_CONTROL };
	m->wr = (struct iser_rdma_wr){ .op = ISER_RDMA_SEND,
				       .flags = flags,
				       .stag = stag,
				       .iov = &m->iov,
				       .niov = 1,
				       .done = message_sent };
	return iser_rdma_post(c, &one, 1);
}

static bool on_device(const struct iser_rdma *c)
{
	struct iser_rdma_info info;

	iser_rdma_get_info(c, &info);
	return info.device != NULL;
}

int rbench_send_end(struct iser_rdma *c, struct rbench_message *m,
		    unsigned flags, uint32_t stag)
{
	const struct rbench_region r = { .base = on_device(c) ? RBENCH_END
							      : 0 };

	return rbench_send(c, m, &r, r.base ? 0 : flags, stag);
}

bool rbench_is_end(const struct iser_rdma *c, const struct iser_rdma_recv *r,
		   bool iwarp_end)
{
	struct rbench_region message;

	if (!on_device(c))
		return iwarp_end;
	if (r->len != RBENCH_CONTROL)
		return false;
	rbench_get_region(&message, r->buf);
	return message.base == RBENCH_END;
}

/* ---- one client ---- */

enum client_state {
	CLIENT_GREETING, /* its region is not known yet */
	CLIENT_RUNNING,
	CLIENT_OVER, /* what comes from now on is ignored */
};

struct server;

struct client {
	struct server *s;
	struct client *next;
	struct iser_rdma *c;
	enum client_state state;
	struct rbench_plan plan;
	struct rbench_region theirs;
	struct iser_rdma_mr mr;
	uint8_t *landing, *source;
	struct iovec landing_iov, source_iov;
	uint8_t seen; /* write_lat: the last mark that came */
	/* answering: the answer is in progress; owing: the next one is due.
	 * A device may report the client's next message before the completion
	 * of the answer to the last one. */
	bool answering, owing;
	struct iser_rdma_wr answer;
	/* control messages; their receives share the memory that is measured */
	struct iser_rdma_recv *recv;
	unsigned uncredited;
	struct rbench_message ready, end, credit[8];
	unsigned credits;
};

struct server {
	struct iser_context *ctx;
	struct client *clients;
	unsigned n;
	struct rdma_polls polls;
};

static void drop_client(struct client *k, const char *why)
{
	if (k->state == CLIENT_OVER)
		return;
	say("rbench: client: %s: connection closed", why);
	k->state = CLIENT_OVER;
	iser_rdma_terminate(k->c, why);
}

static void answer_sent(struct iser_rdma_wr *wr);

static void answer(struct client *k, enum iser_rdma_op op)
{
	struct iser_rdma_wr *one = &k->answer;

	if (k->owing) {
		drop_client(k,
			    "a second request before the answer to the first");
		return;
	}
	k->owing = k->answering;
	if (k->owing)
		return;
	k->answering = true;
	/* not earlier: the last answer was sent from this memory */
	if (k->plan.test == RBENCH_WRITE_LAT)
		k->source[k->plan.size - 1] = k->seen;
	k->answer = (struct iser_rdma_wr){ .op = op,
					   .iov = &k->source_iov,
					   .niov = 1,
					   .stag = k->theirs.stag,
					   .to = k->theirs.base,
					   .done = answer_sent,
					   .arg = k };
	iser_rdma_post(k->c, &one, 1);
}

static void answer_sent(struct iser_rdma_wr *wr)
{
	struct client *k = wr->arg;
	bool again = k->owing && !wr->err;

	k->answering = k->owing = false;
	if (again)
		answer(k, wr->op);
}

/* Answers a Write that has arrived: its last byte, the mark, has changed. */
static void check_mark(struct client *k)
{
	const volatile uint8_t *mark = k->landing + k->plan.size - 1;
	uint8_t now = *mark;

	if (k->state != CLIENT_RUNNING || k->plan.test != RBENCH_WRITE_LAT ||
	    now == k->seen)
		return;
	k->seen = now;
	k->s->polls.n = 0;
	answer(k, ISER_RDMA_WRITE);
}

static void give_credit(struct client *k)
{
	const struct rbench_region more = { .len = RBENCH_CREDIT_LOT };

	if (++k->uncredited < RBENCH_CREDIT_LOT)
		return;
	k->uncredited = 0;
	/* at most CREDITS / CREDIT_LOT of these messages are in progress */
	rbench_send(k->c, &k->credit[k->credits++ % 8], &more,
		    ISER_RDMA_SOLICITED, 0);
}

static void take_greeting(struct client *k, const struct iser_rdma_recv *r)
{
	const struct rbench_region ours = { .base = k->mr.base,
					    .stag = k->mr.stag,
					    .len = k->plan.size };

	if (r->len != RBENCH_CONTROL) {
		drop_client(k, "the first message is not one of rbench");
		return;
	}
	rbench_get_region(&k->theirs, r->buf);
	memset(k->landing, 0, RBENCH_CONTROL);
	k->state = CLIENT_RUNNING;
	rbench_send(k->c, &k->ready, &ours, 0, 0);
}

static void message_received(struct iser_rdma_recv *r)
{
	struct client *k = r->arg;

	if (r->err || k->state == CLIENT_OVER)
		return;
	if (k->state == CLIENT_GREETING) {
		take_greeting(k, r);
	} else if (rbench_is_end(k->c, r, r->solicited)) {
		/* this Send invalidates the region of the client */
		rbench_send_end(k->c, &k->end, ISER_RDMA_INVALIDATE,
				k->theirs.stag);
		k->state = CLIENT_OVER;
	}
	if (k->state == CLIENT_OVER)
		return;
	iser_rdma_post_recv(k->c, r);
	if (k->plan.test == RBENCH_SEND_BW)
		give_credit(k);
	else if (k->plan.test == RBENCH_SEND_LAT && k->credits++ > 0)
		answer(k, ISER_RDMA_SEND);
}

/* ---- clients come and go ---- */

static void client_free(struct client *k)
{
	struct client **at = &k->s->clients;

	while (*at && *at != k)
		at = &(*at)->next;
	if (*at) {
		*at = k->next;
		k->s->n--;
	}
	iser_rdma_free(k->c);
	free(k->recv);
	free(k->landing);
	free(k->source);
	free(k);
}

static void client_established(void *arg, struct iser_rdma *c,
			       const struct iser_rdma_peer *peer)
{
	(void)arg;
	(void)c;
	(void)peer;
}

static void client_closed(void *arg, struct iser_rdma *c, int err)
{
	struct client *k = arg;

	(void)c;
	if (err && k->state != CLIENT_OVER)
		say("%s", iser_message(k->s->ctx));
	client_free(k);
}

static const struct iser_rdma_callbacks callbacks = {
	.established = client_established,
	.closed = client_closed,
};

static bool make_memory(struct client *k)
{
	unsigned rights = ISER_RDMA_REMOTE_READ;
	size_t size =
		k->plan.size < RBENCH_CONTROL ? RBENCH_CONTROL : k->plan.size;

	/* a region that the peer may write is copied before its Reads are
	 * answered with a CRC, so ask for that right only where needed */
	if (k->plan.test != RBENCH_READ_BW && k->plan.test != RBENCH_READ_LAT)
		rights |= ISER_RDMA_REMOTE_WRITE;
	if (k->plan.test == RBENCH_WRITE_BW) /* write_lat reads the mark */
		rights |= ISER_RDMA_UNDEFINED;
	k->landing = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	k->source = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	k->recv = calloc(RBENCH_CREDITS, sizeof(k->recv[0]));
	if (!k->landing || !k->source || !k->recv)
		return false;
	memset(k->landing, 0, size);
	memset(k->source, 0x5a, size);
	k->landing_iov = (struct iovec){ k->landing, k->plan.size };
	k->source_iov = (struct iovec){ k->source, k->plan.size };
	if (iser_rdma_register(k->c, &k->landing_iov, 1, 0, rights, &k->mr))
		return false;
	for (unsigned i = 0; i < RBENCH_CREDITS; i++) {
		k->recv[i] = (struct iser_rdma_recv){ .buf = k->landing,
						      .size = size,
						      .done = message_received,
						      .arg = k };
		if (iser_rdma_post_recv(k->c, &k->recv[i]))
			return false;
	}
	return true;
}

static void on_request(void *arg, struct iser_rdma *c,
		       const struct iser_rdma_peer *peer)
{
	struct server *s = arg;
	struct rbench_plan plan;
	struct client *k;

	if (s->n == MAX_CLIENTS ||
	    !rbench_get_plan(&plan, peer->private_data, peer->private_len)) {
		iser_rdma_reject(c, NULL, 0);
		return;
	}
	k = calloc(1, sizeof(*k));
	if (!k) {
		iser_rdma_reject(c, NULL, 0);
		return;
	}
	k->s = s;
	k->c = c;
	k->plan = plan;
	k->next = s->clients;
	s->clients = k;
	s->n++;
	/* client_closed frees it from here on */
	iser_rdma_set_callbacks(c, &callbacks, k);
	if (make_memory(k)) {
		iser_rdma_accept(c, NULL, 0);
	} else {
		k->state = CLIENT_OVER;
		iser_rdma_reject(c, NULL, 0);
	}
}

/* A write of a device to memory does not wake the loop. */
static bool run_turn(struct server *s)
{
	for (struct client *k = s->clients; k; k = k->next)
		if (k->plan.test == RBENCH_WRITE_LAT && on_device(k->c))
			return rdma_poll(s->ctx, &s->polls);
	return rdma_turn(s->ctx);
}

int rbench_serve(struct iser_context *ctx, const char *where,
		 const struct iser_rdma_options *options)
{
	struct server s = { .ctx = ctx };
	struct iser_rdma_listener *l;
	int err;

	l = iser_rdma_listen(ctx, where, RBENCH_PORT, options, on_request, &s,
			     &err);
	if (!l)
		return say_failed(ctx, err);
	rdma_print_address(iser_rdma_listener_address(l));
	while (!caught_signals()) {
		if (!run_turn(&s))
			break;
		for (struct client *k = s.clients; k; k = k->next)
			check_mark(k);
	}
	iser_rdma_listener_free(l);
	while (s.clients)
		client_free(s.clients);
	return caught_signals() ? EXIT_OK : EXIT_GENERIC;
}
