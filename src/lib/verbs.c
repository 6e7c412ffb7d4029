/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs.c: sessions over RDMA devices (rcap=verbs). */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "lib/internal.h"
#include "net/verbs.h"

/* One address; names are looked up in place, which may take its time. */
int lib_verbs_resolve(struct iser_context *ctx, const char *host,
		      uint16_t number, struct net_addr *a)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", number);
	err = getaddrinfo(host, port, &hints, &list);
	if (err)
		return lib_fail(ctx, ISER_E_CONNECT, "%s: %s", host,
				gai_strerror(err));
	memcpy(&a->sa, list->ai_addr, list->ai_addrlen);
	a->len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

int lib_verbs_open(struct iser_context *ctx)
{
	const struct verbs_host host = { .wait = false };
	char why[256];
	int err;

	if (ctx->verbs)
		return 0;
	ctx->verbs = net_verbs_open(ctx->loop, &host, &err, why, sizeof(why));
	if (ctx->verbs)
		return 0;
	return lib_fail(ctx, ISER_E_CONNECT,
			"RDMA device: %s; rcap=iwarp needs none", why);
}

static int begin(struct iser_session *s, const struct net_addr *a)
{
	struct verbs_conn *vc;
	int err;

	vc = net_verbs_connect(s->ctx->verbs, a, &err);
	if (!vc)
		return lib_fail(s->ctx, ISER_E_CONNECT,
				"RDMA connection to %s:%u: %s", s->url.host,
				s->url.port, strerror(-err));
	err = lib_session_adopt(s, vc);
	if (!err)
		return 0;
	return lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
}

int lib_verbs_connect(struct iser_session *s)
{
	struct net_addr a = { .len = 0 };
	int err = lib_verbs_open(s->ctx);

	if (!err)
		err = lib_verbs_resolve(s->ctx, s->url.host, s->url.port, &a);
	if (!err)
		err = begin(s, &a);
	s->err = err;
	return err;
}
