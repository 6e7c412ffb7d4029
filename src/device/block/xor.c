/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xor.c: XDWRITEREAD(10) and (32) (SBC-3 §§5.54, 5.55), which have data in both
 * directions: the unit reads the blocks, writes data-out to them (unless DISABLE WRITE
 * is set), and returns the XOR of both. The command has exclusive access to the blocks,
 * so that the XOR is that of what was replaced.
 *
 * The command works in steps of a chunk. The XOR replaces data-out in its buffer when a
 * chunk is written, so that there is no second buffer of that length.
 */
#include "device/block/block.h"
#include "device/block/protect.h"

#define FLAG_DISABLE_WRITE 0x04
#define FLAG_FUA	   0x08

/* Units with protection information do not have the commands: XORPINFO is 0 always, so
 * the data would lack that information. libiscsi stores 16 bytes of CDB usage data
 * (see dev_has_generations), so other units have the long one only if they follow the
 * standard strictly. */
bool dev_has_xor(const struct dev_lu *lu)
{
	return !lu || !DEV_PROTECTION(lu);
}

bool dev_has_xor_32(const struct dev_lu *lu)
{
	return dev_has_xor(lu) && lu && lu->cfg.strict;
}

int dev_prepare_xdwriteread(struct dev_task *t, uint64_t *out_len)
{
	t->lba = scsi_cdb_lba(t->cdb);
	t->own.blocks = scsi_cdb_blocks(t->cdb);
	if (t->own.blocks > dev_most_blocks(t->lu))
		return dev_bad_field(t, t->own.row->len == 10 ? 7 : 28, -1);
	*out_len = t->own.blocks << t->lu->block_shift;
	return dev_range(t, t->lba, t->own.blocks);
}

static bool writes(const struct dev_task *t)
{
	return !(dev_flags(t) & FLAG_DISABLE_WRITE);
}

/* The place in data-out of the chunk in progress. */
static uint8_t *chunk_out(const struct dev_task *t)
{
	return (uint8_t *)t->own.mem.buf +
	       (t->own.steps.at - (t->lba << t->lu->block_shift));
}

static void chunk_io(struct dev_task *t, enum bs_op op, uint8_t *data,
		     unsigned flags)
{
	t->own.mem.iov[1] = (struct iovec){ data, t->own.count };
	t->own.req.data = bufv_of(&t->own.mem.iov[1], 1);
	t->own.req.pi = NULL;
	t->own.steps.wrote = op == BS_WRITE;
	dev_step_io(t, op, flags, t->own.steps.at, t->own.count);
}

static void read_chunk(struct dev_task *t)
{
	t->own.count = (uint32_t)MIN(t->own.steps.end - t->own.steps.at,
				     (uint64_t)dev_chunk_len(t));
	chunk_io(t, BS_READ, t->own.mem.aux, 0);
}

/* The chunk is written, or is not to be. */
static void end_chunk(struct dev_task *t)
{
	const uint8_t *old = t->own.mem.aux;
	uint8_t *to = chunk_out(t);

	for (uint32_t i = 0; i < t->own.count; i++)
		to[i] ^= old[i];
	t->own.steps.at += t->own.count;
	t->own.count = 0;
	t->own.steps.wrote = false;
}

static void end_well(struct dev_task *t)
{
	uint64_t len = t->own.blocks << t->lu->block_shift;

	t->total.in = len;
	t->own.mem.iov[0] =
		(struct iovec){ t->own.mem.buf,
				(size_t)MIN(len, (uint64_t)t->edtl.in) };
	t->in = bufv_of(t->own.mem.iov, 1);
	if (writes(t))
		dev_written(t, len);
	else
		dev_good(t);
}

static bool step(struct dev_task *t)
{
	if (t->own.steps.result) {
		dev_io_failed(t, t->own.steps.result, t->own.steps.at);
		return false;
	}
	if (t->own.count && !t->own.steps.wrote && writes(t)) {
		chunk_io(t, BS_WRITE, chunk_out(t),
			 dev_fua(t->lu, dev_flags(t) & FLAG_FUA));
		return true;
	}
	if (t->own.count)
		end_chunk(t);
	if (t->own.steps.at == t->own.steps.end) {
		end_well(t);
		return false;
	}
	read_chunk(t);
	return true;
}

void dev_xdwriteread(struct dev_task *t)
{
	unsigned shift = t->lu->block_shift;

	dev_count(t, COUNT_READS, t->own.blocks);
	if (writes(t))
		dev_count(t, COUNT_WRITES, t->own.blocks);
	if (t->own.blocks == 0) {
		dev_good(t);
		return;
	}
	t->own.steps.at = t->lba << shift;
	t->own.steps.end = (t->lba + t->own.blocks) << shift;
	t->own.steps.wrote = false;
	if (!dev_aux_chunk(t, t->own.steps.end - t->own.steps.at)) {
		dev_no_resources(t);
		return;
	}
	dev_steps(t, step);
}
