/* SPDX-License-Identifier: BSD-2-Clause */
/* crypto_erase_test.c: SANITIZE CRYPTO ERASE (SBC-3 §§4.11, 5.24) on a unit
 * whose backstore encrypts. */
#include "crypt_fixture.h"
#include "dev_messages.h"
#include "device/unit/unit.h"

#define BYTES (FX_BLOCKS * FX_BLOCK)
#define IMMED 0x80
#define AUSE  0x20

static struct bs *hold;
static unsigned unmapped; /* bytes */

static void see(void *arg, const struct bs_req *req)
{
	(void)arg;
	if (req->op == BS_ZERO && (req->flags & BS_MAY_UNMAP))
		unmapped += (unsigned)req->len;
}

static void open_on(struct bs *store)
{
	nmessages = 0;
	R->post = hold_post;
	fx_open(R, store, false);
	fx_take_attentions(R);
	unmapped = 0;
}

static int open_encrypted(void **state)
{
	(void)state;
	memset(R, 0, sizeof(*R));
	open_on(fx_encrypted(bs_trace_new(fx_ram(R), see, NULL)));
	return 0;
}

/* open_held opens a unit whose requests to the backstore wait. */
static void open_held(void **state)
{
	close_fixture(state);
	memset(R, 0, sizeof(*R));
	hold = bs_hold_new(fx_ram(R));
	open_on(fx_encrypted(hold));
}

static uint8_t data[FX_BLOCK];

static void write_data(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 5 + 1);
	assert_int_equal(CMD(FX_BLOCK, 0, data, 0x2a, 0, 0, 0, 0, 7, 0, 0, 1),
			 SCSI_GOOD);
	assert_memory_not_equal(R->medium + 7 * FX_BLOCK, data, FX_BLOCK);
}

static void read_data(void)
{
	assert_int_equal(CMD(0, FX_BLOCK, NULL, 0x28, 0, 0, 0, 0, 7, 0, 0, 1),
			 SCSI_GOOD);
}

/* erase runs CRYPTO ERASE to its end; with IMMED the command ends before the
 * operation. */
static int erase(uint8_t flags)
{
	const uint8_t cdb[16] = { 0x48, (uint8_t)(flags | 0x03) };

	fx_begin(R, cdb, 16, 0, 0);
	if (fx_execute(R, NULL) == -1) {
		assert_false(flags & IMMED);
		run_out();
		assert_true(R->done);
	}
	return fx_finish(R);
}

static void test_data_are_gone_and_blocks_given_back(void **state)
{
	static const uint8_t zeros[FX_BLOCK];

	(void)state;
	write_data();
	read_data();
	assert_memory_equal(R->in, data, FX_BLOCK);
	assert_int_equal(erase(0), SCSI_GOOD);
	assert_int_equal(crypt_fixture.changes, 2);
	assert_int_equal(unmapped, BYTES);
	read_data(); /* WACEREQ 01b; LBPRZ */
	assert_memory_equal(R->in, zeros, FX_BLOCK);
	write_data();
	read_data();
	assert_memory_equal(R->in, data, FX_BLOCK);
}

/* The unit does not write to a backstore that cannot unmap: the old data are
 * unreadable under the new key. */
static void test_store_without_unmap(void **state)
{
	struct bs *ram;

	close_fixture(state);
	memset(R, 0, sizeof(*R));
	ram = fx_ram(R);
	ram->caps &= ~BS_CAP_UNMAP;
	open_on(fx_encrypted(bs_trace_new(ram, see, NULL)));
	write_data();
	memcpy(R->in, R->medium + 7 * FX_BLOCK, FX_BLOCK);
	assert_int_equal(erase(IMMED), SCSI_GOOD);
	run_out();
	assert_int_equal(crypt_fixture.changes, 2);
	assert_int_equal(unmapped, 0);
	read_data();
	assert_memory_not_equal(R->in, data, FX_BLOCK);
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb1, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[7], 0x10); /* WACEREQ 01b, WABEREQ 00b */
}

static void erase_done(struct dev_task *t)
{
	assert_int_equal(t->status, SCSI_GOOD);
}

/* The key changes after all commands that use the medium have ended; later
 * commands end with the sense data of a sanitize in progress (SBC-3 §4.11.2). */
static void test_waits_for_commands_in_progress(void **state)
{
	const uint8_t write[16] = { 0x2a, 0, 0, 0, 0, 7, 0, 0, 1 };
	static struct dev_task other;

	open_held(state);
	fx_begin(R, write, 16, FX_BLOCK, 0);
	assert_int_equal(fx_execute(R, data), -1);
	assert_int_equal(bs_hold_waiting(hold), 1);
	/* a second command beside that of the fixture */
	other.nexus = R->other;
	other.cdb[0] = 0x48;
	other.cdb[1] = IMMED | 0x03;
	other.cdb_len = 16;
	assert_int_equal(dev_task_begin(&other), 0);
	other.done = erase_done;
	dev_task_execute(&other);
	assert_int_equal(other.status, SCSI_GOOD);
	dev_task_end(&other);
	run_out();
	assert_int_equal(crypt_fixture.changes, 1);
	crypt_fixture.answer_later = true;
	bs_hold_release(hold, 1);
	run_out();
	assert_true(R->done);
	fx_finish(R);
	assert_int_equal(crypt_fixture.changes, 2);
	CMD(0, FX_BLOCK, NULL, 0x28, 0, 0, 0, 0, 7, 0, 0, 1);
	assert_check(SENSE_NOT_READY, ASC_SANITIZE_IN_PROGRESS);
	assert_true(R->sense.has_progress);
	crypt_answer(crypt_fixture.later);
	run_out();
	bs_hold_release(hold, 1); /* zeros */
	run_out();
	bs_hold_release(hold, 1); /* flush */
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* GOOD only after the new key is saved; if the key cannot be saved, the data
 * stay as before. */
static void test_key_that_cannot_be_kept(void **state)
{
	(void)state;
	write_data();
	crypt_fixture.lost = true;
	assert_int_equal(erase(AUSE), SCSI_CHECK_CONDITION);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	CMD(0, FX_BLOCK, NULL, 0x28, 0, 0, 0, 0, 7, 0, 0, 1);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	assert_int_equal(unmapped, 0);
	/* AUSE: EXIT FAILURE MODE succeeds, and no data are lost. */
	assert_int_equal(CMD(0, 0, NULL, 0x48, 0x1f), SCSI_GOOD);
	read_data();
	assert_memory_equal(R->in, data, FX_BLOCK);
	assert_int_equal(erase(0), SCSI_CHECK_CONDITION);
	assert_check(SENSE_MEDIUM_ERROR, ASC_SANITIZE_FAILED);
	CMD(0, 0, NULL, 0x48, 0x1f);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	crypt_fixture.lost = false;
	assert_int_equal(erase(0), SCSI_GOOD);
	assert_int_equal(CMD(0, 0, NULL, 0x00), SCSI_GOOD);
}

/* SBC-3 §6.6.2, SPC-4 §6.35: only a unit that encrypts reports the command. */
static void test_units_that_do_not_encrypt(void **state)
{
	const uint8_t ask[16] = { 0xa3, 0x0c, 0x02, 0x48, 0, 0x03, 0, 0, 0, 64 };

	(void)state;
	assert_int_equal(fx_run(R, ask, 12, NULL, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[1] & 7, 3); /* supported */
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb1, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[7], 0x50); /* WABEREQ, WACEREQ 01b */
	close_fixture(state);
	open_fixture(state);
	assert_int_equal(fx_run(R, ask, 12, NULL, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[1] & 7, 1); /* not supported */
	assert_int_equal(CMD(0, 64, NULL, 0x12, 1, 0xb1, 0, 64), SCSI_GOOD);
	assert_int_equal(R->in[7], 0x40);
	CMD(0, 0, NULL, 0x48, 0x03);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

static void test_has_no_parameter_list(void **state)
{
	(void)state;
	CMD(8, 0, data, 0x48, 0x03, 0, 0, 0, 0, 0, 0, 8);
	assert_check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(R->sense.field, 7);
	assert_int_equal(crypt_fixture.changes, 1);
}

#define C(name) \
 cmocka_unit_test_setup_teardown(name, open_encrypted, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(test_data_are_gone_and_blocks_given_back),
		C(test_store_without_unmap),
		C(test_waits_for_commands_in_progress),
		C(test_key_that_cannot_be_kept),
		C(test_units_that_do_not_encrypt),
		C(test_has_no_parameter_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
