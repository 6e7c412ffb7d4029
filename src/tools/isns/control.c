/* SPDX-License-Identifier: BSD-2-Clause */
/* control.c: the targets of a running iserd, from its management socket. */
#include "tools/isns/control.h"

#include <errno.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define LOCAL_MAX     256	  /* addresses of this machine */
#define RESPONSE_MAX  (64u << 20) /* bytes */
#define RESPONSE_TIME 10	  /* seconds */

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

/* Returns a connected socket, or -1 with errno set. */
static int open_control(const char *path)
{
	const struct timeval limit = { .tv_sec = RESPONSE_TIME };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!connect(fd, (const struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	close(fd);
	return -1;
}

/* Returns the line that iserd responds with, which the caller frees; NULL: errno
 * says why. */
static char *ask(int fd)
{
	static const char request[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"targets\"}\n";
	size_t size = 0, len = 0;
	char *line = NULL;
	ssize_t n = send(fd, request, strlen(request), MSG_NOSIGNAL);

	while (n > 0 && (!len || line[len - 1] != '\n')) {
		if (size - len < 2) {
			char *more = size < RESPONSE_MAX
					     ? realloc(line, size + 65536)
					     : NULL;

			if (!more)
				break;
			line = more;
			size += 65536;
		}
		n = recv(fd, line + len, size - len - 1, 0);
		len += n > 0 ? (size_t)n : 0;
	}
	if (len && line[len - 1] == '\n') {
		line[len] = '\0';
		return line;
	}
	errno = n < 0 ? errno : n ? ENOMEM : ECONNRESET;
	free(line);
	return NULL;
}

/* Takes the response apart. */
static const char *read_response(const char *line, struct isns_view *v)
{
	struct in6_addr local[LOCAL_MAX];
	unsigned n = local_addresses(local);
	json_t *root = json_loads(line, 0, NULL);
	const json_t *result = json_object_get(root, "result");
	const char *why;

	if (!root)
		why = "the response is not JSON";
	else if (!result)
		why = "it does not know the method \"targets\"; it may be an "
		      "older iserd";
	else
		why = isns_view_make(v, result, local, n);
	json_decref(root);
	return why;
}

const char *control_view(const char *path, struct isns_view *v)
{
	int fd = open_control(path);
	const char *why;
	char *line;

	*v = (struct isns_view){ 0 };
	if (fd < 0)
		return strerror(errno);
	line = ask(fd);
	why = line ? read_response(line, v) : strerror(errno);
	free(line);
	close(fd);
	return why;
}
