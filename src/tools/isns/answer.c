/* SPDX-License-Identifier: BSD-2-Clause */
/* answer.c: what an iSNS server says: the result of a query, state changes. */
#include "tools/isns/answer.h"

#include <stdlib.h>
#include <string.h>

struct node {
	const char *name, *alias;
};

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->name,
		      ((const struct node *)b)->name);
}

/* The nodes in the result, sorted by name, since the portal groups that name them may be
 * anywhere. NULL: out of memory. */
static struct node *find_nodes(struct isns_attrs all, size_t *n)
{
	struct node *nodes = calloc(all.len / 8 + 1, sizeof(*nodes));
	struct node *last = NULL;
	struct isns_attr a;

	*n = 0;
	while (nodes && isns_attr_next(&all, &a)) {
		if (a.tag == ISNS_NODE_NAME) {
			last = isns_attr_text(&a) ? &nodes[(*n)++] : NULL;
			if (last)
				last->name = isns_attr_text(&a);
		} else if (a.tag == ISNS_NODE_ALIAS && last) {
			last->alias = isns_attr_text(&a);
		}
	}
	if (nodes)
		qsort(nodes, *n, sizeof(*nodes), compare_nodes);
	return nodes;
}

/* A portal group whose attributes have come so far. */
struct group {
	const char *name;
	struct isns_portal at;
	bool has_ip, has_port;
};

/* Takes an attribute of a portal group: its keys come first (§5.6.4). Returns whether
 * it is the tag that completes a portal group with a relationship (§5.6.5.2). */
static bool take_group(struct group *g, const struct isns_attr *a,
		       uint32_t *tag)
{
	uint32_t port;

	if (a->tag == ISNS_PG_NAME)
		*g = (struct group){ .name = isns_attr_text(a) };
	if (a->tag == ISNS_PG_IP)
		g->has_ip = isns_attr_ip(a, &g->at.ip);
	if (a->tag == ISNS_PG_PORT) {
		g->has_port = isns_attr_number(a, &port);
		g->at.port = (uint16_t)(g->has_port ? port : 0);
	}
	return a->tag == ISNS_PG_TAG && isns_attr_number(a, tag) && g->name &&
	       g->has_ip && g->has_port;
}

bool isns_answer_found(struct isns_attrs all, isns_found *found, void *arg)
{
	struct group g = { 0 };
	struct isns_attr a;
	size_t n;
	struct node *nodes = find_nodes(all, &n);
	uint32_t tag;
	bool ok;

	while (nodes && isns_attr_next(&all, &a)) {
		struct node key = { 0 };
		const struct node *node;

		if (!take_group(&g, &a, &tag))
			continue;
		key.name = g.name;
		node = bsearch(&key, nodes, n, sizeof(*nodes), compare_nodes);
		/* some clients register ::a.b.c.d in place of §6.3.1 */
		if (IN6_IS_ADDR_V4COMPAT(&g.at.ip))
			g.at.ip.s6_addr[10] = g.at.ip.s6_addr[11] = 0xff;
		found(arg, g.name, node ? node->alias : NULL, &g.at, tag);
	}
	ok = nodes;
	free(nodes);
	return ok;
}

const char *isns_answer_changed(struct isns_attrs all, isns_changed *changed)
{
	const char *to = NULL, *name;
	struct isns_attr a;
	uint32_t bits = 0;

	if (isns_attr_next(&all, &a) && a.tag == ISNS_NODE_NAME)
		to = isns_attr_text(&a);
	while (to && isns_attr_next(&all, &a)) {
		if (a.tag == ISNS_SCN_BITMAP && !isns_attr_number(&a, &bits))
			return NULL;
		name = a.tag == ISNS_NODE_NAME ? isns_attr_text(&a) : NULL;
		if (name && changed)
			changed(bits, name);
	}
	return to;
}
