/* SPDX-License-Identifier: BSD-2-Clause */
/* identity.c: designators, serial numbers, and whether two units are one. */
#include "lib/identity.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define PAGE_SERIAL 0x80
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

/* SPC-4 table 564: who assigned the rest of an NAA designator */
#define NAA_IEEE_EXTENDED   0x2
#define NAA_LOCAL	    0x3
#define NAA_IEEE_REGISTERED 0x5
#define NAA_REGISTERED_MORE 0x6 /* 16 octets */

/* From the best one on. Vendor-specific designators (type 0) name nothing. */
static const uint8_t types[] = { TYPE_NAA, TYPE_EUI64, TYPE_UUID,
				 TYPE_SCSI_NAME, TYPE_T10 };

/* ---- the pages ---- */

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

void lib_identity_serial(struct lib_identity *id, const uint8_t *page,
			 size_t len)
{
	size_t from = 4, end;

	id->serial_len = 0;
	id->serial[0] = '\0';
	if (len < 4 || page[1] != PAGE_SERIAL)
		return;
	end = MIN(len, 4u + get_be16(page + 2));
	end = MIN(end, 4u + LIB_SERIAL_MAX);
	while (from < end && page[from] <= ' ')
		from++;
	while (end > from && page[end - 1] <= ' ')
		end--;
	memcpy(id->serial, page + from, end - from);
	id->serial[end - from] = '\0';
	id->serial_len = (uint8_t)strlen(id->serial);
}

/* ---- strong and weak ---- */

static bool is_counter(const char *s)
{
	while (s[0] && s[1] == (s[0] == '9' ? '0' : s[0] + 1))
		s++;
	return s[0] && !s[1];
}

/* tgt: "beaf", the number of the target, the LUN. */
static bool is_default_of_tgt(const char *s)
{
	return !strncmp(s, "beaf", 4) &&
	       strspn(s + 4, "0123456789") == strlen(s + 4);
}

bool lib_serial_is_strong(const char *serial)
{
	unsigned different = 0;

	if (strlen(serial) < 8 || is_counter(serial) ||
	    is_default_of_tgt(serial))
		return false;
	for (const char *p = serial; *p; p++)
		different += strchr(serial, *p) == p;
	return different >= 4;
}

static bool all_equal(const uint8_t *p, size_t n)
{
	return n < 2 || !memcmp(p, p + 1, n - 1);
}

/* The IEEE company_id of an NAA designator of type 5 or 6; tgt has 0 there. */
static uint32_t company_of(const uint8_t *p)
{
	return (get_be32(p) >> 4) & 0xffffff;
}

static bool is_strong_naa(const uint8_t *p, size_t n)
{
	unsigned zeros = 0;

	if (n != 8 && n != 16)
		return false;
	for (size_t i = 0; i < n; i++)
		zeros += !p[i];
	switch (p[0] >> 4) {
	case NAA_IEEE_EXTENDED: /* 12 bits, company_id, 24 bits */
		return n == 8 && get_be24(p + 2) && !all_equal(p + 5, 3);
	case NAA_IEEE_REGISTERED:
		return n == 8 && company_of(p) && !all_equal(p + 4, 4);
	case NAA_REGISTERED_MORE:
		return n == 16 && company_of(p) && !all_equal(p + 4, 12);
	case NAA_LOCAL:
		return n == 8 && zeros <= 2;
	default:
		return false;
	}
}

/* §7.8.6.11: "eui.", "naa." and "uuid." repeat the other types; a name that begins with
 * "iqn." is as unique as the name of the target. */
static bool is_strong_name(const uint8_t *p, size_t n)
{
	return n > 16 && (!memcmp(p, "eui.", 4) || !memcmp(p, "naa.", 4) ||
			  !memcmp(p, "uuid", 4));
}

static bool is_strong(const uint8_t *d)
{
	const uint8_t *p = d + 4;
	size_t n = d[3];

	switch (d[1] & TYPE_MASK) {
	case TYPE_NAA:
		return is_strong_naa(p, n);
	case TYPE_EUI64: /* the company_id first */
		return n >= 8 && (p[0] || p[1] || p[2]) && !all_equal(p + 3, 5);
	case TYPE_UUID: /* 10h, 0, then the UUID (SPC-5 §7.7.6.11) */
		return n == 18 && !all_equal(p + 2, 16);
	case TYPE_SCSI_NAME:
		return is_strong_name(p, n);
	default:
		return false;
	}
}

/* Returns the next designator of a type from *at on, or NULL. */
static const uint8_t *next_of_type(const struct lib_identity *id, uint8_t type,
				   bool strong, size_t *at)
{
	while (*at < id->len) {
		const uint8_t *p = id->list + *at;

		*at += 4u + p[3];
		if ((p[1] & TYPE_MASK) == type && (!strong || is_strong(p)))
			return p;
	}
	return NULL;
}

static bool has_strong(const struct lib_identity *id, uint8_t type)
{
	size_t at = 0;

	return next_of_type(id, type, true, &at);
}

/* ---- comparison ---- */

static bool share_designator(const struct lib_identity *a,
			     const struct lib_identity *b, uint8_t type)
{
	const uint8_t *p, *q;

	for (size_t i = 0; (p = next_of_type(a, type, true, &i));)
		for (size_t k = 0; (q = next_of_type(b, type, true, &k));)
			if (p[3] == q[3] && !memcmp(p + 4, q + 4, p[3]))
				return true;
	return false;
}

static bool same_serial(const struct lib_identity *a,
			const struct lib_identity *b)
{
	return !strcmp(a->serial, b->serial) &&
	       !memcmp(a->product, b->product, sizeof(a->product));
}

bool lib_identity_is_strong(const struct lib_identity *id)
{
	for (size_t i = 0; i < sizeof(types); i++)
		if (has_strong(id, types[i]))
			return true;
	return lib_serial_is_strong(id->serial);
}

enum lib_same lib_identity_compare(const struct lib_identity *a,
				   const struct lib_identity *b)
{
	for (size_t i = 0; i < sizeof(types); i++)
		if (has_strong(a, types[i]) && has_strong(b, types[i]))
			return share_designator(a, b, types[i]) ? LIB_SAME
								: LIB_OTHER;
	if (lib_serial_is_strong(a->serial) && lib_serial_is_strong(b->serial))
		return same_serial(a, b) ? LIB_SAME : LIB_OTHER;
	return LIB_UNSURE;
}

static bool is_identical(const struct lib_identity *a,
			 const struct lib_identity *b)
{
	return a->len == b->len && !memcmp(a->list, b->list, a->len) &&
	       same_serial(a, b);
}

static int changed(char *why, size_t size, const char *what, const char *now,
		   const char *was)
{
	snprintf(why, size, "%s %s, not %s", what, now, was);
	return ISER_E_CHANGED;
}

static int check_identity(const struct lib_identity *was,
			  const struct lib_identity *now, enum lib_same same,
			  bool weak_ok, char *why, size_t size)
{
	char a[80], b[80];

	if (same == LIB_SAME || (weak_ok && is_identical(was, now)))
		return 0;
	lib_identity_text(was, a, sizeof(a));
	lib_identity_text(now, b, sizeof(b));
	if (same == LIB_OTHER || weak_ok)
		return changed(why, size, "is", b, a);
	snprintf(why, size,
		 "has no unique name (%s), so it may be another one; give it a "
		 "serial number or an NAA of its own",
		 b);
	return ISER_E_UNSUPPORTED;
}

static int check_capacity(const struct iser_capacity *was,
			  const struct iser_capacity *now, bool may_grow,
			  char *why, size_t size)
{
	char a[64], b[64];

	if (was->block_size == now->block_size && was->blocks == now->blocks)
		return 0;
	if (was->block_size == now->block_size && now->blocks > was->blocks &&
	    may_grow)
		return 0;
	snprintf(a, sizeof(a), "%llu of %u", (unsigned long long)was->blocks,
		 was->block_size);
	snprintf(b, sizeof(b), "%llu blocks of %u bytes",
		 (unsigned long long)now->blocks, now->block_size);
	return changed(why, size, "has", b, a);
}

int lib_who_check(const struct lib_who *was, const struct lib_who *now,
		  unsigned accept, char *why, size_t size)
{
	enum lib_same same =
		lib_identity_compare(&was->identity, &now->identity);
	int err = check_identity(&was->identity, &now->identity, same,
				 accept & LIB_WEAK, why, size);

	if (err || !was->has_capacity || !now->has_capacity)
		return err;
	if ((accept & LIB_SIZE) &&
	    was->capacity.block_size == now->capacity.block_size)
		return 0;
	return check_capacity(&was->capacity, &now->capacity,
			      (accept & LIB_GROWTH) && same == LIB_SAME, why,
			      size);
}

/* ---- text ---- */

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

/* The best designator, a strong one before all others; or NULL. */
static const uint8_t *best_of(const struct lib_identity *id)
{
	for (unsigned strong = 2; strong-- > 0;)
		for (size_t i = 0; i < sizeof(types); i++) {
			size_t at = 0;
			const uint8_t *p =
				next_of_type(id, types[i], strong, &at);

			if (p)
				return p;
		}
	return NULL;
}

static void put_designator(const uint8_t *p, char *out, size_t size)
{
	char name[2 * 255 + 1];

	put_hex(name, sizeof(name), p + 4, p[3]);
	switch (p[1] & TYPE_MASK) {
	case TYPE_NAA:
		snprintf(out, size, "naa.%s", name);
		break;
	case TYPE_EUI64:
		snprintf(out, size, "eui.%s", name);
		break;
	case TYPE_UUID:
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

void lib_identity_text(const struct lib_identity *id, char *out, size_t size)
{
	const uint8_t *p = best_of(id);

	if (p && (is_strong(p) || !lib_serial_is_strong(id->serial)))
		put_designator(p, out, size);
	else if (id->serial[0])
		snprintf(out, size, "serial number %s", id->serial);
	else
		snprintf(out, size, "no name");
}
