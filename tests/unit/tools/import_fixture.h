/* SPDX-License-Identifier: BSD-2-Clause */
/* import_fixture.h: imports a text and compares the configuration and the notes
 * that come of it. */
#ifndef TESTS_IMPORT_FIXTURE_H
#define TESTS_IMPORT_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "tools/import/model.h"

/* What an import printed: the error, or the configuration and the notes. */
struct result {
	struct import_model m;
	char *yaml, *notes;
	const char *error;
};

static const char *included; /* what each include directive includes */

static inline const char *open_included(struct tree_include *i,
					const char *pattern)
{
	if (strchr(pattern, '*'))
		return NULL;
	if (!included)
		return "No such file or directory";
	tree_include_text(i, pattern, included, strlen(included));
	return NULL;
}

static inline void print_result(struct result *r)
{
	size_t size;
	FILE *f = open_memstream(&r->yaml, &size);

	assert_non_null(f);
	import_print_yaml(&r->m, f);
	fclose(f);
	f = open_memstream(&r->notes, &size);
	assert_non_null(f);
	import_print_notes(&r->m, f);
	fclose(f);
}

static inline void import_bytes(struct result *r, const char *format,
				const char *text, size_t len)
{
	struct tree_input in = { &r->m.pool, "F", text, len, NULL };
	struct tree *t;

	r->m.format = format;
	if (!r->m.secrets_dir)
		r->m.secrets_dir = "/s";
	if (!strcmp(format, "tgt"))
		t = tree_read_tgt(&in, open_included);
	else if (!strcmp(format, "lio"))
		t = tree_read_lio(&in);
	else
		t = tree_ctl_is_ucl(text, len)
			    ? tree_read_ucl(&in, open_included)
			    : tree_read_ctl(&in);
	r->error = in.error;
	assert_int_equal(!t, in.error != NULL);
	if (!t)
		return;
	if (!strcmp(format, "tgt"))
		import_tgt(&r->m, t);
	else if (!strcmp(format, "lio"))
		import_lio(&r->m, t);
	else
		import_ctl(&r->m, t);
	import_check_units(&r->m);
	import_check_portals(&r->m);
	import_name_secrets(&r->m);
	print_result(r);
}

static inline void end_result(struct result *r)
{
	free(r->yaml);
	free(r->notes);
	pool_free(&r->m.pool);
	included = NULL;
}

/* Expects that each of the texts, up to NULL, is in what was printed. */
static inline void expect(const char *format, const char *text, ...)
{
	struct result r = { 0 };
	const char *want;
	va_list args;

	import_bytes(&r, format, text, strlen(text));
	if (r.error)
		fail_msg("%s", r.error);
	va_start(args, text);
	while ((want = va_arg(args, const char *)))
		if (!strstr(r.yaml, want) && !strstr(r.notes, want))
			fail_msg("missing: %s\nin:\n%s%s", want, r.yaml,
				 r.notes);
	va_end(args);
	end_result(&r);
}

/* The same with all notes: there must be n of them. */
static inline void expect_notes(const char *format, const char *text,
				unsigned n)
{
	struct result r = { 0 };

	import_bytes(&r, format, text, strlen(text));
	if (r.error || r.m.nnotes != n)
		fail_msg("%u notes, not %u: %s%s", r.m.nnotes, n,
			 r.error ? r.error : "", r.notes ? r.notes : "");
	end_result(&r);
}

static inline void expect_bytes_error(const char *format, const char *text,
				      size_t len, const char *error)
{
	struct result r = { 0 };

	import_bytes(&r, format, text, len);
	assert_non_null(r.error);
	if (strncmp(r.error, error, strlen(error)) != 0)
		fail_msg("%s, not %s", r.error, error);
	end_result(&r);
}

/* Expects an error that begins so. */
static inline void expect_error(const char *format, const char *text,
				const char *error)
{
	expect_bytes_error(format, text, strlen(text), error);
}

#define IQN "iqn.2026-01.com.example:disk"
/* A target of tgt with a body. */
#define TGT(body) "<target " IQN ">\n" body "</target>\n"

#endif
