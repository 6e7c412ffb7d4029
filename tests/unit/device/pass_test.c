/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass_test.c: a passthrough unit over an emulated SCSI device, which records
 * the commands that it gets and ends them as the test says.
 */
#include "dev_case.h"
#include "device/copy/copy.h"
#include "device/primary/primary.h"
#include "device/unit/attention.h"
#include "device/unit/command.h"
#include "device/unit/itl.h"

/* ---- the emulated device ---- */

static struct fake {
	struct pass pass;
	bool holds;  /* commands wait in `held` */
	bool queues; /* the driver has not sent these commands */
	struct pass_req *held;
	/* how the next command ends */
	enum pass_end end;
	uint8_t status;
	uint8_t sense[64];
	uint8_t sense_len;
	uint32_t resid;
	uint8_t answer[4096];
	size_t answer_len; /* octets after the answer are 0xee, and not in resid */
	/* the last command */
	unsigned n;
	uint8_t cdb[PASS_CDB_MAX];
	uint8_t cdb_len;
	enum pass_dir dir;
	uint32_t len;
	unsigned timeout;
	uint8_t data[4096];
	unsigned resets, closed;
} fake;

static void fake_end(struct pass_req *r)
{
	if (r->dir == PASS_IN) {
		memset(r->buf, 0xee, r->len);
		memcpy(r->buf, fake.answer,
		       MIN(fake.answer_len, (size_t)r->len));
	}
	r->end = fake.end;
	r->status = fake.status;
	memcpy(r->sense, fake.sense, fake.sense_len);
	r->sense_len = fake.sense_len;
	r->resid = MIN(fake.resid, r->len);
	r->done(r);
}

static void fake_submit(struct pass *p, struct pass_req *r)
{
	assert_ptr_equal(p, &fake.pass);
	fake.n++;
	memcpy(fake.cdb, r->cdb, sizeof(fake.cdb));
	fake.cdb_len = r->cdb_len;
	fake.dir = r->dir;
	fake.len = r->len;
	fake.timeout = r->timeout;
	if (r->dir == PASS_OUT)
		memcpy(fake.data, r->buf, MIN(r->len, sizeof(fake.data)));
	if (fake.holds)
		fake.held = r;
	else
		fake_end(r);
}

static bool fake_withdraw(struct pass *p, struct pass_req *r)
{
	(void)p;
	assert_ptr_equal(fake.held, r);
	return fake.queues;
}

static void fake_reset(struct pass *p, unsigned worker)
{
	(void)p;
	(void)worker;
	fake.resets++;
}

static void fake_close(struct pass *p)
{
	(void)p;
	fake.closed++;
}

static const struct pass_ops fake_ops = {
	.submit = fake_submit,
	.withdraw = fake_withdraw,
	.reset = fake_reset,
	.close = fake_close,
};

static const struct dev_lu_config *pass_config;
static void (*more_set_up)(struct dev_server *s);

static void add_pass(struct dev_server *s)
{
	static const struct dev_lu_config one = { .lun = 1 };

	assert_int_equal(dev_lu_add_pass(s, pass_config ? pass_config : &one,
					 &fake.pass),
			 0);
	if (more_set_up)
		more_set_up(s);
}

/* The passthrough unit is LUN 1; LUN 0 is a disk. */
static int open_type(uint8_t type)
{
	memset(&fake, 0, sizeof(fake));
	fake.pass = (struct pass){ .ops = &fake_ops,
				   .type = type,
				   .version = 6,
				   .block_size = type ? 0 : 512,
				   .max_transfer = 64 << 10,
				   .timeout = 60,
				   .uuid = { 1, 2, 3 },
				   .name = "/dev/sg7" };
	memset(R, 0, sizeof(*R));
	R->set_up = add_pass;
	R->two_initiators = true;
	fx_open(R, fx_ram(R), false);
	R->lun = 1;
	fx_take_attentions(R);
	assert_int_equal(fake.n,
			 0); /* the device server reported the attention */
	return 0;
}

static int open_disk(void **state)
{
	(void)state;
	return open_type(0);
}

static int open_tape(void **state)
{
	(void)state;
	return open_type(1);
}

static int open_cd(void **state)
{
	(void)state;
	return open_type(5);
}

static int open_read_only(void **state)
{
	static const struct dev_lu_config ro = { .lun = 1, .read_only = true };

	(void)state;
	pass_config = &ro;
	open_type(0);
	pass_config = NULL;
	return 0;
}

static void groups(struct dev_server *s)
{
	const struct dev_group g = { .id = 9, .nports = 1, .ports = { 1 } };
	uint16_t rtpi;

	assert_int_equal(dev_group_add(s, &g), 0);
	assert_int_equal(dev_port_add(s, "iqn.t,t,0x0001", &rtpi), 0);
}

static int open_groups(void **state)
{
	(void)state;
	more_set_up = groups;
	open_type(0);
	more_set_up = NULL;
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	fx_close(R);
	assert_int_equal(fake.closed, 1);
	return 0;
}

static void answers(const void *p, size_t len)
{
	memcpy(fake.answer, p, len);
	fake.answer_len = len;
}

static void fails(uint8_t key, uint16_t asc)
{
	fake.status = SCSI_CHECK_CONDITION;
	fake.sense_len = (uint8_t)scsi_sense_build(
		&(struct scsi_sense){ .key = key, .asc = asc }, false,
		fake.sense);
}

static void works(void)
{
	fake.status = SCSI_GOOD;
	fake.end = PASS_ENDED;
	fake.sense_len = 0;
	fake.resid = 0;
}

static uint8_t pattern[128 << 10];

/* ---- data: direction, length, residual ---- */

static void test_read_and_write_are_unchanged(void **state)
{
	(void)state;
	answers("hello", 5);
	assert_int_equal(CMD(0, 1024, NULL, 0x28, 0, 0, 0, 0, 7, 0, 0, 2, 0),
			 SCSI_GOOD);
	assert_int_equal(fake.cdb_len, 10);
	assert_memory_equal(fake.cdb, R->task.cdb, 10);
	assert_int_equal(fake.dir, PASS_IN);
	assert_int_equal(fake.len, 1024);
	assert_int_equal(R->in_len, 1024);
	assert_memory_equal(R->in, "hello", 5);
	memset(pattern, 0x5a, sizeof(pattern));
	assert_int_equal(CMD(512, 0, pattern, 0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 9,
			     0, 0, 0, 1),
			 SCSI_GOOD);
	assert_int_equal(fake.cdb_len, 16);
	assert_int_equal(fake.dir, PASS_OUT);
	assert_memory_equal(fake.data, pattern, 512);
	assert_int_equal(R->task.total.out, 512);
}

/* A command without a row uses the direction and length that the initiator
 * expects. */
static void test_unknown_commands_use_the_expected_length(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 300, NULL, 0xc1, 1, 2, 3), SCSI_GOOD);
	assert_int_equal(fake.cdb_len, 16); /* a vendor specific command */
	assert_int_equal(fake.dir, PASS_IN);
	assert_int_equal(fake.len, 300);
	assert_int_equal(CMD(77, 0, pattern, 0x07), SCSI_GOOD);
	assert_int_equal(fake.dir, PASS_OUT);
	assert_int_equal(fake.len, 77);
	assert_int_equal(CMD(0, 0, NULL, 0x01), SCSI_GOOD);
	assert_int_equal(fake.dir, PASS_NONE);
	assert_int_equal(CMD(0, 0, NULL, 0x91), SCSI_GOOD);
	assert_int_equal(fake.timeout, 60); /* SYNCHRONIZE CACHE(16) */
	assert_int_equal(CMD(0, 0, NULL, 0x48, 0x03), SCSI_GOOD);
	assert_int_equal(fake.timeout, 7200); /* SANITIZE */
}

/* RFC 7143 §11.4.5: the residual is the difference of expected and moved
 * octets. The device never gets more than the CDB says. */
static void test_residuals(void **state)
{
	(void)state;
	/* The initiator expects more than the CDB says: underflow. */
	CMD(0, 2048, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 2, 0);
	assert_int_equal(fake.len, 1024);
	assert_int_equal(R->task.total.in, 1024);
	CMD(2048, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 2, 0);
	assert_int_equal(fake.len, 1024);
	assert_int_equal(R->task.total.out, 1024);
	/* The initiator expects less: the device reads all, overflow. */
	CMD(0, 100, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 2, 0);
	assert_int_equal(fake.len, 1024);
	assert_int_equal(R->task.total.in, 1024);
	assert_int_equal(R->in_len, 100);
	/* The initiator sends less: the device writes the whole blocks. */
	CMD(1024, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 4, 0);
	assert_int_equal(fake.len, 1024);
	assert_int_equal(fake.cdb[8], 2);
	assert_int_equal(R->task.total.out, 2048);
	/* The device moved less than the CDB says. */
	fake.resid = 200;
	CMD(0, 255, NULL, 0x12, 0, 0, 0, 255, 0);
	assert_int_equal(R->task.total.in, 55);
	assert_int_equal(R->in_len, 55);
	CMD(512, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	assert_int_equal(R->task.total.out, 312);
}

static void test_a_write_without_a_block_is_not_sent(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 SCSI_GOOD);
	assert_int_equal(fake.n, 0);
	assert_int_equal(R->task.total.out, 512);
}

static void test_a_part_of_a_block_is_not_sent(void **state)
{
	static const uint32_t lens[] = { 1, 100, 511, 513, 700, 1023 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(lens); i++) {
		CMD(lens[i], 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 2, 0);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
		assert_int_equal(R->task.total.out, 1024);
	}
	assert_int_equal(fake.n, 0);
}

/* The direction of a known CDB is decisive. */
static void test_the_wrong_direction_is_not_sent(void **state)
{
	(void)state;
	CMD(512, 0, pattern, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
	CMD(0, 512, NULL, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
	CMD(24, 0, pattern, 0x12, 0, 0, 0, 24, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
	CMD(0, 24, NULL, 0x15, 0x10, 0, 0, 24, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_IU);
	assert_int_equal(fake.n, 0);
}

static void test_a_short_parameter_list_is_refused(void **state)
{
	(void)state;
	CMD(10, 0, pattern, 0x15, 0x10, 0, 0, 24, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_PARAMETER_LIST_LENGTH_ERROR);
	assert_int_equal(fake.n, 0);
}

static void test_more_than_the_device_takes_is_refused(void **state)
{
	(void)state;
	CMD(0, 128 << 10, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 129, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(0, (64 << 10) + 1, NULL, 0xc1);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(fake.n, 0);
	/* An allocation length may be larger than the transfer limit. */
	assert_int_equal(CMD(0, 64, NULL, 0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0,
			     0xff, 0xff, 0xff, 0xff),
			 SCSI_GOOD);
	assert_int_equal(fake.len, 64 << 10);
}

/* SBC-3: direction and length by CDB. */
static void test_lengths_by_cdb(void **state)
{
	static const struct {
		uint8_t cdb[16];
		enum pass_dir dir;
		uint32_t len;
	} rows[] = {
		{ { 0x08, 0, 0, 0, 0 },
		  PASS_IN,
		  256 * 512 }, /* longer than the transfer limit */
		{ { 0x0a, 0, 0, 0, 2 }, PASS_OUT, 1024 },
		{ { 0x25 }, PASS_IN, 8 },
		{ { 0x2f, 0, 0, 0, 0, 0, 0, 0, 3 }, PASS_NONE, 0 },
		{ { 0x2f, 2, 0, 0, 0, 0, 0, 0, 3 }, PASS_OUT, 1536 },
		{ { 0x2f, 6, 0, 0, 0, 0, 0, 0, 3 }, PASS_OUT, 512 },
		{ { 0x3c, 2, 0, 0, 0, 0, 0, 1, 0 }, PASS_IN, 256 },
		{ { 0x41, 0, 0, 0, 0, 0, 0, 0, 9 }, PASS_OUT, 512 },
		{ { 0x42, 0, 0, 0, 0, 0, 0, 0, 24 }, PASS_OUT, 24 },
		{ { 0x89, [13] = 1 }, PASS_OUT, 1024 },
		{ { 0x93, 1, [13] = 8 }, PASS_NONE, 0 },
		{ { 0x93, 8, [13] = 8 }, PASS_OUT, 512 },
		{ { 0x9c, [13] = 4 }, PASS_OUT, 2048 },
		{ { 0xa2, 0, 0, 0, 0x80, 0, 0, 0, 0, 1 }, PASS_IN, 512 },
		{ { 0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 5 }, PASS_IN, 2560 },
		/* protection information: the expected length decides */
		{ { 0x28, 0x20, 0, 0, 0, 0, 0, 0, 2 }, PASS_IN, 4096 },
	};

	(void)state;
	answers((const uint8_t[8]){ 0, 0, 0, 0, 0, 0, 2, 0 }, 8); /* 25h */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool out = rows[i].dir == PASS_OUT;

		fx_run(R, rows[i].cdb, 16, pattern, out ? 4096 : 0,
		       out ? 0 : 4096);
		if (rows[i].len > 64 << 10) {
			assert_check(SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			continue;
		}
		assert_int_equal(R->task.status, SCSI_GOOD);
		assert_int_equal(fake.dir, rows[i].dir);
		if (fake.dir != PASS_NONE)
			assert_int_equal(fake.len, rows[i].len);
	}
}

static void test_variable_length_cdbs(void **state)
{
	uint8_t cdb[32] = { 0x7f, [7] = 24, [9] = 9 };

	(void)state;
	assert_int_equal(fx_run(R, cdb, 32, NULL, 0, 512), SCSI_GOOD);
	assert_int_equal(fake.cdb_len, 32);
	assert_memory_equal(fake.cdb, cdb, 32);
	for (unsigned n = 0; n < 256;
	     n++) { /* lengths that a CDB cannot have */
		if (n % 4 == 0 && n >= 4 && n <= 24)
			continue;
		cdb[7] = (uint8_t)n;
		fx_run(R, cdb, 32, NULL, 0, 512);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	}
	cdb[7] = 24; /* longer than the received CDB */
	fx_run(R, cdb, 16, NULL, 0, 512);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(fake.n, 1);
}

/* A READ(6) of a tape does not count blocks: the expected length decides. */
static void test_tapes_have_no_blocks(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 4000, NULL, 0x08, 0, 0, 0x40, 0, 0), SCSI_GOOD);
	assert_int_equal(fake.len, 4000);
	assert_int_equal(CMD(0, 0, NULL, 0x01), SCSI_GOOD);
	assert_int_equal(fake.timeout, 7200); /* REWIND */
	assert_int_equal(CMD(0, 0, NULL, 0x91), SCSI_GOOD);
	assert_int_equal(fake.timeout, 7200); /* SPACE(16) */
	CMD(0, 0, NULL, 0x00);
	assert_int_equal(fake.timeout, 60);
}

/* ---- the end of commands ---- */

static void test_sense_data_are_unchanged(void **state)
{
	uint8_t sense[32] = { 0x72, 3, 0x11, 0x14, 0, 0, 0, 12, 0, 10, 0x80 };

	(void)state;
	fake.status = SCSI_CHECK_CONDITION;
	memcpy(fake.sense, sense, 20);
	fake.sense_len = 20;
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 SCSI_CHECK_CONDITION);
	assert_int_equal(R->task.sense.len, 20);
	assert_memory_equal(R->task.sense.data, sense, 20);
	/* The host reports no residual: no data for the initiator. */
	assert_int_equal(R->in_len, 0);
	assert_int_equal(R->task.total.in, 0);
	/* With a residual, the initiator gets the octets before it. */
	fake.resid = 500;
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	assert_int_equal(R->in_len, 12);
	/* A recovered error comes with all data. */
	fails(SENSE_RECOVERED_ERROR, 0x1700);
	fake.resid = 0;
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	assert_int_equal(R->in_len, 512);
	assert_int_equal(R->task.status, SCSI_CHECK_CONDITION);
}

static void test_statuses_are_unchanged(void **state)
{
	static const uint8_t statuses[] = { SCSI_CONDITION_MET, SCSI_BUSY,
					    SCSI_RESERVATION_CONFLICT,
					    SCSI_TASK_SET_FULL };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		fake.status = statuses[i];
		assert_int_equal(CMD(0, 0, NULL, 0x34), statuses[i]);
		assert_int_equal(R->task.sense.len, 0);
		/* data come with GOOD and CONDITION MET only, even if the host
		 * claims that it moved all of them */
		CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
		assert_int_equal(R->task.status, statuses[i]);
		assert_int_equal(R->in_len, i ? 0 : 512);
		assert_int_equal(R->task.total.in, i ? 0 : 512);
	}
}

static void test_ends_reported_by_the_host(void **state)
{
	static const struct {
		enum pass_end end;
		uint8_t key;
		uint16_t asc;
	} rows[] = {
		{ PASS_GONE, SENSE_HARDWARE_ERROR, ASC_NO_SELECTION_RESPONSE },
		{ PASS_TIMEOUT, SENSE_ABORTED_COMMAND, ASC_COMMAND_TIMEOUT },
		{ PASS_RESET, SENSE_ABORTED_COMMAND, ASC_BUS_DEVICE_RESET },
		{ PASS_PARITY, SENSE_ABORTED_COMMAND, ASC_SCSI_PARITY_ERROR },
		{ PASS_FAILED, SENSE_ABORTED_COMMAND, ASC_LU_COMMUNICATION },
		{ PASS_REFUSED, SENSE_ILLEGAL_REQUEST,
		  ASC_INVALID_FIELD_IN_CDB },
		{ PASS_FORBIDDEN, SENSE_ILLEGAL_REQUEST, ASC_NO_ACCESS_RIGHTS },
		{ PASS_NO_MEMORY, SENSE_ABORTED_COMMAND,
		  ASC_INSUFFICIENT_RESOURCES },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fake.end = rows[i].end;
		CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
		assert_check(rows[i].key, rows[i].asc);
		assert_int_equal(R->in_len, 0);
	}
	fake.end = PASS_BUSY;
	assert_int_equal(CMD(0, 512, NULL, 0xc1), SCSI_BUSY);
	works(); /* CHECK CONDITION without sense data */
	fake.status = SCSI_CHECK_CONDITION;
	CMD(0, 512, NULL, 0xc1);
	assert_check(SENSE_ABORTED_COMMAND, ASC_LU_COMMUNICATION);
}

/* ---- unit attentions (SAM-5 §5.14) ---- */

static void test_the_devices_attention_reaches_all(void **state)
{
	(void)state;
	fails(SENSE_UNIT_ATTENTION, 0x2a09);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, 0x2a09);
	works();
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD); /* once */
	fx_swap(R);
	fake.n = 0;
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, 0x2a09);
	assert_int_equal(fake.n, 0);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

static void test_mode_select_sets_attentions(void **state)
{
	(void)state;
	assert_int_equal(CMD(4, 0, pattern, 0x15, 0x10, 0, 0, 4, 0), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
	fx_swap(R);
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_MODE_PARAMETERS_CHANGED);
	fx_swap(R); /* a failed command changes nothing for the other nexus */
	fails(SENSE_ILLEGAL_REQUEST, 0x2600);
	CMD(4, 0, pattern, 0x15, 0x10, 0, 0, 4, 0);
	works();
	fx_swap(R);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

static void test_request_sense_reports_a_pending_attention_first(void **state)
{
	(void)state;
	dev_attention_set(dev_itl_find(R->nexus, dev_lun_encode(1)),
			  UA_RESERVATIONS_PREEMPTED);
	assert_int_equal(CMD(0, 252, NULL, 0x03, 0, 0, 0, 252, 0), SCSI_GOOD);
	assert_int_equal(fake.n, 0);
	assert_int_equal(R->in[2], SENSE_UNIT_ATTENTION);
	assert_int_equal(get_be16(R->in + 12), ASC_RESERVATIONS_PREEMPTED);
	assert_int_equal(CMD(0, 252, NULL, 0x03, 0, 0, 0, 252, 0), SCSI_GOOD);
	assert_int_equal(fake.n, 1);
}

/* ---- the executor of a command ---- */

static void test_device_server_executes_reservations(void **state)
{
	uint8_t list[24] = { [15] = 0x11 };

	(void)state;
	/* REGISTER, RESERVE write exclusive: the device gets none of them. */
	assert_int_equal(CMD(24, 0, list, 0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0),
			 SCSI_GOOD);
	list[7] = 0x11;
	assert_int_equal(CMD(24, 0, list, 0x5f, 1, 1, 0, 0, 0, 0, 0, 24, 0),
			 SCSI_GOOD);
	assert_int_equal(fake.n, 0);
	fx_swap(R);
	/* The other nexus may read, but neither write nor send vendor specific
	 * commands. */
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 SCSI_GOOD);
	assert_int_equal(fake.n, 1);
	assert_int_equal(CMD(512, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 SCSI_RESERVATION_CONFLICT);
	assert_int_equal(CMD(0, 512, NULL, 0xc1), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(fake.n, 1);
	fx_swap(R);
	assert_int_equal(CMD(512, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 SCSI_GOOD);
}

static void test_commands_to_other_units_are_refused(void **state)
{
	static const uint8_t rows[][2] = { { 0x83, 0 },	  { 0x83, 0x10 },
					   { 0x84, 3 },	  { 0x86, 0 },
					   { 0x87, 0 },	  { 0xa3, 0x0b },
					   { 0xa4, 0x0b } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CMD(0, 0, NULL, rows[i][0], rows[i][1]);
		assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	}
	assert_int_equal(fake.n, 0);
}

/* SAM-5 §5.10: the device server implements ACA. The device does not get NACA,
 * because its ACA would block all initiators. */
static void test_device_server_implements_naca(void **state)
{
	(void)state;
	fails(SENSE_MEDIUM_ERROR, 0x1100);
	CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0x04);
	assert_check(SENSE_MEDIUM_ERROR, 0x1100);
	assert_int_equal(fake.cdb[9], 0);
	works();
	fake.n = 0;
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 SCSI_ACA_ACTIVE);
	assert_int_equal(fake.n, 0);
	R->lun = 0; /* the reservation of another unit */
	CMD(0, 0, NULL, 0x00);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* MMC-6: REPORT KEY and SEND KEY have the operation codes of MAINTENANCE. */
static void test_drive_gets_report_key_and_send_key(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 8, NULL, 0xa4, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0x0a),
			 SCSI_GOOD);
	assert_int_equal(CMD(0, 8, NULL, 0xa3, 0x0b), SCSI_GOOD);
	assert_int_equal(fake.n, 2);
}

static void test_read_only_lets_through_what_is_known_to_read(void **state)
{
	(void)state;
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 SCSI_GOOD);
	CMD(512, 0, pattern, 0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	assert_check(SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	CMD(0, 8, NULL, 0xc1);
	assert_check(SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	/* WRITE BUFFER: microcode, saved (SPC-4 §6.49) */
	CMD(512, 0, pattern, 0x3b, 5, 0, 0, 0, 0, 0, 2, 0);
	assert_check(SENSE_DATA_PROTECT, ASC_WRITE_PROTECTED);
	assert_int_equal(fake.n, 1);
}

/* EXTENDED COPY of another unit cannot use this unit (SPC-4 §6.4). */
static void test_copies_do_not_reach_it(void **state)
{
	const struct dev_lu *real = dev_lu_get(R->server, 1);

	(void)state;
	assert_int_equal(dev_copy_from_refusal(R->nexus, real),
			 ASC_COPY_TARGET_NOT_REACHABLE);
	assert_int_equal(dev_copy_to_refusal(R->nexus, real),
			 ASC_COPY_TARGET_NOT_REACHABLE);
}

/* ---- reports about the unit ---- */

static void test_inquiry_data_of_the_device(void **state)
{
	uint8_t p[96] = { 0, 0, 7, 0x12, 91, 0x79, 0, 2, 'A', 'C', 'M', 'E' };

	(void)state;
	answers(p, sizeof(p));
	fake.resid = 255 - 96;
	assert_int_equal(CMD(0, 255, NULL, 0x12, 0, 0, 0, 255, 0), SCSI_GOOD);
	assert_int_equal(R->in_len, 96);
	p[3] = 0x32; /* with NORMACA */
	p[5] = 0x01; /* without ACC, TPGS, 3PC */
	assert_memory_equal(R->in, p, 96);
	/* A truncated answer stays truncated. */
	fake.resid = 0;
	assert_int_equal(CMD(0, 4, NULL, 0x12, 0, 0, 0, 4, 0), SCSI_GOOD);
	assert_int_equal(R->in_len, 4);
}

static void test_device_server_reports_groups(void **state)
{
	uint8_t p[96] = { 0, 0, 7, 0x12, 91, 0x10 };

	(void)state;
	answers(p, sizeof(p));
	CMD(0, 96, NULL, 0x12, 0, 0, 0, 96, 0);
	assert_int_equal(R->in[5], 0x30);
	fake.n = 0;
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 64),
			 SCSI_GOOD);
	assert_int_equal(fake.n, 0);
	assert_int_equal(get_be16(R->in + 6), 9);
}

static const uint8_t *find_designator(uint8_t kind)
{
	size_t end = (size_t)get_be16(R->in + 2) + 4;

	assert_true(end <= R->in_len);
	for (size_t at = 4; at < end; at += 4 + (size_t)R->in[at + 3]) {
		assert_true(at + 4 + R->in[at + 3] <= end);
		if ((R->in[at + 1] & 0x3f) == kind)
			return R->in + at;
	}
	return NULL;
}

/* SPC-4 §7.8.6: the names of the unit come from the device, the names of the
 * ports from this target. */
static void test_page_83h_names_ports_of_this_target(void **state)
{
	uint8_t p[] = { 0,    0x83, 0, 28,		 /* */
			0x01, 0x03, 0, 8,		 /* NAA of the unit */
			0x50, 1,    2, 3,    4, 5, 6, 7, /* */
			0x61, 0x94, 0, 4, /* the relative port of the device */
			0,    0,    0, 0x44, /* */
			0x53, 0x28, 0, 0 };  /* the name of a target device */

	(void)state;
	answers(p, sizeof(p));
	fake.resid = 4096 - sizeof(p);
	assert_int_equal(CMD(0, 4096, NULL, 0x12, 1, 0x83, 0x10, 0, 0),
			 SCSI_GOOD);
	assert_non_null(find_designator(0x03));
	assert_memory_equal(find_designator(0x03) + 4, p + 8, 8);
	assert_int_equal(find_designator(0x14)[7],
			 1); /* the port of this target */
	assert_non_null(find_designator(0x18));
	assert_memory_equal(find_designator(0x28) + 4, "iqn.t", 6);
	/* The length field is complete, also with a short allocation length. */
	CMD(0, 4, NULL, 0x12, 1, 0x83, 0, 4, 0);
	assert_int_equal(R->in_len, 4);
	assert_true(get_be16(R->in + 2) > 28);
	/* A wrong length does not lead out of the page. */
	p[7] = 200;
	answers(p, sizeof(p));
	assert_int_equal(CMD(0, 4096, NULL, 0x12, 1, 0x83, 0x10, 0, 0),
			 SCSI_GOOD);
	assert_null(find_designator(0x03));
	put_be16(p + 2, 0xffff);
	answers(p, sizeof(p));
	fake.resid = 0;
	assert_int_equal(CMD(0, 4096, NULL, 0x12, 1, 0x83, 0x10, 0, 0),
			 SCSI_GOOD);
}

static void test_refused_pages(void **state)
{
	const uint8_t p[] = { 0, 0, 0, 6, 0x00, 0x80, 0x83, 0x88, 0x8f, 0xb0 };
	const uint8_t want[] = { 0, 0, 0, 4, 0x00, 0x80, 0x83, 0xb0 };

	(void)state;
	answers(p, sizeof(p));
	fake.resid = 4096 - sizeof(p);
	assert_int_equal(CMD(0, 255, NULL, 0x12, 1, 0, 0, 255, 0), SCSI_GOOD);
	assert_int_equal(R->in_len, sizeof(want));
	assert_memory_equal(R->in, want, sizeof(want));
	fake.n = 0;
	CMD(0, 255, NULL, 0x12, 1, 0x88, 0, 255, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(0, 255, NULL, 0x12, 1, 0x8f, 0, 255, 0);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(fake.n, 0);
	fails(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	CMD(0, 255, NULL, 0x12, 1, 0x83, 0, 255, 0); /* a page without names */
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_block_limits_are_those_of_both(void **state)
{
	uint8_t p[64] = { 0, 0xb0, 0, 60 };

	(void)state;
	put_be32(p + 12, 4096);
	answers(p, sizeof(p));
	fake.resid = 4096 - sizeof(p);
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb0, 0, 64, 0), SCSI_GOOD);
	assert_int_equal(get_be32(R->in + 8), 128);
	assert_int_equal(get_be32(R->in + 12), 128);
	put_be32(p + 8, 64);
	put_be32(p + 12, 8);
	answers(p, sizeof(p));
	CMD(0, 64, NULL, 0x12, 1, 0xb0, 0, 64, 0);
	assert_int_equal(get_be32(R->in + 8), 64);
	assert_int_equal(get_be32(R->in + 12), 8);
}

static bool lists(uint8_t op)
{
	for (size_t at = 4; at + 8 <= R->in_len;
	     at += R->in[at + 5] & 2 ? 20 : 8)
		if (R->in[at] == op)
			return true;
	return false;
}

/* SPC-4 §6.35 */
static void test_supported_commands_are_those_of_both(void **state)
{
	uint8_t p[4 + 4 * 8] = { 0 };

	(void)state;
	put_be32(p, sizeof(p) - 4);
	p[4] = 0x28;
	p[12] = 0x83; /* ACCESS CONTROL IN: removed from the list */
	p[20] = 0x5f; /* PERSISTENT RESERVE OUT: replaced by the server's row */
	p[28] = 0xc1;
	answers(p, sizeof(p));
	fake.resid = DEV_PARAM_MAX - DEV_OUR_OPCODES_MAX - sizeof(p);
	assert_int_equal(CMD(0, 8192, NULL, 0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0x20,
			     0),
			 SCSI_GOOD);
	assert_int_equal(get_be32(R->in), R->in_len - 4);
	assert_true(lists(0x28) && lists(0xc1) && lists(0x5f) && lists(0xa0));
	assert_false(lists(0x83));
	assert_false(lists(
		0x2a)); /* a disk of this server has the command, the device does not */
	fake.n = 0; /* a report of one command */
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0c, 3, 0x83, 0, 0, 0, 0, 0,
			     64),
			 SCSI_GOOD);
	assert_int_equal(R->in[1] & 7, 1);
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0c, 3, 0x5f, 0, 1, 0, 0, 0,
			     64),
			 SCSI_GOOD);
	assert_int_equal(R->in[1] & 7, 3);
	/* MAINTENANCE IN: the service action selects who executes it */
	assert_int_equal(CMD(0, 64, NULL, 0xa3, 0x0c, 2, 0xa3, 0, 0x0b, 0, 0, 0,
			     64),
			 SCSI_GOOD);
	assert_int_equal(R->in[1] & 7, 1);
	assert_int_equal(fake.n, 0);
	CMD(0, 64, NULL, 0xa3, 0x0c, 1, 0x28, 0, 0, 0, 0, 0, 64);
	assert_int_equal(fake.n, 1);
}

static void test_block_size_is_learnt(void **state)
{
	uint8_t p[8] = { 0 };

	(void)state;
	put_be32(p + 4, 4096);
	answers(p, sizeof(p));
	CMD(0, 8, NULL, 0x25);
	CMD(0, 8192, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	assert_int_equal(fake.len, 4096);
	put_be32(p + 4, 0xffffffff); /* no device has this block size */
	answers(p, sizeof(p));
	CMD(0, 8, NULL, 0x25);
	CMD(0, 8192, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0);
	assert_int_equal(fake.len, 8192);
}

/* ---- aborts ---- */

static void held_read(void)
{
	fake.holds = true;
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 -1);
}

/* The device owns the memory of an aborted command until the command ends. */
static void test_an_aborted_command_is_waited_for(void **state)
{
	(void)state;
	held_read();
	assert_int_equal(dev_task_abort(&R->task, fx_released), 0);
	assert_false(R->released);
	fake_end(fake.held);
	assert_true(R->released);
	assert_false(R->done);
	dev_task_end(&R->task);
}

static void test_abort_of_a_queued_command_is_immediate(void **state)
{
	(void)state;
	fake.queues = true;
	held_read();
	assert_int_equal(dev_task_abort(&R->task, fx_released), 0);
	assert_true(R->released);
	dev_task_end(&R->task);
	/* The aborted command does not block others: an ORDERED command gets
	 * exclusive access. */
	fake.holds = false;
	fx_begin(R, (const uint8_t[6]){ 0 }, 6, 0, 0);
	R->task.attr = DEV_ATTR_ORDERED;
	assert_int_equal(fx_execute(R, NULL), SCSI_GOOD);
	fx_finish(R);
}

static void test_a_reset_reaches_the_device(void **state)
{
	(void)state;
	dev_lu_interrupt(dev_lu_get(R->server, 1), 0);
	assert_int_equal(fake.resets, 1);
	dev_lu_interrupt(dev_lu_get(R->server, 0), 0); /* a disk: no effect */
	assert_int_equal(fake.resets, 1);
	fx_reset(dev_lu_get(R->server, 1));
	CMD(0, 0, NULL, 0x00);
	assert_check(SENSE_UNIT_ATTENTION, ASC_BUS_DEVICE_RESET);
}

static void test_no_buffer_no_harm(void **state)
{
	(void)state;
	R->fail_buf_after = 1;
	assert_int_equal(CMD(0, 512, NULL, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0),
			 SCSI_BUSY);
	R->fail_buf_after = 1;
	assert_int_equal(CMD(0, 96, NULL, 0x12, 0, 0, 0, 96, 0), SCSI_BUSY);
	R->fail_buf_after = 1;
	assert_int_equal(CMD(0, 255, NULL, 0x12, 1, 0x83, 0, 255), SCSI_BUSY);
	assert_int_equal(fake.n, 0);
}

#define P(name) cmocka_unit_test_setup_teardown(name, open_disk, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(test_read_and_write_are_unchanged),
		P(test_unknown_commands_use_the_expected_length),
		P(test_residuals),
		P(test_a_write_without_a_block_is_not_sent),
		P(test_a_part_of_a_block_is_not_sent),
		P(test_the_wrong_direction_is_not_sent),
		P(test_a_short_parameter_list_is_refused),
		P(test_more_than_the_device_takes_is_refused),
		P(test_lengths_by_cdb),
		P(test_variable_length_cdbs),
		cmocka_unit_test_setup_teardown(test_tapes_have_no_blocks,
						open_tape, close_all),
		P(test_sense_data_are_unchanged),
		P(test_statuses_are_unchanged),
		P(test_ends_reported_by_the_host),
		P(test_the_devices_attention_reaches_all),
		P(test_mode_select_sets_attentions),
		P(test_request_sense_reports_a_pending_attention_first),
		P(test_device_server_executes_reservations),
		P(test_commands_to_other_units_are_refused),
		P(test_device_server_implements_naca),
		cmocka_unit_test_setup_teardown(
			test_drive_gets_report_key_and_send_key, open_cd,
			close_all),
		cmocka_unit_test_setup_teardown(
			test_read_only_lets_through_what_is_known_to_read,
			open_read_only, close_all),
		P(test_copies_do_not_reach_it),
		P(test_inquiry_data_of_the_device),
		cmocka_unit_test_setup_teardown(
			test_device_server_reports_groups, open_groups,
			close_all),
		P(test_page_83h_names_ports_of_this_target),
		P(test_refused_pages),
		P(test_block_limits_are_those_of_both),
		P(test_supported_commands_are_those_of_both),
		P(test_block_size_is_learnt),
		P(test_an_aborted_command_is_waited_for),
		P(test_abort_of_a_queued_command_is_immediate),
		P(test_a_reset_reaches_the_device),
		P(test_no_buffer_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
