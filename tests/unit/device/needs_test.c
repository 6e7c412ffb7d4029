/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * needs_test.c: the resources that each command requests before it is executed,
 * by number of blocks and expected data length: memory charge, data-out, range
 * of blocks. tests/vectors/outcomes, needs.txt.
 */
#include "outcome.h"

#define COMMON	(16u << 20)
#define RESERVE (400u << 10)

static void print_needs(struct outcome_case *to)
{
	const struct dev_task *t = &R->task;

	if (t->sense.len || t->status) {
		scsi_sense_parse(&R->sense, t->sense.data, t->sense.len);
		snprintf(to->outcome, OUTCOME_MAX, "status %02x %x/%04x",
			 t->status, R->sense.key, R->sense.asc);
		return;
	}
	snprintf(to->outcome, OUTCOME_MAX,
		 "charge %zu, out %u of %llu, LBA %llu + %llu",
		 t->own.share.charge.len, (unsigned)t->out_len,
		 (unsigned long long)t->total.out, (unsigned long long)t->lba,
		 (unsigned long long)t->own.blocks);
}

/* protect: the bits of byte 1 that request protection information. */
static void one_command(const struct dev_command *c, uint64_t blocks,
			uint32_t room, uint8_t protect)
{
	struct outcome_case *to = next_case(NO_BIT);
	const struct template *m = template_of(c);
	uint8_t cdb[CDB_MAX];
	unsigned n = usual_at(c, m, cdb, m ? NOT_PUT : 3, m ? NOT_PUT : blocks);
	int err;

	cdb[c->op == SCSI_VARIABLE_LENGTH ? 10 : 1] |= protect;
	snprintf(to->label, sizeof(to->label), "%llu/%u/%02x",
		 (unsigned long long)blocks, room, protect);
	R->out = 0;
	err = fx_begin(R, cdb, CDB_MAX, c->dir == DIR_LIST ? n : room,
		       c->dir == DIR_IN ? room : 0);
	if (err) {
		snprintf(to->outcome, OUTCOME_MAX, "not begun");
		return;
	}
	print_needs(to);
	dev_task_end(&R->task);
}

static bool protects(const struct dev_command *c, uint8_t protect)
{
	unsigned at = c->op == SCSI_VARIABLE_LENGTH ? 10 : 1;

	return (c->usage[at] & protect) == protect;
}

static void each_length(const struct dev_command *c)
{
	static const uint64_t blocks[] = { 0, 1, 8, 9, 128, 129, 256, 1000 };
	static const uint32_t rooms[] = { 0, 511, 512, 4097, FX_MAX };

	fprintf(script.out, "%s\n", c->name);
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		for (size_t k = 0; k < ARRAY_LEN(rooms); k++) {
			one_command(c, blocks[i], rooms[k], 0);
			if (pi_type && protects(c, 0x20))
				one_command(c, blocks[i], rooms[k], 0x20);
		}
	print_outcomes("needs");
}

static void compare(const char *name)
{
	transcript_begin(&script);
	R->server->env.buf_common = COMMON;
	R->server->env.buf_reserve = RESERVE;
	share_init(&R->server->memory[0].share, COMMON, RESERVE, RESERVE);
	for_rows(c) if (c->flags & (CMD_MEDIUM | CMD_WRITES) &&
			c->dir != DIR_NONE && c->dir != DIR_LIST)
		each_length(c);
	transcript_compare(&script, name);
}

static void test_needs_of_a_disk(void **state)
{
	(void)state;
	compare("needs");
}

static void test_needs_with_type_2_protection(void **state)
{
	(void)state;
	compare("needs-protected");
}

static void test_needs_of_a_cd(void **state)
{
	(void)state;
	compare("needs-cd");
}

#define U(name, open) cmocka_unit_test_setup_teardown(name, open, close_fixture)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		U(test_needs_of_a_disk, open_disk),
		U(test_needs_with_type_2_protection, open_protected_disk),
		U(test_needs_of_a_cd, open_cd),
	};

	if (!transcript_args(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
