/* SPDX-License-Identifier: BSD-2-Clause */
/* seen_rcap.h: the calls of a queue pair's user, for flips.h: the linker puts
 * these functions in front of those of rcap.c. */
#ifndef TESTS_UNIT_SEEN_RCAP_H
#define TESTS_UNIT_SEEN_RCAP_H

#include "rcap/rcap.h"
#include "sim/fake_rcap.h"
#include "unit/flips.h"

int __real_rcap_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);
int __wrap_rcap_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n);
int __real_rcap_reg(struct rcap_qp *qp, const struct bufv *memory,
		    uint64_t base, unsigned rights, struct rcap_mr *mr);
int __wrap_rcap_reg(struct rcap_qp *qp, const struct bufv *memory,
		    uint64_t base, unsigned rights, struct rcap_mr *mr);
void __real_rcap_invalidate(struct rcap_qp *qp, struct rcap_mr *mr);
void __wrap_rcap_invalidate(struct rcap_qp *qp, struct rcap_mr *mr);
void __real_rcap_disconnect(struct rcap_qp *qp);
void __wrap_rcap_disconnect(struct rcap_qp *qp);
void __real_rcap_disconnect_after(struct rcap_qp *qp, xtime grace);
void __wrap_rcap_disconnect_after(struct rcap_qp *qp, xtime grace);
void __real_rcap_terminate(struct rcap_qp *qp, int err, const char *why);
void __wrap_rcap_terminate(struct rcap_qp *qp, int err, const char *why);

static void see_wr(const struct rcap_wr *wr)
{
	static uint8_t bytes[1u << 20];

	see_number(wr->op);
	see_number(wr->flags);
	see_number(wr->stag);
	see_number(wr->to);
	see_number(wr->data.len);
	if (wr->op != RCAP_READ)
		see(bytes, fake_rcap_bytes(wr, bytes, sizeof(bytes)));
}

int __wrap_rcap_post(struct rcap_qp *qp, struct rcap_wr *const *wr, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		see_wr(wr[i]);
	return __real_rcap_post(qp, wr, n);
}

int __wrap_rcap_reg(struct rcap_qp *qp, const struct bufv *memory,
		    uint64_t base, unsigned rights, struct rcap_mr *mr)
{
	see_number(memory->len);
	see_number(rights);
	return __real_rcap_reg(qp, memory, base, rights, mr);
}

void __wrap_rcap_invalidate(struct rcap_qp *qp, struct rcap_mr *mr)
{
	see_number(mr->stag);
	__real_rcap_invalidate(qp, mr);
}

void __wrap_rcap_disconnect(struct rcap_qp *qp)
{
	see_number(1);
	__real_rcap_disconnect(qp);
}

void __wrap_rcap_disconnect_after(struct rcap_qp *qp, xtime grace)
{
	see_time((uint64_t)grace);
	__real_rcap_disconnect_after(qp, grace);
}

void __wrap_rcap_terminate(struct rcap_qp *qp, int err, const char *why)
{
	see_number((uint64_t)(int64_t)err);
	__real_rcap_terminate(qp, err, why);
}

#endif
