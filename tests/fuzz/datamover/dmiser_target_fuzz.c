/* SPDX-License-Identifier: BSD-2-Clause */
/* dmiser_target_fuzz.c: any sequence of messages and completions at the
 * target's end of datamover/iser. */
#include "fuzz/datamover/dmiser_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_end e;

	if (size < 2 || !fuzz_begin(&e, ISCSI_TARGET, data, size))
		return 0;
	while (fuzz_goes_on(&e.w))
		fuzz_step(&e.w);
	fuzz_end(&e);
	return 0;
}
