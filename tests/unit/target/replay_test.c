/* SPDX-License-Identifier: BSD-2-Clause */
/* replay_test.c: what the target sends over a stream, for the corpus of its
 * fuzz target with single bits inverted (flips.h). */
#include "datamover/tcp/dmtcp.h"
#include "unit/flips.h"

static struct stream_ops seen_ops;

#define dmtcp_stream_ops seen_ops
#include "fuzz/target/target_fuzz.c"
#undef dmtcp_stream_ops

int main(int argc, char **argv)
{
	seen_ops = flips_stream(&dmtcp_stream_ops);
	return flips_main(argc, argv, "target");
}
