/* SPDX-License-Identifier: BSD-2-Clause */
/* errors.h: the errors of a configuration file, each with its place in the
 * file, and of single values. */
#ifndef DAEMON_CONFIG_ERRORS_H
#define DAEMON_CONFIG_ERRORS_H

#include <stddef.h>

#include "base/opt.h"

/* Where something is in its file, from 1; line 0: in no file. */
struct cfg_place {
	unsigned line, column;
};

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

/* cfg_refuse writes why a value is refused, in the form of printf, and returns OPT_BAD. */
enum opt_end cfg_refuse(char why[OPT_WHY], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
