/* SPDX-License-Identifier: BSD-2-Clause */
/* path_unit.c: designators and target port groups. */
#include "lib/path_unit.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define PAGE	    0x83
#define ASSOCIATION 0x30 /* 0: the logical unit */
#define ASSOC_PORT  0x10
#define TYPE_MASK   0x0f

/* SPC-4 table 556; the number is in byte 1 */
#define TYPE_T10       0x1
#define TYPE_EUI64     0x2
#define TYPE_NAA       0x3
#define TYPE_REL_PORT  0x4
#define TYPE_GROUP     0x5
#define TYPE_SCSI_NAME 0x8
#define TYPE_UUID      0xa /* SPC-5 */

/* From the best one on. Vendor-specific designators (type 0) name nothing. */
static const uint8_t types[] = { TYPE_NAA, TYPE_EUI64, TYPE_UUID,
				 TYPE_SCSI_NAME, TYPE_T10 };

/* ---- designators ---- */

/* Returns the length of the designation descriptor at p, or 0 if it does not end
 * within len bytes. */
static size_t descriptor_len(const uint8_t *p, size_t len)
{
	if (len < 4 || p[3] > len - 4)
		return 0;
	return 4u + p[3];
}

static bool is_known_type(uint8_t type)
{
	return memchr(types, type, sizeof(types));
}

static void read_port(struct lib_port *port, const uint8_t *p)
{
	uint8_t type = p[1] & TYPE_MASK;

	if ((p[1] & ASSOCIATION) != ASSOC_PORT || p[3] < 4)
		return;
	if (type == TYPE_REL_PORT)
		port->port = get_be16(p + 6);
	if (type == TYPE_GROUP)
		port->group = get_be16(p + 6);
}

bool lib_identity_read(struct lib_identity *id, struct lib_port *port,
		       const uint8_t *page, size_t len)
{
	size_t n, end;

	id->len = 0;
	*port = (struct lib_port){ 0 };
	if (len < 4 || page[1] != PAGE)
		return false;
	end = MIN(len, 4u + get_be16(page + 2));
	for (size_t at = 4; (n = descriptor_len(page + at, end - at));
	     at += n) {
		const uint8_t *p = page + at;

		read_port(port, p);
		if ((p[1] & ASSOCIATION) || !p[3] ||
		    !is_known_type(p[1] & TYPE_MASK) ||
		    n > sizeof(id->list) - id->len)
			continue;
		memcpy(id->list + id->len, p, n);
		id->len += n;
	}
	return id->len > 0;
}

/* Returns the next designator of a type from *at on, or NULL. */
static const uint8_t *next_of_type(const struct lib_identity *id, uint8_t type,
				   size_t *at)
{
	while (*at < id->len) {
		const uint8_t *p = id->list + *at;

		*at += 4u + p[3];
		if ((p[1] & TYPE_MASK) == type)
			return p;
	}
	return NULL;
}

static bool has_type(const struct lib_identity *id, uint8_t type)
{
	size_t at = 0;

	return next_of_type(id, type, &at);
}

static bool share_designator(const struct lib_identity *a,
			     const struct lib_identity *b, uint8_t type)
{
	const uint8_t *p, *q;

	for (size_t i = 0; (p = next_of_type(a, type, &i));)
		for (size_t k = 0; (q = next_of_type(b, type, &k));)
			if (p[3] == q[3] && !memcmp(p + 4, q + 4, p[3]))
				return true;
	return false;
}

bool lib_identity_same(const struct lib_identity *a,
		       const struct lib_identity *b)
{
	for (size_t i = 0; i < sizeof(types); i++)
		if (has_type(a, types[i]) && has_type(b, types[i]))
			return share_designator(a, b, types[i]);
	return false;
}

static void put_hex(char *out, size_t size, const uint8_t *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;

	for (size_t i = 0; i < n && at + 2 < size; i++) {
		out[at++] = digits[p[i] >> 4];
		out[at++] = digits[p[i] & 15];
	}
	out[at] = '\0';
}

void lib_identity_text(const struct lib_identity *id, char *out, size_t size)
{
	char name[2 * 255 + 1];
	const uint8_t *p = NULL;

	for (size_t i = 0; i < sizeof(types) && !p; i++) {
		size_t at = 0;

		p = next_of_type(id, types[i], &at);
	}
	if (!p) {
		snprintf(out, size, "no name");
		return;
	}
	put_hex(name, sizeof(name), p + 4, p[3]);
	switch (p[1] & TYPE_MASK) {
	case TYPE_NAA:
		snprintf(out, size, "naa.%s", name);
		break;
	case TYPE_EUI64:
		snprintf(out, size, "eui.%s", name);
		break;
	case TYPE_UUID: /* 10h, 0, then the UUID (SPC-5 §7.7.6.11) */
		snprintf(out, size, "uuid.%s",
			 strlen(name) > 4 ? name + 4 : name);
		break;
	case TYPE_SCSI_NAME:
		snprintf(out, size, "%.*s", (int)strnlen((char *)p + 4, p[3]),
			 (const char *)p + 4);
		break;
	default:
		snprintf(out, size, "t10.%.*s",
			 (int)strnlen((char *)p + 4, p[3]),
			 (const char *)p + 4);
	}
}

/* ---- target port groups ---- */

bool lib_groups_find(const uint8_t *data, size_t len, uint16_t group,
		     uint8_t *access, bool *preferred)
{
	size_t end;

	if (len < 4)
		return false;
	end = MIN((uint64_t)len, 4 + (uint64_t)get_be32(data));
	for (size_t at = 4; end - at >= 8;) {
		const uint8_t *p = data + at;
		size_t n = 8 + 4u * p[7];

		if (get_be16(p + 2) == group) {
			*access = p[0] & 0x0f;
			*preferred = p[0] & 0x80;
			return true;
		}
		if (n > end - at)
			return false;
		at += n;
	}
	return false;
}
