/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * protection_fuzz.c: any CDBs, also those of 32 bytes, with any data at a unit
 * with protection information. Input: a byte that selects the type; then,
 * repeated: 32 bytes of CDB, 2 of expected data-in, 2 of data-out, that much
 * data-out. The backstore checks that no request exceeds its size; a READ
 * without checks returns all written data, and VERIFY gives the same result as a
 * READ with checks.
 */
#include <stdint.h>

#include "rig_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ONE    36u
#define LENGTH 0x3fffu
#define WIRE   (RIG_BLOCK + 8)

static struct dev_rig rig;

static void inside(void *arg, const struct bs_req *req)
{
	(void)arg;
	if ((req->op == BS_READ || req->op == BS_WRITE || req->op == BS_ZERO ||
	     req->op == BS_UNMAP) &&
	    !range_ok(req->off, req->len, RIG_BLOCKS * RIG_BLOCK))
		abort();
	if ((req->op == BS_READ || req->op == BS_WRITE) &&
	    req->data.len != req->len)
		abort();
}

static size_t one(const uint8_t *p, size_t size)
{
	uint32_t in = get_be16(p + 32) & LENGTH, out = get_be16(p + 34);
	uint32_t len = (uint32_t)MIN((size_t)out & LENGTH, size - ONE);
	int status;

	if (rig_begin(&rig, p, 32, len, in))
		abort(); /* the fixture has buffers */
	status = rig_execute(&rig, p + ONE);
	if (status >= 0)
		rig_finish(&rig);
	check_our_end(&rig, status, in, len);
	return ONE + len;
}

/* Reads 64 blocks without checks, and compares the results of READ and VERIFY. */
static void look(void)
{
	uint8_t type = DEV_PROTECTION(dev_lu_get(rig.server, 0));
	const uint8_t field = type == 2 ? 0 : 0x60;
	const uint8_t raw[10] = { SCSI_READ_10, field, 0, 0, 0, 0, 0, 0, 64 };
	const uint8_t get[10] = { SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 64 };
	const uint8_t check[10] = { SCSI_VERIFY_10, 0, 0, 0, 0, 0, 0, 0, 64 };
	int status;

	for (int i = 0; i < 8; i++) /* consumes unit attentions */
		rig_test(&rig);
	if (type != 2 &&
	    rig_run(&rig, raw, 10, NULL, 0, 64 * WIRE) == SCSI_GOOD &&
	    rig.in_len != 64 * WIRE)
		abort();
	status = rig_run(&rig, get, 10, NULL, 0, 64 * RIG_BLOCK);
	if (rig_run(&rig, check, 10, NULL, 0, 0) != status)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t type = size ? (uint8_t)(data[0] % 3 + 1) : 1;
	struct bs *store;

	memset(&rig, 0, sizeof(rig));
	store = rig_protected(&rig, rig_ram(&rig), type);
	rig_open(&rig, bs_trace_new(store, inside, NULL), false);
	rig_test(&rig);
	if (size) {
		data++;
		size--;
	}
	each_command(data, size, ONE, one);
	look();
	rig_close(&rig);
	return 0;
}
