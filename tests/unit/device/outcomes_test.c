/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outcomes_test.c: how each command ends, by each bit of its CDB and of its
 * parameter list, by LBA, number of blocks and data length, and the state of
 * the unit afterwards, compared with tests/vectors/outcomes. A line has one
 * outcome and the bits (byte.bit) that lead to the outcome if they alone are
 * inverted. Data are CRC32C values; of the state, a line has only what differs from
 * the fresh unit at the begin of the file.
 */
#include "outcome.h"

/* ---- the variations ---- */

static bool is_of_sa(const struct dev_command *c, unsigned byte, unsigned bit)
{
	if (c->op == SCSI_VARIABLE_LENGTH)
		return byte == 8 || byte == 9;
	return (c->flags & CMD_SA) && byte == 1 && bit < 5;
}

static void one_bit_of_the_cdb(const struct dev_command *c,
			       const struct template *m)
{
	uint8_t cdb[CDB_MAX];

	for (unsigned bit = 0; bit < c->len * 8u; bit++) {
		unsigned n = usual(c, m, cdb);

		if (bit < 8 || !(c->usage[bit / 8] & BIT(bit % 8)) ||
		    is_of_sa(c, bit / 8, bit % 8))
			continue;
		cdb[bit / 8] ^= (uint8_t)BIT(bit % 8);
		send(c, cdb, n);
		put_outcome(next_case(bit), false);
	}
	print_outcomes("CDB");
}

static void one_bit_of_the_list(const struct dev_command *c,
				const struct template *m)
{
	uint8_t cdb[CDB_MAX];
	unsigned len = usual(c, m, cdb);

	for (unsigned bit = 0; bit < len * 8; bit++) {
		usual(c, m, cdb);
		list[bit / 8] ^= (uint8_t)BIT(bit % 8);
		send(c, cdb, len);
		put_outcome(next_case(bit), true);
	}
	print_outcomes("list");
}

/* put_case adds the case a, with b if b is not 0. */
static void put_case(uint64_t a, uint64_t b, bool of_list)
{
	struct outcome_case *c = next_case(NO_BIT);

	if (b)
		snprintf(c->label, sizeof(c->label), "%llu+%llu",
			 (unsigned long long)a, (unsigned long long)b);
	else
		snprintf(c->label, sizeof(c->label), "%llu",
			 (unsigned long long)a);
	put_outcome(c, of_list);
}

/* The list is shorter: first the data sent, then also the length in the CDB. */
static void short_lists(const struct dev_command *c, const struct template *m)
{
	uint8_t cdb[CDB_MAX];
	unsigned len = usual(c, m, cdb);

	for (unsigned cut = 0; cut < len; cut++) {
		usual(c, m, cdb);
		if (m->len_bytes)
			put_number(cdb, m->len_at, m->len_bytes, cut);
		memcpy(data, list, len);
		run(cdb, CDB_MAX, data, cut, 0);
		put_case(cut, 0, true);
	}
	print_outcomes("list of so many bytes");
}

static void edge(const struct dev_command *c, const struct template *m,
		 uint64_t lba, uint64_t n)
{
	uint8_t cdb[CDB_MAX];
	unsigned len = usual_at(c, m, cdb, lba, n);

	send(c, cdb, len);
	put_case(lba, n, false);
}

static void edges(const struct dev_command *c, const struct template *m)
{
	const uint64_t all = nblocks();
	const uint64_t lbas[] = { 0, 1, all - 8, all - 1, all, all + 1 };
	const uint64_t counts[] = { 0, 1, 2, 7, 8, 9, all, all + 1 };

	if (m && m->list)
		return;
	for (size_t i = 0; i < ARRAY_LEN(lbas); i++)
		for (size_t k = 0; k < ARRAY_LEN(counts); k++)
			edge(c, m, lbas[i], counts[k]);
	print_outcomes("LBA and blocks");
}

/* The initiator sends or takes so many bytes of four blocks, or of a list. */
static void expected_lengths(const struct dev_command *c,
			     const struct template *m)
{
	static const uint32_t lengths[] = {
		0, 1, 511, 512, 513, 1024, 1535, 1536, 2047, 2048, 2049, 4096
	};
	uint8_t cdb[CDB_MAX];

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		unsigned n = m ? usual_at(c, m, cdb, NOT_PUT, NOT_PUT)
			       : usual_at(c, m, cdb, NOT_PUT, 4);

		memcpy(data, list, n);
		run(cdb, CDB_MAX, data, c->dir == DIR_IN ? 0 : lengths[i],
		    c->dir == DIR_IN ? lengths[i] : 0);
		put_case(lengths[i], 0, false);
	}
	print_outcomes("length");
}

/* ---- the files ---- */

static bool has_list(const struct template *m, const struct dev_command *c)
{
	return m->list && is_of(m, c) && (m->sa != 0xff || template_of(c) == m);
}

static void write_row(const struct dev_command *c)
{
	const struct template *m = template_of(c);

	fprintf(script.out, "%s\n", c->name);
	one_bit_of_the_cdb(c, m);
	edges(c, m);
	expected_lengths(c, m);
	for_templates(l)
	{
		if (!has_list(l, c))
			continue;
		one_bit_of_the_list(c, l);
		short_lists(c, l);
	}
}

static void compare(const char *name)
{
	outcomes_begin();
	for_rows(c)
	{
		/* Protection information does not concern other commands. */
		if (!pi_type || (c->flags & (CMD_MEDIUM | CMD_WRITES)))
			write_row(c);
	}
	transcript_compare(&script, name);
}

static void test_outcomes_of_a_disk(void **state)
{
	(void)state;
	compare("disk");
}

static void test_outcomes_with_type_2_protection(void **state)
{
	(void)state;
	compare("protected");
}

static void test_outcomes_of_a_cd(void **state)
{
	(void)state;
	compare("cd");
}

#define U(name, open) cmocka_unit_test_setup_teardown(name, open, close_fixture)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		U(test_outcomes_of_a_disk, open_disk),
		U(test_outcomes_with_type_2_protection, open_protected_disk),
		U(test_outcomes_of_a_cd, open_cd),
	};

	if (!transcript_args(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
