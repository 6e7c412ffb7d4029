/* SPDX-License-Identifier: BSD-2-Clause */
/* replay_test.c: what an iWARP queue pair sends, for the corpus of its fuzz
 * target with single bits inverted (flips.h). */
#include "rcap/iwarp/iwarp.h"
#include "unit/flips.h"

static struct stream_ops seen_ops;

#define iwarp_stream_ops seen_ops
#include "fuzz/rcap/iwarp_qp_fuzz.c"
#undef iwarp_stream_ops

int main(int argc, char **argv)
{
	seen_ops = flips_stream(&iwarp_stream_ops);
	return flips_main(argc, argv, "iwarp_qp");
}
