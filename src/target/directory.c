/* SPDX-License-Identifier: BSD-2-Clause */
/* directory.c: builds, searches and frees a directory (directory.h). */
#include "target/directory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "iscsi/names.h"
#include "target/entries.h"
#include "target/target.h"

#define NAME_SHOWN 100 /* bytes of a name in the text of an error */

/* ---- errors ---- */

static int fail(struct tgt_directory *d, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct tgt_directory *d, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->why, sizeof(d->why), fmt, ap);
	va_end(ap);
	return err;
}

static int fail_nomem(struct tgt_directory *d)
{
	return fail(d, ERR_NOMEM, "%s", err_str(ERR_NOMEM));
}

const char *tgt_directory_why(const struct tgt_directory *d)
{
	return d->why;
}

/* auth_group returns an existing group; own_group one that was added. */
static struct tgt_auth_group *auth_group(struct tgt_directory *d, unsigned i)
{
	if (i < d->nauth_groups)
		return d->auth_groups[i];
	fail(d, 0, "there is no auth group %u", i);
	return NULL;
}

static struct tgt_auth_group *own_group(struct tgt_directory *d, unsigned i)
{
	if (i > TGT_AUTH_NONE)
		return auth_group(d, i);
	fail(d, 0, "auth group %u cannot be changed", i);
	return NULL;
}

static struct tgt_portal_group *portal_group(struct tgt_directory *d,
					     unsigned i)
{
	if (i < d->nportal_groups)
		return d->portal_groups[i];
	fail(d, 0, "there is no portal group %u", i);
	return NULL;
}

static struct tgt_target *target(struct tgt_directory *d, unsigned i)
{
	if (i < d->ntargets)
		return d->targets[i];
	fail(d, 0, "there is no target %u", i);
	return NULL;
}

/* ---- arrays ---- */

/* Makes room for one more than n elements; the array has room for the next power
 * of two. False: out of memory. */
static bool make_room(void **array, unsigned n, size_t size)
{
	void *more;

	if (n & (n - 1))
		return true;
	more = realloc(*array, (n ? 2 * (size_t)n : 1) * size);
	if (more)
		*array = more;
	return more != NULL;
}

#define MAKE_ROOM(array, n) make_room((void **)&(array), n, sizeof((array)[0]))

static char *copy_text(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

/* ---- auth groups ---- */

static void free_patterns(struct tgt_patterns *p)
{
	for (unsigned i = 0; i < p->n; i++)
		free(p->list[i]);
	free(p->list);
}

static void free_account(struct tgt_account *a)
{
	if (!a)
		return;
	free_patterns(&a->initiators);
	explicit_bzero(a, sizeof(*a));
	free(a);
}

static int add_pattern(struct tgt_directory *d, struct tgt_patterns *p,
		       const char *pattern)
{
	char name[ISCSI_NAME_MAX + 1], why[ISCSI_NAME_WHY];
	char *copy;

	if (iscsi_pattern_prepare(name, pattern, why))
		return fail(d, ERR_FORMAT, "%.*s: %s", NAME_SHOWN, pattern,
			    why);
	copy = copy_text(name);
	if (!copy || !MAKE_ROOM(p->list, p->n)) {
		free(copy);
		return fail_nomem(d);
	}
	p->list[p->n++] = copy;
	return 0;
}

static void free_auth_group(struct tgt_auth_group *g)
{
	struct list *n;

	while ((n = list_pop_front(&g->accounts)))
		free_account(list_entry(n, struct tgt_account, link));
	free_account(g->mutual);
	free_patterns(&g->initiators);
	free(g->addresses);
	free(g);
}

int tgt_auth_group_add(struct tgt_directory *d)
{
	struct tgt_auth_group *g = calloc(1, sizeof(*g));

	if (!g || !MAKE_ROOM(d->auth_groups, d->nauth_groups)) {
		free(g);
		return fail_nomem(d);
	}
	list_init(&g->accounts);
	d->auth_groups[d->nauth_groups] = g;
	return (int)d->nauth_groups++;
}

/* [RFC 7143: 9.2.1 #6-7 #9] */
static bool same_secret(const struct iscsi_chap_secret *a,
			const struct iscsi_chap_secret *b)
{
	return a->secret_len == b->secret_len &&
	       memcmp(a->secret, b->secret, a->secret_len) == 0;
}

/* Checks an account against those of the group; mutual: it is the target's. */
/* [RFC 7143: 9.2.1 #5] */
static int check_account(struct tgt_directory *d,
			 const struct tgt_auth_group *g,
			 const struct iscsi_chap_secret *s, bool mutual)
{
	if (!s->name[0] || !s->secret_len)
		return fail(d, ERR_FORMAT, "an account without %s",
			    s->name[0] ? "a secret" : "a name");
	if (!mutual && g->mutual && same_secret(&g->mutual->secret, s))
		return fail(
			d, ERR_FORMAT,
			"account %.*s has the secret of the mutual account; "
			"the two must differ (RFC 7143 §9.2.1)",
			NAME_SHOWN, s->name);
	list_for_each(it, &g->accounts) {
		const struct iscsi_chap_secret *other =
			&list_entry(it, struct tgt_account, link)->secret;

		if (mutual && same_secret(other, s))
			return fail(d, ERR_FORMAT,
				    "the mutual account has the secret of "
				    "account %.*s; the two must differ "
				    "(RFC 7143 §9.2.1)",
				    NAME_SHOWN, other->name);
		if (!mutual && strcmp(other->name, s->name) == 0)
			return fail(d, ERR_BUSY, "account %.*s is given twice",
				    NAME_SHOWN, s->name);
	}
	return 0;
}

static struct tgt_account *new_account(const struct iscsi_chap_secret *s)
{
	struct tgt_account *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	list_init(&a->link);
	a->secret = *s;
	return a;
}

int tgt_auth_group_account(struct tgt_directory *d, unsigned group,
			   const struct iscsi_chap_secret *account)
{
	struct tgt_auth_group *g = own_group(d, group);
	struct tgt_account *a;
	int err;

	if (!g)
		return ERR_NOT_FOUND;
	err = check_account(d, g, account, false);
	if (err)
		return err;
	a = new_account(account);
	if (!a)
		return fail_nomem(d);
	list_push_back(&g->accounts, &a->link);
	return 0;
}

int tgt_auth_group_account_initiator(struct tgt_directory *d, unsigned group,
				     const char *pattern)
{
	struct tgt_auth_group *g = own_group(d, group);

	if (!g || list_empty(&g->accounts))
		return ERR_NOT_FOUND;
	return add_pattern(d,
			   &list_entry(g->accounts.prev, struct tgt_account,
				       link)
				    ->initiators,
			   pattern);
}

int tgt_auth_group_mutual(struct tgt_directory *d, unsigned group,
			  const struct iscsi_chap_secret *account)
{
	struct tgt_auth_group *g = own_group(d, group);
	int err;

	if (!g)
		return ERR_NOT_FOUND;
	if (g->mutual)
		return fail(d, ERR_BUSY, "the mutual account is given twice");
	err = check_account(d, g, account, true);
	if (err)
		return err;
	g->mutual = new_account(account);
	return g->mutual ? 0 : fail_nomem(d);
}

int tgt_auth_group_initiator(struct tgt_directory *d, unsigned group,
			     const char *pattern)
{
	struct tgt_auth_group *g = own_group(d, group);

	return g ? add_pattern(d, &g->initiators, pattern) : ERR_NOT_FOUND;
}

int tgt_auth_group_address(struct tgt_directory *d, unsigned group,
			   const uint8_t address[16], unsigned bits)
{
	struct tgt_auth_group *g = own_group(d, group);
	struct tgt_prefix *p;

	if (!g)
		return ERR_NOT_FOUND;
	if (bits > 128)
		return fail(d, ERR_RANGE,
			    "a prefix of %u bits; 0 to 128 are "
			    "possible",
			    bits);
	if (!MAKE_ROOM(g->addresses, g->naddresses))
		return fail_nomem(d);
	p = &g->addresses[g->naddresses++];
	memcpy(p->address, address, sizeof(p->address));
	p->bits = bits;
	return 0;
}

int tgt_auth_group_algorithms(struct tgt_directory *d, unsigned group,
			      const char *algorithms)
{
	struct tgt_auth_group *g = own_group(d, group);

	if (!g)
		return ERR_NOT_FOUND;
	if (strlen(algorithms) >= sizeof(g->algorithms))
		return fail(d, ERR_TOO_LONG, "too many algorithms of CHAP");
	strcpy(g->algorithms, algorithms);
	return 0;
}

/* ---- portal groups ---- */

static void free_portal_group(struct tgt_portal_group *g)
{
	for (unsigned i = 0; i < g->naddresses; i++)
		free(g->addresses[i]);
	free(g->addresses);
	free(g);
}

int tgt_portal_group_add(struct tgt_directory *d,
			 const struct tgt_portal_group_config *cfg)
{
	struct tgt_portal_group *g;

	if (!auth_group(d, cfg->discovery_auth))
		return ERR_NOT_FOUND;
	if (tgt_directory_portal_group(d, cfg->tag))
		return fail(d, ERR_BUSY,
			    "two portal groups have the tag %u; give each a "
			    "tag of its own",
			    cfg->tag);
	g = calloc(1, sizeof(*g));
	if (!g || !MAKE_ROOM(d->portal_groups, d->nportal_groups)) {
		free(g);
		return fail_nomem(d);
	}
	g->cfg = *cfg;
	d->portal_groups[d->nportal_groups] = g;
	return (int)d->nportal_groups++;
}

int tgt_portal_group_address(struct tgt_directory *d, unsigned group,
			     const char *address)
{
	struct tgt_portal_group *g = portal_group(d, group);
	char *copy;

	if (!g)
		return ERR_NOT_FOUND;
	if (strlen(address) >= TGT_ADDR_STR)
		return fail(d, ERR_TOO_LONG,
			    "a portal address is longer than %d bytes",
			    TGT_ADDR_STR - 1);
	copy = copy_text(address);
	if (!copy || !MAKE_ROOM(g->addresses, g->naddresses)) {
		free(copy);
		return fail_nomem(d);
	}
	g->addresses[g->naddresses++] = copy;
	return 0;
}

/* ---- targets ---- */

static void free_mask(struct tgt_mask *m)
{
	free_patterns(&m->initiators);
	free(m->account);
	dev_map_put(m->map);
}

static void free_redirect(struct tgt_redirect *r)
{
	free_patterns(&r->initiators);
	for (unsigned i = 0; i < r->naddresses; i++)
		free(r->addresses[i]);
	free(r->addresses);
}

static void free_target(struct tgt_target *t)
{
	free((char *)t->cfg.name);
	free((char *)t->cfg.alias);
	for (unsigned i = 0; i < t->nmasks; i++)
		free_mask(&t->masks[i]);
	free(t->masks);
	for (unsigned i = 0; i < t->nredirects; i++)
		free_redirect(&t->redirects[i]);
	free(t->redirects);
	dev_map_put(t->cfg.map);
	free(t->ports);
	free(t);
}

static struct tgt_target *new_target(const struct tgt_target_config *cfg,
				     const char *name)
{
	struct tgt_target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->cfg = *cfg;
	dev_map_get(t->cfg.map);
	t->cfg.name = copy_text(name);
	t->cfg.alias = copy_text(cfg->alias ? cfg->alias : "");
	t->named.name = t->cfg.name;
	if (t->cfg.name && t->cfg.alias)
		return t;
	free_target(t);
	return NULL;
}

/* [RFC 7143: 4.2.7.1 #1] */
static int check_target(struct tgt_directory *d,
			const struct tgt_target_config *cfg,
			char name[ISCSI_NAME_MAX + 1])
{
	char why[ISCSI_NAME_WHY];

	if (!auth_group(d, cfg->auth_group))
		return ERR_NOT_FOUND;
	if (iscsi_name_prepare(name, cfg->name, cfg->strict_names, why))
		return fail(d, ERR_FORMAT, "%.*s: %s", NAME_SHOWN, cfg->name,
			    why);
	if (cfg->alias && strlen(cfg->alias) > ISCSI_NAME_MAX)
		return fail(d, ERR_FORMAT,
			    "the alias of %.*s is longer than "
			    "%d bytes",
			    NAME_SHOWN, cfg->name, ISCSI_NAME_MAX);
	if (tgt_names_find(&d->names, name))
		return fail(d, ERR_BUSY, "two targets have the name %.*s",
			    NAME_SHOWN, name);
	return 0;
}

int tgt_target_add(struct tgt_directory *d, const struct tgt_target_config *cfg)
{
	char name[ISCSI_NAME_MAX + 1];
	int err = check_target(d, cfg, name);
	struct tgt_target *t;

	if (err)
		return err;
	t = new_target(cfg, name);
	if (!t || !MAKE_ROOM(d->targets, d->ntargets) ||
	    tgt_names_add(&d->names, &t->named)) {
		if (t)
			free_target(t);
		return fail_nomem(d);
	}
	d->targets[d->ntargets] = t;
	return (int)d->ntargets++;
}

int tgt_target_portal_group(struct tgt_directory *d, unsigned index,
			    unsigned group)
{
	const struct tgt_portal_group *g = portal_group(d, group);
	struct tgt_target *t = target(d, index);

	if (!t || !g)
		return ERR_NOT_FOUND;
	if (tgt_target_port(d, t, g->cfg.tag))
		return fail(d, ERR_BUSY,
			    "target %.*s has the portal group with tag %u "
			    "twice",
			    NAME_SHOWN, t->cfg.name, g->cfg.tag);
	if (!MAKE_ROOM(t->ports, t->nports))
		return fail_nomem(d);
	t->ports[t->nports++] = (struct tgt_port){ .portal_group = group };
	return 0;
}

int tgt_target_map(struct tgt_directory *d, unsigned index,
		   const struct tgt_map_config *cfg)
{
	struct tgt_target *t = target(d, index);
	struct tgt_mask m = { .map = NULL };
	int err = 0;

	if (!t)
		return ERR_NOT_FOUND;
	for (unsigned i = 0; i < cfg->ninitiators && !err; i++)
		err = add_pattern(d, &m.initiators, cfg->initiators[i]);
	m.account = !err && cfg->account ? copy_text(cfg->account) : NULL;
	if (!err &&
	    ((cfg->account && !m.account) || !MAKE_ROOM(t->masks, t->nmasks)))
		err = fail_nomem(d);
	if (err) {
		free_mask(&m);
		return err;
	}
	m.map = dev_map_get(cfg->map);
	t->masks[t->nmasks++] = m;
	return 0;
}

static int add_address(struct tgt_directory *d, struct tgt_redirect *r,
		       const char *address)
{
	char *copy;

	if (strlen(address) >= ISCSI_REDIRECT_STR)
		return fail(d, ERR_TOO_LONG,
			    "an address of a redirection is longer than %d "
			    "bytes",
			    ISCSI_REDIRECT_STR - 1);
	if (strchr(address, ','))
		return fail(d, ERR_FORMAT,
			    "%s: the address of a redirection has no portal "
			    "group tag (RFC 7143 §13.8); leave out what "
			    "follows the comma",
			    address);
	copy = copy_text(address);
	if (!copy || !MAKE_ROOM(r->addresses, r->naddresses)) {
		free(copy);
		return fail_nomem(d);
	}
	r->addresses[r->naddresses++] = copy;
	return 0;
}

/* [RFC 7143: 13.8 #1] */
int tgt_target_redirect(struct tgt_directory *d, unsigned index,
			const struct tgt_redirect_config *cfg)
{
	struct tgt_redirect r = { .permanent = cfg->permanent };
	struct tgt_target *t = target(d, index);
	int err = 0;

	if (!t || !cfg->naddresses)
		return ERR_NOT_FOUND;
	for (unsigned i = 0; i < cfg->ninitiators && !err; i++)
		err = add_pattern(d, &r.initiators, cfg->initiators[i]);
	for (unsigned i = 0; i < cfg->naddresses && !err; i++)
		err = add_address(d, &r, cfg->addresses[i]);
	if (!err && !MAKE_ROOM(t->redirects, t->nredirects))
		err = fail_nomem(d);
	if (err) {
		free_redirect(&r);
		return err;
	}
	t->redirects[t->nredirects++] = r;
	return 0;
}

/* ---- searching ---- */

const struct tgt_target *tgt_directory_target(const struct tgt_directory *d,
					      const char *name)
{
	struct tgt_named *e = tgt_names_find(&d->names, name);

	return e ? container_of(e, struct tgt_target, named) : NULL;
}

const struct tgt_portal_group *
tgt_directory_portal_group(const struct tgt_directory *d, unsigned tag)
{
	for (unsigned i = 0; i < d->nportal_groups; i++)
		if (d->portal_groups[i]->cfg.tag == tag)
			return d->portal_groups[i];
	return NULL;
}

const struct tgt_port *tgt_target_port(const struct tgt_directory *d,
				       const struct tgt_target *t, unsigned tag)
{
	for (unsigned i = 0; i < t->nports; i++)
		if (d->portal_groups[t->ports[i].portal_group]->cfg.tag == tag)
			return &t->ports[i];
	return NULL;
}

/* ---- the whole ---- */

struct tgt_directory *tgt_directory_new(void)
{
	struct tgt_directory *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	if (tgt_auth_group_add(d) != (int)TGT_AUTH_ANY ||
	    tgt_auth_group_add(d) != (int)TGT_AUTH_NONE) {
		tgt_directory_free(d);
		return NULL;
	}
	d->auth_groups[TGT_AUTH_NONE]->admits_none = true;
	return d;
}

void tgt_directory_set(struct tgt_directory *d, const struct tgt_settings *s)
{
	d->has_settings = true;
	d->settings = *s;
}

void tgt_directory_free(struct tgt_directory *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->nauth_groups; i++)
		free_auth_group(d->auth_groups[i]);
	for (unsigned i = 0; i < d->nportal_groups; i++)
		free_portal_group(d->portal_groups[i]);
	for (unsigned i = 0; i < d->ntargets; i++)
		free_target(d->targets[i]);
	free(d->auth_groups);
	free(d->portal_groups);
	free(d->targets);
	tgt_names_fini(&d->names);
	free(d);
}
