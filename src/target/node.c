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

static struct tgt_node *new_node(const struct tgt *t,
				 const struct tgt_node_config *cfg)
{
	const unsigned nworkers = t->cfg.env.nworkers;
	struct tgt_node *n = malloc(sizeof(*n));

	if (!n)
		return NULL;
	n->cfg = *cfg;
	explicit_bzero(&n->cfg.chap, sizeof(n->cfg.chap));
	n->chap = calloc(nworkers, sizeof(*n->chap));
	if (!n->chap) {
		free(n);
		return NULL;
	}
	for (unsigned i = 0; i < nworkers; i++)
		n->chap[i] = cfg->chap;
	return n;
}

void tgt_node_free(const struct tgt *t, struct tgt_node *n)
{
	explicit_bzero(n->chap, t->cfg.env.nworkers * sizeof(*n->chap));
	free(n->chap);
	free(n);
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
	n = new_node(t, cfg);
	if (!n)
		return ERR_NOMEM;
	memcpy(n->cfg.name, name, sizeof(name));
	err = add_port(t, n);
	if (err) {
		tgt_node_free(t, n);
		return err;
	}
	list_push_back(&t->nodes, &n->link);
	return 0;
}

int tgt_worker_set_chap(struct tgt_worker *w, const char *node,
			const struct tgt_chap *chap)
{
	char name[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];
	struct tgt_node *n = NULL;

	if (!node) {
		w->discovery_chap = *chap;
		return 0;
	}
	if (!iscsi_name_prepare(name, node, w->tgt->cfg.strict_names, why))
		n = tgt_node_find(w->tgt, name);
	if (!n)
		return ERR_NOT_FOUND;
	n->chap[w->index] = *chap;
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
