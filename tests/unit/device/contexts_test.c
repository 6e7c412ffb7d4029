/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contexts_test.c: how each command ends while the unit is not ready, while
 * access is restricted, and while another initiator holds a reservation; and
 * how each PERSISTENT RESERVE OUT ends by keys, type, earlier registrations and
 * earlier reservation: tests/vectors/outcomes, contexts.txt and reserve.txt.
 */
#include "device/unit/condition.h"
#include "outcome.h"

#define OURS   0xaull
#define THEIRS 0xbull

static struct dev_lu *unit(void)
{
	return dev_lu_get(R->server, 0);
}

/* ---- persistent reservations ---- */

static void pr_out(uint8_t sa, uint8_t rtype, uint64_t key, uint64_t sa_key)
{
	const uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, sa,
				  rtype, [8] = 24 };
	uint8_t keys[24] = { 0 };

	put_be64(keys, key);
	put_be64(keys + 8, sa_key);
	assert_int_equal(fx_run(R, cdb, 16, keys, 24, 0), SCSI_GOOD);
}

static void register_own_key(void)
{
	pr_out(SCSI_PROUT_REGISTER, 0, 0, OURS);
}

static void register_other(void)
{
	fx_swap(R);
	pr_out(SCSI_PROUT_REGISTER, 0, 0, THEIRS);
	fx_swap(R);
}

static void register_both(void)
{
	register_own_key();
	register_other();
}

static void other_reserves(uint8_t rtype)
{
	register_other();
	fx_swap(R);
	pr_out(SCSI_PROUT_RESERVE, rtype, THEIRS, 0);
	fx_swap(R);
}

static void own_reserves(uint8_t rtype)
{
	register_both();
	pr_out(SCSI_PROUT_RESERVE, rtype, OURS, 0);
}

/* ---- the contexts ---- */

static void nothing(void)
{
}

static void eject(void)
{
	CMD(0, 0, NULL, SCSI_START_STOP_UNIT, 0, 0, 0, 0x02);
}

static void prevent_removal(void)
{
	CMD(0, 0, NULL, SCSI_PREVENT_ALLOW, 0, 0, 0, 1);
}

static void other_prevents_removal(void)
{
	fx_swap(R);
	prevent_removal();
	fx_swap(R);
}

static void stand_by(void)
{
	CMD(0, 0, NULL, SCSI_START_STOP_UNIT, 0, 0, 0, 0x30);
}

static void other_reserves_spc2(void)
{
	fx_swap(R);
	CMD(0, 0, NULL, 0x16);
	fx_swap(R);
}

static void own_reserves_spc2(void)
{
	CMD(0, 0, NULL, 0x16);
}

static void conditions(enum dev_condition c)
{
	if (c == LU_SANITIZE_FAILED)
		conditions(LU_SANITIZING);
	if (c == LU_FORMAT_FAILED)
		conditions(LU_FORMATTING);
	assert_true(dev_condition_go(unit(), dev_condition(unit()), c));
}

static void sanitizing(void)
{
	conditions(LU_SANITIZING);
}

static void sanitize_failed(void)
{
	conditions(LU_SANITIZE_FAILED);
}

static void formatting(void)
{
	conditions(LU_FORMATTING);
}

static void format_failed(void)
{
	conditions(LU_FORMAT_FAILED);
}

static void changing(void)
{
	conditions(LU_CHANGING);
}

static void change_done(void *arg, int err)
{
	(void)arg;
	assert_int_equal(err, 0);
}

static void access_state(enum dev_access state)
{
	const struct dev_group_change c = { .id = 1, .state = state };

	assert_int_equal(dev_group_set(R->server, &c, change_done, NULL), 0);
	fx_take_attentions(R);
}

static void non_optimized(void)
{
	access_state(DEV_ACCESS_NON_OPTIMIZED);
}

static void standby(void)
{
	access_state(DEV_ACCESS_STANDBY);
}

static void unavailable(void)
{
	access_state(DEV_ACCESS_UNAVAILABLE);
}

static void attention(void)
{
	fx_reset(unit());
}

static void fault_with_naca(void)
{
	CMD(0, 0, NULL, SCSI_READ_10, 0, 0xff, 0, 0, 0, 0, 0, 1, CONTROL_NACA);
	assert_int_equal(R->task.status, SCSI_CHECK_CONDITION);
}

static void aca_of_own(void)
{
	fault_with_naca();
}

static void aca_of_other(void)
{
	fx_swap(R);
	fault_with_naca();
	fx_swap(R);
}

static void software_write_protect(void)
{
	struct dev_control ctl = dev_ctl_load(&unit()->ctl);

	ctl.swp = true;
	dev_ctl_store(&unit()->ctl, &ctl);
}

static void reservations_lost(void)
{
	dev_lu_lose_reservations(unit());
}

static void another_lun(void)
{
	R->lun = 3;
}

static void no_buffer(void)
{
	R->fail_buf_after = 1;
}

static void second_buffer_missing(void)
{
	R->fail_buf_after = 2;
}

static void attribute_aca(void)
{
	R->attr = DEV_ATTR_ACA;
}

static void attribute_ordered(void)
{
	R->attr = DEV_ATTR_ORDERED;
}

struct context {
	const char *name;
	void (*prepare)(void);
	/* used instead of `prepare` for reservations of this type */
	void (*reserve)(uint8_t type);
	uint8_t rtype;
	bool is_for_disk;
};

#define D true
#define RESERVED(who, fn)                        \
 { who " reserved: 1", NULL, fn, 1, D },         \
	 { who " reserved: 3", NULL, fn, 3, D }, \
	 { who " reserved: 5", NULL, fn, 5, D }, \
	 { who " reserved: 6", NULL, fn, 6, D }, \
	 { who " reserved: 7", NULL, fn, 7, D }, \
 {                                               \
  who " reserved: 8", NULL, fn, 8, D             \
 }

static void other_reserves_own_registers(uint8_t rtype)
{
	other_reserves(rtype);
	register_own_key();
}

static const struct context contexts[] = {
	{ "ready", nothing, NULL, 0, false },
	{ "ejected", eject, NULL, 0, false },
	{ "removal prevented", prevent_removal, NULL, 0, false },
	{ "removal prevented by another", other_prevents_removal, NULL, 0,
	  false },
	{ "standby power condition", stand_by, NULL, 0, false },
	{ "changing the medium", changing, NULL, 0, false },
	{ "attention", attention, NULL, 0, false },
	{ "another LUN", another_lun, NULL, 0, false },
	{ "no buffer", no_buffer, NULL, 0, false },
	{ "no second buffer", second_buffer_missing, NULL, 0, false },
	{ "ACA", aca_of_own, NULL, 0, false },
	{ "ACA of another", aca_of_other, NULL, 0, false },
	{ "attribute ACA", attribute_aca, NULL, 0, false },
	{ "attribute ORDERED", attribute_ordered, NULL, 0, false },
	{ "sanitizing", sanitizing, NULL, 0, D },
	{ "sanitize failed", sanitize_failed, NULL, 0, D },
	{ "formatting", formatting, NULL, 0, D },
	{ "format failed", format_failed, NULL, 0, D },
	{ "non-optimized", non_optimized, NULL, 0, D },
	{ "standby", standby, NULL, 0, D },
	{ "unavailable", unavailable, NULL, 0, D },
	{ "software write protect", software_write_protect, NULL, 0, D },
	{ "RESERVE(6)", own_reserves_spc2, NULL, 0, D },
	{ "RESERVE(6) of another", other_reserves_spc2, NULL, 0, D },
	{ "reservations lost", reservations_lost, NULL, 0, D },
	{ "registered", register_own_key, NULL, 0, D },
	{ "another registered", register_other, NULL, 0, D },
	{ "both registered", register_both, NULL, 0, D },
	RESERVED("another", other_reserves),
	RESERVED("registered, another", other_reserves_own_registers),
	RESERVED("we", own_reserves),
};

static const struct context *context;

static void enter(void)
{
	if (context->prepare)
		context->prepare();
	else
		context->reserve(context->rtype);
}

/* ---- each command ---- */

static void each_command(const struct context *x)
{
	uint8_t cdb[CDB_MAX];

	context = x;
	fprintf(script.out, "%s\n", x->name);
	for_rows(c)
	{
		struct outcome_case *to = next_case(NO_BIT);
		unsigned n = usual(c, template_of(c), cdb);

		snprintf(to->label, sizeof(to->label), "%02x", c->op);
		if (c->flags & CMD_SA)
			snprintf(to->label + 2, sizeof(to->label) - 2, "/%02x",
				 c->sa);
		run_after(enter, cdb, n, to);
	}
	print_outcomes("commands");
}

static void test_commands_in_each_context(void **state)
{
	(void)state;
	outcomes_begin();
	for (size_t i = 0; i < ARRAY_LEN(contexts); i++)
		if (type == DEV_DISK || !contexts[i].is_for_disk)
			each_command(&contexts[i]);
	transcript_compare(&script,
			   type == DEV_DISK ? "contexts" : "contexts-cd");
}

/* ---- PERSISTENT RESERVE OUT ---- */

static const struct context before[] = {
	{ "none registered", nothing, NULL, 0, D },
	{ "registered", register_own_key, NULL, 0, D },
	{ "another registered", register_other, NULL, 0, D },
	{ "both registered", register_both, NULL, 0, D },
	{ "reservations lost", reservations_lost, NULL, 0, D },
	RESERVED("another", other_reserves),
	RESERVED("registered, another", other_reserves_own_registers),
	RESERVED("we", own_reserves),
};

static unsigned keys_list(uint8_t sa, uint64_t key, uint64_t sa_key)
{
	memset(list, 0, sizeof(list));
	put_be64(list, key);
	put_be64(list + 8, sa_key);
	if (sa != SCSI_PROUT_REGISTER_AND_MOVE)
		return 24;
	put_be16(list + 18, 1); /* target port */
	put_be32(list + 20,
		 (uint32_t)scsi_transportid_put("iqn.j,i,0x2", list + 24));
	return 24 + get_be32(list + 20);
}

static void each_key(uint8_t sa, uint8_t rtype)
{
	static const uint64_t keys[] = { 0, OURS, THEIRS, 0xc };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
			struct outcome_case *to = next_case(NO_BIT);
			uint8_t cdb[CDB_MAX] = { SCSI_PERSISTENT_RESERVE_OUT,
						 sa, rtype };
			unsigned n = keys_list(sa, keys[i], keys[k]);

			put_be32(cdb + 5, n);
			snprintf(to->label, sizeof(to->label), "%x,%x/%x",
				 (unsigned)keys[i], (unsigned)keys[k], rtype);
			run_after(enter, cdb, n, to);
		}
}

static bool has_type(uint8_t sa)
{
	return sa == SCSI_PROUT_RESERVE || sa == SCSI_PROUT_RELEASE ||
	       sa == SCSI_PROUT_PREEMPT || sa == SCSI_PROUT_PREEMPT_AND_ABORT ||
	       sa == SCSI_PROUT_REPLACE_LOST;
}

static void each_action(const struct context *x)
{
	static const uint8_t types[] = { 1, 3, 6, 8, 0, 2, 0x11 };
	char what[32];

	context = x;
	fprintf(script.out, "%s\n", x->name);
	for (uint8_t sa = 0; sa < 9; sa++) {
		for (size_t i = 0; i < (has_type(sa) ? ARRAY_LEN(types) : 1);
		     i++)
			each_key(sa, types[i]);
		snprintf(what, sizeof(what), "action %u", sa);
		print_outcomes(what);
	}
}

static void test_persistent_reserve_out_by_keys(void **state)
{
	(void)state;
	outcomes_begin();
	for (size_t i = 0; i < ARRAY_LEN(before); i++)
		each_action(&before[i]);
	transcript_compare(&script, "reserve");
}

#define U(name, open) cmocka_unit_test_setup_teardown(name, open, close_fixture)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		U(test_commands_in_each_context, open_disk),
		U(test_commands_in_each_context, open_cd),
		U(test_persistent_reserve_out_by_keys, open_disk),
	};

	if (!transcript_args(argc, argv))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
