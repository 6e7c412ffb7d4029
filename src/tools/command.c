/* SPDX-License-Identifier: BSD-2-Clause */
/* command.c: the command line of one command of iser, by its rows. */
#include <stdlib.h>
#include <string.h>

#include "tools/iser.h"
#include "tools/usage.h"

/* RFC 7143 §4.2.7.1 */
static enum opt_end set_initiator(void *into, const char *arg,
				  char why[OPT_WHY])
{
	struct common *c = into;

	if (strlen(arg) >= ISER_NAME_MAX) {
		snprintf(why, OPT_WHY, "must be at most %d bytes long",
			 ISER_NAME_MAX - 1);
		return OPT_BAD;
	}
	c->initiator = arg;
	return OPT_OK;
}

static const struct opt_row common_rows[] = {
	{ .name = "json",
	  .letter = 'j',
	  OPT_FLAG(struct common, json),
	  .help = "print results as JSON on standard output" },
	{ .name = "initiator",
	  .letter = 'i',
	  .arg = "IQN",
	  OPT_CALL(set_initiator),
	  .help = "log in under this initiator name" },
	{ .name = "debug",
	  .letter = 'd',
	  OPT_COUNT(struct common, debug),
	  .help = "log logins and errors; given twice: log each PDU" },
	{ .name = "help", .letter = 'h', OPT_STOP, .help = "print this text" },
};

static int print_help(const struct command *c, const struct opt_parser *p)
{
	printf("usage: iser %s %s\n\n%s.\n\n", c->name, c->synopsis,
	       c->summary);
	usage_options(stdout, p);
	if (c->notes)
		printf("\n%s", c->notes);
	return EXIT_OK;
}

static int check_operands(const struct command *c, int n)
{
	if (n >= c->min_operands && n <= c->max_operands)
		return EXIT_OK;
	say("%s: %s operands; give %s, see iser %s --help", c->name,
	    n < c->min_operands ? "too few" : "too many", c->synopsis, c->name);
	return EXIT_INVALID;
}

static int parse_and_run(const struct command *c, struct opt_parser *p,
			 struct call *call, int argc, char **argv)
{
	int code;

	switch (opt_parse(p, argc, argv)) {
	case OPT_BAD:
		say("%s: %s", c->name, p->why);
		return EXIT_INVALID;
	case OPT_STOPPED:
		return print_help(c, p);
	default:
		break;
	}
	code = check_operands(c, p->noperands);
	if (code)
		return code;
	call->operands = argv;
	call->noperands = p->noperands;
	return c->run(call);
}

int command_run(const struct command *c, int argc, char **argv)
{
	void *args = calloc(1, c->args_size ? c->args_size : 1);
	struct common common = { 0 };
	struct call call = { .common = &common, .args = args };
	char name[64];
	int code;

	if (!args)
		return say_no_memory();
	snprintf(name, sizeof(name), "iser %s", c->name);
	struct opt_parser p = {
		.command = name,
		.groups = {
			{ c->rows, c->nrows, args },
			{ c->shared_rows, c->nshared_rows,
			  (char *)args + c->shared_at },
			{ common_rows, ARRAY_LEN(common_rows), &common },
		},
	};

	code = parse_and_run(c, &p, &call, argc, argv);
	free(args);
	return code;
}
