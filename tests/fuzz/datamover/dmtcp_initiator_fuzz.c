/* SPDX-License-Identifier: BSD-2-Clause */
/* dmtcp_initiator_fuzz.c: any bytes at the initiator's end of datamover/tcp,
 * while reads and writes are in progress (their ITTs are 0xfffffff1 - 2^31 and
 * up) and an abort of one of them is pending. */
#include "fuzz/datamover/dmtcp_fuzz.h"

#define WRITE 5000

/* Read buffers have exactly the size of the data, so that the sanitizer sees
 * overruns; write buffers must not change. */
static void check_write(const struct fuzz_end *e, const uint8_t *written)
{
	if (memcmp(e->role.task[1].buf, written, WRITE))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t written[WRITE];
	struct fuzz_end e;

	if (size < 2 || !fuzz_begin(&e, ISCSI_INITIATOR, data[0]))
		return 0;
	fake_start(&e.role, false, 0, 3000, FAKE_STATUS_WITH_DATA);
	fake_start(&e.role, true, 0, WRITE, 0);
	memcpy(written, e.role.task[1].buf, WRITE);
	fake_start(&e.role, true, 0, 200, 0);
	fake_start(&e.role, false, 0, 0, FAKE_SENSE);
	fake_abort(&e.role, &e.role.task[1]);
	fuzz_fetch(&e);
	fuzz_pieces(&e, data + 2, size - 2, data[1]);
	check_write(&e, written);
	fuzz_end(&e);
	return 0;
}
