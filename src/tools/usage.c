/* SPDX-License-Identifier: BSD-2-Clause */
/* usage.c: options and exit statuses as text. */
#include "tools/usage.h"

#include <stdlib.h>

#define COLUMN 26 /* where the text of an option begins */

void usage_options(FILE *to, const struct opt_parser *p)
{
	size_t size = opt_help(p, COLUMN, NULL, 0) + 1;
	char *text = malloc(size);

	if (!text)
		return;
	opt_help(p, COLUMN, text, size);
	fputs(text, to);
	free(text);
}

void usage_exits(FILE *to, const struct usage_exit *exits, size_t n)
{
	fputs("exit status:\n", to);
	for (size_t i = 0; i < n; i++)
		fprintf(to, "  %2d  %s\n", exits[i].status, exits[i].meaning);
}
