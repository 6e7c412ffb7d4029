/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device_fuzz.c: any CDBs with any parameter data from two initiators at a
 * small unit with all features: removable, thin, with persisted reservations,
 * target port groups, tokens and a clock; at a unit with 4096-byte blocks and at
 * a CD/DVD device. Input, repeated: 16 bytes of CDB, 2 of expected data-in, 2 of
 * data-out, that much data-out. The top bits of the two numbers and the last
 * bits of the CDB select the nexus, the unit, the task attribute, a reset, the
 * end of the nexus, CLEAR ACA, or another medium. The backstore checks that no
 * request exceeds its size; the fixture checks that every buffer is freed; the
 * state of the unit must stay consistent.
 */
#include <stdint.h>

#include "device/copy/copy.h"
#include "device/keep/keep.h"
#include "device/primary/mode.h"
#include "device/reserve/reserve.h"
#include "fixture_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LENGTH	0x1fffu
#define OTHER	0x8000u		/* of data-in: the other nexus */
#define ORDERED 0x4000u		/* or, with bit 0 of the CDB's last byte, ACA */
#define REFLECT 0x2000u		/* data-out has the data of the last command */
#define SECOND	0x8000u		/* of data-out: another unit */
#define RESET	0x4000u		/* a LOGICAL UNIT RESET before */
#define NEXUS	0x2000u		/* the nexus ends and begins again before */
#define CLEAR	(RESET | NEXUS) /* neither of them: CLEAR ACA before */
#define THE_CD	0x02u /* of the CDB's last byte: SECOND means the CD */
#define MEDIUM	0x04u /* RESET of the CD changes the medium */

static struct dev_fixture fixture;
static uint64_t ticks;

static void inside(void *arg, const struct bs_req *req)
{
	(void)arg;
	if ((req->op == BS_READ || req->op == BS_WRITE) &&
	    (req->data.len != req->len ||
	     !range_ok(req->off, req->len, FX_BLOCKS * FX_BLOCK)))
		abort();
	if ((req->op == BS_ZERO || req->op == BS_UNMAP) &&
	    !range_ok(req->off, req->len, FX_BLOCKS * FX_BLOCK))
		abort();
}

static uint64_t clock_ms(void *arg)
{
	(void)arg;
	return ticks += 1000;
}

static void counted(void *arg, uint8_t *p, size_t n)
{
	(void)arg;
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(++ticks * 167);
}

/* Checks that persisted state can be read again. Saving fails for a key that
 * ends in FFh. */
static void save(void *arg, struct dev_save *s)
{
	static struct dev_record record;
	struct dev_control modes;
	struct rsv_state *kept;

	(void)arg;
	s->result = 0;
	if (s->len && s->kind == DEV_KEPT_UNIT) {
		if (keep_decode(s->lu, s->data, s->len, &record) ||
		    dev_mode_from_record(s->lu, &record, &modes))
			abort();
	} else if (s->len) {
		if (rsv_decode(s->data, s->len, s->lu->bs->uuid, &kept))
			abort();
		for (unsigned i = 0; i < kept->n; i++)
			if ((kept->regs[i].key & 0xff) == 0xff)
				s->result = ERR_MEDIUM;
		rsv_free(kept);
	}
	s->done(s);
}

#define CD_LUN	  2u
#define CD_BLOCKS 64u

static struct bs *disc(void)
{
	void *memory = calloc(CD_BLOCKS, 2048);
	struct bs *b;

	if (!memory)
		abort();
	b = bs_ram_new("ram:cd", memory, CD_BLOCKS * 2048, 2048, free, memory);
	b->caps |= BS_CAP_READ_ONLY;
	return b;
}

static void exchanged(void *arg, int err)
{
	(void)arg;
	if (err)
		abort();
}

/* Changes the medium, with or without force. */
static void exchange(struct dev_lu *lu)
{
	struct bs *b = dev_lu_backstore(lu) ? NULL : disc();

	if (dev_lu_change_medium(lu, b, ticks++ & 1, exchanged, NULL) && b)
		bs_close(b);
}

static void set_up(struct dev_server *s)
{
	static const struct dev_group groups[] = {
		{ .id = 1, .nports = 1, .ports = { 1 } },
		{ .id = 2, .nports = 1, .ports = { 2 } },
	};
	static const struct dev_lu_config second = { .lun = 1, .keeps = true };
	static const struct dev_lu_config cd = { .lun = CD_LUN,
						 .type = DEV_CD,
						 .removable = true };
	uint16_t rtpi;
	void *memory = calloc(64, 4096);

	if (!memory ||
	    dev_lu_add(s, &second,
		       bs_ram_new("ram:2", memory, 64 * 4096, 4096, free,
				  memory)) ||
	    dev_lu_add(s, &cd, disc()))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		if (dev_group_add(s, &groups[i]))
			abort();
	if (dev_port_add(s, "iqn.t,t,0x0001", &rtpi) ||
	    dev_port_add(s, "iqn.t,t,0x0002", &rtpi))
		abort();
}

static void take_attentions(void)
{
	for (fixture.lun = 0; fixture.lun <= CD_LUN; fixture.lun++)
		fx_test(&fixture);
}

static void again(void)
{
	const struct dev_nexus_config n = { .initiator_port = "iqn.k,i,0x3",
					    .target_port = "iqn.t,t,0x0002",
					    .target_name = "iqn.t",
					    .relative_target_port = 2 };

	dev_nexus_close(fixture.nexus);
	fixture.nexus = dev_nexus_open(fixture.server, &n);
	take_attentions();
}

/* Copies a ROD token, or a unit's name from VPD page 83h, to its place in a
 * parameter list: the fuzzer could not guess these values. */
static void reflect(uint8_t *data, uint32_t len)
{
	if (fixture.in_len >= 38 + TOKEN_LEN && len >= 16 + TOKEN_LEN)
		memcpy(data + 16, fixture.in + 38, TOKEN_LEN);
	else if (fixture.in_len >= 16 && len >= 32)
		memcpy(data + 20, fixture.in + 4, 12);
}

static void cleared(void *arg, int err)
{
	(void)arg;
	if (err)
		abort();
}

static uint8_t attribute(const uint8_t *cdb, uint32_t in)
{
	if (!(in & ORDERED))
		return DEV_ATTR_SIMPLE;
	return cdb[15] & 1 ? DEV_ATTR_ACA : DEV_ATTR_ORDERED;
}

static size_t one(const uint8_t *p, size_t size)
{
	uint32_t in = get_be16(p + 16), out = get_be16(p + 18);
	uint32_t len = (uint32_t)MIN((size_t)out & LENGTH, size - 20);
	uint8_t *data = malloc(len + 1);
	int status;

	if (!data)
		return size;
	memcpy(data, p + 20, len);
	if (in & REFLECT)
		reflect(data, len);
	if ((out & CLEAR) == NEXUS)
		again();
	fixture.lun = !(out & SECOND) ? 0 : p[15] & THE_CD ? CD_LUN : 1;
	if ((out & CLEAR) == CLEAR)
		dev_nexus_clear_aca(fixture.nexus, fixture.lun << 48, cleared,
				    NULL);
	else if ((out & RESET) && fixture.lun == CD_LUN && (p[15] & MEDIUM))
		exchange(dev_lu_get(fixture.server, CD_LUN));
	else if (out & RESET)
		fx_reset(dev_lu_get(fixture.server, (uint16_t)fixture.lun));
	if (in & OTHER)
		fx_swap(&fixture);
	fixture.attr = attribute(p, in);
	if (fx_begin(&fixture, p, 16, len, in & LENGTH))
		abort(); /* the fixture has buffers */
	status = fx_execute(&fixture, data);
	if (status >= 0)
		fx_finish(&fixture);
	check_our_end(&fixture, status, in & LENGTH, len);
	free(data);
	return 20 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct dev_lu_config lu = { .removable = true,
						 .keeps = true };

	memset(&fixture, 0, sizeof(fixture));
	ticks = 0;
	fixture.lu = &lu;
	fixture.two_initiators = true;
	fixture.wall_ms = clock_ms;
	fixture.random = counted;
	fixture.save = save;
	fixture.set_up = set_up;
	fx_open(&fixture, bs_trace_new(fx_ram(&fixture), inside, NULL), false);
	for (int i = 0; i < 2; i++) { /* the power-on attentions */
		take_attentions();
		fx_swap(&fixture);
	}
	each_command(data, size, 20, one);
	fx_close(&fixture);
	return 0;
}
