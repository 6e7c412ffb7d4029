/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs.c: the module for RDMA devices (rcap=verbs). */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "lib/internal.h"
#include "net/verbs.h"

int lib_verbs_resolve(struct iser_context *ctx, const char *host,
		      uint16_t number, struct net_addr *a)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", number);
	err = getaddrinfo(host, port, &hints, &list);
	if (err)
		return lib_fail(ctx, ISER_E_CONNECT,
				"%s: cannot look it up: %s", host,
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
			"RDMA device: %s; rcap=iwarp works without one", why);
}
