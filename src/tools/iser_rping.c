/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser_rping.c: iser rping: the protocol of rdmacm-utils' rping, so that
 * either end may be that one. For each ping the client names its source by a
 * Send, the server fetches it by RDMA Read and sends "go on"; the client names
 * its sink, the server puts the bytes there by RDMA Write and sends "go on".
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_common.h"

#define PORT	       7174
#define INFO_LEN       16 /* be64 address, be32 STag, be32 length */
#define SIZE_MAX_RPING 65536u
#define SIZE_MIN       32u
#define RECVS	       2

struct rping {
	struct common common;
	struct iser_rdma_options options;
	const char *where;
	bool server, once, print, validate;
	unsigned count; /* 0: until interrupted */
	uint64_t size;
	/* state */
	struct iser_context *ctx;
	unsigned clients, served;
	uint64_t pings, bytes;
	int code;
};

/* One end of a connection, of either role. */
struct end {
	struct rping *r;
	struct iser_rdma *c;
	bool over, leaving;
	unsigned ping;
	bool sink_turn; /* the second half of a ping */
	uint8_t in[RECVS][INFO_LEN];
	struct iser_rdma_recv recv[RECVS];
	uint8_t out[INFO_LEN];
	struct iovec out_iov, data_iov;
	struct iser_rdma_wr send, move;
	unsigned busy; /* requests under way */
	/* the server: what came before our own requests were told done */
	bool early;
	uint8_t next[INFO_LEN];
	/* memory: the client's source; both sides' sink */
	uint8_t *source, *sink;
	struct iovec source_iov, sink_iov;
	struct iser_rdma_mr source_mr, sink_mr;
	size_t fetched;
	uint64_t start, ns;
};

/* ---- both sides ---- */

static void give_up(struct end *e, const char *why)
{
	if (!e->leaving)
		say("%s", why);
	e->leaving = true;
	e->r->code = e->r->code ? e->r->code : EXIT_PROTOCOL;
	iser_rdma_terminate(e->c, why);
}

static void go_on(struct end *e);

static void wr_done(struct iser_rdma_wr *wr)
{
	struct end *e = wr->arg;

	e->busy--;
	if (!wr->err)
		go_on(e);
}

/* Sends a region's description; NULL: "go on", of the same size. */
static void fill_send(struct end *e, const struct iser_rdma_mr *mr)
{
	memset(e->out, 0, sizeof(e->out));
	if (mr) {
		rdma_put_be(e->out, mr->base, 8);
		rdma_put_be(e->out + 8, mr->stag, 4);
		rdma_put_be(e->out + 12, mr->len, 4);
	}
	e->out_iov = (struct iovec){ e->out, INFO_LEN };
	e->send = (struct iser_rdma_wr){ .op = ISER_RDMA_SEND,
					 .iov = &e->out_iov,
					 .niov = 1,
					 .done = wr_done,
					 .arg = e };
}

/* Posts the Send, and the Write before it if there is one. */
static void post(struct end *e, bool with_move)
{
	struct iser_rdma_wr *chain[2] = { &e->move, &e->send };

	e->busy = 1 + with_move;
	if (iser_rdma_post(e->c, chain + !with_move, 1 + with_move)) {
		e->busy = 0;
		e->leaving = true; /* it ends: closed tells why */
	}
}

static void post_recvs(struct end *e, void (*done)(struct iser_rdma_recv *r))
{
	for (unsigned i = 0; i < RECVS; i++) {
		e->recv[i] = (struct iser_rdma_recv){ .buf = e->in[i],
						      .size = INFO_LEN,
						      .done = done,
						      .arg = e };
		iser_rdma_post_recv(e->c, &e->recv[i]);
	}
}

static struct end *end_new(struct rping *r, bool with_source, size_t size)
{
	struct end *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->r = r;
	e->sink = calloc(1, size);
	e->source = with_source ? calloc(1, size) : NULL;
	e->sink_iov = (struct iovec){ e->sink, size };
	e->source_iov = (struct iovec){ e->source, size };
	if (e->sink && (e->source || !with_source))
		return e;
	free(e->sink);
	free(e);
	return NULL;
}

static void end_free(struct end *e)
{
	if (!e)
		return;
	iser_rdma_free(e->c);
	free(e->source);
	free(e->sink);
	free(e);
}

/* ---- the server ---- */

static void server_moved(struct iser_rdma_wr *wr)
{
	struct end *e = wr->arg;

	e->busy--;
	if (wr->err || wr->op != ISER_RDMA_READ) {
		if (!wr->err)
			go_on(e);
		return;
	}
	if (e->r->print)
		printf("server ping data: %.*s\n", (int)e->fetched,
		       (const char *)e->sink);
	e->r->bytes += e->fetched;
	e->sink_turn = true;
	fill_send(e, NULL);
	post(e, false);
}

static void prepare_move(struct end *e, enum iser_rdma_op op, const uint8_t *in,
			 size_t len)
{
	e->data_iov = (struct iovec){ e->sink, len };
	e->move =
		(struct iser_rdma_wr){ .op = op,
				       .iov = &e->data_iov,
				       .niov = 1,
				       .stag = (uint32_t)rdma_get_be(in + 8, 4),
				       .to = rdma_get_be(in, 8),
				       .done = server_moved,
				       .arg = e };
}

static void fetch(struct end *e, const uint8_t *in)
{
	struct iser_rdma_wr *one = &e->move;

	e->busy = 1;
	e->fetched = (size_t)rdma_get_be(in + 12, 4);
	if (e->fetched > SIZE_MAX_RPING) {
		give_up(e, "a client asks for pings of more than 64 KiB");
		return;
	}
	prepare_move(e, ISER_RDMA_READ, in, e->fetched);
	if (iser_rdma_post(e->c, &one, 1))
		e->leaving = true;
}

static void put(struct end *e, const uint8_t *in)
{
	size_t room = (size_t)rdma_get_be(in + 12, 4);

	e->ping++;
	e->r->pings++;
	e->sink_turn = false;
	prepare_move(e, ISER_RDMA_WRITE, in,
		     room < e->fetched ? room : e->fetched);
	fill_send(e, NULL);
	post(e, true);
}

/* A device may tell of the client's answer before it tells that what the
 * client answers was sent. */
static void go_on(struct end *e)
{
	if (e->busy || !e->early || e->leaving)
		return;
	e->early = false;
	if (e->sink_turn)
		put(e, e->next);
	else
		fetch(e, e->next);
}

static void server_received(struct iser_rdma_recv *r)
{
	struct end *e = r->arg;

	if (r->err || e->leaving)
		return;
	if (r->len != INFO_LEN) {
		give_up(e, "a client's message has not 16 bytes");
		return;
	}
	if (e->early) {
		give_up(e, "a client spoke out of turn");
		return;
	}
	memcpy(e->next, r->buf, sizeof(e->next));
	e->early = true;
	iser_rdma_post_recv(e->c, r);
	go_on(e);
}

static void server_established(void *arg, struct iser_rdma *c,
			       const struct iser_rdma_peer *peer)
{
	(void)arg;
	(void)c;
	(void)peer;
}

static void server_closed(void *arg, struct iser_rdma *c, int err)
{
	struct end *e = arg;
	struct rping *r = e->r;

	(void)c;
	if (err && !e->leaving && !rdma_stopped())
		say("%s", iser_message(r->ctx));
	r->clients--;
	r->served++;
	end_free(e);
}

static const struct iser_rdma_callbacks server_callbacks = {
	.established = server_established,
	.closed = server_closed,
};

static void on_request(void *arg, struct iser_rdma *c,
		       const struct iser_rdma_peer *peer)
{
	struct rping *r = arg;
	struct end *e = end_new(r, false, SIZE_MAX_RPING);

	(void)peer;
	if (!e || (r->once && r->clients + r->served > 0)) {
		end_free(e);
		iser_rdma_reject(c, NULL, 0);
		return;
	}
	e->c = c;
	r->clients++;
	iser_rdma_set_callbacks(c, &server_callbacks, e);
	post_recvs(e, server_received);
	iser_rdma_accept(c, NULL, 0);
}

static int serve(struct rping *r)
{
	struct iser_rdma_listener *l;
	int err;

	l = iser_rdma_listen(r->ctx, r->where, PORT, &r->options, on_request, r,
			     &err);
	if (!l)
		return failed(r->ctx, err);
	rdma_say_ready(iser_rdma_listener_address(l));
	while (!rdma_stopped() && !(r->once && r->served && !r->clients))
		if (!rdma_turn(r->ctx))
			return EXIT_GENERIC;
	iser_rdma_listener_free(l);
	return r->once ? r->code : EXIT_OK;
}

/* ---- the client ---- */

/* A number, then letters that begin one further with each ping. */
static void fill_source(struct end *e)
{
	size_t size = e->source_iov.iov_len;
	size_t n = (size_t)snprintf((char *)e->source, size,
				    "rdma-ping-%u: ", e->ping);

	for (size_t i = n; i < size; i++)
		e->source[i] = (uint8_t)('A' + (e->ping + i - n) % 58);
	e->source[size - 1] = '\0';
}

static void begin_ping(struct end *e)
{
	struct rping *r = e->r;

	if ((r->count && e->ping == r->count) || rdma_stopped()) {
		e->ns = now_ns() - e->start;
		e->leaving = true;
		iser_rdma_disconnect(e->c);
		return;
	}
	fill_source(e);
	memset(e->sink, 0, e->sink_iov.iov_len);
	e->sink_turn = false;
	fill_send(e, &e->source_mr);
	post(e, false);
}

static void end_ping(struct end *e)
{
	struct rping *r = e->r;
	size_t size = e->source_iov.iov_len;

	if (r->validate && memcmp(e->source, e->sink, size)) {
		give_up(e, "the data came back different");
		r->code = EXIT_DIFFERS;
		return;
	}
	if (r->print)
		printf("ping data: %s\n", (const char *)e->sink);
	e->ping++;
	r->pings++;
	r->bytes += size;
	begin_ping(e);
}

static void client_received(struct iser_rdma_recv *r)
{
	struct end *e = r->arg;

	if (r->err || e->leaving)
		return;
	if (r->len != INFO_LEN || e->busy) {
		give_up(e, "the server's message is none of rping's");
		return;
	}
	iser_rdma_post_recv(e->c, r);
	if (e->sink_turn) {
		end_ping(e);
		return;
	}
	e->sink_turn = true;
	fill_send(e, &e->sink_mr);
	post(e, false);
}

static void client_established(void *arg, struct iser_rdma *c,
			       const struct iser_rdma_peer *peer)
{
	struct end *e = arg;
	int err;

	(void)peer;
	err = iser_rdma_register(c, &e->source_iov, 1,
				 (uint64_t)(uintptr_t)e->source,
				 ISER_RDMA_REMOTE_READ, &e->source_mr);
	if (!err)
		err = iser_rdma_register(c, &e->sink_iov, 1,
					 (uint64_t)(uintptr_t)e->sink,
					 ISER_RDMA_REMOTE_WRITE, &e->sink_mr);
	if (err) {
		e->r->code = failed(e->r->ctx, err);
		iser_rdma_disconnect(c);
		return;
	}
	e->start = now_ns();
	begin_ping(e);
}

static void client_closed(void *arg, struct iser_rdma *c, int err)
{
	struct end *e = arg;
	struct rping *r = e->r;

	(void)c;
	e->over = true;
	if (e->leaving || r->code)
		return;
	r->code = err ? failed(r->ctx, err) : EXIT_TRANSPORT;
	if (!err)
		say("the server closed the connection");
}

static const struct iser_rdma_callbacks client_callbacks = {
	.established = client_established,
	.closed = client_closed,
};

static void report(const struct end *e, const struct iser_rdma_info *info)
{
	const struct rping *r = e->r;
	double s = (double)e->ns / 1e9;

	if (r->common.json) {
		print_json(json_pack("{s:I,s:I,s:f,s:b,s:b,s:b,s:b,s:i,s:i}",
				     "pings", (json_int_t)r->pings, "size",
				     (json_int_t)r->size, "seconds", s, "crc",
				     info->crc, "markers_in", info->markers_in,
				     "markers_out", info->markers_out,
				     "peer_to_peer", info->peer_to_peer, "ird",
				     (int)info->ird, "ord", (int)info->ord));
		return;
	}
	printf("%llu pings of %llu bytes in %.3f s, %.1f us each, there and "
	       "back; CRC %s, markers %s in, %s out\n",
	       (unsigned long long)r->pings, (unsigned long long)r->size, s,
	       r->pings ? s * 1e6 / (double)r->pings : 0.0,
	       info->crc ? "on" : "off", info->markers_in ? "on" : "off",
	       info->markers_out ? "on" : "off");
}

static int ping(struct rping *r)
{
	struct end *e = end_new(r, true, (size_t)r->size);
	struct iser_rdma_info info;
	char host[256];
	uint16_t port;
	int err;

	if (!e)
		return EXIT_NOMEM;
	if (!rdma_parse_host(r->where, PORT, host, &port)) {
		end_free(e);
		return EXIT_INVALID;
	}
	e->c = iser_rdma_connect_start(r->ctx, host, port, &r->options, NULL, 0,
				       &client_callbacks, e, &err);
	if (e->c)
		post_recvs(e, client_received);
	else
		r->code = failed(r->ctx, err);
	while (e->c && !e->over)
		if (!rdma_turn(r->ctx)) {
			r->code = EXIT_GENERIC;
			break;
		}
	if (!r->code) {
		iser_rdma_get_info(e->c, &info);
		report(e, &info);
	}
	end_free(e);
	return r->code;
}

/* ---- the command line ---- */

static bool set_option(struct rping *r, int o, const char *arg)
{
	char *end = NULL;

	switch (o) {
	case 's':
		r->server = true;
		return true;
	case '1':
		r->once = true;
		return true;
	case 'v':
		r->print = true;
		return true;
	case 'V':
		r->validate = true;
		return true;
	case 'C':
		r->count = (unsigned)strtoul(arg, &end, 10);
		return end != arg && !*end;
	case 'S':
		if (parse_size(arg, &r->size) && r->size >= SIZE_MIN &&
		    r->size <= SIZE_MAX_RPING)
			return true;
		say("--size is 32 to 64k");
		return false;
	default:
		return rdma_option(&r->options, o, arg) ||
		       common_option(&r->common, o, arg);
	}
}

static bool parse(struct rping *r, int argc, char **argv)
{
	static const struct option options[] = {
		COMMON_OPTIONS,
		RDMA_OPTIONS,
		{ "server", no_argument, NULL, 's' },
		{ "once", no_argument, NULL, '1' },
		{ "count", required_argument, NULL, 'C' },
		{ "size", required_argument, NULL, 'S' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "validate", no_argument, NULL, 'V' },
		{ 0 },
	};
	int o;

	optind = 1;
	while ((o = getopt_long(argc, argv, "sC:S:vV", options, NULL)) != -1)
		if (!set_option(r, o, optarg)) {
			say("iser rping --help tells the options");
			return false;
		}
	r->where = rdma_where("rping", argc, argv, r->server);
	return r->where;
}

static int run(int argc, char **argv)
{
	struct rping r = { .size = 64 };
	int code;

	if (!parse(&r, argc, argv))
		return EXIT_INVALID;
	r.ctx = open_context(&r.common);
	if (!r.ctx)
		return EXIT_NOMEM;
	rdma_catch_signals();
	code = r.server ? serve(&r) : ping(&r);
	iser_context_free(r.ctx);
	return code;
}

const struct command command_rping = {
	.name = "rping",
	.synopsis = "[OPTIONS] HOST[:PORT] | --server [ADDRESS:PORT]",
	.summary = "RDMA Send, Read and Write with rping's protocol (iWARP)",
	.help = "  -s, --server         answer; at 127.0.0.1:7174 unless told "
		"otherwise\n"
		"  --once               the server ends after one client\n"
		"  -C, --count N        pings (until interrupted)\n"
		"  -S, --size SIZE      bytes of a ping, 32 to 64k (64)\n"
		"  -v, --verbose        print the data\n"
		"  -V, --validate       compare them\n" RDMA_HELP,
	.run = run,
};
