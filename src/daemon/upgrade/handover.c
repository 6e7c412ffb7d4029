/* SPDX-License-Identifier: BSD-2-Clause */
/* handover.c: what an iserd hands over, and its form on the control socket: a
 * JSON-RPC response of one line, with the descriptors in SCM_RIGHTS messages. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "daemon/upgrade/takeover.h"

#define VERSION	    4
#define VERSION_OLD 3	 /* without identities; it is read, too */
#define FDS_AT_ONCE 200u /* SCM_MAX_FD is 253 */
#define FDS_MAX	    65536u
#define BYTES_MAX   (64u << 20)

/* ---- the lists ---- */

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void handover_free(struct handover *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->nlisteners; i++)
		close_fd(h->listeners[i].fd);
	for (size_t i = 0; i < h->nmemory; i++)
		close_fd(h->memory[i].memory.fd);
	for (size_t i = 0; i < h->nunits; i++)
		free(h->units[i].bytes);
	for (size_t i = 0; i < h->nports; i++)
		free(h->ports[i].name);
	free(h->ports);
	free(h->identities);
	free(h->listeners);
	free(h->memory);
	free(h->units);
	free(h);
}

/* Makes room for one more element of `size` bytes after n. NULL: out of memory,
 * and the old array is unchanged. */
static void *one_more(void *array, size_t n, size_t size)
{
	return reallocarray(array, n + 1, size);
}

bool handover_add_listener(struct handover *h, int fd)
{
	struct handed_listener *l =
		one_more(h->listeners, h->nlisteners, sizeof(*l));

	if (!l) {
		close_fd(fd);
		return false;
	}
	h->listeners = l;
	l += h->nlisteners;
	l->fd = fd;
	l->address.len = sizeof(l->address.sa);
	if (getsockname(fd, (struct sockaddr *)&l->address.sa,
			&l->address.len)) {
		close_fd(fd);
		return false;
	}
	h->nlisteners++;
	return true;
}

bool handover_add_memory(struct handover *h, const struct handed_memory *m)
{
	struct handed_memory *more =
		one_more(h->memory, h->nmemory, sizeof(*more));

	if (!more) {
		close_fd(m->memory.fd);
		return false;
	}
	h->memory = more;
	more[h->nmemory++] = *m;
	return true;
}

bool handover_add_unit(struct handover *h, const uint8_t uuid[16],
		       uint8_t *bytes, size_t len)
{
	struct handed_unit *u = one_more(h->units, h->nunits, sizeof(*u));

	if (!u) {
		free(bytes);
		return false;
	}
	h->units = u;
	u += h->nunits++;
	memcpy(u->uuid, uuid, sizeof(u->uuid));
	u->bytes = bytes;
	u->len = len;
	return true;
}

bool handover_add_port(struct handover *h, const char *name, uint16_t id)
{
	struct handed_port *p = one_more(h->ports, h->nports, sizeof(*p));

	if (!p)
		return false;
	h->ports = p;
	p += h->nports;
	p->id = id;
	p->name = strdup(name);
	h->nports += p->name != NULL;
	return p->name;
}

bool handover_add_identity(struct handover *h, const uint8_t key[16],
			   const uint8_t uuid[16])
{
	struct handed_identity *i =
		one_more(h->identities, h->nidentities, sizeof(*i));

	if (!i)
		return false;
	h->identities = i;
	i += h->nidentities++;
	memcpy(i->key, key, sizeof(i->key));
	memcpy(i->uuid, uuid, sizeof(i->uuid));
	return true;
}

const uint8_t *handover_identity(const struct handover *h,
				 const uint8_t key[16])
{
	for (size_t i = 0; h && i < h->nidentities; i++)
		if (!memcmp(h->identities[i].key, key, 16))
			return h->identities[i].uuid;
	return NULL;
}

static bool same_address(const struct net_addr *a, const struct net_addr *b,
			 bool any_port)
{
	char x[NET_ADDR_STR], y[NET_ADDR_STR];

	net_addr_str(a, x);
	net_addr_str(b, y);
	if (any_port) {
		*strrchr(x, ':') = '\0';
		*strrchr(y, ':') = '\0';
	}
	return !strcmp(x, y);
}

int handover_take_listener(struct handover *h, const struct net_addr *a)
{
	for (size_t i = 0; h && i < h->nlisteners; i++) {
		struct handed_listener *l = &h->listeners[i];
		int fd = l->fd;

		if (fd < 0 ||
		    !same_address(&l->address, a, net_addr_port(a) == 0))
			continue;
		l->fd = -1;
		return fd;
	}
	return -1;
}

bool handover_take_memory(struct handover *h, const char *key,
			  struct lun_memory *to)
{
	for (size_t i = 0; h && i < h->nmemory; i++) {
		struct handed_memory *m = &h->memory[i];

		if (m->memory.fd < 0 || strcmp(m->key, key) != 0)
			continue;
		*to = m->memory;
		m->memory.fd = -1;
		return true;
	}
	return false;
}

const struct handed_unit *handover_unit(const struct handover *h,
					const uint8_t uuid[16])
{
	for (size_t i = 0; h && i < h->nunits; i++)
		if (!memcmp(h->units[i].uuid, uuid, sizeof(h->units[i].uuid)))
			return &h->units[i];
	return NULL;
}

/* ---- bytes as hexadecimal text ---- */

static json_t *hex(const uint8_t *p, size_t n)
{
	char *text = malloc(2 * n + 1);
	json_t *j;

	if (!text)
		return NULL;
	hex_put(text, p, n);
	j = json_stringn(text, 2 * n);
	free(text);
	return j;
}

/* Reads all of j into new bytes from malloc. NULL: not such a text, or out of
 * memory. */
static uint8_t *unhex(const json_t *j, size_t *len)
{
	const char *text = json_string_value(j);
	size_t n = json_string_length(j) / 2;
	uint8_t *p = text ? malloc(n + 1) : NULL;

	*len = n;
	for (size_t i = 0; p && i < n; i++) {
		int high = hex_digit(text[2 * i]);
		int low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0) {
			free(p);
			return NULL;
		}
		p[i] = (uint8_t)(high << 4 | low);
	}
	return p;
}

static bool take_uuid(const json_t *j, uint8_t uuid[16])
{
	size_t len;
	uint8_t *p = unhex(j, &len);
	bool good = p && len == 16;

	if (good)
		memcpy(uuid, p, 16);
	free(p);
	return good;
}

/* ---- sending ---- */

static bool send_all(int sock, const char *p, size_t len)
{
	while (len) {
		ssize_t n = send(sock, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* Sends descriptors with one space, which JSON permits before a value. */
static bool send_fds(int sock, const int *fds, size_t n)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_AT_ONCE * sizeof(int))];
	} c = { .room = { 0 } };
	char space = ' ';
	struct iovec iov = { &space, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &c,
			    .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	ssize_t r;

	c.head.cmsg_level = SOL_SOCKET;
	c.head.cmsg_type = SCM_RIGHTS;
	c.head.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&c.head), fds, n * sizeof(int));
	do
		r = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	return r == 1;
}

/* The descriptors in the order of the lists: listeners, then memory. */
static bool send_all_fds(const struct handover *h, int sock)
{
	size_t all = h->nlisteners + h->nmemory, n = 0;
	int fds[FDS_AT_ONCE];

	for (size_t i = 0; i < all; i++) {
		fds[n++] = i < h->nlisteners
				   ? h->listeners[i].fd
				   : h->memory[i - h->nlisteners].memory.fd;
		if (n < FDS_AT_ONCE && i + 1 < all)
			continue;
		if (!send_fds(sock, fds, n))
			return false;
		n = 0;
	}
	return true;
}

static json_t *memory_json(const struct handover *h)
{
	json_t *all = json_array();

	for (size_t i = 0; i < h->nmemory; i++) {
		const struct handed_memory *m = &h->memory[i];

		json_array_append_new(
			all, json_pack("{s:s, s:I, s:o}", "key", m->key, "size",
				       (json_int_t)m->memory.size, "uuid",
				       hex(m->memory.uuid, 16)));
	}
	return all;
}

static json_t *units_json(const struct handover *h)
{
	json_t *all = json_array();

	for (size_t i = 0; i < h->nunits; i++) {
		const struct handed_unit *u = &h->units[i];

		json_array_append_new(
			all, json_pack("{s:o, s:o}", "uuid",
				       hex(u->uuid, sizeof(u->uuid)),
				       "reservations", hex(u->bytes, u->len)));
	}
	return all;
}

static json_t *ports_json(const struct handover *h)
{
	json_t *all = json_array();

	for (size_t i = 0; i < h->nports; i++)
		json_array_append_new(all, json_pack("{s:s, s:i}", "name",
						     h->ports[i].name, "id",
						     h->ports[i].id));
	return all;
}

static json_t *identities_json(const struct handover *h)
{
	json_t *all = json_array();

	for (size_t i = 0; i < h->nidentities; i++)
		json_array_append_new(
			all, json_pack("{s:o, s:o}", "key",
				       hex(h->identities[i].key, 16), "uuid",
				       hex(h->identities[i].uuid, 16)));
	return all;
}

static bool send_line(int sock, json_t *root)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	bool sent = text && send_all(sock, text, strlen(text)) &&
		    send_all(sock, "\n", 1);

	free(text);
	json_decref(root);
	return sent;
}

bool handover_send(const struct handover *h, int sock)
{
	return send_all_fds(h, sock) &&
	       send_line(
		       sock,
		       json_pack("{s:s, s:i, s:{s:i, s:s, s:I, s:I, s:o, s:o, "
				 "s:o, s:o}}",
				 "jsonrpc", "2.0", "id", 1, "result",
				 "handover", VERSION, "token", h->token,
				 "watchdog", (json_int_t)h->watchdog,
				 "listeners", (json_int_t)h->nlisteners,
				 "memory", memory_json(h), "units",
				 units_json(h), "ports", ports_json(h),
				 "identities", identities_json(h)));
}

/* ---- receiving ---- */

struct incoming {
	int sock;
	int *fds;
	size_t nfds;
	char *line;
	size_t len;
};

static bool take_fds(struct incoming *in, const struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c;
	     c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int *more;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		more = reallocarray(in->fds, in->nfds + n, sizeof(int));
		if (!more || in->nfds + n > FDS_MAX)
			return false;
		in->fds = more;
		memcpy(in->fds + in->nfds, CMSG_DATA(c), n * sizeof(int));
		in->nfds += n;
	}
	return !(m->msg_flags & MSG_CTRUNC);
}

/* Receives some bytes and descriptors. Returns the bytes, 0 at the end, or -1
 * with errno. */
static ssize_t receive_some(struct incoming *in)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_AT_ONCE * sizeof(int))];
	} c;
	struct iovec iov;
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &c,
			    .msg_controllen = sizeof(c) };
	char *line = realloc(in->line, in->len + 65536);
	ssize_t n;

	if (!line || in->len > BYTES_MAX) {
		errno = line ? EMSGSIZE : ENOMEM;
		in->line = line ? line : in->line;
		return -1;
	}
	in->line = line;
	iov = (struct iovec){ line + in->len, 65536 };
	do
		n = recvmsg(in->sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n;
	if (!take_fds(in, &m)) {
		errno = EMFILE;
		return -1;
	}
	in->len += (size_t)n;
	return n;
}

/* Receives the line. False: why has the reason. */
static bool receive_line(struct incoming *in, char *why, size_t size)
{
	ssize_t n;

	do {
		n = receive_some(in);
		if (n < 0)
			snprintf(why, size, "%s",
				 errno == EAGAIN ? "no answer in time"
						 : strerror(errno));
		else if (n == 0)
			snprintf(why, size,
				 "that iserd ended without handing over");
	} while (n > 0 && in->line[in->len - 1] != '\n');
	return n > 0;
}

static bool read_memory(struct handover *h, const json_t *all, int *fds)
{
	const json_t *j;
	size_t i;

	json_array_foreach(all, i, j)
	{
		struct handed_memory m = { .memory.fd = fds[i] };
		const char *key = json_string_value(json_object_get(j, "key"));
		json_int_t size =
			json_integer_value(json_object_get(j, "size"));

		if (!key || strlen(key) >= sizeof(m.key) || size <= 0 ||
		    !take_uuid(json_object_get(j, "uuid"), m.memory.uuid))
			return false;
		memcpy(m.key, key, strlen(key) + 1);
		m.memory.size = (uint64_t)size;
		fds[i] = -1;
		if (!handover_add_memory(h, &m))
			return false;
	}
	return true;
}

static bool read_units(struct handover *h, const json_t *all)
{
	const json_t *j;
	size_t i;

	json_array_foreach(all, i, j)
	{
		uint8_t uuid[16], *bytes;
		size_t len;

		if (!take_uuid(json_object_get(j, "uuid"), uuid))
			return false;
		bytes = unhex(json_object_get(j, "reservations"), &len);
		if (!bytes || !handover_add_unit(h, uuid, bytes, len))
			return false;
	}
	return true;
}

static bool read_ports(struct handover *h, const json_t *all)
{
	const json_t *j;
	size_t i;

	json_array_foreach(all, i, j)
	{
		const char *name =
			json_string_value(json_object_get(j, "name"));
		json_int_t id = json_integer_value(json_object_get(j, "id"));

		if (!name || id <= 0 || id > UINT16_MAX ||
		    !handover_add_port(h, name, (uint16_t)id))
			return false;
	}
	return true;
}

static bool read_identities(struct handover *h, const json_t *all)
{
	const json_t *j;
	size_t i;

	json_array_foreach(all, i, j)
	{
		uint8_t key[16], uuid[16];

		if (!take_uuid(json_object_get(j, "key"), key) ||
		    !take_uuid(json_object_get(j, "uuid"), uuid) ||
		    !handover_add_identity(h, key, uuid))
			return false;
	}
	return true;
}

static bool read_result(struct handover *h, const json_t *r,
			struct incoming *in)
{
	const json_t *memory = json_object_get(r, "memory");
	json_int_t n = json_integer_value(json_object_get(r, "listeners"));
	const char *token = json_string_value(json_object_get(r, "token"));
	json_int_t version = json_integer_value(json_object_get(r, "handover"));

	if ((version != VERSION && version != VERSION_OLD) || n < 0 ||
	    (size_t)n > in->nfds ||
	    in->nfds - (size_t)n != json_array_size(memory) || !token ||
	    strlen(token) >= sizeof(h->token))
		return false;
	memcpy(h->token, token, strlen(token) + 1);
	h->has_identities = version != VERSION_OLD;
	h->watchdog = json_integer_value(json_object_get(r, "watchdog"));
	for (json_int_t i = 0; i < n; i++) {
		int fd = in->fds[i];

		in->fds[i] = -1;
		if (!handover_add_listener(h, fd))
			return false;
	}
	return read_memory(h, memory, in->fds + n) &&
	       read_units(h, json_object_get(r, "units")) &&
	       read_ports(h, json_object_get(r, "ports")) &&
	       read_identities(h, json_object_get(r, "identities"));
}

static struct handover *read_line(struct incoming *in, char *why, size_t size)
{
	json_t *root = json_loadb(in->line, in->len, 0, NULL);
	const char *error = json_string_value(
		json_object_get(json_object_get(root, "error"), "message"));
	struct handover *h = error ? NULL : calloc(1, sizeof(*h));

	if (h && !read_result(h, json_object_get(root, "result"), in)) {
		handover_free(h);
		h = NULL;
	}
	if (!h)
		snprintf(why, size, "%s",
			 error ? error
			       : "that iserd hands over in another form, of "
				 "another version; restart it");
	json_decref(root);
	return h;
}

struct handover *handover_receive(int sock, char *why, size_t size)
{
	struct incoming in = { .sock = sock };
	struct handover *h = NULL;

	if (receive_line(&in, why, size))
		h = read_line(&in, why, size);
	for (size_t i = 0; i < in.nfds; i++)
		close_fd(in.fds[i]);
	free(in.fds);
	free(in.line);
	return h;
}
