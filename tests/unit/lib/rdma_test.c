/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_test.c: RDMA connections of libiser: both ends in one context, over the
 * loopback interface. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "iser/rdma.h"

#define SIZE 300000u

/* One end, and what its callbacks reported. */
struct end {
	struct iser_rdma *c;
	bool established, closed;
	int err;
	char private_data[ISER_RDMA_PRIVATE_MAX + 1];
	unsigned ird;
	struct iser_rdma_recv recv[2];
	uint8_t in[2][64];
	unsigned received, receives_back;
	struct iser_rdma_recv last;
	unsigned done, failed;
};

struct pair {
	struct iser_context *ctx;
	struct iser_rdma_listener *l;
	char host[64];
	uint16_t port;
	struct end a, b; /* a connects to b */
	bool reject;
	unsigned requests;
};

/* ---- callbacks ---- */

static void keep_private(struct end *e, const struct iser_rdma_peer *peer)
{
	assert_true(peer->private_len <= ISER_RDMA_PRIVATE_MAX);
	if (peer->private_len)
		memcpy(e->private_data, peer->private_data, peer->private_len);
	e->private_data[peer->private_len] = '\0';
	e->ird = peer->ird;
	assert_non_null(strstr(peer->address, "127.0.0.1:"));
}

static void on_established(void *arg, struct iser_rdma *c,
			   const struct iser_rdma_peer *peer)
{
	struct end *e = arg;

	assert_ptr_equal(c, e->c);
	assert_false(e->established);
	e->established = true;
	if (peer->private_len)
		keep_private(e, peer);
}

static void on_closed(void *arg, struct iser_rdma *c, int err)
{
	struct end *e = arg;

	assert_false(e->closed);
	e->closed = true;
	e->err = err;
	iser_rdma_free(c);
	e->c = NULL;
}

static const struct iser_rdma_callbacks callbacks = {
	.established = on_established,
	.closed = on_closed,
};

static void on_received(struct iser_rdma_recv *r)
{
	struct end *e = r->arg;

	if (r->err) {
		assert_int_equal(r->err, ISER_E_CLOSED);
		e->receives_back++;
		return;
	}
	e->received++;
	e->last = *r;
}

static void post_recvs(struct end *e)
{
	for (unsigned i = 0; i < 2; i++) {
		e->recv[i] = (struct iser_rdma_recv){ .buf = e->in[i],
						      .size = sizeof(e->in[i]),
						      .done = on_received,
						      .arg = e };
		assert_int_equal(iser_rdma_post_recv(e->c, &e->recv[i]), 0);
	}
}

static void on_request(void *arg, struct iser_rdma *c,
		       const struct iser_rdma_peer *peer)
{
	struct pair *p = arg;

	p->requests++;
	keep_private(&p->b, peer);
	if (p->reject) {
		assert_int_equal(iser_rdma_reject(c, "no", 2), 0);
		return;
	}
	p->b.c = c;
	iser_rdma_set_callbacks(c, &callbacks, &p->b);
	post_recvs(&p->b);
	assert_int_equal(iser_rdma_accept(c, "welcome", 7), 0);
}

/* ---- set-up ---- */

static void turn_until(struct pair *p, const bool *flag)
{
	for (unsigned i = 0; i < 200 && !*flag; i++)
		assert_int_equal(iser_service(p->ctx, 50), 0);
	assert_true(*flag);
}

static void turn_until_n(struct pair *p, const unsigned *n, unsigned want)
{
	for (unsigned i = 0; i < 200 && *n < want; i++)
		assert_int_equal(iser_service(p->ctx, 50), 0);
	assert_int_equal(*n, want);
}

static struct pair *pair_new(const struct iser_rdma_options *server)
{
	struct pair *p = calloc(1, sizeof(*p));
	int err;

	p->ctx = iser_context_new(NULL);
	p->l = iser_rdma_listen(p->ctx, "127.0.0.1:0", 0, server, on_request, p,
				&err);
	assert_non_null(p->l);
	assert_int_equal(sscanf(iser_rdma_listener_address(p->l), "%63[^:]:%hu",
				p->host, &p->port),
			 2);
	return p;
}

static void pair_free(struct pair *p)
{
	iser_context_free(p->ctx);
	free(p);
}

static void connect_pair(struct pair *p, const struct iser_rdma_options *o)
{
	int err;

	p->a.c = iser_rdma_connect_start(p->ctx, p->host, p->port, o, "hello",
					 5, &callbacks, &p->a, &err);
	assert_non_null(p->a.c);
	post_recvs(&p->a); /* before it is connected */
}

static void wr_done(struct iser_rdma_wr *wr)
{
	struct end *e = wr->arg;

	if (wr->err)
		e->failed++;
	else
		e->done++;
}

static struct iser_rdma_wr wr_of(struct end *e, enum iser_rdma_op op,
				 struct iovec *iov)
{
	return (struct iser_rdma_wr){
		.op = op, .iov = iov, .niov = 1, .done = wr_done, .arg = e
	};
}

static void send_text(struct end *e, const char *text, unsigned flags,
		      uint32_t stag)
{
	static struct iser_rdma_wr wr[4];
	static struct iovec iov[4];
	static unsigned next;
	unsigned i = next++ % 4;
	struct iser_rdma_wr *one = &wr[i];

	iov[i] = (struct iovec){ (void *)(uintptr_t)text, strlen(text) };
	wr[i] = wr_of(e, ISER_RDMA_SEND, &iov[i]);
	wr[i].flags = flags;
	wr[i].stag = stag;
	assert_int_equal(iser_rdma_post(e->c, &one, 1), 0);
}

static void finish(struct pair *p)
{
	iser_rdma_disconnect(p->a.c);
	turn_until(p, &p->a.closed);
	turn_until(p, &p->b.closed);
	assert_int_equal(p->a.err, 0);
	if (p->b.established) /* else the connection failed */
		assert_int_equal(p->b.err, 0);
	assert_int_equal(p->a.received + p->a.receives_back, 2);
	assert_int_equal(p->b.received + p->b.receives_back, 2);
	pair_free(p);
}

/* ---- tests ---- */

static void test_private_data_and_sends(void **state)
{
	struct pair *p = pair_new(NULL);

	(void)state;
	connect_pair(p, NULL);
	assert_int_equal(iser_rdma_wait(p->a.c), 0);
	assert_string_equal(p->a.private_data, "welcome");
	assert_string_equal(p->b.private_data, "hello");
	send_text(&p->a, "first", 0, 0);
	turn_until(p, &p->b.established);
	turn_until_n(p, &p->b.received, 1);
	assert_int_equal(p->b.last.len, 5);
	assert_memory_equal(p->b.in[0], "first", 5);
	assert_false(p->b.last.solicited);
	send_text(&p->b, "back", ISER_RDMA_SOLICITED, 0);
	turn_until_n(p, &p->a.received, 1);
	assert_true(p->a.last.solicited);
	assert_memory_equal(p->a.in[0], "back", 4);
	finish(p);
}

static uint8_t *pattern(unsigned seed)
{
	uint8_t *m = malloc(SIZE);

	for (unsigned i = 0; i < SIZE; i++)
		m[i] = (uint8_t)(i * seed + (i >> 8));
	return m;
}

/* Writes, reads back and invalidates, with the limits that were negotiated. */
static void move_bytes(const struct iser_rdma_options *client,
		       const struct iser_rdma_options *server, bool crc)
{
	struct pair *p = pair_new(server);
	uint8_t *source = pattern(7), *back = calloc(1, SIZE),
		*memory = calloc(1, SIZE);
	struct iovec region = { memory, SIZE }, out = { source, SIZE },
		     in = { back, SIZE };
	struct iser_rdma_wr w, r, *chain[2] = { &w, &r };
	struct iser_rdma_mr mr;
	struct iser_rdma_info info;
	struct iser_rdma_stats st;

	connect_pair(p, client);
	assert_int_equal(iser_rdma_wait(p->a.c), 0);
	assert_int_equal(iser_rdma_register(p->b.c, &region, 1, 5000,
					    ISER_RDMA_REMOTE_WRITE |
						    ISER_RDMA_REMOTE_READ,
					    &mr),
			 0);
	w = wr_of(&p->a, ISER_RDMA_WRITE, &out);
	r = wr_of(&p->a, ISER_RDMA_READ, &in);
	w.stag = r.stag = mr.stag;
	w.to = r.to = mr.base;
	assert_int_equal(iser_rdma_post(p->a.c, chain, 2), 0);
	turn_until_n(p, &p->a.done, 2);
	assert_memory_equal(memory, source, SIZE);
	assert_memory_equal(back, source, SIZE);
	iser_rdma_get_info(p->a.c, &info);
	assert_true(info.established);
	assert_int_equal(info.crc, crc);
	assert_int_equal(info.markers_in, client->markers);
	assert_int_equal(info.markers_out, server->markers);
	iser_rdma_get_stats(p->a.c, &st);
	assert_true(st.tx_payload >= SIZE && st.rx_payload >= SIZE);
	assert_int_equal(st.crc_errors, 0);
	/* the peer invalidates it: the owner gets the STag */
	send_text(&p->a, "end", ISER_RDMA_INVALIDATE, mr.stag);
	turn_until_n(p, &p->b.received, 1);
	assert_true(p->b.last.invalidated);
	assert_int_equal(p->b.last.stag, mr.stag);
	iser_rdma_invalidate(p->b.c, &mr); /* no effect */
	finish(p);
	free(source);
	free(back);
	free(memory);
}

static void test_write_read_invalidate(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 32; i++) {
		const struct iser_rdma_options client = {
			.no_crc = i & 1,
			.markers = i & 2,
			.revision = i & 4 ? ISER_RDMA_PLAIN
					  : ISER_RDMA_ENHANCED,
			.peer_to_peer = !(i & 4) && (i & 8),
			.fpdu_max = i & 16 ? 1400 : 0,
		}, server = { .no_crc = i & 1, .markers = i & 8 };

		move_bytes(&client, &server, !(i & 1));
	}
}

static void test_reject_rfc5044_7_1(void **state)
{
	struct pair *p = pair_new(NULL);

	(void)state;
	p->reject = true;
	connect_pair(p, NULL);
	assert_int_equal(iser_rdma_wait(p->a.c), ISER_E_CONNECT);
	assert_true(p->a.closed);
	assert_int_equal(p->a.receives_back, 2);
	assert_int_equal(p->requests, 1);
	assert_non_null(strstr(iser_message(p->ctx), "rejected"));
	pair_free(p);
}

/* [RFC 7306 §5, §6] Immediate Data and atomic operations, if both sides allow
 * them; not if this side does not. */
static void test_extended_rfc7306(void **state)
{
	const struct iser_rdma_options o = { .extended = true };
	struct pair *p = pair_new(&o);
	uint64_t memory[2] = { 100, 7 };
	struct iovec region = { memory, sizeof(memory) };
	struct iser_rdma_atomic add = { .value = 5 },
				swap = { .value = 9,
					 .mask = UINT64_MAX,
					 .compare = 7,
					 .compare_mask = UINT64_MAX };
	struct iser_rdma_wr wr[3], *chain[3] = { &wr[0], &wr[1], &wr[2] };
	struct iser_rdma_mr mr;

	(void)state;
	connect_pair(p, &o);
	assert_int_equal(iser_rdma_wait(p->a.c), 0);
	assert_int_equal(iser_rdma_register(p->b.c, &region, 1, 0x1000,
					    ISER_RDMA_REMOTE_ATOMIC, &mr),
			 0);
	wr[0] = wr_of(&p->a, ISER_RDMA_FETCH_ADD, NULL);
	wr[0].atomic = &add;
	wr[1] = wr_of(&p->a, ISER_RDMA_CMP_SWAP, NULL);
	wr[1].atomic = &swap;
	wr[2] = wr_of(&p->a, ISER_RDMA_IMMEDIATE, NULL);
	wr[2].immediate = 0x1122334455667788;
	for (unsigned i = 0; i < 3; i++) {
		wr[i].niov = 0;
		wr[i].stag = mr.stag;
		wr[i].to = mr.base + 8 * (i == 1);
	}
	assert_int_equal(iser_rdma_post(p->a.c, chain, 3), 0);
	turn_until_n(p, &p->a.done, 3);
	turn_until_n(p, &p->b.received, 1);
	assert_int_equal(add.original, 100);
	assert_int_equal(swap.original, 7);
	assert_int_equal(memory[0], 105);
	assert_int_equal(memory[1], 9);
	assert_true(p->b.last.is_immediate);
	assert_int_equal(p->b.last.immediate, 0x1122334455667788);
	assert_int_equal(p->b.last.len, 0);
	wr[0].atomic = NULL; /* an atomic operation without operands */
	assert_int_equal(iser_rdma_post(p->a.c, chain, 1), ISER_E_INVALID);
	finish(p);
}

static void test_extended_not_agreed(void **state)
{
	struct pair *p = pair_new(NULL);
	struct iser_rdma_wr wr, *one = &wr;

	(void)state;
	connect_pair(p, NULL);
	assert_int_equal(iser_rdma_wait(p->a.c), 0);
	wr = wr_of(&p->a, ISER_RDMA_IMMEDIATE, NULL);
	wr.niov = 0;
	assert_int_equal(iser_rdma_post(p->a.c, &one, 1), ISER_E_INVALID);
	finish(p);
}

/* The option for a device on a machine without one: an error with a reason. */
static void test_device_absent(void **state)
{
	const struct iser_rdma_options o = { .device = true };
	struct iser_context *ctx = iser_context_new(NULL);
	int err = 0;

	(void)state;
	setenv("OPENISER_MODULES", "/nonexistent", 1);
	assert_null(iser_rdma_connect_start(ctx, "127.0.0.1", 7174, &o, NULL, 0,
					    &callbacks, NULL, &err));
	assert_int_equal(err, ISER_E_CONNECT);
	assert_non_null(strstr(iser_message(ctx), "RDMA device"));
	assert_null(iser_rdma_listen(ctx, "127.0.0.1:7174", 0, &o, on_request,
				     NULL, &err));
	assert_int_equal(err, ISER_E_CONNECT);
	iser_context_free(ctx);
}

static void test_nobody_listens(void **state)
{
	struct pair *p = pair_new(NULL);

	(void)state;
	iser_rdma_listener_free(p->l);
	connect_pair(p, NULL);
	assert_int_equal(iser_rdma_wait(p->a.c), ISER_E_CONNECT);
	assert_int_equal(p->a.err, ISER_E_CONNECT);
	assert_int_equal(p->a.receives_back, 2);
	pair_free(p);
}

static void test_disconnect_while_connecting(void **state)
{
	struct pair *p = pair_new(NULL);

	(void)state;
	connect_pair(p, NULL);
	iser_rdma_disconnect(p->a.c);
	assert_false(p->a.closed); /* not from within the call */
	turn_until(p, &p->a.closed);
	assert_int_equal(p->a.err, ISER_E_CLOSED);
	assert_int_equal(p->a.receives_back, 2);
	pair_free(p);
}

/* iser_rdma_free in each state: no leak, and no callback afterwards. */
static void test_free_at_any_time(void **state)
{
	(void)state;
	for (unsigned turns = 0; turns < 12; turns++) {
		struct pair *p = pair_new(NULL);

		connect_pair(p, NULL);
		for (unsigned i = 0; i < turns; i++)
			iser_service(p->ctx, 1);
		if (p->a.c)
			iser_rdma_free(p->a.c);
		assert_false(p->a.closed);
		assert_int_equal(p->a.receives_back, 2);
		pair_free(p);
	}
}

static void test_post_before_established(void **state)
{
	struct pair *p = pair_new(NULL);
	struct iovec iov = { p, 1 };
	struct iser_rdma_wr wr = wr_of(&p->a, ISER_RDMA_SEND, &iov), *one = &wr;
	struct iser_rdma_mr mr;

	(void)state;
	connect_pair(p, NULL);
	assert_int_equal(iser_rdma_post(p->a.c, &one, 1), ISER_E_CLOSED);
	assert_int_equal(iser_rdma_register(p->a.c, &iov, 1, 0, 0, &mr),
			 ISER_E_CLOSED);
	assert_int_equal(iser_rdma_wait(p->a.c), 0);
	assert_int_equal(iser_rdma_register(p->a.c, &iov, 1, UINT64_MAX, 0,
					    &mr),
			 ISER_E_INVALID);
	finish(p);
}

static void test_refused_arguments(void **state)
{
	struct iser_context *ctx = iser_context_new(NULL);
	const struct iser_rdma_options o = { .revision = ISER_RDMA_PLAIN,
					     .peer_to_peer = true };
	uint8_t much[ISER_RDMA_PRIVATE_MAX + 1] = { 0 };
	int err = 0;

	(void)state;
	assert_null(iser_rdma_connect_start(ctx, "127.0.0.1", 1, NULL, much,
					    sizeof(much), &callbacks, NULL,
					    &err));
	assert_int_equal(err, ISER_E_INVALID);
	assert_null(iser_rdma_connect_start(ctx, "127.0.0.1", 1, &o, NULL, 0,
					    &callbacks, NULL, &err));
	assert_int_equal(err, ISER_E_INVALID);
	assert_null(
		iser_rdma_listen(ctx, "nowhere", 1, NULL, NULL, NULL, &err));
	assert_int_equal(err, ISER_E_INVALID);
	iser_context_free(ctx);
}

/* A Write to a region that was not registered (RFC 5042 §6.2). */
static void test_wrong_stag_ends_with_a_terminate(void **state)
{
	struct pair *p = pair_new(NULL);
	uint8_t byte = 1;
	struct iovec iov = { &byte, 1 };
	struct iser_rdma_wr wr = wr_of(&p->a, ISER_RDMA_WRITE, &iov),
			    *one = &wr;

	(void)state;
	connect_pair(p, NULL);
	assert_int_equal(iser_rdma_wait(p->a.c), 0);
	wr.stag = 0x12345678;
	assert_int_equal(iser_rdma_post(p->a.c, &one, 1), 0);
	turn_until(p, &p->a.closed);
	assert_int_equal(p->a.err, ISER_E_PROTOCOL);
	assert_non_null(strstr(iser_message(p->ctx), "Terminate"));
	turn_until(p, &p->b.closed);
	assert_int_not_equal(p->b.err, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_private_data_and_sends),
		cmocka_unit_test(test_write_read_invalidate),
		cmocka_unit_test(test_reject_rfc5044_7_1),
		cmocka_unit_test(test_extended_rfc7306),
		cmocka_unit_test(test_extended_not_agreed),
		cmocka_unit_test(test_device_absent),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_disconnect_while_connecting),
		cmocka_unit_test(test_free_at_any_time),
		cmocka_unit_test(test_post_before_established),
		cmocka_unit_test(test_refused_arguments),
		cmocka_unit_test(test_wrong_stag_ends_with_a_terminate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
