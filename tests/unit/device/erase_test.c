/* SPDX-License-Identifier: BSD-2-Clause */
/* erase_test.c: SANITIZE, FORMAT UNIT and the condition of the unit meanwhile;
 * ejecting a medium. Messages to the loop wait until the test runs them. */
#include "crypt_fixture.h"
#include "dev_messages.h"
#include "device/keep/keep.h"

static unsigned asked_ms;

static void later(void *arg, unsigned worker, unsigned ms, struct dev_msg *m)
{
	asked_ms = ms;
	hold_post(arg, worker, m);
}

static struct bs *fault;
static struct dev_lu_config unit;

static int open_with(struct bs *store)
{
	uint8_t *medium = R->medium;

	memset(R, 0, sizeof(*R));
	R->medium = medium;
	nmessages = 0;
	R->post = hold_post;
	R->later = later;
	R->lu = &unit;
	fx_open(R, store, false);
	fx_take_attentions(R);
	return 0;
}

static int open_erase(void **state)
{
	(void)state;
	unit = (struct dev_lu_config){ .removable = true };
	memset(R, 0, sizeof(*R));
	return open_with(fx_ram(R));
}

static int close_erase(void **state)
{
	run_out();
	assert_false(dev_server_is_busy(R->server));
	return close_fixture(state);
}

static uint8_t list[4 + FX_BLOCK];

static int overwrite(uint8_t flags, uint8_t count, uint16_t len)
{
	uint8_t cdb[16] = { 0x48, (uint8_t)(flags | 0x01) };

	list[0] = count;
	list[1] = 0;
	put_be16(list + 2, len);
	put_be16(cdb + 7, (uint16_t)(4 + len));
	return fx_run(R, cdb, 16, list, 4u + len, 0);
}

static void assert_all(uint8_t a, uint8_t b)
{
	for (size_t i = 0; i < FX_BLOCKS * FX_BLOCK; i++)
		assert_int_equal(R->medium[i], i % 2 ? b : a);
}

#define IMMED 0x80

static void test_overwrite_with_a_pattern_sbc3_5_24_3(void **state)
{
	(void)state;
	list[4] = 0x12;
	list[5] = 0x34;
	assert_int_equal(overwrite(IMMED, 1, 2), SCSI_GOOD);
	run_out();
	assert_all(0x12, 0x34);
	/* Every other pass inverts the pattern; the last pass writes the
	 * pattern itself. */
	list[4] = 0x55;
	assert_int_equal(overwrite(IMMED, 0x80 | 2, 1), SCSI_GOOD);
	while (R->medium[0] == 0x12)
		assert_true(turn());
	assert_int_equal(R->medium[0], 0xaa);
	run_out();
	assert_all(0x55, 0x55);
}

static void test_overwrite_bad_lists(void **state)
{
	(void)state;
	overwrite(0, 0, 4);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	overwrite(0, 0x21, 4); /* TEST */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	overwrite(0, 1, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(8, 0, list, 0x48, 0x01, 0, 0, 0, 0, 0, 2, 5);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 7);
	/* a pattern longer than the list */
	list[0] = 1;
	put_be16(list + 2, 5);
	CMD(8, 0, list, 0x48, 0x01, 0, 0, 0, 0, 0, 0, 8);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 2);
	CMD(8, 0, list, 0x48, 0x02, 0, 0, 0, 0, 0, 0, 8);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* SBC-3 §4.11.3: the unit serves INQUIRY, REQUEST SENSE, REPORT LUNS and a few
 * other commands, and refuses all others. */
static void test_what_is_served_meanwhile_sbc3_4_11(void **state)
{
	(void)state;
	assert_int_equal(overwrite(IMMED, 3, 1), SCSI_GOOD);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS);
	assert_true(R->sense.has_progress);
	assert_int_equal(R->sense.progress, 0);
	while (__atomic_load_n(&dev_lu_get(R->server, 0)->erasure.progress,
			       __ATOMIC_RELAXED) < 65535 / 3)
		assert_true(turn());
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS);
	assert_int_equal(R->sense.progress, 65535 / 3);
	CMD(0, 0, NULL, 0x1b, 0, 0, 0, 3);
	assert_check(SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS);
	CMD(0, 0, NULL, 0x48, 0x02);
	assert_check(SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS);
	assert_int_equal(CMD(0, 96, NULL, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(CMD(0, 18, NULL, 0x03, 0, 0, 0, 18), SCSI_GOOD);
	assert_int_equal(R->in[2], SENSE_NOT_READY);
	assert_int_equal(get_be16(R->in + 12), ASC_SANITIZE_IN_PROGRESS);
	assert_int_equal(R->in[15], 0x80);
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	run_out();
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* Without IMMED the command ends with the operation. An abort ends the command,
 * and the operation continues (SBC-3 §4.11.2). */
static void test_abort_leaves_the_operation(void **state)
{
	const uint8_t cdb[16] = { 0x48, 0x02 };

	(void)state;
	memset(R->medium, 0xaa, FX_BLOCKS * FX_BLOCK);
	fx_begin(R, cdb, 16, 0, 0);
	assert_int_equal(fx_execute(R, NULL), -1);
	run_out();
	assert_true(R->done);
	assert_int_equal(fx_finish(R), SCSI_GOOD);
	assert_all(0, 0);
	memset(R->medium, 0xaa, FX_BLOCKS * FX_BLOCK);
	fx_begin(R, cdb, 16, 0, 0);
	assert_int_equal(fx_execute(R, NULL), -1);
	assert_int_equal(dev_task_abort(&R->task, fx_released), 0);
	assert_true(R->released);
	dev_task_end(&R->task);
	assert_int_equal(R->medium[0], 0xaa);
	run_out();
	assert_false(R->done);
	assert_all(0, 0);
}

static void test_rate_is_asked_for_by_time(void **state)
{
	close_erase(state);
	memset(R, 0, sizeof(*R));
	unit.erase_rate = 1u << 20;
	open_with(fx_ram(R));
	assert_int_equal(overwrite(IMMED, 1, 1), SCSI_GOOD);
	run_out();
	assert_int_equal(asked_ms, 250); /* a chunk of 256 KiB */
}

static void test_stopping_the_server_ends_it(void **state)
{
	(void)state;
	assert_int_equal(overwrite(IMMED, 31, 1), SCSI_GOOD);
	turn();
	assert_true(dev_server_is_busy(R->server));
	dev_server_stop(R->server);
	run_out();
	assert_false(dev_server_is_busy(R->server));
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
}

static void test_failure_and_the_ways_out_sbc3_4_11_4(void **state)
{
	void *m = calloc(FX_BLOCKS, FX_BLOCK);

	close_erase(state);
	fault = bs_fault_new(bs_ram_new("ram:f", m, FX_BLOCKS * FX_BLOCK,
					FX_BLOCK, free, m),
			     BIT(BS_WRITE), 1, 0, ERR_MEDIUM);
	open_with(fault);
	assert_int_equal(overwrite(IMMED, 1, 1), SCSI_GOOD);
	run_out();
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	/* Restricted mode: only another SANITIZE ends the failure. */
	CMD(0, 0, NULL, 0x48, 0x1f);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(overwrite(IMMED, 1, 1), SCSI_GOOD);
	run_out();
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	/* EXIT FAILURE MODE without a failure is not an error. */
	assert_int_equal(CMD(0, 0, NULL, 0x48, 0x1f), SCSI_GOOD);
}

static void test_failure_unrestricted_may_be_left(void **state)
{
	const uint8_t cdb[16] = { 0x48, 0x21, 0, 0, 0, 0, 0, 0, 5 };
	void *m = calloc(FX_BLOCKS, FX_BLOCK);

	close_erase(state);
	open_with(bs_fault_new(bs_ram_new("ram:f", m, FX_BLOCKS * FX_BLOCK,
					  FX_BLOCK, free, m),
			       BIT(BS_WRITE), 1, 0, ERR_MEDIUM));
	list[0] = 1;
	list[1] = 0;
	put_be16(list + 2, 1);
	fx_begin(R, cdb, 16, 5, 0);
	fx_execute(R, list);
	run_out();
	assert_true(R->done);
	fx_finish(R);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	assert_int_equal(CMD(0, 0, NULL, 0x48, 0x1f), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* ---- FORMAT UNIT, SBC-3 §5.3 ---- */

static void test_format_unit(void **state)
{
	uint8_t header[8] = { 0, 0x02 };

	(void)state;
	memset(R->medium, 0xaa, FX_BLOCKS * FX_BLOCK);
	assert_int_equal(CMD(4, 0, header, 0x04, 0x10), SCSI_GOOD);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_FORMAT_IN_PROGRESS);
	run_out();
	assert_all(0, 0);
	/* The unit has neither defect lists nor protection information. */
	header[3] = 8;
	CMD(4, 0, header, 0x04, 0x10);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(R->sense.field, 2);
	CMD(0, 0, NULL, 0x04, 0x80);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	for (uint8_t len = 0; len < 8; len++) {
		CMD(len, 0, header, 0x04, 0x30);
		assert_check(SENSE_ILLEGAL_REQUEST,
			     ASC_PARAMETER_LIST_LENGTH_ERROR);
	}
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* ---- ejecting, SBC-3 §5.25, SPC-4 §6.14 ---- */

#define EJECT 0x1b, 0, 0, 0, 0x02
#define LOAD  0x1b, 0, 0, 0, 0x03

static void test_eject_and_load(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 0, NULL, EJECT), SCSI_GOOD);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_MEDIUM_NOT_PRESENT);
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_NOT_READY, ASC_MEDIUM_NOT_PRESENT);
	CMD(0, 0, NULL, 0x48, 0x02);
	assert_check(SENSE_NOT_READY, ASC_MEDIUM_NOT_PRESENT);
	/* The unit serves commands that need no medium. */
	assert_int_equal(CMD(0, 255, NULL, 0x1a, 8, 0x3f, 0, 255), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, LOAD), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	fx_swap(R);
	run_out();
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_MEDIUM_MAY_HAVE_CHANGED);
	fx_swap(R);
	/* With a POWER CONDITION the unit ignores LOEJ and START. */
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 0x32), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	assert_int_equal(CMD(0, 96, NULL, 0x12, 0, 0, 0, 96), SCSI_GOOD);
	assert_int_equal(R->in[1], 0x80); /* RMB */
}

static void test_prevention_counts_per_nexus(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) { /* preventing twice counts once */
		assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 1), SCSI_GOOD);
		fx_swap(R);
		CMD(0, 0, NULL, EJECT);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_REMOVAL_PREVENTED);
		assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 0), SCSI_GOOD);
		CMD(0, 0, NULL, EJECT);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_REMOVAL_PREVENTED);
		fx_swap(R);
	}
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 0), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, EJECT), SCSI_GOOD);
}

static void test_prevention_ends_with_reset_and_nexus(void **state)
{
	struct dev_nexus_config cfg = { .initiator_port = "iqn.x,i,0x2",
					.target_port = "iqn.t,t,0x0001",
					.target_name = "iqn.t" };
	struct dev_nexus *n = R->nexus;

	(void)state;
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 1), SCSI_GOOD);
	fx_reset(dev_lu_get(R->server, 0));
	run_out();
	CMD(0, 0, NULL, 0x00);
	assert_int_equal(CMD(0, 0, NULL, EJECT), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, LOAD), SCSI_GOOD);
	run_out();
	R->nexus = dev_nexus_open(R->server, &cfg);
	CMD(0, 0, NULL, 0x00);
	assert_int_equal(CMD(0, 0, NULL, 0x1e, 0, 0, 0, 1), SCSI_GOOD);
	dev_nexus_close(R->nexus);
	run_out();
	R->nexus = n;
	assert_int_equal(CMD(0, 0, NULL, EJECT), SCSI_GOOD);
}

static void test_fixed_disks_do_not_eject(void **state)
{
	close_erase(state);
	memset(R, 0, sizeof(*R));
	unit.removable = false;
	open_with(fx_ram(R));
	CMD(0, 0, NULL, EJECT);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 4);
	assert_int_equal(CMD(0, 0, NULL, 0x1b), SCSI_GOOD); /* stop */
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* ---- power conditions, SPC-4 §5.12 ---- */

#define POWER(condition, modifier) \
 0x1b, 0, 0, modifier, (uint8_t)((condition) << 4)

static uint16_t sensed(void)
{
	assert_int_equal(CMD(0, 18, NULL, 0x03, 0, 0, 0, 18), SCSI_GOOD);
	assert_int_equal(R->in[2] & 15, SENSE_NO_SENSE);
	return get_be16(R->in + 12);
}

static void test_power_conditions_sbc3_5_25(void **state)
{
	static const struct {
		uint8_t condition, modifier;
		uint16_t asc;
	} good[] = {
		{ 2, 0, 0x5e03 },   { 2, 1, 0x5e06 },	{ 2, 2, 0x5e08 },
		{ 3, 0, 0x5e04 },   { 3, 1, 0x5e0a },	{ 7, 0, 0x5e0a },
		{ 1, 0, 0 },	    { 0xa, 0, 0x5e03 }, { 0xb, 1, 0x5e0a },
		{ 0xb, 0, 0x5e04 }, { 0xa, 1, 0x5e06 }, { 0xa, 2, 0x5e08 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(
			CMD(0, 0, NULL,
			    POWER(good[i].condition, good[i].modifier)),
			SCSI_GOOD);
		assert_int_equal(sensed(), good[i].asc);
	}
	/* The unit is ready, and a command that needs the medium makes the unit
	 * active. */
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	assert_int_equal(CMD(0, 8, NULL, 0x25), SCSI_GOOD);
	assert_int_equal(sensed(), 0x5e08);
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1),
			 SCSI_GOOD);
	assert_int_equal(sensed(), 0);
	assert_int_equal(CMD(0, 0, NULL, POWER(3, 0)), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x1b, 0, 0, 0, 1), SCSI_GOOD);
	assert_int_equal(sensed(), 0);
	assert_int_equal(CMD(0, 0, NULL, POWER(3, 0)), SCSI_GOOD);
	fx_reset(dev_lu_get(R->server, 0));
	run_out();
	CMD(0, 0, NULL, 0x00);
	assert_int_equal(sensed(), 0);
	/* power conditions that the unit does not have */
	assert_int_equal(CMD(0, 0, NULL, POWER(4, 0)), SCSI_GOOD);
	assert_int_equal(sensed(), 0);
	dev_lu_get(R->server, 0)->cfg.strict = true;
	CMD(0, 0, NULL, POWER(4, 0));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 4);
	CMD(0, 0, NULL, POWER(2, 3));
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 3);
	/* VPD 8Ah */
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0x8a, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in_len, 18);
	assert_int_equal(get_be16(R->in + 4), 0x0307);
}

/* ---- over a power loss, SBC-3 §4.11.2 ---- */

static uint8_t lasting[FX_BLOCKS * FX_BLOCK];
static uint8_t kept[8192];
static size_t kept_len;
static int save_result, save_after; /* the nth save from now on fails */

static void save(void *arg, struct dev_save *s)
{
	(void)arg;
	assert_int_equal(s->kind, DEV_KEPT_UNIT);
	s->result = save_after && --save_after == 0 ? save_result : 0;
	if (!s->result) {
		assert_true(s->len <= sizeof(kept));
		kept_len = s->len;
		if (s->len)
			memcpy(kept, s->data, s->len);
	}
	s->done(s);
}

static void stays(void *arg)
{
	(void)arg;
}

static void restore(struct dev_server *s)
{
	if (kept_len)
		assert_int_equal(dev_lu_restore(dev_lu_get(s, 0), DEV_KEPT_UNIT,
						kept, kept_len),
				 0);
}

static bool broken, encrypts, protects;

/* The sidecar of a persistent medium: header, marks, protection information. */
static uint8_t lasting_pi[PROTECT_PI_AT + FX_BLOCKS * 8];

static struct bs *with_protection(struct bs *data)
{
	struct bs_protect_config cfg = { .data = data, .lasting = true };
	struct protect_head head;

	if (!protect_head_get(&head, lasting_pi))
		cfg.type = head.type;
	cfg.pi = bs_ram_new("ram:pi", lasting_pi, sizeof(lasting_pi),
			    PROTECT_GRAIN, stays, NULL);
	return bs_protect_new(&cfg);
}

static void power_on(bool read_only)
{
	struct bs *b = bs_ram_new("ram:stays", lasting, sizeof(lasting),
				  FX_BLOCK, stays, NULL);

	if (broken)
		b = bs_fault_new(b, BIT(BS_WRITE), 1, 0, ERR_MEDIUM);
	if (encrypts)
		b = fx_encrypted(b);
	if (protects)
		b = with_protection(b);
	memset(R, 0, sizeof(*R));
	nmessages = 0;
	R->post = hold_post;
	R->later = later;
	R->lu = &unit;
	R->save = save;
	R->set_up = restore;
	fx_open(R, b, read_only);
	dev_server_resume(R->server);
	CMD(0, 0, NULL, 0x00); /* POWER ON */
}

static void power_off(void)
{
	dev_server_stop(R->server);
	run_out();
	assert_false(dev_server_is_busy(R->server));
	fx_close(R);
}

static int open_lasting(void **state)
{
	(void)state;
	unit = (struct dev_lu_config){ .keeps = true };
	kept_len = 0;
	save_after = 0;
	broken = encrypts = protects = false;
	memset(lasting, 0x11, sizeof(lasting));
	power_on(false);
	return 0;
}

static int close_lasting(void **state)
{
	(void)state;
	power_off();
	return 0;
}

static struct keep_erase record(void)
{
	static struct dev_record r;

	memset(&r, 0, sizeof(r));
	if (kept_len)
		assert_int_equal(keep_decode(dev_lu_get(R->server, 0), kept,
					     kept_len, &r),
				 0);
	return r.erase;
}

static void expect_pattern(uint8_t byte)
{
	for (size_t i = 0; i < sizeof(lasting); i++)
		assert_int_equal(lasting[i], byte);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	assert_int_equal(kept_len, 0);
}

static void test_a_power_loss_at_every_turn_sbc3_4_11_2(void **state)
{
	bool over = false;

	(void)state;
	for (unsigned n = 0; !over; n++) {
		memset(lasting, 0x11, sizeof(lasting));
		list[4] = 0x5a;
		assert_int_equal(overwrite(IMMED, 0x80 | 3, 1), SCSI_GOOD);
		assert_int_equal(record().state, KEEP_ERASING);
		for (unsigned i = 0; i < n && !over; i++)
			over = !turn();
		power_off();
		power_on(false);
		if (!over && kept_len) {
			CMD(0, 0, NULL, 0x00);
			assert_check(SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS);
			CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
			assert_check(SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS);
		}
		run_out();
		expect_pattern(0x5a);
	}
}

/* The key may change twice, because the record does not say whether the key had
 * changed. */
static void test_crypto_erase_and_a_power_loss_at_every_turn(void **state)
{
	bool over = false;
	unsigned resumed = 0;

	(void)state;
	for (unsigned n = 0; !over; n++) {
		power_off();
		encrypts = true;
		power_on(false);
		memset(lasting, 0x11, sizeof(lasting));
		assert_int_equal(CMD(0, 0, NULL, 0x48, IMMED | 0x03),
				 SCSI_GOOD);
		assert_true(record().rekey);
		for (unsigned i = 0; i < n && !over; i++)
			over = !turn();
		power_off();
		power_on(false);
		assert_int_equal(crypt_fixture.changes, 1);
		if (kept_len) {
			assert_int_equal(record().state, KEEP_ERASING);
			resumed++;
			run_out();
			assert_int_equal(crypt_fixture.changes, 2);
		}
		expect_pattern(0);
	}
	assert_true(resumed > 2);
}

/* The operation cannot continue without the key. */
static void test_restarted_crypto_erase_without_the_key(void **state)
{
	(void)state;
	power_off();
	encrypts = true;
	power_on(false);
	assert_int_equal(CMD(0, 0, NULL, 0x48, IMMED | 0x03), SCSI_GOOD);
	power_off();
	encrypts = false;
	power_on(false);
	run_out();
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	assert_int_equal(record().state, KEEP_ERASE_FAILED);
}

/* Blocks before a checkpoint are not written again. */
static void test_restart_continues_after_the_checkpoint(void **state)
{
	(void)state;
	list[4] = 0x5a;
	assert_int_equal(overwrite(IMMED, 3, 1), SCSI_GOOD);
	while (record().pass != 2 || record().at != DEV_CHUNK)
		assert_true(turn());
	power_off();
	memset(lasting, 0x77, sizeof(lasting));
	power_on(false);
	run_out();
	assert_int_equal(lasting[DEV_CHUNK - 1], 0x77);
	memset(lasting, 0x5a, DEV_CHUNK);
	expect_pattern(0x5a);
}

static void test_format_unit_goes_on_too(void **state)
{
	const uint8_t header[4] = { 0, 0x02 };

	(void)state;
	assert_int_equal(CMD(4, 0, header, 0x04, 0x10), SCSI_GOOD);
	power_off();
	power_on(false);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_NOT_READY, ASC_FORMAT_IN_PROGRESS);
	run_out();
	expect_pattern(0);
}

static uint8_t protection(void)
{
	assert_int_equal(CMD(0, 32, NULL, 0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			     0, 0, 32),
			 SCSI_GOOD);
	return R->in[12] & 1 ? (uint8_t)(1 + (R->in[12] >> 1 & 7)) : 0;
}

/* FORMAT UNIT to another protection type, with a power loss at every turn: the
 * unit has the new type and no earlier protection information (SBC-3 §5.3). */
static void
test_format_with_protection_and_a_power_loss_at_every_turn(void **state)
{
	static const uint8_t info[4] = { 0x00, 0x80, 0xc0, 0xc0 };
	unsigned resumed = 0;
	bool over = false;

	(void)state;
	memset(lasting_pi, 0, sizeof(lasting_pi));
	power_off();
	protects = true;
	power_on(false);
	for (unsigned n = 0; !over; n++) {
		uint8_t type = (uint8_t)((n + 1) % 4);
		const uint8_t header[4] = { type == 3, 0x02 };

		memset(lasting, 0x11, sizeof(lasting));
		memset(lasting_pi + PROTECT_PI_AT, 0x33, FX_BLOCKS * 8u);
		assert_int_equal(CMD(4, 0, header, 0x04,
				     (uint8_t)(info[type] | 0x10)),
				 SCSI_GOOD);
		assert_int_equal(record().pi_type, type);
		for (unsigned i = 0; i < n && !over; i++)
			over = !turn();
		power_off();
		power_on(false);
		resumed += kept_len != 0;
		run_out();
		CMD(0, 0, NULL,
		    0x00); /* reports another format if the change has happened */
		expect_pattern(0);
		assert_int_equal(protection(), type);
		for (size_t i = 0; i < FX_BLOCKS * 8u; i++)
			assert_int_equal(lasting_pi[PROTECT_PI_AT + i], 0);
		power_off(); /* the next process finds the record */
		power_on(false);
		assert_int_equal(protection(), type);
	}
	assert_true(resumed > 2);
}

/* A format that fails halfway leaves the old type. */
static void test_format_changes_the_type_after_the_last_block(void **state)
{
	const uint8_t header[4] = { 0, 0x02 };
	const uint8_t *last = lasting + sizeof(lasting) - 1;
	struct dev_lu *lu;

	(void)state;
	memset(lasting_pi, 0, sizeof(lasting_pi));
	power_off();
	protects = true;
	power_on(false);
	lu = dev_lu_get(R->server, 0);
	assert_int_equal(CMD(4, 0, header, 0x04, 0x90), SCSI_GOOD);
	while (*last) {
		assert_int_equal(DEV_PROTECTION(lu), 0);
		assert_true(turn());
	}
	run_out();
	assert_int_equal(DEV_PROTECTION(lu), 1);
}

/* The process ends while the command waits: the sense data say that the
 * operation continues. */
static void test_end_of_the_process_during_the_command(void **state)
{
	const uint8_t cdb[16] = { 0x48, 0x02 };

	(void)state;
	fx_begin(R, cdb, 16, 0, 0);
	assert_int_equal(fx_execute(R, NULL), -1);
	turn();
	dev_server_stop(R->server);
	run_out();
	assert_true(R->done);
	fx_finish(R);
	assert_check(SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS);
	power_off();
	power_on(false);
	run_out();
	expect_pattern(0);
}

static void test_write_protection_stops_a_restarted_erasure(void **state)
{
	(void)state;
	list[4] = 0x5a;
	assert_int_equal(overwrite(IMMED, 1, 1), SCSI_GOOD);
	power_off();
	power_on(true);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	power_off();
	power_on(false);
	run_out();
	expect_pattern(0x5a);
}

static void test_a_failure_stays(void **state)
{
	uint8_t cdb[16] = { 0x48, 0xa1, [8] = 5 };

	(void)state;
	power_off();
	broken = true;
	power_on(false);
	assert_int_equal(overwrite(IMMED, 1, 1), SCSI_GOOD);
	run_out();
	power_off();
	power_on(false);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	CMD(0, 0, NULL, 0x48, 0x1f); /* restricted mode */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	/* Unrestricted mode: EXIT FAILURE MODE succeeds if the record can be
	 * saved. */
	assert_int_equal(fx_run(R, cdb, 16, list, 5, 0), SCSI_GOOD);
	run_out();
	power_off();
	broken = false;
	power_on(false);
	save_after = 1;
	save_result = ERR_MEDIUM;
	CMD(0, 0, NULL, 0x48, 0x1f);
	assert_check(SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	assert_int_equal(CMD(0, 0, NULL, 0x48, 0x1f), SCSI_GOOD);
	assert_int_equal(kept_len, 0);
	power_off();
	power_on(false);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

static void test_failed_saves_of_an_erasure(void **state)
{
	(void)state;
	/* The save at the beginning fails: the operation changes no block. */
	save_after = 1;
	save_result = ERR_MEDIUM;
	overwrite(IMMED, 1, 1);
	assert_check(SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	run_out();
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	assert_int_equal(lasting[0], 0x11);
	/* The save at the end fails: otherwise another process would erase
	 * blocks that are written now. */
	list[4] = 0x5a;
	assert_int_equal(overwrite(IMMED, 1, 1), SCSI_GOOD);
	save_after = 2; /* after one checkpoint */
	run_out();
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	power_off();
	power_on(false);
	run_out();
	expect_pattern(0x5a);
}

#define C(name) cmocka_unit_test_setup_teardown(name, open_erase, close_erase)

#define L(name) \
 cmocka_unit_test_setup_teardown(name, open_lasting, close_lasting)

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(test_overwrite_with_a_pattern_sbc3_5_24_3),
		C(test_overwrite_bad_lists),
		C(test_what_is_served_meanwhile_sbc3_4_11),
		C(test_abort_leaves_the_operation),
		C(test_rate_is_asked_for_by_time),
		C(test_stopping_the_server_ends_it),
		C(test_failure_and_the_ways_out_sbc3_4_11_4),
		C(test_failure_unrestricted_may_be_left),
		C(test_format_unit),
		C(test_eject_and_load),
		C(test_prevention_counts_per_nexus),
		C(test_prevention_ends_with_reset_and_nexus),
		C(test_fixed_disks_do_not_eject),
		C(test_power_conditions_sbc3_5_25),
		L(test_a_power_loss_at_every_turn_sbc3_4_11_2),
		L(test_crypto_erase_and_a_power_loss_at_every_turn),
		L(test_restarted_crypto_erase_without_the_key),
		L(test_restart_continues_after_the_checkpoint),
		L(test_format_unit_goes_on_too),
		L(test_format_with_protection_and_a_power_loss_at_every_turn),
		L(test_format_changes_the_type_after_the_last_block),
		L(test_end_of_the_process_during_the_command),
		L(test_write_protection_stops_a_restarted_erasure),
		L(test_a_failure_stays),
		L(test_failed_saves_of_an_erasure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
