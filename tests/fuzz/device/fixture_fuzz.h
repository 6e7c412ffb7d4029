/* SPDX-License-Identifier: BSD-2-Clause */
/* fixture_fuzz.h: executes the commands of a fuzzer's input, and checks the state
 * at the end of each. */
#ifndef TESTS_FUZZ_DEVICE_FIXTURE_FUZZ_H
#define TESTS_FUZZ_DEVICE_FIXTURE_FUZZ_H

#include "device/unit/command.h"
#include "unit/device/dev_fixture.h"

/* one executes a command of at least `head` bytes, and returns its length. */
static inline void each_command(const uint8_t *data, size_t size, size_t head,
				size_t (*one)(const uint8_t *p, size_t size))
{
	while (size >= head) {
		size_t n = one(data, size);

		data += n;
		size -= n;
	}
}

/* in, out: the expected lengths. The backstores complete all requests. */
static inline void check_end(const struct dev_fixture *r, int status,
			     uint32_t in, uint32_t out)
{
	const struct dev_task *t = &r->task;

	if (status < 0)
		abort();
	if (r->in_len > in || t->out_len > out || t->sense.len > DEV_SENSE_MAX)
		abort();
	if ((status == SCSI_CHECK_CONDITION) != (t->sense.len != 0))
		abort();
}

/* The same for status and sense data of the device server, not of a real
 * device. */
static inline void check_our_end(const struct dev_fixture *r, int status,
				 uint32_t in, uint32_t out)
{
	const struct dev_task *t = &r->task;

	check_end(r, status, in, out);
	if (status == SCSI_CHECK_CONDITION && r->in_len)
		abort();
	/* a field pointer into the CDB must lie in the CDB */
	if (r->sense.has_field && r->sense.in_cdb && t->own.row &&
	    r->sense.field >= t->own.row->len)
		abort();
}

#endif
