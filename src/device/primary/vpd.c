/* SPDX-License-Identifier: BSD-2-Clause */
/* vpd.c: vital product data pages (SPC-4 §7.8, SBC-3 §6.6). */
#include <string.h>

#include "device/alua/alua.h"
#include "device/block/block.h"
#include "device/block/protect.h"
#include "device/copy/copy.h"
#include "device/primary/primary.h"
#include "device/unit/condition.h"
#include "device/unit/names.h"
#include "device/unit/ports.h"
#include "device/unit/settings.h"

static size_t page_serial(const struct dev_task *t, uint8_t *p)
{
	const char *serial = dev_names_of(t->lu)->serial;
	size_t n = strlen(serial);

	memcpy(p + 4, serial, n);
	return 4 + n;
}

/* ---- 83h, SPC-4 §7.8.6 ---- */

/* SCSI name strings are zero-padded to a multiple of 4 (SPC-4 §7.8.6.11). */
static uint8_t *put_name(uint8_t *p, const char *name, uint8_t assoc)
{
	size_t n = strlen(name) + 1, padded = round_up4(n);

	memcpy(p + 4, name, n);
	memset(p + 4 + n, 0, padded - n);
	return dev_put_designator(p, CODE_UTF8,
				  (uint8_t)(PIV_ISCSI | assoc | 0x8), padded);
}

static uint8_t *put_relative_port(const struct dev_nexus *n, uint8_t *p)
{
	memset(p + 4, 0, 4);
	put_be16(p + 6, n->cfg.relative_target_port);
	return dev_put_designator(p, CODE_BINARY, PIV_ISCSI | ASSOC_PORT | 0x4,
				  4);
}

static uint8_t *put_group(const struct dev_task *t, uint8_t *p)
{
	uint16_t group = dev_group_at(t->nexus, t->lu);

	if (!group)
		return p;
	memset(p + 4, 0, 4);
	put_be16(p + 6, group);
	return dev_put_designator(p, CODE_BINARY, PIV_ISCSI | ASSOC_PORT | 0x5,
				  4);
}

uint8_t *dev_put_port_names(const struct dev_task *t, uint8_t *p)
{
	p = put_relative_port(t->nexus, p);
	p = put_group(t, p);
	p = put_name(p, t->nexus->cfg.target_port, ASSOC_PORT);
	return put_name(p, t->nexus->cfg.target_name, ASSOC_DEVICE);
}

static size_t page_identification(const struct dev_task *t, uint8_t *p)
{
	uint8_t *at = dev_put_port_names(t, dev_put_names(t->lu, p + 4));

	return (size_t)(at - p);
}

/* 88h, SPC-4 §7.8.14: the ports of the nexus's target in this process: it does not
 * know the names of the ports of another iserd with the same units. */
static size_t page_ports(const struct dev_task *t, uint8_t *p)
{
	const struct dev_ports *ports = dev_ports_of(t->nexus);
	uint8_t *at = p + 4;

	for (const struct dev_port *port = ports ? ports->first : NULL; port;
	     port = dev_port_next(port)) {
		uint8_t *names = at + 12, *end;

		if (names + 4 + DEV_PORT_NAME + 4 > p + DEV_PARAM_MAX)
			break;
		end = put_name(names, port->name, ASSOC_PORT);
		put_be16(at + 2, port->rtpi);
		put_be16(at + 10, (uint16_t)(end - names));
		at = end;
	}
	return (size_t)(at - p);
}

/* ---- SBC-3 ---- */

/* B0h, §6.6.3 */
static size_t page_block_limits(const struct dev_task *t, uint8_t *p)
{
	const struct dev_lu *lu = t->lu;
	const struct bs *b = lu->bs;
	uint32_t most = (uint32_t)dev_most_blocks(lu);

	p[5] = (uint8_t)MIN(most / 2, 255u); /* COMPARE AND WRITE */
	put_be16(p + 6, (uint16_t)MAX(b->phys_block / b->block_size, 1u));
	put_be32(p + 8, most);
	put_be32(p + 12, most); /* optimal */
	if (b->caps & BS_CAP_UNMAP) {
		put_be32(p + 20, UINT32_MAX);
		put_be32(p + 24, UNMAP_MAX_DESCS);
		put_be32(p + 28, MAX(b->unmap_grain / b->block_size, 1u));
		put_be32(p + 32, 0x80000000u); /* UGAVALID, alignment 0 */
	}
	put_be64(p + 36, lu->blocks); /* MAXIMUM WRITE SAME LENGTH */
	put_be32(p + 44, dev_atomic_max(lu));
	return 64;
}

/* B1h, §6.6.2 */
static size_t page_characteristics(const struct dev_task *t, uint8_t *p)
{
	put_be16(p + 4, dev_setting(&t->lu->settings.rotational) ? 7200 : 1);
	if (dev_has_unmap(t->lu))
		p[7] = 0x40; /* WABEREQ 01b: reads work after BLOCK ERASE */
	if (dev_has_rekey(t->lu))
		p[7] |= 0x10; /* WACEREQ 01b: and after CRYPTO ERASE */
	p[8] = 0x01;	      /* VBULS: VERIFY compares unmapped blocks, too */
	return 64;
}

/* B2h, §6.6.4 */
static size_t page_provisioning(const struct dev_task *t, uint8_t *p)
{
	if (t->lu->bs->caps & BS_CAP_UNMAP) {
		p[4] = (uint8_t)dev_threshold_exponent(t->lu);
		p[5] = 0xe6; /* LBPU, LBPWS, LBPWS10, LBPRZ, ANC_SUP */
		p[6] = 0x02; /* thin */
	}
	return 8;
}

/* B6h, ZBC: the unit has no zones; all ones: not reported. */
static size_t page_zones(const struct dev_task *t, uint8_t *p)
{
	(void)t;
	put_be32(p + 8, UINT32_MAX);
	put_be32(p + 12, UINT32_MAX);
	put_be32(p + 16, UINT32_MAX);
	return 64;
}

/* 86h, SPC-4 §7.8.7 */
static size_t page_extended(const struct dev_task *t, uint8_t *p)
{
	const struct bs *bs = dev_is_cd(t->lu) ? NULL : t->lu->bs;

	if (bs && bs->protection)
		p[4] = 0x3f; /* SPT: types 1, 2, 3; GRD_, APP_, REF_CHK */
	p[5] = 0x07;	     /* HEADSUP, ORDSUP, SIMPSUP */
	if (bs)
		p[5] |= 0x08; /* PRIOR_SUP */
	if (bs && dev_has_cache(t->lu))
		p[6] = 0x01; /* V_SUP */
	p[7] = 0x01;	     /* LUICLR */
	return 64;
}

/* 87h, SPC-4 §7.8.9: all mode pages are shared by all nexuses */
static size_t page_mode_policy(const struct dev_task *t, uint8_t *p)
{
	(void)t;
	p[4] = 0x3f; /* every page */
	p[5] = 0xff; /* and subpage */
	return 8;
}

static size_t page_supported(const struct dev_task *t, uint8_t *p);

#define DISK BIT(DEV_DISK)
#define ALL  UINT32_MAX

static const struct {
	uint8_t code;
	uint32_t types; /* BIT(enum dev_type) */
	size_t (*fill)(const struct dev_task *t, uint8_t *p);
} pages[] = {
	{ 0x00, ALL, page_supported },
	{ 0x80, ALL, page_serial },
	{ 0x83, ALL, page_identification },
	{ 0x86, ALL, page_extended },
	{ 0x87, ALL, page_mode_policy },
	{ 0x88, ALL, page_ports },
	{ 0x8a, DISK, dev_power_page },
	{ 0x8f, DISK, dev_copy_page },
	{ 0xb0, DISK, page_block_limits },
	{ 0xb1, DISK, page_characteristics },
	{ 0xb2, DISK, page_provisioning },
	{ 0xb6, DISK, page_zones },
};

static bool has(const struct dev_lu *lu, size_t i)
{
	return pages[i].types & BIT(lu->cfg.type);
}

static size_t page_supported(const struct dev_task *t, uint8_t *p)
{
	size_t at = 4;

	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (has(t->lu, i))
			p[at++] = pages[i].code;
	return at;
}

void dev_vpd(struct dev_task *t, uint8_t page, size_t alloc)
{
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		uint8_t *p;
		size_t len;

		if (pages[i].code != page || !has(t->lu, i))
			continue;
		p = dev_param_buf(t);
		if (!p)
			return;
		len = pages[i].fill(t, p);
		p[0] = dev_peripheral_qualifier(t->nexus, t->lu) |
		       dev_peripheral_type(t->lu);
		p[1] = page;
		put_be16(p + 2, (uint16_t)(len - 4));
		dev_return(t, len, alloc);
		return;
	}
	dev_bad_field(t, 2, -1);
}
