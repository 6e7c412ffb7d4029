/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture.c: what the connections of a case sent and received, as a pcap file
 * of raw IPv4 packets with made-up addresses: 192.0.2.1 is iser-check, port
 * 3260 of 192.0.2.2 is the peer, whatever its port, so that tshark takes the
 * stream for iSCSI.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"
#include "tools/check/check.h"

#define LINKTYPE_RAW 101
#define HEADERS	     40
#define SEGMENT	     16384 /* bytes of data in a packet */
#define CAPTURE_MAX  (8u << 20)

struct capture {
	uint8_t *bytes;
	size_t len, size;
};

struct capture *capture_new(void)
{
	return calloc(1, sizeof(struct capture));
}

void capture_free(struct capture *c)
{
	if (c)
		free(c->bytes);
	free(c);
}

static uint8_t *capture_reserve(struct capture *c, size_t n)
{
	size_t size = MAX(c->size, 4096);
	uint8_t *bytes;

	while (size - c->len < n)
		size *= 2;
	bytes = size > CAPTURE_MAX ? NULL : realloc(c->bytes, size);
	if (!bytes)
		return NULL;
	c->bytes = bytes;
	c->size = size;
	c->len += n;
	return bytes + c->len - n;
}

static uint16_t ip_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += get_be16(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static void put_headers(uint8_t *p, uint16_t port, bool to_peer, uint32_t seq,
			uint32_t ack, size_t len)
{
	static const uint8_t hosts[2][4] = { { 192, 0, 2, 2 },
					     { 192, 0, 2, 1 } };

	memset(p, 0, HEADERS);
	p[0] = 0x45;
	put_be16(p + 2, (uint16_t)(HEADERS + len));
	p[8] = 64;
	p[9] = 6; /* TCP */
	memcpy(p + 12, hosts[to_peer], 4);
	memcpy(p + 16, hosts[!to_peer], 4);
	put_be16(p + 10, ip_checksum(p));
	put_be16(p + 20, to_peer ? port : 3260);
	put_be16(p + 22, to_peer ? 3260 : port);
	put_be32(p + 24, seq);
	put_be32(p + 28, ack);
	p[32] = 0x50;
	p[33] = 0x18; /* PSH, ACK */
	put_be16(p + 34, 0xffff);
}

void capture_add(struct capture *c, uint16_t port, bool to_peer,
		 uint32_t seq[2], const void *data, size_t len)
{
	struct timespec t;

	if (!c)
		return;
	clock_gettime(CLOCK_REALTIME, &t);
	for (size_t at = 0, n; at < len; at += n) {
		uint8_t *p;

		n = MIN(len - at, SEGMENT);
		p = capture_reserve(c, 16 + HEADERS + n);
		if (!p)
			return;
		put_be32(p, (uint32_t)t.tv_sec);
		put_be32(p + 4, (uint32_t)(t.tv_nsec / 1000));
		put_be32(p + 8, (uint32_t)(HEADERS + n));
		put_be32(p + 12, (uint32_t)(HEADERS + n));
		put_headers(p + 16, port, to_peer, seq[to_peer] + 1,
			    seq[!to_peer] + 1, n);
		memcpy(p + 16 + HEADERS, (const uint8_t *)data + at, n);
		seq[to_peer] += (uint32_t)n;
	}
}

int capture_write(const struct capture *c, const char *path)
{
	uint8_t head[24] = { 0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4 };
	FILE *f = fopen(path, "we");
	bool ok;

	if (!f)
		return -errno;
	put_be32(head + 16, 65535);
	put_be32(head + 20, LINKTYPE_RAW);
	ok = fwrite(head, sizeof(head), 1, f) == 1 &&
	     (!c->len || fwrite(c->bytes, c->len, 1, f) == 1);
	if (fclose(f))
		ok = false;
	return ok ? 0 : -EIO;
}
