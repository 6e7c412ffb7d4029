/* SPDX-License-Identifier: BSD-2-Clause */
/* model_cluster.c: checks what a gateway of a cluster may have. */
#include "daemon/config/model_cluster.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "net/net.h"

/* Reports an error at a field of the noun; NULL: at the noun itself. */
static void complain(struct cfg_errors *e, struct cfg_head *h, const char *noun,
		     const char *field, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void complain(struct cfg_errors *e, struct cfg_head *h, const char *noun,
		     const char *field, const char *fmt, ...)
{
	char object[128];
	va_list ap;

	snprintf(object, sizeof(object), "%s%s%.80s", noun, h->name ? " " : "",
		 h->name ? h->name : "");
	va_start(ap, fmt);
	cfg_complain(e, h, object, field, fmt, ap);
	va_end(ap);
}

/* ---- backstores ---- */

/* What a clustered unit would need a common state for, or a backstore that only
 * this iserd has. */
static const char *refusal_of(const struct cfg_backstore *b, enum lun_kind kind)
{
	if (kind == LUN_RAM || kind == LUN_NULL)
		return "memory is in this iserd only; leave cluster out, or "
		       "give a file, a block device or an rbd: image";
	if (kind == LUN_SCSI)
		return "the state of a SCSI device is in the device, without "
		       "the other gateways; leave cluster out";
	if (kind == LUN_CD)
		return "several iserd may serve the same image without it; "
		       "leave cluster out";
	if (kind == LUN_NBD)
		return "an NBD server cannot keep a gateway from the data; "
		       "leave cluster out";
	if (b->lun.shared)
		return "given with shared, which it includes; leave shared out";
	if (b->lun.read_only)
		return "several iserd may serve a unit that is read only "
		       "without it; leave cluster out";
	if (b->key || b->new_key)
		return "CRYPTO ERASE changes the key of one gateway only; "
		       "leave out the key, or cluster";
	if (b->lun.protection || b->pi)
		return "protection information is stored apart from the "
		       "data, which are not written in one step; leave it "
		       "out, or cluster";
	if (b->lun.removable)
		return "an ejected medium would still be there at the other "
		       "gateways; leave out removable, or cluster";
	return NULL;
}

static void check_backstore(const struct cfg_model *m, struct cfg_backstore *b,
			    struct cfg_errors *e)
{
	const struct cfg_cluster *c = m->cluster.v;
	const char *operand, *refusal;
	enum lun_kind kind;

	if (!b->lun.cluster || !b->store)
		return;
	kind = lun_spec_kind(b->store, &operand);
	refusal = refusal_of(b, kind);
	if (refusal)
		complain(e, &b->head, "backstore", "cluster", "%s", refusal);
	else if (!m->cluster.n && m->is_command_line)
		complain(e, &b->head, "backstore", "cluster",
			 "without a number of this gateway; give "
			 "--cluster-number, different at each gateway");
	else if (!m->cluster.n)
		complain(e, &b->head, "backstore", "cluster",
			 "without the section cluster; add it, with the number "
			 "of this gateway");
	else if (kind == LUN_FILE && !c->options.directory)
		complain(e, &b->head, "backstore", "cluster",
			 "a file or block device needs a directory that the "
			 "gateways share; give %s",
			 m->is_command_line ? "--cluster-directory"
					    : "directory in the section "
					      "cluster");
}

/* ---- the section ---- */

/* The host's name, with other characters than those of a name replaced. */
static void name_gateway(const struct cfg_model *m, struct cfg_cluster *c,
			 struct cfg_errors *e)
{
	char host[HOST_NAME_MAX + 1];

	if (c->options.gateway) { /* it fits: cfg_set_gateway */
		strcpy(c->gateway, c->options.gateway);
		return;
	}
	net_host_name(host, sizeof(host));
	for (char *p = host; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			*p = '-';
	if (strlen(host) < sizeof(c->gateway))
		strcpy(c->gateway,
		       isalnum((unsigned char)*host) ? host : "gateway");
	else
		complain(e, &c->head, "cluster", "gateway",
			 "the name of this host is longer than %u bytes; give "
			 "a name with %s",
			 GATEWAY_SIZE - 1,
			 m->is_command_line ? "--gateway" : "gateway");
}

static void check_section(struct cfg_model *m, struct cfg_cluster *c,
			  struct cfg_errors *e)
{
	const struct cluster_options *o = &c->options;

	name_gateway(m, c, e);
	if (o->silence < 3 * o->beacon)
		complain(e, &c->head, "cluster", "silence",
			 "%u: less than three times the beacon of %u, so that "
			 "one late answer would count as silence; give at "
			 "least %u",
			 o->silence, o->beacon, 3 * o->beacon);
	if (m->aluas.n)
		complain(e, &c->head, "cluster", NULL,
			 "the gateways are the target port groups of clustered "
			 "units; leave out %s",
			 m->is_command_line ? "--alua" : "alua-groups");
	if (m->options.port_id > 1)
		complain(e, &c->head, "cluster", NULL,
			 "the identifiers of target ports follow from the "
			 "number; leave out %s",
			 m->is_command_line ? "--port-id" : "port-id");
}

/* Tags are different at all gateways, so that no initiator takes two of them for
 * one portal group (RFC 7143 §4.4.1). */
static void number_portals(struct cfg_model *m, struct cfg_errors *e)
{
	for (unsigned i = 0; i < m->portals.n; i++) {
		struct cfg_portal *p = &m->portals.v[i];

		p->wire_tag = p->tag;
		if (!m->cluster.n)
			continue;
		p->wire_tag = (p->tag - 1) * CFG_GATEWAYS +
			      m->cluster.v->options.number;
		if (p->tag > CFG_TAG_MAX)
			complain(e, &p->head, "portal group", "tag",
				 "%u: a gateway has tags up to %u; give "
				 "another number",
				 p->tag, CFG_TAG_MAX);
	}
}

void cfg_cluster_check(struct cfg_model *m, struct cfg_errors *e)
{
	if (m->cluster.n)
		check_section(m, m->cluster.v, e);
	number_portals(m, e);
	for (unsigned i = 0; i < m->backstores.n; i++)
		check_backstore(m, &m->backstores.v[i], e);
}
