/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iser.h (tools): what the commands of the iser tool share: exit codes,
 * messages, options, progress. A tool knows libiser's public face only.
 */
#ifndef TOOLS_ISER_H
#define TOOLS_ISER_H

#include <iser/iser.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes: the numbers of open-iscsi's iscsiadm for the same meanings. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_GENERIC = 1,
	EXIT_NOMEM = 3,
	EXIT_TRANSPORT = 4, /* could not connect, or connection lost */
	EXIT_LOGIN = 5,
	EXIT_INVALID = 7,
	EXIT_TIMEOUT = 8,
	EXIT_PROTOCOL = 11,
	EXIT_NO_OBJECTS = 21,
	EXIT_AUTH = 24,
	EXIT_DIFFERS = 64, /* ours: what was compared is not equal */
};

struct command {
	const char *name;
	const char *synopsis;
	const char *summary;
	const char *help; /* the options, for --help */
	int (*run)(int argc, char **argv);
};

extern const struct command command_ls, command_info, command_copy,
	command_hash, command_bench, command_ping, command_nbd_serve,
	command_rping, command_rbench;

/* ---- common.c ---- */

/* say prints "iser: ..." on stderr. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The exit code for an enum iser_error. */
int exit_of(int err);
/* Says iser_message and returns exit_of. */
int failed(const struct iser_context *ctx, int err);

/* Options that every command has: --json, --initiator NAME, --debug. */
struct common {
	bool json;
	const char *initiator;
	int debug;
};
/* For getopt_long's table, and what to do with one of them: false if o is none
 * of these. */
#define COMMON_OPTIONS                                  \
 { "json", no_argument, NULL, 'j' },                    \
	 { "initiator", required_argument, NULL, 'i' }, \
 {                                                      \
  "debug", no_argument, NULL, 'd'                       \
 }
bool common_option(struct common *c, int o, const char *arg);
struct iser_context *open_context(const struct common *c);
/* Parses the URL and logs in; NULL: *code is the exit code, said already. */
struct iser_session *open_url(struct iser_context *ctx, const char *text,
			      struct iser_url *url, int *code);
/* transport=auto says what it came to. */
void tell_transport(const struct iser_session *s, const struct iser_url *url);
/* Whether it is a CD/DVD drive, and its medium none that takes WRITE commands. */
bool is_read_only_cd(struct iser_session *s, int lun);
/* Prints j and drops it. */
void print_json(json_t *j);

bool is_url(const char *text);
/* "64M", "4k", "1.5G": powers of 1024. */
bool parse_size(const char *text, uint64_t *size);
/* "63.9 MiB" */
const char *human(uint64_t bytes, char out[32]);
uint64_t now_ns(void);

/* ---- progress.c: a bar with rate and time left, on a terminal only ---- */

struct progress {
	const char *what;
	uint64_t total, done; /* total 0: not known */
	uint64_t start, last;
	bool on;
};
void progress_start(struct progress *p, const char *what, uint64_t total);
void progress_add(struct progress *p, uint64_t n);
void progress_end(struct progress *p);

/* ---- histogram.c: log-linear, 64 steps an octave, about 1.6 % ---- */

#define HIST_SUB_BITS 6
#define HIST_BUCKETS  ((65 - HIST_SUB_BITS) << HIST_SUB_BITS)

struct histogram {
	uint64_t count, min, max;
	double sum;
	uint64_t bucket[HIST_BUCKETS];
};
void hist_add(struct histogram *h, uint64_t v);
/* The value below which p (0..1) of all lie; 0 when empty. */
uint64_t hist_percentile(const struct histogram *h, double p);

#endif
