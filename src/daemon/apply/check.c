/* SPDX-License-Identifier: BSD-2-Clause */
/* check.c: configuration files without a running iserd. */
#include "daemon/apply/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/escape.h"
#include "daemon/apply/look.h"
#include "daemon/apply/look_identity.h"
#include "daemon/apply/names.h"
#include "daemon/apply/secrets.h"
#include "daemon/config/model.h"
#include "daemon/config/paths.h"

/* Reads a file with its secrets; looks: and looks whether what it names is there. NULL
 * after messages. */
static struct cfg_model *load(const char *path, bool looks)
{
	struct cfg_errors *e = calloc(2, sizeof(*e)); /* and warnings */
	struct cfg_model *m;

	if (!e) {
		fprintf(stderr, "%s: out of memory\n", path);
		return NULL;
	}
	m = cfg_model_load(path, e);
	if (m && looks) {
		cfg_look(m, &e[0], &e[1]);
		identity_look_state(m, &e[0], &e[1]);
		unit_names_check(m, NULL, e);
	}
	if (m && (!chap_secrets_check(m, e, false) || e->n)) {
		cfg_model_free(m);
		m = NULL;
	}
	cfg_errors_sort(e);
	cfg_errors_print(e, path, "");
	cfg_errors_print(&e[1], path, "warning: ");
	free(e);
	return m;
}

static const char *plural(unsigned n)
{
	return n == 1 ? "" : "s";
}

bool cfg_file_check(const char *path)
{
	struct cfg_model *m = load(path, true);
	bool good = m;

	if (m)
		printf("%s: valid: %u target%s, %u backstore%s, %u portal "
		       "group%s\n",
		       path, m->targets.n, plural(m->targets.n),
		       m->backstores.n, plural(m->backstores.n), m->portals.n,
		       plural(m->portals.n));
	cfg_model_free(m);
	return good;
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
	struct cfg_model *a = load(from, false), *b = load(to, false);
	bool good = a && b && cfg_diff(a, b, print_change, NULL);

	if (a && b && !good)
		fprintf(stderr, "%s: out of memory\n", to);
	cfg_model_free(a);
	cfg_model_free(b);
	return good;
}

char *cfg_field_absolute(const char *field, const char *value,
			 const char *folder)
{
	const struct cfg_row *row = cfg_path_field(field);
	size_t n = row ? cfg_path_absolute(row, value, folder, NULL, 0) : 0;
	char *text = n ? malloc(n + 1) : NULL;

	if (text)
		cfg_path_absolute(row, value, folder, text, n + 1);
	return text;
}
