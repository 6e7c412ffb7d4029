/* SPDX-License-Identifier: BSD-2-Clause */
/* rw.c: READ, WRITE, SYNCHRONIZE CACHE, READ CAPACITY (SBC-3 §5). */
#include "device/block/block.h"
#include "device/block/protect.h"
#include "device/unit/attention.h"
#include "device/unit/loan.h"
#include "device/unit/range.h"

/* The first byte of TRANSFER LENGTH, for the field pointer. */
static unsigned length_byte(const struct dev_task *t)
{
	static const uint8_t by_len[33] = {
		[6] = 4, [10] = 7, [12] = 6, [16] = 10, [32] = 28
	};

	return by_len[t->own.row->len];
}

/* Validates LBA, length and protection field of a CDB like that of READ or
 * WRITE. */
static int take_range(struct dev_task *t)
{
	if (dev_protect_prepare(t))
		return 1;
	t->lba = scsi_cdb_lba(t->cdb);
	t->own.blocks = scsi_cdb_blocks(t->cdb);
	if (t->own.blocks > dev_most_blocks(t->lu))
		return dev_bad_field(t, length_byte(t), -1);
	return dev_range(t, t->lba, t->own.blocks);
}

/* ---- transfers in parts ---- */

/* Shorter ones are not worth a further turn. */
#define PARTS_FROM (1u << 20)

/* A store that encrypts writes to a medium, where each part would be synchronised. */
static bool comes_in_parts(const struct dev_task *t, uint64_t len, bool fua)
{
	const struct bs *b = t->lu->bs;

	return len > PARTS_FROM && b->part.data && b->part.data < len &&
	       (!fua || (b->caps & BS_CAP_AT_ONCE));
}

static void read_done(struct dev_task *t, int result)
{
	if (result) {
		dev_io_failed(t, result, t->own.req.off);
		return;
	}
	/* EDTL may end inside a block; no more than EDTL is returned */
	t->own.mem.iov[0].iov_len =
		MIN(t->own.mem.iov[0].iov_len, (size_t)t->edtl.in);
	t->in = bufv_of(t->own.mem.iov, 1);
	dev_good(t);
}

static void parts_done(struct dev_task *t)
{
	if (t->own.steps.wrote)
		dev_written(t,
			    t->own.steps.end - (t->lba << t->lu->block_shift));
	else
		read_done(t, 0);
}

/* t->count bytes were moved. */
static bool part_step(struct dev_task *t)
{
	uint64_t begin = t->lba << t->lu->block_shift, done;

	if (t->own.steps.result) {
		dev_io_failed(t, t->own.steps.result, t->own.steps.at);
		return false;
	}
	t->own.steps.at += t->own.count;
	if (t->own.steps.at == t->own.steps.end) {
		parts_done(t);
		return false;
	}
	t->own.count = (uint32_t)MIN(t->own.steps.end - t->own.steps.at,
				     (uint64_t)t->lu->bs->part.data);
	done = t->own.steps.at - begin;
	t->own.mem.iov[1] =
		(struct iovec){ (uint8_t *)t->own.mem.iov[0].iov_base + done,
				t->own.count };
	t->own.req.data = bufv_of(&t->own.mem.iov[1], 1);
	t->own.req.pi = NULL;
	if (t->own.mem.pi)
		t->own.req.pi = (uint8_t *)t->own.mem.pi +
				(done >> t->lu->block_shift) * 8;
	dev_step_io(t, t->own.steps.wrote ? BS_WRITE : BS_READ, 0,
		    t->own.steps.at, t->own.count);
	return true;
}

/* The memory is iov[0]. */
static void move_in_parts(struct dev_task *t, bool write, uint64_t len)
{
	t->own.steps.wrote = write;
	t->own.steps.at = t->lba << t->lu->block_shift;
	t->own.steps.end = t->own.steps.at + len;
	t->own.count = 0;
	dev_steps(t, part_step);
}

/* ---- READ ---- */

int dev_prepare_read(struct dev_task *t, uint64_t *out_len)
{
	(void)out_len;
	return take_range(t);
}

static void read_blocks(struct dev_task *t)
{
	unsigned shift = t->lu->block_shift;
	uint64_t off = t->lba << shift, len = t->own.blocks << shift;
	uint64_t wanted = MIN(len, (uint64_t)t->edtl.in);

	if (t->own.protect.type) {
		dev_protect_read(t);
		return;
	}
	t->total.in = len;
	wanted = (wanted + t->lu->block_size - 1) >> shift << shift;
	if (wanted == 0) {
		dev_good(t);
		return;
	}
	if (t->own.mem.lent ||
	    (dev_loan_may(t) && dev_loan_take(t, off, (size_t)wanted))) {
		read_done(t, 0);
		return;
	}
	if (!dev_buf(t, (size_t)wanted))
		return;
	t->own.mem.iov[0] = (struct iovec){ t->own.mem.buf, (size_t)wanted };
	if (comes_in_parts(t, wanted, false)) {
		move_in_parts(t, false, wanted);
		return;
	}
	t->own.req.data = bufv_of(t->own.mem.iov, 1);
	dev_submit(t, BS_READ, 0, off, wanted, read_done);
}

static void flushed_then_read(struct dev_task *t, int result)
{
	if (result)
		dev_io_failed(t, result, t->lba << t->lu->block_shift);
	else
		read_blocks(t);
}

/* With FUA the returned blocks must be on the medium (SBC-3 §4.15): a
 * volatile write cache is flushed first. */
static bool needs_flush(const struct dev_task *t)
{
	return t->own.row->len > 6 && (dev_flags(t) & 0x08) &&
	       !dev_is_cd(t->lu) && dev_has_cache(t->lu) &&
	       !DEV_CTL(t->lu, write_through) && !dev_is_read_only(t->lu) &&
	       t->own.blocks;
}

void dev_read(struct dev_task *t)
{
	dev_count(t, COUNT_READS, t->own.blocks);
	if (needs_flush(t)) {
		t->own.mem.lent =
			false; /* other commands write during the flush */
		dev_submit(t, BS_FLUSH, 0, 0, 0, flushed_then_read);
	} else {
		read_blocks(t);
	}
}

/* ---- WRITE ---- */

int dev_prepare_write(struct dev_task *t, uint64_t *out_len)
{
	if (take_range(t))
		return 1;
	*out_len = t->own.blocks * dev_wire_block(t);
	return 0;
}

static void write_done(struct dev_task *t, int result)
{
	if (result)
		dev_io_failed(t, result, t->own.req.off);
	else
		dev_written(t, t->own.req.len);
}

/* Writes whole blocks only: ignores an incomplete last block. */
static void write_out(struct dev_task *t, unsigned flags)
{
	unsigned shift = t->lu->block_shift;
	uint64_t len = (uint64_t)t->out_len >> shift << shift;

	dev_count(t, COUNT_WRITES, len >> shift);
	if (dev_has_cache(t->lu) && !(flags & BS_FUA))
		dev_count(t, COUNT_CACHED, len >> shift);
	if (len == 0) {
		dev_good(t);
		return;
	}
	t->own.mem.iov[0].iov_len = (size_t)len;
	if (t->own.mem.peek)
		t->own.mem.iov[0].iov_base = (void *)(uintptr_t)t->own.mem.peek;
	t->own.mem.peek = NULL; /* used */
	if (comes_in_parts(t, len, flags & BS_FUA)) {
		move_in_parts(t, true, len);
		return;
	}
	t->own.req.data = bufv_of(t->own.mem.iov, 1);
	t->own.req.pi = t->own.mem.pi;
	dev_submit(t, BS_WRITE, flags, t->lba << shift, len, write_done);
}

void dev_write(struct dev_task *t)
{
	bool fua = t->own.row->len > 6 && (dev_flags(t) & 0x08);

	write_out(t, dev_fua(t->lu, fua));
}

/* WRITE AND VERIFY writes with FUA, and leaves the verification to the
 * medium, which checks its own blocks (SBC-3 §5.45). */
int dev_prepare_write_verify(struct dev_task *t, uint64_t *out_len)
{
	if ((dev_flags(t) & 0x06) == 0x04) /* BYTCHK 10b is reserved */
		return dev_bad_field(t, dev_flags_at(t), 2);
	return dev_prepare_write(t, out_len);
}

void dev_write_verify(struct dev_task *t)
{
	write_out(t, BS_FUA);
}

/* ---- SYNCHRONIZE CACHE ---- */

int dev_prepare_range(struct dev_task *t, uint64_t *out_len)
{
	(void)out_len;
	t->lba = scsi_cdb_lba(t->cdb);
	t->own.blocks = scsi_cdb_blocks(t->cdb);
	return dev_range(t, t->lba, t->own.blocks);
}

/* With exclusive access to the unit, the backstore can clear its marks of writes
 * in progress. The fence also excludes READ CAPACITY, which would add new blocks
 * of a grown backstore to the unit. */
static void at_rest(struct dev_range *r)
{
	struct dev_task *t = container_of(r, struct dev_task, own.range);

	if (t->own.abort.due)
		dev_good(t);
	else
		dev_flush(t, BS_ALONE);
}

/* regions of 16 MiB; recovery of so many takes a second or two */
#define UNSETTLED_MAX 64u

void dev_synchronize_cache(struct dev_task *t)
{
	const struct bs_protection *p = t->lu->bs->protection;

	if (dev_has_cache(t->lu))
		dev_count(t, COUNT_FLUSHES, 0);
	if (p &&
	    __atomic_load_n(&p->unsettled, __ATOMIC_RELAXED) > UNSETTLED_MAX &&
	    !dev_range_take(&t->own.range, t->lu, t->nexus->cfg.worker, 0,
			    DEV_WHOLE_UNIT, DEV_HOLD_ALONE, at_rest))
		return;
	/* a backstore flushes all blocks; IMMED is ignored: status follows
	 * the flush */
	dev_flush(t, 0);
}

/* ---- READ CAPACITY ---- */

static void report_10(struct dev_task *t)
{
	uint64_t last = t->lu->blocks ? t->lu->blocks - 1 : 0;
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	put_be32(p, (uint32_t)MIN(last, (uint64_t)UINT32_MAX));
	put_be32(p + 4, t->lu->block_size);
	dev_return(t, 8, 8);
}

static void report_16(struct dev_task *t)
{
	const struct dev_lu *lu = t->lu;
	uint32_t ratio = MAX(lu->bs->phys_block / lu->block_size, 1u);
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	put_be64(p, lu->blocks ? lu->blocks - 1 : 0);
	put_be32(p + 8, lu->block_size);
	if (DEV_PROTECTION(lu)) /* P_TYPE, PROT_EN; P_I_EXPONENT is 0 */
		p[12] = (uint8_t)((DEV_PROTECTION(lu) - 1) << 1 | 0x01);
	p[13] = (uint8_t)(31 - __builtin_clz(ratio)) & 0x0f;
	if (lu->bs->caps & BS_CAP_UNMAP)
		p[14] = 0xc0; /* LBPME, LBPRZ */
	dev_return(t, 32, get_be32(t->cdb + 10));
}

static void report(struct dev_task *t)
{
	if (t->own.row->len == 10)
		report_10(t);
	else
		report_16(t);
}

/* Commands that read a variable size exclude each other, because BS_SIZE may
 * also prepare new blocks for their first use (backstore.h). */
int dev_prepare_capacity(struct dev_task *t, uint64_t *out_len)
{
	(void)out_len;
	if (t->lu->bs->caps & BS_CAP_SIZE) {
		t->lba = DEV_STATE_LBA;
		t->own.blocks = 1;
	}
	return 0;
}

/* The size of the backstore may have changed: READ CAPACITY returns the new
 * size, and all other nexuses get a unit attention (SBC-3 §4.5). */
static void size_came(struct dev_task *t, int result)
{
	struct dev_lu *lu = t->lu;
	uint64_t now = t->own.req.size_now >> lu->block_shift;

	if (result ||
	    __atomic_exchange_n(&lu->blocks, now, __ATOMIC_RELAXED) == now)
		report(t);
	else
		dev_attention_others(t, UA_CAPACITY_CHANGED, report);
}

static void ask_size(struct dev_task *t)
{
	if (t->lu->bs->caps & BS_CAP_SIZE)
		dev_submit(t, BS_SIZE, 0, 0, 0, size_came);
	else
		report(t);
}

void dev_read_capacity_10(struct dev_task *t)
{
	/* SBC-3 §5.15.2: without PMI the LBA field shall be zero */
	if (!(t->cdb[8] & 0x01) && get_be32(t->cdb + 2))
		dev_bad_field(t, 2, -1);
	else
		ask_size(t);
}

void dev_read_capacity_16(struct dev_task *t)
{
	if (!(t->cdb[14] & 0x01) && get_be64(t->cdb + 2))
		dev_bad_field(t, 2, -1);
	else
		ask_size(t);
}
