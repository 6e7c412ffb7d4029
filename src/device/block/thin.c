/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thin.c: UNMAP, WRITE SAME, GET LBA STATUS (SBC-3 §§4.7, 5.5, 5.28, 5.49).
 */
#include <string.h>

#include "device/block/block.h"
#include "device/block/protect.h"
#include "device/unit/tokens.h"

/* ---- UNMAP ---- */

#define UNMAP_HEADER 8
#define UNMAP_DESC   16
#define UNMAP_ANCHOR 0x01

bool dev_has_block_erase(const struct dev_lu *lu)
{
	return !lu->shared && dev_has_unmap(lu);
}

bool dev_has_unmap(const struct dev_lu *lu)
{
	return lu->bs->caps & BS_CAP_UNMAP;
}

int dev_prepare_unmap(struct dev_task *t, uint64_t *out_len)
{
	*out_len = get_be16(t->cdb + 7);
	/* UNMAP may name any block, so its range is the whole unit */
	t->own.blocks = t->lu->blocks;
	return 0;
}

static const uint8_t *unmap_desc(const struct dev_task *t, uint32_t i)
{
	return (const uint8_t *)t->own.mem.buf + UNMAP_HEADER + i * UNMAP_DESC;
}

/* Checks all descriptors, before the first one changes any block. */
static bool unmap_check(struct dev_task *t, uint32_t n)
{
	if (n > UNMAP_MAX_DESCS) {
		dev_bad_parameter(t, 2);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *d = unmap_desc(t, i);

		if (range_ok(get_be64(d), get_be32(d + 8), t->lu->blocks))
			continue;
		dev_sense(t, &(struct scsi_sense){
				     .key = SENSE_ILLEGAL_REQUEST,
				     .asc = ASC_LBA_OUT_OF_RANGE,
				     .has_info = true,
				     .info = MAX(get_be64(d), t->lu->blocks) });
		return false;
	}
	return true;
}

/* Returns how many of n blocks one request may discard. */
static uint32_t discard_part(const struct dev_task *t, uint64_t n)
{
	uint32_t part = t->lu->bs->part.discard >> t->lu->block_shift;

	return (uint32_t)MIN(n, part ? part : UINT32_MAX);
}

/* steps.at: the descriptor, of which t->count blocks are done. */
static bool unmap_step(struct dev_task *t)
{
	unsigned shift = t->lu->block_shift;
	uint32_t n, blocks;
	const uint8_t *d;
	uint64_t lba;

	if (t->own.steps.result) {
		dev_io_failed(t, t->own.steps.result, t->own.req.off);
		return false;
	}
	/* empty descriptors are valid (SBC-3 §5.28.2) */
	while (t->own.steps.at < t->own.steps.end &&
	       get_be32(unmap_desc(t, (uint32_t)t->own.steps.at) + 8) == 0)
		t->own.steps.at++;
	if (t->own.steps.at == t->own.steps.end) {
		if (dev_writes_through(t->lu))
			dev_flush(t, 0);
		else
			dev_good(t);
		return false;
	}
	d = unmap_desc(t, (uint32_t)t->own.steps.at);
	lba = get_be64(d) + t->own.count;
	blocks = get_be32(d + 8);
	n = discard_part(t, blocks - t->own.count);
	t->own.count += n;
	if (t->own.count == blocks) {
		t->own.count = 0;
		t->own.steps.at++;
	}
	dev_tokens_touch(t->lu, t->nexus->cfg.worker, lba, n);
	/* BS_ZERO: anchored blocks read as zeros and keep their space */
	dev_step_io(t, t->cdb[1] & UNMAP_ANCHOR ? BS_ZERO : BS_UNMAP, 0,
		    lba << shift, (uint64_t)n << shift);
	return true;
}

void dev_unmap(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	uint32_t len;

	if (get_be16(t->cdb + 7) == 0) {
		dev_good(t); /* a parameter list length of zero is valid */
		return;
	}
	if (t->out_len < UNMAP_HEADER) {
		dev_bad_length(t);
		return;
	}
	/* descriptors beyond the end of data-out are ignored */
	len = MIN((uint32_t)get_be16(p + 2), t->out_len - UNMAP_HEADER);
	t->own.count = 0;
	t->own.steps.at = 0;
	t->own.steps.end = len / UNMAP_DESC;
	dev_count(t, COUNT_WRITES, 0);
	if (unmap_check(t, (uint32_t)t->own.steps.end))
		dev_steps(t, unmap_step);
}

/* ---- WRITE SAME ---- */

#define WS_ANCHOR 0x10
#define WS_UNMAP  0x08
#define WS_NDOB	  0x01

static bool no_data(const struct dev_task *t)
{
	return t->own.row->len >= 16 && (dev_flags(t) & WS_NDOB);
}

int dev_prepare_write_same(struct dev_task *t, uint64_t *out_len)
{
	unsigned at = dev_flags_at(t), flags = dev_flags(t);

	if (dev_protect_prepare(t))
		return 1;
	/* SBC-3 §5.49: ANCHOR requires UNMAP */
	if ((flags & (WS_ANCHOR | WS_UNMAP)) == WS_ANCHOR)
		return dev_bad_field(t, at, 4);
	if ((flags & WS_UNMAP) && !(t->lu->bs->caps & BS_CAP_UNMAP))
		return dev_bad_field(t, at, 3);
	t->lba = scsi_cdb_lba(t->cdb);
	t->own.blocks = scsi_cdb_blocks(t->cdb);
	if (t->own.blocks == 0 &&
	    t->lba < t->lu->blocks) /* WSNZ is 0: to the end */
		t->own.blocks = t->lu->blocks - t->lba;
	if (dev_range(t, t->lba, t->own.blocks))
		return 1;
	if (!no_data(t))
		*out_len = dev_wire_block(t);
	return 0;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* Sets the protection information of a chunk, from that of the one block of
 * data-out. */
static void same_pi(struct dev_task *t)
{
	uint64_t first = (t->own.steps.at >> t->lu->block_shift) - t->lba;

	if (!t->own.mem.pi)
		return; /* the backstore computes it */
	t->own.req.pi = dev_chunk_pi(t);
	for (uint64_t i = 0; i < t->own.count >> t->lu->block_shift; i++)
		dev_protect_same(t, t->own.mem.pi, first + i,
				 t->own.req.pi + i * 8);
}

static bool same_step(struct dev_task *t)
{
	if (t->own.steps.result) {
		dev_io_failed(t, t->own.steps.result, t->own.steps.at);
		return false;
	}
	t->own.steps.at += t->own.count;
	if (t->own.steps.at == t->own.steps.end) {
		dev_written(t, t->own.blocks << t->lu->block_shift);
		return false;
	}
	t->own.count = (uint32_t)MIN(t->own.steps.end - t->own.steps.at,
				     (uint64_t)dev_chunk_len(t));
	t->own.mem.iov[1] = (struct iovec){ t->own.mem.aux, t->own.count };
	t->own.req.data = bufv_of(&t->own.mem.iov[1], 1);
	same_pi(t);
	dev_step_io(t, BS_WRITE, dev_fua(t->lu, false), t->own.steps.at,
		    t->own.count);
	return true;
}

static void write_pattern(struct dev_task *t)
{
	size_t block = t->lu->block_size, len;

	if (!dev_aux_chunk(t, t->own.steps.end - t->own.steps.at)) {
		dev_no_resources(t);
		return;
	}
	len = dev_chunk_len(t);
	for (size_t at = 0; at < len; at += block)
		memcpy((uint8_t *)t->own.mem.aux + at, t->own.mem.buf, block);
	dev_steps(t, same_step);
}

/* steps.wrote: the blocks may be deallocated. */
static bool zero_step(struct dev_task *t)
{
	unsigned shift = t->lu->block_shift;
	uint64_t left;

	if (t->own.steps.result) {
		dev_io_failed(t, t->own.steps.result, t->own.req.off);
		return false;
	}
	if (t->own.steps.at == t->own.steps.end) {
		dev_written(t, t->own.blocks << shift);
		return false;
	}
	left = t->own.steps.end - t->own.steps.at;
	left = (uint64_t)discard_part(t, left >> shift) << shift;
	t->own.steps.at += left;
	dev_step_io(t, BS_ZERO,
		    (t->own.steps.wrote ? BS_MAY_UNMAP : 0) |
			    dev_fua(t->lu, false),
		    t->own.steps.at - left, left);
	return true;
}

static void write_zeros(struct dev_task *t, bool may_unmap)
{
	t->own.steps.wrote = may_unmap;
	dev_steps(t, zero_step);
}

void dev_write_same(struct dev_task *t)
{
	unsigned shift = t->lu->block_shift;
	bool unmap = dev_flags(t) & WS_UNMAP, anchor = dev_flags(t) & WS_ANCHOR;
	bool zeros;

	/* data-out must be exactly one block: the other blocks of a longer
	 * buffer would be ignored without an error */
	if (!no_data(t) && t->edtl.out != dev_wire_block(t)) {
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
		return;
	}
	t->own.steps.at = t->lba << shift;
	t->own.steps.end = (t->lba + t->own.blocks) << shift;
	/* LBPRZ is 1: deallocated blocks read as zeros, so a unit must write
	 * other data instead of deallocating the blocks (SBC-3 §5.49). Most
	 * targets deallocate the blocks nevertheless, and the test suite of
	 * libiscsi expects that; `strict` selects the rule. */
	zeros = no_data(t) || (unmap && !t->lu->cfg.strict);
	/* written zeros have protection information, BS_ZERO leaves none */
	if (!zeros && (unmap || !DEV_PROTECTION(t->lu)))
		zeros = all_zero(t->own.mem.buf, t->lu->block_size);
	if (zeros)
		write_zeros(t, unmap && !anchor);
	else
		write_pattern(t);
}

/* ---- GET LBA STATUS ---- */

#define STATUS_HEADER	 8
#define STATUS_DESC	 16
#define STATUS_MAX_DESCS 64

int dev_prepare_lba_status(struct dev_task *t, uint64_t *out_len)
{
	(void)out_len;
	t->lba = scsi_cdb_lba(t->cdb);
	if (t->lba >= t->lu->blocks)
		return dev_bad_lba(t, t->lba);
	return 0;
}

/* Provisioning status, SBC-3 table 69 */
enum lba_status {
	LBA_MAPPED,
	LBA_DEALLOCATED,
	LBA_ANCHORED,
};

static enum lba_status status_of(const struct bs_req *r)
{
	if (r->extent_mapped)
		return LBA_MAPPED;
	return r->extent_kept ? LBA_ANCHORED : LBA_DEALLOCATED;
}

static void put_extent(struct dev_task *t, uint64_t blocks,
		       enum lba_status status)
{
	uint8_t *d = (uint8_t *)t->own.mem.buf + STATUS_HEADER +
		     t->own.count * STATUS_DESC;

	blocks = MIN(blocks, (uint64_t)UINT32_MAX);
	put_be64(d, t->own.steps.at);
	put_be32(d + 8, (uint32_t)blocks);
	d[12] = (uint8_t)status;
	t->own.count++;
	t->own.steps.at += blocks;
}

static bool status_step(struct dev_task *t)
{
	unsigned shift = t->lu->block_shift;
	uint64_t blocks = t->lu->blocks;
	uint32_t alloc = get_be32(t->cdb + 10), want;

	if (t->own.steps.result) {
		dev_io_failed(t, t->own.steps.result, t->own.steps.at << shift);
		return false;
	}
	/* BS_EXTENTS has ended; round up a partial block */
	if (t->own.steps.wrote) {
		uint64_t n = (t->own.req.extent_len + t->lu->block_size - 1) >>
			     shift;

		put_extent(t, MAX(n, 1ull), status_of(&t->own.req));
	}
	want = alloc > STATUS_HEADER ? (alloc - STATUS_HEADER) / STATUS_DESC
				     : 0;
	want = MIN(MAX(want, 1u), STATUS_MAX_DESCS);
	if (t->own.count == want || t->own.steps.at >= blocks) {
		size_t len = STATUS_HEADER + t->own.count * STATUS_DESC;

		put_be32(t->own.mem.buf, (uint32_t)len - 4);
		dev_return(t, len, alloc);
		return false;
	}
	t->own.steps.wrote = true;
	dev_step_io(t, BS_EXTENTS, 0, t->own.steps.at << shift,
		    (blocks - t->own.steps.at) << shift);
	return true;
}

void dev_lba_status(struct dev_task *t)
{
	uint64_t blocks = t->lu->blocks;

	/* the unit has shrunk since dev_prepare_lba_status */
	if (t->lba >= blocks) {
		dev_io_failed(t, ERR_RANGE, t->lba << t->lu->block_shift);
		return;
	}
	if (!dev_param_buf(t))
		return;
	t->own.steps.at = t->lba;
	t->own.steps.wrote = false;
	if (!(t->lu->bs->caps & BS_CAP_EXTENTS)) {
		put_extent(t, blocks - t->lba, LBA_MAPPED);
		put_be32(t->own.mem.buf, STATUS_HEADER + STATUS_DESC - 4);
		dev_return(t, STATUS_HEADER + STATUS_DESC,
			   get_be32(t->cdb + 10));
		return;
	}
	dev_steps(t, status_step);
}
