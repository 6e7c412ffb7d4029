/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target_iser_fuzz.c: the target over datamover/iser on a fake queue pair, from
 * the first Login Request on: any sequence of messages and completions
 * (fabric_fuzz.h), and completions of the device at any time.
 */
#include "fuzz/datamover/fabric_fuzz.h"
#include "fuzz/target/target_fixture.h"

enum own_step {
	RELEASE = FUZZ_OWN + 1, /* completes held I/O */
	WAIT,			/* advances the clock */
	DRAIN,			/* the target shuts down */
};

static struct fuzz_fabric w;
static struct target_fixture fixture;

static void execute_step(void)
{
	switch (fuzz_step(&w)) {
	case RELEASE:
		fixture_release_io(&fixture);
		break;
	case WAIT:
		fixture_wait(&fixture);
		break;
	case DRAIN:
		tgt_worker_drain(tgt_worker(fixture.tgt, 0), fixture.now);
		break;
	default:
		break;
	}
	fixture_deliver_messages(&fixture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmiser_config cfg;
	struct dmiser_conn *c;

	if (size < 2)
		return 0;
	fixture_open(&fixture);
	fuzz_fabric_init(&w, true, data[0] & 0x0f, data + 1, size - 1);
	w.cm = data[0] & 0xc0;
	dmiser_config_default(&cfg, ISCSI_TARGET);
	cfg.rules = data[0] & 0x10 ? DMISER_STRICT : DMISER_LINUX;
	c = dmiser_new(&cfg, &w.f.qp);
	require(c != NULL);
	fixture_accept(&fixture, dmiser_dm(c));
	fuzz_up(&w);
	while (fuzz_goes_on(&w))
		execute_step();
	fake_rcap_close(&w.f, 0, "the input is over");
	fixture_close(&fixture);
	dmiser_free(c);
	return 0;
}
