/* SPDX-License-Identifier: BSD-2-Clause */
/* dmtcp_initiator_replay_test.c: what datamover/tcp sends at the initiator's end, for the
 * corpus of its fuzz target with single bits inverted (flips.h). */
#include "datamover/tcp/dmtcp.h"
#include "seen_role.h"

static struct stream_ops seen_ops;

#define dmtcp_stream_ops seen_ops
#include "fuzz/datamover/dmtcp_initiator_fuzz.c"
#undef dmtcp_stream_ops

int main(int argc, char **argv)
{
	seen_ops = flips_stream(&dmtcp_stream_ops);
	return flips_main(argc, argv, "dmtcp_initiator");
}
