/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser.h (tools): what the commands of the iser tool share: exit codes,
 * messages, option rows, sessions, progress. The tool uses the public headers
 * of libiser alone. Everything here runs in one thread.
 */
#ifndef TOOLS_ISER_H
#define TOOLS_ISER_H

#include <iser/unit.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/opt.h"

/* Exit codes: the numbers that open-iscsi's iscsiadm has for the same meanings;
 * iser_main.c has their texts. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_GENERIC = 1,
	EXIT_NOMEM = 3,
	EXIT_TRANSPORT = 4,
	EXIT_LOGIN = 5,
	EXIT_INVALID = 7, /* the command line or the URL */
	EXIT_TIMEOUT = 8,
	EXIT_PROTOCOL = 11,
	EXIT_NO_OBJECTS = 21,
	EXIT_AUTH = 24,
	EXIT_DIFFERS = 64, /* not one of iscsiadm's */
};

/* ---- command.c: a command of iser and its command line ---- */

/* The values of the options that every command has. */
struct common {
	bool json;
	const char *initiator; /* NULL: the library's default name */
	unsigned debug;	       /* how often --debug was given */
};

/* What a command was called with, as command_run has read it. */
struct call {
	const struct common *common;
	void *args;	 /* args_size bytes, set by the rows */
	char **operands; /* words of argv */
	int noperands;
};

struct command {
	const char *name, *synopsis, *summary;
	const char *notes; /* text below the options in --help; NULL: none */
	/* the command's own options, for args */
	const struct opt_row *rows;
	size_t nrows;
	/* options that several commands have, for the member of args at
	 * shared_at */
	const struct opt_row *shared_rows;
	size_t nshared_rows, shared_at;
	size_t args_size;
	int min_operands, max_operands;
	/* carries the command out and returns an exit code; what it returns
	 * for a failure it has printed */
	int (*run)(const struct call *call);
};

/* The commands of iser, each in the file of its name. */
extern const struct command command_ls, command_info, command_copy,
	command_hash, command_bench, command_ping, command_nbd_serve,
	command_attach, command_detach, command_rping, command_rbench;

/* command_run reads the words after the command's name by its rows and runs
 * it, or prints its --help. Returns an exit code, EXIT_INVALID for a wrong
 * command line. */
int command_run(const struct command *c, int argc, char **argv);

/* ---- common.c: messages, exit codes, sessions ---- */

/* alloc_pages returns n bytes of zeros at the start of a page, n a multiple of the
 * page size; NULL: out of memory. The caller frees it. For data of a target: over
 * iSER a target that lies may write less than it reports, and what stays must not be
 * memory of this process. */
void *alloc_pages(size_t n);
/* say prints "iser: MESSAGE" on stderr, escaped by text_escape. The form of a
 * message is "OBJECT: what failed: reason; what to do". */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* say_no_memory prints that there is no memory and returns EXIT_NOMEM. */
int say_no_memory(void);
/* say_failed prints iser_message and returns exit_of(err). */
int say_failed(const struct iser_context *ctx, int err);
/* print_text writes len bytes at text to stdout, escaped. */
void print_text(const char *text, size_t len);
/* json_text returns a JSON string of text, escaped: text of a peer or of the
 * command line need not be UTF-8. NULL: out of memory. */
json_t *json_text(const char *text);
/* print_json prints j on stdout and drops the reference. */
void print_json(json_t *j);
/* exit_of returns the exit code for an enum iser_error. */
int exit_of(int err);

/* open_context makes the context of a command, with the log on stderr that
 * --debug asks for. NULL: out of memory or descriptors, printed. */
struct iser_context *open_context(const struct common *c);
/* open_url parses the URL, or the URLs of several paths (iser_paths_parse), and logs
 * in; *url is the first one. NULL: *code is the exit code, and the
 * reason is printed. The caller frees the session by iser_disconnect. */
struct iser_session *open_url(struct iser_context *ctx, const char *text,
			      struct iser_url *url, int *code);
/* open_unit does the same with iser_url.reconnect = reconnect in a URL that does not
 * set it, and opens the unit. Returns 0, or an exit code with the reason printed. The
 * caller frees *u, and then *s, in either case. */
int open_unit(struct iser_context *ctx, const char *text, unsigned reconnect,
	      struct iser_url *url, struct iser_session **s,
	      struct iser_unit **u);
/* say_command prints what fmt describes and the result of a command that failed, and
 * returns exit_of(io->err). */
int say_command(const struct iser_io *io, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* say_request does the same for a request of u. */
int say_request(const struct iser_unit *u, const struct iser_request *r,
		const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* check_unit_exists returns 0, or EXIT_NO_OBJECTS where the target has no such
 * LUN, printed. */
int check_unit_exists(struct iser_session *s, const struct iser_url *url);
/* say_transport prints which transport transport=auto has found. */
void say_transport(const struct iser_session *s, const struct iser_url *url);
/* read_only_reason returns why the unit takes no WRITE commands, for a message; NULL:
 * it takes them. */
const char *read_only_reason(const struct iser_unit *u);

/* is_url returns whether text is a URL rather than a path. */
bool is_url(const char *text);
/* human writes bytes as "63.9 MiB" to out and returns out. */
const char *human(uint64_t bytes, char out[32]);
/* now_ns returns the monotonic time in nanoseconds. */
uint64_t now_ns(void);
/* catch_signals makes SIGINT and SIGTERM end a command in order; caught_signals returns how
 * many of them have come. */
void catch_signals(void);
int caught_signals(void);

/* ---- progress.c: a bar with rate and time left, on a terminal only ---- */

struct progress {
	const char *what;	/* borrowed: "copy" */
	uint64_t total, done;	/* bytes; total 0: not known */
	uint64_t started, last; /* ns; last: when the bar was drawn */
	bool on;		/* cleared by a caller that wants no bar */
};
/* progress_start begins a bar; on is set where stderr is a terminal. */
void progress_start(struct progress *p, const char *what, uint64_t total);
/* progress_add counts n more bytes and redraws the bar, ten times a second. */
void progress_add(struct progress *p, uint64_t n);
/* progress_end draws the bar a last time and ends its line. */
void progress_end(struct progress *p);

/* ---- histogram.c: log-linear, 128 steps an octave, about 0.8 % ---- */

#define HIST_SUB_BITS 7
#define HIST_BUCKETS  ((65 - HIST_SUB_BITS) << HIST_SUB_BITS)

/* All zero is an empty histogram. */
struct histogram {
	uint64_t count, min, max;
	double sum;
	uint64_t bucket[HIST_BUCKETS];
};
/* hist_add counts one value. */
void hist_add(struct histogram *h, uint64_t v);
/* hist_percentile returns the value below which the share p (0 to 1) of all
 * values lies; 0 for an empty histogram. */
uint64_t hist_percentile(const struct histogram *h, double p);

#endif
