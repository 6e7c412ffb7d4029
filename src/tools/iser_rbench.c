/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_rbench.c: iser rbench: bandwidth and latency of Send, RDMA Write and
 * RDMA Read between two of these, in perftest's columns. Bandwidth ends when
 * the server has answered for the last byte, not when a socket took it.
 */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rbench.h"

#define RECVS	    8
#define SAMPLE_NS   10000000u /* of the peak */
#define SIZES_MAX   32
#define MIB	    1048576.0
#define DEFAULT_BW  5000
#define DEFAULT_LAT 1000
#define SPIN_US	    50 /* an idle end sleeps */

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
	struct common common;
	struct iser_rdma_options options;
	bool server, events;
	const char *where;
	unsigned wanted; /* bits of enum rbench_test */
	uint32_t sizes[SIZES_MAX];
	unsigned nsizes, depth;
	uint64_t iterations; /* 0: by time, or the default */
	double seconds;
	/* state */
	struct iser_context *ctx;
	char host[256];
	uint16_t port;
	json_t *rows;
};

enum run_state {
	GREETING,
	RUNNING,
	FINISHING, /* the last one is out; the server has to say so */
	OVER,
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
	/* memory */
	uint8_t *source, *landing;
	struct iovec source_iov, landing_iov;
	struct iser_rdma_mr mr;
	struct rbench_region theirs;
	struct iser_rdma_recv recv[RECVS];
	struct rbench_message greeting, finish;
	struct slot *slots;
	/* progress */
	uint64_t target, posted, done, credit;
	uint64_t start, stop_at, end, at; /* at: the last one's begin */
	uint64_t sample_at, sample_done;
	double peak; /* bytes a second */
	uint8_t mark;
	struct rdma_looks looks;
	struct histogram latency;
	double squares;
	struct iser_rdma_stats stats;
	struct iser_rdma_info info;
};

/* ---- bandwidth ---- */

static void finish(struct run *r)
{
	r->state = FINISHING;
	if (tests[r->test].op == ISER_RDMA_READ || tests[r->test].latency)
		r->end = now_ns(); /* nothing is under way */
	rbench_send_end(r->c, &r->finish,
			ISER_RDMA_SOLICITED | ISER_RDMA_INVALIDATE,
			r->theirs.stag);
}

static bool has_more(const struct run *r)
{
	if (r->stop_at)
		return now_ns() < r->stop_at && !rdma_stopped();
	return r->posted < r->target && !rdma_stopped();
}

static bool has_credit(const struct run *r)
{
	return r->test != RBENCH_SEND_BW || r->posted < r->credit;
}

static void bw_post(struct run *r, struct slot *s)
{
	struct iser_rdma_wr *one = &s->wr;

	r->posted++;
	if (iser_rdma_post(r->c, &one, 1))
		r->posted--; /* it ends: closed tells why */
}

/* Fills the queue up again. */
static void bw_go_on(struct run *r)
{
	while (r->state == RUNNING && r->posted - r->done < r->b->depth &&
	       has_credit(r)) {
		if (!has_more(r)) {
			if (r->posted == r->done)
				finish(r);
			return;
		}
		bw_post(r, &r->slots[r->posted % r->b->depth]);
	}
}

static void sample(struct run *r)
{
	uint64_t now = now_ns();

	if (now - r->sample_at < SAMPLE_NS)
		return;
	r->peak = fmax(r->peak, (double)(r->done - r->sample_done) *
					(double)r->size * 1e9 /
					(double)(now - r->sample_at));
	r->sample_at = now;
	r->sample_done = r->done;
}

static void bw_done(struct iser_rdma_wr *wr)
{
	struct run *r = wr->arg;

	if (wr->err)
		return;
	r->done++;
	if (r->done % 16 == 0)
		sample(r);
	bw_go_on(r);
}

/* ---- latency: one at a time ---- */

static void lat_post(struct run *r)
{
	struct iser_rdma_wr *one = &r->slots[0].wr;

	if (!has_more(r)) {
		finish(r);
		return;
	}
	r->posted++;
	if (r->test == RBENCH_WRITE_LAT) {
		r->mark = (uint8_t)(r->mark % 255 + 1);
		r->source[r->size - 1] = r->mark;
	}
	r->at = now_ns();
	iser_rdma_post(r->c, &one, 1);
}

static void lat_over(struct run *r)
{
	uint64_t ns = now_ns() - r->at;
	double us;

	if (r->test != RBENCH_READ_LAT)
		ns /= 2; /* one way */
	us = (double)ns / 1e3;
	r->done++;
	r->squares += us * us;
	hist_add(&r->latency, ns);
	lat_post(r);
}

static void lat_done(struct iser_rdma_wr *wr)
{
	struct run *r = wr->arg;

	if (!wr->err && r->test == RBENCH_READ_LAT)
		lat_over(r);
}

static bool turn(struct run *r)
{
	if (r->state == RUNNING && r->test == RBENCH_WRITE_LAT &&
	    r->b->options.device)
		return rdma_look(r->b->ctx, &r->looks);
	return rdma_turn(r->b->ctx);
}

/* The server's Write is here: its mark comes last. */
static void look(struct run *r)
{
	const volatile uint8_t *mark = r->landing + r->size - 1;

	if (r->state == RUNNING && r->test == RBENCH_WRITE_LAT &&
	    r->posted > r->done && *mark == r->mark) {
		r->looks.n = 0;
		lat_over(r);
	}
}

/* ---- what the server says ---- */

static void begin(struct run *r, const struct iser_rdma_recv *in)
{
	if (in->len != RBENCH_CONTROL) {
		r->code = EXIT_PROTOCOL;
		iser_rdma_terminate(r->c, "the server is no iser rbench");
		return;
	}
	rbench_get_region(&r->theirs, in->buf);
	memset(r->landing, 0, RBENCH_CONTROL);
	for (unsigned i = 0; i < r->b->depth; i++) {
		struct iser_rdma_wr *w = &r->slots[i].wr;

		*w = (struct iser_rdma_wr){
			.op = tests[r->test].op,
			.iov = tests[r->test].op == ISER_RDMA_READ
				       ? &r->landing_iov
				       : &r->source_iov,
			.niov = 1,
			.stag = r->theirs.stag,
			.to = r->theirs.base,
			.done = tests[r->test].latency ? lat_done : bw_done,
			.arg = r,
		};
	}
	r->credit = RBENCH_CREDITS - 2; /* greeting and end need theirs */
	r->state = RUNNING;
	r->start = r->sample_at = now_ns();
	if (r->b->seconds > 0)
		r->stop_at = r->start + (uint64_t)(r->b->seconds * 1e9);
	if (tests[r->test].latency)
		lat_post(r);
	else
		bw_go_on(r);
}

static void on_running(struct run *r)
{
	if (r->test == RBENCH_SEND_LAT) {
		lat_over(r);
	} else if (r->test == RBENCH_SEND_BW) {
		r->credit += RBENCH_CREDIT_LOT;
		bw_go_on(r);
	}
}

static void received(struct iser_rdma_recv *in)
{
	struct run *r = in->arg;

	if (in->err || r->state == OVER)
		return;
	if (r->state == FINISHING && rbench_is_end(r->c, in, in->invalidated)) {
		if (!r->end)
			r->end = now_ns();
		r->state = OVER;
		iser_rdma_get_stats(r->c, &r->stats);
		iser_rdma_disconnect(r->c);
		return;
	}
	if (r->state == GREETING)
		begin(r, in);
	else if (r->state == RUNNING)
		on_running(r);
	iser_rdma_post_recv(r->c, in);
}

/* ---- the connection ---- */

static void established(void *arg, struct iser_rdma *c,
			const struct iser_rdma_peer *peer)
{
	struct run *r = arg;
	struct rbench_region ours = { .len = (uint32_t)r->size };
	int err = iser_rdma_register(c, &r->landing_iov, 1, 0,
				     ISER_RDMA_REMOTE_WRITE, &r->mr);

	(void)peer;
	iser_rdma_get_info(c, &r->info);
	ours.base = r->mr.base;
	ours.stag = r->mr.stag;
	if (!err)
		err = rbench_send(c, &r->greeting, &ours, 0, 0);
	if (err) {
		r->code = failed(r->b->ctx, err);
		iser_rdma_disconnect(c);
	}
}

static void closed(void *arg, struct iser_rdma *c, int err)
{
	struct run *r = arg;

	(void)c;
	if (r->state != OVER && !r->code) {
		r->code = err ? failed(r->b->ctx, err) : EXIT_TRANSPORT;
		if (!err)
			say("the server closed the connection");
	}
	r->c = NULL; /* freed by run_free's own pointer */
	r->state = OVER;
	iser_rdma_free(c);
}

static const struct iser_rdma_callbacks callbacks = {
	.established = established,
	.closed = closed,
};

static bool set_up(struct run *r)
{
	size_t room = r->size < RBENCH_CONTROL ? RBENCH_CONTROL : r->size;

	room = (room + 4095) & ~(size_t)4095;
	r->source = aligned_alloc(4096, room);
	r->landing = aligned_alloc(4096, room);
	r->slots = calloc(r->b->depth, sizeof(r->slots[0]));
	if (!r->source || !r->landing || !r->slots)
		return false;
	memset(r->source, 0xa5, room);
	memset(r->landing, 0, room);
	r->source_iov = (struct iovec){ r->source, r->size };
	r->landing_iov = (struct iovec){ r->landing, r->size };
	for (unsigned i = 0; i < RECVS; i++)
		r->recv[i] = (struct iser_rdma_recv){ .buf = r->landing,
						      .size = room,
						      .done = received,
						      .arg = r };
	return true;
}

static int drive(struct run *r)
{
	const struct rbench_plan plan = { r->test, (uint32_t)r->size };
	uint8_t said[RBENCH_PLAN];
	struct rbench *b = r->b;
	int err;

	rbench_put_plan(&plan, said);
	r->c = iser_rdma_connect_start(b->ctx, b->host, b->port, &b->options,
				       said, sizeof(said), &callbacks, r, &err);
	if (!r->c)
		return failed(b->ctx, err);
	for (unsigned i = 0; i < RECVS; i++)
		iser_rdma_post_recv(r->c, &r->recv[i]);
	while (r->c) {
		if (!turn(r))
			return EXIT_GENERIC;
		if (r->c)
			look(r);
		if (r->c && rdma_stopped() && r->state != RUNNING)
			iser_rdma_disconnect(r->c);
	}
	return r->code;
}

/* ---- results ---- */

static void head(const struct rbench *b, enum rbench_test t)
{
	if (b->common.json)
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
		fmax(r->peak, n * (double)r->size / s), "crc", r->info.crc,
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

static void tell(const struct run *r)
{
	double s = (double)(r->end - r->start) / 1e9, n = (double)r->done;
	double rate = n * (double)r->size / s;

	if (r->b->common.json) {
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
		       (unsigned long long)r->done, fmax(r->peak, rate) / MIB,
		       rate / MIB, n / s / 1e6);
	fflush(stdout);
}

/* ---- all tests at all sizes ---- */

static int run_one(struct rbench *b, enum rbench_test t, size_t size)
{
	struct run *r = calloc(1, sizeof(*r));
	int code = EXIT_NOMEM;

	if (!r)
		return code;
	r->b = b;
	r->test = t;
	r->size = size;
	r->target = b->iterations      ? b->iterations
		    : tests[t].latency ? DEFAULT_LAT
				       : DEFAULT_BW;
	if (set_up(r))
		code = drive(r);
	iser_rdma_free(r->c);
	if (!code && r->done)
		tell(r);
	free(r->slots);
	free(r->source);
	free(r->landing);
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
		head(b, (enum rbench_test)t);
		for (unsigned i = 0; i < b->nsizes && !code && !rdma_stopped();
		     i++)
			code = run_one(b, (enum rbench_test)t, b->sizes[i]);
	}
	if (b->common.json && !code)
		print_json(json_incref(b->rows));
	json_decref(b->rows);
	return code;
}

/* ---- the command line ---- */

static bool add_test(struct rbench *b, const char *name)
{
	for (unsigned t = 0; t < RBENCH_TESTS; t++)
		if (!strcmp(name, tests[t].name)) {
			b->wanted |= 1u << t;
			return true;
		}
	say("--test is write_bw, read_bw, send_bw, write_lat, read_lat or "
	    "send_lat");
	return false;
}

static bool add_size(struct rbench *b, const char *text)
{
	uint64_t size;

	if (parse_size(text, &size) && size > 0 && size <= RBENCH_SIZE_MAX &&
	    b->nsizes < SIZES_MAX) {
		b->sizes[b->nsizes++] = (uint32_t)size;
		return true;
	}
	say("--size is 1 to 64M, %u times at most", SIZES_MAX);
	return false;
}

static bool all_sizes(struct rbench *b)
{
	b->nsizes = 0;
	for (uint32_t size = 2; size <= 8u << 20; size *= 2)
		b->sizes[b->nsizes++] = size;
	return true;
}

static bool set_count(const char *text, uint64_t max, uint64_t *out,
		      const char *what)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (end != text && !*end && v > 0 && v <= max) {
		*out = v;
		return true;
	}
	say("%s is 1 to %llu", what, (unsigned long long)max);
	return false;
}

static bool set_option(struct rbench *b, int o, const char *arg)
{
	uint64_t v = 0;

	switch (o) {
	case 's':
		b->server = true;
		return true;
	case 'T':
		return add_test(b, arg);
	case 'z':
		return add_size(b, arg);
	case 'a':
		return all_sizes(b);
	case 'n':
		return set_count(arg, UINT64_MAX / 2, &b->iterations,
				 "--iterations");
	case 'q':
		if (!set_count(arg, RBENCH_DEPTH_MAX, &v, "--depth"))
			return false;
		b->depth = (unsigned)v;
		return true;
	case 't':
		b->seconds = strtod(arg, NULL);
		return b->seconds > 0;
	case 'e':
		b->events = true;
		return true;
	default:
		return rdma_option(&b->options, o, arg) ||
		       common_option(&b->common, o, arg);
	}
}

static bool parse(struct rbench *b, int argc, char **argv)
{
	static const struct option options[] = {
		COMMON_OPTIONS,
		RDMA_OPTIONS,
		{ "server", no_argument, NULL, 's' },
		{ "test", required_argument, NULL, 'T' },
		{ "size", required_argument, NULL, 'z' },
		{ "all", no_argument, NULL, 'a' },
		{ "iterations", required_argument, NULL, 'n' },
		{ "time", required_argument, NULL, 't' },
		{ "depth", required_argument, NULL, 'q' },
		{ "events", no_argument, NULL, 'e' },
		{ 0 },
	};
	int o;

	optind = 1;
	while ((o = getopt_long(argc, argv, "esn:", options, NULL)) != -1)
		if (!set_option(b, o, optarg)) {
			say("iser rbench --help tells the options");
			return false;
		}
	b->where = rdma_where("rbench", argc, argv, b->server);
	if (!b->where)
		return false;
	if (!b->wanted)
		b->wanted = (1u << RBENCH_TESTS) - 1;
	if (!b->nsizes)
		b->sizes[b->nsizes++] = 65536;
	return true;
}

static int run(int argc, char **argv)
{
	struct rbench *b = calloc(1, sizeof(*b));
	int code = EXIT_INVALID;

	if (!b)
		return EXIT_NOMEM;
	b->depth = 64;
	if (parse(b, argc, argv)) {
		b->ctx = open_context(&b->common);
		rdma_catch_signals();
		if (b->ctx && !b->events)
			iser_set_spin(b->ctx, SPIN_US);
		code = !b->ctx	   ? EXIT_NOMEM
		       : b->server ? rbench_serve(b->ctx, b->where, &b->options)
				   : run_all(b);
		iser_context_free(b->ctx);
	}
	free(b);
	return code;
}

const struct command command_rbench = {
	.name = "rbench",
	.synopsis = "[OPTIONS] HOST[:PORT] | --server [ADDRESS:PORT]",
	.summary = "bandwidth and latency of RDMA Send, Write, Read (iWARP)",
	.help = "  -s, --server         answer; at 127.0.0.1:7175 unless told "
		"otherwise\n"
		"  --test NAME          write_bw, read_bw, send_bw, write_lat, "
		"read_lat,\n"
		"                       send_lat; may be repeated (all)\n"
		"  --size SIZE          bytes of a message; may be repeated "
		"(64k)\n"
		"  --all                sizes 2, 4, 8 ... 8M\n"
		"  -n, --iterations N   messages (5000, latency: 1000)\n"
		"  --time SECONDS       this long instead\n"
		"  --depth N            requests under way, for bandwidth "
		"(64)\n"
		"  -e, --events         sleep until something comes, do not "
		"poll before\n" RDMA_HELP,
	.run = run,
};
