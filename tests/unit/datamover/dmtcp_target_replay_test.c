/* SPDX-License-Identifier: BSD-2-Clause */
/* dmtcp_target_replay_test.c: what datamover/tcp sends at the target's end, for the
 * corpus of its fuzz target with single bits inverted (flips.h). */
#include "datamover/tcp/dmtcp.h"
#include "seen_role.h"

static struct stream_ops seen_ops;

#define dmtcp_stream_ops seen_ops
#include "fuzz/datamover/dmtcp_target_fuzz.c"
#undef dmtcp_stream_ops

int main(int argc, char **argv)
{
	seen_ops = flips_stream(&dmtcp_stream_ops);
	return flips_main(argc, argv, "dmtcp_target");
}
