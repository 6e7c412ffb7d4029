/* SPDX-License-Identifier: BSD-2-Clause */
/* model_check.c: resolves the names in a model, and checks what no row of
 * nouns.c can say. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "daemon/config/groups.h"
#include "daemon/config/model.h"
#include "daemon/config/model_cluster.h"
#include "daemon/config/schema.h"
#include "daemon/config/setters.h"
#include "iscsi/login.h"
#include "iscsi/names.h"
#include "net/conn.h"
#include "net/net.h"

struct checker {
	struct cfg_model *m;
	struct cfg_errors *errors;
	char object[320]; /* that is being checked, as error texts name it */
	struct cfg_head *head; /* of the object */
	unsigned *seen;	       /* by backstore: the last map that has it */
	unsigned nmaps;
};

static void set_object(struct checker *c, struct cfg_head *h, const char *fmt,
		       ...) __attribute__((format(printf, 3, 4)));

static void set_object(struct checker *c, struct cfg_head *h, const char *fmt,
		       ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->object, sizeof(c->object), fmt, ap);
	va_end(ap);
	c->head = h;
}

/* Reports an error at a field of the object; NULL: at the object itself. */
static void complain(struct checker *c, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void complain(struct checker *c, const char *field, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cfg_complain(c->errors, c->head, c->object, field, fmt, ap);
	va_end(ap);
}

/* ---- references ---- */

/* Returns the index of a noun in the array of its section; -1: there is none. */
static int index_of(const struct cfg_model *m, const char *section,
		    const char *name)
{
	const json_t *all = json_object_get(m->index, section);
	const json_t *i = json_object_get(all, name);

	return i ? (int)json_integer_value(i) : -1;
}

/* Finds a name in the mapping `section` of the file and sets *index. False after
 * a message: there is none. */
static bool resolve(struct checker *c, const char *field, const char *name,
		    const char *section, const char *noun, unsigned *index)
{
	int found = index_of(c->m, section, name);
	const char *key;
	struct nearest n;
	json_t *v;

	*index = (unsigned)found;
	if (found >= 0)
		return true;
	nearest_begin(&n, name);
	json_object_foreach(json_object_get(c->m->index, section), key, v)
		nearest_try(&n, key);
	if (n.best)
		complain(c, field, "%.64s: no such %s; did you mean %s?", name,
			 noun, n.best);
	else
		complain(c, field, "%.64s: no such %s; add it to %s", name,
			 noun, section);
	return false;
}

struct cfg_backstore *cfg_backstore_find(const struct cfg_model *m,
					 const char *name)
{
	int i = index_of(m, "backstores", name);

	return i < 0 ? NULL : &m->backstores.v[i];
}

static void resolve_auth(struct checker *c, const char *field, const char *name,
			 int *auth)
{
	unsigned index;

	*auth = CFG_AUTH_NONE;
	if (!name)
		return;
	if (!strcmp(name, "any"))
		*auth = CFG_AUTH_ANY;
	else if (strcmp(name, "none") != 0 &&
		 resolve(c, field, name, "auth-groups", "auth group", &index))
		*auth = (int)index;
}

static void check_name(struct checker *c)
{
	char why[OPT_WHY];

	if (cfg_check_name(NULL, c->head->name, why))
		complain(c, NULL, "%s", why);
}

static void *allocate(struct checker *c, size_t n, size_t size)
{
	void *p = cfg_arena_alloc(&c->m->arena, n * size);

	if (!p)
		complain(c, NULL, "out of memory");
	return p;
}

/* Adds a name in the form of RFC 3722 to a list that has room for it. */
static void add_prepared(struct checker *c, struct cfg_texts *list,
			 const char *name)
{
	char prepared[224];

	cfg_prepare_initiator(prepared, name);
	list->v[list->n] =
		cfg_arena_text(&c->m->arena, prepared, strlen(prepared));
	if (list->v[list->n])
		list->n++;
	else
		complain(c, NULL, "out of memory");
}

static void prepare_all(struct checker *c, struct cfg_texts *out,
			const struct cfg_texts *names)
{
	out->v = allocate(c, names->n, sizeof(*out->v));
	for (unsigned i = 0; out->v && i < names->n; i++)
		add_prepared(c, out, names->v[i]);
}

/* ---- backstores ---- */

static void check_suffix(struct checker *c, const char *name, const char *value,
			 enum lun_kind kind)
{
	const struct cfg_suffix *rows;
	size_t n;

	rows = cfg_suffixes(&n);
	for (size_t i = 0; value && i < n; i++)
		if (!strcmp(rows[i].row.opt.name, name) &&
		    !(rows[i].kinds & 1u << kind))
			complain(c, name, "%s", rows[i].refusal);
}

static void check_inquiry(struct checker *c, const char *field,
			  const char *text, size_t max, enum lun_kind kind)
{
	if (!text)
		return;
	if (kind == LUN_SCSI)
		complain(c, field,
			 "a scsi: backstore reports that of its device; leave "
			 "it out");
	else if (!*text || strlen(text) > max)
		complain(c, field, "%.64s: not 1 to %zu characters", text, max);
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e) {
			complain(c, field, "not ASCII, which SCSI demands");
			return;
		}
}

static void check_id(struct checker *c, const char *field,
		     const struct dev_id *id, enum lun_kind kind)
{
	if (id->len && kind == LUN_SCSI)
		complain(c, field,
			 "a scsi: backstore reports that of its device; leave "
			 "it out");
}

static void check_size(struct checker *c, const char *operand,
		       const struct cfg_backstore *b)
{
	uint32_t block = b->lun.block_size ? b->lun.block_size : 512;
	uint64_t size;

	if (!opt_size(operand, &size))
		complain(
			c, "store",
			"%.64s: not a size; give bytes, or a number with K, M, "
			"G or T, for example ram:1G",
			operand);
	else if (!size || size % block)
		complain(c, "store",
			 "%.64s: not a multiple of the block size %u; give "
			 "another size",
			 operand, block);
}

/* The command line has these checks where the stores are opened. */
static void check_store(struct checker *c, const struct cfg_backstore *b,
			enum lun_kind kind, const char *operand)
{
	const char *suffix = lun_spec_has_suffix(b->store);

	if (suffix)
		complain(c, "store",
			 "has the suffix ,%s= of the command line; give the "
			 "field %s",
			 suffix, suffix);
	if (kind == LUN_RAM || kind == LUN_NULL)
		check_size(c, operand, b);
	else if (!*operand && (kind != LUN_CD || b->key || b->new_key))
		complain(c, "store", "no file or device; give a path");
	check_suffix(c, "pi", b->pi, kind);
	check_suffix(c, "key", b->key, kind);
	check_suffix(c, "new-key", b->new_key, kind);
}

static void check_backstore(struct checker *c, struct cfg_backstore *b)
{
	const char *operand;
	enum lun_kind kind;

	set_object(c, &b->head, "backstore %.80s", b->head.name);
	check_name(c);
	if (!b->store)
		return;
	if (strlen(b->store) >= PATH_MAX)
		complain(c, "store", "too long; give a shorter path");
	kind = lun_spec_kind(b->store, &operand);
	if (!c->m->is_command_line)
		check_store(c, b, kind, operand);
	if (b->key && b->new_key)
		complain(c, "new-key", "given with key; give one of the two");
	check_inquiry(c, "serial", b->serial, 36, kind);
	check_inquiry(c, "vendor", b->vendor, 8, kind);
	check_inquiry(c, "product", b->product, 16, kind);
	check_inquiry(c, "revision", b->revision, 4, kind);
	check_id(c, "naa", &b->naa, kind);
	check_id(c, "eui", &b->eui, kind);
	if (b->cache == CFG_WRITE_THROUGH && kind == LUN_SCSI)
		complain(c, "cache",
			 "a scsi: backstore has the cache of its device; leave "
			 "it out");
}

/* ---- auth groups ---- */

static void check_account(struct checker *c, struct cfg_account *a)
{
	if (a->user &&
	    strlen(a->user) >= sizeof(((struct iscsi_chap_secret *)0)->name))
		complain(c, "user",
			 "longer than %zu bytes; give a shorter name",
			 sizeof(((struct iscsi_chap_secret *)0)->name) - 1);
}

/* users: the numbers of the accounts so far, by their users. */
static void check_user(struct checker *c, const struct cfg_account *a,
		       json_t *users, unsigned number)
{
	const json_t *first = json_object_get(users, a->user);

	if (first)
		complain(c, "user",
			 "%.64s: already account %u of the group; give each "
			 "user once",
			 a->user, (unsigned)json_integer_value(first));
	else if (json_object_set_new_nocheck(users, a->user,
					     json_integer(number)))
		complain(c, NULL, "out of memory");
}

static void check_accounts(struct checker *c, struct cfg_auth *g)
{
	json_t *users = json_object();

	for (unsigned i = 0; i < g->accounts.n; i++) {
		struct cfg_account *a = &g->accounts.v[i];

		set_object(c, &a->head, "auth group %.80s: account %u",
			   g->head.name, i + 1);
		check_account(c, a);
		prepare_all(c, &a->names, &a->initiators);
		if (a->user)
			check_user(c, a, users, i + 1);
	}
	json_decref(users);
}

static bool has_text(const char *const *list, unsigned n, const char *text)
{
	while (n)
		if (!strcmp(list[--n], text))
			return true;
	return false;
}

static void check_auth(struct checker *c, struct cfg_auth *g)
{
	check_accounts(c, g);
	set_object(c, &g->head, "auth group %.80s", g->head.name);
	check_name(c);
	if (!strcmp(g->head.name, "any") || !strcmp(g->head.name, "none"))
		complain(c, NULL,
			 "any and none are built in; give another name");
	if (g->mutual.n)
		check_account(c, g->mutual.v);
	if (g->mutual.n && g->mutual.v->initiators.n)
		complain(c, "mutual",
			 "the account of the target is for every initiator; "
			 "leave out its initiators");
	if (g->mutual.n && !g->accounts.n)
		complain(c, "mutual",
			 "the group has no accounts, and the initiator "
			 "authenticates first; give accounts");
	prepare_all(c, &g->names, &g->initiators);
	for (unsigned k = 1; k < g->algorithms.n; k++)
		if (has_text(g->algorithms.v, k, g->algorithms.v[k]))
			complain(c, "algorithms",
				 "%.16s: given twice; give it once",
				 g->algorithms.v[k]);
	g->prefixes = allocate(c, g->addresses.n, sizeof(*g->prefixes));
	for (unsigned i = 0; g->prefixes && i < g->addresses.n; i++)
		(void)cfg_parse_prefix(g->addresses.v[i],
				       g->prefixes[i].address,
				       &g->prefixes[i].bits);
}

/* ---- portal groups ---- */

/* Returns whether one socket is at both addresses: Linux lets none listen at an address
 * beside one that listens at all addresses. */
static bool is_one_socket(const struct net_addr *a, const struct net_addr *b)
{
	static const char *const all[] = { "0.0.0.0:", "[::]:" };
	char x[NET_ADDR_STR], y[NET_ADDR_STR];

	net_addr_str(a, x);
	net_addr_str(b, y);
	for (unsigned i = 0; i < 2; i++)
		if (a->sa.ss_family == b->sa.ss_family &&
		    net_addr_port(a) == net_addr_port(b) &&
		    (!strncmp(x, all[i], strlen(all[i])) ||
		     !strncmp(y, all[i], strlen(all[i]))))
			return true;
	return !strcmp(x, y);
}

/* Returns the first portal group up to p that listens at the address, too. */
static const struct cfg_portal *
find_listen(const struct checker *c, const struct cfg_portal *p, unsigned at)
{
	struct net_addr a, b;

	(void)net_addr_parse_listen(&a, p->listen.v[at], 3260);
	if (!net_addr_port(&a)) /* any free port */
		return NULL;
	for (const struct cfg_portal *q = c->m->portals.v; q <= p; q++)
		for (unsigned i = 0; i < (q == p ? at : q->listen.n); i++) {
			(void)net_addr_parse_listen(&b, q->listen.v[i], 3260);
			if (is_one_socket(&a, &b))
				return q;
		}
	return NULL;
}

/* Returns whether the numbers are served at an address of the portal group. */
static bool has_metrics(const struct checker *c, const char *listen)
{
	const char *metrics = c->m->options.numbers.metrics;
	struct net_addr a, b;

	return metrics && *metrics != '/' &&
	       !net_addr_parse_listen(&a, metrics, METRICS_PORT) &&
	       !net_addr_parse_listen(&b, listen, 3260) && net_addr_port(&a) &&
	       is_one_socket(&a, &b);
}

static void check_listen(struct checker *c, const struct cfg_portal *p)
{
	for (unsigned i = 0; i < p->listen.n; i++) {
		const struct cfg_portal *q = find_listen(c, p, i);

		/* that of the command line ends with EXIT_NETWORK */
		if (q && !c->m->is_command_line)
			complain(c, "listen",
				 "%.64s: already an address of portal group "
				 "%.64s; give each address once",
				 p->listen.v[i], q->head.name);
		else if (has_metrics(c, p->listen.v[i]) &&
			 !c->m->is_command_line)
			complain(c, "listen",
				 "%.64s: already the address of metrics; give "
				 "another port",
				 p->listen.v[i]);
	}
	if (!p->listen.n && !p->verbs_listen.n && !p->head.is_bad)
		complain(c, NULL,
			 "listen: missing; give at least one address, for "
			 "example 0.0.0.0:3260");
	if (p->announce.n > ANNOUNCE_MAX)
		complain(c, "announce", "%u addresses; give at most %u",
			 p->announce.n, ANNOUNCE_MAX);
	if (p->verbs_listen.n && !(p->transports & NET_ALLOW_RDMA))
		complain(c, "verbs-listen",
			 "transport does not have iser; add it, or leave out "
			 "verbs-listen");
}

static void check_portal(struct checker *c, struct cfg_portal *p)
{
	set_object(c, &p->head, "portal group %.80s", p->head.name);
	check_name(c);
	for (const struct cfg_portal *q = c->m->portals.v; q < p; q++)
		if (q->tag == p->tag) {
			complain(c, "tag",
				 "%u: already the tag of portal group %.64s; "
				 "give another number (a portal group without "
				 "tag has tag 1)",
				 p->tag, q->head.name);
			break;
		}
	check_listen(c, p);
	resolve_auth(c, "discovery-auth", p->discovery_auth, &p->auth);
}

/* ---- LUNs ---- */

/* Reads a LUN without a leading zero, so that a LUN has one text. */
static bool read_lun(const char *text, unsigned *lun)
{
	size_t len = strlen(text);

	*lun = 0;
	if (!len || len > 5 || strspn(text, "0123456789") != len ||
	    (*text == '0' && len > 1))
		return false;
	*lun = (unsigned)strtoul(text, NULL, 10);
	return *lun <= CFG_LUN_MAX;
}

static int compare_luns(const void *a, const void *b)
{
	const struct cfg_lun *x = a, *y = b;

	return (x->lun > y->lun) - (x->lun < y->lun);
}

/* owner: as error texts name the target or map. */
static void check_luns(struct checker *c, struct cfg_luns *luns,
		       const struct cfg_head *of, const char *owner)
{
	json_t *all = json_object_get(of->document, "luns");

	c->nmaps++;
	for (unsigned i = 0; i < luns->n; i++) {
		struct cfg_lun *l = &luns->v[i];

		set_object(c, &l->head, "%.220s: LUN %.16s", owner,
			   l->head.name);
		if (!read_lun(l->head.name, &l->lun))
			complain(c, NULL, "not a number from 0 to %u",
				 CFG_LUN_MAX);
		if (!l->backstore ||
		    !resolve(c, "backstore", l->backstore, "backstores",
			     "backstore", &l->index))
			continue;
		if (l->index < c->m->backstores.n &&
		    c->seen[l->index] == c->nmaps)
			complain(c, "backstore",
				 "%.64s: already another LUN here; give each "
				 "backstore once",
				 l->backstore);
		else if (l->index < c->m->backstores.n)
			c->seen[l->index] = c->nmaps;
	}
	if (luns->n)
		qsort(luns->v, luns->n, sizeof(*luns->v), compare_luns);
	for (unsigned i = 0; i < luns->n; i++) { /* each to the end */
		const struct cfg_head *h = &luns->v[i].head;

		json_incref(h->document);
		(void)json_object_del(all, h->name);
		if (json_object_set_new_nocheck(all, h->name, h->document))
			cfg_error(c->errors, (struct cfg_place){ 0 },
				  "out of memory");
	}
}

/* ---- maps ---- */

/* Returns how many names these initiators have with their groups written out. */
static unsigned count_names(struct checker *c, const struct cfg_texts *from)
{
	unsigned n = 0, group;

	for (unsigned i = 0; i < from->n; i++) {
		const char *name = from->v[i];

		if (cfg_is_initiator_name(name))
			n++;
		else if (resolve(c, "initiators", name, "initiator-groups",
				 "initiator group", &group) &&
			 group < c->m->initiators.n)
			n += c->m->initiators.v[group].names.n;
	}
	return n;
}

static void add_group(struct checker *c, struct cfg_texts *names,
		      const char *name)
{
	const struct cfg_initiators *g =
		&c->m->initiators.v[index_of(c->m, "initiator-groups", name)];

	for (unsigned i = 0; i < g->names.n; i++)
		add_prepared(c, names, g->names.v[i]);
}

/* Resolves the initiators of the object that set_object named. */
static void resolve_initiators(struct checker *c, struct cfg_texts *names,
			       const struct cfg_texts *from, bool *is_bad)
{
	unsigned n = count_names(c, from);

	if (*is_bad)
		return;
	names->v = allocate(c, n, sizeof(*names->v));
	for (unsigned i = 0; names->v && i < from->n; i++)
		if (cfg_is_initiator_name(from->v[i]))
			add_prepared(c, names, from->v[i]);
		else
			add_group(c, names, from->v[i]);
}

/* auth: of the target. */
static void check_map_account(struct checker *c, const struct cfg_map *map,
			      int auth)
{
	const struct cfg_auth *g;

	if (!map->account || (auth >= 0 && (unsigned)auth >= c->m->auths.n))
		return; /* the auth group has an error */
	g = auth >= 0 ? &c->m->auths.v[auth] : NULL;
	for (unsigned i = 0; g && i < g->accounts.n; i++)
		if (g->accounts.v[i].user &&
		    !strcmp(g->accounts.v[i].user, map->account))
			return;
	complain(c, "account",
		 "%.64s: no account of the target's auth group%s%.80s; give "
		 "the user of one",
		 map->account, g ? " " : "", g ? g->head.name : "");
}

static void check_map(struct checker *c, struct cfg_map *map, const char *owner,
		      int auth)
{
	set_object(c, &map->head, "%s", owner);
	check_map_account(c, map, auth);
	resolve_initiators(c, &map->names, &map->initiators, &map->head.is_bad);
	if (!map->head.is_bad)
		check_luns(c, &map->luns, &map->head, owner);
}

/* ---- targets ---- */

static void check_portals_of(struct checker *c, struct cfg_target *t)
{
	unsigned n = t->portal_groups.n;

	t->portals = allocate(c, n, sizeof(*t->portals));
	for (unsigned i = 0; t->portals && i < n; i++) {
		const char *name = t->portal_groups.v[i];

		(void)resolve(c, "portal-groups", name, "portal-groups",
			      "portal group", &t->portals[i]);
		for (unsigned j = 0; j < i; j++)
			if (!strcmp(t->portal_groups.v[j], name)) {
				complain(c, "portal-groups",
					 "%.64s: given twice; give it once",
					 name);
				break;
			}
	}
}

static void check_target(struct checker *c, struct cfg_target *t)
{
	char why[ISCSI_NAME_WHY], owner[280];

	set_object(c, &t->head, "target %.230s", t->head.name);
	if (iscsi_name_prepare(t->name, t->head.name, false, why))
		complain(c, NULL,
			 "%s; give a name like iqn.2026-01.com.example:disk",
			 why);
	if (t->alias && strlen(t->alias) > ISCSI_NAME_MAX)
		complain(c, "alias",
			 "longer than 223 bytes; give a shorter one");
	resolve_auth(c, "auth-group", t->auth_group, &t->auth);
	check_portals_of(c, t);
	snprintf(owner, sizeof(owner), "target %.230s", t->head.name);
	check_luns(c, &t->luns, &t->head, owner);
	for (unsigned i = 0; i < t->maps.n; i++) {
		snprintf(owner, sizeof(owner), "target %.230s: map %u",
			 t->head.name, i + 1);
		check_map(c, &t->maps.v[i], owner, t->auth);
	}
	for (unsigned i = 0; i < t->redirects.n; i++) {
		set_object(c, &t->redirects.v[i].head,
			   "target %.230s: redirection %u", t->head.name,
			   i + 1);
		resolve_initiators(c, &t->redirects.v[i].names,
				   &t->redirects.v[i].initiators,
				   &t->redirects.v[i].head.is_bad);
	}
}

/* Returns all targets in an order; NULL: there are none, or no memory. */
static struct cfg_target **
sort_targets(struct checker *c, int (*compare)(const void *a, const void *b))
{
	unsigned n = c->m->targets.n;
	struct cfg_target **all;

	c->head = &c->m->head;
	all = n ? allocate(c, n, sizeof(struct cfg_target *)) : NULL;
	if (!all)
		return NULL;
	for (unsigned i = 0; i < n; i++)
		all[i] = &c->m->targets.v[i];
	qsort(all, n, sizeof(struct cfg_target *), compare);
	return all;
}

static int compare_targets(const void *a, const void *b)
{
	const struct cfg_target *const *x = a, *const *y = b;
	int order = strcmp((*x)->name, (*y)->name);

	return order ? order : (*x > *y) - (*x < *y);
}

/* Two names of the file may be one by RFC 3722. */
static void check_same_names(struct checker *c)
{
	struct cfg_target **all = sort_targets(c, compare_targets);

	for (unsigned i = 1; all && i < c->m->targets.n; i++) {
		if (!*all[i]->name || strcmp(all[i - 1]->name, all[i]->name))
			continue;
		set_object(c, &all[i]->head, "target %.230s",
			   all[i]->head.name);
		complain(c, NULL,
			 "the same name as %.230s (RFC 3722); give another one",
			 all[i - 1]->head.name);
	}
}

static int compare_tgt_ids(const void *a, const void *b)
{
	const struct cfg_target *const *x = a, *const *y = b;

	if ((*x)->tgt_id != (*y)->tgt_id)
		return (*x)->tgt_id > (*y)->tgt_id ? 1 : -1;
	return (*x > *y) - (*x < *y);
}

static void check_tgt_ids(struct checker *c)
{
	struct cfg_target **all = sort_targets(c, compare_tgt_ids);

	for (unsigned i = 1; all && i < c->m->targets.n; i++) {
		if (!all[i]->tgt_id || all[i - 1]->tgt_id != all[i]->tgt_id)
			continue;
		set_object(c, &all[i]->head, "target %.230s",
			   all[i]->head.name);
		complain(c, "tgt-id",
			 "%u: already the number of %.230s; give another one",
			 all[i]->tgt_id, all[i - 1]->head.name);
	}
}

/* ---- target port groups ---- */

static bool has_port(const struct dev_group *g, unsigned port)
{
	for (unsigned i = 0; i < g->nports; i++)
		if (g->ports[i] == port)
			return true;
	return false;
}

static void check_ports(struct checker *c, struct cfg_alua *a)
{
	struct dev_group *g = &a->group;

	for (unsigned i = 0; i < a->ports.n; i++) {
		uint16_t port = (uint16_t)strtoul(a->ports.v[i], NULL, 10);

		for (const struct cfg_alua *b = c->m->aluas.v; b <= a; b++)
			if (has_port(&b->group, port) && !c->m->is_command_line)
				complain(c, "ports",
					 "%u: already a port of group %.16s; "
					 "give each port once",
					 port, b->head.name);
		if (g->nports < DEV_GROUP_PORTS)
			g->ports[g->nports++] = port;
	}
	if (a->ports.n > DEV_GROUP_PORTS)
		complain(c, "ports", "more than %d; give fewer",
			 DEV_GROUP_PORTS);
}

static void check_alua(struct checker *c, struct cfg_alua *a)
{
	char why[OPT_WHY];

	set_object(c, &a->head, "ALUA group %.80s", a->head.name);
	if (cfg_check_port(NULL, a->head.name, why))
		complain(c, NULL, "not a number from 1 to 65535");
	a->group.id = (uint16_t)strtoul(a->head.name, NULL, 10);
	a->group.state = group_state_at(a->state);
	a->group.preferred = a->preferred;
	check_ports(c, a);
}

/* ---- all ---- */

static void check_count(struct checker *c, const char *section, unsigned n,
			unsigned max)
{
	set_object(c, &c->m->head, "%s", section);
	if (n > max)
		complain(c, NULL, "%u are given; give at most %u", n, max);
}

static void check_nouns(struct checker *c)
{
	struct cfg_model *m = c->m;

	for (unsigned i = 0; i < m->backstores.n; i++)
		check_backstore(c, &m->backstores.v[i]);
	for (unsigned i = 0; i < m->auths.n; i++)
		check_auth(c, &m->auths.v[i]);
	for (unsigned i = 0; i < m->portals.n; i++)
		check_portal(c, &m->portals.v[i]);
	for (unsigned i = 0; i < m->initiators.n; i++) {
		struct cfg_initiators *g = &m->initiators.v[i];

		set_object(c, &g->head, "initiator group %.80s", g->head.name);
		check_name(c);
		if (cfg_is_initiator_name(g->head.name))
			complain(c, NULL,
				 "the name looks like that of an "
				 "initiator; give another one");
		prepare_all(c, &g->prepared, &g->names);
	}
	for (unsigned i = 0; i < m->targets.n; i++)
		check_target(c, &m->targets.v[i]);
	for (unsigned i = 0; i < m->aluas.n; i++)
		check_alua(c, &m->aluas.v[i]);
	check_same_names(c);
	check_tgt_ids(c);
}

bool cfg_model_check(struct cfg_model *m, struct cfg_errors *e)
{
	struct checker c = { .m = m, .errors = e, .head = &m->head };
	unsigned before = e->n;

	c.seen = allocate(&c, m->backstores.n, sizeof(*c.seen));
	if (!c.seen)
		return false;
	check_count(&c, "backstores", m->backstores.n, CFG_BACKSTORES_MAX);
	check_count(&c, "targets", m->targets.n, CFG_TARGETS_MAX);
	check_count(&c, "alua-groups", m->aluas.n, DEV_MAX_GROUPS);
	check_nouns(&c);
	cfg_cluster_check(m, e);
	return e->n == before;
}
