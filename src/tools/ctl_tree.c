/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_tree.c: the answer of "tree" as text. */
#include "tools/ctl_tree.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/ctl_print.h"

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static bool is_true(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static long long number_of(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

__attribute__((format(printf, 2, 3))) static void
print_line(unsigned depth, const char *format, ...)
{
	va_list args;

	printf("%*so- ", 2 * (int)depth, "");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* ---- backstores ---- */

static void print_backstore(const json_t *b)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double size = (double)number_of(b, "size");
	const char *store = text_of(b, "store");
	const char *trouble = text_of(b, "trouble");
	unsigned u = 0;

	for (; size >= 1024 && u < 4; u++)
		size /= 1024;
	print_line(2, "%s: %s, %.4g %s%s%s%s%s", text_of(b, "backstore"),
		   *store ? store : "no medium", size, units[u],
		   is_true(b, "read_only") ? ", read-only" : "",
		   json_array_size(json_object_get(b, "luns")) ? ""
							       : ", no LUN",
		   *trouble ? ", " : "",
		   *trouble			? trouble
		   : is_true(b, "flush_failed") ? ", a flush failed"
						: "");
}

/* ---- targets ---- */

static void print_luns(unsigned depth, const json_t *luns)
{
	json_t *l;
	size_t i;

	json_array_foreach((json_t *)luns, i, l)
	{
		print_line(depth, "LUN %lld: %s%s", number_of(l, "lun"),
			   text_of(l, "backstore"),
			   is_true(l, "read_only") ? ", read-only" : "");
	}
}

static void print_maps(const json_t *maps)
{
	json_t *map, *names;
	size_t i;

	json_array_foreach((json_t *)maps, i, map)
	{
		names = ctl_line(json_object_get(map, "initiators"));
		print_line(3, "map %lld, for %s", number_of(map, "map"),
			   json_string_value(names));
		json_decref(names);
		print_luns(4, json_object_get(map, "luns"));
	}
}

static void print_session(const json_t *s)
{
	const char *account = text_of(s, "account");
	long long age = number_of(s, "age");
	char since[32];

	if (age >= 86400)
		snprintf(since, sizeof(since), "%lld d %lld h", age / 86400,
			 age / 3600 % 24);
	else if (age >= 3600)
		snprintf(since, sizeof(since), "%lld h %lld min", age / 3600,
			 age / 60 % 60);
	else if (age >= 60)
		snprintf(since, sizeof(since), "%lld min", age / 60);
	else
		snprintf(since, sizeof(since), "%lld s", age);
	print_line(3, "session of %s at %s, %s%s%s%s%s, for %s",
		   text_of(s, "initiator"), text_of(s, "peer"),
		   text_of(s, "kind"), *account ? ", account " : "", account,
		   *account ? " by " : "", text_of(s, "algorithm"), since);
}

static void print_target(const json_t *t)
{
	json_t *sessions = json_object_get(t, "sessions"), *s;
	json_t *portals = ctl_line(json_object_get(t, "portal_groups"));
	const char *alias = text_of(t, "alias");
	size_t i;

	print_line(2, "%s%s%s%s, auth group %s, portal groups %s%s",
		   text_of(t, "name"), *alias ? " (" : "", alias,
		   *alias ? ")" : "", text_of(t, "auth_group"),
		   json_string_value(portals),
		   is_true(t, "drains") ? ", no new sessions (drain)" : "");
	json_decref(portals);
	print_luns(3, json_object_get(t, "luns"));
	print_maps(json_object_get(t, "maps"));
	json_array_foreach(sessions, i, s)
	{
		print_session(s);
	}
}

/* ---- all ---- */

void ctl_print_tree(const json_t *tree)
{
	json_t *all, *v, *addresses;
	size_t i;

	print_line(0, "iserd %s on %s", text_of(tree, "version"),
		   text_of(tree, "host"));
	all = json_object_get(tree, "backstores");
	print_line(1, "backstores [%zu]", json_array_size(all));
	json_array_foreach(all, i, v)
	{
		print_backstore(v);
	}
	all = json_object_get(tree, "portal_groups");
	print_line(1, "portal groups [%zu]", json_array_size(all));
	json_array_foreach(all, i, v)
	{
		addresses = ctl_line(json_object_get(v, "listen"));
		print_line(2, "%s, tag %lld: %s", text_of(v, "name"),
			   number_of(v, "tag"), json_string_value(addresses));
		json_decref(addresses);
	}
	all = json_object_get(tree, "targets");
	print_line(1, "targets [%zu]", json_array_size(all));
	json_array_foreach(all, i, v)
	{
		print_target(v);
	}
}
