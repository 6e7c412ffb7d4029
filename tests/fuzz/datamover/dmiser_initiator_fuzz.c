/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmiser_initiator_fuzz.c: any sequence of messages, completions and accesses
 * to registered memory at the initiator's end of datamover/iser, while reads
 * and writes begin, end and are aborted. After the end of a command no STag is
 * valid for its memory.
 */
#include "fuzz/datamover/dmiser_fuzz.h"

enum own_step {
	START = FUZZ_OWN + 1, /* write?, len16, answer */
	ABORT,		      /* which */
	ACCESS,		      /* which STag, offset16, len8 */
	RESPOND,	      /* which task, which STag + 1, residual8 */
};

static struct fuzz_end e;

static bool leads_to(const struct sim_region *r, const struct fake_task *t)
{
	const uint8_t *at = r->valid ? r->memory.iov[0].iov_base : NULL;

	return at && t->buf && at >= t->buf && at < t->buf + t->buf_room;
}

static void command_over(void *arg, struct fake_task *t)
{
	(void)arg;
	for (unsigned i = 0; i < FAKE_REGIONS; i++)
		if (leads_to(&e.w.f.local[i], t))
			abort();
}

static void start_command(void)
{
	bool write = fuzz_u8(&e.w) & 1;
	uint32_t len = fuzz_u8(&e.w);

	len = len << 8 | fuzz_u8(&e.w);
	if (e.role.dm->state == DM_FULL_FEATURE)
		fake_start(&e.role, write, 0, len, FAKE_STATUS_WITH_DATA);
}

static void access_memory(void)
{
	uint32_t stag = fuzz_stag(&e.w, fuzz_u8(&e.w));
	uint64_t to = (uint64_t)fuzz_u8(&e.w) << 8;
	static uint8_t bytes[256];

	to |= fuzz_u8(&e.w);
	fake_rcap_peer_write(&e.w.f, stag, to, bytes, fuzz_u8(&e.w));
	fake_rcap_peer_read(&e.w.f, stag, to, bytes, 64);
}

static void send_response(void)
{
	struct fake_task *t = &e.role.task[fuzz_u8(&e.w) % FAKE_TASKS];
	unsigned which = fuzz_u8(&e.w);
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
			       .final = true,
			       .itt = t->dm.itt };
	uint8_t bytes[ISER_HEADER_LEN + ISCSI_BHS_LEN] = { 0x10 };

	p.rsp.resid_flags = which & 0x80 ? ISCSI_RESID_UNDERFLOW : 0;
	p.rsp.resid = (uint32_t)fuzz_u8(&e.w) * 97;
	which &= 0x7f;
	iscsi_bhs_encode(&p, bytes + ISER_HEADER_LEN);
	fake_rcap_deliver(&e.w.f, bytes, sizeof(bytes),
			  which ? fuzz_stag(&e.w, which - 1) : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || !fuzz_begin(&e, ISCSI_INITIATOR, data, size))
		return 0;
	e.role.done = command_over;
	while (fuzz_goes_on(&e.w)) {
		switch (fuzz_step(&e.w)) {
		case START:
			start_command();
			break;
		case ABORT:
			fake_abort(&e.role,
				   &e.role.task[fuzz_u8(&e.w) % FAKE_TASKS]);
			break;
		case ACCESS:
			access_memory();
			break;
		case RESPOND:
			send_response();
			break;
		default:
			break;
		}
	}
	fuzz_end(&e);
	return 0;
}
