/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass_report.c: commands that report about a passthrough unit: INQUIRY, VPD
 * pages, supported commands. The answers of the SCSI device describe the ports,
 * groups and functions that this host uses. Initiators use the ports of this
 * target instead, so this file replaces those parts of the answers.
 */
#include <string.h>

#include "device/pass/pass_unit.h"
#include "device/primary/primary.h"
#include "device/unit/command.h"

#define HALF (DEV_PARAM_MAX / 2)

/* ask allocates a parameter buffer for an answer of at most len bytes. False: ask
 * has ended the task BUSY. */
static bool ask(struct dev_task *t, uint32_t len)
{
	struct pass_req *r = &t->own.pass;

	r->buf = dev_param_buf(t);
	r->dir = PASS_IN;
	r->len = len;
	return r->buf != NULL;
}

/* answered returns the length of the answer; 0: no answer, and answered has ended
 * t with the status of the SCSI device. */
static size_t answered(struct dev_task *t)
{
	const struct pass_req *r = &t->own.pass;

	if (r->status == SCSI_GOOD && r->len - r->resid >= 4)
		return r->len - r->resid;
	t->own.pass.resid = r->len;
	pass_ended(t, 0);
	return 0;
}

/* ---- INQUIRY, SPC-4 §6.4.2 ---- */

static void inquiry_came(struct dev_task *t, int err)
{
	const struct pass_req *r = &t->own.pass;
	uint8_t *p = t->own.mem.buf;

	if (r->status == SCSI_GOOD && r->len - r->resid > 5) {
		p[3] |= 0x20;		/* NORMACA */
		p[5] &= (uint8_t)~0x78; /* ACC, TPGS, 3PC */
		if (dev_has_groups(t->lu))
			p[5] |= 0x30;
	}
	pass_ended(t, err);
}

/* ---- vital product data ---- */

/* 00h: the supported pages without 88h and 8Fh, which this file refuses. */
static void pages_came(struct dev_task *t, int err)
{
	size_t have = answered(t), n, at = 4;
	uint8_t *p = t->own.mem.buf;

	(void)err;
	if (!have)
		return;
	n = MIN((size_t)get_be16(p + 2), have - 4);
	for (size_t i = 4; i < 4 + n; i++)
		if (p[i] != 0x88 && p[i] != 0x8f)
			p[at++] = p[i];
	put_be16(p + 2, (uint16_t)(at - 4));
	dev_return(t, at, get_be16(t->cdb + 3));
}

/* 83h: the SCSI device names the unit, so that an initiator recognizes the unit
 * on each path. This target names the ports and the target device. */
static void names_came(struct dev_task *t, int err)
{
	size_t have = answered(t), end;
	uint8_t *p = t->own.mem.buf, *to = p + HALF;

	(void)err;
	if (!have)
		return;
	end = MIN((size_t)get_be16(p + 2) + 4, have);
	memcpy(to, p, 4);
	to += 4;
	for (size_t at = 4; at + 4 <= end && at + 4 + p[at + 3] <= end;
	     at += 4 + (size_t)p[at + 3]) {
		size_t len = 4 + (size_t)p[at + 3];

		if ((p[at + 1] & 0x30) || /* names a port or target device */
		    to + len > p + DEV_PARAM_MAX - DEV_PORT_NAMES_MAX)
			continue;
		memcpy(to, p + at, len);
		to += len;
	}
	to = dev_put_port_names(t, to);
	have = (size_t)(to - (p + HALF));
	memmove(p, p + HALF, have);
	put_be16(p + 2, (uint16_t)(have - 4));
	dev_return(t, have, get_be16(t->cdb + 3));
}

static void lower_limit(uint8_t *p, uint32_t most)
{
	if (get_be32(p) == 0 || get_be32(p) > most)
		put_be32(p, most);
}

/* B0h (SBC-3 §6.6.3): the host may permit less per command than the device. */
static void limits_came(struct dev_task *t, int err)
{
	const struct pass *pass = t->lu->pass.device;
	uint32_t block = __atomic_load_n(&pass->block_size, __ATOMIC_RELAXED);
	size_t have = answered(t);
	uint8_t *p = t->own.mem.buf;

	(void)err;
	if (!have)
		return;
	if (have >= 16 && block && pass->max_transfer >= block) {
		lower_limit(p + 8, pass->max_transfer / block);
		if (get_be32(p + 12))
			lower_limit(p + 12, pass->max_transfer / block);
	}
	dev_return(t, MIN((size_t)get_be16(p + 2) + 4, have),
		   get_be16(t->cdb + 3));
}

static void ask_page(struct dev_task *t,
		     void (*then)(struct dev_task *t, int err))
{
	/* Before SPC-3 the allocation length had one byte. */
	uint32_t len = t->lu->pass.device->version >= 5 ? HALF : 252;

	if (!ask(t, len))
		return;
	put_be16(t->own.pass.cdb + 3, (uint16_t)len);
	pass_send(t, then);
}

static bool report_page(struct dev_task *t)
{
	switch (t->cdb[2]) {
	case 0x00:
		ask_page(t, pages_came);
		return true;
	case 0x83:
		ask_page(t, names_came);
		return true;
	case 0x88: /* SCSI ports, of the SCSI device */
	case 0x8f: /* third-party copy */
		dev_bad_field(t, 2, -1);
		return true;
	case 0xb0:
		if (!pass_has_blocks(t->lu->pass.device->type))
			return false;
		ask_page(t, limits_came);
		return true;
	default:
		return false;
	}
}

static bool report_inquiry(struct dev_task *t)
{
	struct pass_req *r = &t->own.pass;

	if (t->cdb[1] & 0x01)
		return report_page(t);
	if (r->dir == PASS_NONE)
		return false;
	if (!dev_buf(t, r->len))
		return true;
	memset(t->own.mem.buf, 0, r->len);
	r->buf = t->own.mem.buf;
	pass_send(t, inquiry_came);
	return true;
}

/* ---- REPORT SUPPORTED OPERATION CODES, SPC-4 §6.35 ---- */

/* The list has the commands that the SCSI device executes, then the commands that
 * this device server executes. */
static void opcodes_came(struct dev_task *t, int err)
{
	size_t have = answered(t), end, to = 4;
	bool timeouts = t->cdb[2] & 0x80;
	uint8_t *p = t->own.mem.buf;

	(void)err;
	if (!have)
		return;
	end = MIN((size_t)get_be32(p) + 4, have);
	for (size_t at = 4, len; at + 8 <= end; at += len) {
		unsigned sa = p[at + 5] & 0x01 ? get_be16(p + at + 2) : 0;

		len = p[at + 5] & 0x02 ? 20 : 8; /* CTDP */
		if (at + len > end)
			break;
		if (pass_owner(t->lu->pass.device, p[at], sa) != PASS_DEVICE)
			continue;
		memmove(p + to, p + at, len);
		to += len;
	}
	to += dev_put_opcodes(t->lu, p + to, timeouts);
	put_be32(p, (uint32_t)(to - 4));
	dev_return(t, to, get_be32(t->cdb + 6));
}

static bool report_opcodes(struct dev_task *t)
{
	unsigned sa = get_be16(t->cdb + 4);

	if (t->cdb[2] & 0x07) { /* one command */
		if (pass_owner(t->lu->pass.device, t->cdb[3], sa) ==
		    PASS_DEVICE)
			return false;
		dev_report_opcodes(t);
		return true;
	}
	if (!ask(t, DEV_PARAM_MAX - DEV_OUR_OPCODES_MAX))
		return true;
	put_be32(t->own.pass.cdb + 6, t->own.pass.len);
	pass_send(t, opcodes_came);
	return true;
}

/* ---- the selection ---- */

bool pass_report(struct dev_task *t)
{
	switch (t->cdb[0]) {
	case SCSI_INQUIRY:
		return report_inquiry(t);
	case SCSI_REQUEST_SENSE: /* A pending unit attention has priority. */
		if (!t->own.begun.itl->attention)
			return false;
		dev_request_sense(t);
		return true;
	case SCSI_MAINTENANCE_IN:
		return t->lu->pass.device->type != TYPE_MMC &&
		       (t->cdb[1] & 0x1f) == SCSI_MI_REPORT_SUPPORTED_OPCODES &&
		       report_opcodes(t);
	default:
		return false;
	}
}
