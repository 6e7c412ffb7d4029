/* SPDX-License-Identifier: BSD-2-Clause */
/* conns.c: the caller adds a connection to a session that is logged in, and logs out of
 * one (RFC 7143 §6.3.1, §11.14). */
#include <stdio.h>
#include <string.h>

#include "lib/internal.h"

unsigned iser_get_connections(const struct iser_session *s, uint16_t *cids,
			      unsigned max)
{
	unsigned n = 0;

	if (s->set && s->set->ops->current(s))
		s = s->set->ops->current(s);
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++) {
		if (!s->conns[i].net || !s->conns[i].is_up)
			continue;
		if (n < max)
			cids[n] = s->conns[i].cid;
		n++;
	}
	return n;
}

/* Returns 0 if connections may be added and removed. */
static int check_session(struct iser_session *s)
{
	if (s->set)
		return lib_fail(s->ctx, ISER_E_INVALID,
				"a session of several paths: its connections "
				"cannot be changed");
	if (s->state != SESSION_UP)
		return lib_fail(s->ctx, ISER_E_CLOSED,
				"%s at %s:%u: the session is not connected",
				s->url.target, s->url.host, s->url.port);
	if (s->adding.done || s->removing.done)
		return lib_fail(s->ctx, ISER_E_INVALID,
				"another connection is being added or removed");
	return 0;
}

/* ---- add ---- */

int iser_add_connection_start(struct iser_session *s,
			      void (*done)(void *arg, int err, unsigned cid),
			      void *arg)
{
	int err = check_session(s);
	unsigned most;

	if (err)
		return err;
	most = ini_params(s->ini)->max_connections;
	if (iser_get_connections(s, NULL, 0) >= most)
		return lib_fail(s->ctx, ISER_E_INVALID,
				"the session has %u connections already, "
				"which is MaxConnections as negotiated",
				most);
	s->adding = (struct lib_adding){ .done = done, .arg = arg };
	err = lib_session_add(s);
	if (err)
		s->adding.done = NULL;
	return err;
}

struct added {
	bool over;
	int err;
	unsigned cid;
};

static void on_added(void *arg, int err, unsigned cid)
{
	*(struct added *)arg =
		(struct added){ .over = true, .err = err, .cid = cid };
}

int iser_add_connection(struct iser_session *s, unsigned *cid)
{
	struct added a = { 0 };
	int err = iser_add_connection_start(s, on_added, &a);

	if (!err)
		err = lib_wait(s->ctx, &a.over);
	*cid = a.cid;
	return err ? err : a.err;
}

/* ---- remove ---- */

static int remove_failed(struct iser_session *s, int err)
{
	switch (err) {
	case 0:
		return 0;
	case ERR_NOT_FOUND:
		return lib_fail(s->ctx, ISER_E_NOT_FOUND,
				"the session has no connection with this CID");
	case ERR_UNSUPPORTED:
		return lib_fail(s->ctx, ISER_E_INVALID,
				"the last connection of a session cannot be "
				"removed; disconnect the session");
	case ERR_TIMEOUT:
		return lib_fail(s->ctx, ISER_E_TIMEOUT,
				"the connection has commands in progress");
	default:
		return lib_request_failed(s, err, "Logout of a connection");
	}
}

static void on_left(struct ini_request *r, int err,
		    const struct dm_control *rsp)
{
	struct iser_session *s =
		container_of(r, struct iser_session, removing.request);
	struct lib_removing was = s->removing;

	(void)rsp;
	s->removing.done = NULL;
	if (err != ERR_TIMEOUT)
		was.conn->is_up = false; /* its transport ends now */
	was.done(was.arg, err == ERR_UNSUPPORTED
				  ? lib_fail(s->ctx, ISER_E_PROTOCOL,
					     "the target refuses the Logout of "
					     "the connection")
				  : remove_failed(s, err));
}

int iser_remove_connection_start(struct iser_session *s, unsigned cid,
				 unsigned timeout,
				 void (*done)(void *arg, int err), void *arg)
{
	xtime deadline =
		timeout ? io_now_exact() + timeout * XTIME_S : XTIME_NEVER;
	int err = check_session(s);

	if (err)
		return err;
	if (cid >= LIB_CONNECTIONS_MAX)
		return remove_failed(s, ERR_NOT_FOUND);
	s->removing = (struct lib_removing){ .request = { .done = on_left },
					     .conn = &s->conns[cid],
					     .done = done,
					     .arg = arg };
	err = remove_failed(s, ini_conn_leave(s->ini, (uint16_t)cid,
					      &s->removing.request, deadline));
	if (err)
		s->removing.done = NULL;
	return err;
}

struct removed {
	bool over;
	int err;
};

static void on_removed(void *arg, int err)
{
	*(struct removed *)arg = (struct removed){ .over = true, .err = err };
}

int iser_remove_connection(struct iser_session *s, unsigned cid,
			   unsigned timeout)
{
	struct removed r = { 0 };
	int err = iser_remove_connection_start(s, cid, timeout, on_removed, &r);

	if (!err)
		err = lib_wait(s->ctx, &r.over);
	return err ? err : r.err;
}
