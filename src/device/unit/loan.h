/* SPDX-License-Identifier: BSD-2-Clause */
/* loan.h: memory that the backstore lends to a READ. */
#ifndef DEVICE_LOAN_H
#define DEVICE_LOAN_H

#include "device/unit/unit.h"

/* Each change of blocks looks at all loans of its worker that may be needed again.
 * Beyond this number a READ gets a buffer. */
#define DEV_LOANS_MAX 512u

static inline struct dev_lane *dev_loan_lane(const struct dev_task *t)
{
	return &t->lu->lanes[t->nexus->cfg.worker];
}

/* dev_loan_may returns whether t may borrow the memory of its read data: not from a
 * removable medium, since closing it frees memory that it has lent. */
static inline bool dev_loan_may(const struct dev_task *t)
{
	return !t->own.protect.type && t->lu->cfg.type != DEV_CD &&
	       !t->edtl.keeps &&
	       (!t->edtl.again || dev_loan_lane(t)->loans.n < DEV_LOANS_MAX);
}

/* dev_loan_take borrows [off, off + len) as the data of t, mem.iov[0]; false: the
 * backstore does not lend it. */
bool dev_loan_take(struct dev_task *t, uint64_t off, size_t len);
/* dev_loan_end gives it back, if t has borrowed any. */
static inline void dev_loan_end(struct dev_task *t)
{
	if (!t->own.mem.loan.is)
		return;
	t->own.mem.loan.is = false;
	list_del(&t->own.mem.loan.link);
	dev_loan_lane(t)->loans.n--;
}

/* dev_loans_change is called before a command of this worker changes [off, off + len)
 * of lu: data that may be sent again are copied (dev_task_fix). */
void dev_loans_change(struct dev_lu *lu, unsigned worker, uint64_t off,
		      uint64_t len);

#endif
