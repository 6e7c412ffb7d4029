/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * caw.c: commands with exclusive access to their blocks (range.c): COMPARE AND
 * WRITE (SBC-3 §5.2), WRITE ATOMIC(16) (SBC-4 §5.48).
 */
#include <string.h>

#include "base/pi.h"
#include "device/block/block.h"
#include "device/block/protect.h"

/* ---- COMPARE AND WRITE ---- */

int dev_prepare_compare_and_write(struct dev_task *t, uint64_t *out_len)
{
	if (dev_protect_prepare(t))
		return 1;
	t->lba = get_be64(t->cdb + 2);
	t->own.blocks = t->cdb[13];
	if (2 * t->own.blocks > dev_most_blocks(t->lu))
		return dev_bad_field(t, 13, -1);
	*out_len = 2 * t->own.blocks * dev_wire_block(t);
	return dev_range(t, t->lba, t->own.blocks);
}

static void caw_written(struct dev_task *t, int result)
{
	if (result)
		dev_io_failed(t, result, t->own.req.off);
	else
		dev_good(t);
}

static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t i = 0;

	if (memcmp(a, b, len) == 0)
		return len;
	while (a[i] == b[i])
		i++;
	return i;
}

/* Returns the offset of the first block whose protection information differs
 * from the expected information, or len. */
static size_t first_other_pi(const struct dev_task *t, size_t len)
{
	size_t block = t->lu->block_size;

	for (size_t i = 0; t->own.protect.field && i < len / block; i++)
		if (dev_protect_differs(t, dev_chunk_pi(t) + i * 8,
					(uint8_t *)t->own.mem.pi + i * 8))
			return i * block;
	return len;
}

/* t->mem.aux now holds the blocks of the medium; data-out has the compare
 * data and then the write data. */
static void caw_read(struct dev_task *t, int result)
{
	size_t len = dev_chunk_len(t), at;

	if (result) {
		dev_io_failed(t, result, t->own.req.off);
		return;
	}
	if (t->own.protect.type &&
	    !dev_protect_check(t, t->own.mem.aux, dev_chunk_pi(t), 0,
			       t->own.blocks))
		return;
	at = first_difference(t->own.mem.aux, t->own.mem.buf, len);
	at = MIN(at, first_other_pi(t, len));
	if (at < len) {
		dev_sense(t, &(struct scsi_sense){
				     .key = SENSE_MISCOMPARE,
				     .asc = ASC_MISCOMPARE_DURING_VERIFY,
				     .has_info = true,
				     .info = at });
		return;
	}
	t->own.mem.iov[0] =
		(struct iovec){ (uint8_t *)t->own.mem.buf + len, len };
	t->own.req.data = bufv_of(t->own.mem.iov, 1);
	t->own.req.pi = t->own.mem.pi
				? (uint8_t *)t->own.mem.pi + t->own.blocks * 8
				: NULL;
	dev_submit(t, BS_WRITE, dev_fua(t->lu, t->cdb[1] & 0x08),
		   t->lba << t->lu->block_shift, len, caw_written);
}

void dev_compare_and_write(struct dev_task *t)
{
	size_t len = (size_t)t->own.blocks << t->lu->block_shift;

	/* NUMBER OF LOGICAL BLOCKS has one byte: if the initiator meant more
	 * than 255 blocks, only EDTL shows the truncation */
	if (t->edtl.out != 2 * t->own.blocks * dev_wire_block(t)) {
		dev_bad_field(t, 13, -1);
		return;
	}
	if (len == 0) {
		dev_good(t);
		return;
	}
	if (!dev_aux_blocks(t, len)) {
		dev_no_resources(t);
		return;
	}
	t->own.mem.iov[1] = (struct iovec){ t->own.mem.aux, len };
	t->own.req.data = bufv_of(&t->own.mem.iov[1], 1);
	t->own.req.pi = dev_chunk_pi(t);
	dev_submit(t, BS_READ, 0, t->lba << t->lu->block_shift, len, caw_read);
}

/* ---- WRITE ATOMIC ---- */

/*
 * WRITE ATOMIC writes all blocks or none, also after a power loss (SBC-4
 * §4.29). A backstore in memory does not survive the process, so no initiator
 * can see a part of a write. A persistent medium may write any part of a
 * request that is larger than one of its blocks: a unit with such a medium does
 * not have the command.
 */
uint32_t dev_atomic_max(const struct dev_lu *lu)
{
	if (lu->bs->caps & BS_CAP_WRITE_CACHE)
		return 0;
	return (uint32_t)MIN(dev_most_blocks(lu), (uint64_t)UINT16_MAX);
}

bool dev_has_atomic(const struct dev_lu *lu)
{
	return dev_atomic_max(lu) != 0;
}

int dev_prepare_write_atomic(struct dev_task *t, uint64_t *out_len)
{
	if (dev_protect_prepare(t))
		return 1;
	if (get_be16(t->cdb + 10)) /* MAXIMUM ATOMIC BOUNDARY SIZE is 0 */
		return dev_bad_field(t, 10, -1);
	t->lba = get_be64(t->cdb + 2);
	t->own.blocks = get_be16(t->cdb + 12);
	if (dev_range(t, t->lba, t->own.blocks))
		return 1;
	if (t->own.blocks > dev_atomic_max(t->lu))
		return dev_bad_field(t, 12, -1);
	*out_len = t->own.blocks * dev_wire_block(t);
	return 0;
}
