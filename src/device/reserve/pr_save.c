/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pr_save.c: the record of persistent reservations, which survives a power loss
 * (APTPL, SPC-4 §5.13.5). Numbers are big-endian:
 *
 *    0 28  record_header.h, "ISERRSV1"
 *   28  1  type of the reservation, or 0
 *   29  1  0
 *   30  2  the holder: index of a registration, or FFFFh
 *   32  2  number of registrations
 *   34     each: 8 key, 2 relative target port, 2 length of name, name
 */
#include <stdlib.h>
#include <string.h>

#include "base/record_header.h"
#include "device/reserve/reserve.h"

#define WHAT	  "ISERRSV1"
#define HEAD_LEN  34
#define REG_LEN	  12
#define NO_HOLDER 0xffffu

size_t rsv_encoded_max(const struct rsv_state *s)
{
	return HEAD_LEN + s->n * (size_t)(REG_LEN + SCSI_PORT_NAME_MAX);
}

size_t rsv_encode(const struct rsv_state *s, const uint8_t uuid[16], uint8_t *p)
{
	size_t at = HEAD_LEN;

	memset(p, 0, HEAD_LEN);
	p[28] = (uint8_t)s->type;
	put_be16(p + 30, s->holder < 0 ? NO_HOLDER : (uint16_t)s->holder);
	put_be16(p + 32, (uint16_t)s->n);
	for (unsigned i = 0; i < s->n; i++) {
		const struct rsv_reg *r = &s->regs[i];
		size_t n = strlen(r->name);

		put_be64(p + at, r->key);
		put_be16(p + at + 8, r->port);
		put_be16(p + at + 10, (uint16_t)n);
		memcpy(p + at + REG_LEN, r->name, n);
		at += REG_LEN + n;
	}
	record_header_put(p, at, WHAT, uuid);
	return at;
}

static bool type_ok(uint8_t type)
{
	return type <= RSV_TYPE_EA_AR && type != 2 && type != 4;
}

/* holder_ok returns whether the holder is a registration for a type with one holder,
 * and absent for any other type. */
static bool holder_ok(const struct rsv_state *s, unsigned holder)
{
	if (!s->type || rsv_is_all_registrants(s->type))
		return holder == NO_HOLDER;
	return holder < s->n;
}

/* take_reg decodes one registration at p[*at .. len) and advances *at. */
static int take_reg(struct rsv_state *s, const uint8_t *p, size_t len,
		    size_t *at)
{
	struct rsv_reg *r = &s->regs[s->n];
	size_t n;

	if (len - *at < REG_LEN)
		return ERR_TRUNCATED;
	n = get_be16(p + *at + 10);
	if (n > len - *at - REG_LEN)
		return ERR_TRUNCATED;
	if (n == 0 || n > SCSI_PORT_NAME_MAX || memchr(p + *at + REG_LEN, 0, n))
		return ERR_FORMAT;
	r->key = get_be64(p + *at);
	r->port = get_be16(p + *at + 8);
	memcpy(r->name, p + *at + REG_LEN, n);
	r->name[n] = '\0';
	scsi_port_device(r->name, r->by);
	if (r->key == 0 || r->port == 0 || rsv_find(s, r->name, r->port) >= 0)
		return ERR_FORMAT;
	s->n++;
	*at += REG_LEN + n;
	return 0;
}

int rsv_set_holder(struct rsv_state *s, uint8_t type, unsigned holder)
{
	if (!type_ok(type))
		return ERR_FORMAT;
	s->type = (enum rsv_type)type;
	if (!holder_ok(s, holder) || (s->type && s->n == 0))
		return ERR_FORMAT;
	s->holder = holder == NO_HOLDER ? -1 : (int)holder;
	return 0;
}

static int take_all(struct rsv_state *s, const uint8_t *p, size_t len)
{
	unsigned holder = get_be16(p + 30), n = get_be16(p + 32);
	size_t at = HEAD_LEN;
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++)
		err = take_reg(s, p, len, &at);
	if (err)
		return err;
	if (at != len || p[29])
		return ERR_FORMAT;
	return rsv_set_holder(s, p[28], holder);
}

int rsv_decode(const uint8_t *p, size_t len, const uint8_t uuid[16],
	       struct rsv_state **state)
{
	struct rsv_state *s;
	int err;

	if (len < HEAD_LEN)
		return ERR_TRUNCATED;
	err = record_header_check(p, len, WHAT, uuid);
	if (err)
		return err;
	if (get_be16(p + 32) > RSV_MAX)
		return ERR_LIMIT;
	s = rsv_copy(&rsv_none, get_be16(p + 32));
	if (!s)
		return ERR_NOMEM;
	err = take_all(s, p, len);
	if (err) {
		free(s);
		return err;
	}
	s->aptpl = true;
	*state = s;
	return 0;
}
