/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * edtl_test.c: the data that the initiator expects (direction, EDTL) against
 * the data of the CDB, generated from the command table: each row with the
 * wrong direction, with both directions, and with EDTLs of 0, one byte, parts
 * of a block, fewer blocks, one byte less and one byte more. GOOD means that
 * the unit used all data sent, and that the residual is correct (RFC 7143
 * §11.4.5).
 */
#include "device/unit/command.h"
#include "table_fixture.h"

#define LBA   8u
#define ASK   2u /* blocks of each command */
#define ROOM  (64u << 10)
#define BLOCK (type == DEV_CD ? 2048u : FX_BLOCK)

static uint8_t data[ROOM];

/* put_blocks writes LBA and number of blocks to the CDB of a block command. */
static void put_blocks(const struct dev_command *c, uint8_t *cdb)
{
	switch (c->len) {
	case 6:
		cdb[3] = LBA;
		cdb[4] = ASK;
		break;
	case 10:
		cdb[5] = LBA;
		cdb[8] = ASK;
		break;
	case 12:
		cdb[5] = LBA;
		cdb[9] = ASK;
		break;
	case 16:
		cdb[9] = LBA;
		cdb[13] = ASK;
		break;
	default:
		cdb[19] = LBA;
		if (c->flags & CMD_TAGS)
			cdb[23] = LBA; /* expected reference tag */
		cdb[31] = ASK;
	}
}

static bool is_verify(const struct dev_command *c)
{
	return strncmp(c->name, "VERIFY", 6) == 0;
}

static void read_back(uint8_t *p)
{
	const uint8_t cdb[CDB_MAX] = { SCSI_READ_10, [5] = LBA, [8] = 4 };

	assert_int_equal(fx_run(R, cdb, CDB_MAX, NULL, 0, 4 * FX_BLOCK),
			 SCSI_GOOD);
	memcpy(p, R->in, 4 * FX_BLOCK);
}

/* make builds a CDB that transfers data if the row can transfer any, with its
 * data in `data`. */
static void make(const struct dev_command *c, uint8_t cdb[CDB_MAX])
{
	const struct template *m = template_of(c);

	good(c, m, cdb);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(0x20 + i / 7);
	memcpy(data, list, sizeof(list));
	if (m && !m->list && m->len_bytes)
		put_number(cdb, m->len_at, m->len_bytes, 96);
	if (m)
		return;
	for (unsigned i = 0; i < LIST_MAX; i++)
		data[i] = (uint8_t)(0x20 + i / 7);
	if (c->flags & (CMD_TOUCHES | CMD_ALONE) && c->dir != DIR_NONE)
		put_blocks(c, cdb);
	if (is_verify(c)) { /* BYTCHK 01b, compared with the current blocks */
		cdb[c->len == 32 ? 10 : 1] |= 0x02;
		read_back(data);
	}
}

/* Each command gets a new unit. */
static int end_of(const struct dev_command *c, uint32_t out, uint32_t in)
{
	uint8_t cdb[CDB_MAX];

	fresh();
	make(c, cdb);
	run(cdb, CDB_MAX, data, out, in);
	return R->task.status;
}

static bool is_refused_for_its_length(void)
{
	return R->task.status == SCSI_CHECK_CONDITION &&
	       R->sense.key == SENSE_ILLEGAL_REQUEST && R->task.in.len == 0 &&
	       (R->sense.asc == ASC_INVALID_FIELD_IN_IU ||
		R->sense.asc == ASC_PARAMETER_LIST_LENGTH_ERROR ||
		/* its length field has one byte (libiscsi) */
		(R->task.cdb[0] == SCSI_COMPARE_AND_WRITE &&
		 R->sense.asc == ASC_INVALID_FIELD_IN_CDB));
}

static void expect_wrong_direction(void)
{
	CHECK_THAT(refused(ASC_INVALID_FIELD_IN_IU));
	CHECK_THAT(R->task.out_len == 0 && R->task.in.len == 0);
	CHECK_THAT(R->task.total.out + R->task.total.in == 0);
	CHECK_THAT(changes == 0);
}

/* ---- data-out ---- */

/* The unit has written the whole blocks that were sent; the next block is
 * unchanged. */
static void expect_written(const struct dev_command *c, uint32_t sent)
{
	uint8_t before[4 * FX_BLOCK], now[4 * FX_BLOCK];

	assert_int_equal(sent % FX_BLOCK, 0);
	read_back(now);
	fresh();
	read_back(before);
	for (uint32_t i = 0; i < sizeof(now); i++) {
		uint8_t want = i < sent ? data[i] : before[i];

		if (i < sent && strncmp(c->name, "ORWRITE", 7) == 0)
			want |= before[i];
		assert_int_equal(now[i], want);
	}
}

static void data_out(const struct dev_command *c, uint32_t n)
{
	const uint32_t edtl[] = {
		0,     1,	  n / 2,     n / 2 + 1, n - 1,
		n + 1, n + BLOCK, n - BLOCK, 200,	n - BLOCK / 2
	};

	int status = end_of(c, n, 0), asc = R->sense.asc;

	end_of(c, 0, n);
	expect_wrong_direction();
	for (unsigned i = 0; i < ARRAY_LEN(edtl); i++) {
		uint32_t sent = edtl[i];

		if (sent >= ROOM || sent == n)
			continue;
		if (end_of(c, sent, 0) != SCSI_GOOD) {
			/* The row may refuse the data, or their length. */
			CHECK_THAT(is_refused_for_its_length() ||
				   (sent > n && R->task.status == status &&
				    R->sense.asc == asc));
			CHECK_THAT(changes == 0);
			CHECK_THAT(sent > n || R->task.total.out == n);
			continue;
		}
		CHECK_THAT(R->task.total.out == n);
		CHECK_THAT(R->task.out_len == MIN(sent, n));
		CHECK_THAT(sent > n || c->flags & CMD_BY_BLOCK);
		if (sent < n)
			expect_written(c, sent);
	}
}

/* ---- data-in ---- */

static void data_in(const struct dev_command *c, uint32_t n)
{
	const uint32_t edtl[] = { 0,	 1,	n / 2,	   n - 1,
				  n + 1, n + 8, n - BLOCK, n - BLOCK / 2 };

	end_of(c, n, 0);
	expect_wrong_direction();
	for (unsigned i = 0; i < ARRAY_LEN(edtl); i++) {
		if (edtl[i] >= ROOM)
			continue;
		CHECK_THAT(end_of(c, 0, edtl[i]) == SCSI_GOOD);
		CHECK_THAT(R->task.total.in == n);
		CHECK_THAT(R->in_len == MIN(edtl[i], n));
	}
}

/* ---- all rows ---- */

/* ask returns the bytes that the command transfers with enough room; 0: none,
 * or the unit refuses the command. */
static uint32_t ask(const struct dev_command *c)
{
	bool in = c->dir == DIR_IN;
	uint8_t cdb[CDB_MAX];
	uint64_t n;

	fresh();
	make(c, cdb);
	assert_int_equal(
		fx_begin(R, cdb, CDB_MAX, in ? 0 : ROOM, in ? ROOM : 0), 0);
	n = R->task.total.out;
	fx_execute(R, data);
	fx_finish(R);
	if (in)
		n = R->task.total.in;
	return (uint32_t)n;
}

static void test_direction_and_length_rfc7143_11_4_5(void **state)
{
	unsigned out = 0, in = 0, none = 0;

	(void)state;
	for_rows(c)
	{
		uint32_t n = ask(c);

		if (n && c->dir == DIR_IN) {
			data_in(c, n);
			in++;
		} else if (n) {
			data_out(c, n);
			out++;
		} else if (c->dir == DIR_NONE && !R->task.own.begun.refused) {
			int status = R->task.status;

			/* The command transfers no data: the residual is all of
			 * EDTL. */
			CHECK_THAT(end_of(c, 512, 0) == status);
			CHECK_THAT(end_of(c, 0, 512) == status);
			CHECK_THAT(R->task.total.in + R->task.total.out == 0);
			none++;
		}
	}
	print_message("%u rows with data-out, %u with data-in, %u without\n",
		      out, in, none);
	assert_true(out >= of_type(30, 2) && in >= of_type(20, 14) &&
		    none >= of_type(8, 4));
}

static void test_bidirectional_is_refused_everywhere(void **state)
{
	(void)state;
	for_rows(c)
	{
		struct dev_task *t = &R->task;
		uint8_t cdb[CDB_MAX];

		if (!ask(c))
			continue;
		fresh();
		make(c, cdb);
		assert_int_equal(fx_begin(R, cdb, CDB_MAX, 0, 0), 0);
		dev_task_end(t);
		t->edtl.both = true;
		t->edtl.out = t->edtl.in = ROOM;
		assert_int_equal(dev_task_begin(t), 0);
		fx_execute(R, data);
		fx_finish(R);
		expect_wrong_direction();
	}
}

#define A(name) cmocka_unit_test_setup_teardown(name, open_all, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		A(test_direction_and_length_rfc7143_11_4_5),
		A(test_bidirectional_is_refused_everywhere),
	};
	return run_for_each_type(tests);
}
