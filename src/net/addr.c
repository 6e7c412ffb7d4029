/* SPDX-License-Identifier: BSD-2-Clause */
/* addr.c: numeric addresses as text; the name of this machine. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/net.h"

#define HOST_MAX 80

/* The parts of an address: host without brackets; port, or NULL. */
struct split {
	char host[HOST_MAX];
	const char *port;
};

static int split_bracketed(struct split *s, const char *text)
{
	const char *end = strchr(text, ']');
	size_t len;

	if (!end)
		return -EINVAL;
	len = (size_t)(end - text) - 1;
	if (len == 0 || len >= sizeof(s->host) ||
	    (end[1] != '\0' && end[1] != ':'))
		return -EINVAL;
	memcpy(s->host, text + 1, len);
	s->host[len] = '\0';
	s->port = end[1] ? end + 2 : NULL;
	return strchr(s->host, ':') ? 0 : -EINVAL; /* only IPv6 has brackets */
}

static int split_plain(struct split *s, const char *text)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	/* IPv6 without brackets: no port */
	if (colon && strchr(colon + 1, ':')) {
		len = strlen(text);
		colon = NULL;
	}
	if (len >= sizeof(s->host) || (len == 0 && !colon))
		return -EINVAL;
	memcpy(s->host, text, len);
	s->host[len] = '\0';
	s->port = colon ? colon + 1 : NULL;
	if (len == 0)
		strcpy(s->host, "0.0.0.0");
	return 0;
}

static int parse_port(const char *text, uint16_t *port)
{
	unsigned value = 0;
	size_t len = strlen(text);

	if (len == 0 || text[strspn(text, "0123456789")])
		return -EINVAL;
	for (const char *p = text; *p && value <= UINT16_MAX; p++)
		value = value * 10 + (unsigned)(*p - '0');
	if (value > UINT16_MAX)
		return -ERANGE;
	*port = (uint16_t)value;
	return 0;
}

/* getaddrinfo reads "4262" as 0.0.16.166, and "127.1" as 127.0.0.1. */
static bool is_host(const char *host)
{
	struct in_addr v4;

	return strchr(host, ':') || inet_pton(AF_INET, host, &v4) == 1;
}

int net_addr_parse(struct net_addr *a, const char *text, uint16_t default_port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	struct split s;
	char service[8];
	int err = *text == '[' ? split_bracketed(&s, text)
			       : split_plain(&s, text);

	if (!err && s.port)
		err = parse_port(s.port, &default_port);
	if (!err && !is_host(s.host))
		err = -EINVAL;
	if (err)
		return err;
	snprintf(service, sizeof(service), "%u", default_port);
	if (getaddrinfo(s.host, service, &hints, &found))
		return -EINVAL;
	memset(a, 0, sizeof(*a));
	memcpy(&a->sa, found->ai_addr, found->ai_addrlen);
	a->len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* "::1:3260" is the address ::0.1.50.96; its writer may have meant a port. */
static bool may_have_port(const char *text)
{
	const char *last = strrchr(text, ':');
	char host[HOST_MAX];
	struct in6_addr v6;

	if (!last || (size_t)(last - text) >= sizeof(host) || !last[1] ||
	    last[1 + strspn(last + 1, "0123456789")])
		return false;
	memcpy(host, text, (size_t)(last - text));
	host[last - text] = '\0';
	return inet_pton(AF_INET6, host, &v6) == 1;
}

int net_addr_parse_listen(struct net_addr *a, const char *text,
			  uint16_t default_port)
{
	const char *port = *text == ':' ? text + 1 : text;
	int err;

	if (may_have_port(text))
		return -EDOM;
	if (port[strspn(port, "0123456789")])
		return net_addr_parse(a, text, default_port);
	err = parse_port(port, &default_port);
	return err ? err : net_addr_parse(a, "127.0.0.1", default_port);
}

bool net_addr_is_loopback(const struct net_addr *a)
{
	const void *sa = &a->sa;
	const struct in6_addr *v6 =
		&((const struct sockaddr_in6 *)sa)->sin6_addr;
	const void *v4 = &((const struct sockaddr_in *)sa)->sin_addr;

	if (a->sa.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(v6))
		return IN6_IS_ADDR_LOOPBACK(v6);
	if (a->sa.ss_family == AF_INET6)
		v4 = v6->s6_addr + 12;
	return *(const uint8_t *)v4 == 127;
}

static uint16_t port_at(const void *wire)
{
	return get_be16(wire);
}

uint16_t net_addr_port(const struct net_addr *a)
{
	const void *sa = &a->sa;

	if (a->sa.ss_family == AF_INET)
		return port_at(&((const struct sockaddr_in *)sa)->sin_port);
	if (a->sa.ss_family == AF_INET6)
		return port_at(&((const struct sockaddr_in6 *)sa)->sin6_port);
	return 0;
}

void net_addr_str(const struct net_addr *a, char out[NET_ADDR_STR])
{
	char host[NI_MAXHOST];
	bool v6 = a->sa.ss_family == AF_INET6;

	if (a->sa.ss_family == AF_UNIX || a->len == 0 ||
	    getnameinfo((const struct sockaddr *)&a->sa, a->len, host,
			sizeof(host), NULL, 0, NI_NUMERICHOST)) {
		snprintf(out, NET_ADDR_STR, "local");
		return;
	}
	host[NET_ADDR_STR - sizeof("[]:65535")] = '\0';
	snprintf(out, NET_ADDR_STR, v6 ? "[%s]:%u" : "%s:%u", host,
		 net_addr_port(a));
}

void net_host_name(char *out, size_t size)
{
	if (gethostname(out, size))
		*out = '\0';
	out[size - 1] = '\0';
}
