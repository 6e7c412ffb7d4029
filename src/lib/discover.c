/* SPDX-License-Identifier: BSD-2-Clause */
/* discover.c: SendTargets in a discovery session (RFC 7143 appendix C). */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iscsi/text.h"
#include "lib/internal.h"

#define TEXT_MAX (1u << 20) /* of a whole SendTargets answer */

/* Limits of one discovery. A long list comes in parts of at most
 * MaxRecvDataSegmentLength bytes. */
#define DISCOVERY_TIME	  (60 * XTIME_S)
#define DISCOVERY_ROUNDS  4096
#define DISCOVERY_EMPTIES 16

struct iser_discovery {
	struct iser_context *ctx;
	struct iser_session *s;
	struct ini_request r;
	/* the text response so far */
	char *text;
	size_t len;
	struct iscsi_pdu last; /* the header of its last PDU */
	bool final;
	unsigned rounds, empties;
	xtime until;
	/* the result, reported after the logout */
	int err;
	struct iser_target *list;
	void (*done)(void *arg, int err, struct iser_target *list);
	void *arg;
};

/* ---- the list ---- */

/* The list of targets, and a tree of them by name. */
struct listing {
	struct iser_target **tail;
	void *by_name;	  /* of tsearch */
	const char *host; /* where the list comes from */
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct iser_target *)a)->name,
		      ((const struct iser_target *)b)->name);
}

static void keep_target(void *target)
{
	(void)target; /* the list has it */
}

/* Returns the target of that name, which it appends if there is none. */
static struct iser_target *add_target(struct listing *l, const char *name)
{
	struct iser_target *t = calloc(1, sizeof(*t)), **known;

	if (!t)
		return NULL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	known = tsearch(t, &l->by_name, compare_names);
	if (!known || *known != t) {
		free(t);
		return known ? *known : NULL;
	}
	*l->tail = t;
	l->tail = &t->next;
	return t;
}

/* Portals of one target; further ones are ignored. */
#define PORTALS_MAX 256

static int add_portal(const struct listing *l, struct iser_target *t,
		      const char *reported)
{
	struct iser_portal **p = &t->portals;
	char address[sizeof(t->address)];
	unsigned n = 0;

	if (!lib_put_zone(address, sizeof(address), reported, l->host))
		return ERR_FORMAT;
	for (; *p; p = &(*p)->next)
		if (!strcmp((*p)->address, address) || ++n == PORTALS_MAX)
			return 0;
	*p = calloc(1, sizeof(**p));
	if (!*p)
		return ERR_NOMEM;
	strcpy((*p)->address, address);
	if (!t->address[0])
		strcpy(t->address, address);
	return 0;
}

/* Appendix C: TargetName begins a target's part, its addresses follow. */
static int parse_targets(const struct iser_discovery *d,
			 struct iser_target **list)
{
	struct iscsi_text_iter it = iscsi_text_iter(d->text, d->len);
	struct listing l = { .tail = list, .host = d->s->url.host };
	struct iser_target *last = NULL;
	char key[ISCSI_KEY_NAME_MAX + 1];
	const char *value;
	int r, err = 0;

	while (!err && (r = iscsi_text_next(&it, key, &value)) > 0) {
		if (!strcmp(key, "TargetName")) {
			/* §4.2.7.2: 223 bytes at most */
			if (!*value || strlen(value) >= sizeof(last->name))
				err = ERR_FORMAT;
			else if (!(last = add_target(&l, value)))
				err = ERR_NOMEM;
		} else if (!strcmp(key, "TargetAddress") && last) {
			err = add_portal(&l, last, value);
		}
	}
	tdestroy(l.by_name, keep_target);
	return err ? err : r;
}

static void free_portals(struct iser_portal *list)
{
	while (list) {
		struct iser_portal *next = list->next;

		free(list);
		list = next;
	}
}

void iser_targets_free(struct iser_target *list)
{
	while (list) {
		struct iser_target *next = list->next;

		free_portals(list->portals);
		free(list);
		list = next;
	}
}

/* ---- responses ---- */

/* [RFC 7143: 11.10.4 #2] */
static int keep_text(struct iser_discovery *d, const struct dm_control *rsp)
{
	size_t dsl = rsp->pdu.dsl;
	char *more;

	d->last = rsp->pdu;
	d->final = rsp->pdu.final;
	/* §11.11.1 to §11.11.3: a response that is not final has a tag, and one
	 * that continues in the next PDU is not final */
	if (d->final ? rsp->pdu.cont : d->last.ttt == ISCSI_RESERVED_TAG)
		return ERR_FORMAT;
	if (dsl > TEXT_MAX - d->len)
		return ERR_LIMIT;
	d->empties += dsl == 0;
	if (dsl == 0)
		return 0;
	more = realloc(d->text, d->len + dsl);
	if (!more)
		return ERR_NOMEM;
	memcpy(more + d->len, rsp->data, dsl);
	d->text = more;
	d->len += dsl;
	return 0;
}

static void free_discovery(struct iser_discovery *d)
{
	iser_targets_free(d->list);
	free(d->text);
	free(d);
}

static void on_logged_out(void *arg)
{
	struct iser_discovery *d = arg;
	struct iser_target *list = d->list;

	d->list = NULL;
	d->done(d->arg, d->err, list);
	free_discovery(d);
}

static void end_discovery(struct iser_discovery *d, int err)
{
	struct iser_session *s = d->s;

	d->err = err;
	d->s = NULL;
	iser_disconnect_start(s, on_logged_out, d);
}

static void take_list(struct iser_discovery *d)
{
	int err = parse_targets(d, &d->list);

	if (err == ERR_NOMEM)
		err = lib_fail(d->ctx, ISER_E_NOMEM, "out of memory");
	else if (err)
		err = lib_fail(d->ctx, ISER_E_PROTOCOL,
			       "SendTargets at %s:%u: the answer is "
			       "not a list of targets",
			       d->s->url.host, d->s->url.port);
	if (err) {
		iser_targets_free(d->list);
		d->list = NULL;
	}
	end_discovery(d, err);
}

/* §11.10: after a response with F=0 the initiator asks for the rest with its
 * tag. */
/* [RFC 7143: 6.2 #3] */
static void ask_targets(struct iser_discovery *d)
{
	static const char ask[] = "SendTargets=All";
	bool first = d->rounds == 0;
	xtime deadline = MIN(lib_request_deadline(d->s), d->until);
	int err = lib_request_ready(d->s);

	if (!err)
		err = lib_request_failed(
			d->s,
			ini_text(d->s->ini, &d->r, ask, first ? sizeof(ask) : 0,
				 first ? NULL : &d->last, deadline),
			"SendTargets");
	if (err)
		end_discovery(d, err);
}

static void on_targets(struct ini_request *r, int err,
		       const struct dm_control *rsp)
{
	struct iser_discovery *d = container_of(r, struct iser_discovery, r);

	if (!err)
		err = keep_text(d, rsp);
	if (!d->s)
		return; /* iser_discover_cancel */
	if (err)
		end_discovery(d, lib_request_failed(d->s, err, "SendTargets"));
	else if (d->final)
		take_list(d);
	else if (++d->rounds > DISCOVERY_ROUNDS ||
		 d->empties > DISCOVERY_EMPTIES)
		end_discovery(d, lib_fail(d->ctx, ISER_E_PROTOCOL,
					  "SendTargets at %s:%u: no end after "
					  "%u responses, %u of them empty",
					  d->s->url.host, d->s->url.port,
					  d->rounds, d->empties));
	else
		ask_targets(d);
}

static void on_discovery_login(void *arg, struct iser_session *s, int err)
{
	struct iser_discovery *d = arg;

	(void)s;
	if (err) {
		end_discovery(d, err);
		return;
	}
	d->until = io_now_exact() + DISCOVERY_TIME;
	ask_targets(d);
}

/* ---- the interface ---- */

struct iser_discovery *
iser_discover_start(struct iser_context *ctx, const struct iser_url *url,
		    void (*done)(void *arg, int err, struct iser_target *list),
		    void *arg, int *err)
{
	struct iser_url u = *url;
	struct iser_discovery *d = calloc(1, sizeof(*d));

	if (!d) {
		*err = lib_fail(ctx, ISER_E_NOMEM, "out of memory");
		return NULL;
	}
	d->ctx = ctx;
	d->r.done = on_targets;
	d->done = done;
	d->arg = arg;
	u.target[0] = '\0';
	u.reconnect = 0; /* the caller may discover again */
	u.paths[0] = '\0';
	d->s = lib_connect_start(ctx, &u, on_discovery_login, d, err);
	explicit_bzero(&u, sizeof(u));
	if (d->s)
		return d;
	free_discovery(d);
	return NULL;
}

void iser_discover_cancel(struct iser_discovery *d)
{
	struct iser_session *s;

	if (!d)
		return;
	s = d->s;
	d->s = NULL;
	if (s)
		iser_disconnect(s);
	else
		lib_cancel_disconnected(d->ctx, d);
	free_discovery(d);
}

struct discovery_wait {
	bool over;
	int err;
	struct iser_target *list;
};

static void on_discovered(void *arg, int err, struct iser_target *list)
{
	*(struct discovery_wait *)arg = (struct discovery_wait){ .over = true,
								 .err = err,
								 .list = list };
}

int iser_discover(struct iser_context *ctx, const struct iser_url *url,
		  struct iser_target **list)
{
	struct discovery_wait w = { 0 };
	int err;
	struct iser_discovery *d =
		iser_discover_start(ctx, url, on_discovered, &w, &err);

	*list = NULL;
	if (!d)
		return err;
	err = lib_wait(ctx, &w.over);
	if (!w.over)
		iser_discover_cancel(d);
	*list = w.list;
	return err ? err : w.err;
}
