/* SPDX-License-Identifier: BSD-2-Clause */
/* model.c: a configuration of iserd as an importer makes it. */
#include "tools/import/model.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "iscsi/names.h"

const struct import_auth import_any = { .name = "any" };
const struct import_auth import_none = { .name = "none" };

/* The scopes of the tables of the model: their addresses count. */
static const char by_name, by_store, by_path, by_auth, by_portal, by_tag,
	by_listen, by_shared, by_target, by_note;

static void add_note(struct import_model *m, const struct tree *at,
		     const char *text, const char *key)
{
	struct import_note *n = pool_alloc(&m->pool, sizeof(*n));

	pool_put(&m->pool, &by_note, pool_copy(&m->pool, key, strlen(key)), n);
	n->file = at->file;
	n->line = at->line;
	n->text = pool_copy(&m->pool, text, strlen(text));
	if (m->last_note)
		m->last_note->next = n;
	else
		m->notes = n;
	m->last_note = n;
}

void import_note(struct import_model *m, const struct tree *at,
		 const char *format, ...)
{
	char *text = NULL, *key = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0 ||
	    asprintf(&key, "%s:%u: %s", at->file, at->line, text) < 0)
		pool_no_memory();
	va_end(args);
	if (!pool_get(&m->pool, &by_note, key) &&
	    m->nnotes++ < IMPORT_NOTES_MAX)
		add_note(m, at, text, key);
	free(text);
	free(key);
}

void import_texts_add(struct import_model *m, struct import_texts *list,
		      const char *text)
{
	struct import_text *t = pool_alloc(&m->pool, sizeof(*t));

	t->text = text;
	if (list->last)
		list->last->next = t;
	else
		list->first = t;
	list->last = t;
	list->n++;
	pool_put(&m->pool, list, text, t);
}

bool import_texts_have(const struct import_model *m,
		       const struct import_texts *list, const char *text)
{
	return pool_get(&m->pool, list, text) != NULL;
}

/* ---- names ---- */

/* Copies a name and replaces what is not a letter, digit, dot, dash or
 * underscore; "any" and "none" are built in. number 0: the name itself. */
static char *valid_name(struct import_model *m, const char *name,
			unsigned number)
{
	char *s = number ? pool_format(&m->pool, "%.56s-%u", name, number)
			 : pool_format(&m->pool, "%.60s", name);

	for (char *p = s; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			*p = '-';
	if (!isalnum((unsigned char)*s))
		s = pool_format(&m->pool, "x%s", s);
	if (!strcmp(s, "any") || !strcmp(s, "none"))
		s = pool_format(&m->pool, "%s-1", s);
	return s;
}

/* A valid name that the table with this scope does not have. After some numbers
 * it continues with the count of all names, so that many equal names take no
 * long search. */
static char *unique_name(struct import_model *m, const void *scope,
			 const char *name)
{
	unsigned number = 0;
	char *s = valid_name(m, name, number);

	while (pool_get(&m->pool, scope, s)) {
		number = number == 4 ? (unsigned)m->pool.nused
			 : number    ? number + 1
				     : 2;
		s = valid_name(m, name, number);
	}
	return s;
}

/* The path of a store, without a kind before it. */
static const char *path_of(const char *store)
{
	if (!strncmp(store, "cd:", 3))
		return store + 3;
	return !strncmp(store, "scsi:", 5) ? store + 5 : store;
}

/* Notes that another backstore has the same file. */
static void note_same_file(struct import_model *m, struct import_unit *u)
{
	const char *path = path_of(u->store);
	const struct import_unit *o = pool_get(&m->pool, &by_path, path);

	if (*path != '/')
		return;
	if (o)
		import_note(m, u->at,
			    "%s: the backstores %s and %s have the same file, "
			    "which iserd opens once; remove one of them",
			    path, o->name, u->name);
	else
		pool_put(&m->pool, &by_path, path, u);
}

struct import_unit *import_unit_new(struct import_model *m,
				    const struct tree *at, const char *name,
				    const char *store)
{
	struct import_unit *u;

	if (m->nunits == IMPORT_UNITS_MAX) {
		import_note(m, at,
			    "%s: left out: more than %u backstores; divide the "
			    "configuration between several iserd",
			    store, IMPORT_UNITS_MAX);
		return NULL;
	}
	u = pool_alloc(&m->pool, sizeof(*u));
	u->at = at;
	u->store = store;
	u->name = unique_name(m, &by_name, name);
	pool_put(&m->pool, &by_name, u->name, u);
	if (!pool_get(&m->pool, &by_store, store))
		pool_put(&m->pool, &by_store, store, u);
	if (m->last_unit)
		m->last_unit->next = u;
	else
		m->units = u;
	m->last_unit = u;
	m->nunits++;
	note_same_file(m, u);
	return u;
}

struct import_unit *import_unit_of(const struct import_model *m,
				   const char *store)
{
	return pool_get(&m->pool, &by_store, store);
}

/* ---- who may log in ---- */

struct import_auth *import_auth_new(struct import_model *m, const char *name)
{
	struct import_auth *a = pool_alloc(&m->pool, sizeof(*a));

	a->name = unique_name(m, &by_auth, name);
	pool_put(&m->pool, &by_auth, a->name, a);
	a->prev = m->last_auth;
	if (m->last_auth)
		m->last_auth->next = a;
	else
		m->auths = a;
	m->last_auth = a;
	return a;
}

void import_auth_drop(struct import_model *m, struct import_auth *a)
{
	if (a->prev)
		a->prev->next = a->next;
	else
		m->auths = a->next;
	if (a->next)
		a->next->prev = a->prev;
	else
		m->last_auth = a->prev;
	pool_put(&m->pool, &by_auth, a->name, NULL);
}

const struct import_auth *import_auth_done(struct import_model *m,
					   const struct tree *at,
					   struct import_auth *a)
{
	const char *empty = a->by_account && !a->accounts    ? "account"
			    : a->by_name && !a->initiators.n ? "initiator name"
			    : a->by_address && !a->addresses.n ? "address"
							       : NULL;

	if (empty) {
		import_note(m, at,
			    "%s: auth group none, which admits no initiator: "
			    "no %s of the file could be carried over; write an "
			    "auth group by hand",
			    a->name, empty);
		import_auth_drop(m, a);
		return &import_none;
	}
	if (a->mutual && !a->accounts) {
		import_note(m, a->mutual->at,
			    "mutual user %s: left out: initiators log in "
			    "without CHAP, which comes first; nothing to do",
			    a->mutual->user);
		a->mutual = NULL;
	}
	if (a->by_account || a->by_name || a->by_address)
		return a;
	import_auth_drop(m, a);
	return &import_any;
}

void import_auth_mutual(struct import_model *m, struct import_auth *a,
			const struct tree *at, const char *user,
			const char *secret)
{
	struct import_account *c = a->mutual;

	if (c && (strcmp(c->user, user) != 0 || strcmp(c->secret, secret) != 0))
		import_note(m, at,
			    "mutual user %s: left out: an auth group has one "
			    "account for the target, here %s; use this one at "
			    "all initiators",
			    user, c->user);
	if (c)
		return;
	a->mutual = c = pool_alloc(&m->pool, sizeof(*c));
	c->at = at;
	c->user = user;
	c->secret = secret;
}

static struct import_account *
new_account(struct import_model *m, struct import_auth *a, const char *user)
{
	struct import_account *c = pool_alloc(&m->pool, sizeof(*c));

	c->user = user;
	c->number = a->last_account ? a->last_account->number + 1 : 1;
	if (a->last_account)
		a->last_account->next = c;
	else
		a->accounts = c;
	a->last_account = c;
	pool_put(&m->pool, a, user, c);
	return c;
}

const struct import_account *
import_auth_account(struct import_model *m, struct import_auth *a,
		    const struct tree *at, const char *user, const char *secret,
		    const char *initiator)
{
	struct import_account *c = pool_get(&m->pool, a, user);

	a->by_account = true;
	if (c && strcmp(c->secret, secret) != 0) {
		import_note(m, at,
			    "user %s: left out: the user has another secret in "
			    "line %u; give each user one secret",
			    user, c->at->line);
		return NULL;
	}
	if (c && !c->initiators.n)
		return c; /* it is for all */
	if (!c) {
		c = new_account(m, a, user);
		c->at = at;
		c->secret = secret;
	}
	if (initiator)
		import_texts_add(m, &c->initiators, initiator);
	else
		c->initiators = (struct import_texts){ .first = NULL };
	return c;
}

/* Returns the name in the form that iserd compares, or NULL and the reason. */
static const char *valid_iscsi_name(struct import_model *m, const char *name,
				    char why[ISCSI_NAME_WHY])
{
	char prepared[ISCSI_NAME_MAX + 1];

	if (iscsi_name_prepare(prepared, name, false, why))
		return NULL;
	return pool_copy(&m->pool, prepared, strlen(prepared));
}

const char *import_initiator(struct import_model *m, const struct tree *at,
			     const char *name)
{
	char why[ISCSI_NAME_WHY];
	const char *valid = valid_iscsi_name(m, name, why);

	if (!valid)
		import_note(m, at,
			    "%s: left out: not the name of an iSCSI initiator: "
			    "%s; give a name like "
			    "iqn.2026-01.com.example:node1",
			    name, why);
	return valid;
}

void import_auth_name(struct import_model *m, struct import_auth *a,
		      const struct tree *at, const char *name)
{
	const char *valid = import_initiator(m, at, name);

	a->by_name = true;
	if (valid && !import_texts_have(m, &a->initiators, valid))
		import_texts_add(m, &a->initiators, valid);
}

/* Returns the address without its brackets, or NULL if it is not numeric or the
 * prefix length is not valid. */
static char *valid_address(struct import_model *m, const char *address)
{
	char *s = pool_format(&m->pool, "%s", address), *slash, *ip = s;
	unsigned long prefix = 0, most;
	char plain[INET6_ADDRSTRLEN];
	uint8_t binary[16];
	bool is_v6;

	slash = strchr(s, '/');
	if (slash)
		*slash = '\0';
	if (*ip == '[' && ip[strlen(ip) - 1] == ']') {
		ip[strlen(ip) - 1] = '\0';
		ip++;
	}
	is_v6 = inet_pton(AF_INET6, ip, binary) == 1;
	most = is_v6 ? 128 : 32;
	if (!is_v6 && inet_pton(AF_INET, ip, binary) != 1)
		return NULL;
	if (!slash)
		return ip;
	if (!import_number(slash + 1, most, &prefix))
		return NULL;
	/* iserd refuses bits beyond the prefix */
	for (unsigned long i = prefix; i < most; i++)
		binary[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
	ip = inet_ntop(is_v6 ? AF_INET6 : AF_INET, binary, plain, sizeof(plain))
		     ? plain
		     : ip;
	return pool_format(&m->pool, "%s/%lu", ip, prefix);
}

void import_auth_address(struct import_model *m, struct import_auth *a,
			 const struct tree *at, const char *address)
{
	const char *valid = valid_address(m, address);

	a->by_address = true;
	if (!valid)
		import_note(m, at,
			    "%s: left out: not a numeric address or network; "
			    "give an address, or one with a prefix length like "
			    "192.0.2.0/24",
			    address);
	else if (!import_texts_have(m, &a->addresses, valid))
		import_texts_add(m, &a->addresses, valid);
}

const char *import_listen(struct import_model *m, const char *address,
			  const char *port)
{
	char *ip = pool_copy(&m->pool, address, strlen(address));
	char canonical[INET6_ADDRSTRLEN];
	unsigned long number;
	uint8_t binary[16];

	if (*ip == '[' && ip[strlen(ip) - 1] == ']') {
		ip[strlen(ip) - 1] = '\0';
		ip++;
	}
	if (!import_number(port, 65535, &number) || !number)
		return NULL;
	if (inet_pton(AF_INET, ip, binary) == 1)
		return pool_format(&m->pool, "%s:%lu", ip, number);
	if (inet_pton(AF_INET6, ip, binary) != 1)
		return NULL;
	inet_ntop(AF_INET6, binary, canonical, sizeof(canonical));
	return pool_format(&m->pool, "[%s]:%lu", canonical, number);
}

const struct import_portal *import_portal_of(const struct import_model *m,
					     const char *address)
{
	return pool_get(&m->pool, &by_listen, address);
}

void import_portal_listen(struct import_model *m, struct import_portal *p,
			  const char *address)
{
	import_texts_add(m, &p->listen, address);
	pool_put(&m->pool, &by_listen, address, p);
}

bool import_portal_tag(struct import_model *m, struct import_portal *p,
		       unsigned tag)
{
	char *text = pool_format(&m->pool, "%u", tag);

	if (pool_get(&m->pool, &by_tag, text))
		return false;
	if (p->tag)
		pool_put(&m->pool, &by_tag, pool_format(&m->pool, "%u", p->tag),
			 NULL);
	pool_put(&m->pool, &by_tag, text, p);
	p->tag = tag;
	return true;
}

struct import_portal *import_portal_new(struct import_model *m,
					const struct tree *at, const char *name)
{
	struct import_portal *p = pool_alloc(&m->pool, sizeof(*p));

	p->at = at;
	p->name = unique_name(m, &by_portal, name);
	pool_put(&m->pool, &by_portal, p->name, p);
	do
		m->last_tag++;
	while (!import_portal_tag(m, p, m->last_tag));
	if (m->last_portal)
		m->last_portal->next = p;
	else
		m->portals = p;
	m->last_portal = p;
	return p;
}

/* Returns the address that stands for all of the protocol, with the same port; NULL:
 * this is it. */
static const char *all_addresses(struct import_model *m, const char *listen)
{
	const char *all = *listen == '[' ? "[::]" : "0.0.0.0";
	const char *port = strrchr(listen, ':');

	all = pool_format(&m->pool, "%s%s", all, port);
	return strcmp(all, listen) ? all : NULL;
}

/* Takes from its portal group the address that stands for all, if another group has
 * one of them. */
static void divide(struct import_model *m, const struct import_portal *p,
		   const char *listen)
{
	const char *all = all_addresses(m, listen);
	const struct import_portal *q = all ? import_portal_of(m, all) : NULL;

	if (!q || q == p)
		return;
	import_note(m, q->at,
		    "listen %s of portal group %s: left out: %s is of portal "
		    "group %s, and iserd listens either at all addresses or at "
		    "certain ones; give the other addresses of the machine",
		    all, q->name, listen, p->name);
	pool_put(&m->pool, &by_listen, all, NULL);
	pool_put(&m->pool, &by_shared, all, m);
}

/* Rebuilds the list of addresses without those that iserd cannot listen at. */
static void clean_up(struct import_model *m, struct import_portal *p)
{
	const struct import_text *t = p->listen.first;

	p->listen.first = p->listen.last = NULL;
	p->listen.n = 0;
	for (; t; t = t->next) {
		const char *all = all_addresses(m, t->text);

		/* not to be left out, nor one of all that the group has */
		if (all ? import_portal_of(m, all) != p
			: !pool_get(&m->pool, &by_shared, t->text))
			import_texts_add(m, &p->listen, t->text);
	}
	if (p->listen.n)
		return;
	import_note(m, p->at,
		    "portal group %s: has no address; it listens at 127.0.0.1 "
		    "only: change listen",
		    p->name);
	import_texts_add(m, &p->listen, "127.0.0.1:0");
}

void import_check_portals(struct import_model *m)
{
	for (struct import_portal *p = m->portals; p; p = p->next)
		for (const struct import_text *t = p->listen.first; t;
		     t = t->next)
			divide(m, p, t->text);
	for (struct import_portal *p = m->portals; p; p = p->next)
		clean_up(m, p);
}

/* ---- targets ---- */

struct import_target *import_target_new(struct import_model *m,
					const struct tree *at, const char *name)
{
	char why[ISCSI_NAME_WHY];
	const char *valid = valid_iscsi_name(m, name, why);
	struct import_target *t;

	if (!valid) {
		import_note(m, at,
			    "target %s: left out: not an iSCSI name: %s; give "
			    "a name like iqn.2026-01.com.example:disk",
			    name, why);
		return NULL;
	}
	if (m->ntargets == IMPORT_TARGETS_MAX) {
		import_note(m, at,
			    "target %s: left out: more than %u targets; "
			    "divide the configuration between several "
			    "iserd",
			    name, IMPORT_TARGETS_MAX);
		return NULL;
	}
	t = pool_get(&m->pool, &by_target, valid);
	if (t) {
		import_note(m, at,
			    "target %s: left out: line %u has a target of this "
			    "name; choose another name",
			    name, t->at->line);
		return NULL;
	}
	t = pool_alloc(&m->pool, sizeof(*t));
	t->at = at;
	t->name = valid;
	t->auth = &import_any;
	pool_put(&m->pool, &by_target, valid, t);
	t->prev = m->last_target;
	if (m->last_target)
		m->last_target->next = t;
	else
		m->targets = t;
	m->last_target = t;
	m->ntargets++;
	return t;
}

void import_target_drop(struct import_model *m, struct import_target *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		m->targets = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		m->last_target = t->prev;
	m->ntargets--;
}

/* Inserts a LUN by its number; files have most of them in order. */
static void insert_lun(struct import_luns *luns, struct import_lun *l)
{
	struct import_lun **at = &luns->first;

	if (luns->last && luns->last->number < l->number)
		at = &luns->last->next;
	while (*at && (*at)->number < l->number)
		at = &(*at)->next;
	l->next = *at;
	*at = l;
	if (!l->next)
		luns->last = l;
	luns->n++;
}

const struct import_lun *import_lun_find(const struct import_model *m,
					 const struct import_luns *luns,
					 unsigned long number)
{
	char key[24];

	snprintf(key, sizeof(key), "%lu", number);
	return pool_get(&m->pool, luns, key);
}

struct import_lun *import_lun_add(struct import_model *m,
				  struct import_luns *luns,
				  const struct tree *at, unsigned long number,
				  const struct import_unit *unit,
				  bool read_only)
{
	const char *unit_key = pool_format(&m->pool, "u%s", unit->name);
	struct import_lun *l = pool_get(&m->pool, luns, unit_key);

	if (number > IMPORT_LUN_MAX)
		import_note(m, at,
			    "LUN %lu: left out: more than %u; choose a smaller "
			    "number",
			    number, IMPORT_LUN_MAX);
	else if (import_lun_find(m, luns, number))
		import_note(m, at,
			    "LUN %lu: %s left out: the number is in use; "
			    "choose another number",
			    number, unit->store);
	else if (l)
		import_note(m, at,
			    "LUN %lu: left out: %s is LUN %u of the same map; "
			    "serve it once",
			    number, unit->store, l->number);
	if (l || number > IMPORT_LUN_MAX || import_lun_find(m, luns, number))
		return NULL;
	l = pool_alloc(&m->pool, sizeof(*l));
	l->number = (unsigned)number;
	l->unit = unit;
	l->read_only = read_only;
	insert_lun(luns, l);
	pool_put(&m->pool, luns, pool_format(&m->pool, "%lu", number), l);
	pool_put(&m->pool, luns, unit_key, l);
	return l;
}

struct import_map *import_map_add(struct import_model *m,
				  struct import_target *t,
				  const char *initiator)
{
	struct import_map *map = pool_alloc(&m->pool, sizeof(*map));

	import_texts_add(m, &map->initiators, initiator);
	if (t->last_map)
		t->last_map->next = map;
	else
		t->maps = map;
	t->last_map = map;
	return map;
}
