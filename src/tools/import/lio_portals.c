/* SPDX-License-Identifier: BSD-2-Clause */
/* lio_portals.c: the portals of all TPGs as portal groups. */
#include "tools/import/lio.h"

#include <stdlib.h>

/* An address that TPGs listen on, and the targets that do. */
struct lio_place {
	struct lio_place *next;
	const char *address;
	struct import_target **users;
	unsigned n, size, index;
	/* iSER: for all of them, for one */
	bool is_iser, wants_iser;
	const struct tree *at;
	struct import_portal *portal;
};

/* The scope of the places, by their addresses. */
static const char by_address;

/* Returns ADDR:PORT as iserd takes it, or NULL after a note. */
static const char *listen_address(struct lio *l, const struct tree *portal)
{
	const char *ip = lio_text_or(portal, "ip_address", "?");
	const char *port = lio_text_or(portal, "port", "3260");
	const char *address = import_listen(l->m, ip, port);

	if (!address)
		import_note(l->m, portal,
			    "portal %s, port %s: left out: not a numeric "
			    "address and port; add it to listen of a portal "
			    "group",
			    ip, port);
	return address;
}

static struct lio_place *find_place(struct lio *l, const char *address,
				    const struct tree *at)
{
	struct lio_place *p = pool_get(&l->m->pool, &by_address, address);

	if (p)
		return p;
	p = pool_alloc(&l->m->pool, sizeof(*p));
	p->address = address;
	p->at = at;
	p->is_iser = true;
	p->index = l->nplaces++;
	pool_put(&l->m->pool, &by_address, address, p);
	if (l->last_place)
		l->last_place->next = p;
	else
		l->places = p;
	l->last_place = p;
	return p;
}

static void use_place(struct lio *l, struct import_target *t,
		      const char *address, const struct tree *portal)
{
	struct lio_place *p = find_place(l, address, portal);
	bool is_iser = lio_flag(l, portal, "iser", false, false);

	p->is_iser &= is_iser;
	p->wants_iser |= is_iser;
	if (p->n && p->users[p->n - 1] == t)
		return;
	if (p->n == p->size) {
		unsigned size = p->size ? 2 * p->size : 4;
		struct import_target **users =
			pool_alloc(&l->m->pool, size * sizeof(*users));

		if (p->n)
			memcpy(users, p->users, p->n * sizeof(*users));
		p->users = users;
		p->size = size;
	}
	p->users[p->n++] = t;
}

void lio_take_portals(struct lio *l, struct import_target *t,
		      const struct tree *tpg)
{
	for (const struct tree *c = lio_children(tpg, "portals"); c;
	     c = c->next) {
		const char *address = listen_address(l, c);

		import_settings(l->m, c, t->name,
				&import_lio_tables[LIO_PORTAL]);
		if (address)
			use_place(l, t, address, c);
		/* such a socket of Linux accepts IPv4, too */
		if (address && !strncmp(address, "[::]:", 5))
			use_place(l, t,
				  pool_format(&l->m->pool, "0.0.0.0:%s",
					      address + 5),
				  c);
		if (lio_is_on(tree_text(c, "offload")))
			import_note(l->m, c,
				    "portal %s: offload is not "
				    "carried over: iserd uses sockets "
				    "and RDMA devices; nothing to do",
				    address ? address : "?");
	}
}

/* Places with the same users and transports next to each other, in the order of
 * the file. */
static int compare_places(const void *a, const void *b)
{
	const struct lio_place *x = *(struct lio_place *const *)a;
	const struct lio_place *y = *(struct lio_place *const *)b;
	int order = 0;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	if (x->is_iser != y->is_iser)
		return x->is_iser ? 1 : -1;
	if (x->n)
		order = memcmp(x->users, y->users, x->n * sizeof(*x->users));
	return order ? order : x->index < y->index ? -1 : 1;
}

static bool same_users(const struct lio_place *a, const struct lio_place *b)
{
	return a->n == b->n && a->is_iser == b->is_iser &&
	       !memcmp(a->users, b->users, a->n * sizeof(*a->users));
}

/* Returns for each place, by its index, the first place with the same users. */
static struct lio_place **first_places(struct lio *l)
{
	size_t size = (l->nplaces + 1) * sizeof(struct lio_place *);
	struct lio_place **sorted = pool_alloc(&l->m->pool, size);
	struct lio_place **firsts = pool_alloc(&l->m->pool, size);
	struct lio_place *first = NULL;

	for (struct lio_place *p = l->places; p; p = p->next)
		sorted[p->index] = p;
	qsort(sorted, l->nplaces, sizeof(*sorted), compare_places);
	for (unsigned i = 0; i < l->nplaces; i++) {
		if (!first || !same_users(first, sorted[i]))
			first = sorted[i];
		firsts[sorted[i]->index] = first;
	}
	return firsts;
}

/* A portal of LIO has TCP, and iSER if it says so. An address of iserd has the
 * same transports for all targets. */
static struct import_portal *new_portal(struct import_model *m,
					const struct lio_place *p,
					const struct import_auth *discovery)
{
	struct import_portal *portal = import_portal_new(
		m, p->at, pool_format(&m->pool, "portal%u", m->last_tag + 1));

	portal->discovery_auth = discovery;
	portal->transport = p->is_iser ? "tcp, iser" : "tcp";
	return portal;
}

void lio_make_portals(struct lio *l, const struct import_auth *discovery)
{
	struct lio_place **firsts = first_places(l);

	for (struct lio_place *p = l->places; p; p = p->next) {
		struct lio_place *first = firsts[p->index];

		if (p->wants_iser && !p->is_iser)
			import_note(l->m, p->at,
				    "portal %s: iSER is left out, as not all "
				    "targets of this address have it; set "
				    "transport of the portal group if they "
				    "may",
				    p->address);
		if (first == p) {
			p->portal = new_portal(l->m, p, discovery);
			for (unsigned i = 0; i < p->n; i++)
				import_texts_add(l->m, &p->users[i]->portals,
						 p->portal->name);
		}
		import_portal_listen(l->m, first->portal, p->address);
	}
}
