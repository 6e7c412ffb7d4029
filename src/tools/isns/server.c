/* SPDX-License-Identifier: BSD-2-Clause */
/* server.c: requests to an iSNS server, by libisns. */
#include "tools/isns/server.h"

#include <arpa/inet.h>
#include <libisns/isns.h>
#include <libisns/message.h>
#include <libisns/util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define ISNS_CALL_TIMEOUT 15u /* seconds for one request */

bool isns_server_set(const char *address)
{
	/* the name of this host must not be needed: sources are given */
	isns_config.ic_security = 0;
	isns_config.ic_network.call_timeout = ISNS_CALL_TIMEOUT;
	isns_assign_string(&isns_config.ic_server_name, address);
	return isns_config.ic_server_name != NULL;
}

/* ---- one request ---- */

/* Connects; NULL: libisns cannot resolve the name, or no memory. */
static isns_client_t *client_open(const char *source)
{
	return isns_create_client(NULL, source);
}

/* libisns reports a server that does not respond as an internal error. */
static const char *reason(int status)
{
	if (status == ISNS_INTERNAL_ERROR)
		return "no response; is it an iSNS server?";
	return status == ISNS_SUCCESS ? NULL : isns_strerror(status);
}

/* Makes a request, which it frees, and returns the server's status. */
static const char *call(isns_client_t *c, isns_simple_t *request)
{
	int status = isns_client_call(c, &request);

	if (request)
		isns_simple_free(request);
	return reason(status);
}

static const char no_client[] =
	"no connection; name a server that answers, for example --server "
	"192.0.2.1:3205";

/* ---- objects ---- */

static isns_portal_info_t portal_info(const struct isns_portal *p)
{
	struct sockaddr_in6 sa = {
		.sin6_family = AF_INET6,
		.sin6_addr = p->ip,
	};
	isns_portal_info_t info;

	isns_addr_set_port((struct sockaddr *)&sa, p->port);
	isns_portal_init(&info, (const struct sockaddr *)&sa, IPPROTO_TCP);
	return info;
}

static uint16_t port_of(const isns_portal_info_t *info)
{
	return (uint16_t)isns_addr_get_port(
		(const struct sockaddr *)&info->addr);
}

static isns_object_t *make_portal(const struct isns_portal *p,
				  isns_object_t *entity)
{
	const isns_portal_info_t info = portal_info(p);

	return isns_create_portal(&info, entity);
}

/* The objects that one message registers. */
struct batch {
	isns_object_t *entity;
	isns_object_t **portals; /* by number in the view */
	unsigned nportals;
};

static void batch_end(struct batch *b)
{
	for (unsigned i = 0; i < b->nportals; i++)
		isns_object_release(b->portals[i]);
	free(b->portals);
	isns_object_release(b->entity);
}

/* False: no memory. */
static bool batch_begin(struct batch *b, const char *entity,
			const struct isns_view *v, unsigned esi, uint16_t port)
{
	*b = (struct batch){
		.entity =
			isns_create_entity(ISNS_ENTITY_PROTOCOL_ISCSI, entity),
		.portals = calloc(v->nportals + 1, sizeof(*b->portals)),
	};
	while (b->entity && b->portals && b->nportals < v->nportals) {
		isns_object_t *p =
			make_portal(&v->portals[b->nportals], b->entity);

		if (!p)
			break;
		if (esi) {
			isns_object_set_uint32(p, ISNS_TAG_ESI_INTERVAL, esi);
			isns_object_set_uint32(p, ISNS_TAG_ESI_PORT, port);
		}
		b->portals[b->nportals++] = p;
	}
	return b->entity && b->portals && b->nportals == v->nportals;
}

/* Registers a target and its portal groups. The first message makes the entity
 * and has its portals too; the next ones name it by their key. */
static const char *register_target(isns_client_t *c, const struct batch *b,
				   const struct isns_target *t, bool is_first)
{
	isns_simple_t *r =
		isns_create_registration(c, is_first ? NULL : b->entity);
	isns_object_t *node = isns_create_iscsi_target(t->name, b->entity);

	if (!r || !node)
		return "out of memory";
	if (t->alias)
		isns_object_set_string(node, ISNS_TAG_ISCSI_ALIAS, t->alias);
	if (is_first)
		isns_registration_add_object(r, b->entity);
	for (unsigned i = 0; is_first && i < b->nportals; i++)
		isns_registration_add_object(r, b->portals[i]);
	isns_registration_add_object(r, node);
	for (unsigned i = 0; i < t->nmembers; i++) {
		isns_object_t *pg = isns_create_portal_group(
			b->portals[t->members[i].portal], node,
			t->members[i].tag);

		if (!pg)
			continue; /* no memory: the server takes tag 1 */
		isns_registration_add_object(r, pg);
		isns_object_release(pg);
	}
	isns_object_release(node);
	return call(c, r);
}

const char *isns_server_register(const char *source, const char *entity,
				 const struct isns_view *v, unsigned esi,
				 uint16_t esi_port)
{
	isns_client_t *c = client_open(source);
	const char *why = NULL;
	struct batch b;

	if (!c)
		return no_client;
	if (!batch_begin(&b, entity, v, esi, esi_port))
		why = "out of memory";
	for (unsigned i = 0; !why && i < v->ntargets; i++)
		why = register_target(c, &b, &v->targets[i], i == 0);
	batch_end(&b);
	isns_client_destroy(c);
	return why;
}

/* ---- removal ---- */

static const char *deregister(isns_client_t *c, isns_attr_list_t *key)
{
	isns_simple_t *r = isns_create_deregistration(c, key);

	isns_attr_list_destroy(key);
	return r ? call(c, r) : "out of memory";
}

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

static const char *remove_portal(isns_client_t *c, const struct isns_portal *p)
{
	const isns_portal_info_t info = portal_info(p);
	isns_attr_list_t key = ISNS_ATTR_LIST_INIT;

	isns_portal_to_attr_list(&info, ISNS_TAG_PORTAL_IP_ADDRESS,
				 ISNS_TAG_PORTAL_TCP_UDP_PORT, &key);
	return deregister(c, &key);
}

const char *isns_server_remove(const char *source, const struct isns_view *old,
			       const struct isns_view *now)
{
	isns_client_t *c = client_open(source);
	const char *why = c ? NULL : no_client;

	for (unsigned i = 0; !why && i < old->ntargets; i++) {
		isns_attr_list_t key = ISNS_ATTR_LIST_INIT;

		if (has_target(now, old->targets[i].name))
			continue;
		isns_attr_list_append_string(&key, ISNS_TAG_ISCSI_NAME,
					     old->targets[i].name);
		why = deregister(c, &key);
	}
	for (unsigned i = 0; !why && i < old->nportals; i++)
		if (!has_portal(now, &old->portals[i]))
			why = remove_portal(c, &old->portals[i]);
	if (c)
		isns_client_destroy(c);
	return why;
}

const char *isns_server_forget(const char *source, const char *entity)
{
	isns_attr_list_t key = ISNS_ATTR_LIST_INIT;
	isns_client_t *c = client_open(source);
	const char *why;

	if (!c)
		return no_client;
	isns_attr_list_append_string(&key, ISNS_TAG_ENTITY_IDENTIFIER, entity);
	why = deregister(c, &key);
	isns_client_destroy(c);
	return why;
}

/* ---- queries ---- */

/* Returns the alias of a node in the list, or NULL. */
static const char *alias_of(const isns_object_list_t *l, const char *name)
{
	for (unsigned i = 0; i < l->iol_count; i++) {
		const char *node, *alias;

		if (isns_object_is_iscsi_node(l->iol_data[i]) &&
		    isns_object_get_string(l->iol_data[i], ISNS_TAG_ISCSI_NAME,
					   &node) &&
		    !strcmp(node, name) &&
		    isns_object_get_string(l->iol_data[i], ISNS_TAG_ISCSI_ALIAS,
					   &alias))
			return alias;
	}
	return NULL;
}

/* Reports each portal group, which names a target and a portal. */
static void report(const isns_object_list_t *l, isns_found *found, void *arg)
{
	for (unsigned i = 0; i < l->iol_count; i++) {
		const isns_object_t *o = l->iol_data[i];
		isns_portal_info_t info;
		struct isns_portal p;
		const char *name;
		uint32_t tag;

		if (!isns_object_is_pg(o) ||
		    !isns_object_get_string(o, ISNS_TAG_PG_ISCSI_NAME, &name) ||
		    !isns_object_get_uint32(o, ISNS_TAG_PG_TAG, &tag) ||
		    !isns_portal_from_object(&info, ISNS_TAG_PG_PORTAL_IP_ADDR,
					     ISNS_TAG_PG_PORTAL_TCP_UDP_PORT,
					     o))
			continue;
		p.ip = info.addr.sin6_addr;
		/* some clients register ::a.b.c.d in place of §6.3.1 */
		if (IN6_IS_ADDR_V4COMPAT(&p.ip))
			p.ip.s6_addr[10] = p.ip.s6_addr[11] = 0xff;
		p.port = port_of(&info);
		found(arg, name, alias_of(l, name), &p, tag);
	}
}

static isns_simple_t *query_targets(isns_client_t *c)
{
	static const uint32_t wanted[] = {
		ISNS_TAG_ISCSI_NAME,
		ISNS_TAG_ISCSI_NODE_TYPE,
		ISNS_TAG_ISCSI_ALIAS,
		ISNS_TAG_PG_ISCSI_NAME,
		ISNS_TAG_PG_PORTAL_IP_ADDR,
		ISNS_TAG_PG_PORTAL_TCP_UDP_PORT,
		ISNS_TAG_PG_TAG,
	};
	isns_attr_list_t key = ISNS_ATTR_LIST_INIT;
	isns_simple_t *q;

	isns_attr_list_append_uint32(&key, ISNS_TAG_ISCSI_NODE_TYPE,
				     ISNS_ISCSI_TARGET_MASK);
	q = isns_create_query(c, &key);
	isns_attr_list_destroy(&key);
	for (size_t i = 0; q && i < sizeof(wanted) / sizeof(wanted[0]); i++)
		isns_query_request_attr_tag(q, wanted[i]);
	return q;
}

const char *isns_server_query(const char *source, isns_found *found, void *arg)
{
	isns_object_list_t l = ISNS_OBJECT_LIST_INIT;
	isns_client_t *c = client_open(source);
	isns_simple_t *q;
	int status;

	if (!c)
		return no_client;
	q = query_targets(c);
	status = q ? isns_client_call(c, &q) : ISNS_INTERNAL_ERROR;
	if (!status)
		status = isns_query_response_get_objects(q, &l);
	if (!status)
		report(&l, found, arg);
	isns_object_list_destroy(&l);
	if (q)
		isns_simple_free(q);
	isns_client_destroy(c);
	return reason(status);
}

/* ---- what the server sends ---- */

static isns_server_t *responder;
static isns_changed *on_change;

static void scn(isns_db_t *db, uint32_t bits, isns_object_template_t *type,
		const char *name, const char *recipient)
{
	(void)db;
	(void)type;
	(void)recipient;
	if (on_change)
		on_change(bits, name);
}

uint16_t isns_server_listen(const char *source, const char *address,
			    isns_changed *changed)
{
	static isns_object_list_t none = ISNS_OBJECT_LIST_INIT;
	isns_source_t *s = isns_source_create_iscsi(source);
	isns_socket_t *sock =
		isns_create_server_socket(address, "0", AF_UNSPEC, SOCK_STREAM);
	isns_portal_info_t info;

	if (!s || !sock || !isns_socket_get_portal_info(sock, &info))
		return 0;
	responder = isns_create_server(s, isns_db_open_shadow(&none),
				       &isns_callback_service_ops);
	isns_server_set_scn_callback(responder, scn);
	on_change = changed;
	return port_of(&info);
}

const char *isns_server_watch(const char *source, const char *entity,
			      const struct isns_portal *at)
{
	isns_client_t *c = client_open(source);
	isns_object_t *e, *p, *n;
	isns_simple_t *r;
	const char *why;

	if (!c)
		return no_client;
	e = isns_create_entity(ISNS_ENTITY_PROTOCOL_ISCSI, entity);
	p = make_portal(at, e);
	n = isns_create_iscsi_initiator(source, e);
	r = isns_create_registration(c, NULL);
	isns_object_set_uint32(p, ISNS_TAG_SCN_PORT, at->port);
	isns_registration_add_object(r, e);
	isns_registration_add_object(r, p);
	isns_registration_add_object(r, n);
	why = call(c, r);
	if (!why)
		why = call(c,
			   isns_create_scn_registration(
				   c,
				   ISNS_SCN_OBJECT_UPDATED_MASK |
					   ISNS_SCN_OBJECT_ADDED_MASK |
					   ISNS_SCN_OBJECT_REMOVED_MASK |
					   ISNS_SCN_TARGET_AND_SELF_ONLY_MASK));
	isns_object_release(n);
	isns_object_release(p);
	isns_object_release(e);
	isns_client_destroy(c);
	return why;
}

static void respond(isns_message_t *m)
{
	isns_socket_t *s = isns_message_socket(m);
	isns_message_t *response =
		responder ? isns_process_message(responder, m) : NULL;

	if (response && s)
		isns_socket_send(s, response);
	if (response)
		isns_message_release(response);
}

void isns_server_wait(unsigned ms)
{
	struct timeval left = { .tv_sec = ms / 1000,
				.tv_usec = (suseconds_t)(ms % 1000) * 1000 };
	isns_message_t *m = isns_recv_message(&left);

	isns_run_timers();
	if (!m)
		return;
	respond(m);
	isns_message_release(m);
}
