/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apptag.c: the Application Tag mode page (0Ah/02h, SBC-4 §6.5.3), which gives
 * the expected application tag for ranges of blocks. The page applies if ATMPE
 * and ATO are one (SPC-4 §7.5.8), to commands whose CDB has no application tag.
 *
 * An application tag descriptor has LAST (1 byte), 5 reserved bytes, the tag
 * (2), the LBA (8) and the number of blocks (8). The ranges follow one another
 * from LBA 0; a descriptor with zero blocks is unused.
 */
#include <assert.h>

#include "device/block/protect.h"

#define RANGES_AT 16u
#define RANGE_LEN 24u
#define TAG_AT	  6u
#define LBA_AT	  8u
#define BLOCKS_AT 16u
#define LAST	  0x80

static_assert(DEV_TAGS_PAGE_LEN == RANGES_AT + DEV_TAG_RANGES * RANGE_LEN,
	      "all ranges are in the page");

bool dev_has_tags(const struct dev_lu *lu)
{
	return lu->bs->protection != NULL;
}

void dev_tags_fill(const struct dev_lu *lu, const struct dev_control *c,
		   uint8_t *p)
{
	(void)lu;
	for (unsigned i = 0; i < DEV_TAG_RANGES; i++) {
		const struct dev_tag_range *r = &c->tags[i];
		uint8_t *d = p + RANGES_AT + i * RANGE_LEN;

		d[0] = r->last ? LAST : 0;
		put_be16(d + TAG_AT, r->tag);
		put_be64(d + LBA_AT, r->lba);
		put_be64(d + BLOCKS_AT, r->blocks);
	}
}

void dev_tags_mask(const struct dev_lu *lu, uint8_t *p)
{
	(void)lu;
	for (unsigned i = 0; i < DEV_TAG_RANGES; i++) {
		uint8_t *d = p + RANGES_AT + i * RANGE_LEN;

		d[0] = LAST;
		put_be16(d + TAG_AT, UINT16_MAX);
		put_be64(d + LBA_AT, UINT64_MAX);
		put_be64(d + BLOCKS_AT, UINT64_MAX);
	}
}

void dev_tags_take(struct dev_control *c, const uint8_t *p)
{
	for (unsigned i = 0; i < DEV_TAG_RANGES; i++) {
		const uint8_t *d = p + RANGES_AT + i * RANGE_LEN;

		c->tags[i] = (struct dev_tag_range){
			.last = d[0] & LAST,
			.tag = get_be16(d + TAG_AT),
			.lba = get_be64(d + LBA_AT),
			.blocks = get_be64(d + BLOCKS_AT),
		};
	}
}

/*
 * The standard requires that the LBA plus the number of blocks of the last
 * range is the last LBA, which leaves out one block. An initiator may also
 * count all blocks: both sums are accepted. A page without any range is valid
 * and assigns no tags.
 */
unsigned dev_tags_bad(const uint8_t *p, uint64_t blocks)
{
	uint64_t next = 0;

	for (unsigned at = RANGES_AT; at < DEV_TAGS_PAGE_LEN; at += RANGE_LEN) {
		uint64_t n = get_be64(p + at + BLOCKS_AT);
		bool last = p[at] & LAST;

		if (n == 0 && !last)
			continue;
		if (get_be64(p + at + LBA_AT) != next)
			return at + LBA_AT;
		if (n == 0 || n > (blocks ? blocks : UINT64_MAX) - next)
			return at + BLOCKS_AT;
		next += n;
		if (last && blocks && next != blocks && next + 1 != blocks)
			return at + BLOCKS_AT;
		if (last)
			return 0;
	}
	return next ? DEV_TAGS_PAGE_LEN - RANGE_LEN : 0;
}

/* The last range extends to the end of the unit, which may have grown since
 * MODE SELECT. */
bool dev_tag_of(const struct dev_lu *lu, uint64_t lba, uint16_t *tag)
{
	for (unsigned i = 0; i < DEV_TAG_RANGES; i++) {
		uint64_t from = DEV_CTL(lu, tags[i].lba);
		uint64_t blocks = DEV_CTL(lu, tags[i].blocks);
		bool last = DEV_CTL(lu, tags[i].last);

		if (blocks && lba >= from && (last || lba - from < blocks)) {
			*tag = DEV_CTL(lu, tags[i].tag);
			return true;
		}
		if (last)
			break;
	}
	return false;
}
