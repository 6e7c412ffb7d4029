/* SPDX-License-Identifier: BSD-2-Clause */
/* errors.h: the errors of a configuration file, each with its place in the
 * file. */
#ifndef DAEMON_CONFIG_ERRORS_H
#define DAEMON_CONFIG_ERRORS_H

#include "daemon/config/node.h"

#define CFG_ERRORS     20 /* that are kept; more are counted only */
#define CFG_ERROR_TEXT 700

struct cfg_error {
	struct cfg_place at;
	char text[CFG_ERROR_TEXT]; /* "OBJECT: what: reason; what to do" */
};

struct cfg_errors {
	unsigned n; /* of all errors */
	struct cfg_error all[CFG_ERRORS];
};

/* cfg_error adds an error at a place of the file. */
void cfg_error(struct cfg_errors *e, struct cfg_place at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* cfg_errors_sort orders the errors that are kept by their places. */
void cfg_errors_sort(struct cfg_errors *e);
/* cfg_errors_kept returns how many errors have a text. */
unsigned cfg_errors_kept(const struct cfg_errors *e);
/* cfg_error_line writes "FILE:LINE:COLUMN: TEXT" with escaped control characters
 * to out (size bytes); word: before TEXT. */
void cfg_error_line(const struct cfg_errors *e, unsigned i, const char *file,
		    const char *word, char *out, size_t size);
/* cfg_errors_say passes each error to say, with its place if the errors are of a file;
 * file NULL: of a command line. */
void cfg_errors_say(const struct cfg_errors *e, const char *file);
/* cfg_errors_print prints a line for each error on standard error; word: before its
 * text. */
void cfg_errors_print(const struct cfg_errors *e, const char *file,
		      const char *word);

/* The candidate that is most like a word, for "did you mean". */
struct cfg_nearest {
	const char *word, *best; /* best NULL: no candidate is like the word */
	unsigned distance;
};

/* cfg_nearest_begin prepares the search for candidates that are like word. */
void cfg_nearest_begin(struct cfg_nearest *n, const char *word);
/* cfg_nearest_try makes candidate the best if it is more like the word. */
void cfg_nearest_try(struct cfg_nearest *n, const char *candidate);

#endif
