/* SPDX-License-Identifier: BSD-2-Clause */
/* dmtcp_initiator_fuzz.c: any bytes at the initiator's end of datamover/tcp,
 * while reads and writes are under way (their ITTs are 0xfffffff1 - 2^31 and
 * up), one of them being aborted. */
#include "fuzz/datamover/dmtcp_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_end e;

	if (size < 2 || !fuzz_begin(&e, ISCSI_INITIATOR, data[0]))
		return 0;
	fake_start(&e.role, false, 0, 3000, FAKE_STATUS_WITH_DATA);
	fake_start(&e.role, true, 0, 5000, 0);
	fake_start(&e.role, true, 0, 200, 0);
	fake_start(&e.role, false, 0, 0, FAKE_SENSE);
	fake_abort(&e.role, &e.role.task[1]);
	fuzz_fetch(&e);
	fuzz_pieces(&e, data + 2, size - 2, data[1]);
	fuzz_end(&e);
	return 0;
}
