/* SPDX-License-Identifier: BSD-2-Clause */
/* look_identity.c: see look_identity.h. */
#include "daemon/apply/look_identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log/say.h"
#include "daemon/luns/identities.h"
#include "daemon/luns/identity.h"
#include "daemon/luns/state.h"

/* Without a state directory that can be read, only files show what they had. */
static bool can_look(const struct look_at *at, enum lun_kind kind)
{
	return kind == LUN_FILE ||
	       ((kind == LUN_CD || kind == LUN_NBD) &&
		(identities_state(at->all) || !at->m->options.state));
}

/* Finds the identity of a backstore. False: it is not known, or, with a message, refused. */
static bool find_identity(struct look_at *at,
			  const char *(*owner)(void *arg,
					       const uint8_t uuid[16]),
			  struct identity *id)
{
	const struct cfg_backstore *b = &at->m->backstores.v[at->index];
	struct lun_spec *spec = lun_spec_new(b->store, b->pi, b->key, NULL);
	struct identity_query q = {
		.spec = spec,
		.backstore = b->head.name,
		.is_command_line = at->m->is_command_line,
		.fd = -1,
		.read_only = b->lun.read_only,
		.is_shared = b->lun.shared || b->lun.cluster,
		.is_check = true,
		.owner = owner,
		.arg = at,
	};
	bool good = spec && can_look(at, spec->kind);

	if (good && spec->kind == LUN_FILE)
		q.fd = open(spec->store,
			    O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	good = good && (q.fd >= 0 || spec->kind != LUN_FILE) &&
	       identity_find(at->all, &q, id);
	if (q.fd >= 0)
		close(q.fd);
	free(spec);
	return good;
}

static void ignore(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* ---- the owners of identities ---- */

struct owner {
	uint8_t uuid[16];
	unsigned index; /* of the backstore */
};

struct identity_owners {
	unsigned n;
	struct owner v[];
};

static int compare_owners(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return memcmp(x->uuid, y->uuid, 16);
}

static void list_owners(struct look_at at, struct identity_owners *o)
{
	struct identity id;

	for (at.index = 0; at.index < at.m->backstores.n; at.index++) {
		const uint8_t *has =
			cfg_given_uuid(&at.m->backstores.v[at.index]);

		if (!has && find_identity(&at, NULL, &id))
			has = id.uuid;
		if (!has)
			continue;
		memcpy(o->v[o->n].uuid, has, 16);
		o->v[o->n++].index = at.index;
	}
	qsort(o->v, o->n, sizeof(o->v[0]), compare_owners);
}

/* Once for all backstores, which may be thousands. NULL: no memory. */
static const struct identity_owners *owners_of(const struct look_at *at)
{
	struct say_tap tap = { .take = ignore, .is_only = true };
	struct identity_owners *o = *at->owners;
	struct say_hold why;

	if (o)
		return o;
	o = calloc(1, sizeof(*o) + at->m->backstores.n * sizeof(struct owner));
	if (!o)
		return NULL;
	*at->owners = o;
	say_tap(&tap);
	say_hold(&why);
	list_owners(*at, o);
	say_release(&why, false);
	say_untap(&tap);
	return o;
}

const char *identity_look_owner(void *look_at, const uint8_t uuid[16])
{
	const struct look_at *at = look_at;
	const struct identity_owners *o = owners_of(at);
	struct owner key = { 0 };
	const struct owner *found;

	memcpy(key.uuid, uuid, 16);
	found = o ? bsearch(&key, o->v, o->n, sizeof(key), compare_owners)
		  : NULL;
	if (!found || found->index == at->index)
		return NULL;
	return at->m->backstores.v[found->index].head.name;
}

void identity_owners_end(struct identity_owners **owners)
{
	free(*owners);
	*owners = NULL;
}

/* ---- all of a configuration ---- */

/* A warning, at a place. */
struct warning {
	struct cfg_errors *to;
	struct cfg_place at;
};

static void take_warning(void *arg, const char *text)
{
	const struct warning *w = arg;

	cfg_error(w->to, w->at, "%s", text);
}

void identity_look(const struct cfg_model *m, struct identities *all,
		   const bool *is_new, struct cfg_errors *errors,
		   struct cfg_errors *warnings)
{
	struct identity_owners *owners = NULL;
	struct look_at at = { .m = m, .all = all, .owners = &owners };

	for (; at.index < m->backstores.n; at.index++) {
		const struct cfg_backstore *b = &m->backstores.v[at.index];
		struct warning w = { warnings, cfg_head_at(&b->head, NULL) };
		struct say_tap tap = { take_warning, &w, .is_only = true };
		struct identity id;
		struct say_hold why;

		if (cfg_given_uuid(b) || (is_new && !is_new[at.index]))
			continue;
		say_tap(&tap);
		say_hold(&why);
		(void)find_identity(&at, identity_look_owner, &id);
		say_release(&why, false);
		say_untap(&tap);
		if (*why.text)
			cfg_error(errors, w.at, "backstore %.80s: %s",
				  b->head.name, why.text);
	}
	identity_owners_end(&owners);
}

void identity_look_state(const struct cfg_model *m, struct cfg_errors *errors,
			 struct cfg_errors *warnings)
{
	const char *path = m->options.state;
	struct state *s = path ? state_look(path) : NULL;
	struct identities *all;
	struct say_hold why;

	say_hold(&why);
	all = identities_new(s);
	say_release(&why, false);
	if (all)
		identity_look(m, all, NULL, errors, warnings);
	else
		cfg_error(errors, (struct cfg_place){ 0 }, "%s", why.text);
	identities_free(all);
	state_close(s);
}
