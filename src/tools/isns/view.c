/* SPDX-License-Identifier: BSD-2-Clause */
/* view.c: what an iSNS server is to know of an iserd. */
#include "tools/isns/view.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char no_memory[] = "out of memory";

/* ---- addresses ---- */

void isns_map_ipv4(struct in6_addr *ip, const struct in_addr *v4)
{
	memset(ip, 0, sizeof(*ip));
	ip->s6_addr[10] = ip->s6_addr[11] = 0xff;
	memcpy(&ip->s6_addr[12], v4, 4);
}

bool isns_portal_ip(const char *text, struct in6_addr *ip)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) != 1)
		return inet_pton(AF_INET6, text, ip) == 1;
	isns_map_ipv4(ip, &v4);
	return true;
}

static bool parse_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*port = (uint16_t)n;
	return *text && !*end && n > 0 && n <= UINT16_MAX;
}

/* Reads "192.0.2.1:3260" or "[2001:db8::1]:3260". */
static bool parse_address(const char *text, struct isns_portal *p)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN];
	bool is_v6 = text[0] == '[';
	size_t len;

	if (!colon || !parse_port(colon + 1, &p->port))
		return false;
	len = (size_t)(colon - text);
	if (is_v6 && (len < 2 || text[len - 1] != ']'))
		return false;
	text += is_v6;
	len -= is_v6 ? 2 : 0;
	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	return isns_portal_ip(host, &p->ip) &&
	       is_v6 != IN6_IS_ADDR_V4MAPPED(&p->ip);
}

bool isns_is_any(const struct in6_addr *ip)
{
	struct in6_addr any4;

	isns_map_ipv4(&any4, &(struct in_addr){ .s_addr = INADDR_ANY });
	return IN6_IS_ADDR_UNSPECIFIED(ip) || !memcmp(ip, &any4, sizeof(any4));
}

/* ---- a view ---- */

/* Returns the index of a portal, which it adds; -1: no memory. */
static int add_portal(struct isns_view *v, const struct isns_portal *p)
{
	struct isns_portal *more;

	for (unsigned i = 0; i < v->nportals; i++)
		if (v->portals[i].port == p->port &&
		    !memcmp(&v->portals[i].ip, &p->ip, sizeof(p->ip)))
			return (int)i;
	more = reallocarray(v->portals, v->nportals + 1, sizeof(*more));
	if (!more)
		return -1;
	v->portals = more;
	v->portals[v->nportals] = *p;
	return (int)v->nportals++;
}

/* A portal that two portal groups of the target have counts once: a server knows
 * one tag for a target and a portal (RFC 4171 §3.4). */
static bool add_member(struct isns_view *v, struct isns_target *t,
		       const struct isns_portal *p, uint16_t tag)
{
	int portal = add_portal(v, p);
	struct isns_member *more;

	if (portal < 0)
		return false;
	for (unsigned i = 0; i < t->nmembers; i++)
		if (t->members[i].portal == (unsigned)portal)
			return true;
	more = reallocarray(t->members, t->nmembers + 1, sizeof(*more));
	if (!more)
		return false;
	t->members = more;
	t->members[t->nmembers++] =
		(struct isns_member){ (unsigned)portal, tag };
	return true;
}

/* Adds a portal at each local address in place of a wildcard. */
static bool add_members(struct isns_view *v, struct isns_target *t,
			struct isns_portal p, uint16_t tag,
			const struct in6_addr *local, unsigned nlocal)
{
	bool is_v4 = IN6_IS_ADDR_V4MAPPED(&p.ip);

	if (!isns_is_any(&p.ip))
		return add_member(v, t, &p, tag);
	for (unsigned i = 0; i < nlocal; i++) {
		if (is_v4 && !IN6_IS_ADDR_V4MAPPED(&local[i]))
			continue;
		p.ip = local[i];
		if (!add_member(v, t, &p, tag))
			return false;
	}
	return true;
}

static const char *add_portals(struct isns_view *v, struct isns_target *t,
			       const json_t *portals,
			       const struct in6_addr *local, unsigned nlocal)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(portals))
		return "a target has no array \"portals\"";
	json_array_foreach(portals, i, item)
	{
		const char *address =
			json_string_value(json_object_get(item, "address"));
		json_int_t tag =
			json_integer_value(json_object_get(item, "tag"));
		struct isns_portal p;

		/* RFC 4007 §11.2: a zone is of this machine only */
		if (address && strchr(address, '%'))
			continue;
		if (!address || !parse_address(address, &p))
			return "the address of a portal is not IP:PORT";
		if (tag < 0 || tag > UINT16_MAX)
			return "the tag of a portal is not from 0 to 65535";
		if (!add_members(v, t, p, (uint16_t)tag, local, nlocal))
			return no_memory;
	}
	return NULL;
}

static void free_target(struct isns_target *t)
{
	free(t->name);
	free(t->alias);
	free(t->members);
}

/* A target without a portal that discovery shows is not in the view. */
static const char *add_target(struct isns_view *v, const json_t *j,
			      const struct in6_addr *local, unsigned nlocal)
{
	const char *name = json_string_value(json_object_get(j, "name"));
	const char *alias = json_string_value(json_object_get(j, "alias"));
	struct isns_target t = { 0 };
	const char *why = name ? NULL : "a target has no \"name\"";

	if (!why) {
		t.name = strdup(name);
		t.alias = alias ? strdup(alias) : NULL;
		why = t.name && (!alias || t.alias) ? NULL : no_memory;
	}
	if (!why)
		why = add_portals(v, &t, json_object_get(j, "portals"), local,
				  nlocal);
	if (why || !t.nmembers)
		free_target(&t);
	else
		v->targets[v->ntargets++] = t;
	return why;
}

const char *isns_view_make(struct isns_view *v, const json_t *targets,
			   const struct in6_addr *local, unsigned nlocal)
{
	const char *why = NULL;
	const json_t *item;
	size_t i;

	*v = (struct isns_view){ 0 };
	if (!json_is_array(targets))
		return "the targets are not an array";
	v->targets = calloc(json_array_size(targets) + 1, sizeof(*v->targets));
	if (!v->targets)
		return no_memory;
	json_array_foreach(targets, i, item)
	{
		why = add_target(v, item, local, nlocal);
		if (why) {
			isns_view_free(v);
			break;
		}
	}
	return why;
}

static bool same_target(const struct isns_target *a,
			const struct isns_target *b)
{
	if (strcmp(a->name, b->name) != 0 || !a->alias != !b->alias ||
	    (a->alias && strcmp(a->alias, b->alias) != 0) ||
	    a->nmembers != b->nmembers)
		return false;
	for (unsigned i = 0; i < a->nmembers; i++)
		if (a->members[i].portal != b->members[i].portal ||
		    a->members[i].tag != b->members[i].tag)
			return false;
	return true;
}

bool isns_view_equal(const struct isns_view *a, const struct isns_view *b)
{
	if (a->nportals != b->nportals || a->ntargets != b->ntargets)
		return false;
	for (unsigned i = 0; i < a->nportals; i++)
		if (a->portals[i].port != b->portals[i].port ||
		    memcmp(&a->portals[i].ip, &b->portals[i].ip,
			   sizeof(a->portals[i].ip)) != 0)
			return false;
	for (unsigned i = 0; i < a->ntargets; i++)
		if (!same_target(&a->targets[i], &b->targets[i]))
			return false;
	return true;
}

void isns_view_free(struct isns_view *v)
{
	for (unsigned i = 0; i < v->ntargets; i++)
		free_target(&v->targets[i]);
	free(v->targets);
	free(v->portals);
	*v = (struct isns_view){ 0 };
}
