/* SPDX-License-Identifier: BSD-2-Clause */
/* view.h: what an iSNS server is to know of an iserd: its targets, and the portals
 * and portal group tags of each. Pure: made from the response of iserd to
 * "targets", and compared. */
#ifndef TOOLS_ISNS_VIEW_H
#define TOOLS_ISNS_VIEW_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A portal: an address and TCP port; IPv4 as ::ffff:a.b.c.d, as iSNS has it
 * (RFC 4171 §6.3.1). */
struct isns_portal {
	struct in6_addr ip;
	uint16_t port;
};

/* isns_map_ipv4 writes the IPv6 form of an IPv4 address. */
void isns_map_ipv4(struct in6_addr *ip, const struct in_addr *v4);
/* isns_portal_ip reads an IPv4 or IPv6 address. */
bool isns_portal_ip(const char *text, struct in6_addr *ip);
/* isns_is_any returns whether ip is 0.0.0.0 or ::. */
bool isns_is_any(const struct in6_addr *ip);

/* A portal of one target. */
struct isns_member {
	unsigned portal; /* index in isns_view.portals */
	uint16_t tag;	 /* of its portal group */
};

struct isns_target {
	char *name, *alias; /* alias: NULL: none */
	struct isns_member *members;
	unsigned nmembers;
};

/* The caller owns it from isns_view_make to isns_view_free. */
struct isns_view {
	struct isns_portal *portals; /* each once */
	unsigned nportals;
	struct isns_target *targets; /* those with a portal */
	unsigned ntargets;
};

/*
 * isns_view_make makes a view from the array `targets` of iserd. In place of the
 * wildcard address it takes the nlocal addresses of this machine: those of the
 * same family, or all for [::]. Returns NULL, or what is wrong with the array; *v
 * is empty then.
 */
const char *isns_view_make(struct isns_view *v, const json_t *targets,
			   const struct in6_addr *local, unsigned nlocal);
/* isns_view_equal returns whether a server would know the same. */
bool isns_view_equal(const struct isns_view *a, const struct isns_view *b);
/* isns_view_free frees what v holds; an empty view holds nothing. */
void isns_view_free(struct isns_view *v);

#endif
