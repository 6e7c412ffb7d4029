/* SPDX-License-Identifier: BSD-2-Clause */
/* pr_in.c: PERSISTENT RESERVE IN (SPC-4 §6.15). */
#include <string.h>

#include "device/reserve/reserve.h"
#include "device/unit/command.h"
#include "device/unit/shared.h"

#define HEADER	 8  /* PRGENERATION, ADDITIONAL LENGTH */
#define FULL_LEN 24 /* of a full status descriptor, without TransportID */

/* begin returns a zeroed buffer of len bytes with the header; NULL: begin has ended
 * t. */
static uint8_t *begin(struct dev_task *t, const struct rsv_state *s, size_t len)
{
	if (rsv_is_spc2(s)) { /* SPC-2 §5.5.1 */
		dev_end(t, SCSI_RESERVATION_CONFLICT);
		return NULL;
	}
	if (!dev_buf(t, len))
		return NULL;
	memset(t->own.mem.buf, 0, len);
	put_be32(t->own.mem.buf, s->generation);
	return t->own.mem.buf;
}

static void finish(struct dev_task *t, size_t len)
{
	put_be32((uint8_t *)t->own.mem.buf + 4, (uint32_t)(len - HEADER));
	dev_return(t, len, get_be16(t->cdb + 7));
}

/* READ KEYS, §6.15.2 */
static void read_keys(struct dev_task *t, const struct rsv_state *s)
{
	size_t len = HEADER + 8u * s->n;
	uint8_t *p = begin(t, s, len);

	if (!p)
		return;
	for (unsigned i = 0; i < s->n; i++)
		put_be64(p + HEADER + 8u * i, s->regs[i].key);
	finish(t, len);
}

/* READ RESERVATION, §6.15.3: the key is 0 if all registrants hold the reservation. */
static void read_reservation(struct dev_task *t, const struct rsv_state *s)
{
	size_t len = HEADER + (s->type ? 16 : 0);
	uint8_t *p = begin(t, s, len);

	if (!p)
		return;
	if (s->type && s->holder >= 0)
		put_be64(p + HEADER, s->regs[s->holder].key);
	if (s->type)
		p[HEADER + 13] = (uint8_t)s->type; /* LU_SCOPE */
	finish(t, len);
}

/* REPORT CAPABILITIES, §6.15.4 */
static void report_capabilities(struct dev_task *t, const struct rsv_state *s)
{
	uint8_t *p = begin(t, s, HEADER);
	bool keeps = rsv_keeps(t->lu);

	if (!p)
		return;
	put_be16(p, HEADER);
	/* CRH, SIP_C, ATP_C; RLR_C, PTPL_C */
	p[2] = (uint8_t)(0x10 | 0x08 | 0x04 | (keeps ? 0x81 : 0));
	p[3] = (uint8_t)(0x80 | (s->aptpl ? 0x01 : 0)); /* TMV; PTPL_A */
	p[4] = 0xea; /* WR_EX_AR EX_AC_RO WR_EX_RO - EX_AC - WR_EX - */
	p[5] = 0x01; /* EX_AC_AR */
	dev_return(t, HEADER, get_be16(t->cdb + 7));
}

/* put_full writes a full status descriptor (§6.15.5, table 165). */
static size_t put_full(const struct rsv_state *s, unsigned i, uint8_t *p)
{
	const struct rsv_reg *r = &s->regs[i];
	size_t id = scsi_transportid_put(r->name, p + FULL_LEN);

	put_be64(p, r->key);
	if (rsv_is_holder(s, (int)i)) {
		p[12] = 0x01; /* R_HOLDER */
		p[13] = (uint8_t)s->type;
	}
	put_be16(p + 18, r->port);
	put_be32(p + 20, (uint32_t)id);
	return FULL_LEN + id;
}

static void read_full_status(struct dev_task *t, const struct rsv_state *s)
{
	/* Descriptors after the allocation length add to the length only. */
	uint8_t past[FULL_LEN + SCSI_TRANSPORTID_MAX];
	size_t take = MIN((size_t)get_be16(t->cdb + 7), (size_t)t->edtl.in);
	size_t room = HEADER + MIN(s->n, take / FULL_LEN + 1) * sizeof(past);
	uint8_t *p;
	size_t at = HEADER;

	room = MIN(room, HEADER + take + sizeof(past));
	p = begin(t, s, room);
	if (!p)
		return;
	for (unsigned i = 0; i < s->n; i++) {
		bool fits = at + sizeof(past) <= room;

		at += put_full(s, i, fits ? p + at : past);
	}
	finish(t, at);
}

static void report(struct dev_task *t)
{
	const struct rsv_state *s = rsv_now(t);

	switch (t->own.row->sa) {
	case SCSI_PRIN_READ_KEYS:
		read_keys(t, s);
		break;
	case SCSI_PRIN_READ_RESERVATION:
		read_reservation(t, s);
		break;
	case SCSI_PRIN_REPORT_CAPABILITIES:
		report_capabilities(t, s);
		break;
	default:
		read_full_status(t, s);
		break;
	}
}

/* What another gateway reports as done is reported here, too. */
void dev_pr_in(struct dev_task *t)
{
	dev_refreshed(t, report);
}

/* ---- for the administrator ---- */

void dev_lu_reservation(const struct dev_lu *lu, struct dev_reservation *r)
{
	static const char *const types[] = {
		[RSV_TYPE_WE] = "Write Exclusive",
		[RSV_TYPE_EA] = "Exclusive Access",
		[RSV_TYPE_WE_RO] = "Write Exclusive, Registrants Only",
		[RSV_TYPE_EA_RO] = "Exclusive Access, Registrants Only",
		[RSV_TYPE_WE_AR] = "Write Exclusive, All Registrants",
		[RSV_TYPE_EA_AR] = "Exclusive Access, All Registrants",
	};
	const struct rsv_state *s = lu->rsv[DEV_HOME];

	*r = (struct dev_reservation){
		.type = types[s->type],
		.reserved = rsv_is_spc2(s) ? s->spc2_of.name : NULL,
		.generation = s->generation,
		.aptpl = s->aptpl && s->n,
		.lost = s->lost,
	};
}

void dev_lu_registrations(const struct dev_lu *lu,
			  void (*fn)(void *arg,
				     const struct dev_registration *r),
			  void *arg)
{
	const struct rsv_state *s = lu->rsv[DEV_HOME];

	for (unsigned i = 0; i < s->n; i++)
		fn(arg, &(struct dev_registration){
				.initiator_port = s->regs[i].name,
				.target_port = s->regs[i].port,
				.key = s->regs[i].key,
				.holds = rsv_is_holder(s, (int)i) });
}
