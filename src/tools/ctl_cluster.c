/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_cluster.c: the answer of "cluster status" as text. */
#include "tools/ctl_cluster.h"

#include <stdio.h>
#include <string.h>

#include "tools/ctl_print.h"
#include "tools/json_get.h"

static void copy(json_t *row, const char *name, const json_t *from,
		 const char *key)
{
	json_object_set(row, name, json_object_get(from, key));
}

static json_t *unit_row(const json_t *u)
{
	const char *owner = get_text(u, "owner");
	json_t *row = json_object();

	copy(row, "backstore", u, "backstore");
	copy(row, "role", u, "role");
	json_object_set_new(row, "owner", json_string(*owner ? owner : "-"));
	copy(row, "generation", u, "generation");
	copy(row, "taken", u, "takes");
	copy(row, "yielded", u, "yields");
	copy(row, "fences", u, "fences");
	copy(row, "fenced", u, "fenced");
	return row;
}

static void add_gateways(json_t *rows, const json_t *u)
{
	json_t *g;
	size_t i;

	json_array_foreach(json_object_get(u, "gateways"), i, g)
	{
		json_t *row = json_object();

		copy(row, "backstore", u, "backstore");
		copy(row, "gateway", g, "name");
		copy(row, "number", g, "number");
		json_object_set_new(row, "ports",
				    ctl_line(json_object_get(g, "ports")));
		json_object_set_new(row, "portals",
				    ctl_line(json_object_get(g, "portals")));
		json_array_append_new(rows, row);
	}
}

static void print_refused(const json_t *u)
{
	const char *why = get_text(u, "refused");

	if (*why)
		printf("\n%s does not join: %s\n", get_text(u, "backstore"),
		       why);
}

void ctl_print_cluster(const json_t *status)
{
	json_t *units = json_array(), *gateways = json_array(), *u;
	size_t i;

	json_array_foreach(json_object_get(status, "units"), i, u)
	{
		json_array_append_new(units, unit_row(u));
		add_gateways(gateways, u);
	}
	printf("gateway %s, number %lld\n", get_text(status, "gateway"),
	       get_number(status, "number"));
	if (json_array_size(units)) {
		putchar('\n');
		ctl_print_table(units);
	}
	json_array_foreach(json_object_get(status, "units"), i, u)
	{
		print_refused(u);
	}
	if (json_array_size(gateways)) {
		putchar('\n');
		ctl_print_table(gateways);
	}
	json_decref(units);
	json_decref(gateways);
}
