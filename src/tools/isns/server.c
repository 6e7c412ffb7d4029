/* SPDX-License-Identifier: BSD-2-Clause */
/* server.c: requests to an iSNS server. */
#include "tools/isns/server.h"

#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"

#define CALL_SECONDS   15
#define RESPONSE_MAX   (4u << 20)
#define ISCSI	       2u /* Entity Protocol (§6.2.2) */
#define IS_TARGET      1u /* iSCSI Node Type (§6.4.2) */
#define IS_INITIATOR   2u
#define WATCHED_EVENTS 0x5cu /* targets: updated, added, removed (§6.4.4) */

/* ---- one request ---- */

/* A connection to the server, for some requests of one node. */
struct client {
	int fd;
	const char *source;
	uint16_t xid;
	struct isns_payload request;
	struct isns_inbox in;
};

/* Returns NULL, or why there is no connection. client_close follows in any case. */
static const char *client_open(struct client *c, struct isns_peer *peer,
			       const char *source)
{
	*c = (struct client){ .source = source };
	c->fd = isns_peer_connect(peer);
	c->in.fd = c->fd;
	c->in.limit = RESPONSE_MAX;
	return c->fd < 0 ? peer->why : NULL;
}

static void client_close(struct client *c)
{
	isns_inbox_next(&c->in);
	isns_payload_free(&c->request);
	if (c->fd >= 0)
		close(c->fd);
}

/* Begins a request: the source comes first (§5.6). */
static struct isns_payload *begin_request(struct client *c)
{
	isns_payload_free(&c->request);
	isns_put_text(&c->request, ISNS_NODE_NAME, c->source);
	return &c->request;
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Waits for the response to the request that was sent last. */
static bool receive(struct client *c)
{
	const time_t end = seconds() + CALL_SECONDS;
	struct pollfd f = { .fd = c->fd, .events = POLLIN };
	enum isns_arrival a;

	isns_inbox_next(&c->in);
	while ((a = isns_inbox_read(&c->in)) == ISNS_WAIT && seconds() < end)
		poll(&f, 1, 500);
	return a == ISNS_COMPLETE;
}

/* Makes the request that was built. Returns NULL if the server has fulfilled it: *result
 * has the attributes of the response then, and is valid until the next call. */
static const char *call(struct client *c, enum isns_function function,
			struct isns_attrs *result)
{
	const struct isns_header *h = &c->in.header;
	const struct isns_payload *p = &c->in.payload;
	uint32_t status;

	c->xid++;
	if (!isns_link_send(c->fd, (uint16_t)function, c->xid, &c->request,
			    CALL_SECONDS * 1000) ||
	    !receive(c))
		return "no response; is it an iSNS server?";
	if (h->function != (function | ISNS_RESPONSE) || h->xid != c->xid ||
	    p->len < 4)
		return "the response is not one to the request; is it an iSNS "
		       "server?";
	*result = (struct isns_attrs){ p->bytes + 4, p->len - 4 };
	status = get_be32(p->bytes);
	if (status)
		return isns_status_str(status);
	return isns_attrs_valid(*result)
		       ? NULL
		       : "the response is malformed (RFC 4171 §5.3)";
}

/* ---- objects ---- */

static void put_portal(struct isns_payload *p, const struct isns_portal *portal)
{
	isns_put_ip(p, ISNS_PORTAL_IP, &portal->ip);
	isns_put_number(p, ISNS_PORTAL_PORT, portal->port);
}

static void put_entity(struct isns_payload *p, const char *entity)
{
	isns_put_text(p, ISNS_ENTITY, entity);
	isns_put_number(p, ISNS_ENTITY_PROTOCOL, ISCSI);
}

static void put_target(struct isns_payload *p, const struct isns_view *v,
		       const struct isns_target *t)
{
	isns_put_text(p, ISNS_NODE_NAME, t->name);
	isns_put_number(p, ISNS_NODE_TYPE, IS_TARGET);
	if (t->alias)
		isns_put_text(p, ISNS_NODE_ALIAS, t->alias);
	for (unsigned i = 0; i < t->nmembers; i++) {
		const struct isns_portal *at =
			&v->portals[t->members[i].portal];

		isns_put_text(p, ISNS_PG_NAME, t->name);
		isns_put_ip(p, ISNS_PG_IP, &at->ip);
		isns_put_number(p, ISNS_PG_PORT, at->port);
		isns_put_number(p, ISNS_PG_TAG, t->members[i].tag);
	}
}

bool isns_reach_has(const struct isns_reach *r, const struct isns_portal *p)
{
	return r->port &&
	       (isns_is_any(&r->ip) || IN6_ARE_ADDR_EQUAL(&r->ip, &p->ip));
}

/* ---- registration ---- */

const char *isns_server_register(struct isns_peer *peer, const char *source,
				 const char *entity, const struct isns_view *v,
				 unsigned esi, const struct isns_reach *at)
{
	struct client c;
	const char *why = client_open(&c, peer, source);
	struct isns_attrs result;

	/* The first message makes the entity and has its portals; the next ones name it
	 * by their key. */
	for (unsigned i = 0; !why && i < v->ntargets; i++) {
		struct isns_payload *p = begin_request(&c);

		if (i > 0)
			isns_put_text(p, ISNS_ENTITY, entity);
		isns_put_none(p, ISNS_DELIMITER);
		if (i == 0)
			put_entity(p, entity);
		for (unsigned k = 0; i == 0 && k < v->nportals; k++) {
			put_portal(p, &v->portals[k]);
			if (!esi || !isns_reach_has(at, &v->portals[k]))
				continue;
			isns_put_number(p, ISNS_ESI_INTERVAL, esi);
			isns_put_number(p, ISNS_ESI_PORT, at->port);
		}
		put_target(p, v, &v->targets[i]);
		why = call(&c, ISNS_DEV_ATTR_REG, &result);
	}
	client_close(&c);
	return why;
}

const char *isns_server_watch(struct isns_peer *peer, const char *source,
			      const char *entity, const struct isns_reach *at)
{
	struct client c;
	const char *why = client_open(&c, peer, source);
	const struct isns_portal portal = { .ip = at->ip, .port = at->port };
	struct isns_payload *p = begin_request(&c);
	struct isns_attrs result;

	isns_put_none(p, ISNS_DELIMITER);
	put_entity(p, entity);
	put_portal(p, &portal);
	isns_put_number(p, ISNS_SCN_PORT, at->port);
	isns_put_text(p, ISNS_NODE_NAME, source);
	isns_put_number(p, ISNS_NODE_TYPE, IS_INITIATOR);
	if (!why)
		why = call(&c, ISNS_DEV_ATTR_REG, &result);
	p = begin_request(&c);
	isns_put_text(p, ISNS_NODE_NAME, source);
	isns_put_none(p, ISNS_DELIMITER);
	isns_put_number(p, ISNS_SCN_BITMAP, WATCHED_EVENTS);
	if (!why)
		why = call(&c, ISNS_SCN_REG, &result);
	client_close(&c);
	return why;
}

/* ---- removal ---- */

static bool has_target(const struct isns_view *v, const char *name)
{
	for (unsigned i = 0; i < v->ntargets; i++)
		if (!strcmp(v->targets[i].name, name))
			return true;
	return false;
}

static bool has_portal(const struct isns_view *v, const struct isns_portal *p)
{
	for (unsigned i = 0; i < v->nportals; i++)
		if (v->portals[i].port == p->port &&
		    IN6_ARE_ADDR_EQUAL(&v->portals[i].ip, &p->ip))
			return true;
	return false;
}

/* Begins a DevDereg, which has no message key. */
static struct isns_payload *begin_removal(struct client *c)
{
	struct isns_payload *p = begin_request(c);

	isns_put_none(p, ISNS_DELIMITER);
	return p;
}

const char *isns_server_remove(struct isns_peer *peer, const char *source,
			       const struct isns_view *old,
			       const struct isns_view *now)
{
	struct client c;
	const char *why = client_open(&c, peer, source);
	struct isns_attrs result;

	for (unsigned i = 0; !why && i < old->ntargets; i++) {
		if (has_target(now, old->targets[i].name))
			continue;
		isns_put_text(begin_removal(&c), ISNS_NODE_NAME,
			      old->targets[i].name);
		why = call(&c, ISNS_DEV_DEREG, &result);
	}
	for (unsigned i = 0; !why && i < old->nportals; i++) {
		if (has_portal(now, &old->portals[i]))
			continue;
		put_portal(begin_removal(&c), &old->portals[i]);
		why = call(&c, ISNS_DEV_DEREG, &result);
	}
	client_close(&c);
	return why;
}

const char *isns_server_forget(struct isns_peer *peer, const char *source,
			       const char *entity)
{
	struct client c;
	const char *why = client_open(&c, peer, source);
	struct isns_attrs result;

	isns_put_text(begin_removal(&c), ISNS_ENTITY, entity);
	if (!why)
		why = call(&c, ISNS_DEV_DEREG, &result);
	client_close(&c);
	return why;
}

/* ---- queries ---- */

const char *isns_server_query(struct isns_peer *peer, const char *source,
			      isns_found *found, void *arg)
{
	static const enum isns_tag wanted[] = {
		ISNS_NODE_NAME, ISNS_NODE_TYPE, ISNS_NODE_ALIAS, ISNS_PG_NAME,
		ISNS_PG_IP,	ISNS_PG_PORT,	ISNS_PG_TAG,
	};
	struct client c;
	const char *why = client_open(&c, peer, source);
	struct isns_payload *p = begin_request(&c);
	struct isns_attrs result;

	isns_put_number(p, ISNS_NODE_TYPE, IS_TARGET);
	isns_put_none(p, ISNS_DELIMITER);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		isns_put_none(p, wanted[i]);
	if (!why)
		why = call(&c, ISNS_DEV_ATTR_QRY, &result);
	if (!why && !isns_answer_found(result, found, arg))
		why = "out of memory";
	client_close(&c);
	return why;
}
