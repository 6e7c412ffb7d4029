/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_replay_test.c: what the initiator over iSER asks of its queue pair, for
 * the corpus of its fuzz target with single bits inverted (flips.h). */
#include "unit/seen_rcap.h"

/* What the buffers of its writes hold is sent. */
#define malloc(n) calloc(1, n)
#include "fuzz/initiator/initiator_iser_fuzz.c"
#undef malloc

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "initiator_iser");
}
