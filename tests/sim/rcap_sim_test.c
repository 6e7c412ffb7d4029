/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcap_sim_test.c: two queue pairs of software iWARP over a wire that splits,
 * delays and cuts. Random Sends, Writes and Reads with a model of memory: every
 * byte arrives once, completions keep the order of the posts, and no byte
 * outside an advertised region changes. At the end of the connection each posted
 * request completes once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "rcap/iwarp/iwarp.h"
#include "sim/wire.h"

#define REGION	 (256u << 10) /* advertised; guards of the same size around */
#define OPS	 40
#define RECVS	 64
#define RECV_CAP 9000
#define SOURCE	 (64u << 10)

struct op {
	struct rcap_wr wr;
	struct iovec iov[20];
	uint8_t *sink; /* of a Read */
	bool out;
};

struct side {
	struct iwarp *c;
	struct rcap_qp *qp;
	struct side *peer;
	struct sim *sim;
	uint8_t *arena;	 /* guard, region, guard */
	uint8_t *model;	 /* the expected contents of the arena */
	uint8_t *source; /* the readable memory */
	struct iovec region_iov, source_iov;
	struct rcap_mr region_mr, source_mr;
	struct op ops[OPS];
	unsigned posted, completed, aborted;
	size_t slot; /* next free place in the peer's region */
	struct rcap_recv recvs[RECVS];
	uint8_t *recv_mem;
	unsigned received, recv_aborted, sent;
	uint32_t send_sum[OPS], send_len[OPS];
	bool established, requested, closed, reject;
	int err;
	uint8_t private_data[600];
	size_t private_len;
	struct rcap_cm cm;
};

struct sim {
	struct wire wire;
	struct side side[2]; /* active, passive */
	bool expect_loss;
};

static uint32_t sum_of_bytes(const uint8_t *p, size_t n)
{
	uint32_t s = 17;

	while (n--)
		s = s * 31 + *p++;
	return s;
}

/* ---- up-calls ---- */

static void keep_cm(struct side *s, const struct rcap_cm *peer)
{
	s->cm = *peer;
	s->private_len = peer->private_len;
	if (peer->private_len)
		memcpy(s->private_data, peer->private_data, peer->private_len);
}

static void connect_request(void *arg, const struct rcap_cm *peer)
{
	struct side *s = arg;
	const struct rcap_cm answer = { .ird = peer->ird,
					.ord = peer->ord,
					.private_data = (const uint8_t *)"yes?",
					.private_len = 4 };

	s->requested = true;
	keep_cm(s, peer);
	if (s->reject)
		assert_int_equal(rcap_reject(s->qp, &answer), 0);
	else
		assert_int_equal(rcap_accept(s->qp, &answer), 0);
}

static void established(void *arg, const struct rcap_cm *peer)
{
	struct side *s = arg;

	assert_false(s->established);
	s->established = true;
	if (s == &s->sim->side[0])
		keep_cm(s, peer);
}

static void wr_done(void *arg, struct rcap_wr *wr, int err)
{
	struct side *s = arg;
	struct op *op = container_of(wr, struct op, wr);

	assert_true(op->out);
	op->out = false;
	/* in the order of the posts (RFC 5040 §5.5) */
	assert_ptr_equal(op, &s->ops[s->completed + s->aborted]);
	if (err) {
		assert_int_equal(err, ERR_ABORTED);
		s->aborted++;
		return;
	}
	assert_int_equal(s->aborted, 0);
	s->completed++;
	if (wr->op == RCAP_READ && wr->data.len)
		assert_memory_equal(op->sink, s->peer->source + (wr->to - 77),
				    wr->data.len);
}

static void received(void *arg, struct rcap_recv *r, int err)
{
	struct side *s = arg;

	if (err) {
		s->recv_aborted++;
		return;
	}
	assert_int_equal(r->len, s->peer->send_len[s->received]);
	assert_int_equal(sum_of_bytes(rcap_recv_bytes(r), r->len),
			 s->peer->send_sum[s->received]);
	s->received++;
	assert_int_equal(rcap_post_recv(s->qp, r), 0);
}

static void closed(void *arg, int err, const char *why)
{
	struct side *s = arg;

	assert_false(s->closed);
	assert_non_null(why);
	if (err)
		assert_true(strlen(why) > 0);
	s->closed = true;
	s->err = err;
	assert_int_equal(s->completed + s->aborted, s->posted);
	assert_int_equal(s->recv_aborted, RECVS);
}

static const struct rcap_user user = {
	.connect_request = connect_request,
	.established = established,
	.wr_done = wr_done,
	.received = received,
	.closed = closed,
};

/* ---- set-up ---- */

static void side_init(struct sim *sim, unsigned i,
		      const struct iwarp_config *cfg)
{
	struct side *s = &sim->side[i];

	s->sim = sim;
	s->peer = &sim->side[1 - i];
	s->arena = calloc(3, REGION);
	s->model = calloc(3, REGION);
	s->source = malloc(SOURCE);
	s->recv_mem = malloc(RECVS * RECV_CAP);
	for (unsigned k = 0; k < SOURCE; k++)
		s->source[k] = (uint8_t)(k * 7 + i + (k >> 8));
	s->c = iwarp_new(cfg, wire_host(&sim->wire, i), NULL, 0, 0);
	assert_non_null(s->c);
	s->qp = iwarp_qp(s->c);
	rcap_set_user(s->qp, &user, s);
	for (unsigned k = 0; k < RECVS; k++) {
		s->recvs[k].buf = s->recv_mem + k * RECV_CAP;
		s->recvs[k].cap = RECV_CAP;
		s->recvs[k].may_lend = k % 2;
		assert_int_equal(rcap_post_recv(s->qp, &s->recvs[k]), 0);
	}
	s->region_iov = (struct iovec){ s->arena + REGION, REGION };
	s->source_iov = (struct iovec){ s->source, SOURCE };
}

static void advertise(struct side *s)
{
	const struct bufv region = bufv_of(&s->region_iov, 1);
	const struct bufv source = bufv_of(&s->source_iov, 1);

	assert_int_equal(rcap_reg(s->qp, &region, 0x1000, RCAP_REMOTE_WRITE,
				  &s->region_mr),
			 0);
	assert_int_equal(rcap_reg(s->qp, &source, 77, RCAP_REMOTE_READ,
				  &s->source_mr),
			 0);
}

static struct iwarp_config config_of(uint32_t seed, unsigned i)
{
	static const unsigned rtr[3] = { MPA_RTR_WRITE, MPA_RTR_READ,
					 MPA_RTR_SEND };
	struct iwarp_config cfg;

	iwarp_config_default(&cfg, i == 0);
	cfg.wish.want_crc = seed & (1u << i);
	cfg.wish.want_markers = seed & (4u << i);
	cfg.wish.ird = (uint16_t)(1 + seed % 4);
	cfg.wish.ord = (uint16_t)(1 + seed % 5);
	cfg.wish.rtr = rtr[seed % 3];
	cfg.revision = seed % 7 == 0 ? 1 : 2;
	if (cfg.revision == 1)
		cfg.wish.ird =
			5; /* the peer does not learn the value: leave room for all */
	cfg.peer_to_peer = seed % 2;
	cfg.emss = seed % 3 == 0 ? 0 : 256 + (seed * 131) % 5000;
	cfg.lookahead = 1024u << (seed % 7);
	cfg.seed = seed * 31 + i;
	if (i == 0) {
		cfg.private_data = (const uint8_t *)"hello";
		cfg.private_len = 5;
	}
	return cfg;
}

static struct sim *sim_new(uint32_t seed, const struct wire_config *wire)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	wire_init(&sim->wire, wire);
	for (unsigned i = 0; i < 2; i++) {
		struct iwarp_config cfg = config_of(seed, i);

		side_init(sim, i, &cfg);
	}
	for (unsigned i = 0; i < 2; i++) {
		wire_attach(&sim->wire, i, &iwarp_stream_ops, sim->side[i].c);
		advertise(&sim->side[i]);
	}
	return sim;
}

static void sim_free(struct sim *sim)
{
	wire_fini(&sim->wire);
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &sim->side[i];

		assert_true(s->closed);
		for (unsigned k = 0; k < s->posted; k++) {
			assert_false(s->ops[k].out);
			free(s->ops[k].sink);
		}
		iwarp_free(s->c);
		free(s->arena);
		free(s->model);
		free(s->source);
		free(s->recv_mem);
	}
	free(sim);
}

/* ---- random operations ---- */

static void cut_in_pieces(struct sim *sim, struct op *op, uint8_t *p,
			  size_t len)
{
	unsigned n = 1 + wire_random(&sim->wire, 20);

	for (unsigned i = 0; i < n; i++) {
		size_t k = i == n - 1
				   ? len
				   : wire_random(&sim->wire, (uint32_t)len + 1);

		op->iov[i] = (struct iovec){ p, k };
		p += k;
		len -= k;
	}
	op->wr.data = bufv_of(op->iov, n);
}

static void make_send(struct side *s, struct op *op)
{
	size_t len = wire_random(&s->sim->wire, RECV_CAP + 1);
	uint8_t *p = s->source +
		     wire_random(&s->sim->wire, (uint32_t)(SOURCE - len));

	op->wr.op = RCAP_SEND;
	op->wr.flags = wire_random(&s->sim->wire, 2) ? RCAP_SOLICITED : 0;
	cut_in_pieces(s->sim, op, p, len);
	s->send_sum[s->sent] = sum_of_bytes(p, len);
	s->send_len[s->sent++] = (uint32_t)len;
}

static void make_write(struct side *s, struct op *op)
{
	size_t want = wire_random(&s->sim->wire, 30000);
	size_t len = MIN(REGION - s->slot, want);
	uint8_t *p = s->source +
		     wire_random(&s->sim->wire, (uint32_t)(SOURCE - len));

	op->wr.op = RCAP_WRITE;
	op->wr.flags = wire_random(&s->sim->wire, 2) ? RCAP_UNSTABLE : 0;
	op->wr.stag = s->peer->region_mr.stag;
	op->wr.to = 0x1000 + s->slot;
	cut_in_pieces(s->sim, op, p, len);
	memcpy(s->peer->model + REGION + s->slot, p, len);
	s->slot += len;
}

static void make_read(struct side *s, struct op *op)
{
	size_t len = wire_random(&s->sim->wire, 40000);

	op->sink = malloc(len + 1);
	op->wr.op = RCAP_READ;
	op->wr.stag = s->peer->source_mr.stag;
	op->wr.to = 77 + wire_random(&s->sim->wire, (uint32_t)(SOURCE - len));
	cut_in_pieces(s->sim, op, op->sink, len);
}

static void post_some(struct side *s)
{
	struct rcap_wr *chain[3];
	unsigned n = 1 + wire_random(&s->sim->wire, 3), k;

	if (!s->established || s->posted + n > OPS ||
	    s->sent - s->peer->received + n > RECVS)
		return;
	for (k = 0; k < n; k++) {
		struct op *op = &s->ops[s->posted + k];
		unsigned kind = wire_random(&s->sim->wire, 3);

		op->out = true;
		chain[k] = &op->wr;
		if (kind == 0)
			make_send(s, op);
		else if (kind == 1)
			make_write(s, op);
		else
			make_read(s, op);
	}
	if (rcap_post(s->qp, chain, n)) {
		assert_true(s->sim->expect_loss);
		for (k = 0; k < n; k++) {
			free(s->ops[s->posted + k].sink);
			s->ops[s->posted + k].sink = NULL;
			s->ops[s->posted + k].out = false;
		}
		return;
	}
	s->posted += n;
}

static void say_hello(struct sim *sim)
{
	struct side *s = &sim->side[0];
	struct op *op = &s->ops[s->posted];
	struct rcap_wr *wr = &op->wr;

	if (!s->established)
		return;
	op->out = true;
	make_send(s, op);
	if (!rcap_post(s->qp, &wr, 1))
		s->posted++;
	else
		op->out = false;
}

static void run_random(struct sim *sim)
{
	wire_idle(&sim->wire);
	say_hello(sim); /* the active side sends first (RFC 5044 §7.1.1) */
	for (unsigned turn = 0; turn < 40; turn++) {
		post_some(&sim->side[turn % 2]);
		if (turn % 3 == 0)
			wire_run(&sim->wire, sim->wire.now + 3 * XTIME_MS);
	}
	wire_idle(&sim->wire);
}

static void check_model(struct sim *sim)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &sim->side[i];

		assert_int_equal(s->completed, s->posted);
		assert_int_equal(s->received, s->peer->sent);
		assert_memory_equal(s->arena, s->model, 3 * REGION);
	}
}

static void test_random_operations(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 120; seed++) {
		struct wire_config wire = {
			.seed = seed,
			.max_chunk = seed % 4 == 0 ? 0 : 3 + seed * 40,
			.max_delay = XTIME_MS,
			.cut = { WIRE_NO_CUT, WIRE_NO_CUT }
		};
		struct sim *sim = sim_new(seed, &wire);

		run_random(sim);
		assert_true(sim->side[1].requested);
		assert_true(sim->side[0].established);
		assert_true(sim->side[1].established);
		assert_int_equal(sim->side[1].private_len, 5);
		assert_memory_equal(sim->side[1].private_data, "hello", 5);
		assert_int_equal(sim->side[0].private_len, 4);
		check_model(sim);
		rcap_disconnect(sim->side[seed % 2].qp);
		wire_run(&sim->wire, sim->wire.now + 20 * XTIME_S);
		assert_int_equal(sim->side[0].err, 0);
		assert_int_equal(sim->side[1].err, 0);
		sim_free(sim);
	}
}

/* One byte at a time, with all settings. */
static void test_single_bytes(void **state)
{
	(void)state;
	for (uint32_t seed = 200; seed < 216; seed++) {
		struct wire_config wire = { .seed = seed,
					    .max_chunk = 1,
					    .cut = { WIRE_NO_CUT,
						     WIRE_NO_CUT } };
		struct sim *sim = sim_new(seed, &wire);

		wire_idle(&sim->wire);
		say_hello(sim);
		post_some(&sim->side[0]);
		wire_idle(&sim->wire);
		post_some(&sim->side[1]);
		wire_idle(&sim->wire);
		check_model(sim);
		rcap_disconnect(sim->side[0].qp);
		wire_run(&sim->wire, sim->wire.now + 20 * XTIME_S);
		sim_free(sim);
	}
}

/* A reset after each byte of a short exchange: each posted request completes
 * once, and no byte outside the region changes. */
static void test_reset_after_every_byte(void **state)
{
	(void)state;
	for (unsigned end = 0; end < 2; end++)
		for (uint64_t cut = 0; cut < 700; cut++) {
			struct wire_config wire = {
				.seed = 33, .cut = { WIRE_NO_CUT, WIRE_NO_CUT }
			};
			struct sim *sim;

			wire.cut[end] = cut;
			sim = sim_new(cut % 64, &wire);
			sim->expect_loss = true;
			wire_idle(&sim->wire);
			say_hello(sim);
			for (unsigned k = 0; k < 6; k++) {
				post_some(&sim->side[k % 2]);
				wire_idle(&sim->wire);
			}
			for (unsigned i = 0; i < 2; i++) {
				struct side *s = &sim->side[i];

				assert_memory_equal(s->arena, s->model, REGION);
				assert_memory_equal(s->arena + 2 * REGION,
						    s->model + 2 * REGION,
						    REGION);
				rcap_disconnect(s->qp);
			}
			wire_run(&sim->wire, sim->wire.now + 60 * XTIME_S);
			sim_free(sim);
		}
}

static void test_reject_rfc5044_7_1(void **state)
{
	struct wire_config wire = { .seed = 5,
				    .max_chunk = 7,
				    .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct sim *sim = sim_new(2, &wire);

	(void)state;
	sim->side[1].reject = true;
	wire_run(&sim->wire, 20 * XTIME_S);
	assert_false(sim->side[0].established);
	assert_int_equal(sim->side[0].err, ERR_DENIED);
	assert_int_equal(sim->side[1].err, ERR_DENIED);
	sim_free(sim);
}

/* A peer that sends nothing: each wait of the start-up has a timeout. */
static void test_startup_timeouts(void **state)
{
	(void)state;
	for (unsigned end = 0; end < 2; end++) {
		struct wire_config wire = {
			.seed = 5, .cut = { WIRE_NO_CUT, WIRE_NO_CUT }
		};
		struct iwarp_config cfg;
		struct sim *sim = calloc(1, sizeof(*sim));

		wire_init(&sim->wire, &wire);
		iwarp_config_default(&cfg, end == 0);
		for (unsigned i = 0; i < 2; i++) { /* the same role twice */
			side_init(sim, i, &cfg);
			wire_attach(&sim->wire, i, &iwarp_stream_ops,
				    sim->side[i].c);
		}
		wire_run(&sim->wire, 60 * XTIME_S);
		assert_true(sim->side[0].closed && sim->side[1].closed);
		assert_int_not_equal(sim->side[0].err, 0);
		sim_free(sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_operations),
		cmocka_unit_test(test_single_bytes),
		cmocka_unit_test(test_reset_after_every_byte),
		cmocka_unit_test(test_reject_rfc5044_7_1),
		cmocka_unit_test(test_startup_timeouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
