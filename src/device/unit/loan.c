/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loan.c: memory that the backstore lends to a READ. Other commands write to it while
 * the data are being sent; SCSI permits that.
 *
 * Data that may be sent again (dev_task.edtl.again) have to be the same then. They are
 * copied only where a copy is needed:
 *   - before a command of the same worker changes the blocks, or others that have the
 *     same stamp (bs_stamp_sees);
 *   - when the data are to be sent again, or their connection is lost (dev_task_fix).
 * Changes by other workers are seen by the stamp of the backstore (bs_stamp): then there
 * are no data to send again, and dev_task_fix returns false. The copy is charged to the
 * session (share.h), which may have no room; then it is the same.
 */
#include <string.h>

#include "device/unit/loan.h"
#include "device/unit/memory.h"

bool dev_loan_take(struct dev_task *t, uint64_t off, size_t len)
{
	struct dev_lane *lane = dev_loan_lane(t);

	if (t->edtl.again)
		t->own.mem.loan.stamp = bs_stamp(t->lu->bs, off, len);
	if (bs_lend(t->lu->bs, off, len, &t->own.mem.iov[0]))
		return false;
	if (!t->edtl.again)
		return true;
	t->own.mem.loan.is = true;
	t->own.mem.loan.off = off;
	t->own.mem.loan.len = len;
	list_push_back(&lane->loans.list, &t->own.mem.loan.link);
	lane->loans.n++;
	return true;
}

bool dev_task_fix(struct dev_task *t)
{
	struct iovec *v = &t->own.mem.iov[0];
	void *buf;

	if (!t->own.mem.loan.is)
		return true;
	buf = dev_memory_get_late(t, v->iov_len);
	if (!buf)
		return false;
	memcpy(buf, v->iov_base, v->iov_len);
	if (bs_stamp(t->lu->bs, t->own.mem.loan.off, t->own.mem.loan.len) !=
	    t->own.mem.loan.stamp) {
		dev_memory_put_late(t, buf, v->iov_len);
		return false;
	}
	t->own.mem.buf = v->iov_base = buf;
	t->own.mem.buf_len = v->iov_len;
	dev_loan_end(t);
	return true;
}

void dev_loans_change(struct dev_lu *lu, unsigned worker, uint64_t off,
		      uint64_t len)
{
	struct list *loans = &lu->lanes[worker].loans.list;

	list_for_each_safe(it, loans) {
		struct dev_task *t =
			list_entry(it, struct dev_task, own.mem.loan.link);

		if (bs_stamp_sees(lu->bs, t->own.mem.loan.off,
				  t->own.mem.loan.len, off, len))
			(void)dev_task_fix(t);
	}
}
