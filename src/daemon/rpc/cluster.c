/* SPDX-License-Identifier: BSD-2-Clause */
/* cluster.c: the units that other gateways serve, too, as JSON. */
#include "daemon/rpc/cluster.h"

#include <string.h>

#include "base/escape.h"
#include "daemon/apply/units.h"
#include "daemon/config/model.h"
#include "daemon/daemon.h"

const char *gateway_role_name(enum cluster_role role)
{
	static const char *const names[] = {
		[CLUSTER_JOINING] = "joining",
		[CLUSTER_STANDING_BY] = "standing-by",
		[CLUSTER_TAKING] = "taking",
		[CLUSTER_OWNER] = "owner",
		[CLUSTER_YIELDING] = "yielding",
		[CLUSTER_FENCED] = "fenced",
		[CLUSTER_LEAVING] = "leaving",
	};

	return names[role];
}

/* Other gateways write the record. */
static json_t *shown(const char *text)
{
	char plain[TEXT_ESCAPED_SIZE(CLUSTER_REFUSED_MAX)];

	return json_string(text_escape_str(plain, sizeof(plain), text));
}

/* Without the mark of the target, which follows a semicolon. */
static json_t *portal_json(const char *portal)
{
	char text[CLUSTER_PORTAL_MAX];

	memcpy(text, portal, sizeof(text));
	text[strcspn(text, ";")] = '\0';
	return shown(text);
}

static json_t *portals_json(const struct cluster_gateway *g)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < g->nportals; i++)
		json_array_append_new(all, portal_json(g->portals[i]));
	return all;
}

static json_t *entry_json(const struct cluster_gateway *g)
{
	json_t *ports = json_array();

	for (unsigned i = 0; i < g->nports; i++)
		json_array_append_new(ports, json_integer(g->ports[i]));
	return json_pack("{s:o, s:i, s:i, s:o, s:o}", "name", shown(g->id),
			 "number", (int)g->number, "block_size",
			 (int)g->block_size, "ports", ports, "portals",
			 portals_json(g));
}

static json_t *count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *member_json(const struct member *m)
{
	json_t *gateways = json_array();
	const struct cluster_record *r;
	struct cluster_status st;

	member_status(m, &st);
	r = st.record;
	for (unsigned i = 0; r && i < r->ngateways; i++)
		json_array_append_new(gateways, entry_json(&r->gateways[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:o, s:o, s:o}",
			 "backstore", member_unit(m)->name, "role",
			 gateway_role_name(st.role), "refused",
			 st.refused ? shown(st.refused) : json_null(), "owner",
			 shown(r ? r->owner : ""), "generation",
			 count(r ? r->generation : 0), "version",
			 count(r ? r->version : 0), "gateways", gateways,
			 "takes", count(st.takes), "yields", count(st.yields),
			 "fences", count(st.fences), "fenced", count(st.fenced),
			 "swaps", count(st.swaps), "conflicts",
			 count(st.conflicts), "last_hand_over_us",
			 count((uint64_t)(st.last_hand_over / XTIME_US)));
}

struct members {
	json_t *array;
	const char *name; /* NULL: of all */
};

static void add_member(void *arg, struct member *m)
{
	const struct members *all = arg;

	if (!all->name || !strcmp(all->name, member_unit(m)->name))
		json_array_append_new(all->array, member_json(m));
}

json_t *gateway_json(const struct daemon *d, const char *name)
{
	const struct cfg_cluster *c = d->model->cluster.v;
	struct members all = { json_array(), name };

	gateway_each(d->gateway, add_member, &all);
	return json_pack("{s:s, s:i, s:o}", "gateway", c->gateway, "number",
			 (int)c->options.number, "units", all.array);
}
