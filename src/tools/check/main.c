/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c: iser-check URL: reads the command line, runs the cases. */
#include <lauxlib.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/opt.h"
#include "tools/check/check.h"

static const struct {
	int status;
	const char *meaning;
} exits[] = {
	{ EXIT_OK, "no case failed" },
	{ EXIT_FAILED, "a case failed, or a report could not be written" },
	{ EXIT_NOMEM, "out of memory" },
	{ EXIT_TRANSPORT, "no connection to the target" },
	{ EXIT_INVALID, "wrong command line, URL or script" },
	{ EXIT_UNSUPPORTED, "the target supports none of the selected cases" },
	{ EXIT_INTERRUPTED, "interrupted" },
};

static const struct opt_row rows[] = {
	{ .name = "list",
	  .letter = 'l',
	  OPT_FLAG(struct options, list),
	  .help = "print the cases and end" },
	{ .name = "initiator",
	  .letter = 'i',
	  .arg = "IQN",
	  OPT_TEXT(struct options, initiator),
	  .initial = "iqn.2026-01.org.example:iser-check",
	  .help = "log in under this initiator name" },
	{ .name = "only",
	  .letter = 'o',
	  .arg = "LIST",
	  OPT_TEXT(struct options, only),
	  .help = "run these cases: beginnings of names or patterns, with "
		  "commas" },
	{ .name = "skip",
	  .letter = 's',
	  .arg = "LIST",
	  OPT_TEXT(struct options, skip),
	  .help = "leave these cases out" },
	{ .name = "explain",
	  .letter = 'e',
	  .arg = "ID",
	  OPT_TEXT(struct options, explain),
	  .help = "print what a case is about; with a URL, run it and print "
		  "its PDUs" },
	{ .name = "strict",
	  OPT_FLAG(struct options, strict),
	  .help = "count a SHOULD as a MUST" },
	{ .name = "destructive",
	  OPT_FLAG(struct options, destructive),
	  .help = "also run cases that write to the unit or disturb other "
		  "sessions" },
	{ .name = "force",
	  OPT_FLAG(struct options, force),
	  .help = "run destructive cases on a unit that holds data" },
	{ .name = "jobs",
	  .letter = 'j',
	  .arg = "N",
	  OPT_NUMBER(struct options, jobs, 1, CHECK_JOBS),
	  .initial = "16",
	  .help = "cases that run at the same time" },
	{ .name = "timeout",
	  .letter = 't',
	  .arg = "SECONDS",
	  OPT_NUMBER(struct options, timeout, 1, 3600),
	  .initial = "5",
	  .help = "how long a case waits for an answer" },
	{ .name = "seed",
	  .arg = "N",
	  OPT_NUMBER(struct options, seed, 0, 0xffffffff),
	  .initial = "0",
	  .help = "the seed of random choices; 0: a new one, which is printed" },
	{ .name = "cases",
	  .arg = "DIR",
	  OPT_TEXT(struct options, cases),
	  .help = "the cases of this directory (*.lua) in place of those that "
		  "are compiled in" },
	{ .name = "known",
	  .arg = "FILE",
	  OPT_TEXT(struct options, known),
	  .help = "names of cases, one a line, whose failure is known and does "
		  "not count" },
	{ .name = "json",
	  .arg = "FILE",
	  OPT_TEXT(struct options, json),
	  .help = "write the results, or with --list the cases, as JSON; -: to "
		  "standard output" },
	{ .name = "junit",
	  .arg = "FILE",
	  OPT_TEXT(struct options, junit),
	  .help = "write the results as JUnit does" },
	{ .name = "pcap",
	  .arg = "DIR",
	  OPT_TEXT(struct options, pcap),
	  .help = "write a capture of each case that fails, ID.pcap" },
	{ .name = "verbose",
	  .letter = 'v',
	  OPT_FLAG(struct options, verbose),
	  .help = "print the PDUs of each case" },
	{ .name = "help", .letter = 'h', OPT_STOP, .help = "print this text" },
	{ .name = "version", OPT_STOP, .help = "print the version" },
};

static int print_check_help(const struct opt_parser *p)
{
	static char text[8192];

	opt_help(p, 24, text, sizeof(text));
	printf("usage: iser-check [OPTION]... URL\n\n"
	       "Checks a target against RFC 7143 and RFC 7144. URL is\n"
	       "iscsi://[USER[%%PASSWORD]@]HOST[:PORT]/IQN/LUN; the variables\n"
	       "LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD stand for "
	       "USER and PASSWORD.\n\n%s\nexit status:\n",
	       text);
	for (size_t i = 0; i < ARRAY_LEN(exits); i++)
		printf("  %d  %s\n", exits[i].status, exits[i].meaning);
	return EXIT_OK;
}

/* Cuts *text at the first of the characters stops; returns the part before
 * it, and *text is what follows, NULL if there is no such character. */
static char *cut(char **text, char stop)
{
	char *part = *text, *end = strchr(part, stop);

	if (end)
		*end++ = '\0';
	*text = end;
	return part;
}

static void set_option(lua_State *l, const char *name, const char *value)
{
	lua_pushstring(l, value);
	lua_setfield(l, -2, name);
}

/* Reads HOST[:PORT] or [ADDRESS][:PORT]. */
static bool read_portal(lua_State *l, char *portal)
{
	char *port = NULL, *host = portal, *colon;

	if (*portal == '[') {
		host = portal + 1;
		port = strchr(host, ']');
		if (!port || (port[1] && port[1] != ':'))
			return false;
		*port++ = '\0';
		port = *port ? port + 1 : NULL;
	} else {
		colon = strrchr(portal, ':');
		if (colon) {
			*colon = '\0';
			port = colon + 1;
		}
	}
	set_option(l, "host", host);
	set_option(l, "port", port ? port : "3260");
	return *host && (!port || *port);
}

/* Reads the URL into the table at the top of the stack. */
static bool read_url(lua_State *l, char *url)
{
	char *rest = url + 8, *authority, *at, *user, *lun, *end;

	if (strncmp(url, "iscsi://", 8))
		return false;
	authority = cut(&rest, '/');
	at = strrchr(authority, '@');
	set_option(l, "user", getenv("LIBISCSI_CHAP_USERNAME"));
	set_option(l, "password", getenv("LIBISCSI_CHAP_PASSWORD"));
	if (at) {
		*at = '\0';
		user = authority;
		authority = at + 1;
		set_option(l, "user", cut(&user, '%'));
		if (user)
			set_option(l, "password", user);
	}
	if (!rest || !read_portal(l, authority))
		return false;
	set_option(l, "target", cut(&rest, '/'));
	lun = rest;
	if (!lun || !*lun)
		return false;
	lua_pushinteger(l, (lua_Integer)strtoul(lun, &end, 10));
	lua_setfield(l, -2, "lun");
	return !*end && *lun >= '0' && *lun <= '9';
}

/* Gives the library in Lua its options, and asks it whether the target
 * answers. */
static int open_target(struct suite *s, char *url)
{
	lua_State *l = s->l;
	bool ok;

	lua_newtable(l);
	ok = read_url(l, url);
	set_option(l, "initiator", s->o.initiator);
	lua_pushinteger(l, s->o.timeout);
	lua_setfield(l, -2, "timeout");
	lua_pushboolean(l, s->o.strict);
	lua_setfield(l, -2, "strict");
	lua_pushboolean(l, s->o.destructive);
	lua_setfield(l, -2, "destructive");
	lua_pushboolean(l, s->o.force);
	lua_setfield(l, -2, "force");
	lua_setglobal(l, "options");
	if (!ok) {
		check_say("%s: not a URL; give "
			  "iscsi://[USER[%%PASSWORD]@]HOST[:PORT]/IQN/LUN",
			  url);
		return EXIT_INVALID;
	}
	lua_getglobal(l, "set_seed");
	lua_pushinteger(l, s->o.seed);
	lua_call(l, 1, 0);
	return EXIT_OK;
}

/* Whether the target takes connections, at the portal of the global options. */
static int probe_target(struct suite *s)
{
	const char *host, *port, *why;

	lua_getglobal(s->l, "options");
	lua_getfield(s->l, -1, "host");
	lua_getfield(s->l, -2, "port");
	host = lua_tostring(s->l, -2);
	port = lua_tostring(s->l, -1);
	why = sock_probe(host, port, s->o.timeout);
	if (why)
		check_say("%s port %s: no connection: %s", host, port, why);
	lua_pop(s->l, 3);
	return why ? EXIT_TRANSPORT : EXIT_OK;
}

static int run_cases(struct suite *s, char *url)
{
	int code = open_target(s, url);

	if (!code)
		code = probe_target(s);
	if (code)
		return code;
	s->live_color = isatty(STDOUT_FILENO);
	run_all(s);
	return report_end(s);
}

static int run_suite(struct suite *s, char *url)
{
	int code = cases_load(s);

	if (!code)
		code = cases_select(s);
	if (code)
		return code;
	if (s->o.list) {
		report_list(s);
		return EXIT_OK;
	}
	for (size_t i = 0; s->o.explain && i < s->ncases; i++)
		if (s->cases[i].selected)
			report_explain(&s->cases[i]);
	if (s->o.explain) {
		s->o.verbose = true;
		s->o.jobs = 1;
	}
	return url ? run_cases(s, url) : EXIT_OK;
}

static int run_program(struct suite *s, struct opt_parser *p, int argc,
		       char **argv)
{
	switch (opt_parse(p, argc - 1, argv + 1)) {
	case OPT_BAD:
		check_say("%s; see iser-check --help", p->why);
		return EXIT_INVALID;
	case OPT_STOPPED:
		if (!strcmp(p->stopped->name, "help"))
			return print_check_help(p);
		printf("iser-check %s\n", OPENISER_VERSION);
		return EXIT_OK;
	default:
		break;
	}
	if (p->noperands > 1 ||
	    (!p->noperands && !s->o.list && !s->o.explain)) {
		check_say("%s; see iser-check --help",
			  p->noperands ? "too many operands; give one URL"
				       : "no operand; give a URL");
		return EXIT_INVALID;
	}
	while (!s->o.seed)
		if (RAND_bytes((unsigned char *)&s->o.seed, 4) != 1)
			return EXIT_FAILED;
	return run_suite(s, p->noperands ? argv[1] : NULL);
}

int main(int argc, char **argv)
{
	struct suite *s = calloc(1, sizeof(*s));
	int code;

	if (!s)
		return EXIT_NOMEM;
	struct opt_parser p = {
		.command = "iser-check",
		.groups = { { rows, ARRAY_LEN(rows), &s->o } },
	};

	code = run_program(s, &p, argc, argv);
	if (code == EXIT_NOMEM)
		check_say("out of memory");
	cases_free(s);
	free(s);
	if (fflush(stdout) && !code)
		code = EXIT_FAILED;
	return code;
}
