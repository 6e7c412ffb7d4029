/* SPDX-License-Identifier: BSD-2-Clause */
/* message.h: the messages of iSNS (RFC 4171 §5): headers, attributes, payloads as they
 * are built and read. Pure. A payload that came from the network is checked as a whole
 * (isns_attrs_valid) before any of its attributes is used. */
#ifndef TOOLS_ISNS_MESSAGE_H
#define TOOLS_ISNS_MESSAGE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISNS_HEADER_LEN 12u
#define ISNS_PDU_MAX	65532u /* of the payload: a multiple of 4 (§5.1.3) */
#define ISNS_TEXT_MAX	256u   /* of a text, with its NUL (§6.1) */

enum isns_function {
	ISNS_DEV_ATTR_REG = 0x0001,
	ISNS_DEV_ATTR_QRY = 0x0002,
	ISNS_DEV_DEREG = 0x0004,
	ISNS_SCN_REG = 0x0005,
	ISNS_SCN = 0x0008,
	ISNS_ESI = 0x000d,
	ISNS_RESPONSE = 0x8000, /* added to the function of the request */
};

enum isns_flag { /* §5.1.4 */
	ISNS_FROM_CLIENT = 0x8000,
	ISNS_LAST = 0x0800,
	ISNS_FIRST = 0x0400,
};

enum isns_status { /* §5.4 */
	ISNS_SUCCESS = 0,
	ISNS_FORMAT_ERROR = 2,
	ISNS_NOT_SUPPORTED = 15,
};

enum isns_tag { /* §6.1 */
	ISNS_DELIMITER = 0,
	ISNS_ENTITY = 1,
	ISNS_ENTITY_PROTOCOL = 2,
	ISNS_PORTAL_IP = 16,
	ISNS_PORTAL_PORT = 17,
	ISNS_ESI_INTERVAL = 19,
	ISNS_ESI_PORT = 20,
	ISNS_SCN_PORT = 23,
	ISNS_NODE_NAME = 32,
	ISNS_NODE_TYPE = 33,
	ISNS_NODE_ALIAS = 34,
	ISNS_SCN_BITMAP = 35,
	ISNS_PG_NAME = 48,
	ISNS_PG_IP = 49,
	ISNS_PG_PORT = 50,
	ISNS_PG_TAG = 51,
};

/* ---- headers ---- */

struct isns_header {
	uint16_t function, len, flags, xid, seq;
};

/* isns_header_decode returns false for another version, and for a length that is not a
 * multiple of 4 (§5.1.1, §5.1.3). */
bool isns_header_decode(struct isns_header *h,
			const uint8_t bytes[ISNS_HEADER_LEN]);
void isns_header_encode(const struct isns_header *h,
			uint8_t bytes[ISNS_HEADER_LEN]);

/* ---- a payload that is built ---- */

/* Starts as zeroes; isns_payload_free ends it. */
struct isns_payload {
	uint8_t *bytes;
	size_t len, room;
	bool no_memory; /* the bytes are not complete */
};

void isns_put_bytes(struct isns_payload *p, const void *bytes, size_t n);
/* isns_put_word adds 4 bytes, for example a status. */
void isns_put_word(struct isns_payload *p, uint32_t value);
/* Each of these adds an attribute, padded with zeroes (§5.3.1). isns_put_none: one
 * without a value; isns_put_text: with the NUL of the text. */
void isns_put_none(struct isns_payload *p, enum isns_tag tag);
void isns_put_number(struct isns_payload *p, enum isns_tag tag, uint32_t value);
void isns_put_text(struct isns_payload *p, enum isns_tag tag, const char *text);
void isns_put_ip(struct isns_payload *p, enum isns_tag tag,
		 const struct in6_addr *ip);
void isns_payload_free(struct isns_payload *p);

/* ---- a payload that is read ---- */

struct isns_attr {
	uint32_t tag, len;
	const uint8_t *value;
};

/* The attributes of a payload that are left to read. */
struct isns_attrs {
	const uint8_t *bytes;
	size_t len;
};

/* isns_attr_next takes the next attribute; false: none is left, or it is malformed. */
bool isns_attr_next(struct isns_attrs *all, struct isns_attr *a);
/* isns_attrs_valid returns whether the bytes are whole attributes, each with a length
 * that is a multiple of 4 and within the bytes (§5.3). */
bool isns_attrs_valid(struct isns_attrs all);
/* isns_attr_number reads a value of 4 bytes; false: the value has another length. */
bool isns_attr_number(const struct isns_attr *a, uint32_t *value);
/* isns_attr_text returns the text in the value, which has a NUL; or NULL: there is no
 * NUL, or the text is longer than any of iSNS. */
const char *isns_attr_text(const struct isns_attr *a);
bool isns_attr_ip(const struct isns_attr *a, struct in6_addr *ip);

/* isns_status_str returns the meaning of a status of §5.4, a constant. */
const char *isns_status_str(uint32_t status);

#endif
