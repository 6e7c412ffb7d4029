/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_tree.c: the answer of "tree" as text. */
#include "tools/ctl_tree.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/ctl_print.h"
#include "tools/json_get.h"

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
	double size = (double)get_number(b, "size");
	const char *store = get_text(b, "store");
	const char *trouble = get_text(b, "trouble");
	unsigned u = 0;

	for (; size >= 1024 && u < 4; u++)
		size /= 1024;
	print_line(2, "%s: %s, %.4g %s%s%s%s%s", get_text(b, "backstore"),
		   *store ? store : "no medium", size, units[u],
		   get_flag(b, "read_only") ? ", read-only" : "",
		   json_array_size(json_object_get(b, "luns")) ? ""
							       : ", no LUN",
		   *trouble ? ", " : "",
		   *trouble			 ? trouble
		   : get_flag(b, "flush_failed") ? ", a flush failed"
						 : "");
}

/* ---- targets ---- */

static void print_luns(unsigned depth, const json_t *luns)
{
	json_t *l;
	size_t i;

	json_array_foreach((json_t *)luns, i, l)
	{
		print_line(depth, "LUN %lld: %s%s", get_number(l, "lun"),
			   get_text(l, "backstore"),
			   get_flag(l, "read_only") ? ", read-only" : "");
	}
}

static void print_maps(const json_t *maps)
{
	json_t *map, *names;
	size_t i;

	json_array_foreach((json_t *)maps, i, map)
	{
		names = ctl_line(json_object_get(map, "initiators"));
		print_line(3, "map %lld, for %s", get_number(map, "map"),
			   json_string_value(names));
		json_decref(names);
		print_luns(4, json_object_get(map, "luns"));
	}
}

static void print_session(const json_t *s)
{
	const char *account = get_text(s, "account");
	long long age = get_number(s, "age");
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
		   get_text(s, "initiator"), get_text(s, "peer"),
		   get_text(s, "kind"), *account ? ", account " : "", account,
		   *account ? " by " : "", get_text(s, "algorithm"), since);
}

static void print_target(const json_t *t)
{
	json_t *sessions = json_object_get(t, "sessions"), *s;
	json_t *portals = ctl_line(json_object_get(t, "portal_groups"));
	const char *alias = get_text(t, "alias");
	size_t i;

	print_line(2, "%s%s%s%s, auth group %s, portal groups %s%s",
		   get_text(t, "name"), *alias ? " (" : "", alias,
		   *alias ? ")" : "", get_text(t, "auth_group"),
		   json_string_value(portals),
		   get_flag(t, "drains") ? ", no new sessions (drain)" : "");
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

	print_line(0, "iserd %s on %s", get_text(tree, "version"),
		   get_text(tree, "host"));
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
		print_line(2, "%s, tag %lld: %s", get_text(v, "name"),
			   get_number(v, "tag"), json_string_value(addresses));
		json_decref(addresses);
	}
	all = json_object_get(tree, "targets");
	print_line(1, "targets [%zu]", json_array_size(all));
	json_array_foreach(all, i, v)
	{
		print_target(v);
	}
}
