/* SPDX-License-Identifier: BSD-2-Clause */
/* url.c: iscsi://[USER[%PASSWORD]@]HOST[:PORT]/IQN/LUN[?KEY=VALUE...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal.h"

struct parse {
	struct iser_url *url;
	char *why;
	size_t size;
};

static int bad(const struct parse *p, const char *what, const char *text)
{
	snprintf(p->why, p->size, "%s: '%.100s'", what, text);
	return ISER_E_INVALID;
}

/* Copies [from, to), which must fit and not be empty. */
static int take(const struct parse *p, char *out, size_t size, const char *from,
		const char *to, const char *what)
{
	size_t n = (size_t)(to - from);

	if (n == 0)
		return bad(p, what, "(empty)");
	if (n >= size)
		return bad(p, what, "(too long)");
	memcpy(out, from, n);
	out[n] = '\0';
	return 0;
}

static int take_number(const struct parse *p, const char *text, unsigned max,
		       unsigned *out, const char *what)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v > max)
		return bad(p, what, text);
	*out = (unsigned)v;
	return 0;
}

/* ---- USER[%PASSWORD]@ ---- */

static int take_user(const struct parse *p, const char *from, const char *at)
{
	const char *percent = memchr(from, '%', (size_t)(at - from));
	struct iser_url *u = p->url;
	int err = take(p, u->user, sizeof(u->user), from,
		       percent ? percent : at, "user name in the URL");

	if (err || !percent)
		return err;
	return take(p, u->password, sizeof(u->password), percent + 1, at,
		    "password in the URL");
}

/* ---- HOST[:PORT], [V6][:PORT] ---- */

static int take_host(const struct parse *p, const char *from, const char *to)
{
	struct iser_url *u = p->url;
	const char *end = to, *colon = NULL;
	char port[8];
	unsigned n;
	int err;

	if (*from == '[') {
		end = memchr(from, ']', (size_t)(to - from));
		if (!end)
			return bad(p, "no ']' after the address", from);
		from++;
		if (end + 1 < to)
			colon = end + 1;
		if (colon && *colon != ':')
			return bad(p, "host", from);
	} else {
		colon = memchr(from, ':', (size_t)(to - from));
		if (colon)
			end = colon;
	}
	err = take(p, u->host, sizeof(u->host), from, end, "host");
	if (err || !colon)
		return err;
	err = take(p, port, sizeof(port), colon + 1, to, "port");
	if (!err)
		err = take_number(p, port, 65535, &n, "port");
	if (!err)
		u->port = (uint16_t)n;
	return err;
}

/* ---- ?KEY=VALUE&... ---- */

/* One of the words in list ("a|b|c"), whole. */
static int take_word(const struct parse *p, char *out, size_t size,
		     const char *v, const char *list, const char *what)
{
	size_t n = strlen(v);

	for (const char *w = list; w; w = strchr(w, '|')) {
		w += *w == '|';
		if (n && !strncmp(w, v, n) && (w[n] == '|' || !w[n])) {
			snprintf(out, size, "%s", v);
			return 0;
		}
	}
	return bad(p, what, v);
}

static int take_digest(const struct parse *p, char *out, size_t size,
		       const char *v)
{
	return take_word(p, out, size, v, "none|crc32c|none,crc32c|crc32c,none",
			 "a digest is none, crc32c, none,crc32c or "
			 "crc32c,none");
}

static int take_text(const struct parse *p, char *out, size_t size,
		     const char *v)
{
	return take(p, out, size, v, v + strlen(v), "value in the URL");
}

static int take_rdma_key(const struct parse *p, const char *key, const char *v)
{
	struct iser_url *u = p->url;

	if (!strcmp(key, "start"))
		return take_word(p, u->start, sizeof(u->start), v,
				 "rdma|stream", "start is rdma or stream");
	if (!strcmp(key, "compat"))
		return take_word(p, u->compat, sizeof(u->compat), v,
				 "linux|strict", "compat is linux or strict");
	if (!strcmp(key, "rcap"))
		return take_word(p, u->rcap, sizeof(u->rcap), v, "iwarp|verbs",
				 "rcap is iwarp or verbs");
	if (strcmp(key, "transport") != 0)
		return bad(p, "unknown key in the URL", key);
	if (!strcmp(v, "tcp"))
		v = "iscsi";
	return take_word(p, u->transport, sizeof(u->transport), v,
			 "iscsi|iser|auto", "transport is tcp, iser or auto");
}

static int take_key(const struct parse *p, const char *key, const char *v)
{
	struct iser_url *u = p->url;

	if (!strcmp(key, "header_digest"))
		return take_digest(p, u->header_digest,
				   sizeof(u->header_digest), v);
	if (!strcmp(key, "data_digest"))
		return take_digest(p, u->data_digest, sizeof(u->data_digest),
				   v);
	if (!strcmp(key, "initiator"))
		return take_text(p, u->initiator, sizeof(u->initiator), v);
	if (!strcmp(key, "timeout"))
		return take_number(p, v, 86400, &u->timeout, "timeout");
	if (!strcmp(key, "depth"))
		return take_number(p, v, 4096, &u->depth, "depth");
	if (!strcmp(key, "reconnect"))
		return take_number(p, v, 1000, &u->reconnect, "reconnect");
	if (!strcmp(key, "priority"))
		return take_number(p, v, 15, &u->priority, "priority");
	if (!strcmp(key, "target_user"))
		return take_text(p, u->target_user, sizeof(u->target_user), v);
	if (!strcmp(key, "target_password"))
		return take_text(p, u->target_password,
				 sizeof(u->target_password), v);
	return take_rdma_key(p, key, v);
}

static int take_query(const struct parse *p, const char *q)
{
	char pair[512];

	while (*q) {
		const char *end = strchrnul(q, '&');
		char *eq;
		int err = take(p, pair, sizeof(pair), q, end, "key in the URL");

		if (err)
			return err;
		eq = strchr(pair, '=');
		if (!eq)
			return bad(p, "no '=' in the URL's key", pair);
		*eq = '\0';
		err = take_key(p, pair, eq + 1);
		if (err)
			return err;
		q = *end ? end + 1 : end;
	}
	return 0;
}

/* ---- the whole ---- */

static void from_environment(char *out, size_t size, const char *name)
{
	const char *v = getenv(name);

	if (!*out && v)
		snprintf(out, size, "%s", v);
}

static void fill_from_environment(struct iser_url *u)
{
	from_environment(u->user, sizeof(u->user), "LIBISCSI_CHAP_USERNAME");
	from_environment(u->password, sizeof(u->password),
			 "LIBISCSI_CHAP_PASSWORD");
	from_environment(u->target_user, sizeof(u->target_user),
			 "LIBISCSI_CHAP_TARGET_USERNAME");
	from_environment(u->target_password, sizeof(u->target_password),
			 "LIBISCSI_CHAP_TARGET_PASSWORD");
}

/* The target proves itself within an exchange that the user begins, and with
 * a secret of its own (RFC 7143 §9.2.1). */
static int check_chap(const struct parse *p)
{
	const struct iser_url *u = p->url;

	if (u->target_user[0] && !u->user[0])
		return bad(p,
			   "target_user goes with a user and password of "
			   "one's own",
			   u->target_user);
	if (u->target_user[0] && !strcmp(u->password, u->target_password))
		return bad(p,
			   "password and target_password must differ "
			   "(RFC 7143 §9.2.1)",
			   u->target_user);
	return 0;
}

/* /IQN/LUN behind the host; in discovery either may be left out. */
static int take_path(const struct parse *p, const char *path, const char *end,
		     bool discovery)
{
	struct iser_url *u = p->url;
	const char *slash;
	char lun[8];
	unsigned n;
	int err;

	if (path == end || path + 1 == end)
		return discovery ? 0
				 : bad(p, "the URL names no target",
				       "expected iscsi://HOST[:PORT]/IQN/LUN");
	path++;
	slash = memchr(path, '/', (size_t)(end - path));
	err = take(p, u->target, sizeof(u->target), path, slash ? slash : end,
		   "target name");
	if (err)
		return err;
	if (!slash)
		return discovery ? 0
				 : bad(p, "the URL names no LUN",
				       "expected iscsi://HOST[:PORT]/IQN/LUN");
	err = take(p, lun, sizeof(lun), slash + 1, end, "LUN");
	if (!err)
		err = take_number(p, lun, 16383, &n, "LUN");
	if (!err)
		u->lun = (int)n;
	return err;
}

void lib_default_url(struct iser_url *url)
{
	memset(url, 0, sizeof(*url));
	strcpy(url->transport, "iscsi");
	strcpy(url->start, "rdma");
	strcpy(url->rcap, "iwarp");
	strcpy(url->header_digest, "none,crc32c");
	strcpy(url->data_digest, "none,crc32c");
	url->port = DEFAULT_PORT;
	url->lun = -1;
	url->depth = DEFAULT_DEPTH;
	url->timeout = DEFAULT_TIMEOUT;
}

int iser_url_parse(struct iser_url *url, const char *text, bool discovery,
		   char *why, size_t size)
{
	struct parse p = { .url = url, .why = why, .size = size };
	const char *s = text, *end, *slash, *at;
	int err = 0;

	lib_default_url(url);
	if (size)
		why[0] = '\0';
	if (!strncmp(s, "iscsi://", 8)) {
		s += 8;
	} else if (!strncmp(s, "iser://", 7)) {
		s += 7;
		strcpy(url->transport, "iser");
	} else if (!discovery || strstr(s, "://")) {
		return bad(&p, "not an iscsi:// or iser:// URL", text);
	}
	end = strchrnul(s, '?');
	slash = memchr(s, '/', (size_t)(end - s));
	if (!slash)
		slash = end;
	at = memrchr(s, '@', (size_t)(slash - s));
	if (at) {
		err = take_user(&p, s, at);
		s = at + 1;
	}
	if (!err)
		err = take_host(&p, s, slash);
	if (!err)
		err = take_path(&p, slash, end, discovery);
	if (!err && *end)
		err = take_query(&p, end + 1);
	if (!err)
		fill_from_environment(url);
	return err ? err : check_chap(&p);
}
