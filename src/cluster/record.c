/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.c: the record of a shared unit. Numbers are in network byte order, strings have
 * a length of one byte and no NUL.
 *
 * header	magic (8), format (2), flags (2), length (4), CRC32C of the rest (4)
 * then		version, generation, forgotten (8 each), numbers of gateways, parts and
 *		events (1 each), owner (string)
 * gateway	name (string), number (2), block size (2; not in format 1), number of
 *		ports (1), ports (2 each), number of portals (1), portals (string
 *		each), last change: run, number (8 each)
 * part		version of its last change (8), length (4), bytes
 * event	version (8), part (1), length (4), bytes
 *
 * A record in which no gateway has a block size is of format 1.
 */
#include "cluster/record.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/err.h"

#define MAGIC	 "openiser"
#define FORMAT	 1u /* without block sizes */
#define FORMAT_2 2u
#define HEADER	 20u
#define CRC_AT	 16u
#define WITHHELD BIT(0)

/* The rest of the record; an error stays. */
struct reader {
	const uint8_t *p;
	size_t left;
	unsigned format;
	int err;
};

static const uint8_t *take(struct reader *in, size_t n)
{
	const uint8_t *p = in->p;

	if (in->err)
		return NULL;
	if (n > in->left) {
		in->err = ERR_TRUNCATED;
		return NULL;
	}
	in->p += n;
	in->left -= n;
	return p;
}

static uint8_t take_8(struct reader *in)
{
	const uint8_t *p = take(in, 1);

	return p ? *p : 0;
}

static uint16_t take_16(struct reader *in)
{
	const uint8_t *p = take(in, 2);

	return p ? get_be16(p) : 0;
}

static uint32_t take_32(struct reader *in)
{
	const uint8_t *p = take(in, 4);

	return p ? get_be32(p) : 0;
}

static uint64_t take_64(struct reader *in)
{
	const uint8_t *p = take(in, 8);

	return p ? get_be64(p) : 0;
}

static void need(struct reader *in, bool ok)
{
	if (!ok && !in->err)
		in->err = ERR_FORMAT;
}

/* A string of printable ASCII, for out of size bytes that are 0. */
static void take_string(struct reader *in, char *out, size_t size)
{
	size_t n = take_8(in);
	const uint8_t *p;

	if (n >= size) {
		need(in, false);
		return;
	}
	p = take(in, n);
	for (size_t i = 0; p && i < n; i++) {
		need(in, p[i] > 0x20 && p[i] < 0x7f);
		out[i] = (char)p[i];
	}
}

static void take_gateway(struct reader *in, struct cluster_gateway *g)
{
	take_string(in, g->id, sizeof(g->id));
	g->number = take_16(in);
	if (in->format == FORMAT_2)
		g->block_size = take_16(in);
	g->nports = take_8(in);
	need(in, g->id[0] != '\0' && g->number >= 1 &&
			 g->number <= CLUSTER_GATEWAYS &&
			 g->nports <= CLUSTER_PORTS);
	for (unsigned i = 0; !in->err && i < g->nports; i++) {
		g->ports[i] = take_16(in);
		need(in, g->ports[i] != 0);
	}
	g->nportals = take_8(in);
	need(in, g->nportals <= CLUSTER_PORTALS);
	for (unsigned i = 0; !in->err && i < g->nportals; i++)
		take_string(in, g->portals[i], sizeof(g->portals[i]));
	g->last.run = take_64(in);
	g->last.number = take_64(in);
}

static unsigned format_of(const struct cluster_record *r)
{
	for (unsigned i = 0; i < r->ngateways; i++)
		if (r->gateways[i].block_size)
			return FORMAT_2;
	return FORMAT;
}

static void take_gateways(struct reader *in, struct cluster_record *r)
{
	need(in, r->ngateways <= CLUSTER_GATEWAYS);
	for (unsigned i = 0; !in->err && i < r->ngateways; i++) {
		enum cluster_rivalry why;

		take_gateway(in, &r->gateways[i]);
		for (unsigned k = 0; !in->err && k < i; k++)
			need(in,
			     strcmp(r->gateways[k].id, r->gateways[i].id) != 0);
		need(in, !cluster_record_rival(r, &r->gateways[i], &why));
	}
	need(in, in->err || format_of(r) == in->format);
	need(in, r->owner[0] == '\0' || cluster_record_gateway(r, r->owner));
}

static void take_event(struct reader *in, const struct cluster_record *r,
		       struct cluster_event *e, uint64_t after)
{
	unsigned part;

	e->at = take_64(in);
	part = take_8(in);
	e->len = take_32(in);
	need(in, e->at > after && e->at <= r->version && part < CLUSTER_PARTS &&
			 e->len > 0 && e->len <= CLUSTER_EVENT_MAX);
	if (!in->err)
		e->part = (enum cluster_part)part;
	e->data = take(in, e->len);
}

static void take_body(struct reader *in, struct cluster_record *r)
{
	unsigned nparts;

	r->version = take_64(in);
	r->generation = take_64(in);
	r->forgotten = take_64(in);
	r->ngateways = take_8(in);
	nparts = take_8(in);
	r->nevents = take_8(in);
	take_string(in, r->owner, sizeof(r->owner));
	need(in, r->version > 0 && r->forgotten <= r->version &&
			 nparts == CLUSTER_PARTS &&
			 r->nevents <= CLUSTER_EVENTS);
	take_gateways(in, r);
	for (unsigned i = 0; !in->err && i < CLUSTER_PARTS; i++) {
		r->parts[i].changed = take_64(in);
		r->parts[i].len = take_32(in);
		r->parts[i].data = take(in, r->parts[i].len);
		need(in, r->parts[i].changed <= r->version);
	}
	for (unsigned i = 0; !in->err && i < r->nevents; i++)
		take_event(in, r, &r->events[i],
			   i > 0 ? r->events[i - 1].at : r->forgotten);
	need(in, in->left == 0);
}

static uint32_t record_crc(const uint8_t *data, size_t len)
{
	uint32_t crc = crc32c_update(CRC32C_SEED, data, CRC_AT);

	return crc32c_wire(crc32c_update(crc, data + HEADER, len - HEADER));
}

int cluster_record_decode(struct cluster_record *r, const uint8_t *data,
			  size_t len)
{
	struct reader in = { .p = data, .left = len };
	const uint8_t *magic;
	uint16_t flags;
	uint32_t length, crc;

	memset(r, 0, sizeof(*r));
	if (len > CLUSTER_RECORD_MAX)
		return ERR_TOO_LONG;
	magic = take(&in, sizeof(MAGIC) - 1);
	need(&in, magic && memcmp(magic, MAGIC, sizeof(MAGIC) - 1) == 0);
	in.format = take_16(&in);
	flags = take_16(&in);
	length = take_32(&in);
	crc = take_32(&in);
	if (in.err)
		return in.err;
	if (length > len)
		return ERR_TRUNCATED;
	if (length != len)
		return ERR_FORMAT;
	if (crc != record_crc(data, len))
		return ERR_DATA_DIGEST;
	if ((in.format != FORMAT && in.format != FORMAT_2) ||
	    (flags & ~WITHHELD))
		return ERR_UNSUPPORTED;
	r->withheld = flags & WITHHELD;
	take_body(&in, r);
	need(&in, !r->withheld || r->owner[0] == '\0');
	return in.err;
}

/* ---- encode ---- */

static size_t gateway_size(const struct cluster_gateway *g, unsigned format)
{
	size_t n = 1 + strlen(g->id) + 2 + 1 + 2u * g->nports + 1 + 16;

	if (format == FORMAT_2)
		n += 2;
	for (unsigned i = 0; i < g->nportals; i++)
		n += 1 + strlen(g->portals[i]);
	return n;
}

size_t cluster_record_size(const struct cluster_record *r)
{
	size_t n = HEADER + 3u * 8 + 3 + 1 + strlen(r->owner);
	unsigned format = format_of(r);

	for (unsigned i = 0; i < r->ngateways; i++)
		n += gateway_size(&r->gateways[i], format);
	for (unsigned i = 0; i < CLUSTER_PARTS; i++)
		n += 8 + 4 + r->parts[i].len;
	for (unsigned i = 0; i < r->nevents; i++)
		n += 8 + 1 + 4 + r->events[i].len;
	return n;
}

static uint8_t *put_8(uint8_t *p, unsigned v)
{
	*p = (uint8_t)v;
	return p + 1;
}

static uint8_t *put_16(uint8_t *p, uint16_t v)
{
	put_be16(p, v);
	return p + 2;
}

static uint8_t *put_64(uint8_t *p, uint64_t v)
{
	put_be64(p, v);
	return p + 8;
}

static uint8_t *put_bytes(uint8_t *p, const void *data, size_t len)
{
	if (len > 0)
		memcpy(p, data, len);
	return p + len;
}

static uint8_t *put_sized(uint8_t *p, const uint8_t *data, size_t len)
{
	put_be32(p, (uint32_t)len);
	return put_bytes(p + 4, data, len);
}

static uint8_t *put_string(uint8_t *p, const char *s)
{
	size_t n = strlen(s);

	p = put_8(p, (unsigned)n);
	return put_bytes(p, s, n);
}

static uint8_t *put_gateway(uint8_t *p, const struct cluster_gateway *g,
			    unsigned format)
{
	p = put_string(p, g->id);
	p = put_16(p, g->number);
	if (format == FORMAT_2)
		p = put_16(p, g->block_size);
	p = put_8(p, g->nports);
	for (unsigned i = 0; i < g->nports; i++)
		p = put_16(p, g->ports[i]);
	p = put_8(p, g->nportals);
	for (unsigned i = 0; i < g->nportals; i++)
		p = put_string(p, g->portals[i]);
	p = put_64(p, g->last.run);
	return put_64(p, g->last.number);
}

size_t cluster_record_encode(const struct cluster_record *r, uint8_t *out)
{
	unsigned format = format_of(r);
	uint8_t *p = out + HEADER;
	size_t len;

	p = put_64(p, r->version);
	p = put_64(p, r->generation);
	p = put_64(p, r->forgotten);
	p = put_8(p, r->ngateways);
	p = put_8(p, CLUSTER_PARTS);
	p = put_8(p, r->nevents);
	p = put_string(p, r->owner);
	for (unsigned i = 0; i < r->ngateways; i++)
		p = put_gateway(p, &r->gateways[i], format);
	for (unsigned i = 0; i < CLUSTER_PARTS; i++) {
		p = put_64(p, r->parts[i].changed);
		p = put_sized(p, r->parts[i].data, r->parts[i].len);
	}
	for (unsigned i = 0; i < r->nevents; i++) {
		p = put_64(p, r->events[i].at);
		p = put_8(p, r->events[i].part);
		p = put_sized(p, r->events[i].data, r->events[i].len);
	}
	len = (size_t)(p - out);
	put_bytes(out, MAGIC, sizeof(MAGIC) - 1);
	put_be16(out + 8, (uint16_t)format);
	put_be16(out + 10, r->withheld ? WITHHELD : 0);
	put_be32(out + 12, (uint32_t)len);
	put_be32(out + CRC_AT, record_crc(out, len));
	assert(len == cluster_record_size(r));
	return len;
}

/* ---- what the record says ---- */

struct cluster_gateway *cluster_record_gateway(struct cluster_record *r,
					       const char *id)
{
	for (unsigned i = 0; i < r->ngateways; i++)
		if (strcmp(r->gateways[i].id, id) == 0)
			return &r->gateways[i];
	return NULL;
}

static bool has_common_port(const struct cluster_gateway *a,
			    const struct cluster_gateway *b)
{
	for (unsigned i = 0; i < a->nports; i++)
		for (unsigned k = 0; k < b->nports; k++)
			if (a->ports[i] == b->ports[k])
				return true;
	return false;
}

static enum cluster_rivalry rivalry(const struct cluster_gateway *a,
				    const struct cluster_gateway *b)
{
	if (a->number == b->number)
		return CLUSTER_RIVAL_NUMBER;
	if (a->block_size && b->block_size && a->block_size != b->block_size)
		return CLUSTER_RIVAL_BLOCKS;
	return has_common_port(a, b) ? CLUSTER_RIVAL_PORT : CLUSTER_RIVAL_NONE;
}

const struct cluster_gateway *
cluster_record_rival(const struct cluster_record *r,
		     const struct cluster_gateway *g, enum cluster_rivalry *why)
{
	for (unsigned i = 0; i < r->ngateways; i++) {
		const struct cluster_gateway *other = &r->gateways[i];

		if (strcmp(other->id, g->id) == 0)
			continue;
		*why = rivalry(other, g);
		if (*why != CLUSTER_RIVAL_NONE)
			return other;
	}
	*why = CLUSTER_RIVAL_NONE;
	return NULL;
}

uint64_t cluster_record_changed(const struct cluster_record *r)
{
	uint64_t changed = 0;

	for (unsigned i = 0; i < CLUSTER_PARTS; i++)
		changed = MAX(changed, r->parts[i].changed);
	return changed;
}

static void forget_event(struct cluster_record *r)
{
	r->forgotten = r->events[0].at;
	r->nevents--;
	memmove(r->events, r->events + 1, r->nevents * sizeof(r->events[0]));
}

bool cluster_record_remember(struct cluster_record *r, enum cluster_part part,
			     const uint8_t *data, size_t len)
{
	if (len > 0) {
		if (r->nevents == CLUSTER_EVENTS)
			forget_event(r);
		r->events[r->nevents++] = (struct cluster_event){
			.at = r->version, .part = part, .data = data, .len = len
		};
	}
	while (cluster_record_size(r) > CLUSTER_RECORD_MAX) {
		if (r->nevents == 0)
			return false;
		forget_event(r);
	}
	return true;
}

/* ---- notes ----
 * magic (2), format (1), kind (1), 0 (4), version (8), generation (8) */

#define NOTE_MAGIC 0x6f69u

void cluster_note_encode(const struct cluster_note_body *b, uint8_t *out)
{
	put_be16(out, NOTE_MAGIC);
	out[2] = FORMAT;
	out[3] = (uint8_t)b->kind;
	put_be32(out + 4, 0);
	put_be64(out + 8, b->version);
	put_be64(out + 16, b->generation);
}

int cluster_note_decode(struct cluster_note_body *b, const uint8_t *data,
			size_t len)
{
	if (len < CLUSTER_NOTE_SIZE)
		return ERR_TRUNCATED;
	if (get_be16(data) != NOTE_MAGIC)
		return ERR_FORMAT;
	if (data[2] != FORMAT || data[3] < CLUSTER_NOTE_ALIVE ||
	    data[3] > CLUSTER_NOTE_YIELD)
		return ERR_UNSUPPORTED;
	b->kind = (enum cluster_note_kind)data[3];
	b->version = get_be64(data + 8);
	b->generation = get_be64(data + 16);
	return 0;
}
