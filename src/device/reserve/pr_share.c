/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pr_share.c: the reservations of a unit that several gateways share, as a record for
 * all of them: also registrations without APTPL, and who made them. It outlives a gateway,
 * so that the unit as a whole never loses its power. Numbers are big-endian:
 *
 *    0 28  record_header.h, "ISERRSV2"
 *   28  1  type of the persistent reservation, or 0
 *   29  1  1: APTPL
 *   30  2  the holder: index of a registration, or FFFFh
 *   32  2  number of registrations
 *   34  4  PRGENERATION
 *   38     the nexus that has reserved the unit by RESERVE(6/10): 2 relative target port,
 *          2 length of name (0: none), name of the initiator port
 *          registrations, each: 8 key, 2 relative target port, 2 length of name, 2 length
 *          of the next name, name of the initiator port, name of the initiator that made
 *          it (empty: that of the port)
 */
#include <stdlib.h>
#include <string.h>

#include "base/record_header.h"
#include "device/reserve/reserve.h"
#include "device/unit/event.h"

#define WHAT	  "ISERRSV2"
#define HEAD_LEN  38
#define SPC2_LEN  4
#define REG_LEN	  14
#define NO_HOLDER 0xffffu
#define EVENT_MAX ((RSV_MAX + 1u) * DEV_EVENT_ENTRY)

/* ---- encode ---- */

static size_t put_string(uint8_t *p, const char *s, uint8_t *len)
{
	size_t n = strlen(s);

	put_be16(len, (uint16_t)n);
	memcpy(p, s, n);
	return n;
}

static bool is_made_by_itself(const struct rsv_reg *r)
{
	char device[SCSI_DEVICE_NAME_MAX + 1];

	scsi_port_device(r->name, device);
	return !strcmp(r->by, device);
}

static size_t put_reg(uint8_t *p, const struct rsv_reg *r)
{
	size_t at = REG_LEN;

	put_be64(p, r->key);
	put_be16(p + 8, r->port);
	at += put_string(p + at, r->name, p + 10);
	return at +
	       put_string(p + at, is_made_by_itself(r) ? "" : r->by, p + 12);
}

static size_t put_state(uint8_t *p, const struct rsv_state *s,
			const uint8_t uuid[16])
{
	size_t at = HEAD_LEN + SPC2_LEN;

	p[28] = (uint8_t)s->type;
	p[29] = s->aptpl;
	put_be16(p + 30, s->holder < 0 ? NO_HOLDER : (uint16_t)s->holder);
	put_be16(p + 32, (uint16_t)s->n);
	put_be32(p + 34, s->generation);
	put_be16(p + HEAD_LEN, s->spc2_of.port);
	at += put_string(p + at, s->spc2_of.name, p + HEAD_LEN + 2);
	for (unsigned i = 0; i < s->n; i++)
		at += put_reg(p + at, &s->regs[i]);
	record_header_put(p, at, WHAT, uuid);
	return at;
}

static size_t put_event(uint8_t *p, const struct rsv_op *op)
{
	size_t at = 0;

	if (op->u.reset)
		at = dev_event_put(p, DEV_EVENT_ALL, UA_BUS_DEVICE_RESET,
				   DEV_EVENT_RESETS);
	for (unsigned i = 0; i < op->old->n; i++) {
		const struct rsv_reg *r = &op->old->regs[i];
		enum dev_ua ua = op->attention[i]
					 ? (enum dev_ua)(op->attention[i] - 1)
					 : DEV_EVENT_NO_UA;

		if (op->attention[i] || op->abort[i])
			at += dev_event_put(
				p + at, dev_event_nexus(r->name, r->port), ua,
				op->abort[i] ? DEV_EVENT_ABORTS : 0);
	}
	return at;
}

uint8_t *rsv_share_encode(const struct rsv_state *s, const uint8_t uuid[16],
			  const struct rsv_op *op, size_t *len,
			  size_t *event_len)
{
	size_t most = HEAD_LEN + SPC2_LEN + SCSI_PORT_NAME_MAX +
		      s->n * (size_t)(REG_LEN + SCSI_PORT_NAME_MAX +
				      SCSI_DEVICE_NAME_MAX);
	uint8_t *p = calloc(1, most + EVENT_MAX);

	if (!p)
		return NULL;
	*len = put_state(p, s, uuid);
	*event_len = op ? put_event(p + *len, op) : 0;
	return p;
}

/* ---- decode ---- */

/* Reads a string of n bytes at p[*at .. len) and advances *at. */
static int take_string(char *s, size_t max, size_t n, const uint8_t *p,
		       size_t len, size_t *at)
{
	if (n > len - *at)
		return ERR_TRUNCATED;
	if (n > max || memchr(p + *at, 0, n))
		return ERR_FORMAT;
	memcpy(s, p + *at, n);
	s[n] = '\0';
	*at += n;
	return 0;
}

static int take_spc2(struct rsv_state *s, const uint8_t *p, size_t len,
		     size_t *at)
{
	size_t n;

	if (len - *at < SPC2_LEN)
		return ERR_TRUNCATED;
	s->spc2_of.port = get_be16(p + *at);
	n = get_be16(p + *at + 2);
	*at += SPC2_LEN;
	return take_string(s->spc2_of.name, SCSI_PORT_NAME_MAX, n, p, len, at);
}

static int take_reg(struct rsv_state *s, const uint8_t *p, size_t len,
		    size_t *at)
{
	struct rsv_reg *r = &s->regs[s->n];
	size_t name, by;
	int err;

	if (len - *at < REG_LEN)
		return ERR_TRUNCATED;
	r->key = get_be64(p + *at);
	r->port = get_be16(p + *at + 8);
	name = get_be16(p + *at + 10);
	by = get_be16(p + *at + 12);
	*at += REG_LEN;
	err = take_string(r->name, SCSI_PORT_NAME_MAX, name, p, len, at);
	if (!err)
		err = take_string(r->by, SCSI_DEVICE_NAME_MAX, by, p, len, at);
	if (err)
		return err;
	if (!by)
		scsi_port_device(r->name, r->by);
	if (!name || !r->key || !r->port || rsv_find(s, r->name, r->port) >= 0)
		return ERR_FORMAT;
	s->n++;
	return 0;
}

static int take_all(struct rsv_state *s, const uint8_t *p, size_t len)
{
	unsigned holder = get_be16(p + 30), n = get_be16(p + 32);
	size_t at = HEAD_LEN;
	int err = take_spc2(s, p, len, &at);

	for (unsigned i = 0; i < n && !err; i++)
		err = take_reg(s, p, len, &at);
	if (err)
		return err;
	if (at != len || p[29] > 1)
		return ERR_FORMAT;
	s->aptpl = p[29];
	s->generation = get_be32(p + 34);
	return rsv_set_holder(s, p[28], holder);
}

int rsv_share_decode(const uint8_t *p, size_t len, const uint8_t uuid[16],
		     struct rsv_state **state)
{
	unsigned n = len < HEAD_LEN ? 0 : get_be16(p + 32);
	struct rsv_state *s;
	int err = 0;

	if (len && len < HEAD_LEN)
		return ERR_TRUNCATED;
	if (len)
		err = record_header_check(p, len, WHAT, uuid);
	if (err)
		return err;
	if (n > RSV_MAX)
		return ERR_LIMIT;
	s = rsv_copy(&rsv_none, n);
	if (!s)
		return ERR_NOMEM;
	if (len)
		err = take_all(s, p, len);
	if (err)
		free(s);
	else
		*state = s;
	return err;
}
