/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl.c: requests to the management socket of iserd. */
#include "tools/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/escape.h"

/* An iserd that is busy with a request answers another one; one that is stopped or hangs
 * does not. Closing a store may hold iserd up for five seconds. */
#define LOOK_TIME  3u
#define ALIVE_TIME 6u

/* ---- the socket ---- */

static int report_no_answer(const char *path, unsigned seconds)
{
	fprintf(stderr,
		"iserctl: %s: no answer within %u s; the request may still be "
		"carried out; --timeout waits longer\n",
		path, seconds);
	return EXIT_NO_DAEMON;
}

static int report_hanging(const char *path)
{
	fprintf(stderr,
		"iserctl: %s: iserd does not answer: it is stopped or hangs; "
		"the request may still be carried out if it goes on\n",
		path);
	return EXIT_NO_DAEMON;
}

/* Prints why there is no connection; returns the exit status for that. */
static int report_no_connection(const char *path, unsigned seconds, int err)
{
	switch (err) {
	case -ENAMETOOLONG:
		fprintf(stderr, "iserctl: %s: path too long\n", path);
		return EXIT_USAGE;
	case -ETIMEDOUT:
		return report_no_answer(path, seconds);
	case -EACCES:
	case -EPERM:
		fprintf(stderr,
			"iserctl: %s: permission denied; run iserctl as root "
			"or as the user that iserd runs as\n",
			path);
		return EXIT_PERMISSION;
	default:
		fprintf(stderr,
			"iserctl: %s: no iserd: %s; start iserd with --control "
			"%s, or give its socket with --socket\n",
			path, strerror(-err), path);
		return EXIT_NO_DAEMON;
	}
}

int ctl_open(struct rpc_link *l, const char *path, unsigned seconds)
{
	int err = rpc_link_open(l, path, MIN(seconds, ALIVE_TIME));

	if (err == -ETIMEDOUT && seconds > ALIVE_TIME)
		return report_hanging(path);
	return err ? report_no_connection(path, seconds, err) : EXIT_OK;
}

/* is_alive returns whether iserd answers another request. */
static bool is_alive(const char *path)
{
	struct rpc_link l = RPC_LINK_NONE;
	json_t *answer = NULL;
	int err = rpc_link_open(&l, path, ALIVE_TIME);

	if (!err)
		err = rpc_link_call(&l, "version", NULL, ALIVE_TIME, &answer);
	json_decref(answer);
	rpc_link_close(&l);
	return err != -ETIMEDOUT;
}

int ctl_call(struct rpc_link *l, const struct ctl_call *c, json_t **answer)
{
	unsigned wait = MIN(c->seconds, LOOK_TIME), left = c->seconds - wait;
	int err = rpc_link_call(l, c->method, json_incref(c->params), wait,
				answer);
	bool alive = true;

	while (err == -ETIMEDOUT && left && alive) {
		alive = is_alive(c->path);
		wait = MIN(left, LOOK_TIME);
		left -= wait;
		if (alive)
			err = rpc_link_read(l, wait, answer);
	}
	if (!err)
		return EXIT_OK;
	if (c->failed)
		c->failed();
	if (!alive)
		return report_hanging(c->path);
	if (err == -ETIMEDOUT)
		return report_no_answer(c->path, c->seconds);
	fprintf(stderr, "iserctl: %s: %s\n", c->path,
		err == -ECONNRESET ? "iserd closed the connection"
				   : "the answer of iserd is not valid "
				     "JSON-RPC 2.0");
	return EXIT_REFUSED;
}

/* ---- escaping ---- */

static json_t *plain_string(const char *text)
{
	size_t size = TEXT_ESCAPED_SIZE(strlen(text));
	char *plain = malloc(size);
	json_t *v =
		plain ? json_string(text_escape_str(plain, size, text)) : NULL;

	free(plain);
	return v;
}

/* Escapes every string in v: initiators choose their names. */
void ctl_make_plain(json_t *v)
{
	const char *key;
	json_t *item;
	void *next;
	size_t i;

	json_array_foreach(v, i, item)
	{
		if (json_is_string(item))
			json_array_set_new(
				v, i, plain_string(json_string_value(item)));
		else
			ctl_make_plain(item);
	}
	json_object_foreach_safe(v, next, key, item)
	{
		if (json_is_string(item))
			json_object_set_new(
				v, key, plain_string(json_string_value(item)));
		else
			ctl_make_plain(item);
	}
}
