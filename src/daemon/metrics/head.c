/* SPDX-License-Identifier: BSD-2-Clause */
/* head.c: what the head of an HTTP request asks for. */
#include "daemon/metrics/head.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"

enum answer_kind head_kind(const char *path)
{
	static const struct {
		const char *path;
		enum answer_kind kind;
	} all[] = {
		{ "/metrics", ANSWER_METRICS },
		{ "/healthz", ANSWER_HEALTH },
		{ "/readyz", ANSWER_READY },
		{ "/status.json", ANSWER_STATUS },
		{ "/", ANSWER_PAGE },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(all[i].path, path))
			return all[i].kind;
	return ANSWER_NOTHING;
}

/* Returns whether the parameters of a media range say q=0 (RFC 9110 §12.4.2:
 * not acceptable). */
static bool is_refused(const char *params, size_t len)
{
	static const char zero[] = "q=0";

	for (size_t i = 0; i + 3 <= len; i++) {
		size_t n = i + 3;

		if (strncasecmp(params + i, zero, 3) != 0)
			continue;
		while (n < len && (params[n] == '.' || params[n] == '0'))
			n++;
		if (n == len || strchr("; \t", params[n]))
			return true;
	}
	return false;
}

bool head_wants_open(const char *accept)
{
	static const char name[] = "application/openmetrics-text";

	while (accept && *accept) {
		size_t len;

		accept += strspn(accept, ", \t");
		len = strcspn(accept, ",");
		if (len >= sizeof(name) - 1 &&
		    !strncasecmp(accept, name, sizeof(name) - 1) &&
		    !is_refused(accept, len))
			return true;
		accept += len;
	}
	return false;
}

/* What follows the host: nothing, or a port (RFC 3986 §3.2.3: it may be empty). */
static bool is_port(const char *p)
{
	return !*p || (*p == ':' && !p[1 + strspn(p + 1, "0123456789")]);
}

/* RFC 9110 §7.2: uri-host [ ":" port ]; an IPv6 address is in brackets. */
bool head_is_local(const char *host)
{
	bool is_v6 = host && host[0] == '[';
	unsigned char address[16];
	char name[64];
	size_t len;

	if (!host)
		return true;
	host += is_v6;
	len = strcspn(host, is_v6 ? "]" : ":");
	if (len >= sizeof(name) || (is_v6 && !host[len]) ||
	    !is_port(host + len + is_v6))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	if (is_v6)
		return inet_pton(AF_INET6, name, address) == 1;
	return !strcasecmp(name, "localhost") ||
	       inet_pton(AF_INET, name, address) == 1;
}
