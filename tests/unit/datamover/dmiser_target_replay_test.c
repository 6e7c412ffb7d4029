/* SPDX-License-Identifier: BSD-2-Clause */
/* dmiser_target_replay_test.c: what datamover/iser asks of its queue pair at the
 * end of the target, for the corpus of its fuzz target with single bits inverted
 * (flips.h). */
#include "seen_role.h"
#include "unit/seen_rcap.h"

#include "fuzz/datamover/dmiser_target_fuzz.c"

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "dmiser_target");
}
