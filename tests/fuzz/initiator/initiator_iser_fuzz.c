/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * initiator_iser_fuzz.c: the initiator over datamover/iser on a fake queue
 * pair: any sequence of messages and completions, accesses to its registered
 * memory, and jumps of the clock.
 */
#include "fuzz/datamover/fabric_fuzz.h"
#include "fuzz/initiator/initiator_fixture.h"

enum own_step {
	ACCESS = FUZZ_OWN + 1, /* which STag, offset16, len8 */
	WAIT,		       /* seconds8 */
	LOGOUT,
};

static struct fuzz_fabric w;
static xtime now;

static void access_memory(void)
{
	uint32_t stag = fuzz_stag(&w, fuzz_u8(&w));
	uint64_t to = (uint64_t)fuzz_u8(&w) << 8;
	static uint8_t bytes[256];

	to |= fuzz_u8(&w);
	fake_rcap_peer_write(&w.f, stag, to, bytes, fuzz_u8(&w));
	fake_rcap_peer_read(&w.f, stag, to, bytes, 64);
}

static void execute_step(void)
{
	switch (fuzz_step(&w)) {
	case ACCESS:
		access_memory();
		break;
	case WAIT:
		now += fuzz_u8(&w) * XTIME_S;
		ini_expire(fixture.s, now);
		break;
	case LOGOUT:
		ini_logout(fixture.s, now);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dmiser_config cfg;
	struct dmiser_conn *c;

	if (size < 2)
		return 0;
	now = 0;
	fuzz_fabric_init(&w, false, data[0] & 0x0f, data + 1, size - 1);
	dmiser_config_default(&cfg, ISCSI_INITIATOR);
	cfg.rules = data[0] & 0x10 ? DMISER_STRICT : DMISER_LINUX;
	c = dmiser_new(&cfg, &w.f.qp);
	if (!c)
		abort();
	fuzz_up(&w);
	fixture_open(dmiser_dm(c), true);
	while (fuzz_goes_on(&w))
		execute_step();
	fake_rcap_close(&w.f, 0, "the input is over");
	fixture_close();
	dmiser_free(c);
	return 0;
}
