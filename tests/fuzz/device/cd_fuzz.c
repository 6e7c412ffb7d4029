/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cd_fuzz.c: any CDBs with any parameter data from two initiators at a CD/DVD
 * drive whose medium changes. Input, repeated: 16 bytes of CDB, 2 of expected
 * data-in, 2 of data-out, that much data-out. The top bits of data-in select the
 * nexus and a medium to insert before the command; those of data-out select a
 * reset and whether a locked drive is forced. The backstore checks that no
 * request exceeds the medium or writes to it; READ must return the contents of
 * the medium.
 */
#include <stdint.h>

#include "device/cd/cd.h"
#include "fixture_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LENGTH	   0x0fffu
#define OTHER	   0x8000u /* of data-in: the other nexus */
#define CHANGE	   0x4000u /* the two bits below say which medium */
#define MEDIUM(in) ((in) >> 12 & 3)
#define RESET	   0x8000u /* of data-out */
#define FORCE	   0x4000u

/* A size for every profile; 0 ejects the medium. */
static const uint64_t sizes[] = { 0, 64, 2000000, DVD_MAX_BLOCKS + 1 };
#define FILL 0x5c /* of the small medium; the larger ones are zeros */

static struct dev_fixture fixture;
static uint64_t blocks; /* of the current medium */

static void inside(void *arg, const struct bs_req *req)
{
	const uint64_t *size = arg;

	if (req->op == BS_FLUSH)
		return;
	if (req->op != BS_READ || req->data.len != req->len ||
	    !range_ok(req->off, req->len, *size * CD_BLOCK))
		abort();
}

static struct bs *medium(unsigned which)
{
	uint64_t bytes = sizes[which] * CD_BLOCK;
	struct bs *b;

	if (!bytes)
		return NULL;
	if (sizes[which] == 64) {
		uint8_t *p = malloc(bytes);

		if (!p)
			abort();
		memset(p, FILL, bytes);
		b = bs_ram_new("ram:cd", p, bytes, CD_BLOCK, free, p);
	} else {
		b = bs_null_new("null:", bytes, CD_BLOCK);
	}
	b->caps |= BS_CAP_READ_ONLY;
	b = bs_trace_new(b, inside, (void *)(uintptr_t)&sizes[which]);
	b->caps |= BS_CAP_READ_ONLY;
	return b;
}

static void changed(void *arg, int err)
{
	if (err)
		abort(); /* no command is in progress that it could wait for */
	*(bool *)arg = true;
}

static void change(unsigned which, bool force)
{
	struct dev_lu *lu = dev_lu_get(fixture.server, 0);
	struct bs *b = medium(which);
	bool done = false;

	if (!dev_lu_change_medium(lu, b, force, changed, &done)) {
		if (!done)
			abort();
		blocks = sizes[which];
	} else {
		if (force || !dev_is_locked(lu))
			abort();
		if (b)
			bs_close(b);
	}
}

/* Checks that READ returned the contents of the medium. */
static void check_read(const uint8_t *cdb, int status)
{
	if (status || (cdb[0] != SCSI_READ_10 && cdb[0] != SCSI_READ_12))
		return;
	for (uint32_t i = 0; i < fixture.in_len; i++)
		if (fixture.in[i] != (blocks == 64 ? FILL : 0))
			abort();
}

static size_t one(const uint8_t *p, size_t size)
{
	uint32_t in = get_be16(p + 16), out = get_be16(p + 18);
	uint32_t len = (uint32_t)MIN((size_t)out & LENGTH, size - 20);
	int status;

	if (in & CHANGE)
		change(MEDIUM(in), out & FORCE);
	if (out & RESET)
		fx_reset(dev_lu_get(fixture.server, 0));
	if (in & OTHER)
		fx_swap(&fixture);
	if (fx_begin(&fixture, p, 16, len, in & LENGTH))
		abort(); /* the fixture has buffers */
	status = fx_execute(&fixture, p + 20);
	if (status >= 0)
		fx_finish(&fixture);
	check_our_end(&fixture, status, in & LENGTH, len);
	check_read(p, status);
	return 20 + len;
}

/* After all commands, another medium can be inserted and read. */
static void look(void)
{
	static const uint8_t last[10] = { SCSI_READ_10, 0, 0, 0, 0,
					  63,		0, 0, 1, 0 };

	change(1, true);
	fx_reset(dev_lu_get(fixture.server, 0)); /* clears an ACA */
	for (int i = 0; i < 8; i++)		 /* consumes unit attentions */
		fx_test(&fixture);
	if (fx_run(&fixture, last, 10, NULL, 0, CD_BLOCK) != SCSI_GOOD ||
	    fixture.in_len != CD_BLOCK || fixture.in[CD_BLOCK - 1] != FILL)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct dev_lu_config lu = { .type = DEV_CD,
						 .removable = true };

	memset(&fixture, 0, sizeof(fixture));
	fixture.lu = &lu;
	fixture.two_initiators = true;
	blocks = sizes[1];
	fx_open(&fixture, medium(1), true);
	fx_take_attentions(&fixture);
	each_command(data, size, 20, one);
	look();
	fx_close(&fixture);
	return 0;
}
