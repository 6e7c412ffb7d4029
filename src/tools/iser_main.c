/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_main.c: iser COMMAND ...: finds the command and runs it. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tools/iser.h"
#include "tools/standard.h"
#include "tools/usage.h"

static const struct command *const commands[] = {
	&command_ls,	 &command_info,	 &command_copy,	     &command_hash,
	&command_bench,	 &command_ping,	 &command_nbd_serve, &command_attach,
	&command_detach, &command_rping, &command_rbench,
};

/* The texts of enum exit_code; docs/man/iser.1 has the same list. */
static const struct usage_exit exits[] = {
	{ EXIT_OK, "done" },
	{ EXIT_GENERIC, "failed for a reason that is not below" },
	{ EXIT_NOMEM, "out of memory" },
	{ EXIT_TRANSPORT, "no connection, or the connection was lost" },
	{ EXIT_LOGIN, "the target refused the login" },
	{ EXIT_INVALID, "wrong command line or URL" },
	{ EXIT_TIMEOUT, "timed out" },
	{ EXIT_PROTOCOL, "the target broke the protocol" },
	{ EXIT_NO_OBJECTS, "no such target or unit" },
	{ EXIT_AUTH, "authentication failed" },
	{ EXIT_DIFFERS, "the compared data differ" },
};

static void print_usage(FILE *to)
{
	fputs("usage: iser COMMAND [OPTION]... [OPERAND]...\n\n", to);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(to, "  %-9s  %s\n", commands[i]->name,
			commands[i]->summary);
	fprintf(to, "  %-9s  %s\n", "check",
		"Execute iser-check, the conformance suite");
	fputs("\nA URL is iscsi://[USER[%PASSWORD]@]HOST[:PORT]/IQN/LUN"
	      "[?KEY=VALUE...],\n"
	      "keys: initiator, header_digest, data_digest, timeout, depth, "
	      "priority,\n"
	      "connections, error_recovery_level, reconnect, retry, transport,\n"
	      "task_reporting,\n"
	      "max_outstanding_r2t, data_pdu_in_order, data_sequence_in_order,\n"
	      "initial_r2t, immediate_data, first_burst_length, "
	      "max_burst_length,\n"
	      "max_recv_data_segment_length, mpa_crc, iser_hello,\n"
	      "start, compat, rcap, target_user, target_password, password_file,\n"
	      "target_password_file, auth,\n"
	      "login_timeout, logout_timeout, noop_out_interval, noop_out_timeout,\n"
	      "paths, policy, failback,\n"
	      "alua, replacement_timeout, polling_interval.\n"
	      "Several URLs in one argument are paths to one unit.\n"
	      "iser://... stands for transport=iser.\n\n",
	      to);
	usage_exits(to, exits, ARRAY_LEN(exits));
	fputs("\niser COMMAND --help prints the options of a command, iser "
	      "--version\nthe version.\n",
	      to);
}

/* Executes iser-check, which is beside iser or in the PATH. */
static int execute_check(char **argv)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path,
			     sizeof(path) - sizeof("-check"));

	argv[0] = "iser-check";
	if (n > 0) {
		memcpy(path + n, "-check", sizeof("-check"));
		execv(path, argv);
	}
	execvp(argv[0], argv);
	say("check: cannot execute iser-check: %s; install it",
	    strerror(errno));
	return EXIT_GENERIC;
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return EXIT_INVALID;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("iser %s\n", iser_version());
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "check"))
		return execute_check(argv + 1);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!strcmp(argv[1], commands[i]->name))
			return command_run(commands[i], argc - 2, argv + 2);
	say("%s: no such command; iser --help lists the commands", argv[1]);
	return EXIT_INVALID;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	standard_open();
	return standard_end("iser", run(argc, argv), EXIT_GENERIC);
}
