/* SPDX-License-Identifier: BSD-2-Clause */
/* secrets.c: reads the secrets of CHAP. */
#include "daemon/secrets.h"

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

static bool is_same(const struct iscsi_chap_secret *a,
		    const struct iscsi_chap_secret *b)
{
	return a->secret_len && a->secret_len == b->secret_len &&
	       !memcmp(a->secret, b->secret, a->secret_len);
}

/* Reads the secret of an account; an error gets the place of its field. */
static bool check_account(const struct cfg_auth *g, const struct cfg_account *a,
			  struct iscsi_chap_secret *s, struct cfg_errors *e)
{
	const struct cfg_node *v = cfg_node_get(a->head.node, "secret-file");
	struct cfg_place at = v ? v->at : (struct cfg_place){ 0 };
	char why[256];

	if (chap_secret_read(s, a->user, a->secret_file, why, sizeof(why)))
		return true;
	cfg_error(e, at, "auth group %.80s: secret-file: %.200s: %s",
		  g->head.name, a->secret_file, why);
	return false;
}

static void check_group(const struct cfg_auth *g, struct cfg_errors *e)
{
	struct iscsi_chap_secret in = { 0 }, out = { 0 };
	const struct cfg_account *mutual = g->mutual.v;
	const struct cfg_node *v;

	if (g->mutual.n && !check_account(g, mutual, &out, e))
		explicit_bzero(&out, sizeof(out));
	for (unsigned i = 0; i < g->accounts.n; i++) {
		explicit_bzero(&in, sizeof(in));
		if (!check_account(g, &g->accounts.v[i], &in, e) ||
		    !is_same(&in, &out))
			continue;
		v = cfg_node_get(mutual->head.node, "secret-file");
		cfg_error(e, v ? v->at : (struct cfg_place){ 0 },
			  "auth group %.80s: mutual: has the secret of account "
			  "%u; the two must differ (RFC 7143 §9.2.1)",
			  g->head.name, i + 1);
	}
	explicit_bzero(&in, sizeof(in));
	explicit_bzero(&out, sizeof(out));
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
	unsigned before = e->n;

	for (unsigned i = 0; i < m->auths.n; i++)
		if (in_service || !is_of_service(&m->auths.v[i]))
			check_group(&m->auths.v[i], e);
	return e->n == before;
}
