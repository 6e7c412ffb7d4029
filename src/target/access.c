/* SPDX-License-Identifier: BSD-2-Clause */
/* access.c: who may see and use what (access.h). */
#include "target/access.h"

#include <string.h>

#include "base/bytes.h"
#include "iscsi/names.h"

/* ---- rules of an auth group ---- */

static bool one_matches(const struct tgt_patterns *p, const char *name)
{
	for (unsigned i = 0; i < p->n; i++)
		if (iscsi_pattern_matches(p->list[i], name))
			return true;
	return false;
}

static bool name_admitted(const struct tgt_auth_group *g, const char *name)
{
	return g->initiators.n == 0 || one_matches(&g->initiators, name);
}

static bool is_ipv4(const uint8_t address[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(address, mapped, sizeof(mapped)) == 0;
}

/* A prefix of less than 96 bits is one of IPv6: ::/0 has no IPv4 address. */
static bool is_in_prefix(const struct tgt_prefix *p, const uint8_t address[16])
{
	unsigned bytes = p->bits / 8, rest = p->bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	if (p->bits < 96 && is_ipv4(address))
		return false;
	if (memcmp(p->address, address, bytes) != 0)
		return false;
	return !rest || ((p->address[bytes] ^ address[bytes]) & mask) == 0;
}

static bool address_admitted(const struct tgt_auth_group *g,
			     const uint8_t address[16])
{
	for (unsigned i = 0; i < g->naddresses; i++)
		if (is_in_prefix(&g->addresses[i], address))
			return true;
	return g->naddresses == 0;
}

static bool account_fits(const struct tgt_account *a, const char *initiator)
{
	return a->initiators.n == 0 || one_matches(&a->initiators, initiator);
}

/* Whether the group has an account for the initiator, or needs none. */
static bool has_account(const struct tgt_auth_group *g, const char *initiator)
{
	list_for_each(it, &g->accounts)
		if (account_fits(list_entry(it, struct tgt_account, link),
				 initiator))
			return true;
	return list_empty(&g->accounts);
}

/* The status of a login at which only this group decides. */
static uint16_t ask_group(const struct tgt_auth_group *g,
			  const struct tgt_visitor *v, const char **why)
{
	if (g->admits_none)
		*why = "its auth group admits no initiator";
	else if (!name_admitted(g, v->initiator))
		*why = "its auth group does not admit this initiator name";
	else if (!address_admitted(g, v->address))
		*why = "its auth group does not admit this address";
	else if (!has_account(g, v->initiator))
		*why = "its auth group has no account for this initiator name";
	else
		return ISCSI_LOGIN_SUCCESS;
	return ISCSI_LOGIN_FORBIDDEN;
}

/* ---- decisions ---- */

const struct tgt_auth_group *tgt_access_auth(const struct tgt_directory *d,
					     const struct tgt_visitor *v,
					     const struct tgt_target *t)
{
	unsigned group = t ? t->cfg.auth_group
			   : tgt_directory_portal_group(d, v->portal_group)
					 ->cfg.discovery_auth;

	return d->auth_groups[group];
}

/* An initiator that the auth group of a target refuses gets the status of a target that
 * does not exist: else names could be guessed. Where SendTargets shows all targets to all
 * initiators, it gets the true one (§11.13.5). */
static uint16_t hide(const struct tgt_directory *d, const struct tgt_visitor *v,
		     uint16_t status)
{
	const struct tgt_portal_group *g =
		tgt_directory_portal_group(d, v->portal_group);

	return status == ISCSI_LOGIN_FORBIDDEN &&
			       g->cfg.discovery != TGT_DISCOVERY_ALL
		       ? ISCSI_LOGIN_NOT_FOUND
		       : status;
}

uint16_t tgt_access_login(const struct tgt_directory *d,
			  const struct tgt_visitor *v,
			  const struct tgt_target *t, const char **why)
{
	if (!t) {
		*why = "no target has this name";
		return ISCSI_LOGIN_NOT_FOUND;
	}
	if (!tgt_target_port(d, t, v->portal_group)) {
		*why = "the target is not in this portal group";
		return ISCSI_LOGIN_NOT_FOUND;
	}
	return hide(d, v, ask_group(tgt_access_auth(d, v, t), v, why));
}

uint16_t tgt_access_discovery(const struct tgt_directory *d,
			      const struct tgt_visitor *v, const char **why)
{
	if (!tgt_directory_portal_group(d, v->portal_group)) {
		*why = "the portal group was removed";
		return ISCSI_LOGIN_NOT_FOUND;
	}
	return ask_group(tgt_access_auth(d, v, NULL), v, why);
}

static bool mask_fits(const struct tgt_mask *m, const struct tgt_visitor *v)
{
	return one_matches(&m->initiators, v->initiator) &&
	       (!m->account || strcmp(m->account, v->account) == 0);
}

static struct dev_map *map_of(const struct tgt_target *t,
			      const struct tgt_visitor *v)
{
	for (unsigned i = 0; i < t->nmasks; i++)
		if (mask_fits(&t->masks[i], v))
			return t->masks[i].map;
	return t->cfg.map;
}

/* FNV-1a: spreads names over the addresses of a redirection. */
static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash;
}

static void find_redirect(struct tgt_ruling *r, const char *initiator)
{
	for (unsigned i = 0; i < r->target->nredirects; i++) {
		const struct tgt_redirect *e = &r->target->redirects[i];

		if (e->initiators.n && !one_matches(&e->initiators, initiator))
			continue;
		r->redirect =
			e->addresses[hash_name(initiator) % e->naddresses];
		r->permanent = e->permanent;
		return;
	}
}

struct tgt_ruling tgt_access_ask(const struct tgt_directory *d,
				 const struct tgt_visitor *v,
				 const char *target)
{
	struct tgt_ruling r = { .why = NULL };

	if (target) {
		r.target = tgt_directory_target(d, target);
		r.status = tgt_access_login(d, v, r.target, &r.why);
	} else {
		r.status = tgt_access_discovery(d, v, &r.why);
	}
	if (r.status)
		return r;
	r.auth = tgt_access_auth(d, v, r.target);
	if (!r.target)
		return r;
	r.port = tgt_target_port(d, r.target, v->portal_group);
	r.map = map_of(r.target, v);
	find_redirect(&r, v->initiator);
	return r;
}

bool tgt_access_shows(const struct tgt_directory *d,
		      const struct tgt_visitor *v, const struct tgt_target *t)
{
	const struct tgt_portal_group *g =
		tgt_directory_portal_group(d, v->portal_group);
	const char *why;

	if (!g || g->cfg.discovery == TGT_DISCOVERY_NONE)
		return false;
	if (g->cfg.discovery == TGT_DISCOVERY_ALL)
		return tgt_target_port(d, t, v->portal_group) != NULL;
	return tgt_access_login(d, v, t, &why) == ISCSI_LOGIN_SUCCESS;
}

bool tgt_access_needs_chap(const struct tgt_auth_group *g)
{
	return !list_empty(&g->accounts);
}

const struct iscsi_chap_secret *
tgt_access_account(const struct tgt_auth_group *g, const char *name,
		   const char *initiator)
{
	const struct iscsi_chap_secret *found = NULL;

	list_for_each(it, &g->accounts) {
		const struct tgt_account *a =
			list_entry(it, struct tgt_account, link);
		bool fits = account_fits(a, initiator);

		if (strcmp(a->secret.name, name) == 0 && fits)
			found = &a->secret;
	}
	return found;
}

bool tgt_access_proven(const struct tgt_auth_group *g,
		       const struct tgt_visitor *v)
{
	return !tgt_access_needs_chap(g) ||
	       tgt_access_account(g, v->account, v->initiator);
}
