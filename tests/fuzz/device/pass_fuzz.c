/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass_fuzz.c: any CDB at a passthrough unit, with a device that answers
 * anything. Input: the device's type and version; then, repeated: 32 bytes of
 * CDB, 2 of expected data-in, 2 of data-out, how the device ends the command:
 * end, status, residual (2), length of sense; length of the rest (2), which is
 * data-out, sense and the device's answer together.
 */
#include <stdint.h>

#include "fixture_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD   43u
#define LENGTH 0x3fffu
#define OTHER  0x8000u /* of data-in: the other nexus */
#define LONG   0x4000u /* all 32 bytes of the CDB */
#define MOST   (32u << 10)

static struct dev_fixture fixture;
static struct {
	struct pass pass;
	const uint8_t *how, *rest;
	size_t len;
} device;

static void submit(struct pass *p, struct pass_req *r)
{
	size_t sense = MIN((size_t)device.how[4], device.len);

	if (r->len > p->max_transfer || r->cdb_len < 6 ||
	    r->cdb_len > PASS_CDB_MAX || (r->dir == PASS_NONE && r->len) ||
	    (r->len && !r->buf) || r->timeout == 0)
		abort();
	if (r->dir == PASS_IN) { /* the whole buffer must be writable */
		memset(r->buf, 0xee, r->len);
		memcpy(r->buf, device.rest, MIN(device.len, (size_t)r->len));
	}
	r->end = (enum pass_end)(device.how[0] % (PASS_NO_MEMORY + 1));
	r->status = device.how[1];
	r->resid = MIN((uint32_t)get_be16(device.how + 2), r->len);
	r->sense_len = (uint8_t)MIN(sense, (size_t)r->sense_max);
	memcpy(r->sense, device.rest, r->sense_len);
	r->done(r);
}

static bool withdraw(struct pass *p, struct pass_req *r)
{
	(void)p;
	(void)r;
	return false;
}

static void reset(struct pass *p, unsigned worker)
{
	(void)p;
	(void)worker;
}

static void done_with(struct pass *p)
{
	(void)p;
}

static const struct pass_ops ops = {
	.submit = submit,
	.withdraw = withdraw,
	.reset = reset,
	.close = done_with,
};

static void set_up(struct dev_server *s)
{
	const struct dev_lu_config lu = { .lun = 1 };
	const struct dev_group g = { .id = 9, .nports = 1, .ports = { 1 } };
	uint16_t rtpi;

	if (dev_lu_add_pass(s, &lu, &device.pass) || dev_group_add(s, &g) ||
	    dev_port_add(s, "iqn.t,t,0x0001", &rtpi))
		abort();
}

static size_t one(const uint8_t *p, size_t size)
{
	uint32_t in = get_be16(p + 32), out = get_be16(p + 34) & LENGTH;
	size_t len = MIN((size_t)get_be16(p + 41), size - HEAD);
	uint8_t *data = calloc(1, out + 1);
	int status;

	if (!data)
		return size;
	device.how = p + 36;
	device.rest = p + HEAD;
	device.len = len;
	memcpy(data, p + HEAD, MIN(len, (size_t)out));
	if (in & OTHER)
		fx_swap(&fixture);
	status = fx_run(&fixture, p, in & LONG ? 32 : 16, data, out,
			in & LENGTH);
	check_end(&fixture, status, in & LENGTH, out);
	if (fixture.in_len > fixture.task.total.in)
		abort();
	free(data);
	return HEAD + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	memset(&fixture, 0, sizeof(fixture));
	device.pass = (struct pass){ .ops = &ops,
				     .type = data[0] & 0x1f,
				     .version = data[1],
				     .block_size = 512,
				     .max_transfer = MOST,
				     .timeout = 60,
				     .name = "/dev/sg7" };
	fixture.two_initiators = true;
	fixture.set_up = set_up;
	fx_open(&fixture, fx_ram(&fixture), false);
	fixture.lun = 1;
	data += 2;
	size -= 2;
	each_command(data, size, HEAD, one);
	fx_close(&fixture);
	return 0;
}
