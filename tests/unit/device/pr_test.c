/* SPDX-License-Identifier: BSD-2-Clause */
/* pr_test.c: persistent reservations by initiators on three workers, by the
 * clauses of SPC-4 §5.13, §6.15 and §6.16. */
#include "pr_fixture.h"

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
		T(test_lu_reset_keeps_it_spc4_5_13_5),
		T(test_old_and_new_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
