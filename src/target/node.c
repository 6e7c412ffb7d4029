/* SPDX-License-Identifier: BSD-2-Clause */
/* node.c: target nodes, their ports, logical units. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

/* [RFC 7143: 4.4.2 #1-3] */
void tgt_port_name(const struct tgt_node *n, uint16_t tag, char name[256])
{
	snprintf(name, 256, "%s,t,0x%04x", n->name, tag);
}

/* Returns the node of that name, which may be new. NULL: out of memory. */
static struct tgt_node *get_node(struct tgt *t, const char *name)
{
	struct tgt_named *e = tgt_names_find(&t->node_names, name);
	struct tgt_node *n;

	if (e)
		return container_of(e, struct tgt_node, named);
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->named.name = n->name;
	if (tgt_names_add(&t->node_names, &n->named)) {
		free(n);
		return NULL;
	}
	list_push_back(&t->nodes, &n->link);
	return n;
}

/* Finds the node's port of a portal group, which may be new: a port of its SCSI
 * device. */
static int get_port(const struct tgt *t, struct tgt_node *n, uint16_t tag,
		    uint16_t *rtpi)
{
	struct tgt_node_port *more;
	char name[256];
	int err;

	for (unsigned i = 0; i < n->nports; i++) {
		*rtpi = n->ports[i].rtpi;
		if (n->ports[i].tag == tag)
			return 0;
	}
	more = realloc(n->ports, (n->nports + 1) * sizeof(*more));
	if (!more)
		return ERR_NOMEM;
	n->ports = more;
	tgt_port_name(n, tag, name);
	err = dev_port_add(t->cfg.server, name, rtpi);
	if (!err)
		n->ports[n->nports++] =
			(struct tgt_node_port){ .tag = tag, .rtpi = *rtpi };
	return err;
}

static int resolve(struct tgt *t, const struct tgt_directory *d,
		   struct tgt_target *target)
{
	int err = 0;

	target->node = get_node(t, target->cfg.name);
	if (!target->node)
		return ERR_NOMEM;
	for (unsigned i = 0; i < target->nports && !err; i++) {
		struct tgt_port *p = &target->ports[i];

		err = get_port(t, target->node,
			       d->portal_groups[p->portal_group]->cfg.tag,
			       &p->rtpi);
	}
	return err;
}

int tgt_nodes_resolve(struct tgt *t, struct tgt_directory *d)
{
	int err = 0;

	for (unsigned i = 0; i < d->ntargets && !err; i++)
		err = resolve(t, d, d->targets[i]);
	return err;
}

void tgt_nodes_free(struct tgt *t)
{
	struct list *it;

	while ((it = list_pop_front(&t->nodes))) {
		struct tgt_node *n = list_entry(it, struct tgt_node, link);

		free(n->ports);
		free(n);
	}
	tgt_names_fini(&t->node_names);
}
