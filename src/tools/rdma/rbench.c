/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rbench.c: iser rbench: bandwidth and latency of Send, RDMA Write and RDMA Read
 * between two instances, in the columns of perftest. A bandwidth test ends when
 * the server has answered the last byte, not when a socket has taken it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rdma/rbench.h"

#define RECVS	    8
#define SAMPLE_NS   10000000u /* of the peak */
#define SIZES_MAX   32
#define MIB	    1048576.0
#define DEFAULT_BW  5000
#define DEFAULT_LAT 1000
#define SPIN_US	    50 /* of polling before an end sleeps */

static const struct {
	const char *name, *title;
	enum iser_rdma_op op;
	bool latency;
} tests[RBENCH_TESTS] = {
	[RBENCH_WRITE_BW] = { "write_bw", "RDMA Write bandwidth",
			      ISER_RDMA_WRITE, false },
	[RBENCH_READ_BW] = { "read_bw", "RDMA Read bandwidth", ISER_RDMA_READ,
			     false },
	[RBENCH_SEND_BW] = { "send_bw", "Send bandwidth", ISER_RDMA_SEND,
			     false },
	[RBENCH_WRITE_LAT] = { "write_lat",
			       "RDMA Write latency (half of there and back)",
			       ISER_RDMA_WRITE, true },
	[RBENCH_READ_LAT] = { "read_lat", "RDMA Read latency", ISER_RDMA_READ,
			      true },
	[RBENCH_SEND_LAT] = { "send_lat",
			      "Send latency (half of there and back)",
			      ISER_RDMA_SEND, true },
};

struct rbench {
	const struct common *common;
	struct iser_rdma_options options;
	bool server, events;
	const char *where;
	unsigned wanted; /* bits of enum rbench_test */
	uint32_t sizes[SIZES_MAX];
	unsigned nsizes, depth;
	uint64_t iterations; /* 0: by time, or the default of the test */
	double seconds;
	/* state */
	struct iser_context *ctx;
	char host[256];
	uint16_t port;
	json_t *rows;
};

enum run_state {
	RUN_GREETING,
	RUN_MEASURING,
	RUN_FINISHING, /* the server has to answer the last message */
	RUN_OVER,
};

struct slot {
	struct iser_rdma_wr wr;
	struct run *run;
};

/* One test at one size. */
struct run {
	struct rbench *b;
	enum rbench_test test;
	size_t size;
	struct iser_rdma *c;
	enum run_state state;
	int code;
	/* what is moved, and where to: ours, and the peer's region */
	struct {
		uint8_t *source, *landing;
		struct iovec source_iov, landing_iov;
		struct iser_rdma_mr mr;
		struct rbench_region theirs;
	} memory;
	struct iser_rdma_recv recv[RECVS];
	struct rbench_message greeting, finish;
	struct slot *slots;
	/* requests: how many to make, have begun and ended, and may begin */
	uint64_t target, posted, done, credit;
	/* in ns; at: when the last request began */
	struct {
		uint64_t start, stop_at, end, at;
	} time;
	/* the best bandwidth between two samples */
	struct {
		uint64_t at, done;
		double best; /* bytes per second */
	} peak;
	uint8_t mark;
	/* latency: sending: the request has not completed; owed: its answer
	 * came before that, so the next one is due */
	bool sending, owed;
	struct rdma_polls polls;
	struct histogram latency;
	double squares;
	struct iser_rdma_stats stats;
	struct iser_rdma_info info;
};

/* ---- bandwidth ---- */

static void finish_run(struct run *r)
{
	r->state = RUN_FINISHING;
	if (tests[r->test].op == ISER_RDMA_READ || tests[r->test].latency)
		r->time.end = now_ns(); /* no request is in progress */
	rbench_send_end(r->c, &r->finish,
			ISER_RDMA_SOLICITED | ISER_RDMA_INVALIDATE,
			r->memory.theirs.stag);
}

static bool has_more(const struct run *r)
{
	if (r->time.stop_at)
		return now_ns() < r->time.stop_at && !caught_signals();
	return r->posted < r->target && !caught_signals();
}

static bool has_credit(const struct run *r)
{
	return r->test != RBENCH_SEND_BW || r->posted < r->credit;
}

static void post_bandwidth(struct run *r, struct slot *s)
{
	struct iser_rdma_wr *one = &s->wr;

	r->posted++;
	if (iser_rdma_post(r->c, &one, 1))
		r->posted--; /* the connection ends, run_closed has the reason */
}

/* Posts requests up to the depth. */
static void fill_queue(struct run *r)
{
	while (r->state == RUN_MEASURING && r->posted - r->done < r->b->depth &&
	       has_credit(r)) {
		if (!has_more(r)) {
			if (r->posted == r->done)
				finish_run(r);
			return;
		}
		post_bandwidth(r, &r->slots[r->posted % r->b->depth]);
	}
}

static void sample_peak(struct run *r)
{
	uint64_t now = now_ns();

	if (now - r->peak.at < SAMPLE_NS)
		return;
	r->peak.best = fmax(r->peak.best, (double)(r->done - r->peak.done) *
						  (double)r->size * 1e9 /
						  (double)(now - r->peak.at));
	r->peak.at = now;
	r->peak.done = r->done;
}

static void bandwidth_done(struct iser_rdma_wr *wr)
{
	struct run *r = wr->arg;

	if (wr->err)
		return;
	r->done++;
	if (r->done % 16 == 0)
		sample_peak(r);
	fill_queue(r);
}

/* ---- latency: one at a time ---- */

/* Posts the next request, or leaves that to latency_done: until a request is
 * done, the library owns the request and its memory. */
static void post_latency(struct run *r)
{
	struct iser_rdma_wr *one = &r->slots[0].wr;

	r->owed = r->sending;
	if (r->owed)
		return;
	if (!has_more(r)) {
		finish_run(r);
		return;
	}
	r->posted++;
	if (r->test == RBENCH_WRITE_LAT) {
		r->mark = (uint8_t)(r->mark % 255 + 1);
		r->memory.source[r->size - 1] = r->mark;
	}
	r->time.at = now_ns();
	r->sending = true;
	iser_rdma_post(r->c, &one, 1);
}

static void count_latency(struct run *r)
{
	uint64_t ns = now_ns() - r->time.at;
	double us;

	if (r->test != RBENCH_READ_LAT)
		ns /= 2; /* one way */
	us = (double)ns / 1e3;
	r->done++;
	r->squares += us * us;
	hist_add(&r->latency, ns);
	post_latency(r);
}

static void latency_done(struct iser_rdma_wr *wr)
{
	struct run *r = wr->arg;

	r->sending = false;
	if (wr->err)
		return;
	if (r->test == RBENCH_READ_LAT)
		count_latency(r);
	else if (r->owed)
		post_latency(r);
}

static bool run_turn(struct run *r)
{
	if (r->state == RUN_MEASURING && r->test == RBENCH_WRITE_LAT &&
	    r->b->options.device)
		return rdma_poll(r->b->ctx, &r->polls);
	return rdma_turn(r->b->ctx);
}

/* write_lat: the Write of the server has arrived when its last byte, the mark,
 * has changed. */
static void check_mark(struct run *r)
{
	const volatile uint8_t *mark = r->memory.landing + r->size - 1;

	if (r->state == RUN_MEASURING && r->test == RBENCH_WRITE_LAT &&
	    !r->owed && r->posted > r->done && *mark == r->mark) {
		r->polls.n = 0;
		count_latency(r);
	}
}

/* ---- messages of the server ---- */

static void begin_run(struct run *r, const struct iser_rdma_recv *in)
{
	if (in->len != RBENCH_CONTROL) {
		r->code = EXIT_PROTOCOL;
		say("%s: the server is not iser rbench", r->b->where);
		iser_rdma_terminate(r->c, "the server is not iser rbench");
		return;
	}
	rbench_get_region(&r->memory.theirs, in->buf);
	memset(r->memory.landing, 0, RBENCH_CONTROL);
	for (unsigned i = 0; i < r->b->depth; i++) {
		struct iser_rdma_wr *w = &r->slots[i].wr;

		*w = (struct iser_rdma_wr){
			.op = tests[r->test].op,
			.iov = tests[r->test].op == ISER_RDMA_READ
				       ? &r->memory.landing_iov
				       : &r->memory.source_iov,
			.niov = 1,
			.stag = r->memory.theirs.stag,
			.to = r->memory.theirs.base,
			.done = tests[r->test].latency ? latency_done
						       : bandwidth_done,
			.arg = r,
		};
	}
	r->credit = RBENCH_CREDITS - 2; /* greeting and end use two */
	r->state = RUN_MEASURING;
	r->time.start = r->peak.at = now_ns();
	if (r->b->seconds > 0)
		r->time.stop_at =
			r->time.start + (uint64_t)(r->b->seconds * 1e9);
	if (tests[r->test].latency)
		post_latency(r);
	else
		fill_queue(r);
}

static void take_answer(struct run *r)
{
	if (r->test == RBENCH_SEND_LAT) {
		count_latency(r);
	} else if (r->test == RBENCH_SEND_BW) {
		r->credit += RBENCH_CREDIT_LOT;
		fill_queue(r);
	}
}

static void message_received(struct iser_rdma_recv *in)
{
	struct run *r = in->arg;

	if (in->err || r->state == RUN_OVER)
		return;
	if (r->state == RUN_FINISHING &&
	    rbench_is_end(r->c, in, in->invalidated)) {
		if (!r->time.end)
			r->time.end = now_ns();
		r->state = RUN_OVER;
		iser_rdma_get_stats(r->c, &r->stats);
		iser_rdma_disconnect(r->c);
		return;
	}
	if (r->state == RUN_GREETING)
		begin_run(r, in);
	else if (r->state == RUN_MEASURING)
		take_answer(r);
	iser_rdma_post_recv(r->c, in);
}

/* ---- the connection ---- */

static void run_established(void *arg, struct iser_rdma *c,
			    const struct iser_rdma_peer *peer)
{
	struct run *r = arg;
	struct rbench_region ours = { .len = (uint32_t)r->size };
	int err = iser_rdma_register(c, &r->memory.landing_iov, 1, 0,
				     ISER_RDMA_REMOTE_WRITE, &r->memory.mr);

	(void)peer;
	iser_rdma_get_info(c, &r->info);
	ours.base = r->memory.mr.base;
	ours.stag = r->memory.mr.stag;
	if (!err)
		err = rbench_send(c, &r->greeting, &ours, 0, 0);
	if (err) {
		r->code = say_failed(r->b->ctx, err);
		iser_rdma_disconnect(c);
	}
}

static void run_closed(void *arg, struct iser_rdma *c, int err)
{
	struct run *r = arg;

	(void)c;
	if (r->state != RUN_OVER && !r->code) {
		r->code = err ? say_failed(r->b->ctx, err) : EXIT_TRANSPORT;
		if (!err)
			say("%s: the server closed the connection",
			    r->b->where);
	}
	r->c = NULL; /* run_one must not free it again */
	r->state = RUN_OVER;
	iser_rdma_free(c);
}

static const struct iser_rdma_callbacks callbacks = {
	.established = run_established,
	.closed = run_closed,
};

static bool make_memory(struct run *r)
{
	size_t room = r->size < RBENCH_CONTROL ? RBENCH_CONTROL : r->size;

	room = (room + 4095) & ~(size_t)4095;
	r->memory.source = aligned_alloc(4096, room);
	r->memory.landing = aligned_alloc(4096, room);
	r->slots = calloc(r->b->depth, sizeof(r->slots[0]));
	if (!r->memory.source || !r->memory.landing || !r->slots)
		return false;
	memset(r->memory.source, 0xa5, room);
	memset(r->memory.landing, 0, room);
	r->memory.source_iov = (struct iovec){ r->memory.source, r->size };
	r->memory.landing_iov = (struct iovec){ r->memory.landing, r->size };
	for (unsigned i = 0; i < RECVS; i++)
		r->recv[i] = (struct iser_rdma_recv){ .buf = r->memory.landing,
						      .size = room,
						      .done = message_received,
						      .arg = r };
	return true;
}

static int drive_run(struct run *r)
{
	const struct rbench_plan plan = { r->test, (uint32_t)r->size };
	uint8_t private_data[RBENCH_PLAN];
	struct rbench *b = r->b;
	int err;

	rbench_put_plan(&plan, private_data);
	r->c = iser_rdma_connect_start(b->ctx, b->host, b->port, &b->options,
				       private_data, sizeof(private_data),
				       &callbacks, r, &err);
	if (!r->c)
		return say_failed(b->ctx, err);
	for (unsigned i = 0; i < RECVS; i++)
		iser_rdma_post_recv(r->c, &r->recv[i]);
	while (r->c) {
		if (!run_turn(r))
			return EXIT_GENERIC;
		if (r->c)
			check_mark(r);
		if (r->c && caught_signals() && r->state != RUN_MEASURING)
			iser_rdma_disconnect(r->c);
	}
	return r->code;
}

/* ---- results ---- */

static void print_head(const struct rbench *b, enum rbench_test t)
{
	if (b->common->json)
		return;
	printf("%s, depth %u\n", tests[t].title,
	       tests[t].latency ? 1 : b->depth);
	if (tests[t].latency)
		printf(" #bytes     #iterations   t_min[usec]  t_max[usec]  "
		       "t_typical[usec]  t_avg[usec]  t_stdev[usec]  "
		       "99%%[usec]  99.9%%[usec]\n");
	else
		printf(" #bytes     #iterations   BW peak[MiB/sec]  "
		       "BW average[MiB/sec]  MsgRate[Mpps]\n");
}

static double us_at(const struct run *r, double p)
{
	return (double)hist_percentile(&r->latency, p) / 1e3;
}

static double mean_us(const struct run *r)
{
	return r->done ? r->latency.sum / (double)r->done / 1e3 : 0;
}

static double stdev_us(const struct run *r)
{
	double m = mean_us(r);
	double v = r->done ? r->squares / (double)r->done - m * m : 0;

	return v > 0 ? sqrt(v) : 0;
}

static void add_json(const struct run *r, double s)
{
	double n = (double)r->done;
	json_t *j = json_pack(
		"{s:s,s:I,s:I,s:i,s:f,s:f,s:f,s:f,s:b,s:b,s:b,s:i}", "test",
		tests[r->test].name, "size", (json_int_t)r->size, "iterations",
		(json_int_t)r->done, "depth",
		tests[r->test].latency ? 1 : (int)r->b->depth, "seconds", s,
		"bytes_per_second", n * (double)r->size / s,
		"messages_per_second", n / s, "peak_bytes_per_second",
		fmax(r->peak.best, n * (double)r->size / s), "crc", r->info.crc,
		"markers_in", r->info.markers_in, "markers_out",
		r->info.markers_out, "fpdu_max", (int)r->info.fpdu_max);

	json_object_set_new(
		j, "stream",
		json_pack("{s:I,s:I,s:I,s:I,s:I}", "send_calls",
			  (json_int_t)r->stats.tx_calls, "receive_calls",
			  (json_int_t)r->stats.rx_calls, "fpdus_sent",
			  (json_int_t)r->stats.tx_fpdus, "fpdus_received",
			  (json_int_t)r->stats.rx_fpdus, "bytes_copied",
			  (json_int_t)r->stats.copied));
	if (tests[r->test].latency)
		json_object_set_new(
			j, "latency_us",
			json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "min",
				  (double)r->latency.min / 1e3, "max",
				  (double)r->latency.max / 1e3, "median",
				  us_at(r, 0.5), "mean", mean_us(r), "stdev",
				  stdev_us(r), "p99", us_at(r, 0.99), "p99.9",
				  us_at(r, 0.999)));
	json_array_append_new(r->b->rows, j);
}

static void print_run(const struct run *r)
{
	double s = (double)(r->time.end - r->time.start) / 1e9;
	double n = (double)r->done;
	double rate = n * (double)r->size / s;

	if (r->b->common->json) {
		add_json(r, s);
		return;
	}
	if (tests[r->test].latency)
		printf(" %-10zu %-13llu %-12.2f %-12.2f %-16.2f %-12.2f "
		       "%-14.2f %-10.2f %.2f\n",
		       r->size, (unsigned long long)r->done,
		       (double)r->latency.min / 1e3,
		       (double)r->latency.max / 1e3, us_at(r, 0.5), mean_us(r),
		       stdev_us(r), us_at(r, 0.99), us_at(r, 0.999));
	else
		printf(" %-10zu %-13llu %-17.2f %-20.2f %.6f\n", r->size,
		       (unsigned long long)r->done,
		       fmax(r->peak.best, rate) / MIB, rate / MIB, n / s / 1e6);
	fflush(stdout);
}

/* ---- all tests at all sizes ---- */

static int run_one(struct rbench *b, enum rbench_test t, size_t size)
{
	struct run *r = calloc(1, sizeof(*r));
	int code = EXIT_NOMEM;

	if (!r)
		return say_no_memory();
	r->b = b;
	r->test = t;
	r->size = size;
	r->target = b->iterations      ? b->iterations
		    : tests[t].latency ? DEFAULT_LAT
				       : DEFAULT_BW;
	if (make_memory(r))
		code = drive_run(r);
	else
		say_no_memory();
	iser_rdma_free(r->c);
	if (!code && r->done)
		print_run(r);
	free(r->slots);
	free(r->memory.source);
	free(r->memory.landing);
	free(r);
	return code;
}

static int run_all(struct rbench *b)
{
	int code = 0;

	if (!rdma_parse_host(b->where, RBENCH_PORT, b->host, &b->port))
		return EXIT_INVALID;
	b->rows = json_array();
	for (unsigned t = 0; t < RBENCH_TESTS && !code; t++) {
		if (!(b->wanted & 1u << t))
			continue;
		print_head(b, (enum rbench_test)t);
		for (unsigned i = 0;
		     i < b->nsizes && !code && !caught_signals(); i++)
			code = run_one(b, (enum rbench_test)t, b->sizes[i]);
	}
	if (b->common->json && !code)
		print_json(json_incref(b->rows));
	json_decref(b->rows);
	return code;
}

/* ---- the command line ---- */

static enum opt_end add_test(void *into, const char *name, char why[OPT_WHY])
{
	struct rbench *b = into;

	for (unsigned t = 0; t < RBENCH_TESTS; t++)
		if (!strcmp(name, tests[t].name)) {
			b->wanted |= 1u << t;
			return OPT_OK;
		}
	snprintf(why, OPT_WHY,
		 "must be one of write_bw, read_bw, send_bw, write_lat, "
		 "read_lat, send_lat");
	return OPT_BAD;
}

static enum opt_end add_size(void *into, const char *text, char why[OPT_WHY])
{
	struct rbench *b = into;
	uint64_t size;

	if (opt_size(text, &size) && size > 0 && size <= RBENCH_SIZE_MAX &&
	    b->nsizes < SIZES_MAX) {
		b->sizes[b->nsizes++] = (uint32_t)size;
		return OPT_OK;
	}
	snprintf(why, OPT_WHY,
		 "must be a size from 1 to 64M, given at most %d times",
		 SIZES_MAX);
	return OPT_BAD;
}

static enum opt_end all_sizes(void *into, const char *arg, char why[OPT_WHY])
{
	struct rbench *b = into;

	(void)arg;
	(void)why;
	b->nsizes = 0;
	for (uint32_t size = 2; size <= 8u << 20; size *= 2)
		b->sizes[b->nsizes++] = size;
	return OPT_OK;
}

static const struct opt_row rows[] = {
	{ .name = "server",
	  .letter = 's',
	  OPT_FLAG(struct rbench, server),
	  .help = "answer clients, at 127.0.0.1:7175 without an operand" },
	{ .name = "test",
	  .arg = "NAME",
	  .repeats = true,
	  OPT_CALL(add_test),
	  .help = "write_bw, read_bw, send_bw, write_lat, read_lat or "
		  "send_lat; may be repeated; without it all of them" },
	{ .name = "size",
	  .arg = "SIZE",
	  .repeats = true,
	  OPT_CALL(add_size),
	  .help = "bytes of a message; may be repeated; without it 64k" },
	{ .name = "all",
	  OPT_CALL(all_sizes),
	  .help = "the sizes 2, 4, 8 and so on up to 8M" },
	{ .name = "iterations",
	  .letter = 'n',
	  .arg = "N",
	  OPT_COUNTER(struct rbench, iterations, 1, UINT64_MAX / 2),
	  .help = "messages; without it 5000, and 1000 for latency" },
	{ .name = "time",
	  .arg = "SECONDS",
	  OPT_SECONDS(struct rbench, seconds, 1, OPT_MS_MAX),
	  .help = "measure for this long in place of a number of messages" },
	{ .name = "depth",
	  .arg = "N",
	  .initial = "64",
	  OPT_NUMBER(struct rbench, depth, 1, RBENCH_DEPTH_MAX),
	  .help = "requests in progress, for bandwidth" },
	{ .name = "events",
	  .letter = 'e',
	  OPT_FLAG(struct rbench, events),
	  .help = "sleep until an event comes, without polling first" },
};

static int run_rbench(const struct call *call)
{
	struct rbench *b = call->args;
	int code;

	b->common = call->common;
	b->where = rdma_where("rbench", call, b->server);
	if (!b->where)
		return EXIT_INVALID;
	if (!b->wanted)
		b->wanted = (1u << RBENCH_TESTS) - 1;
	if (!b->nsizes)
		b->sizes[b->nsizes++] = 65536;
	b->ctx = open_context(b->common);
	catch_signals();
	if (!b->ctx)
		return EXIT_NOMEM;
	if (!b->events)
		iser_set_spin(b->ctx, SPIN_US);
	code = b->server ? rbench_serve(b->ctx, b->where, &b->options)
			 : run_all(b);
	iser_context_free(b->ctx);
	return code;
}

const struct command command_rbench = {
	.name = "rbench",
	.synopsis = "[OPTION]... HOST[:PORT] | --server [ADDRESS:PORT]",
	.summary = "measure bandwidth and latency of RDMA Send, Write, Read "
		   "(iWARP)",
	.rows = rows,
	.nrows = ARRAY_LEN(rows),
	.shared_rows = rdma_rows,
	.nshared_rows = RDMA_NROWS,
	.shared_at = offsetof(struct rbench, options),
	.args_size = sizeof(struct rbench),
	.max_operands = 1,
	.run = run_rbench,
};
