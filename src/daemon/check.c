/* SPDX-License-Identifier: BSD-2-Clause */
/* check.c: configuration files without a running iserd. */
#include "daemon/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/escape.h"
#include "daemon/config/model.h"
#include "daemon/secrets.h"

/* Reads a file with its secrets. NULL after messages. */
static struct cfg_model *load(const char *path)
{
	struct cfg_errors *e = calloc(1, sizeof(*e));
	struct cfg_model *m;

	if (!e) {
		fprintf(stderr, "%s: out of memory\n", path);
		return NULL;
	}
	m = cfg_model_load(path, e);
	if (m && !chap_secrets_check(m, e, false)) {
		cfg_model_free(m);
		m = NULL;
	}
	cfg_errors_print(e, path);
	free(e);
	return m;
}

bool cfg_file_check(const char *path)
{
	struct cfg_model *m = load(path);

	cfg_model_free(m);
	return m != NULL;
}

static void print_change(void *arg, const struct cfg_change *c)
{
	static const char marks[] = {
		[CFG_ADDED] = '+', [CFG_REMOVED] = '-', [CFG_CHANGED] = '~'
	};
	const char *from = c->from ? c->from : "";
	const char *to = c->to ? c->to : "";

	(void)arg;
	printf("%c %s: %s%s%s%s\n", marks[c->kind], c->path, from,
	       c->kind == CFG_CHANGED ? " -> " : "", to,
	       c->needs_restart ? " (needs a restart)" : "");
}

bool cfg_file_diff(const char *from, const char *to)
{
	struct cfg_model *a = load(from), *b = load(to);
	bool good = a && b && cfg_diff(a, b, print_change, NULL);

	if (a && b && !good)
		fprintf(stderr, "%s: out of memory\n", to);
	cfg_model_free(a);
	cfg_model_free(b);
	return good;
}
