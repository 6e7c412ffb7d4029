/* SPDX-License-Identifier: BSD-2-Clause */
/* spc.c: commands of all device types (SPC-4 §6). */
#include <string.h>

#include "device/alua/alua.h"
#include "device/primary/primary.h"
#include "device/unit/attention.h"
#include "device/unit/condition.h"
#include "device/unit/itl.h"
#include "device/unit/ports.h"
#include "device/unit/settings.h"

#define INQUIRY_LEN 96

static void put_padded(uint8_t *p, size_t len, const char *text,
		       const char *fallback)
{
	size_t n;

	if (!text || !*text)
		text = fallback;
	n = MIN(strlen(text), len);
	memset(p, ' ', len);
	memcpy(p, text, n);
}

/* The fields of INQUIRY data that depend on the type of the unit. */
static const struct type {
	uint8_t peripheral;  /* SPC-4 table 142 */
	bool third_party;    /* EXTENDED COPY */
	const char *product; /* default */
	uint16_t version;    /* of the command set's standard */
} types[DEV_NTYPES] = {
	[DEV_DISK] = { 0x00, true, "VIRTUAL-DISK", 0x04c0 /* SBC-3 */ },
	[DEV_CD] = { 0x05, false, "VIRTUAL-CDROM", 0x04e0 /* MMC-6 */ },
};

uint8_t dev_peripheral_type(const struct dev_lu *lu)
{
	return types[lu->cfg.type].peripheral;
}

/* SPC-4 §6.4.2 */
static void standard_inquiry(struct dev_task *t, size_t alloc)
{
	static const uint16_t versions[] = {
		0x00a0, /* SAM-5 */
		0x0960, /* iSCSI */
		0x0460, /* SPC-4 */
	};
	const struct dev_names *names = t->lu ? dev_names_of(t->lu) : NULL;
	const struct type *type = &types[dev_lu_type(t->lu)];
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	p[0] = t->lu ? dev_peripheral_qualifier(t->nexus, t->lu) |
			       dev_peripheral_type(t->lu)
		     : 0x7f; /* no unit at this LUN: qualifier 011b */
	p[1] = t->lu && t->lu->cfg.removable ? 0x80 : 0; /* RMB */
	p[2] = 0x06;					 /* SPC-4 */
	p[3] = 0x32; /* NormACA, HiSup, response data format 2 */
	p[4] = INQUIRY_LEN - 5;
	p[5] = type->third_party ? 0x08 : 0; /* 3PC */
	if (t->lu && dev_has_groups(t->lu))
		p[5] |= 0x30; /* TPGS: implicit and explicit */
	if (t->lu && !dev_is_cd(t->lu) && t->lu->bs->protection)
		p[5] |= 0x01; /* PROTECT */
	if (dev_ports_at(dev_ports_of(t->nexus), 1) ||
	    (t->lu && dev_has_groups(t->lu)))
		p[6] = 0x10; /* MULTIP */
	p[7] = 0x02;	     /* CmdQue */
	put_padded(p + 8, 8, names ? names->vendor : NULL, "OPENISER");
	put_padded(p + 16, 16, names ? names->product : NULL, type->product);
	put_padded(p + 32, 4, names ? names->revision : NULL, "0001");
	for (size_t i = 0; i < ARRAY_LEN(versions); i++)
		put_be16(p + 58 + 2 * i, versions[i]);
	put_be16(p + 58 + sizeof(versions), type->version);
	dev_return(t, INQUIRY_LEN, alloc);
}

void dev_inquiry(struct dev_task *t)
{
	size_t alloc = get_be16(t->cdb + 3);

	if (t->cdb[1] & 0x01) {
		if (t->lu)
			dev_vpd(t, t->cdb[2], alloc);
		else
			dev_check(t, SENSE_ILLEGAL_REQUEST,
				  ASC_LUN_NOT_SUPPORTED);
		return;
	}
	if (t->cdb[2]) {
		dev_bad_field(t, 2, -1); /* page code without EVPD */
		return;
	}
	standard_inquiry(t, alloc);
}

/* SPC-4 §6.33 */
void dev_report_luns(struct dev_task *t)
{
	uint32_t alloc = get_be32(t->cdb + 6);
	const struct dev_itl *i = NULL;
	uint8_t select = t->cdb[2];
	size_t len = 8, at = 8;

	if (select > 2) {
		dev_bad_field(t, 2, -1);
		return;
	}
	/* 1: well known logical units only, which the device does not have */
	if (select != 1)
		i = dev_itl_first(t->nexus);
	for (const struct dev_itl *k = i; k; k = dev_itl_next(k))
		len += 8;
	/* of a long list, no more than fits */
	if (!dev_buf(t, MIN(len, MAX((size_t)MIN(alloc, t->edtl.in), 8u) + 7)))
		return;
	put_be64(t->own.mem.buf, 0);
	put_be32(t->own.mem.buf, (uint32_t)(len - 8));
	for (; i && at + 8 <= t->own.mem.buf_len; i = dev_itl_next(i), at += 8)
		put_be64((uint8_t *)t->own.mem.buf + at,
			 dev_lun_encode(i->lun));
	dev_attention_luns_reported(t->nexus);
	dev_return(t, len, alloc);
}

/* SPC-4 §6.39: reports and clears a pending unit attention. */
void dev_request_sense(struct dev_task *t)
{
	struct scsi_sense s = { .key = SENSE_NO_SENSE };
	uint8_t *p;

	if (!t->lu) {
		s.key = SENSE_ILLEGAL_REQUEST;
		s.asc = ASC_LUN_NOT_SUPPORTED;
	} else if (!dev_attention_take(t->own.begun.itl, &s)) {
		(void)dev_condition_sense(t->lu, &s);
	}
	p = dev_param_buf(t);
	if (p)
		dev_return(t, scsi_sense_build(&s, t->cdb[1] & 0x01, p),
			   t->cdb[4]);
}

void dev_test_unit_ready(struct dev_task *t)
{
	dev_good(t);
}

/* SPC-4 §6.36 */
void dev_report_tmfs(struct dev_task *t)
{
	uint32_t alloc = get_be32(t->cdb + 6);
	bool extended = t->cdb[2] & 0x80; /* REPD */
	uint8_t *p;

	if (alloc < 4) {
		dev_bad_field(t, 6, -1);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	p[0] = 0xfc; /* ATS ATSS CACAS CTSS LURS QTS: abort task, abort task
		      * set, clear ACA, clear task set, LU reset, query task */
	p[1] = 0x07; /* QAES QTSS ITNRS */
	p[3] = extended ? 0x0c : 0;
	dev_return(t, extended ? 16 : 4, alloc);
}
