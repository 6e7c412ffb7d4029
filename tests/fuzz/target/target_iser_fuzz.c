/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target_iser_fuzz.c: the target over datamover/iser on a fake queue pair, from
 * the first Login Request on: any sequence of messages and completions
 * (fabric_fuzz.h), and completions of the device at any time.
 */
#include "fuzz/datamover/fabric_fuzz.h"
#include "fuzz/target/bench.h"

enum own_step {
	RELEASE = FUZZ_OWN + 1, /* completes held I/O */
	WAIT,			/* advances the clock */
	DRAIN,			/* the target shuts down */
};

static struct fuzz_fabric w;
static struct bench b;

static void step(void)
{
	switch (fuzz_step(&w)) {
	case RELEASE:
		bench_release_io(&b);
		break;
	case WAIT:
		bench_wait(&b);
		break;
	case DRAIN:
		tgt_worker_drain(tgt_worker(b.tgt, 0), b.now);
		break;
	default:
		break;
	}
	bench_mail(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmiser_config cfg;
	struct dmiser_conn *c;

	if (size < 2)
		return 0;
	bench_open(&b);
	fuzz_fabric_init(&w, true, data[0] & 0x0f, data + 1, size - 1);
	w.cm = data[0] & 0xc0;
	dmiser_config_default(&cfg, ISCSI_TARGET);
	cfg.rules = data[0] & 0x10 ? DMISER_STRICT : DMISER_LINUX;
	c = dmiser_new(&cfg, &w.f.qp);
	must(c != NULL);
	bench_accept(&b, dmiser_dm(c));
	fuzz_up(&w);
	while (fuzz_goes_on(&w))
		step();
	fake_rcap_close(&w.f, 0, "the input is over");
	bench_close(&b);
	dmiser_free(c);
	return 0;
}
