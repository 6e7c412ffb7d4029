/* SPDX-License-Identifier: BSD-2-Clause */
/* message.c: the messages of iSNS: headers and attributes. */
#include "tools/isns/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define VERSION 1u

/* ---- headers ---- */

bool isns_header_decode(struct isns_header *h,
			const uint8_t bytes[ISNS_HEADER_LEN])
{
	*h = (struct isns_header){
		.function = get_be16(bytes + 2),
		.len = get_be16(bytes + 4),
		.flags = get_be16(bytes + 6),
		.xid = get_be16(bytes + 8),
		.seq = get_be16(bytes + 10),
	};
	return get_be16(bytes) == VERSION && h->len % 4 == 0;
}

void isns_header_encode(const struct isns_header *h,
			uint8_t bytes[ISNS_HEADER_LEN])
{
	put_be16(bytes, VERSION);
	put_be16(bytes + 2, h->function);
	put_be16(bytes + 4, h->len);
	put_be16(bytes + 6, h->flags);
	put_be16(bytes + 8, h->xid);
	put_be16(bytes + 10, h->seq);
}

/* ---- a payload that is built ---- */

void isns_put_bytes(struct isns_payload *p, const void *bytes, size_t n)
{
	if (p->no_memory)
		return;
	if (n > p->room - p->len) {
		size_t room = 2 * p->room + n;
		uint8_t *more = realloc(p->bytes, room);

		p->no_memory = !more;
		if (!more)
			return;
		p->bytes = more;
		p->room = room;
	}
	if (n)
		memcpy(p->bytes + p->len, bytes, n);
	p->len += n;
}

void isns_put_word(struct isns_payload *p, uint32_t value)
{
	uint8_t bytes[4];

	put_be32(bytes, value);
	isns_put_bytes(p, bytes, sizeof(bytes));
}

static void put_attr(struct isns_payload *p, enum isns_tag tag,
		     const void *value, uint32_t len)
{
	static const uint8_t zeroes[3];
	uint32_t pad = -len & 3;

	isns_put_word(p, tag);
	isns_put_word(p, len + pad);
	isns_put_bytes(p, value, len);
	isns_put_bytes(p, zeroes, pad);
}

void isns_put_none(struct isns_payload *p, enum isns_tag tag)
{
	put_attr(p, tag, NULL, 0);
}

void isns_put_number(struct isns_payload *p, enum isns_tag tag, uint32_t value)
{
	uint8_t bytes[4];

	put_be32(bytes, value);
	put_attr(p, tag, bytes, sizeof(bytes));
}

void isns_put_text(struct isns_payload *p, enum isns_tag tag, const char *text)
{
	put_attr(p, tag, text, (uint32_t)strlen(text) + 1);
}

void isns_put_ip(struct isns_payload *p, enum isns_tag tag,
		 const struct in6_addr *ip)
{
	put_attr(p, tag, ip, sizeof(*ip));
}

void isns_payload_free(struct isns_payload *p)
{
	free(p->bytes);
	*p = (struct isns_payload){ 0 };
}

/* ---- a payload that is read ---- */

bool isns_attr_next(struct isns_attrs *all, struct isns_attr *a)
{
	if (all->len < 8)
		return false;
	a->tag = get_be32(all->bytes);
	a->len = get_be32(all->bytes + 4);
	a->value = all->bytes + 8;
	if (a->len % 4 != 0 || a->len > all->len - 8)
		return false;
	all->bytes += 8 + a->len;
	all->len -= 8 + a->len;
	return true;
}

bool isns_attrs_valid(struct isns_attrs all)
{
	struct isns_attr a;

	while (isns_attr_next(&all, &a))
		continue;
	return all.len == 0;
}

bool isns_attr_number(const struct isns_attr *a, uint32_t *value)
{
	if (a->len != 4)
		return false;
	*value = get_be32(a->value);
	return true;
}

const char *isns_attr_text(const struct isns_attr *a)
{
	size_t most = MIN(a->len, (size_t)ISNS_TEXT_MAX);

	return memchr(a->value, '\0', most) ? (const char *)a->value : NULL;
}

bool isns_attr_ip(const struct isns_attr *a, struct in6_addr *ip)
{
	if (a->len != sizeof(*ip))
		return false;
	memcpy(ip, a->value, sizeof(*ip));
	return true;
}

const char *isns_status_str(uint32_t status)
{
	static const char *const words[] = {
		"success",
		"unknown error",
		"message format error",
		"invalid registration",
		"reserved status 4",
		"invalid query",
		"source unknown",
		"source absent",
		"source unauthorized",
		"no such entry",
		"version not supported",
		"internal error",
		"busy",
		"option not understood",
		"invalid update",
		"message not supported",
		"SCN event rejected",
		"SCN registration rejected",
		"attribute not implemented",
		"FC_DOMAIN_ID not available",
		"FC_DOMAIN_ID not allocated",
		"ESI not available",
		"invalid deregistration",
		"registration feature not supported",
	};

	return status < ARRAY_LEN(words) ? words[status]
					 : "a status that RFC 4171 lacks";
}
