/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_main.c: iser COMMAND ... */
#include <signal.h>
#include <string.h>

#include "iser.h"

static const struct command *const commands[] = {
	&command_ls,	    &command_info,  &command_copy,
	&command_hash,	    &command_bench, &command_ping,
	&command_nbd_serve, &command_rping, &command_rbench,
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *to)
{
	fprintf(to, "usage: iser COMMAND [OPTIONS] ...\n\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(to, "  %-9s  %s\n", commands[i]->name,
			commands[i]->summary);
	fprintf(to,
		"\nA URL is iscsi://[USER[%%PASSWORD]@]HOST[:PORT]/IQN/LUN"
		"[?KEY=VALUE...],\n"
		"keys: initiator, header_digest, data_digest, timeout, depth, priority,\n"
		"reconnect, transport, start, compat, rcap, target_user, target_password.\n"
		"iser://... stands for transport=iser.\n\n"
		"iser COMMAND --help tells more; iser --version.\n");
}

static void help(const struct command *c)
{
	printf("usage: iser %s %s\n\n%s.\n\n%s"
	       "  --json               results as JSON on stdout\n"
	       "  --initiator IQN      log in under this name\n"
	       "  --debug              say what happens; twice: every PDU\n"
	       "  --help               this text\n",
	       c->name, c->synopsis, c->summary, c->help);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		usage(stderr);
		return EXIT_INVALID;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("iser %s\n", iser_version());
		return 0;
	}
	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (strcmp(argv[1], commands[i]->name))
			continue;
		for (int k = 2; k < argc; k++)
			if (!strcmp(argv[k], "--help")) {
				help(commands[i]);
				return 0;
			}
		return commands[i]->run(argc - 1, argv + 1);
	}
	say("no command '%s'; iser --help lists them", argv[1]);
	return EXIT_INVALID;
}
