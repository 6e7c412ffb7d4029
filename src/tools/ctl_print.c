/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_print.c: the answers of iserd as text. */
#include "tools/ctl_print.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* Prints the member "start": seconds since 1970. */
static void print_time(double seconds)
{
	time_t t = (time_t)seconds;
	char text[32] = "-";
	struct tm tm;

	if (gmtime_r(&t, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	puts(text);
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
		if (json_is_real(item) && !strcmp(key, "start"))
			print_time(json_real_value(item));
		else
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

json_t *ctl_line(const json_t *array)
{
	char line[2048] = "";
	size_t i, len = 0;
	json_t *v;

	json_array_foreach((json_t *)array, i, v)
	{
		const char *gap = i ? ", " : "";

		if (json_is_string(v))
			snprintf(line + len, sizeof(line) - len, "%s%s", gap,
				 json_string_value(v));
		else
			snprintf(line + len, sizeof(line) - len, "%s%lld", gap,
				 (long long)json_integer_value(v));
		len = strlen(line);
	}
	return json_string(*line ? line : "-");
}

/* ---- status ---- */

/* Returns the row of a unit; "iserctl luns" has more. */
static json_t *unit_row(const json_t *u)
{
	static const char *const keys[] = { "backstore", "store", "size",
					    "trouble" };
	json_t *row = json_object();

	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		json_object_set(row, keys[k], json_object_get(u, keys[k]));
	json_object_set_new(row, "luns", ctl_line(json_object_get(u, "luns")));
	return row;
}

void ctl_print_status(const json_t *status)
{
	json_t *head = json_copy((json_t *)status), *rows = json_array(), *u;
	size_t i;

	json_array_foreach(json_object_get(status, "luns"), i, u)
	{
		json_array_append_new(rows, unit_row(u));
	}
	json_object_del(head, "luns");
	json_object_del(head, "sessions");
	ctl_print(head);
	puts("\nluns");
	ctl_print_table(rows);
	puts("\nsessions");
	print_value(json_object_get(status, "sessions"), 1);
	json_decref(rows);
	json_decref(head);
}
