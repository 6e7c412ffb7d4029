/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_test.c: a million random commands of three initiators on three workers,
 * compared with a small model of a unit with reservations (rsv_model.h). Some
 * commands fail with NACA = 1, or because their data are missing. The test
 * prints the seed; MODEL_SEED and MODEL_COMMANDS set other values.
 */
#include "device/unit/command.h"
#include "rsv_model.h"

#define COMMANDS 1000000u
#define KEYS	 4u /* few, so that initiators use the same key */

static unsigned seed;

static unsigned rnd(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* ---- the device ---- */

static int device_out(unsigned who, const struct pr_out *o)
{
	uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, o->action, o->type };
	uint8_t list[24 + SCSI_TRANSPORTID_MAX] = { 0 };
	size_t len = 24, id;

	put_be64(list, o->key);
	put_be64(list + 8, o->sa_key);
	if (o->action == 7) {
		list[17] = o->unreg ? 0x02 : 0;
		put_be16(list + 18, 1);
		id = scsi_transportid_put(three.i[o->to].name, list + 24);
		put_be32(list + 20, (uint32_t)id);
		len += id;
	}
	put_be32(cdb + 5, (uint32_t)len);
	return three_run(who, cdb, list, (uint32_t)len, 0);
}

static void expect(unsigned who, int status, struct result want)
{
	const struct three_ini *i = &three.i[who];

	assert_int_equal(status, want.status);
	if (want.status != SCSI_CHECK_CONDITION)
		return;
	assert_int_equal(i->sense.key, want.key);
	assert_int_equal(i->sense.asc, want.asc);
}

/* SAM-5 §§5.10.3, 5.10.4, for commands without NACA and without the ACA
 * attribute. */
static bool expect_aca(unsigned who, int status)
{
	if (!m.faulted)
		return false;
	assert_int_equal(status,
			 m.faulted == who + 1 ? SCSI_ACA_ACTIVE : SCSI_BUSY);
	return true;
}

/* expect_attention_of checks the conditions with precedence over the command:
 * an ACA, a unit attention (once). True: one of them ended the command. */
static bool expect_attention_of(unsigned who, int status)
{
	unsigned what = 0;

	if (!m.attentions[who])
		return false;
	while (!(m.attentions[who] & 1u << what))
		what++;
	m.attentions[who] &= ~(1u << what);
	expect(who, status, check(SENSE_UNIT_ATTENTION, attention_asc[what]));
	return true;
}

static bool expect_new_attention(unsigned who, int status)
{
	return expect_aca(who, status) || expect_attention_of(who, status);
}

/* ---- commands of an initiator ---- */

/* SPC-4 §5.13.11.2.6: a PREEMPT AND ABORT while another nexus is the faulted
 * one. */
static void past_aca(unsigned who, const struct pr_out *o, int status)
{
	unsigned f = m.faulted - 1;
	bool all = all_registrants() && o->sa_key == 0;
	bool due = all || (m.registered[f] && m.key[f] == o->sa_key);
	bool every = all_registrants();
	struct model before = m;
	struct result want;

	if (expect_attention_of(who, status))
		return;
	want = model_out(who, o);
	if (want.status != SCSI_GOOD) {
		expect(who, status, want);
	} else if (due || every) {
		expect(who, status, want);
		m.faulted = due ? 0 : m.faulted;
	} else {
		m = before;
		assert_int_equal(status, SCSI_BUSY);
	}
}

static void random_out(unsigned who)
{
	static const uint8_t types[] = { 1, 3, 5, 6, 7, 8 };
	static const uint8_t actions[] = { 0, 0, 0, 1, 1, 2, 2, 3,
					   4, 4, 5, 6, 6, 7, 7 };
	struct pr_out o = { .action = actions[rnd(sizeof(actions))],
			    .type = types[rnd(6)],
			    .key = rnd(KEYS),
			    .sa_key = rnd(KEYS),
			    .to = rnd(INITIATORS),
			    .unreg = rnd(2) };
	int status;

	if (rnd(4) && m.registered[who])
		o.key = m.key[who]; /* mostly the correct key */
	if (rnd(2) && m.type)
		o.type = (uint8_t)m.type;
	if (o.action == 0 || o.action == 3 || o.action > 5)
		o.type = 0;
	status = device_out(who, &o);
	if (o.action == 5 && m.faulted && m.faulted != who + 1)
		past_aca(who, &o, status);
	else if (!expect_new_attention(who, status))
		expect(who, status, model_out(who, &o));
}

static void random_access(unsigned who)
{
	static const uint8_t block[512];
	bool write = rnd(2);
	int status;

	if (write)
		status =
			three_run(who,
				  (const uint8_t[16]){ SCSI_WRITE_10, [8] = 1 },
				  block, 512, 0);
	else
		status = RUN(who, 512, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1);
	if (!expect_new_attention(who, status))
		expect(who, status, model_access(who, write));
}

static void random_old_kind(unsigned who)
{
	static const uint8_t ops[] = { 0x16, 0x56, 0x17, 0x57, 0x17, 0x57 };
	unsigned which = rnd(6);
	int status = RUN(who, 0, ops[which]);

	if (!expect_new_attention(who, status))
		expect(who, status,
		       which < 2 ? model_reserve_6(who) : model_release_6(who));
}

static void random_tur(unsigned who)
{
	int status = tur(who);

	if (!expect_new_attention(who, status))
		expect(who, status,
		       m.reserved >= 0 && m.reserved != (int)who ? conflict
								 : good);
}

static void compare_keys(unsigned who)
{
	const uint8_t *p = three.i[who].in;
	unsigned count[KEYS] = { 0 };

	assert_int_equal(get_be32(p), m.generation);
	assert_int_equal(get_be32(p + 4), 8 * nregistered());
	for (unsigned i = 0; i < nregistered(); i++)
		count[get_be64(p + 8 + 8u * i) % KEYS]++;
	for (unsigned i = 0; i < INITIATORS; i++)
		if (m.registered[i])
			assert_true(count[m.key[i]]-- > 0);
}

static void compare_reservation(unsigned who)
{
	const uint8_t *p = three.i[who].in;

	assert_int_equal(get_be32(p), m.generation);
	assert_int_equal(get_be32(p + 4), m.type ? 16 : 0);
	if (!m.type)
		return;
	assert_int_equal(p[21], m.type);
	assert_true(get_be64(p + 8) ==
		    (all_registrants() ? 0 : m.key[m.holder]));
}

static void random_in(unsigned who)
{
	unsigned sa = rnd(2);
	int status = RUN(who, 256, SCSI_PERSISTENT_RESERVE_IN, (uint8_t)sa, 0,
			 0, 0, 0, 0, 1, 0);

	if (expect_new_attention(who, status))
		return;
	expect(who, status, m.reserved >= 0 ? conflict : good);
	if (status != SCSI_GOOD)
		return;
	if (sa == 0)
		compare_keys(who);
	else
		compare_reservation(who);
}

static void cleared(void *arg, int err)
{
	assert_int_equal(err, 0);
	*(bool *)arg = true;
}

static void clear_aca(unsigned who)
{
	bool over = false;

	dev_nexus_clear_aca(three.i[who].nexus, 0, cleared, &over);
	three_settle();
	assert_true(over);
	if (m.faulted == who + 1)
		m.faulted = 0;
}

/* The reason for which a command fails: a READ of blocks that do not exist, or
 * a READ or WRITE whose data are missing. */
struct fault {
	bool naca, write, transport;
	enum dev_failure reason; /* for `transport` */
	struct result want;
};

static struct fault pick_fault(bool naca)
{
	struct fault f = { .naca = naca };

	f.transport = rnd(2);
	f.write = f.transport && rnd(2);
	f.want = check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	if (f.transport) {
		bool crc = rnd(2);

		f.reason =
			crc ? DEV_FAILURE_DATA_CRC : DEV_FAILURE_DATA_MISSING;
		f.want = check(SENSE_ABORTED_COMMAND,
			       crc ? ASC_PROTOCOL_SERVICE_CRC_ERROR
				   : ASC_NOT_ENOUGH_UNSOLICITED_DATA);
	}
	return f;
}

static int fault(unsigned who, const struct fault *f)
{
	uint8_t cdb[16] = { f->write ? SCSI_WRITE_10 : SCSI_READ_10, [8] = 1 };
	struct dev_task *t;

	cdb[2] = f->transport ? 0 : 0xff;
	cdb[9] = f->naca ? CONTROL_NACA : 0;
	t = three_announce(who, cdb, f->write ? 512 : 0, f->write ? 0 : 512);
	if (f->transport)
		dev_task_fail(t, f->reason);
	else
		dev_task_execute(t);
	three_settle();
	return three_finish(who);
}

/* expect_fault checks the result of a fault unless an ACA ends the command.
 * True: CHECK CONDITION. */
static bool expect_fault(unsigned who, int status, const struct fault *f)
{
	if (expect_attention_of(who, status))
		return true; /* a unit attention is a CHECK CONDITION, too */
	if (model_access(who, f->write).status != SCSI_GOOD) {
		expect(who, status, conflict);
		return false;
	}
	expect(who, status, f->want);
	return true;
}

static void random_fault(unsigned who, bool naca)
{
	struct fault f = pick_fault(naca);
	int status = fault(who, &f);

	if (m.faulted && naca)
		assert_int_equal(status, SCSI_ACA_ACTIVE);
	else if (!expect_aca(who, status) && expect_fault(who, status, &f) &&
		 naca)
		m.faulted = who + 1;
}

/* A failing task with the ACA attribute: with NACA it establishes a new ACA,
 * otherwise it ends the ACA. */
static void random_aca_task(unsigned who)
{
	struct fault f = pick_fault(rnd(2));
	int status;

	three.i[who].attr = DEV_ATTR_ACA;
	status = fault(who, &f);
	three.i[who].attr = 0;
	if (m.tmf_only && m.faulted) {
		assert_int_equal(status, SCSI_ACA_ACTIVE);
		return;
	}
	if (m.faulted != who + 1) {
		assert_int_equal(status, m.faulted ? SCSI_ACA_ACTIVE
						   : SCSI_CHECK_CONDITION);
		if (!m.faulted && f.naca)
			m.faulted = who + 1;
		return;
	}
	if (expect_fault(who, status, &f) && !f.naca)
		m.faulted = 0;
}

/* Sets TMF_ONLY as MODE SELECT does. The model has no attentions of mode
 * changes. */
static void set_tmf_only(bool on)
{
	dev_lu_get(three.server, 0)->ctl.tmf_only = m.tmf_only = on;
}

static void random_aca(unsigned who)
{
	if (rnd(8) == 0)
		set_tmf_only(rnd(2));
	if (!m.faulted)
		random_fault(who, rnd(4));
	else if (rnd(2))
		clear_aca(rnd(INITIATORS));
	else if (rnd(4))
		random_aca_task(rnd(2) ? who : m.faulted - 1);
	else
		random_fault(who, rnd(4));
}

static void relogin(unsigned who)
{
	three_logout(who);
	if (m.faulted == who + 1)
		m.faulted = 0;
	if (m.reserved == (int)who)
		m.reserved = -1;
	three_login(who);
	m.attentions[who] = 1u << ATTENTION_POWER_ON;
}

static void reset_unit(unsigned who)
{
	three_reset(who);
	m.reserved = -1;
	m.faulted = 0;
	m.tmf_only = false; /* the value was not saved */
	for (unsigned i = 0; i < INITIATORS; i++)
		m.attentions[i] |= 1u << ATTENTION_RESET;
}

/* A power loss: registrations without APTPL end. */
static void power_off(void)
{
	three_restart();
	memset(&m, 0, sizeof(m));
	m.reserved = -1;
}

static void random_step(void)
{
	unsigned who = rnd(INITIATORS), what = rnd(1000);

	if (m.faulted ? rnd(4) == 0 : rnd(64) == 0)
		random_aca(who);
	else if (what < 400)
		random_out(who);
	else if (what < 700)
		random_access(who);
	else if (what < 780)
		random_tur(who);
	else if (what < 860)
		random_old_kind(who);
	else if (what < 990)
		random_in(who);
	else if (what < 996)
		relogin(who);
	else if (what < 999)
		reset_unit(who);
	else
		power_off();
}

static unsigned from_environment(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 0) : otherwise;
}

static void test_a_million_commands(void **state)
{
	unsigned n = from_environment("MODEL_COMMANDS", COMMANDS);

	(void)state;
	seed = from_environment("MODEL_SEED", 20261121);
	print_message("%u commands, seed %u\n", n, seed);
	memset(&m, 0, sizeof(m));
	m.reserved = -1;
	for (unsigned i = 0; i < n; i++)
		random_step();
}

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_a_million_commands) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
