/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify.c: VERIFY (SBC-3 §5.31): BYTCHK 00b only reads the medium, 01b
 * compares the blocks with data-out, 11b compares every block with the one
 * block of data-out. Works in steps of at most DEV_CHUNK bytes.
 */
#include <string.h>

#include "device/block/block.h"
#include "device/block/protect.h"

enum bytchk {
	CHECK_MEDIUM = 0,
	CHECK_DATA = 1,
	CHECK_ONE_BLOCK = 3,
};

static unsigned bytchk(const struct dev_task *t)
{
	return (dev_flags(t) >> 1) & 3;
}

int dev_prepare_verify(struct dev_task *t, uint64_t *out_len)
{
	unsigned check = bytchk(t);

	if (dev_protect_prepare(t))
		return 1;
	if (check == 2)
		return dev_bad_field(t, dev_flags_at(t), 2);
	if (dev_prepare_range(t, out_len))
		return 1;
	if (check == CHECK_DATA && t->own.blocks > dev_most_blocks(t->lu))
		return dev_bad_field(t,
				     t->own.row->len == 32   ? 28
				     : t->own.row->len == 16 ? 10
							     : 7,
				     -1);
	if (check == CHECK_DATA)
		*out_len = t->own.blocks * dev_wire_block(t);
	else if (check == CHECK_ONE_BLOCK && t->own.blocks)
		*out_len = dev_wire_block(t);
	return 0;
}

/* Returns the offset of the first byte in which the chunk differs from
 * data-out, or len. */
static size_t differs(const struct dev_task *t, size_t len)
{
	const uint8_t *a = t->own.mem.aux, *b = t->own.mem.buf;
	bool one = bytchk(t) == CHECK_ONE_BLOCK;
	size_t base =
		(size_t)(t->own.steps.at - (t->lba << t->lu->block_shift));

	for (size_t i = 0; i < len; i++) {
		size_t at = one ? i % t->lu->block_size : base + i;

		if (a[i] != b[at])
			return i;
	}
	return len;
}

/* Returns the offset of the first block whose protection information on the
 * medium differs from that of data-out, or len. */
static size_t pi_differs(const struct dev_task *t, size_t len)
{
	unsigned shift = t->lu->block_shift;
	uint64_t first = (t->own.steps.at >> shift) - t->lba;
	const uint8_t *medium = dev_chunk_pi(t), *out = t->own.mem.pi;

	for (uint64_t i = 0; out && i < len >> shift; i++) {
		uint8_t want[8];

		if (bytchk(t) == CHECK_ONE_BLOCK)
			dev_protect_same(t, out, first + i, want);
		else
			memcpy(want, out + (first + i) * 8, 8);
		if (dev_protect_differs(t, medium + i * 8, want))
			return (size_t)(i << shift);
	}
	return len;
}

/* SBC-3 §5.31: INFORMATION holds the offset of the first difference. */
static void miscompare(struct dev_task *t, size_t at)
{
	uint64_t base = t->own.steps.at - (t->lba << t->lu->block_shift);

	dev_sense(t, &(struct scsi_sense){ .key = SENSE_MISCOMPARE,
					   .asc = ASC_MISCOMPARE_DURING_VERIFY,
					   .has_info = true,
					   .info = base + at });
}

static bool step(struct dev_task *t)
{
	if (t->own.steps.result) {
		dev_io_failed(t, t->own.steps.result, t->own.steps.at);
		return false;
	}
	if (t->own.count) { /* t->count bytes were read */
		uint64_t first =
			(t->own.steps.at >> t->lu->block_shift) - t->lba;
		size_t at = t->own.count;

		if (t->own.protect.type &&
		    !dev_protect_check(t, t->own.mem.aux, dev_chunk_pi(t),
				       first,
				       t->own.count >> t->lu->block_shift))
			return false;
		if (bytchk(t) != CHECK_MEDIUM)
			at = MIN(differs(t, t->own.count),
				 pi_differs(t, t->own.count));

		if (at < t->own.count) {
			miscompare(t, at);
			return false;
		}
		t->own.steps.at += t->own.count;
	}
	if (t->own.steps.at == t->own.steps.end) {
		dev_good(t);
		return false;
	}
	t->own.count = (uint32_t)MIN(t->own.steps.end - t->own.steps.at,
				     (uint64_t)dev_chunk_len(t));
	t->own.mem.iov[1] = (struct iovec){ t->own.mem.aux, t->own.count };
	t->own.req.data = bufv_of(&t->own.mem.iov[1], 1);
	t->own.req.pi = dev_chunk_pi(t);
	dev_step_io(t, BS_READ, 0, t->own.steps.at, t->own.count);
	return true;
}

void dev_verify(struct dev_task *t)
{
	unsigned shift = t->lu->block_shift;
	uint64_t blocks = t->own.blocks;

	if (bytchk(t) == CHECK_DATA)
		blocks = MIN(blocks, (uint64_t)t->out_len >> shift);
	else if (bytchk(t) == CHECK_ONE_BLOCK && t->out_len < t->lu->block_size)
		blocks = 0;
	t->own.steps.at = t->lba << shift;
	t->own.steps.end = (t->lba + blocks) << shift;
	if (t->own.steps.at == t->own.steps.end) {
		dev_good(t);
		return;
	}
	if (!dev_aux_chunk(t, t->own.steps.end - t->own.steps.at)) {
		dev_no_resources(t);
		return;
	}
	dev_steps(t, step);
}
