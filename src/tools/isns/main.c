/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c: iser-isns: an iSNS client (RFC 4171) for iserd and for initiators. */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "base/opt.h"
#include "tools/isns/control.h"
#include "tools/isns/listen.h"
#include "tools/isns/server.h"
#include "tools/standard.h"
#include "tools/usage.h"

enum {
	ISNS_OK = 0,
	ISNS_REFUSED = 1, /* the server refused, or did not answer */
	ISNS_BAD_USAGE = 2,
};

struct isns_command {
	const char *server, *socket, *entity, *initiator, *address;
	unsigned interval, esi;
	bool json, once;
	/* what was registered, and in whose name */
	struct isns_view view;
	char source[256];
	bool is_registered;
	struct isns_peer peer;
	struct isns_reach reach;
	char own_entity[ISNS_TEXT_MAX];
};

static volatile sig_atomic_t stopping;

static void on_signal(int signal)
{
	(void)signal;
	stopping = 1;
}

/* ---- register ---- */

/* Prints a message unless it is the last one again. */
static void say_once(const char *where, const char *why)
{
	static char last[512];
	char text[512], shown[1024];

	snprintf(text, sizeof(text), "%s: %s", where, why);
	if (!strcmp(text, last))
		return;
	memcpy(last, text, sizeof(last));
	fprintf(stderr, "iser-isns: %s\n",
		text_escape_str(shown, sizeof(shown), text));
}

/* Opens the port at which the server reaches this process, by default at the address from
 * which packets go to the server. */
static bool open_port(struct isns_command *c, isns_changed *changed)
{
	const char *where = c->address ? c->address : c->server, *why = NULL;

	if (c->address && !isns_portal_ip(c->address, &c->reach.ip))
		why = "not an IP address";
	else if (!c->address && !isns_peer_route(&c->peer, &c->reach.ip))
		why = c->peer.why;
	else if (!isns_listen_open(&c->reach, &c->peer, changed))
		why = strerror(errno);
	if (why)
		say_once(where, why);
	return !why;
}

static const char *tell(struct isns_command *c, const struct isns_view *now)
{
	const char *why;

	if (!now->ntargets)
		return isns_server_forget(&c->peer, c->source, c->entity);
	why = isns_server_register(&c->peer, c->source, c->entity, now, c->esi,
				   &c->reach);
	if (!why && c->is_registered)
		why = isns_server_remove(&c->peer, c->source, &c->view, now);
	return why;
}

/* The server sends its inquiries to portals at the address of the open port. */
static void note_reach(const struct isns_command *c,
		       const struct isns_view *now)
{
	bool any = !c->esi || !now->nportals;

	for (unsigned i = 0; i < now->nportals; i++)
		any |= isns_reach_has(&c->reach, &now->portals[i]);
	if (!any)
		fprintf(stderr,
			"iser-isns: --esi: no portal of iserd has the address "
			"at which the server reaches this program; give the "
			"address of a portal as --address\n");
}

/* Brings the server up to date with *now, which it takes over. */
static bool update(struct isns_command *c, struct isns_view *now)
{
	const char *why = NULL;

	if (now->ntargets)
		snprintf(c->source, sizeof(c->source), "%s",
			 now->targets[0].name);
	if (now->ntargets || c->is_registered)
		why = tell(c, now);
	if (why) {
		say_once(c->server, why);
		isns_view_free(now);
		return false;
	}
	if (!c->is_registered)
		note_reach(c, now);
	say_once(c->server,
		 now->ntargets ? "registered" : "nothing to register");
	isns_view_free(&c->view);
	c->view = *now;
	c->is_registered = now->ntargets > 0;
	return true;
}

/* Compares what iserd serves with what the server knows; the registration is
 * renewed at least every 10 minutes, since a server forgets the silent (RFC 4171
 * §6.2.6). Returns whether the server is up to date. */
static bool synchronize(struct isns_command *c, time_t *renewed)
{
	const time_t now = time(NULL);
	struct isns_view v;
	const char *why = control_view(c->socket, &v);

	if (why) {
		say_once(c->socket, why);
		return false; /* iserd may come back: its targets stay */
	}
	if (c->esi && !c->reach.port && !open_port(c, NULL)) {
		isns_view_free(&v);
		return false;
	}
	if (c->is_registered && now - *renewed < 600 && now >= *renewed &&
	    isns_view_equal(&v, &c->view)) {
		isns_view_free(&v);
		return c->is_registered;
	}
	if (!update(c, &v))
		return false;
	*renewed = now;
	return true;
}

static int run_register(struct isns_command *c)
{
	const char *why = NULL;
	time_t renewed = 0;
	bool ok;

	do {
		const time_t next = time(NULL) + c->interval;

		ok = synchronize(c, &renewed);
		while (!c->once && !stopping && time(NULL) < next)
			isns_listen_wait(500);
	} while (!c->once && !stopping);
	if (!c->once && c->is_registered)
		why = isns_server_forget(&c->peer, c->source, c->entity);
	if (why)
		say_once(c->server, why);
	isns_view_free(&c->view);
	return (c->once ? ok : !why) ? ISNS_OK : ISNS_REFUSED;
}

/* ---- list ---- */

static void address_text(const struct isns_portal *p, char out[80])
{
	char ip[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(&p->ip)) {
		inet_ntop(AF_INET, &p->ip.s6_addr[12], ip, sizeof(ip));
		snprintf(out, 80, "%s:%u", ip, p->port);
	} else {
		inet_ntop(AF_INET6, &p->ip, ip, sizeof(ip));
		snprintf(out, 80, "[%s]:%u", ip, p->port);
	}
}

static void print_found(void *arg, const char *name, const char *alias,
			const struct isns_portal *p, unsigned tag)
{
	char address[80], shown[1024], also[1024];
	json_t *all = arg;

	address_text(p, address);
	text_escape_str(shown, sizeof(shown), name);
	text_escape_str(also, sizeof(also), alias ? alias : "");
	if (!all)
		printf("iscsi://%s/%s  tag %u%s%s\n", address, shown, tag,
		       *also ? "  " : "", also);
	else
		json_array_append_new(all, json_pack("{s:s, s:s, s:i, s:s}",
						     "target", shown, "address",
						     address, "tag", (int)tag,
						     "alias", also));
}

static int run_list(struct isns_command *c)
{
	json_t *all = c->json ? json_array() : NULL;
	const char *why =
		isns_server_query(&c->peer, c->initiator, print_found, all);

	if (why)
		say_once(c->server, why);
	else if (all && !json_dumpf(all, stdout, JSON_INDENT(2)))
		putchar('\n');
	json_decref(all);
	return why ? ISNS_REFUSED : ISNS_OK;
}

/* ---- watch ---- */

static void print_change(unsigned bits, const char *name)
{
	/* RFC 4171 §6.4.4, bit 31 is the lowest */
	static const char *const words[] = { "joined", "left", "changed",
					     "added", "removed" };
	char shown[1024];

	text_escape_str(shown, sizeof(shown), name);
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (bits & 1u << i)
			printf("%s %s\n", words[i], shown);
	fflush(stdout);
}

static int run_watch(struct isns_command *c)
{
	const char *why;

	if (c->address && isns_portal_ip(c->address, &c->reach.ip) &&
	    isns_is_any(&c->reach.ip)) {
		say_once(c->address,
			 "the server sends state changes to one address; leave "
			 "--address out, or give that one");
		return ISNS_BAD_USAGE;
	}
	if (!open_port(c, print_change))
		return c->address ? ISNS_BAD_USAGE : ISNS_REFUSED;
	why = isns_server_watch(&c->peer, c->initiator, c->entity, &c->reach);
	if (!why) {
		fprintf(stderr, "iser-isns: watching %s\n", c->server);
		while (!stopping)
			isns_listen_wait(500);
		why = isns_server_forget(&c->peer, c->initiator, c->entity);
	}
	if (why)
		say_once(c->server, why);
	return why ? ISNS_REFUSED : ISNS_OK;
}

/* ---- command line ---- */

static const struct opt_row rows[] = {
	{ .name = "server",
	  .arg = "HOST[:PORT]",
	  OPT_TEXT(struct isns_command, server),
	  .help = "the iSNS server (port 3205)" },
	{ .name = "socket",
	  .letter = 's',
	  .arg = "PATH",
	  .initial = "/run/iserd/control",
	  OPT_TEXT(struct isns_command, socket),
	  .help = "register: the socket of iserd" },
	{ .name = "interval",
	  .arg = "SECONDS",
	  .initial = "5",
	  OPT_NUMBER(struct isns_command, interval, 1, 600),
	  .help = "register: how often iserd is asked for changes" },
	{ .name = "esi",
	  .arg = "SECONDS",
	  .initial = "0",
	  OPT_NUMBER(struct isns_command, esi, 0, 86400),
	  .help = "register: asks the server to send a status inquiry this "
		  "often; 0: none" },
	{ .name = "once",
	  OPT_FLAG(struct isns_command, once),
	  .help = "register: registers, leaves it so, and ends" },
	{ .name = "entity",
	  .arg = "NAME",
	  OPT_TEXT(struct isns_command, entity),
	  .help = "the Entity Identifier (default: made of the host name)" },
	{ .name = "initiator",
	  .arg = "NAME",
	  OPT_TEXT(struct isns_command, initiator),
	  .help = "list, watch: the initiator whose view is asked for" },
	{ .name = "address",
	  .arg = "IP",
	  OPT_TEXT(struct isns_command, address),
	  .help = "watch, --esi: the address at which the server reaches this "
		  "program (default: the one towards the server)" },
	{ .name = "json",
	  .letter = 'j',
	  OPT_FLAG(struct isns_command, json),
	  .help = "list: prints JSON" },
	{ .name = "help", .letter = 'h', OPT_STOP, .help = "this text" },
	{ .name = "version", .letter = 'V', OPT_STOP, .help = "the version" },
};

static const struct usage_exit exits[] = {
	{ ISNS_OK, "done" },
	{ ISNS_REFUSED, "the server refused it or did not answer" },
	{ ISNS_BAD_USAGE, "bad command line" },
};

static void print_help(const struct opt_parser *p)
{
	puts("usage: iser-isns register --server HOST[:PORT] [OPTION]...\n"
	     "       iser-isns list --server HOST[:PORT] --initiator NAME\n"
	     "       iser-isns watch --server HOST[:PORT] --initiator NAME "
	     "--address IP\n\n"
	     "register makes the targets of a running iserd known to an iSNS\n"
	     "server (RFC 4171), follows their changes, and removes them at the\n"
	     "end.\n"
	     "list prints the targets that an initiator may see; watch prints\n"
	     "their changes as they happen.\n");
	usage_options(stdout, p);
	usage_exits(stdout, exits, ARRAY_LEN(exits));
}

/* The Entity Identifier is this host's: one for iserd, one for each initiator. */
static const char *choose_entity(struct isns_command *c)
{
	char host[128] = "localhost";
	int n;

	if (!c->entity) {
		gethostname(host, sizeof(host) - 1);
		n = snprintf(c->own_entity, sizeof(c->own_entity), "%s:%s",
			     host, c->initiator ? c->initiator : "iserd");
		if (n >= (int)sizeof(c->own_entity))
			return "the host name and the initiator's name are "
			       "longer than 255 bytes; give --entity";
		c->entity = c->own_entity;
	}
	/* RFC 4171 §6.2.1, §6.1 */
	if (strlen(c->entity) >= ISNS_TEXT_MAX)
		return "--entity is longer than 255 bytes";
	if (c->initiator && strlen(c->initiator) >= ISNS_TEXT_MAX)
		return "--initiator is longer than 255 bytes";
	return NULL;
}

/* Returns NULL, or why the command line is bad. */
static const char *check(const struct isns_command *c, bool is_register)
{
	if (!c->server)
		return "--server is missing; name the iSNS server";
	if (!is_register && !c->initiator)
		return "--initiator is missing; name the initiator whose view "
		       "is asked for";
	return NULL;
}

static int bad_usage(const char *why)
{
	char shown[1024];

	fprintf(stderr, "iser-isns: %s; see iser-isns --help\n",
		text_escape_str(shown, sizeof(shown), why));
	return ISNS_BAD_USAGE;
}

static int run(struct isns_command *c, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct isns_command *c);
	} verbs[] = {
		{ "register", run_register },
		{ "list", run_list },
		{ "watch", run_watch },
	};
	struct opt_parser p = { .command = "iser-isns",
				.groups[0] = { rows, ARRAY_LEN(rows), c } };
	enum opt_end end = opt_parse(&p, argc - 1, argv + 1);
	const char *why;
	size_t i = 0;

	if (end == OPT_BAD)
		return bad_usage(p.why);
	if (end == OPT_STOPPED) {
		if (!strcmp(p.stopped->name, "help"))
			print_help(&p);
		else
			puts("iser-isns (openiser) " OPENISER_VERSION);
		return ISNS_OK;
	}
	if (p.noperands != 1)
		return bad_usage("one of register, list and watch is needed");
	while (i < ARRAY_LEN(verbs) && strcmp(verbs[i].name, argv[1]) != 0)
		i++;
	if (i == ARRAY_LEN(verbs))
		return bad_usage(
			"the command is none of register, list, watch");
	if (check(c, i == 0))
		return bad_usage(check(c, i == 0));
	why = choose_entity(c);
	if (why)
		return bad_usage(why);
	c->peer.name = c->server;
	return verbs[i].run(c);
}

int main(int argc, char **argv)
{
	struct sigaction stop = { .sa_handler = on_signal };
	struct isns_command c = { 0 };

	standard_open();
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	return standard_end("iser-isns", run(&c, argc, argv), ISNS_REFUSED);
}
