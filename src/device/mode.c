/* SPDX-License-Identifier: BSD-2-Clause */
/* mode.c: MODE SENSE (SPC-4 §6.11) and its pages, one row each. */
#include <string.h>

#include "device/internal.h"

/* Page control field, SPC-4 table 165. */
enum page_control {
	PC_CURRENT,
	PC_CHANGEABLE,
	PC_DEFAULT,
	PC_SAVED,
};

#define PAGE_ALL    0x3f
#define SUBPAGE_ALL 0xff

/* 08h, SBC-3 §6.5.5 */
static size_t page_caching(const struct dev_lu *lu, uint8_t *p)
{
	p[2] = lu->bs->caps & BS_CAP_WRITE_CACHE ? 0x04 : 0; /* WCE */
	return 20;
}

/* 0Ah, SPC-4 §7.5.8 */
static size_t page_control(const struct dev_lu *lu, uint8_t *p)
{
	(void)lu;
	p[2] = 0x02;			 /* GLTSD */
	p[3] = 0x10;			 /* unrestricted reordering */
	p[5] = lu->read_only ? 0x08 : 0; /* SWP */
	put_be16(p + 8, 0xffff);	 /* busy timeout: unlimited */
	return 12;
}

/* 01h, SBC-3 §6.5.8 */
static size_t page_error_recovery(const struct dev_lu *lu, uint8_t *p)
{
	(void)lu;
	p[2] = 0xc0; /* AWRE, ARRE */
	return 12;
}

/* 1Ch, SPC-4 §7.5.14 */
static size_t page_exceptions(const struct dev_lu *lu, uint8_t *p)
{
	(void)lu;
	p[2] = 0x08; /* DEXCPT */
	return 12;
}

static const struct {
	uint8_t code;
	size_t (*fill)(const struct dev_lu *lu, uint8_t *p);
} pages[] = {
	{ 0x01, page_error_recovery },
	{ 0x08, page_caching },
	{ 0x0a, page_control },
	{ 0x1c, page_exceptions },
};

/* Fills the page at p; nothing can be changed, so its changeable form is all
 * zero behind the header. */
static size_t put_page(const struct dev_lu *lu, size_t i, unsigned pc,
		       uint8_t *p)
{
	size_t len = pages[i].fill(lu, p);

	if (pc == PC_CHANGEABLE)
		memset(p, 0, len);
	p[0] = pages[i].code;
	p[1] = (uint8_t)(len - 2);
	return len;
}

/* The pages asked for; 0 when there is no such page. */
static size_t put_pages(const struct dev_task *t, uint8_t *p)
{
	unsigned pc = t->cdb[2] >> 6, page = t->cdb[2] & 0x3f;
	size_t at = 0;

	if (t->cdb[3] != 0 && t->cdb[3] != SUBPAGE_ALL)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (page == PAGE_ALL || page == pages[i].code)
			at += put_page(t->lu, i, pc, p + at);
	return at;
}

/* SBC-3 §6.5.2: short (8 bytes) or long (16). */
static size_t put_block_descriptor(const struct dev_lu *lu, bool is_long,
				   uint8_t *p)
{
	if (is_long) {
		put_be64(p, lu->blocks);
		put_be32(p + 12, lu->block_size);
		return 16;
	}
	put_be32(p, (uint32_t)MIN(lu->blocks, (uint64_t)UINT32_MAX));
	put_be24(p + 5, lu->block_size);
	return 8;
}

static uint8_t device_specific(const struct dev_lu *lu)
{
	return (uint8_t)((lu->read_only ? 0x80 : 0) | 0x10); /* WP, DPOFUA */
}

/* Everything behind the header, whose length is 4 or 8; 0: ended. */
static size_t build(struct dev_task *t, size_t header, bool long_lba,
		    size_t *descriptor)
{
	uint8_t *p;
	size_t at = header, n;

	if (t->cdb[2] >> 6 == PC_SAVED) {
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_SAVING_NOT_SUPPORTED);
		return 0;
	}
	p = dev_param_buf(t);
	if (!p)
		return 0;
	*descriptor = 0;
	if (!(t->cdb[1] & 0x08)) /* DBD */
		*descriptor = put_block_descriptor(t->lu, long_lba, p + at);
	at += *descriptor;
	n = put_pages(t, p + at);
	if (n == 0) {
		dev_bad_field(t, t->cdb[3] ? 3 : 2, -1);
		return 0;
	}
	return at + n;
}

void dev_mode_sense_6(struct dev_task *t)
{
	size_t descriptor, len = build(t, 4, false, &descriptor);
	uint8_t *p = t->buf;

	if (len == 0)
		return;
	p[0] = (uint8_t)(len - 1);
	p[2] = device_specific(t->lu);
	p[3] = (uint8_t)descriptor;
	dev_return(t, len, t->cdb[4]);
}

void dev_mode_sense_10(struct dev_task *t)
{
	bool long_lba = t->cdb[1] & 0x10; /* LLBAA */
	size_t descriptor, len = build(t, 8, long_lba, &descriptor);
	uint8_t *p = t->buf;

	if (len == 0)
		return;
	put_be16(p, (uint16_t)(len - 2));
	p[3] = device_specific(t->lu);
	p[4] = long_lba && descriptor ? 0x01 : 0;
	put_be16(p + 6, (uint16_t)descriptor);
	dev_return(t, len, get_be16(t->cdb + 7));
}
