/* SPDX-License-Identifier: BSD-2-Clause */
/* connect.c: the calls that connect a session of one path or of several, and
 * the text form of several URLs. */
#include <stdio.h>
#include <string.h>

#include "lib/path/calls.h"

/* ---- several URLs in one text ---- */

static bool is_url_start(const char *s)
{
	return !strncmp(s, "iscsi://", 8) || !strncmp(s, "iser://", 7);
}

/* Returns whether a separator of URLs is at s. A comma and white space are separators
 * only before another URL, white space also at the end: the values of keys have
 * commas, and a password may have spaces. */
static bool is_separator(const char *s)
{
	const char *after = s + strspn(s, " \t\n,");

	if (*s == ',')
		return is_url_start(s + 1);
	return after != s && (!*after || is_url_start(after));
}

static const char *url_end(const char *s)
{
	while (*s && !is_separator(s))
		s++;
	return s;
}

int iser_paths_parse(struct iser_url *urls, unsigned max, const char *text,
		     char *why, size_t size)
{
	unsigned n = 0;
	char one[2048];

	while (*(text += strspn(text, " \t\n,"))) {
		const char *end = url_end(text);
		int err = ISER_E_INVALID;

		if (n == MIN(max, (unsigned)ISER_PATHS_MAX)) {
			snprintf(why, size, "more than %u URLs", n);
			return ISER_E_INVALID;
		}
		if ((size_t)(end - text) >= sizeof(one)) {
			snprintf(why, size, "URL %u is too long", n + 1);
			return ISER_E_INVALID;
		}
		memcpy(one, text, (size_t)(end - text));
		one[end - text] = '\0';
		err = iser_url_parse(&urls[n], one, false, why, size);
		explicit_bzero(one, sizeof(one));
		if (err)
			return err;
		n++;
		text = end;
	}
	if (!n)
		return iser_url_parse(&urls[0], "", false, why, size);
	return (int)n;
}

/* ---- connecting ---- */

struct iser_session *iser_connect_paths_start(
	struct iser_context *ctx, const struct iser_url *urls, unsigned n,
	void (*done)(void *arg, struct iser_session *s, int err), void *arg,
	int *err)
{
	if (n == 1 && !urls[0].paths[0])
		return lib_connect_start(ctx, urls, done, arg, err);
	return lib_paths_connect(ctx, urls, n, done, arg, err);
}

struct iser_session *
iser_connect_start(struct iser_context *ctx, const struct iser_url *url,
		   void (*done)(void *arg, struct iser_session *s, int err),
		   void *arg, int *err)
{
	return iser_connect_paths_start(ctx, url, 1, done, arg, err);
}

struct connect_wait {
	bool over;
	int err;
};

static void on_connect_end(void *arg, struct iser_session *s, int err)
{
	struct connect_wait *w = arg;

	(void)s;
	w->over = true;
	w->err = err;
}

struct iser_session *iser_connect_paths(struct iser_context *ctx,
					const struct iser_url *urls, unsigned n,
					int *err)
{
	struct connect_wait w = { 0 };
	struct iser_session *s =
		iser_connect_paths_start(ctx, urls, n, on_connect_end, &w, err);

	if (!s)
		return NULL;
	*err = lib_wait(ctx, &w.over);
	if (!*err)
		*err = w.err;
	if (!*err)
		return s;
	iser_disconnect(s);
	return NULL;
}

struct iser_session *iser_connect(struct iser_context *ctx,
				  const struct iser_url *url, int *err)
{
	return iser_connect_paths(ctx, url, 1, err);
}
