/* SPDX-License-Identifier: BSD-2-Clause */
/* dmtcp_target_fuzz.c: any bytes at the target's end of datamover/tcp. */
#include "fuzz/datamover/dmtcp_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_end e;

	if (size < 2 || !fuzz_begin(&e, ISCSI_TARGET, data[0]))
		return 0;
	fuzz_pieces(&e, data + 2, size - 2, data[1]);
	fuzz_end(&e);
	return 0;
}
