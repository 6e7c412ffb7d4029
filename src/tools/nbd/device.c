/* SPDX-License-Identifier: BSD-2-Clause */
/* device.c: messages of generic netlink to the kernel's NBD driver. */
#include "tools/nbd/device.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/nbd-netlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/iser.h"

#define MESSAGE_MAX 2048
#define MAX_INDEX   4095

/* One request and its answer. */
struct message {
	union {
		struct nlmsghdr head;
		uint8_t bytes[MESSAGE_MAX];
	};
};

/* ---- requests ---- */

static void begin_message(struct message *m, uint16_t family, uint8_t command,
			  uint8_t version)
{
	const struct genlmsghdr g = { .cmd = command, .version = version };

	memset(m, 0, sizeof(*m));
	m->head = (struct nlmsghdr){
		.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
		.nlmsg_type = family,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.nlmsg_seq = 1,
	};
	memcpy(NLMSG_DATA(&m->head), &g, sizeof(g));
}

/* Appends an attribute and returns its position. The messages of this file are far
 * shorter than MESSAGE_MAX, except for an identifier, which the caller limits. */
static uint32_t put_attr(struct message *m, uint16_t type, const void *data,
			 size_t len)
{
	uint32_t at = NLMSG_ALIGN(m->head.nlmsg_len);
	const struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + len),
				  .nla_type = type };

	memcpy(m->bytes + at, &a, sizeof(a));
	if (len)
		memcpy(m->bytes + at + NLA_HDRLEN, data, len);
	m->head.nlmsg_len = at + NLA_ALIGN(a.nla_len);
	return at;
}

static void put_attr32(struct message *m, uint16_t type, uint32_t v)
{
	put_attr(m, type, &v, sizeof(v));
}

static void put_attr64(struct message *m, uint16_t type, uint64_t v)
{
	put_attr(m, type, &v, sizeof(v));
}

/* Ends a nested attribute: its length covers what follows it. */
static void end_nest(struct message *m, uint32_t at)
{
	const uint16_t len = (uint16_t)(m->head.nlmsg_len - at);

	memcpy(m->bytes + at, &len, sizeof(len));
}

/* ---- answers ---- */

/* Finds an attribute of four or two bytes in an answer. */
static bool find_attr(const struct nlmsghdr *h, uint16_t type, uint32_t *value)
{
	const uint8_t *p = NLMSG_DATA(h);
	size_t len = h->nlmsg_len - NLMSG_HDRLEN, at = GENL_HDRLEN;
	struct nlattr a;

	while (at + NLA_HDRLEN <= len) {
		memcpy(&a, p + at, sizeof(a));
		if (a.nla_len < NLA_HDRLEN || a.nla_len > len - at)
			return false;
		if ((a.nla_type & NLA_TYPE_MASK) == type) {
			size_t n = a.nla_len - NLA_HDRLEN;

			if (n == sizeof(uint16_t)) {
				uint16_t v;

				memcpy(&v, p + at + NLA_HDRLEN, sizeof(v));
				*value = v;
				return true;
			}
			if (n != sizeof(*value))
				return false;
			memcpy(value, p + at + NLA_HDRLEN, sizeof(*value));
			return true;
		}
		at += NLA_ALIGN(a.nla_len);
	}
	return false;
}

/* Reads the answers to one request until its acknowledgement. Returns 0 or an errno
 * value; *value is the attribute `type` if an answer has it. */
static int read_answers(int fd, uint16_t type, uint32_t *value)
{
	struct message m;
	struct nlmsgerr e;

	for (;;) {
		ssize_t n = recv(fd, m.bytes, sizeof(m.bytes), 0);
		const struct nlmsghdr *h = &m.head;
		size_t left = n > 0 ? (size_t)n : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? errno : EPROTO;
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type != NLMSG_ERROR) {
				find_attr(h, type, value);
				continue;
			}
			if (h->nlmsg_len < NLMSG_LENGTH(sizeof(e)))
				return EPROTO;
			memcpy(&e, NLMSG_DATA(h), sizeof(e));
			return -e.error;
		}
	}
}

/* Sends a request and returns its result; value as read_answers. */
static int ask(int fd, const struct message *m, uint16_t type, uint32_t *value)
{
	if (send(fd, m->bytes, m->head.nlmsg_len, 0) < 0)
		return errno;
	return read_answers(fd, type, value);
}

/* Opens a socket to the driver. Returns 0 or an errno value: ENOENT, the module is
 * not loaded. */
static int open_driver(int *fd, uint16_t *family)
{
	struct message m;
	uint32_t id = 0;
	int err;

	*fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (*fd < 0)
		return errno;
	begin_message(&m, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	put_attr(&m, CTRL_ATTR_FAMILY_NAME, NBD_GENL_FAMILY_NAME,
		 sizeof(NBD_GENL_FAMILY_NAME));
	err = ask(*fd, &m, CTRL_ATTR_FAMILY_ID, &id);
	if (!err && !id)
		err = EPROTO;
	if (err)
		close(*fd);
	*family = (uint16_t)id;
	return err;
}

/* ---- commands ---- */

static void put_sockets(struct message *m, const struct nbd_device *d)
{
	uint32_t all, one;

	all = put_attr(m, NBD_ATTR_SOCKETS | NLA_F_NESTED, NULL, 0);
	for (unsigned i = 0; i < d->nsockets; i++) {
		one = put_attr(m, NBD_SOCK_ITEM | NLA_F_NESTED, NULL, 0);
		put_attr32(m, NBD_SOCK_FD, (uint32_t)d->sockets[i]);
		end_nest(m, one);
	}
	end_nest(m, all);
}

static void put_identifier(struct message *m, const struct nbd_device *d)
{
	put_attr(m, NBD_ATTR_BACKEND_IDENTIFIER, d->identifier,
		 strnlen(d->identifier, 512) + 1);
}

static void put_properties(struct message *m, const struct nbd_device *d)
{
	put_attr64(m, NBD_ATTR_SIZE_BYTES, d->size);
	put_attr64(m, NBD_ATTR_BLOCK_SIZE_BYTES, d->block_size);
	put_attr64(m, NBD_ATTR_TIMEOUT, d->timeout);
	put_attr64(m, NBD_ATTR_DEAD_CONN_TIMEOUT, d->dead_timeout);
	put_attr64(m, NBD_ATTR_SERVER_FLAGS, d->flags);
}

enum parts {
	SOCKETS = 1,
	PROPERTIES = 2,
	IDENTIFIER = 4,
	SIZE = 8,
};

static int ask_driver(const struct nbd_device *d, uint8_t command,
		      unsigned parts, uint32_t *index)
{
	struct message m;
	uint16_t family;
	int fd, err = open_driver(&fd, &family);

	if (err)
		return err;
	begin_message(&m, family, command, NBD_GENL_VERSION);
	if (d->index >= 0)
		put_attr32(&m, NBD_ATTR_INDEX, (uint32_t)d->index);
	if (parts & PROPERTIES)
		put_properties(&m, d);
	if (parts & SIZE)
		put_attr64(&m, NBD_ATTR_SIZE_BYTES, d->size);
	if (parts & IDENTIFIER)
		put_identifier(&m, d);
	if (parts & SOCKETS)
		put_sockets(&m, d);
	err = ask(fd, &m, NBD_ATTR_INDEX, index);
	close(fd);
	return err;
}

int nbd_device_connect(struct nbd_device *d)
{
	uint32_t index = UINT32_MAX;
	int err = ask_driver(d, NBD_CMD_CONNECT,
			     PROPERTIES | IDENTIFIER | SOCKETS, &index);

	if (!err && index > MAX_INDEX)
		err = EPROTO;
	if (!err)
		d->index = (int)index;
	return err;
}

int nbd_device_revive(const struct nbd_device *d)
{
	uint32_t index;

	return ask_driver(d, NBD_CMD_RECONFIGURE, IDENTIFIER | SOCKETS, &index);
}

int nbd_device_resize(const struct nbd_device *d)
{
	uint32_t index;

	return ask_driver(d, NBD_CMD_RECONFIGURE, IDENTIFIER | SIZE, &index);
}

int nbd_device_disconnect(int index)
{
	const struct nbd_device d = { .index = index };
	uint32_t value;

	return ask_driver(&d, NBD_CMD_DISCONNECT, 0, &value);
}

int nbd_device_check(void)
{
	uint16_t family;
	int fd, err = open_driver(&fd, &family);

	if (!err) {
		close(fd);
		return 0;
	}
	if (err == ENOENT)
		say("/dev/nbd: no NBD devices: the module nbd of the Linux "
		    "kernel is not loaded; run modprobe nbd");
	else
		say("/dev/nbd: cannot reach the kernel: %s", strerror(err));
	return EXIT_GENERIC;
}

/* ---- names ---- */

int nbd_device_index(const char *path)
{
	char *end;
	long n;

	if (!strncmp(path, "/dev/", 5))
		path += 5;
	if (strncmp(path, "nbd", 3) || path[3] < '0' || path[3] > '9')
		return -1;
	n = strtol(path + 3, &end, 10);
	return *end || n > MAX_INDEX ? -1 : (int)n;
}

long nbd_device_server(int index)
{
	char path[64], text[32] = "";
	long pid;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/block/nbd%d/pid", index);
	f = fopen(path, "re");
	if (!f)
		return -1;
	pid = fgets(text, sizeof(text), f) ? strtol(text, NULL, 10) : -1;
	fclose(f);
	return pid;
}
