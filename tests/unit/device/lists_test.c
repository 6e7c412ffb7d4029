/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lists_test.c: how parameter lists end that depend on the state of the unit:
 * mode pages with and without block descriptors, reservations of a registered
 * nexus, tokens. tests/vectors/outcomes, lists.txt.
 */
#include "outcome.h"

#define OURS 0xaull

static uint8_t sent[LIST_MAX];
static unsigned sent_len;

/* each_bit tries a parameter list of sent_len bytes; len_at 0: the CDB has no
 * length field. */
static void each_bit(const char *what, void (*prepare)(void),
		     const uint8_t cdb[CDB_MAX])
{
	for (unsigned bit = 0; bit < sent_len * 8; bit++) {
		memcpy(list, sent, sent_len);
		list[bit / 8] ^= (uint8_t)BIT(bit % 8);
		run_after(prepare, cdb, sent_len, next_case(bit));
	}
	print_outcomes(what);
}

static void each_cut(const char *what, void (*prepare)(void),
		     const uint8_t cdb[CDB_MAX], unsigned len_at)
{
	for (unsigned n = 1; n < sent_len; n++) {
		struct outcome_case *to = next_case(NO_BIT);
		uint8_t c[CDB_MAX];

		memcpy(c, cdb, CDB_MAX);
		if (len_at == 7)
			put_be16(c + 7, (uint16_t)n);
		else
			put_be32(c + len_at, n);
		memcpy(list, sent, sent_len);
		snprintf(to->label, sizeof(to->label), "%u", n);
		run_after(prepare, c, n, to);
	}
	print_outcomes(what);
}

static void nothing(void)
{
}

/* ---- mode pages ---- */

/* take_page makes a list for MODE SELECT(10) of the page that the unit
 * reports. */
static bool take_page(uint8_t flags, uint8_t page, uint8_t subpage)
{
	if (CMD(0, 4096, NULL, SCSI_MODE_SENSE_10, flags, page, subpage, 0, 0,
		0, 0x10, 0) != SCSI_GOOD)
		return false;
	sent_len = (unsigned)R->in_len;
	memcpy(sent, R->in, sent_len);
	put_be16(sent, 0);
	sent[2] = sent[3] = 0;
	sent[8 + get_be16(sent + 6)] &= 0x7f; /* PS */
	return true;
}

static void select_page(const char *form, uint8_t flags, uint8_t page,
			uint8_t subpage)
{
	uint8_t cdb[CDB_MAX] = { SCSI_MODE_SELECT_10, 0x10 };
	char what[48];

	if (!take_page(flags, page, subpage))
		return;
	put_be16(cdb + 7, (uint16_t)sent_len);
	snprintf(what, sizeof(what), "page %02x/%02x%s", page, subpage, form);
	each_bit(what, nothing, cdb);
}

static void test_mode_pages(void **state)
{
	(void)state;
	outcomes_begin();
	for (uint8_t page = 0; page < 0x3f; page++)
		for (uint8_t subpage = 0; subpage < 8; subpage++)
			select_page("", 0x08, page, subpage);
	if (type == DEV_DISK) {
		select_page(", block descriptor", 0, 0x0a, 0);
		select_page(", long block descriptor", 0x10, 0x0a, 0);
	}
	transcript_compare(&script, type == DEV_DISK ? "modes" : "modes-cd");
}

/* ---- reservations ---- */

static void register_own(void)
{
	const uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, [8] = 24 };
	uint8_t keys[24] = { 0 };

	put_be64(keys + 8, OURS);
	assert_int_equal(fx_run(R, cdb, 16, keys, 24, 0), SCSI_GOOD);
}

static void reserve_own(void)
{
	const uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT,
				  SCSI_PROUT_RESERVE, 3, [8] = 24 };
	uint8_t keys[24] = { 0 };

	register_own();
	put_be64(keys, OURS);
	assert_int_equal(fx_run(R, cdb, 16, keys, 24, 0), SCSI_GOOD);
}

static void one_action(const char *name, uint8_t sa, unsigned (*fill)(void),
		       void (*prepare)(void))
{
	uint8_t cdb[CDB_MAX] = { SCSI_PERSISTENT_RESERVE_OUT, sa, 3 };
	char what[48];

	memset(list, 0, sizeof(list));
	sent_len = fill();
	memcpy(sent, list, sent_len);
	put_be64(sent, prepare == nothing ? 0 : OURS);
	put_be32(cdb + 5, sent_len);
	snprintf(what, sizeof(what), "%s, bits", name);
	each_bit(what, prepare, cdb);
	snprintf(what, sizeof(what), "%s, bytes", name);
	each_cut(what, prepare, cdb, 5);
}

/* Two TransportIDs of different formats. */
static unsigned register_two(void)
{
	size_t n;

	put_be64(list + 8, 0xabc);
	list[20] = 0x08; /* SPEC_I_PT */
	n = scsi_transportid_put("iqn.k,i,0x3", list + 28);
	n += scsi_transportid_put("iqn.longer.than.that,i,0x800000000004",
				  list + 28 + n);
	put_be32(list + 24, (uint32_t)n);
	return 28 + (unsigned)n;
}

static void test_reservation_lists(void **state)
{
	static const struct {
		const char *name;
		uint8_t sa;
		unsigned (*fill)(void);
		void (*prepare)(void);
	} actions[] = {
		{ "first registration", 0, register_others, nothing },
		{ "two others", 0, register_two, nothing },
		{ "registered", 0, register_list, register_own },
		{ "registered, others", 0, register_others, register_own },
		{ "reserve", 1, key_list, register_own },
		{ "release", 2, key_list, reserve_own },
		{ "clear", 3, key_list, reserve_own },
		{ "preempt", 4, register_list, reserve_own },
		{ "ignore, others", 6, register_others, register_own },
		{ "move", 7, move_list, reserve_own },
	};

	(void)state;
	outcomes_begin();
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		one_action(actions[i].name, actions[i].sa, actions[i].fill,
			   actions[i].prepare);
	transcript_compare(&script, "reserve-lists");
}

/* ---- tokens and copies ---- */

#define TOKEN_ID 7

static void populate(void)
{
	uint8_t cdb[16] = { SCSI_EXTENDED_COPY, SCSI_XC_POPULATE_TOKEN };
	unsigned n;

	memset(list, 0, sizeof(list));
	n = populate_list();
	put_be32(cdb + 6, TOKEN_ID);
	put_be32(cdb + 10, n);
	assert_int_equal(fx_run(R, cdb, 16, list, n, 0), SCSI_GOOD);
}

static void populate_and_keep(void)
{
	static uint8_t kept[LIST_MAX];

	memcpy(kept, list,
	       sizeof(list)); /* the list of the following command */
	populate();
	memcpy(list, kept, sizeof(list));
}

/* ask_for_token tries RECEIVE ROD TOKEN INFORMATION with several allocation
 * lengths and list identifiers. */
static void ask_for_token(void)
{
	static const unsigned rooms[] = { 0,  1,  4,  15,  16,	36,  37,  38,
					  39, 40, 64, 511, 512, 548, 549, 4000 };
	uint8_t cdb[CDB_MAX] = { SCSI_RECEIVE_COPY_RESULTS,
				 SCSI_RCR_TOKEN_INFORMATION };

	for (size_t i = 0; i < ARRAY_LEN(rooms); i++)
		for (uint32_t id = TOKEN_ID - 1; id <= TOKEN_ID + 1; id++) {
			struct outcome_case *to = next_case(NO_BIT);

			put_be32(cdb + 2, id);
			put_be32(cdb + 10, rooms[i]);
			snprintf(to->label, sizeof(to->label), "%u/%u", id,
				 rooms[i]);
			run_after(populate_and_keep, cdb, 0, to);
		}
	print_outcomes("token information");
}

/* take_token_list makes a list for WRITE USING TOKEN with the token of
 * `populate`: two ranges, from the second block of the token on. */
static void take_token_list(void)
{
	fresh();
	populate();
	CMD(0, 4096, NULL, SCSI_RECEIVE_COPY_RESULTS,
	    SCSI_RCR_TOKEN_INFORMATION, 0, 0, 0, TOKEN_ID, 0, 0, 0, 0, 0, 0,
	    0x10, 0);
	memset(sent, 0, sizeof(sent));
	sent_len = 568;
	put_be16(sent, 566);
	put_be64(sent + 8, 1);
	memcpy(sent + 16, R->in + 38, 512);
	put_be16(sent + 534, 32);
	put_be64(sent + 536, 16);
	put_be32(sent + 544, 2);
	put_be64(sent + 552, 32);
	put_be32(sent + 560, 3);
}

static void test_token_lists(void **state)
{
	uint8_t cdb[CDB_MAX] = { SCSI_EXTENDED_COPY,
				 SCSI_XC_WRITE_USING_TOKEN, [9] = 9 };

	(void)state;
	outcomes_begin();
	ask_for_token();
	take_token_list();
	put_be32(cdb + 10, sent_len);
	each_bit("write using token, bits", populate_and_keep, cdb);
	transcript_compare(&script, "tokens");
}

/* Two segments between blocks of the same unit: one by bytes and one by
 * blocks. */
static unsigned two_segments(void)
{
	unsigned n = copy_list();

	memmove(list + n, list + 48, n - 48);
	put_be32(list + 8, 2 * (n - 48));
	put_be64(list + n + 20, 200);
	list[1] = 0x20; /* priority */
	return 2 * n - 48;
}

static void test_copy_lists(void **state)
{
	uint8_t cdb[CDB_MAX] = { SCSI_EXTENDED_COPY };

	(void)state;
	outcomes_begin();
	memset(list, 0, sizeof(list));
	sent_len = two_segments();
	memcpy(sent, list, sent_len);
	put_be32(cdb + 10, sent_len);
	each_bit("two segments, bits", nothing, cdb);
	each_cut("two segments, bytes", nothing, cdb, 10);
	transcript_compare(&script, "copies");
}

#define U(name, open) cmocka_unit_test_setup_teardown(name, open, close_fixture)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		U(test_mode_pages, open_disk),
		U(test_mode_pages, open_cd),
		U(test_reservation_lists, open_disk),
		U(test_token_lists, open_disk),
		U(test_copy_lists, open_disk),
	};

	if (!transcript_args(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
