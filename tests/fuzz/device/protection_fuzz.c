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

#include "fixture_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ONE    36u
#define LENGTH 0x3fffu
#define WIRE   (FX_BLOCK + 8)

static struct dev_fixture fixture;

static void inside(void *arg, const struct bs_req *req)
{
	(void)arg;
	if ((req->op == BS_READ || req->op == BS_WRITE || req->op == BS_ZERO ||
	     req->op == BS_UNMAP) &&
	    !range_ok(req->off, req->len, FX_BLOCKS * FX_BLOCK))
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

	if (fx_begin(&fixture, p, 32, len, in))
		abort(); /* the fixture has buffers */
	status = fx_execute(&fixture, p + ONE);
	if (status >= 0)
		fx_finish(&fixture);
	check_our_end(&fixture, status, in, len);
	return ONE + len;
}

/* Reads 64 blocks without checks, and compares the results of READ and VERIFY. */
static void look(void)
{
	uint8_t type = DEV_PROTECTION(dev_lu_get(fixture.server, 0));
	const uint8_t field = type == 2 ? 0 : 0x60;
	const uint8_t raw[10] = { SCSI_READ_10, field, 0, 0, 0, 0, 0, 0, 64 };
	const uint8_t get[10] = { SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 64 };
	const uint8_t check[10] = { SCSI_VERIFY_10, 0, 0, 0, 0, 0, 0, 0, 64 };
	int status;

	for (int i = 0; i < 8; i++) /* consumes unit attentions */
		fx_test(&fixture);
	if (type != 2 &&
	    fx_run(&fixture, raw, 10, NULL, 0, 64 * WIRE) == SCSI_GOOD &&
	    fixture.in_len != 64 * WIRE)
		abort();
	status = fx_run(&fixture, get, 10, NULL, 0, 64 * FX_BLOCK);
	if (fx_run(&fixture, check, 10, NULL, 0, 0) != status)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t type = size ? (uint8_t)(data[0] % 3 + 1) : 1;
	struct bs *store;

	memset(&fixture, 0, sizeof(fixture));
	store = fx_protected(&fixture, fx_ram(&fixture), type);
	fx_open(&fixture, bs_trace_new(store, inside, NULL), false);
	fx_test(&fixture);
	if (size) {
		data++;
		size--;
	}
	each_command(data, size, ONE, one);
	look();
	fx_close(&fixture);
	return 0;
}
