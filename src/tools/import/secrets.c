/* SPDX-License-Identifier: BSD-2-Clause */
/* secrets.c: the files of CHAP secrets. The configuration file of iserd names
 * them and never contains a secret. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/import/model.h"

typedef void for_account(struct import_model *m, struct import_auth *a,
			 struct import_account *c);

static void each_account(struct import_model *m, for_account *f)
{
	for (struct import_auth *a = m->auths; a; a = a->next) {
		for (struct import_account *c = a->accounts; c; c = c->next)
			f(m, a, c);
		if (a->mutual)
			f(m, a, a->mutual);
	}
}

/* The scope of the accounts of initiators, by their secrets. */
static const char by_secret;

static void index_secret(struct import_model *m, struct import_auth *a,
			 struct import_account *c)
{
	if (c != a->mutual)
		pool_put(&m->pool, &by_secret, c->secret, c);
}

/* Why iserd would refuse the secret, or NULL. That of a target must be the secret of no
 * initiator, of whatever target (RFC 7143 §9.2.1). */
static const char *secret_refusal(struct import_model *m,
				  const struct import_auth *a,
				  const struct import_account *c)
{
	const struct import_account *o;
	size_t len = strlen(c->secret);

	if (len < IMPORT_SECRET_MIN || len > IMPORT_SECRET_MAX)
		return pool_format(&m->pool,
				   "has %zu bytes, and iserd takes %u to %u",
				   len, IMPORT_SECRET_MIN, IMPORT_SECRET_MAX);
	o = c == a->mutual ? pool_get(&m->pool, &by_secret, c->secret) : NULL;
	return o ? pool_format(&m->pool,
			       "is that of user %s in line %u, and the two "
			       "must differ",
			       o->user, o->at->line)
		 : NULL;
}

/* Groups have different names; within a group the files are numbered. */
static void name_secret(struct import_model *m, struct import_auth *a,
			struct import_account *c)
{
	const char *why;

	c->file = c == a->mutual
			  ? pool_format(&m->pool, "%s/%s.mutual.secret",
					m->secrets_dir, a->name)
			  : pool_format(&m->pool, "%s/%s.%u.secret",
					m->secrets_dir, a->name, c->number);
	why = secret_refusal(m, a, c);
	c->is_unusable = why != NULL;
	if (why)
		import_note(m, c->at,
			    "secret of user %s: not carried over: %s (RFC 7143 "
			    "§9.2.1); write a new secret to %s and to the "
			    "initiators",
			    c->user, why, c->file);
}

void import_name_secrets(struct import_model *m)
{
	each_account(m, index_secret);
	each_account(m, name_secret);
}

/* Writes a secret to its file, which must not exist. Returns 0 or an errno. */
static int write_secret(const struct import_account *c)
{
	int fd = open(c->file,
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      0600);
	size_t len = strlen(c->secret);
	int err;

	if (fd < 0)
		return errno;
	errno = ENOSPC; /* of a write that is not complete */
	err = write(fd, c->secret, len) == (ssize_t)len &&
			      write(fd, "\n", 1) == 1 && !fsync(fd)
		      ? 0
		      : errno;
	if (close(fd) && !err)
		err = errno;
	if (err)
		unlink(c->file);
	return err;
}

/* The accounts whose files were written, for the case of a later failure. */
struct written {
	struct written *next;
	const char *file;
};

static int write_account(struct import_model *m, const struct import_account *c,
			 struct written **done)
{
	struct written *w;
	int err;

	if (c->is_unusable)
		return 0;
	err = write_secret(c);
	if (err) {
		fprintf(stderr,
			"iserctl: import: %s: cannot make the file of a "
			"secret: %s; %s\n",
			c->file, strerror(err),
			err == EEXIST ? "give an empty directory with --secrets"
				      : "give another directory with "
					"--secrets");
		return err;
	}
	w = pool_alloc(&m->pool, sizeof(*w));
	w->file = c->file;
	w->next = *done;
	*done = w;
	return 0;
}

int import_write_secrets(struct import_model *m)
{
	struct written *done = NULL;
	int err = 0;

	for (struct import_auth *a = m->auths; a && !err; a = a->next) {
		for (struct import_account *c = a->accounts; c && !err;
		     c = c->next)
			err = write_account(m, c, &done);
		if (a->mutual && !err)
			err = write_account(m, a->mutual, &done);
	}
	for (; err && done; done = done->next)
		unlink(done->file);
	return err ? 1 : 0;
}

static void print_missing(const struct import_account *c, FILE *out)
{
	fprintf(out,
		"%s:%u: secret of user %s: not in the configuration file; "
		"write it to %s with mode 0600, or use --secrets\n",
		c->at->file, c->at->line, c->user, c->file);
}

void import_print_missing(const struct import_model *m, FILE *out)
{
	for (const struct import_auth *a = m->auths; a; a = a->next) {
		for (const struct import_account *c = a->accounts; c;
		     c = c->next)
			if (!c->is_unusable)
				print_missing(c, out);
		if (a->mutual && !a->mutual->is_unusable)
			print_missing(a->mutual, out);
	}
}
