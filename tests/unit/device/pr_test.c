/* SPDX-License-Identifier: BSD-2-Clause */
/* pr_test.c: persistent reservations by initiators on three workers, by the
 * clauses of SPC-4 §5.13, §6.15 and §6.16. */
#include "base/crc32c.h"
#include "device/reserve/reserve.h"
#include "three.h"

#define KA 0xa0a0a0a0a0a0a0a0ull
#define KB 0xb0b0b0b0b0b0b0b0ull
#define KC 0xc0c0c0c0c0c0c0c0ull

static const uint64_t key_of[] = { KA, KB, KC };
static const uint8_t types[] = { 1, 3, 5, 6, 7, 8 };

/* A PERSISTENT RESERVE OUT with the parameter list `list`. */
static int out_list(unsigned who, uint8_t sa, uint8_t type, const void *list,
		    uint32_t len)
{
	uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, sa, type };

	put_be32(cdb + 5, len);
	return three_run(who, cdb, list, len, 0);
}

static int out(unsigned who, uint8_t sa, uint8_t type, uint64_t key,
	       uint64_t sa_key, uint8_t flags)
{
	uint8_t list[24] = { 0 };

	put_be64(list, key);
	put_be64(list + 8, sa_key);
	list[20] = flags;
	return out_list(who, sa, type, list, 24);
}

static int reg(unsigned who)
{
	return out(who, SCSI_PROUT_REGISTER, 0, 0, key_of[who], 0);
}

static int reserve(unsigned who, uint8_t type)
{
	return out(who, SCSI_PROUT_RESERVE, type, key_of[who], 0, 0);
}

static int release(unsigned who, uint8_t type)
{
	return out(who, SCSI_PROUT_RELEASE, type, key_of[who], 0, 0);
}

static int clear(unsigned who)
{
	return out(who, SCSI_PROUT_CLEAR, 0, key_of[who], 0, 0);
}

static int preempt(unsigned who, uint8_t type, uint64_t sa_key)
{
	return out(who, SCSI_PROUT_PREEMPT, type, key_of[who], sa_key, 0);
}

static const uint8_t *in(unsigned who, uint8_t sa)
{
	assert_int_equal(RUN(who, 60000, SCSI_PERSISTENT_RESERVE_IN, sa, 0, 0,
			     0, 0, 0, 0xea, 0x60),
			 SCSI_GOOD);
	return three.i[who].in;
}

static uint32_t generation(void)
{
	return get_be32(in(A, SCSI_PRIN_READ_KEYS));
}

static void expect_keys(unsigned n, const uint64_t *keys)
{
	const uint8_t *p = in(C, SCSI_PRIN_READ_KEYS);

	assert_int_equal(get_be32(p + 4), 8 * n);
	for (unsigned i = 0; i < n; i++)
		assert_true(get_be64(p + 8 + 8u * i) == keys[i]);
}

#define EXPECT_KEYS(...)                              \
 expect_keys(sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, \
	     (const uint64_t[]){ __VA_ARGS__ })

/* type 0: no reservation */
static void expect_reservation(uint8_t type, uint64_t key)
{
	const uint8_t *p = in(C, SCSI_PRIN_READ_RESERVATION);

	assert_int_equal(get_be32(p + 4), type ? 16 : 0);
	if (!type)
		return;
	assert_true(get_be64(p + 8) == key);
	assert_int_equal(p[21], type);
}

static int read_block(unsigned who)
{
	return RUN(who, 512, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1);
}

static int write_block(unsigned who)
{
	static const uint8_t block[512];

	return three_run(who, (const uint8_t[16]){ SCSI_WRITE_10, [8] = 1 },
			 block, 512, 0);
}

static void expect_bad_list(unsigned who, uint16_t byte)
{
	expect_sense(who, SENSE_ILLEGAL_REQUEST,
		     ASC_INVALID_FIELD_IN_PARAMETERS);
	assert_true(three.i[who].sense.has_field);
	assert_int_equal(three.i[who].sense.field, byte);
}

/* ---- registrations ---- */

static void test_register_table_35_spc4_5_13_7(void **state)
{
	(void)state;
	assert_int_equal(generation(), 0);
	/* Unregistered: the reservation key must be zero. */
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, KA, KA, 0),
			 SCSI_RESERVATION_CONFLICT);
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, 0, 0, 0), SCSI_GOOD);
	assert_int_equal(generation(), 0);
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(generation(), 1);
	EXPECT_KEYS(KA);
	/* Registered: the reservation key must be the registered key. */
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, 0, KB, 0),
			 SCSI_RESERVATION_CONFLICT);
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, KA, KC, 0), SCSI_GOOD);
	EXPECT_KEYS(KC);
	assert_int_equal(reg(B), SCSI_GOOD);
	EXPECT_KEYS(KC, KB);
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, KC, 0, 0), SCSI_GOOD);
	EXPECT_KEYS(KB);
	assert_int_equal(generation(), 4);
	assert_int_equal(three.i[A].in[4], 0);
}

static void test_register_ignoring_the_key(void **state)
{
	const uint8_t sa = SCSI_PROUT_REGISTER_IGNORE;

	(void)state;
	assert_int_equal(out(A, sa, 0, KC, 0, 0), SCSI_GOOD);
	assert_int_equal(generation(), 0);
	assert_int_equal(out(A, sa, 0, KC, KA, 0), SCSI_GOOD);
	EXPECT_KEYS(KA);
	assert_int_equal(out(A, sa, 0, KC, KB, 0), SCSI_GOOD);
	EXPECT_KEYS(KB);
	assert_int_equal(out(A, sa, 0, 0, 0, 0), SCSI_GOOD);
	expect_keys(0, NULL);
	assert_int_equal(generation(), 3);
	/* Only REGISTER permits SPEC_I_PT. */
	assert_int_equal(out(A, sa, 0, 0, KA, 0x08), SCSI_CHECK_CONDITION);
	expect_bad_list(A, 20);
}

/* A registration outlives its session, because it belongs to the names of the
 * ports. */
static void test_registration_outlives_the_session(void **state)
{
	(void)state;
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reserve(A, 1), SCSI_GOOD);
	three_logout(A);
	assert_int_equal(write_block(B), SCSI_RESERVATION_CONFLICT);
	three_login(A);
	no_sense_left(A);
	assert_int_equal(write_block(A), SCSI_GOOD);
	assert_int_equal(release(A, 1), SCSI_GOOD);
	assert_int_equal(write_block(B), SCSI_GOOD);
}

/* ---- accesses that each type denies: SPC-4 table 46 ---- */

static void test_each_type_and_who_may_what(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		bool ea = types[i] == 3 || types[i] == 6 || types[i] == 8;
		bool shared = types[i] >= 5;

		assert_int_equal(reg(A), SCSI_GOOD);
		assert_int_equal(reg(B), SCSI_GOOD);
		assert_int_equal(reserve(A, types[i]), SCSI_GOOD);
		expect_reservation(types[i], types[i] >= 7 ? 0 : KA);
		assert_int_equal(read_block(A), SCSI_GOOD);
		assert_int_equal(write_block(A), SCSI_GOOD);
		/* a registrant */
		assert_int_equal(write_block(B),
				 shared ? SCSI_GOOD
					: SCSI_RESERVATION_CONFLICT);
		assert_int_equal(read_block(B),
				 shared || !ea ? SCSI_GOOD
					       : SCSI_RESERVATION_CONFLICT);
		/* not a registrant */
		assert_int_equal(write_block(C), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(read_block(C),
				 ea ? SCSI_RESERVATION_CONFLICT : SCSI_GOOD);
		assert_int_equal(tur(C), SCSI_GOOD);
		assert_int_equal(RUN(C, 0, 0x1b, 0, 0, 0, 1), SCSI_GOOD);
		assert_int_equal(RUN(C, 8, 0x25), SCSI_GOOD);
		assert_int_equal(clear(A), SCSI_GOOD);
		expect_attention(B, ASC_RESERVATIONS_PREEMPTED);
	}
}

static void test_reserve_again_spc4_5_13_9(void **state)
{
	(void)state;
	assert_int_equal(reserve(A, 1), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reg(B), SCSI_GOOD);
	/* a wrong key */
	assert_int_equal(out(A, SCSI_PROUT_RESERVE, 1, KB, 0, 0),
			 SCSI_RESERVATION_CONFLICT);
	for (unsigned i = 0; i < 6; i++)
		for (unsigned j = 0; j < 6; j++) {
			bool all = types[i] >= 7;

			assert_int_equal(reserve(A, types[i]), SCSI_GOOD);
			assert_int_equal(reserve(A, types[j]),
					 i == j ? SCSI_GOOD
						: SCSI_RESERVATION_CONFLICT);
			assert_int_equal(reserve(B, types[j]),
					 all && i == j
						 ? SCSI_GOOD
						 : SCSI_RESERVATION_CONFLICT);
			assert_int_equal(release(A, types[i]), SCSI_GOOD);
			no_sense_left(B);
		}
	assert_int_equal(generation(),
			 2); /* neither RESERVE nor RELEASE counts, §6.15.2 */
}

static void test_bad_scopes_and_types(void **state)
{
	static const uint8_t actions[] = { 1, 2, 4, 5 };

	(void)state;
	assert_int_equal(reg(A), SCSI_GOOD);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned byte = 0; byte < 256; byte++) {
			bool good = byte < 16 && byte &&
				    memchr(types, (int)byte, 6);

			if (good)
				continue;
			assert_int_equal(out(A, actions[i], (uint8_t)byte, KA,
					     KB, 0),
					 SCSI_CHECK_CONDITION);
			expect_sense(A, SENSE_ILLEGAL_REQUEST,
				     ASC_INVALID_FIELD_IN_CDB);
			assert_int_equal(three.i[A].sense.field, 2);
		}
}

/* ---- RELEASE: SPC-4 §5.13.11.2.2 ---- */

static void test_release_sets_attentions(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(reg(A), SCSI_GOOD);
		assert_int_equal(reg(B), SCSI_GOOD);
		/* Without a reservation: GOOD. */
		assert_int_equal(release(A, types[i]), SCSI_GOOD);
		assert_int_equal(reserve(A, types[i]), SCSI_GOOD);
		assert_int_equal(release(A, types[(i + 1) % 6]),
				 SCSI_CHECK_CONDITION);
		expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_RELEASE);
		/* A nexus that is not the holder releases nothing. */
		if (types[i] < 7)
			assert_int_equal(release(B, types[i]), SCSI_GOOD);
		expect_reservation(types[i], types[i] >= 7 ? 0 : KA);
		assert_int_equal(release(A, types[i]), SCSI_GOOD);
		expect_reservation(0, 0);
		if (types[i] >= 5)
			expect_attention(B, ASC_RESERVATIONS_RELEASED);
		assert_int_equal(tur(A), SCSI_GOOD);
		assert_int_equal(tur(B), SCSI_GOOD);
		assert_int_equal(tur(C), SCSI_GOOD);
		assert_int_equal(clear(A), SCSI_GOOD);
		no_sense_left(B);
	}
}

static void test_release_by_unregistering(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(reg(A), SCSI_GOOD);
		assert_int_equal(reg(B), SCSI_GOOD);
		assert_int_equal(reserve(A, types[i]), SCSI_GOOD);
		assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, KA, 0, 0),
				 SCSI_GOOD);
		if (types[i] >= 7) { /* B is still a holder */
			expect_reservation(types[i], 0);
			assert_int_equal(write_block(A),
					 SCSI_RESERVATION_CONFLICT);
			assert_int_equal(out(B, SCSI_PROUT_REGISTER, 0, KB, 0,
					     0),
					 SCSI_GOOD);
		} else if (types[i] >= 5) {
			expect_attention(B, ASC_RESERVATIONS_RELEASED);
		}
		expect_reservation(0, 0);
		assert_int_equal(tur(B), SCSI_GOOD);
		out(B, SCSI_PROUT_REGISTER_IGNORE, 0, 0, 0, 0);
		assert_int_equal(write_block(C), SCSI_GOOD);
	}
}

static void test_clear_spc4_5_13_11_2_5(void **state)
{
	(void)state;
	assert_int_equal(clear(A), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reg(B), SCSI_GOOD);
	assert_int_equal(reserve(B, 3), SCSI_GOOD);
	/* Every registrant may clear. */
	assert_int_equal(clear(A), SCSI_GOOD);
	expect_keys(0, NULL);
	expect_reservation(0, 0);
	assert_int_equal(generation(), 3);
	expect_attention(B, ASC_RESERVATIONS_PREEMPTED);
	assert_int_equal(tur(C), SCSI_GOOD);
}

/* ---- PREEMPT: SPC-4 §5.13.11.2.4 ---- */

static void test_preempt_the_holder(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < 6; j++) {
			assert_int_equal(reg(A), SCSI_GOOD);
			assert_int_equal(reg(B), SCSI_GOOD);
			assert_int_equal(reg(C), SCSI_GOOD);
			assert_int_equal(reserve(B, types[i]), SCSI_GOOD);
			assert_int_equal(preempt(A, types[j], KB), SCSI_GOOD);
			expect_attention(B, ASC_REGISTRATIONS_PREEMPTED);
			/* A remaining registrant gets an attention if the type
			 * changes. */
			if (i != j)
				expect_attention(C, ASC_RESERVATIONS_RELEASED);
			assert_int_equal(tur(C), SCSI_GOOD);
			expect_reservation(types[j], types[j] >= 7 ? 0 : KA);
			EXPECT_KEYS(KA, KC);
			assert_int_equal(write_block(B),
					 SCSI_RESERVATION_CONFLICT);
			assert_int_equal(write_block(A), SCSI_GOOD);
			assert_int_equal(clear(A), SCSI_GOOD);
			no_sense_left(C);
		}
}

static void test_preempt_a_registration_only(void **state)
{
	(void)state;
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reg(B), SCSI_GOOD);
	assert_int_equal(reg(C), SCSI_GOOD);
	assert_int_equal(reserve(A, 5), SCSI_GOOD);
	assert_int_equal(preempt(B, 3, KC), SCSI_GOOD);
	expect_attention(C, ASC_REGISTRATIONS_PREEMPTED);
	expect_reservation(5, KA); /* scope and type were ignored */
	EXPECT_KEYS(KA, KB);
	assert_int_equal(tur(A), SCSI_GOOD);
	/* a key without a registration */
	assert_int_equal(preempt(B, 3, KC), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(generation(), 4);
	/* the key 0 */
	assert_int_equal(preempt(B, 3, 0), SCSI_CHECK_CONDITION);
	expect_bad_list(B, 8);
	/* a wrong reservation key */
	assert_int_equal(out(B, SCSI_PROUT_PREEMPT, 3, KC, KA, 0),
			 SCSI_RESERVATION_CONFLICT);
	/* The holder preempts itself, which changes the type. */
	assert_int_equal(preempt(A, 1, KA), SCSI_GOOD);
	expect_reservation(1, KA);
	expect_attention(B, ASC_RESERVATIONS_RELEASED);
}

static void test_preempt_where_all_registrants_hold(void **state)
{
	(void)state;
	for (unsigned i = 4; i < 6; i++) {
		assert_int_equal(reg(A), SCSI_GOOD);
		assert_int_equal(reg(B), SCSI_GOOD);
		assert_int_equal(reg(C), SCSI_GOOD);
		assert_int_equal(reserve(C, types[i]), SCSI_GOOD);
		/* A key: its registrations end. */
		assert_int_equal(preempt(A, 1, KB), SCSI_GOOD);
		expect_attention(B, ASC_REGISTRATIONS_PREEMPTED);
		expect_reservation(types[i], 0);
		assert_int_equal(write_block(B), SCSI_RESERVATION_CONFLICT);
		/* Zero: all other registrations end. */
		assert_int_equal(preempt(A, 1, 0), SCSI_GOOD);
		expect_attention(C, ASC_REGISTRATIONS_PREEMPTED);
		expect_reservation(1, KA);
		EXPECT_KEYS(KA);
		assert_int_equal(clear(A), SCSI_GOOD);
	}
	/* The last registrant preempts itself: the reservation ends, too. */
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reserve(A, 7), SCSI_GOOD);
	assert_int_equal(preempt(A, 7, KA), SCSI_GOOD);
	expect_reservation(0, 0);
	expect_keys(0, NULL);
}

static void test_preempt_and_abort_waits_for_tasks(void **state)
{
	const uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT,
				  SCSI_PROUT_PREEMPT_AND_ABORT, 3, [8] = 24 };
	uint8_t list[24] = { 0 };

	(void)state;
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reg(B), SCSI_GOOD);
	assert_int_equal(reserve(B, 1), SCSI_GOOD);
	three.i[B].abort_later = true;
	put_be64(list, KA);
	put_be64(list + 8, KB);
	three_send(A, cdb, list, 24, 0);
	three_settle();
	assert_false(three.i[A].done);
	assert_int_equal(three.i[B].aborts, 1);
	assert_int_equal(three.i[C].aborts, 0);
	expect_attention(B, ASC_REGISTRATIONS_PREEMPTED);
	/* A PERSISTENT RESERVE OUT of B meanwhile does not wait for the
	 * abort. */
	assert_int_equal(reg(B), SCSI_BUSY);
	dev_nexus_tasks_gone(three.i[B].nexus);
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	expect_reservation(3, KA);
	/* A does not abort its own commands. */
	assert_int_equal(three.i[A].aborts, 0);
}

static void test_preempt_and_abort_of_one_that_leaves(void **state)
{
	const uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT,
				  SCSI_PROUT_PREEMPT_AND_ABORT, 3, [8] = 24 };
	uint8_t list[24] = { 0 };

	(void)state;
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reg(B), SCSI_GOOD);
	three.i[B].abort_later = true;
	put_be64(list, KA);
	put_be64(list + 8, KB);
	three_send(A, cdb, list, 24, 0);
	three_settle();
	assert_false(three.i[A].done);
	three_logout(B);
	assert_int_equal(three_finish(A), SCSI_GOOD);
	EXPECT_KEYS(KA);
}

/* ---- REGISTER AND MOVE: SPC-4 §5.13.8 ---- */

static uint32_t move_list(uint8_t *p, uint64_t key, uint64_t sa_key,
			  uint8_t flags, uint16_t port, const char *name)
{
	size_t n;

	memset(p, 0, 24);
	put_be64(p, key);
	put_be64(p + 8, sa_key);
	p[17] = flags;
	put_be16(p + 18, port);
	n = scsi_transportid_put(name, p + 24);
	put_be32(p + 20, (uint32_t)n);
	return (uint32_t)(24 + n);
}

static int move(unsigned who, uint64_t sa_key, uint8_t flags, uint16_t port,
		const char *name)
{
	uint8_t list[24 + SCSI_TRANSPORTID_MAX];
	uint32_t len = move_list(list, key_of[who], sa_key, flags, port, name);

	return out_list(who, SCSI_PROUT_REGISTER_AND_MOVE, 0, list, len);
}

static void test_register_and_move(void **state)
{
	(void)state;
	/* without a registration; without a reservation; not the holder */
	assert_int_equal(move(A, KB, 0, 1, three.i[B].name),
			 SCSI_RESERVATION_CONFLICT);
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(move(A, KB, 0, 1, three.i[B].name),
			 SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	assert_int_equal(reg(C), SCSI_GOOD);
	assert_int_equal(reserve(A, 3), SCSI_GOOD);
	assert_int_equal(move(C, KB, 0, 1, three.i[B].name),
			 SCSI_RESERVATION_CONFLICT);
	/* parameter lists that are not valid */
	assert_int_equal(move(A, 0, 0, 1, three.i[B].name),
			 SCSI_CHECK_CONDITION);
	expect_bad_list(A, 8);
	assert_int_equal(move(A, KB, 0, 2, three.i[B].name),
			 SCSI_CHECK_CONDITION);
	expect_bad_list(A, 18);
	assert_int_equal(move(A, KB, 0, 1, three.i[A].name),
			 SCSI_CHECK_CONDITION);
	expect_bad_list(A, 24);
	/* To a nexus that is not registered; A stays registered. */
	assert_int_equal(move(A, KB, 0, 1, three.i[B].name), SCSI_GOOD);
	expect_reservation(3, KB);
	EXPECT_KEYS(KA, KC, KB);
	assert_int_equal(read_block(B), SCSI_GOOD);
	assert_int_equal(read_block(A), SCSI_RESERVATION_CONFLICT);
	/* To a registered nexus, with another key; UNREG ends the registration
	 * of B. */
	assert_int_equal(move(B, KA, 0x02, 1, three.i[C].name), SCSI_GOOD);
	expect_reservation(3, KA);
	EXPECT_KEYS(KA, KA);
	assert_int_equal(read_block(C), SCSI_GOOD);
	assert_int_equal(read_block(B), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(tur(B), SCSI_GOOD);
}

static void test_register_and_move_of_all_registrants(void **state)
{
	(void)state;
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reserve(A, 7), SCSI_GOOD);
	assert_int_equal(move(A, KB, 0, 1, three.i[B].name),
			 SCSI_RESERVATION_CONFLICT);
}

/* ---- SPEC_I_PT, ALL_TG_PT: SPC-4 §5.13.7.3 ---- */

static uint32_t ids_list(uint8_t *p, const char *const *names, unsigned n)
{
	size_t at = 28;

	memset(p, 0, at);
	put_be64(p + 8, KA);
	p[20] = 0x08;
	for (unsigned i = 0; i < n; i++)
		at += scsi_transportid_put(names[i], p + at);
	put_be32(p + 24, (uint32_t)(at - 28));
	return (uint32_t)at;
}

static void test_spec_i_pt(void **state)
{
	const char *const names[] = { three.i[B].name, three.i[C].name };
	uint8_t list[2048];
	uint32_t len = ids_list(list, names, 2);

	(void)state;
	assert_int_equal(reg(C),
			 SCSI_GOOD); /* C is registered: C keeps its key */
	assert_int_equal(out_list(A, 0, 0, list, len), SCSI_GOOD);
	EXPECT_KEYS(KC, KA, KA);
	assert_int_equal(out(B, SCSI_PROUT_RESERVE, 3, KA, 0, 0), SCSI_GOOD);
	expect_reservation(3, KA);
	assert_int_equal(read_block(A), SCSI_RESERVATION_CONFLICT);
	/* SPEC_I_PT on a registered nexus is refused. */
	put_be64(list, KA);
	assert_int_equal(out_list(A, 0, 0, list, len), SCSI_CHECK_CONDITION);
	expect_bad_list(A, 20);
}

static void test_spec_i_pt_with_broken_ids(void **state)
{
	const char *const names[] = { "iqn.x,i,0x1", "iqn.y,i,0x2" };
	uint8_t list[2048], bad[2048];
	uint32_t len = ids_list(list, names, 2);

	(void)state;
	for (uint32_t cut = 24; cut < len; cut++) {
		/* First the data end early, then also the length in the CDB. A
		 * list that ends after a TransportID is valid. */
		assert_int_equal(out_list(A, 0, 0, list, cut),
				 SCSI_CHECK_CONDITION);
		memcpy(bad, list, len);
		put_be32(bad + 24, cut - 28);
		assert_int_equal(out_list(A, 0, 0, bad, cut),
				 cut == 28 || cut == 52 ? SCSI_GOOD
							: SCSI_CHECK_CONDITION);
		clear(A);
		expect_keys(0, NULL);
	}
	assert_int_equal(out_list(A, 0, 0, list, len), SCSI_GOOD);
}

static void test_all_tg_pt(void **state)
{
	const uint8_t *p;
	uint16_t rtpi;

	(void)state;
	for (unsigned i = 1; i <= 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "iqn.t,t,0x000%u", i);
		assert_int_equal(dev_port_add(three.server, name, &rtpi), 0);
		assert_int_equal(rtpi, i);
	}
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, 0, KA, 0x04),
			 SCSI_GOOD);
	EXPECT_KEYS(KA, KA, KA);
	p = in(A, SCSI_PRIN_READ_FULL_STATUS) + 8;
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(get_be16(p + 18), i);
		p += 24 + get_be32(p + 20);
	}
	/* One REGISTER changes the keys of all ports. */
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, KA, KB, 0x04),
			 SCSI_GOOD);
	EXPECT_KEYS(KB, KB, KB);
	/* One REGISTER with key 0 ends the registration of one port. */
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, KB, 0, 0), SCSI_GOOD);
	EXPECT_KEYS(KB, KB);
}

/* ---- PERSISTENT RESERVE IN ---- */

static void test_report_capabilities_spc4_6_15_4(void **state)
{
	const uint8_t *p = in(A, SCSI_PRIN_REPORT_CAPABILITIES);

	(void)state;
	assert_int_equal(three.i[A].in_len, 8);
	assert_int_equal(get_be16(p), 8);
	assert_int_equal(p[2], 0x1c); /* CRH SIP_C ATP_C; no PTPL_C */
	assert_int_equal(p[3], 0x80);
	assert_int_equal(p[4], 0xea);
	assert_int_equal(p[5], 0x01);
}

static void test_full_status_spc4_6_15_5(void **state)
{
	const uint8_t *p;
	char name[SCSI_PORT_NAME_MAX + 1];
	size_t used;

	(void)state;
	reg(A);
	reg(B);
	reserve(B, 6);
	p = in(C, SCSI_PRIN_READ_FULL_STATUS);
	assert_int_equal(get_be32(p), 2);
	assert_int_equal(get_be32(p + 4), three.i[C].in_len - 8);
	p += 8;
	for (unsigned i = 0; i < 2; i++) {
		assert_true(get_be64(p) == key_of[i]);
		assert_int_equal(p[12], i);
		assert_int_equal(p[13], i ? 6 : 0);
		assert_int_equal(get_be16(p + 18), 1);
		assert_int_equal(scsi_transportid_get(p + 24, get_be32(p + 20),
						      name, &used),
				 0);
		assert_string_equal(name, three.i[i].name);
		p += 24 + used;
	}
}

static void test_in_at_every_allocation_length(void **state)
{
	(void)state;
	reg(A);
	reg(B);
	reserve(B, 6);
	for (uint8_t sa = 0; sa < 4; sa++)
		for (unsigned n = 0; n < 150; n++) {
			uint32_t whole = sa == 0   ? 24
					 : sa == 1 ? 24
					 : sa == 2 ? 8
						   : 8 + 2 * (24 + 28);

			assert_int_equal(RUN(C, 300, 0x5e, sa, 0, 0, 0, 0, 0, 0,
					     (uint8_t)n),
					 SCSI_GOOD);
			assert_int_equal(three.i[C].in_len, MIN(n, whole));
			if (n >= 8 && sa != 2)
				assert_int_equal(get_be32(three.i[C].in + 4),
						 whole - 8);
		}
	RUN(C, 300, 0x5e, 4, 0, 0, 0, 0, 0, 0, 8);
	expect_sense(C, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
}

/* ---- lists of wrong lengths ---- */

static void test_out_list_lengths_spc4_6_16_1(void **state)
{
	uint8_t list[64] = { 0 };

	(void)state;
	reg(A);
	for (uint8_t sa = 0; sa < 8; sa++)
		for (uint32_t len = 0; len < 64; len++) {
			if (len == 24 && sa != 7)
				continue;
			out_list(A, sa, 1, list, len);
			expect_sense(A, SENSE_ILLEGAL_REQUEST,
				     ASC_PARAMETER_LIST_LENGTH_ERROR);
		}
	out_list(A, 8, 0, list, 24); /* REPLACE LOST RESERVATION */
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
	/* The initiator sends fewer bytes than the CDB says. */
	assert_int_equal(three_run(A, (const uint8_t[16]){ 0x5f, 3, [8] = 24 },
				   list, 23, 0),
			 SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_ILLEGAL_REQUEST, ASC_PARAMETER_LIST_LENGTH_ERROR);
}

/* APTPL is refused if the unit cannot persist registrations. */
static void test_aptpl_is_refused_where_nothing_is_kept(void **state)
{
	(void)state;
	assert_int_equal(out(A, SCSI_PROUT_REGISTER, 0, 0, KA, 0x01),
			 SCSI_CHECK_CONDITION);
	expect_bad_list(A, 20);
}

/* ---- APTPL: SPC-4 §5.13.5 ---- */

static int reg_aptpl(unsigned who)
{
	return out(who, SCSI_PROUT_REGISTER, 0, 0, key_of[who], 0x01);
}

static void test_aptpl_is_kept_before_good(void **state)
{
	uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, [8] = 24 };
	uint8_t list[24] = { [8] = 1, [20] = 0x01 };

	(void)state;
	assert_int_equal(in(A, SCSI_PRIN_REPORT_CAPABILITIES)[2] & 1, 1);
	assert_int_equal(three.i[A].in[3], 0x80);
	three.save_later = true;
	three_send(B, cdb, list, 24, 0);
	three_settle();
	assert_non_null(three.saving);
	assert_false(three.i[B].done);
	expect_keys(0, NULL); /* not in force before the save */
	/* Other changes wait. */
	three_send(A, cdb, list, 24, 0);
	three_settle();
	assert_false(three.i[A].done);
	three_saved();
	three_settle();
	assert_int_equal(three_finish(B), SCSI_GOOD);
	three_saved();
	three_settle();
	assert_int_equal(three_finish(A), SCSI_GOOD);
	assert_int_equal(three.saves, 2);
	assert_int_equal(in(A, SCSI_PRIN_REPORT_CAPABILITIES)[3], 0x81);
}

static void test_aptpl_that_cannot_be_kept(void **state)
{
	(void)state;
	assert_int_equal(reg_aptpl(A), SCSI_GOOD);
	three.save_result = ERR_NO_SPACE;
	assert_int_equal(reserve(A, 3), SCSI_CHECK_CONDITION);
	expect_sense(A, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	expect_reservation(0, 0);
	three.save_result = 0;
	assert_int_equal(reserve(A, 3), SCSI_GOOD);
	expect_reservation(3, KA);
}

static void test_aptpl_outlives_the_power(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(reg_aptpl(A), SCSI_GOOD);
		assert_int_equal(reg_aptpl(B), SCSI_GOOD);
		assert_int_equal(reserve(B, types[i]), SCSI_GOOD);
		three_restart();
		assert_int_equal(generation(), 0); /* §6.15.2 */
		EXPECT_KEYS(KA, KB);
		expect_reservation(types[i], types[i] >= 7 ? 0 : KB);
		assert_int_equal(write_block(C), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(write_block(B), SCSI_GOOD);
		assert_int_equal(in(A, SCSI_PRIN_REPORT_CAPABILITIES)[3], 0x81);
		assert_int_equal(clear(A), SCSI_GOOD);
		assert_int_equal(three.saved_len, 0);
		three_restart();
		expect_keys(0, NULL);
	}
}

/* APTPL of the last REGISTER is decisive (§5.13.5). */
static void test_aptpl_switched_off(void **state)
{
	(void)state;
	assert_int_equal(reg_aptpl(A), SCSI_GOOD);
	assert_int_equal(reserve(A, 1), SCSI_GOOD);
	assert_true(three.saved_len > 0);
	assert_int_equal(reg(B), SCSI_GOOD);
	assert_int_equal(three.saved_len, 0);
	three_restart();
	expect_keys(0, NULL);
	expect_reservation(0, 0);
	/* Registrations without APTPL are never saved. */
	three.saves = 0;
	assert_int_equal(reg(A), SCSI_GOOD);
	assert_int_equal(reserve(A, 1), SCSI_GOOD);
	assert_int_equal(three.saves, 0);
}

static void test_restore_of_damaged_state(void **state)
{
	const uint8_t *uuid =
		dev_lu_backstore(dev_lu_get(three.server, 0))->uuid;
	uint8_t other[16], bad[THREE_MAX];
	struct rsv_state *s = NULL;

	(void)state;
	reg_aptpl(A);
	reg_aptpl(B);
	reserve(B, 6);
	for (size_t n = 0; n < three.saved_len; n++)
		assert_int_not_equal(rsv_decode(three.saved, n, uuid, &s), 0);
	for (size_t bit = 0; bit < 8 * three.saved_len; bit++) {
		memcpy(bad, three.saved, three.saved_len);
		bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(rsv_decode(bad, three.saved_len, uuid, &s),
				     0);
	}
	memcpy(other, uuid, 16);
	other[0] ^= 1;
	assert_int_equal(rsv_decode(three.saved, three.saved_len, other, &s),
			 ERR_NOT_FOUND);
	assert_null(s);
	assert_int_equal(rsv_decode(three.saved, three.saved_len, uuid, &s), 0);
	rsv_free(s);
}

/* A record with a correct CRC and contents that are not valid. */
static void test_restore_of_nonsense(void **state)
{
	static const struct {
		uint8_t at, value;
	} change[] = {
		{ 28, 2 }, { 28, 9 }, { 29, 1 },  { 31, 2 }, { 31, 0xff },
		{ 33, 1 }, { 33, 3 }, { 32, 1 },  { 28, 0 }, { 28, 7 },
		{ 43, 0 }, { 45, 0 }, { 45, 22 }, { 46, 0 }, { 45, 0xff },
	};
	const uint8_t *uuid =
		dev_lu_backstore(dev_lu_get(three.server, 0))->uuid;
	struct rsv_state *s = NULL;
	uint8_t bad[THREE_MAX];

	(void)state;
	reg_aptpl(A);
	reg_aptpl(B);
	reserve(B, 6);
	for (size_t i = 0; i < ARRAY_LEN(change); i++) {
		memcpy(bad, three.saved, three.saved_len);
		bad[change[i].at] = change[i].value;
		put_be32(bad + 8,
			 crc32c_wire(crc32c_update(CRC32C_SEED, bad + 12,
						   three.saved_len - 12)));
		assert_int_not_equal(rsv_decode(bad, three.saved_len, uuid, &s),
				     0);
	}
}

/* ---- together with other features ---- */

static void test_lu_reset_keeps_it_spc4_5_13_5(void **state)
{
	(void)state;
	reg(A);
	reserve(A, 1);
	three_reset(C);
	all_sense_taken();
	assert_int_equal(write_block(B), SCSI_RESERVATION_CONFLICT);
	expect_reservation(1, KA);
}

/* RESERVE(6) and persistent reservations exclude each other (SPC-4 §5.13.3,
 * CRH). */
static void test_old_and_new_kind(void **state)
{
	(void)state;
	assert_int_equal(RUN(A, 0, SCSI_RESERVE_6), SCSI_GOOD);
	for (unsigned who = A; who <= B; who++) {
		assert_int_equal(reg(who), SCSI_RESERVATION_CONFLICT);
		assert_int_equal(RUN(who, 8, 0x5e, 0, 0, 0, 0, 0, 0, 0, 8),
				 SCSI_RESERVATION_CONFLICT);
	}
	assert_int_equal(RUN(A, 0, SCSI_RELEASE_6), SCSI_GOOD);
	reg(A);
	assert_int_equal(RUN(A, 0, SCSI_RESERVE_6), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(RUN(B, 0, SCSI_RESERVE_6), SCSI_RESERVATION_CONFLICT);
	reg(B);
	reserve(A, 5);
	assert_int_equal(RUN(A, 0, SCSI_RESERVE_6), SCSI_GOOD);
	assert_int_equal(RUN(B, 0, SCSI_RESERVE_10), SCSI_GOOD);
	assert_int_equal(RUN(C, 0, SCSI_RESERVE_6), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(RUN(C, 0, SCSI_RELEASE_6), SCSI_RESERVATION_CONFLICT);
	assert_int_equal(RUN(A, 0, SCSI_RELEASE_6), SCSI_GOOD);
	expect_reservation(5, KA);
	assert_int_equal(tur(C), SCSI_GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_register_table_35_spc4_5_13_7),
		T(test_register_ignoring_the_key),
		T(test_registration_outlives_the_session),
		T(test_each_type_and_who_may_what),
		T(test_reserve_again_spc4_5_13_9),
		T(test_bad_scopes_and_types),
		T(test_release_sets_attentions),
		T(test_release_by_unregistering),
		T(test_clear_spc4_5_13_11_2_5),
		T(test_preempt_the_holder),
		T(test_preempt_a_registration_only),
		T(test_preempt_where_all_registrants_hold),
		T(test_preempt_and_abort_waits_for_tasks),
		T(test_preempt_and_abort_of_one_that_leaves),
		T(test_register_and_move),
		T(test_register_and_move_of_all_registrants),
		T(test_spec_i_pt),
		T(test_spec_i_pt_with_broken_ids),
		T(test_all_tg_pt),
		T(test_report_capabilities_spc4_6_15_4),
		T(test_full_status_spc4_6_15_5),
		T(test_in_at_every_allocation_length),
		T(test_out_list_lengths_spc4_6_16_1),
		T(test_aptpl_is_refused_where_nothing_is_kept),
		TK(test_aptpl_is_kept_before_good),
		TK(test_aptpl_that_cannot_be_kept),
		TK(test_aptpl_outlives_the_power),
		TK(test_aptpl_switched_off),
		TK(test_restore_of_damaged_state),
		TK(test_restore_of_nonsense),
		T(test_lu_reset_keeps_it_spc4_5_13_5),
		T(test_old_and_new_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
