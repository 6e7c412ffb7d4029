/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rping.c: iser rping: the protocol of the rping of rdmacm-utils, which may be
 * either end. For each ping the client describes its source by a Send; the
 * server reads it by RDMA Read and sends a message without content. The client
 * then describes its sink; the server writes the bytes there by RDMA Write and
 * sends such a message again.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/rdma/common.h"

#define PORT	       7174
#define INFO_LEN       16 /* be64 address, be32 STag, be32 length */
#define SIZE_MAX_RPING 65536u
#define SIZE_MIN       32u
#define RECVS	       2

struct rping {
	const struct common *common;
	struct iser_rdma_options options;
	const char *where;
	bool server, once, print, validate;
	unsigned count; /* 0: until a signal */
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
	bool sink_turn; /* in the second half of a ping */
	uint8_t in[RECVS][INFO_LEN];
	struct iser_rdma_recv recv[RECVS];
	uint8_t out[INFO_LEN];
	struct iovec out_iov, data_iov;
	struct iser_rdma_wr send, move;
	unsigned busy; /* requests in progress */
	/* the server: the next message, which came before these completed */
	bool early;
	uint8_t next[INFO_LEN];
	/* memory: source of the client, sink of both sides */
	uint8_t *source, *sink;
	struct iovec source_iov, sink_iov;
	struct iser_rdma_mr source_mr, sink_mr;
	size_t fetched;
	uint64_t start, ns;
};

/* ---- both sides ---- */

/* Prints the text of a ping, which ends with NUL or at len. */
static void print_data(const char *what, const uint8_t *data, size_t len)
{
	printf("%s: ", what);
	print_text((const char *)data, strnlen((const char *)data, len));
	putchar('\n');
}

static void drop_peer(struct end *e, const char *why)
{
	if (!e->leaving)
		say("rping: %s: connection closed", why);
	e->leaving = true;
	e->r->code = e->r->code ? e->r->code : EXIT_PROTOCOL;
	iser_rdma_terminate(e->c, why);
}

static void take_next(struct end *e);

static void send_done(struct iser_rdma_wr *wr)
{
	struct end *e = wr->arg;

	e->busy--;
	if (!wr->err)
		take_next(e);
}

/* Prepares a Send that describes a region; NULL: one without content. */
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
					 .done = send_done,
					 .arg = e };
}

/* Posts the Send, and with_move the Write in front of it. */
static void post_send(struct end *e, bool with_move)
{
	struct iser_rdma_wr *chain[2] = { &e->move, &e->send };

	e->busy = 1 + with_move;
	if (iser_rdma_post(e->c, chain + !with_move, 1 + with_move)) {
		e->busy = 0;
		e->leaving = true; /* the connection ends and is reported */
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

static void move_done(struct iser_rdma_wr *wr)
{
	struct end *e = wr->arg;

	e->busy--;
	if (wr->err || wr->op != ISER_RDMA_READ) {
		if (!wr->err)
			take_next(e);
		return;
	}
	if (e->r->print)
		print_data("server ping data", e->sink, e->fetched);
	e->r->bytes += e->fetched;
	e->sink_turn = true;
	fill_send(e, NULL);
	post_send(e, false);
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
				       .done = move_done,
				       .arg = e };
}

static void read_source(struct end *e, const uint8_t *in)
{
	struct iser_rdma_wr *one = &e->move;

	e->busy = 1;
	e->fetched = (size_t)rdma_get_be(in + 12, 4);
	if (e->fetched > SIZE_MAX_RPING) {
		drop_peer(e, "a ping of more than 64 KiB");
		return;
	}
	prepare_move(e, ISER_RDMA_READ, in, e->fetched);
	if (iser_rdma_post(e->c, &one, 1))
		e->leaving = true;
}

static void write_sink(struct end *e, const uint8_t *in)
{
	size_t room = (size_t)rdma_get_be(in + 12, 4);

	e->ping++;
	e->r->pings++;
	e->sink_turn = false;
	prepare_move(e, ISER_RDMA_WRITE, in,
		     room < e->fetched ? room : e->fetched);
	fill_send(e, NULL);
	post_send(e, true);
}

/* Carries out the next message, once no request is in progress: a device may
 * report the client's message before the completion of the Send that it
 * answers. */
static void take_next(struct end *e)
{
	if (e->busy || !e->early || e->leaving)
		return;
	e->early = false;
	if (e->sink_turn)
		write_sink(e, e->next);
	else
		read_source(e, e->next);
}

static void server_received(struct iser_rdma_recv *r)
{
	struct end *e = r->arg;

	if (r->err || e->leaving)
		return;
	if (r->len != INFO_LEN) {
		drop_peer(e, "a message that does not have 16 bytes");
		return;
	}
	if (e->early) {
		drop_peer(e, "a message out of turn");
		return;
	}
	memcpy(e->next, r->buf, sizeof(e->next));
	e->early = true;
	iser_rdma_post_recv(e->c, r);
	take_next(e);
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
	if (err && !e->leaving && !caught_signals())
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

static int serve_clients(struct rping *r)
{
	struct iser_rdma_listener *l;
	int err;

	l = iser_rdma_listen(r->ctx, r->where, PORT, &r->options, on_request, r,
			     &err);
	if (!l)
		return say_failed(r->ctx, err);
	rdma_print_address(iser_rdma_listener_address(l));
	while (!caught_signals() && !(r->once && r->served && !r->clients))
		if (!rdma_turn(r->ctx))
			return EXIT_GENERIC;
	iser_rdma_listener_free(l);
	return r->once ? r->code : EXIT_OK;
}

/* ---- the client ---- */

/* The number of the ping, then letters that begin one later with each ping. */
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

	if ((r->count && e->ping == r->count) || caught_signals()) {
		e->ns = now_ns() - e->start;
		e->leaving = true;
		iser_rdma_disconnect(e->c);
		return;
	}
	fill_source(e);
	memset(e->sink, 0, e->sink_iov.iov_len);
	e->sink_turn = false;
	fill_send(e, &e->source_mr);
	post_send(e, false);
}

static void end_ping(struct end *e)
{
	struct rping *r = e->r;
	size_t size = e->source_iov.iov_len;

	if (r->validate && memcmp(e->source, e->sink, size)) {
		drop_peer(e, "the data that came back differ");
		r->code = EXIT_DIFFERS;
		return;
	}
	if (r->print)
		print_data("ping data", e->sink, size);
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
		drop_peer(e, "a message that is not one of rping");
		return;
	}
	iser_rdma_post_recv(e->c, r);
	if (e->sink_turn) {
		end_ping(e);
		return;
	}
	e->sink_turn = true;
	fill_send(e, &e->sink_mr);
	post_send(e, false);
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
		e->r->code = say_failed(e->r->ctx, err);
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
	r->code = err ? say_failed(r->ctx, err) : EXIT_TRANSPORT;
	if (!err)
		say("%s: the server closed the connection", r->where);
}

static const struct iser_rdma_callbacks client_callbacks = {
	.established = client_established,
	.closed = client_closed,
};

static void print_result(const struct end *e, const struct iser_rdma_info *info)
{
	const struct rping *r = e->r;
	double s = (double)e->ns / 1e9;

	if (r->common->json) {
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

static int ping_server(struct rping *r)
{
	struct end *e = end_new(r, true, (size_t)r->size);
	struct iser_rdma_info info;
	char host[256];
	uint16_t port;
	int err;

	if (!e)
		return say_no_memory();
	if (!rdma_parse_host(r->where, PORT, host, &port)) {
		end_free(e);
		return EXIT_INVALID;
	}
	e->c = iser_rdma_connect_start(r->ctx, host, port, &r->options, NULL, 0,
				       &client_callbacks, e, &err);
	if (e->c)
		post_recvs(e, client_received);
	else
		r->code = say_failed(r->ctx, err);
	while (e->c && !e->over)
		if (!rdma_turn(r->ctx)) {
			r->code = EXIT_GENERIC;
			break;
		}
	if (!r->code) {
		iser_rdma_get_info(e->c, &info);
		print_result(e, &info);
	}
	end_free(e);
	return r->code;
}

/* ---- the command line ---- */

static const struct opt_row rows[] = {
	{ .name = "server",
	  .letter = 's',
	  OPT_FLAG(struct rping, server),
	  .help = "answer clients, at 127.0.0.1:7174 without an operand" },
	{ .name = "once",
	  OPT_FLAG(struct rping, once),
	  .help = "the server ends after one client" },
	{ .name = "count",
	  .letter = 'C',
	  .arg = "N",
	  OPT_NUMBER(struct rping, count, 0, UINT32_MAX),
	  .help = "pings; without it until a signal comes" },
	{ .name = "size",
	  .letter = 'S',
	  .arg = "SIZE",
	  .initial = "64",
	  OPT_SIZE(struct rping, size, SIZE_MIN, SIZE_MAX_RPING),
	  .help = "bytes of a ping, 32 to 64k" },
	{ .name = "verbose",
	  .letter = 'v',
	  OPT_FLAG(struct rping, print),
	  .help = "print the data" },
	{ .name = "validate",
	  .letter = 'V',
	  OPT_FLAG(struct rping, validate),
	  .help = "compare the data that come back" },
};

static int run_rping(const struct call *call)
{
	struct rping *r = call->args;
	int code;

	r->common = call->common;
	r->where = rdma_where("rping", call, r->server);
	if (!r->where)
		return EXIT_INVALID;
	r->ctx = open_context(r->common);
	if (!r->ctx)
		return EXIT_NOMEM;
	catch_signals();
	code = r->server ? serve_clients(r) : ping_server(r);
	iser_context_free(r->ctx);
	return code;
}

const struct command command_rping = {
	.name = "rping",
	.synopsis = "[OPTION]... HOST[:PORT] | --server [ADDRESS:PORT]",
	.summary = "RDMA Send, Read and Write by the protocol of rping (iWARP)",
	.rows = rows,
	.nrows = ARRAY_LEN(rows),
	.shared_rows = rdma_rows,
	.nshared_rows = RDMA_NROWS,
	.shared_at = offsetof(struct rping, options),
	.args_size = sizeof(struct rping),
	.max_operands = 1,
	.run = run_rping,
};
