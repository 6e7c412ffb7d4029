/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device_fuzz.c: any CDBs with any parameter data on a small unit of 512-byte
 * blocks and one of 4096. Input, as often as it lasts: 16 bytes of CDB, 2 of
 * expected data-in, 2 of data-out (its highest bit: the other unit), that much
 * data-out. The store checks that no request leaves it; the rig
 * that every buffer comes back.
 */
#include <stdint.h>

#include "unit/device/dev_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dev_rig rig;

static uint64_t clock_ms(void *arg)
{
	(void)arg;
	return 1000000;
}

static void no_chance(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	memset(p, 0x5a, n);
}

static void inside(void *arg, const struct bs_req *req)
{
	(void)arg;
	if ((req->op == BS_READ || req->op == BS_WRITE) &&
	    (req->data.len != req->len ||
	     !range_ok(req->off, req->len, RIG_BLOCKS * RIG_BLOCK)))
		abort();
}

static size_t one(const uint8_t *p, size_t size)
{
	uint32_t in = get_be16(p + 16), out = get_be16(p + 18);
	bool second = out & 0x8000;
	uint8_t *data = NULL;
	int status;

	out = (uint32_t)MIN((size_t)(out & 0x7fff), size - 20);
	if (out) {
		data = malloc(out);
		if (!data)
			return size;
		memcpy(data, p + 20, out);
	}
	rig.lun = second;
	status = rig_run(&rig, p, 16, data, out, in);
	if (status < 0)
		abort(); /* a ram store leaves nothing under way */
	if (rig.in_len > in || rig.task.sense_len > DEV_SENSE_MAX ||
	    (status == SCSI_CHECK_CONDITION && !rig.task.sense_len))
		abort();
	free(data);
	return 20 + out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct dev_lu_config removable = { .removable = true };
	static const struct dev_lu_config second = { .lun = 1 };
	void *memory = calloc(64, 4096);

	memset(&rig, 0, sizeof(rig));
	rig.wall_ms = clock_ms;
	rig.random = no_chance;
	rig.lu = &removable;
	rig_open(&rig, bs_trace_new(rig_ram(&rig), inside, NULL), false);
	if (!memory || dev_lu_add(rig.server, &second,
				  bs_ram_new("ram:2", memory, 64 * 4096, 4096,
					     free, memory)))
		abort();
	while (size >= 20) {
		size_t n = one(data, size);

		data += n;
		size -= n;
	}
	rig_close(&rig);
	return 0;
}
