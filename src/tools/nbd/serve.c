/* SPDX-License-Identifier: BSD-2-Clause */
/* serve.c: iser nbd-serve URL: a unit for NBD clients. */
#include <string.h>

#include "tools/nbd/server.h"

#define NBD_PORT "127.0.0.1:10809"

struct serve {
	struct nbd_server server;
	/* the command line */
	const struct common *common;
	const char *socket, *listen, *name;
	bool once, read_only;
};

static void on_stop(struct nbd_server *s)
{
	nbd_server_leave(s, 0);
}

static void on_lost(struct nbd_server *s)
{
	say("%s at %s: session lost: NBD clients get ESHUTDOWN; start "
	    "nbd-serve again",
	    s->unit.url.target, s->unit.url.host);
	nbd_server_leave(s, EXIT_TRANSPORT);
}

/* A client that connects gets the size that the unit has then. */
static int on_turn(struct nbd_server *s)
{
	s->export.size = s->unit.info.bytes;
	return -1;
}

static const struct nbd_server_ops ops = {
	.turn = on_turn,
	.stop = on_stop,
	.lost = on_lost,
};

/* Prints the line that a script waits for before it starts a client. */
static void print_uri(const struct nbd_server *s, bool json)
{
	char uri[sizeof(s->listener.uri) + NBD_NAME_MAX +
		 sizeof(s->listener.tail)];

	snprintf(uri, sizeof(uri), "%s%s%s", s->listener.uri, s->name,
		 s->listener.tail);
	if (json)
		print_json(json_pack("{s:s,s:I,s:I,s:b}", "uri", uri, "bytes",
				     (json_int_t)s->export.size, "block_size",
				     (json_int_t)s->unit.info.block_size,
				     "read_only", s->export.read_only));
	else
		puts(uri);
	fflush(stdout);
}

static int nbd_serve(struct serve *v, const char *url)
{
	struct nbd_server *s = &v->server;
	int code = nbd_server_open(s, url);

	if (!code && v->socket)
		code = nbd_listen_unix(&s->listener, v->socket);
	else if (!code)
		code = nbd_listen_tcp(&s->listener, v->listen);
	if (!code) {
		print_uri(s, v->common->json);
		code = nbd_server_run(s);
	}
	nbd_server_close(s);
	return code;
}

/* ---- the command line ---- */

static enum opt_end set_name(void *into, const char *name, char why[OPT_WHY])
{
	struct serve *v = into;

	if (strlen(name) <= 255 &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789-_.:") == strlen(name)) {
		v->name = name;
		return OPT_OK;
	}
	snprintf(why, OPT_WHY,
		 "must be at most 255 letters, digits and -_.: characters");
	return OPT_BAD;
}

static const struct opt_row rows[] = {
	{ .name = "socket",
	  .arg = "PATH",
	  OPT_TEXT(struct serve, socket),
	  .help = "listen at a Unix socket that only its owner may use" },
	{ .name = "listen",
	  .arg = "HOST:PORT",
	  OPT_TEXT(struct serve, listen),
	  .help = "listen at this loopback address, port 0: any free one; "
		  "without --socket and --listen " NBD_PORT },
	{ .name = "export",
	  .arg = "NAME",
	  .initial = "",
	  OPT_CALL(set_name),
	  .help = "name of the export; the empty name is the default export" },
	{ .name = "read-only",
	  OPT_FLAG(struct serve, read_only),
	  .help = "refuse writes" },
	{ .name = "once",
	  OPT_FLAG(struct serve, once),
	  .help = "end when the last client has left" },
};

static int run_nbd_serve(const struct call *call)
{
	struct serve *v = call->args;
	struct nbd_server *s = &v->server;
	int code;

	v->common = call->common;
	if (v->socket && v->listen) {
		say("nbd-serve: --socket and --listen: give one of them");
		return EXIT_INVALID;
	}
	if (!v->listen)
		v->listen = NBD_PORT;
	nbd_server_init(s);
	s->ops = &ops;
	s->command = "nbd-serve";
	s->name = v->name;
	s->once = v->once;
	s->read_only = v->read_only;
	s->ctx = open_context(v->common);
	code = s->ctx ? nbd_serve(v, call->operands[0]) : EXIT_NOMEM;
	iser_context_free(s->ctx);
	return code;
}

const struct command command_nbd_serve = {
	.name = "nbd-serve",
	.synopsis = "[OPTION]... URL",
	.summary = "serve a unit to NBD clients: qemu-img, nbdcopy, fio, "
		   "nbd-client",
	.notes = "The NBD URI is printed on standard output when clients may "
		 "connect. After\nSIGTERM, SIGINT or SIGHUP the requests in "
		 "progress are completed, then the session\nis logged out and "
		 "the socket removed.\n",
	.rows = rows,
	.nrows = ARRAY_LEN(rows),
	.args_size = sizeof(struct serve),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_nbd_serve,
};
