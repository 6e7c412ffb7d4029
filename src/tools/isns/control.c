/* SPDX-License-Identifier: BSD-2-Clause */
/* control.c: the targets of a running iserd, from its management socket. */
#include "tools/isns/control.h"

#include <errno.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <net/if.h>
#include <string.h>

#include "tools/rpc_link.h"

#define LOCAL_MAX     256 /* addresses of this machine */
#define RESPONSE_TIME 10  /* seconds */

/* ---- the addresses of this machine ---- */

static bool address_of(const struct ifaddrs *i, struct in6_addr *ip)
{
	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
	    (i->ifa_flags & IFF_LOOPBACK))
		return false;
	if (i->ifa_addr->sa_family == AF_INET6) {
		*ip = ((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
		return !IN6_IS_ADDR_LINKLOCAL(ip);
	}
	if (i->ifa_addr->sa_family != AF_INET)
		return false;
	isns_map_ipv4(ip, &((const struct sockaddr_in *)i->ifa_addr)->sin_addr);
	return true;
}

static unsigned local_addresses(struct in6_addr all[LOCAL_MAX])
{
	struct ifaddrs *list;
	unsigned n = 0;

	if (getifaddrs(&list))
		return 0;
	for (const struct ifaddrs *i = list; i && n < LOCAL_MAX;
	     i = i->ifa_next)
		n += address_of(i, &all[n]);
	freeifaddrs(list);
	return n;
}

/* ---- the request ---- */

/* Takes the response apart. */
static const char *read_response(const json_t *response, struct isns_view *v)
{
	struct in6_addr local[LOCAL_MAX];
	unsigned n = local_addresses(local);
	const json_t *result = json_object_get(response, "result");

	if (!result)
		return "it does not know the method \"targets\"; it may be an "
		       "older iserd";
	return isns_view_make(v, result, local, n);
}

const char *control_view(const char *path, struct isns_view *v)
{
	struct rpc_link l = RPC_LINK_NONE;
	int err = rpc_link_open(&l, path, RESPONSE_TIME);
	json_t *response = NULL;
	const char *why;

	*v = (struct isns_view){ 0 };
	if (!err)
		err = rpc_link_call(&l, "targets", NULL, RESPONSE_TIME,
				    &response);
	if (err == -EPROTO)
		why = "the response is not JSON";
	else
		why = err ? strerror(-err) : read_response(response, v);
	json_decref(response);
	rpc_link_close(&l);
	return why;
}
