/* SPDX-License-Identifier: BSD-2-Clause */
/* device_replay_test.c: how the commands of the corpus of device_fuzz.c end,
 * with single bits inverted (flips.h). */
#include "seen_end.h"

#include "fuzz/device/device_fuzz.c"

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "device");
}
