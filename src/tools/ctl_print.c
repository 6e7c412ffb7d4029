/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_print.c: the answers of iserd as text. */
#include "tools/ctl_print.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_value(const json_t *v, int depth);

static bool is_plain(const json_t *v)
{
	return !json_is_object(v) && !json_is_array(v);
}

/* Returns whether a value fits in the line of its key: an array does with one plain
 * entry or none. */
static bool is_short(const json_t *v)
{
	return is_plain(v) || (json_is_array(v) && json_array_size(v) < 2 &&
			       is_plain(json_array_get(v, 0)));
}

static void print_plain(const json_t *v)
{
	if (json_is_string(v))
		puts(json_string_value(v));
	else if (json_is_integer(v))
		printf("%lld\n", (long long)json_integer_value(v));
	else if (json_is_real(v))
		printf("%g\n", json_real_value(v));
	else
		puts(json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "-");
}

static void print_object(const json_t *v, int depth)
{
	const char *key;
	json_t *item;
	int width = 0;

	json_object_foreach((json_t *)v, key,
			    item) if ((int)strlen(key) > width) width =
		(int)strlen(key);
	json_object_foreach((json_t *)v, key, item)
	{
		bool is_in_line = is_short(item);

		printf("%*s%-*s%s", 2 * depth, "", is_in_line ? width : 0, key,
		       is_in_line ? "  " : "\n");
		print_value(item, is_in_line ? 0 : depth + 1);
	}
}

static void print_array(const json_t *v, int depth)
{
	json_t *item;
	size_t i;

	if (json_array_size(v) == 0)
		printf("%*s(none)\n", 2 * depth, "");
	json_array_foreach((json_t *)v, i, item)
	{
		if (is_plain(item))
			printf("%*s", 2 * depth, "");
		else if (i)
			putchar('\n');
		print_value(item, depth);
	}
}

static void print_value(const json_t *v, int depth)
{
	if (json_is_object(v))
		print_object(v, depth);
	else if (json_is_array(v))
		print_array(v, depth);
	else
		print_plain(v);
}

void ctl_print(const json_t *v)
{
	print_value(v, 0);
}

/* ---- tables ---- */

#define COLUMNS	  64
#define WIDTH_MAX 60 /* of a column that is not the last */

struct table {
	const char *keys[COLUMNS];
	int widths[COLUMNS];
	unsigned n;
};

/* Writes the value of a cell to buf, unless it is a text. */
static const char *cell(const json_t *v, char buf[32])
{
	if (json_is_string(v))
		return json_string_value(v);
	if (json_is_integer(v))
		snprintf(buf, 32, "%lld", (long long)json_integer_value(v));
	else
		snprintf(buf, 32, "%s",
			 json_is_true(v)    ? "yes"
			 : json_is_false(v) ? "no"
					    : "-");
	return buf;
}

static void measure(struct table *t, const char *key, const json_t *v)
{
	unsigned i = 0;
	char buf[32];
	int width = (int)strlen(cell(v, buf));

	while (i < t->n && strcmp(t->keys[i], key) != 0)
		i++;
	if (i == COLUMNS)
		return;
	if (i == t->n) {
		t->keys[t->n++] = key;
		t->widths[i] = (int)strlen(key);
	}
	if (width > WIDTH_MAX)
		width = WIDTH_MAX;
	if (width > t->widths[i])
		t->widths[i] = width;
}

static void print_row(const struct table *t, const json_t *row)
{
	for (unsigned i = 0; i < t->n; i++) {
		char buf[32];
		const char *text =
			row ? cell(json_object_get(row, t->keys[i]), buf)
			    : t->keys[i];

		printf("%s%-*s", i ? "  " : "", i + 1 < t->n ? t->widths[i] : 0,
		       text);
	}
	putchar('\n');
}

void ctl_print_table(const json_t *rows)
{
	struct table t = { .n = 0 };
	const char *key;
	json_t *row, *v;
	size_t i;

	json_array_foreach((json_t *)rows, i, row)
	{
		json_object_foreach(row, key, v)
		{
			measure(&t, key, v);
		}
	}
	if (!t.n) {
		puts("(none)");
		return;
	}
	print_row(&t, NULL);
	json_array_foreach((json_t *)rows, i, row)
	{
		print_row(&t, row);
	}
}
