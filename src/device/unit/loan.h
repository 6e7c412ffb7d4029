/* SPDX-License-Identifier: BSD-2-Clause */
/* loan.h: memory that the backstore lends to a READ. */
#ifndef DEVICE_LOAN_H
#define DEVICE_LOAN_H

#include "device/unit/unit.h"

/* dev_loan_may returns whether t may borrow the memory of its read data. */
bool dev_loan_may(const struct dev_task *t);
/* dev_loan_take borrows [off, off + len) as the data of t, mem.iov[0]; false: the
 * backstore does not lend it. */
bool dev_loan_take(struct dev_task *t, uint64_t off, size_t len);
/* dev_loan_end gives it back, if t has borrowed any. */
void dev_loan_end(struct dev_task *t);
/* dev_loans_change is called before a command of this worker changes [off, off + len)
 * of lu: data that may be sent again are copied (dev_task_fix). */
void dev_loans_change(struct dev_lu *lu, unsigned worker, uint64_t off,
		      uint64_t len);

#endif
