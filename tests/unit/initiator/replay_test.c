/* SPDX-License-Identifier: BSD-2-Clause */
/* replay_test.c: what the initiator sends over a stream and how its commands
 * end, for the corpus of its fuzz target with single bits inverted (flips.h). */
#include "datamover/tcp/dmtcp.h"
#include "initiator/initiator.h"
#include "unit/flips.h"

static struct stream_ops seen_ops;

/* The transcript has each command at its end. */
static void see_task(const struct ini_task *t)
{
	see_number((uint64_t)(int64_t)t->err);
	see_number(t->status);
	see_number(t->bidi.arrived);
	see_number(t->qualifier);
	see_number(t->underflow);
	see_number(t->overflow);
	see_number(t->resid);
	see_number(t->moved);
	see(t->sense, t->sense_len);
}

/* The contents of the write buffers are sent. */
#define malloc(n)	 calloc(1, n)
#define dmtcp_stream_ops seen_ops
#include "fuzz/initiator/initiator_fuzz.c"
#undef dmtcp_stream_ops
#undef malloc

static void see_tasks_then_close(void *core, int err, xtime now)
{
	flips_closed(core, err, now);
	see_number(fixture.submitted);
	see_number(fixture.ended);
	for (unsigned i = 0; i < TASKS && i < fixture.submitted; i++)
		see_task(&fixture.task[i]);
}

int main(int argc, char **argv)
{
	seen_ops = flips_stream(&dmtcp_stream_ops);
	seen_ops.closed = see_tasks_then_close;
	return flips_main(argc, argv, "initiator");
}
