/* SPDX-License-Identifier: BSD-2-Clause */
/* rig_fuzz.h: the commands of a fuzzer's input, one after the other, and what
 * must be so at the end of each. */
#ifndef TESTS_FUZZ_DEVICE_RIG_FUZZ_H
#define TESTS_FUZZ_DEVICE_RIG_FUZZ_H

#include "device/table.h"
#include "unit/device/dev_rig.h"

/* One: a command of at least `head` bytes; returns how many it took. */
static inline void each_command(const uint8_t *data, size_t size, size_t head,
				size_t (*one)(const uint8_t *p, size_t size))
{
	while (size >= head) {
		size_t n = one(data, size);

		data += n;
		size -= n;
	}
}

/* In, out: the expected lengths. The stores leave nothing under way. */
static inline void check_end(const struct dev_rig *r, int status, uint32_t in,
			     uint32_t out)
{
	const struct dev_task *t = &r->task;

	if (status < 0)
		abort();
	if (r->in_len > in || t->out_len > out || t->sense_len > DEV_SENSE_MAX)
		abort();
	if ((status == SCSI_CHECK_CONDITION) != (t->sense_len != 0))
		abort();
}

/* The same where status and sense are our own, not a real device's. */
static inline void check_our_end(const struct dev_rig *r, int status,
				 uint32_t in, uint32_t out)
{
	const struct dev_task *t = &r->task;

	check_end(r, status, in, out);
	if (status == SCSI_CHECK_CONDITION && r->in_len)
		abort();
	/* a pointer into the CDB points into the CDB */
	if (r->sense.has_field && r->sense.in_cdb && t->row &&
	    r->sense.field >= t->row->len)
		abort();
}

#endif
