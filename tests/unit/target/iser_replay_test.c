/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_replay_test.c: what the target over iSER asks of its queue pair, for the
 * corpus of its fuzz target with single bits inverted (flips.h). */
#include "unit/seen_rcap.h"

#include "fuzz/target/target_iser_fuzz.c"

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "target_iser");
}
