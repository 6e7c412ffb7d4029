/* SPDX-License-Identifier: BSD-2-Clause */
/* pass_replay_test.c: how the commands of the corpus of pass_fuzz.c end, with
 * single bits inverted (flips.h). */
#include "seen_end.h"

#include "fuzz/device/pass_fuzz.c"

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "pass");
}
