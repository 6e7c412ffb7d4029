/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit_test.c: requests of a unit (iser/unit.h) against a disk in memory
 * (unit_disk.h); another initiator changes blocks in between.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_disk.h"

/* ---- opening ---- */

static void test_open_properties_sbc3(void **state)
{
	struct iser_unit *u = open_unit();
	struct iser_unit_info i;

	(void)state;
	iser_unit_get_info(u, &i);
	assert_int_equal(i.bytes, SIZE);
	assert_int_equal(i.block_size, BLOCK);
	assert_int_equal(i.physical_block_size, 8 * BLOCK);
	assert_int_equal(i.max_transfer, 4 * BLOCK);
	assert_int_equal(i.max_compare_and_write, 2 * BLOCK);
	assert_true(i.has_fua && i.thin && i.reads_zeros && i.can_trim);
	assert_true(i.can_zero && i.atomic_partial && !i.read_only);
	assert_string_equal(i.vendor, "ACME");
	assert_string_equal(i.product, "disk");
	assert_string_equal(i.revision, "1.0");
	assert_ptr_equal(iser_unit_session(u), &session);
	/* again, with other answers */
	disk.mode = 0x80;
	disk.compare = 0;
	assert_int_equal(iser_unit_refresh(u), 0);
	iser_unit_get_info(u, &i);
	assert_true(i.read_only && !i.has_fua && !i.atomic_partial);
	assert_false(i.can_trim);
	iser_unit_close(u);
}

static void test_open_old_unit(void **state)
{
	struct iser_unit *u;
	struct iser_unit_info i;

	(void)state;
	disk.no_16 = true;
	disk.has_limits = disk.unmap = disk.same = false;
	u = open_unit();
	iser_unit_get_info(u, &i);
	assert_int_equal(i.bytes, SIZE);
	assert_int_equal(i.max_transfer, 1 << 20);
	assert_false(i.thin || i.can_trim || i.atomic_partial);
	iser_unit_close(u);
}

static void test_open_failures(void **state)
{
	static const struct {
		uint8_t type;
		int err;
	} rows[] = {
		{ 0x7f, ISER_E_NOT_FOUND },   /* no such LUN */
		{ 0x20, ISER_E_NOT_FOUND },   /* not connected */
		{ 0x01, ISER_E_UNSUPPORTED }, /* a tape */
		{ 0x0d, ISER_E_UNSUPPORTED },
	};
	int err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		disk.type = rows[i].type;
		assert_null(iser_unit_open(&session, 3, &err));
		assert_int_equal(err, rows[i].err);
		if (err == ISER_E_UNSUPPORTED)
			assert_non_null(strstr(iser_message(ctx),
					       "it has no capacity"));
	}
	disk.type = 0;
	disk.fail_opcode = SCSI_SERVICE_ACTION_IN_16;
	assert_null(iser_unit_open(&session, 3, &err));
	assert_int_equal(err, ISER_E_SCSI);
	assert_non_null(strstr(iser_message(ctx), "medium error"));
	assert_null(iser_unit_open(&session, 16384, &err));
	assert_int_equal(err, ISER_E_INVALID);
}

/* SBC-3 §5.15.2, §5.16.2: the reason names what the unit reports. */
static void test_open_impossible_capacity(void **state)
{
	int err;

	(void)state;
	disk.block = 520;
	for (unsigned old = 0; old < 2; old++) {
		disk.no_16 = old;
		assert_null(iser_unit_open(&session, 3, &err));
		assert_int_equal(err, ISER_E_PROTOCOL);
		assert_non_null(strstr(iser_message(ctx),
				       "the target reports blocks of 520 "));
	}
	disk.block = 0;
	disk.last = UINT32_MAX;
	assert_null(iser_unit_open(&session, 3, &err));
	assert_int_equal(err, ISER_E_PROTOCOL);
	assert_non_null(strstr(iser_message(ctx), "FFFFFFFFh"));
}

/* Opens a unit with this NAA at a LUN of another target and compares it with u. */
static bool is_same(const struct iser_unit *u, const char *target, int lun,
		    uint64_t naa)
{
	struct iser_session other = { .ctx = ctx };
	struct iser_unit *o;
	bool same;
	int err;

	strcpy(other.url.target, target);
	disk.session = &other;
	disk.lun = lun;
	disk.naa = naa;
	o = iser_unit_open(&other, lun, &err);
	assert_non_null(o);
	same = iser_unit_is_same(u, o);
	assert_int_equal(iser_unit_is_same(o, u), same);
	iser_unit_close(o);
	lib_guard_fini(&other);
	disk.session = &session;
	disk.lun = 3;
	return same;
}

/* SPC-4 §7.8.6: several target names and LUNs of one unit. */
static void test_is_same_unit(void **state)
{
	const uint64_t naa = 0x500140512345678a, local = 0x3a1b2c3d4e5f6071;
	struct iser_unit *u = open_unit();

	(void)state;
	/* no designators: the place */
	assert_true(is_same(u, "IQN.T", 3, 0));
	assert_false(is_same(u, "iqn.t", 4, 0));
	assert_false(is_same(u, "iqn.u", 3, 0));
	assert_false(is_same(u, "iqn.u", 3, naa));
	for (unsigned i = 0; i < 2; i++) {
		disk.naa = i ? local : naa;
		lib_guard_fini(&session);
		assert_int_equal(iser_unit_refresh(u), 0);
		assert_true(is_same(u, "iqn.u", 7, i ? local : naa));
		assert_false(is_same(u, "iqn.u", 3, naa + 1));
	}
	iser_unit_close(u);
	/* what targets make of numbers names no unit */
	disk.naa = 0x3000000000000001;
	lib_guard_fini(&session);
	u = open_unit();
	assert_false(is_same(u, "iqn.u", 3, disk.naa));
	iser_unit_close(u);
}

static void test_refused_stays_refused(void **state)
{
	struct iser_unit_info i;
	struct iser_unit *u;

	(void)state;
	disk.same = false;
	u = open_unit();
	for (unsigned n = 0; n < 2; n++) {
		assert_int_equal(iser_pzero(u, 0, SIZE, 0), 0);
		assert_int_equal(iser_unit_refresh(u), 0);
		iser_unit_get_info(u, &i);
		assert_false(i.can_zero);
	}
	assert_int_equal(disk.count[SCSI_WRITE_SAME_16], 1);
	iser_unit_close(u);
}

static void test_open_drive_mmc6(void **state)
{
	struct iser_unit *u;
	struct iser_unit_info i;

	(void)state;
	disk.type = 5;
	u = open_unit();
	iser_unit_get_info(u, &i);
	assert_true(i.read_only && !i.can_trim && !i.can_zero);
	assert_int_equal(disk.count[SCSI_SERVICE_ACTION_IN_16], 0);
	assert_int_equal(iser_pflush(u), 0);
	assert_int_equal(disk.count[SCSI_SYNCHRONIZE_CACHE_10], 0);
	iser_unit_close(u);
}

static void on_open(void *arg, struct iser_unit *u, int err)
{
	(void)u;
	*(int *)arg = err;
}

static void test_close_while_opening(void **state)
{
	int result = 77, err;
	struct iser_unit *u =
		iser_unit_open_start(&session, 3, on_open, &result, &err);

	(void)state;
	assert_int_equal(iser_unit_refresh_start(u, on_open, &result),
			 ISER_E_INVALID);
	iser_unit_close(u);
	assert_int_equal(result, 77);
	iser_unit_close(NULL);
}

/* ---- bytes ---- */

/* One random request of any offset and length, compared with a copy. */
static void random_request(struct iser_unit *u, uint8_t *model)
{
	static uint8_t buf[SIZE];
	uint64_t at = rnd(SIZE), len = rnd(2) ? rnd(1500) : rnd(SIZE);
	unsigned flags = rnd(4);
	uint64_t first, last;

	len = MIN(len, SIZE - at);
	switch (rnd(4)) {
	case 0:
		memset(buf, 0xee, sizeof(buf));
		assert_int_equal(iser_pread(u, buf, len, at), 0);
		assert_memory_equal(buf, model + at, len);
		for (uint64_t i = len; i < SIZE; i++)
			assert_int_equal(buf[i], 0xee);
		return;
	case 1:
		for (uint64_t i = 0; i < len; i++)
			buf[i] = (uint8_t)rnd(256);
		assert_int_equal(iser_pwrite(u, buf, len, at, flags & 1), 0);
		memcpy(model + at, buf, len);
		return;
	case 2:
		assert_int_equal(iser_pzero(u, at, len, flags), 0);
		memset(model + at, 0, len);
		return;
	default:
		if (!u->info.can_trim)
			return;
		assert_int_equal(iser_ptrim(u, at, len, flags & 1), 0);
		first = (at + BLOCK - 1) / BLOCK;
		last = (at + len) / BLOCK;
		for (; first < last; first++)
			memset(model + first * BLOCK, 0, BLOCK);
	}
}

static void run_random(unsigned n)
{
	static uint8_t model[SIZE];
	struct iser_unit *u = open_unit();

	memcpy(model, disk.data, SIZE);
	for (unsigned i = 0; i < n; i++) {
		random_request(u, model);
		assert_memory_equal(model, disk.data, SIZE);
	}
	iser_unit_close(u);
}

static void test_random_requests(void **state)
{
	(void)state;
	run_random(3000);
	assert_true(disk.count[SCSI_COMPARE_AND_WRITE] > 100);
	assert_true(disk.unmaps > 50);
	assert_int_equal(disk.count[SCSI_SYNCHRONIZE_CACHE_10] > 0, 1);
}

static void test_random_requests_of_an_old_unit(void **state)
{
	(void)state;
	disk.same = disk.unmap = disk.has_limits = disk.status = false;
	disk.transfer = 0;
	disk.compare = 0;
	disk.mode = 0;
	run_random(1500);
	assert_int_equal(disk.count[SCSI_WRITE_SAME_16], 1);
	assert_int_equal(disk.count[SCSI_COMPARE_AND_WRITE], 0);
}

/* Every way of a vector to cut the data. */
static void test_vectors(void **state)
{
	static uint8_t buf[SIZE], back[SIZE];
	struct iser_unit *u = open_unit();
	struct iovec iov[300];

	(void)state;
	for (unsigned n = 1; n <= 300; n += 23) {
		struct iser_request r = {
			.op = ISER_OP_WRITE, .offset = n, .iov = iov, .niov = n
		};

		for (unsigned i = 0; i < n; i++) {
			size_t len = n == 1 ? 5000 : rnd(90);

			iov[i] = (struct iovec){ buf + r.length, len };
			memset(iov[i].iov_base, (int)rnd(256), len);
			r.length += len;
		}
		assert_int_equal(iser_unit_run(u, &r), 0);
		assert_memory_equal(disk.data + n, buf, r.length);
		memcpy(back, buf, r.length);
		memset(buf, 0, sizeof(buf));
		r.op = ISER_OP_READ;
		assert_int_equal(iser_unit_run(u, &r), 0);
		assert_memory_equal(back, buf, r.length);
	}
	iser_unit_close(u);
}

/* ---- requests in progress together ---- */

#define TOGETHER 40

static unsigned ended;

static void count_end(struct iser_request *r)
{
	assert_int_equal(r->err, 0);
	ended++;
}

/* Pieces of a few bytes, several in each block, are written together; no piece is
 * lost, whatever the order. */
static void run_together(void)
{
	static uint8_t model[SIZE], buf[SIZE];
	struct iser_unit *u = open_unit();
	struct iser_request r[TOGETHER];
	struct iovec iov[TOGETHER];

	for (unsigned round = 0; round < 60; round++) {
		uint64_t at = rnd(BLOCK);

		memcpy(model, disk.data, SIZE);
		ended = 0;
		for (unsigned i = 0; i < TOGETHER; i++) {
			size_t len = 1 + (rnd(5) ? rnd(200) : rnd(1600));

			memset(buf + at, (int)rnd(256), len);
			iov[i] = (struct iovec){ buf + at, len };
			r[i] = (struct iser_request){
				.op = rnd(3) ? ISER_OP_WRITE : ISER_OP_ZERO,
				.offset = at,
				.length = len,
				.iov = &iov[i],
				.niov = 1,
				.done = count_end,
			};
			if (r[i].op == ISER_OP_ZERO)
				memset(buf + at, 0, len);
			memcpy(model + at, buf + at, len);
			iser_unit_submit(u, &r[i]);
			at += len;
		}
		assert_true(at <= SIZE);
		while (ended < TOGETHER)
			assert_int_equal(iser_service(ctx, -1), 0);
		assert_memory_equal(model, disk.data, SIZE);
	}
	assert_int_equal(u->partials, 0);
	iser_unit_close(u);
}

static void test_together(void **state)
{
	(void)state;
	disk.transfer = 64;
	run_together();
}

static void test_together_without_compare_and_write(void **state)
{
	(void)state;
	disk.compare = 0;
	disk.transfer = 64;
	run_together();
}

/* Byte 0 of each block belongs to another initiator. */
static uint8_t others[BLOCKS];

static void other_initiator(const struct iser_io *io)
{
	unsigned b = rnd(4);

	if (io->cdb[0] != SCSI_READ_10 && rnd(2))
		disk.data[b * BLOCK] = ++others[b];
}

static void test_partial_block_keeps_bytes_of_another_initiator(void **state)
{
	struct iser_unit *u = open_unit();
	uint8_t byte;

	(void)state;
	for (unsigned i = 0; i < BLOCKS; i++)
		others[i] = disk.data[i * BLOCK];
	disk.before = other_initiator;
	for (unsigned i = 0; i < 500; i++) {
		unsigned b = rnd(4), at = b * BLOCK + 1 + rnd(BLOCK - 1);

		byte = (uint8_t)i;
		assert_int_equal(iser_pwrite(u, &byte, 1, at, 0), 0);
		assert_int_equal(disk.data[at], byte);
		for (b = 0; b < 4; b++)
			assert_int_equal(disk.data[b * BLOCK], others[b]);
	}
	assert_true(disk.count[SCSI_COMPARE_AND_WRITE] > 550);
	iser_unit_close(u);
}

/* ---- failures ---- */

static void change_block(const struct iser_io *io)
{
	if (io->cdb[0] == SCSI_COMPARE_AND_WRITE)
		disk.data[0]++;
}

/* Another initiator always changes the block in between. */
static void test_partial_block_that_always_changes(void **state)
{
	struct iser_unit *u = open_unit();

	(void)state;
	disk.before = change_block;
	assert_int_equal(iser_pwrite(u, "a", 1, 5, 0), ISER_E_SCSI);
	assert_int_equal(disk.count[SCSI_COMPARE_AND_WRITE], 9);
	session.url.retry = 1;
	assert_int_equal(iser_pwrite(u, "a", 1, 5, 0), ISER_E_SCSI);
	assert_true(disk.count[SCSI_COMPARE_AND_WRITE] > 100);
	iser_unit_close(u);
}

static void test_compare_and_write_sbc3_5_2(void **state)
{
	struct iser_unit *u = open_unit();
	uint8_t old[2 * BLOCK], new[2 * BLOCK];
	struct iovec iov[2] = { { old, sizeof(old) }, { new, sizeof(new) } };
	struct iser_request r = { .op = ISER_OP_COMPARE_AND_WRITE,
				  .offset = BLOCK,
				  .length = sizeof(old),
				  .iov = iov,
				  .niov = 2 };

	(void)state;
	memcpy(old, disk.data + BLOCK, sizeof(old));
	memset(new, 7, sizeof(new));
	old[700] ^= 1;
	assert_int_equal(iser_unit_run(u, &r), ISER_E_MISCOMPARE);
	assert_int_equal(r.miscompare, 700);
	assert_int_equal(r.sense_key, SENSE_MISCOMPARE);
	assert_int_equal(iser_request_errno(&r), EILSEQ);
	old[700] ^= 1;
	assert_int_equal(
		iser_pcompare_and_write(u, old, new, sizeof(old), BLOCK, 0), 0);
	assert_memory_equal(disk.data + BLOCK, new, sizeof(new));
	/* not whole blocks; too long */
	assert_int_equal(iser_pcompare_and_write(u, old, new, sizeof(old), 1,
						 0),
			 ISER_E_INVALID);
	r.length = 3 * BLOCK;
	assert_int_equal(iser_unit_run(u, &r), ISER_E_INVALID);
	disk.compare = 0;
	assert_int_equal(iser_unit_refresh(u), 0);
	assert_int_equal(iser_pcompare_and_write(u, old, new, sizeof(old),
						 BLOCK, 0),
			 ISER_E_UNSUPPORTED);
	iser_unit_close(u);
}

static void test_invalid_requests(void **state)
{
	struct iser_unit *u = open_unit();
	uint8_t buf[16];
	struct iovec iov = { buf, sizeof(buf) };
	const struct iser_request rows[] = {
		{ .op = (enum iser_op)0 },
		{ .op = (enum iser_op)8 },
		{ .op = ISER_OP_READ, .length = 1 },
		{ .op = ISER_OP_READ, .length = 15, .iov = &iov, .niov = 1 },
		{ .op = ISER_OP_READ,
		  .offset = SIZE - 15,
		  .length = 16,
		  .iov = &iov,
		  .niov = 1 },
		{ .op = ISER_OP_READ,
		  .offset = UINT64_MAX,
		  .length = 16,
		  .iov = &iov,
		  .niov = 1 },
		{ .op = ISER_OP_ZERO, .offset = 1, .length = UINT64_MAX },
		{ .op = ISER_OP_ZERO, .offset = SIZE, .length = 1 },
		{ .op = ISER_OP_FLUSH, .flags = 8 },
		{ .op = ISER_OP_FLUSH, .reserved = { [3] = 1 } },
		{ .op = ISER_OP_EXTENTS, .length = 1 },
		{ .op = ISER_OP_READ, .niov = 1001 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct iser_request r = rows[i];

		assert_int_equal(iser_unit_run(u, &r), ISER_E_INVALID);
		assert_int_equal(iser_request_errno(&r), EINVAL);
	}
	/* nothing to do */
	assert_int_equal(iser_pread(u, NULL, 0, SIZE), 0);
	assert_int_equal(iser_ptrim(u, 1, 2 * BLOCK - 2, 0), 0);
	assert_int_equal(disk.count[SCSI_UNMAP], 0);
	iser_unit_close(u);
}

static void test_failed_command(void **state)
{
	static uint8_t buf[SIZE];
	struct iser_unit *u = open_unit();
	struct iser_request r = { .op = ISER_OP_READ,
				  .length = SIZE,
				  .iov = &(struct iovec){ buf, SIZE },
				  .niov = 1 };
	char text[240], longer[20];

	(void)state;
	disk.fail_opcode = SCSI_READ_10;
	assert_int_equal(iser_unit_run(u, &r), ISER_E_SCSI);
	assert_int_equal(r.opcode, SCSI_READ_10);
	assert_int_equal(r.asc, ASC_UNRECOVERED_READ_ERROR);
	assert_int_equal(iser_request_errno(&r), EIO);
	/* no command followed the first failure, but for those in progress */
	assert_true(disk.count[SCSI_READ_10] <= 8);
	iser_request_describe(&r, text, sizeof(text));
	assert_string_equal(text, "READ of 32768 bytes at 0: the command "
				  "failed: command 28h ended with CHECK "
				  "CONDITION: medium error, unrecovered read "
				  "error (11h/00h)");
	iser_request_describe(&r, longer, sizeof(longer));
	assert_int_equal(strlen(longer), sizeof(longer) - 1);
	/* a partial block cannot be read */
	assert_int_equal(iser_pwrite(u, buf, 5, 5, 0), ISER_E_SCSI);
	assert_int_equal(disk.count[SCSI_COMPARE_AND_WRITE], 0);
	disk.fail_opcode = 0;
	assert_int_equal(iser_pwrite(u, buf, 5, 5, 0), 0);
	iser_unit_close(u);
}

/* What the command of a request knows more than its error. */
static void test_reason_of_an_error(void **state)
{
	struct iser_unit *u = open_unit();
	uint8_t buf[BLOCK];
	struct iovec iov = { buf, BLOCK };
	struct iser_request r = {
		.op = ISER_OP_READ, .length = BLOCK, .iov = &iov, .niov = 1
	};
	char text[240];

	(void)state;
	disk.fail_opcode = SCSI_READ_10;
	disk.fail_err = ISER_E_SHORT;
	assert_int_equal(iser_unit_run(u, &r), ISER_E_SHORT);
	iser_request_describe(&r, text, sizeof(text));
	assert_string_equal(text, "READ of 512 bytes at 0: short transfer: the "
				  "target reported success for 100 of 512 "
				  "bytes");
	disk.fail_err = ISER_E_PROTOCOL;
	assert_int_equal(iser_unit_run(u, &r), ISER_E_PROTOCOL);
	iser_request_describe(&r, text, sizeof(text));
	assert_non_null(strstr(text, "protocol error: "));
	assert_non_null(strstr(text, err_str(ERR_OVERFLOW)));
	iser_unit_close(u);
}

/* A COMPARE AND WRITE whose connection is lost may be executed or not. */
static void test_partial_block_after_a_loss(void **state)
{
	struct iser_unit *u = open_unit();

	(void)state;
	disk.fail_opcode = SCSI_COMPARE_AND_WRITE;
	disk.lose = 1;
	assert_int_equal(iser_pwrite(u, "abc", 3, 10, 0), ISER_E_CLOSED);
	session.url.reconnect = 2;
	session.state = SESSION_AWAY; /* it logs in again */
	disk.lose = 3;
	assert_int_equal(iser_pwrite(u, "abc", 3, 10, 0), ISER_E_CLOSED);
	/* the block is read again */
	disk.lose = 1;
	disk.count[SCSI_READ_10] = 0;
	assert_int_equal(iser_pwrite(u, "abc", 3, 10, 0), ISER_E_SCSI);
	assert_int_equal(disk.count[SCSI_READ_10], 2);
	iser_unit_close(u);
	session.state = SESSION_CONNECTING;
}

/* The unit reports the limit and does not support the command. */
static void test_compare_and_write_not_supported_after_all(void **state)
{
	struct iser_unit *u = open_unit();
	struct iser_unit_info i;

	(void)state;
	disk.compare = 0;
	assert_int_equal(iser_pwrite(u, "abc", 3, 510, 0), 0);
	assert_memory_equal(disk.data + 510, "abc", 3);
	iser_unit_get_info(u, &i);
	assert_false(i.atomic_partial);
	assert_int_equal(disk.count[SCSI_COMPARE_AND_WRITE], 1);
	iser_unit_close(u);
}

static void test_fast_zero(void **state)
{
	struct iser_unit *u = open_unit();

	(void)state;
	assert_int_equal(iser_pzero(u, 0, SIZE, ISER_OP_FAST), 0);
	disk.same = false;
	assert_int_equal(iser_pzero(u, 0, SIZE, ISER_OP_FAST),
			 ISER_E_UNSUPPORTED);
	assert_int_equal(disk.count[SCSI_WRITE_10], 0);
	assert_int_equal(iser_pzero(u, 0, SIZE, ISER_OP_FAST),
			 ISER_E_UNSUPPORTED);
	assert_int_equal(iser_pzero(u, 0, SIZE, 0), 0);
	assert_int_equal(disk.count[SCSI_WRITE_10], BLOCKS / 4);
	iser_unit_close(u);
}

/* ---- extents ---- */

static void check_extents(struct iser_unit *u, uint64_t at, uint64_t len)
{
	struct iser_range r[BLOCKS];
	int n = iser_pextents(u, at, len, r, BLOCKS);
	uint64_t next = at;

	assert_true(n >= (len > 0));
	for (int i = 0; i < n; i++) {
		assert_int_equal(r[i].offset, next);
		assert_true(r[i].length > 0);
		assert_true(i == 0 || r[i].mapped != r[i - 1].mapped);
		assert_int_equal(r[i].zeros, !r[i].mapped);
		for (uint64_t b = next; b < next + r[i].length; b++)
			assert_int_equal(disk.mapped[b / BLOCK], r[i].mapped);
		next += r[i].length;
	}
	assert_int_equal(next, at + len);
}

static void test_extents_sbc3_5_4(void **state)
{
	struct iser_unit *u = open_unit();
	struct iser_range r[2];

	(void)state;
	for (unsigned i = 0; i < BLOCKS; i++)
		disk.mapped[i] = rnd(3) == 0;
	for (unsigned i = 0; i < 300; i++) {
		uint64_t at = rnd(SIZE);

		check_extents(u, at, rnd(SIZE - (unsigned)at + 1));
	}
	/* room for fewer ranges than there are */
	assert_int_equal(iser_pextents(u, 7, SIZE - 7, r, 2), 2);
	assert_int_equal(r[0].offset, 7);
	assert_int_equal(r[1].offset, 7 + r[0].length);
	/* not supported: all blocks count as mapped */
	disk.same = false;
	assert_int_equal(iser_pextents(u, 7, SIZE - 7, r, 2), 1);
	assert_true(r[0].mapped);
	assert_int_equal(r[0].length, SIZE - 7);
	iser_unit_close(u);
}

/* ---- calls of other threads ---- */

static void on_call(struct iser_call *c)
{
	++*(unsigned *)c->arg;
}

static void test_call(void **state)
{
	unsigned calls = 0;
	struct iser_call c = { .run = on_call, .arg = &calls };

	(void)state;
	iser_call(ctx, &c);
	assert_int_equal(calls, 0);
	for (int i = 0; i < 10 && !calls; i++)
		iser_service(ctx, 1000);
	assert_int_equal(calls, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, new_disk, free_disk)
	const struct CMUnitTest tests[] = {
		TEST(test_open_properties_sbc3),
		TEST(test_open_old_unit),
		TEST(test_open_failures),
		TEST(test_open_impossible_capacity),
		TEST(test_refused_stays_refused),
		TEST(test_is_same_unit),
		TEST(test_open_drive_mmc6),
		TEST(test_close_while_opening),
		TEST(test_random_requests),
		TEST(test_random_requests_of_an_old_unit),
		TEST(test_vectors),
		TEST(test_together),
		TEST(test_together_without_compare_and_write),
		TEST(test_partial_block_keeps_bytes_of_another_initiator),
		TEST(test_partial_block_that_always_changes),
		TEST(test_compare_and_write_sbc3_5_2),
		TEST(test_invalid_requests),
		TEST(test_failed_command),
		TEST(test_reason_of_an_error),
		TEST(test_partial_block_after_a_loss),
		TEST(test_compare_and_write_not_supported_after_all),
		TEST(test_fast_zero),
		TEST(test_extents_sbc3_5_4),
		TEST(test_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
