/* SPDX-License-Identifier: BSD-2-Clause */
/* usage.h: the parts of --help that iser and iserctl render from tables. */
#ifndef TOOLS_USAGE_H
#define TOOLS_USAGE_H

#include <stdio.h>

#include "base/opt.h"

/* One exit status of a program and its meaning. */
struct usage_exit {
	int status;
	const char *meaning;
};

/* usage_options prints the options of all groups of p. */
void usage_options(FILE *to, const struct opt_parser *p);
/* usage_exits prints the n exit statuses of a program. */
void usage_exits(FILE *to, const struct usage_exit *exits, size_t n);

#endif
