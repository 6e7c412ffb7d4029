/* SPDX-License-Identifier: BSD-2-Clause */
/* errors.c: the errors of a configuration file, and where its fields are. */
#include "daemon/config/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "daemon/config/model.h"
#include "daemon/log/say.h"

void cfg_error(struct cfg_errors *e, struct cfg_place at, const char *fmt, ...)
{
	va_list ap;

	if (e->n < CFG_ERRORS) {
		struct cfg_error *x = &e->all[e->n];

		x->at = at;
		va_start(ap, fmt);
		vsnprintf(x->text, sizeof(x->text), fmt, ap);
		va_end(ap);
	}
	e->n++;
}

struct cfg_place cfg_head_at(const struct cfg_head *h, const char *field)
{
	const json_t *v = field ? json_object_get(h->given, field) : NULL;

	return cfg_spot_of(h->places, v ? v : h->given)->at;
}

void cfg_complain(struct cfg_errors *e, struct cfg_head *h, const char *object,
		  const char *field, const char *fmt, va_list ap)
{
	char text[CFG_ERROR_TEXT];

	vsnprintf(text, sizeof(text), fmt, ap);
	h->is_bad = true;
	cfg_error(e, cfg_head_at(h, field), "%s: %s%s%s", object,
		  field ? field : "", field ? ": " : "", text);
}

enum opt_end cfg_refuse(char why[OPT_WHY], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, OPT_WHY, fmt, ap);
	va_end(ap);
	return OPT_BAD;
}

unsigned cfg_errors_kept(const struct cfg_errors *e)
{
	return MIN(e->n, (unsigned)CFG_ERRORS);
}

static int compare_places(const void *a, const void *b)
{
	const struct cfg_error *x = a, *y = b;

	if (x->at.line != y->at.line)
		return x->at.line < y->at.line ? -1 : 1;
	return (x->at.column > y->at.column) - (x->at.column < y->at.column);
}

void cfg_errors_sort(struct cfg_errors *e)
{
	qsort(e->all, cfg_errors_kept(e), sizeof(e->all[0]), compare_places);
}

void cfg_error_line(const struct cfg_errors *e, unsigned i, const char *file,
		    const char *word, char *out, size_t size)
{
	char line[CFG_ERROR_TEXT + 4200];
	const struct cfg_error *x = &e->all[i];

	if (x->at.line)
		snprintf(line, sizeof(line), "%s:%u:%u: %s%s", file, x->at.line,
			 x->at.column, word, x->text);
	else
		snprintf(line, sizeof(line), "%s: %s%s", file, word, x->text);
	text_escape_str(out, size, line);
}

void cfg_errors_print(const struct cfg_errors *e, const char *file,
		      const char *word)
{
	char line[TEXT_ESCAPED_SIZE(CFG_ERROR_TEXT + 4200)];
	unsigned kept = cfg_errors_kept(e);

	for (unsigned i = 0; i < kept; i++) {
		cfg_error_line(e, i, file, word, line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	if (e->n > kept)
		fprintf(stderr, "%s: %u more errors\n", file, e->n - kept);
}

void cfg_errors_say(const struct cfg_errors *e, const char *file)
{
	char line[TEXT_ESCAPED_SIZE(CFG_ERROR_TEXT)];
	unsigned kept = cfg_errors_kept(e);

	for (unsigned i = 0; i < kept; i++) {
		if (file)
			cfg_error_line(e, i, file, "", line, sizeof(line));
		say("%s", file ? line : e->all[i].text);
	}
	if (e->n > kept)
		say("%u more errors", e->n - kept);
}
