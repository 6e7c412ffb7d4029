/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keep_save.c: the record of a unit as bytes. Numbers are big-endian:
 *
 *    0 28  record_header.h, "ISERUNT1"
 *   28     items: 2 kind, 2 length, the bytes of the item; each kind at most once
 *
 *   1  mode pages as of MODE SENSE; PS: the page had changeable bits
 *   2  identifying information        3  text identifying information
 *   4  SANITIZE or FORMAT UNIT: 1 state, 1 flags, 1 passes, 1 pass, 1 protection
 *      type, 3 zero, 8 progress of the pass, 8 size of the unit (both in bytes),
 *      the pattern
 *   5  of a shared unit: the current mode pages, if they are not those of item 1
 */
#include <string.h>

#include "base/record_header.h"
#include "device/keep/keep.h"

#define WHAT	  "ISERUNT1"
#define HEAD_LEN  RECORD_HEADER_LEN
#define ITEM_LEN  4
#define ERASE_LEN 24

enum item {
	ITEM_MODES = 1,
	ITEM_INFO = 2, /* and KEEP_TEXT: 3 */
	ITEM_ERASE = 4,
	ITEM_NOW = 5,
};

#define FORMATS	     0x01
#define UNRESTRICTED 0x02
#define INVERT	     0x04
#define REKEY	     0x08

static const uint16_t info_max[KEEP_INFOS] = { 512, 256 };

/* ---- encode ---- */

static size_t put_item(uint8_t *p, unsigned kind, size_t len)
{
	put_be16(p, (uint16_t)kind);
	put_be16(p + 2, (uint16_t)len);
	return ITEM_LEN + len;
}

static size_t put_modes(enum item item, const uint8_t *modes, uint16_t len,
			uint8_t *p)
{
	if (!len)
		return 0;
	memcpy(p + ITEM_LEN, modes, len);
	return put_item(p, item, len);
}

static size_t put_info(const struct dev_record *r, unsigned i, uint8_t *p)
{
	if (!r->info[i].len)
		return 0;
	memcpy(p + ITEM_LEN, r->info[i].bytes, r->info[i].len);
	return put_item(p, ITEM_INFO + i, r->info[i].len);
}

static size_t put_erase(const struct keep_erase *e, uint8_t *p)
{
	uint8_t *v = p + ITEM_LEN;

	if (e->state == KEEP_NO_ERASE)
		return 0;
	memset(v, 0, ERASE_LEN);
	v[0] = (uint8_t)e->state;
	v[1] = (uint8_t)((e->formats ? FORMATS : 0) |
			 (e->unrestricted ? UNRESTRICTED : 0) |
			 (e->invert ? INVERT : 0) | (e->rekey ? REKEY : 0));
	v[2] = e->passes;
	v[3] = e->pass;
	v[4] = e->pi_type;
	put_be64(v + 8, e->at);
	put_be64(v + 16, e->size);
	memcpy(v + ERASE_LEN, e->pattern, e->pattern_len);
	return put_item(p, ITEM_ERASE, ERASE_LEN + (size_t)e->pattern_len);
}

size_t keep_encode(const struct dev_lu *lu, const struct dev_record *r,
		   uint8_t p[KEEP_ENCODED_MAX])
{
	size_t at = HEAD_LEN;

	at += put_modes(ITEM_MODES, r->modes, r->modes_len, p + at);
	for (unsigned i = 0; i < KEEP_INFOS; i++)
		at += put_info(r, i, p + at);
	at += put_erase(&r->erase, p + at);
	at += put_modes(ITEM_NOW, r->now, r->now_len, p + at);
	if (at == HEAD_LEN)
		return 0;
	record_header_put(p, at, WHAT, lu->bs->uuid);
	return at;
}

/* ---- decode ---- */

static int take_modes(uint8_t *modes, uint16_t *modes_len, const uint8_t *p,
		      size_t len)
{
	if (len > KEEP_MODES_MAX)
		return ERR_FORMAT;
	memcpy(modes, p, len);
	*modes_len = (uint16_t)len;
	return 0;
}

static int take_info(struct dev_record *r, unsigned i, const uint8_t *p,
		     size_t len)
{
	if (len == 0 || len > info_max[i])
		return ERR_FORMAT;
	memcpy(r->info[i].bytes, p, len);
	r->info[i].len = (uint16_t)len;
	return 0;
}

static bool erase_ok(const struct keep_erase *e)
{
	if (e->state != KEEP_ERASING && e->state != KEEP_ERASE_FAILED)
		return false;
	if (!e->passes != !e->pattern_len)
		return false;
	if (e->rekey && (e->formats || e->passes))
		return false;
	return e->passes <= 31 && e->pass < MAX(e->passes, 1u) &&
	       e->at <= e->size;
}

static int take_erase(struct keep_erase *e, const uint8_t *p, size_t len)
{
	if (len < ERASE_LEN || len > ERASE_LEN + KEEP_PATTERN_MAX)
		return ERR_FORMAT;
	if (p[1] & ~(FORMATS | UNRESTRICTED | INVERT | REKEY) || p[4] > 3 ||
	    get_be24(p + 5))
		return ERR_FORMAT;
	e->state = (enum keep_erase_state)p[0];
	e->formats = p[1] & FORMATS;
	e->unrestricted = p[1] & UNRESTRICTED;
	e->invert = p[1] & INVERT;
	e->rekey = p[1] & REKEY;
	e->passes = p[2];
	e->pass = p[3];
	e->pi_type = p[4];
	e->at = get_be64(p + 8);
	e->size = get_be64(p + 16);
	e->pattern_len = (uint16_t)(len - ERASE_LEN);
	memcpy(e->pattern, p + ERASE_LEN, e->pattern_len);
	return erase_ok(e) ? 0 : ERR_FORMAT;
}

static int take_item(const struct dev_lu *lu, struct dev_record *r,
		     unsigned kind, const uint8_t *p, size_t len)
{
	switch (kind) {
	case ITEM_MODES:
		return take_modes(r->modes, &r->modes_len, p, len);
	case ITEM_NOW:
		return lu->shared ? take_modes(r->now, &r->now_len, p, len)
				  : ERR_FORMAT;
	case ITEM_INFO:
	case ITEM_INFO + 1:
		return take_info(r, kind - ITEM_INFO, p, len);
	case ITEM_ERASE:
		return take_erase(&r->erase, p, len);
	default:
		return ERR_FORMAT;
	}
}

/* The items are in the order of their kinds, each kind at most once. */
static int take_items(const struct dev_lu *lu, struct dev_record *r,
		      const uint8_t *p, size_t len)
{
	unsigned last = 0;
	size_t at = HEAD_LEN;

	while (at < len) {
		unsigned kind;
		size_t n;
		int err;

		if (len - at < ITEM_LEN)
			return ERR_TRUNCATED;
		kind = get_be16(p + at);
		n = get_be16(p + at + 2);
		at += ITEM_LEN;
		if (n > len - at)
			return ERR_TRUNCATED;
		if (kind <= last)
			return ERR_FORMAT;
		err = take_item(lu, r, kind, p + at, n);
		if (err)
			return err;
		last = kind;
		at += n;
	}
	return 0;
}

int keep_decode(const struct dev_lu *lu, const uint8_t *p, size_t len,
		struct dev_record *r)
{
	int err = record_header_check(p, len, WHAT, lu->bs->uuid);

	if (err)
		return err;
	memset(r, 0, sizeof(*r));
	return take_items(lu, r, p, len);
}
