/* SPDX-License-Identifier: BSD-2-Clause */
/* secrets.c: reads the secrets of CHAP. */
#include "daemon/apply/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/luns/private.h"
#include "iscsi/chap.h"

#define CHAP_SECRET_MIN 12 /* bytes; RFC 7143 §9.2.1: 96 bits */

/* Reads at most size bytes of a file that only iserd can read. NULL, or why that
 * did not work. */
static const char *read_private(const char *path, char *buf, size_t size,
				size_t *got)
{
	int fd = private_open_secret(path);
	const char *why = fd < 0 ? private_refusal(fd) : NULL;
	struct stat st;
	ssize_t n = 0;

	private_no_core();
	if (!why)
		why = fstat(fd, &st) ? strerror(errno) : private_complaint(&st);
	if (!why) {
		n = read(fd, buf, size);
		why = n < 0 ? strerror(errno) : NULL;
	}
	if (fd >= 0)
		close(fd);
	*got = n < 0 ? 0 : (size_t)n;
	return why;
}

#define LINE_END_MAX 2 /* "\r\n" */

/* Reads a secret of one line, without the end of the line. */
static bool read_secret(struct iscsi_chap_secret *s, const char *path,
			char *why, size_t size)
{
	char buf[sizeof(s->secret) + LINE_END_MAX + 1];
	size_t n, got;
	const char *reason = read_private(path, buf, sizeof(buf), &got);

	for (n = got; n && (buf[n - 1] == '\n' || buf[n - 1] == '\r');)
		n--;
	if (!reason)
		reason = chap_secret_complaint(buf, n);
	if (!reason && got == sizeof(buf))
		reason =
			"is too long for a secret of 12 to 128 bytes (RFC 7143 "
			"§9.2.1)";
	if (reason) {
		snprintf(why, size, "%s", reason);
	} else if (n < CHAP_SECRET_MIN || n > sizeof(s->secret)) {
		snprintf(why, size,
			 "has %zu bytes; give a secret of %d to %zu bytes (RFC "
			 "7143 §9.2.1)",
			 n, CHAP_SECRET_MIN, sizeof(s->secret));
		reason = why;
	} else {
		memcpy(s->secret, buf, n);
		s->secret_len = n;
	}
	explicit_bzero(buf, sizeof(buf));
	return !reason;
}

bool chap_secret_read(struct iscsi_chap_secret *s, const char *user,
		      const char *path, char *why, size_t size)
{
	if (strlen(user) >= sizeof(s->name)) {
		snprintf(why, size, "the name is longer than %zu bytes",
			 sizeof(s->name) - 1);
		return false;
	}
	memcpy(s->name, user, strlen(user) + 1);
	return read_secret(s, path, why, size);
}

/* Reads the secret of an account; an error gets the place of its field. */
static bool check_account(const struct cfg_auth *g, const struct cfg_account *a,
			  struct iscsi_chap_secret *s, struct cfg_errors *e)
{
	char why[256];

	if (chap_secret_read(s, a->user, a->secret_file, why, sizeof(why)))
		return true;
	cfg_error(e, cfg_head_at(&a->head, "secret-file"),
		  "auth group %.80s: secret-file: %.200s: %s", g->head.name,
		  a->secret_file, why);
	return false;
}

/* ---- one secret in both directions (RFC 7143 §9.2.1) ---- */

/* A secret by which a target proves itself, of an auth group. */
struct mutual {
	struct iscsi_chap_secret s;
	unsigned group;
};

struct checking {
	const struct cfg_model *m;
	struct cfg_errors *e;
	bool *is_left_out; /* for each auth group */
	bool *is_used;	   /* a target or discovery has the group */
	struct mutual *mutuals;
	unsigned n;
};

static void use(struct checking *c, int group)
{
	if (group >= 0)
		c->is_used[group] = true;
}

static int compare_secrets(const void *a, const void *b)
{
	const struct iscsi_chap_secret *x = &((const struct mutual *)a)->s,
				       *y = &((const struct mutual *)b)->s;

	if (x->secret_len != y->secret_len)
		return x->secret_len < y->secret_len ? -1 : 1;
	return memcmp(x->secret, y->secret, x->secret_len);
}

static void read_mutuals(struct checking *c)
{
	for (unsigned i = 0; i < c->m->auths.n; i++) {
		const struct cfg_auth *g = &c->m->auths.v[i];
		struct mutual *to = &c->mutuals[c->n];

		if (c->is_left_out[i] || !g->mutual.n)
			continue;
		to->group = i;
		if (check_account(g, g->mutual.v, &to->s, c->e))
			c->n++;
	}
	if (c->n)
		qsort(c->mutuals, c->n, sizeof(*c->mutuals), compare_secrets);
}

/* An initiator of a target of one group could have that target answer the challenge of a
 * target of the other. A group that nothing refers to is a list of accounts only. */
static bool is_danger(const struct checking *c, unsigned a, unsigned b)
{
	return a == b || (c->is_used[a] && c->is_used[b]);
}

/* [RFC 7143: 9.2.1 #6-7] */
/* Returns the group whose mutual account has the secret of an account; -1: none. */
static int find_reuse(const struct checking *c, const struct mutual *account)
{
	const struct mutual *end = c->mutuals + c->n;
	const struct mutual *found =
		c->n ? bsearch(account, c->mutuals, c->n, sizeof(*account),
			       compare_secrets)
		     : NULL;

	while (found && found > c->mutuals &&
	       !compare_secrets(found - 1, account))
		found--;
	for (; found && found < end && !compare_secrets(found, account);
	     found++)
		if (is_danger(c, found->group, account->group))
			return (int)found->group;
	return -1;
}

static void check_accounts(struct checking *c, unsigned group)
{
	const struct cfg_auth *g = &c->m->auths.v[group];
	struct mutual account = { .group = group };

	for (unsigned i = 0; i < g->accounts.n; i++) {
		const struct cfg_account *a = &g->accounts.v[i];
		int with = check_account(g, a, &account.s, c->e)
				   ? find_reuse(c, &account)
				   : -1;
		const struct cfg_auth *of =
			with < 0 ? NULL : &c->m->auths.v[with];

		if (of)
			cfg_error(c->e,
				  cfg_head_at(&of->mutual.v->head,
					      "secret-file"),
				  "auth group %.80s: mutual: has the secret of "
				  "account %.80s of auth group %.80s; the two "
				  "must differ (RFC 7143 §9.2.1)",
				  of->head.name, a->user, g->head.name);
		explicit_bzero(&account.s, sizeof(account.s));
	}
}

/* Returns whether only the service can read a secret of the group: iserctl check
 * of an administrator cannot. */
static bool is_of_service(const struct cfg_auth *g)
{
	static const char credential[] = "credential:";
	bool is = false;

	for (unsigned i = 0; i < g->accounts.n; i++)
		is |= !strncmp(g->accounts.v[i].secret_file, credential,
			       sizeof(credential) - 1);
	for (unsigned i = 0; i < g->mutual.n; i++)
		is |= !strncmp(g->mutual.v[i].secret_file, credential,
			       sizeof(credential) - 1);
	return is && !getenv("CREDENTIALS_DIRECTORY");
}

bool chap_secrets_check(const struct cfg_model *m, struct cfg_errors *e,
			bool in_service)
{
	size_t n = m->auths.n + 1;
	struct checking c = {
		.m = m,
		.e = e,
		.is_left_out = calloc(n, sizeof(bool)),
		.is_used = calloc(n, sizeof(bool)),
		.mutuals = calloc(n, sizeof(struct mutual)),
	};
	unsigned before = e->n;

	if (!c.is_left_out || !c.is_used || !c.mutuals) {
		cfg_error(e, (struct cfg_place){ 0 }, "out of memory");
		goto out;
	}
	for (unsigned i = 0; i < m->auths.n; i++)
		c.is_left_out[i] = !in_service && is_of_service(&m->auths.v[i]);
	for (unsigned i = 0; i < m->targets.n; i++)
		use(&c, m->targets.v[i].auth);
	for (unsigned i = 0; i < m->portals.n; i++)
		use(&c, m->portals.v[i].auth);
	read_mutuals(&c);
	for (unsigned i = 0; i < m->auths.n; i++)
		if (!c.is_left_out[i])
			check_accounts(&c, i);
out:
	if (c.mutuals)
		explicit_bzero(c.mutuals, n * sizeof(*c.mutuals));
	free(c.mutuals);
	free(c.is_used);
	free(c.is_left_out);
	return e->n == before;
}
