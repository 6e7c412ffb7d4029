/* SPDX-License-Identifier: BSD-2-Clause */
/* node.c: target nodes, the portals that SendTargets reports, logical units. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "iscsi/names.h"
#include "target/internal.h"

void tgt_port_name(const struct tgt *t, const struct tgt_node *n,
		   char name[256])
{
	snprintf(name, 256, "%s,t,0x%04x", n->cfg.name, t->cfg.tpgt);
}

/* The node's one port is a port of its SCSI device. */
static int add_port(const struct tgt *t, struct tgt_node *n)
{
	char name[256];

	tgt_port_name(t, n, name);
	return dev_port_add(n->cfg.server, name, &n->rtpi);
}

struct tgt_node *tgt_node_find(const struct tgt *t, const char *name)
{
	list_for_each(it, &t->nodes) {
		struct tgt_node *n = list_entry(it, struct tgt_node, link);

		if (!strcmp(n->cfg.name, name))
			return n;
	}
	return NULL;
}

int tgt_node_add(struct tgt *t, const struct tgt_node_config *cfg)
{
	char name[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];
	struct tgt_node *n;
	int err;

	if (iscsi_name_prepare(name, cfg->name, t->cfg.strict_names, why))
		return ERR_FORMAT;
	if (tgt_node_find(t, name))
		return ERR_BUSY;
	n = malloc(sizeof(*n));
	if (!n)
		return ERR_NOMEM;
	n->cfg = *cfg;
	memcpy(n->cfg.name, name, sizeof(name));
	err = add_port(t, n);
	if (err) {
		free(n);
		return err;
	}
	list_push_back(&t->nodes, &n->link);
	return 0;
}

int tgt_portal_add(struct tgt *t, const char *address)
{
	struct tgt_portal *p;

	if (strlen(address) >= sizeof(p->address))
		return ERR_TOO_LONG;
	p = malloc(sizeof(*p));
	if (!p)
		return ERR_NOMEM;
	memcpy(p->address, address, strlen(address) + 1);
	list_push_back(&t->portals, &p->link);
	return 0;
}

struct dev_lu *tgt_find_lu(const struct tgt_node *n, uint64_t wire)
{
	uint16_t lun;

	return dev_lun_decode(wire, &lun) ? NULL
					  : dev_lu_get(n->cfg.server, lun);
}
