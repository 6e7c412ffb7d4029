/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared_pr_test.c: the reservations of a unit that several gateways share. What they
 * report and do is compared with a gateway that has the unit for itself; PR_SEED and
 * PR_COMMANDS change the random runs.
 */
#include "base/crc32c.h"
#include "device/reserve/reserve.h"
#include "gateways.h"

static const uint64_t key_of[INIS] = {
	0xa0a0a0a0a0a0a0a0ull,
	0xb0b0b0b0b0b0b0b0ull,
	0xc0c0c0c0c0c0c0c0ull,
	0xd0d0d0d0d0d0d0d0ull,
};
static const uint8_t types[] = { 1, 3, 5, 6, 7, 8 };

/* ---- commands ---- */

struct pr {
	uint8_t sa, type, flags;
	uint64_t key, sa_key;
	/* REGISTER AND MOVE, SPEC_I_PT */
	uint16_t port;
	const char *name;
};

static uint32_t put_list(const struct pr *p, uint8_t list[320])
{
	uint32_t id = 0;

	memset(list, 0, 320);
	put_be64(list, p->key);
	put_be64(list + 8, p->sa_key);
	list[20] = p->flags;
	if (p->sa == SCSI_PROUT_REGISTER_AND_MOVE) {
		list[20] = 0;
		list[17] = p->flags;
		put_be16(list + 18, p->port);
		id = (uint32_t)scsi_transportid_put(p->name, list + 24);
		put_be32(list + 20, id);
		return 24 + id;
	}
	if (!(p->flags & 0x08))
		return 24;
	id = (uint32_t)scsi_transportid_put(p->name, list + 28);
	put_be32(list + 24, id);
	return 28 + id;
}

static void send_pr(unsigned who, const struct pr *p)
{
	uint8_t cdb[16] = { SCSI_PERSISTENT_RESERVE_OUT, p->sa, p->type };
	uint8_t list[320];
	uint32_t len = put_list(p, list);

	put_be32(cdb + 5, len);
	send_cdb(&gws.i[who], cdb, list, len, 0);
}

static int out(unsigned who, const struct pr *p)
{
	send_pr(who, p);
	settle();
	return finish(&gws.i[who]);
}

static int reg(unsigned who)
{
	return out(who, &(struct pr){ .sa = SCSI_PROUT_REGISTER_IGNORE,
				      .sa_key = key_of[who % INIS] });
}

static int reserve(unsigned who, uint8_t type)
{
	return out(who, &(struct pr){ .sa = SCSI_PROUT_RESERVE,
				      .type = type,
				      .key = key_of[who % INIS] });
}

static const uint8_t *in(unsigned who, uint8_t sa)
{
	assert_int_equal(RUN(who, 32000, SCSI_PERSISTENT_RESERVE_IN, sa, 0, 0,
			     0, 0, 0, 0x7d, 0),
			 SCSI_GOOD);
	return gws.i[who].in;
}

static unsigned nkeys(unsigned who)
{
	return get_be32(in(who, SCSI_PRIN_READ_KEYS) + 4) / 8;
}

/* ---- one change after the other ---- */

static void test_a_registration_is_known_everywhere(void **state)
{
	(void)state;
	assert_int_equal(reg(2), SCSI_GOOD);
	assert_true(gws.version > 0);
	assert_int_equal(nkeys(0), 1);
	assert_int_equal(reserve(2, 6), SCSI_GOOD);
	assert_int_equal(in(1, SCSI_PRIN_READ_RESERVATION)[21], 6);
	/* the owner refuses what the reservation forbids */
	assert_int_equal(RUN(0, 512, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1),
			 SCSI_RESERVATION_CONFLICT);
}

static void test_preempt_and_abort_at_another_gateway(void **state)
{
	(void)state;
	for (unsigned i = 0; i < INIS; i++)
		assert_int_equal(reg(i), SCSI_GOOD);
	assert_int_equal(reserve(0, 5), SCSI_GOOD);
	notify();
	take_attentions();
	assert_int_equal(out(2,
			     &(struct pr){ .sa = SCSI_PROUT_PREEMPT_AND_ABORT,
					   .type = 6,
					   .key = key_of[2],
					   .sa_key = key_of[0] }),
			 SCSI_GOOD);
	assert_int_equal(gws.i[0].aborts, 0); /* gateway 0 does not know yet */
	notify();
	assert_int_equal(gws.i[0].aborts, 1);
	assert_int_equal(gws.i[1].aborts, 0);
	assert_int_equal(take_attention(0), ASC_REGISTRATIONS_PREEMPTED);
	assert_int_equal(take_attention(1), ASC_RESERVATIONS_RELEASED);
	assert_int_equal(take_attention(2), 0);
	assert_int_equal(take_attention(3), ASC_RESERVATIONS_RELEASED);
	assert_int_equal(nkeys(0), 3);
}

/* ALL_TG_PT: the ports of all gateways; REGISTER AND MOVE: to any of them. */
static void test_ports_of_other_gateways(void **state)
{
	const uint8_t *p;

	(void)state;
	assert_int_equal(out(0, &(struct pr){ .sa = SCSI_PROUT_REGISTER,
					      .flags = 0x04,
					      .sa_key = key_of[0] }),
			 SCSI_GOOD);
	p = in(3, SCSI_PRIN_READ_FULL_STATUS);
	assert_int_equal(get_be16(p + 8 + 18), 1);
	assert_int_equal(get_be16(p + 8 + 24 + get_be32(p + 8 + 20) + 18), 2);
	assert_int_equal(reserve(0, 3), SCSI_GOOD);
	assert_int_equal(out(0,
			     &(struct pr){ .sa = SCSI_PROUT_REGISTER_AND_MOVE,
					   .key = key_of[0],
					   .sa_key = key_of[3],
					   .port = 3,
					   .name = gws.i[3].name }),
			 SCSI_CHECK_CONDITION); /* no gateway has port 3 */
	assert_int_equal(out(0,
			     &(struct pr){ .sa = SCSI_PROUT_REGISTER_AND_MOVE,
					   .key = key_of[0],
					   .sa_key = key_of[3],
					   .port = 2,
					   .name = gws.i[3].name }),
			 SCSI_GOOD);
	notify(); /* a gateway reads the record before it becomes the owner */
	make_owner(1);
	assert_int_equal(RUN(3, 0, SCSI_TEST_UNIT_READY), SCSI_GOOD);
	assert_int_equal(RUN(2, 512, SCSI_READ_10, 0, 0, 0, 0, 0, 0, 0, 1),
			 SCSI_RESERVATION_CONFLICT);
	assert_int_equal(out(3, &(struct pr){ .sa = SCSI_PROUT_RELEASE,
					      .type = 3,
					      .key = key_of[3] }),
			 SCSI_GOOD);
}

/* Each gateway knows which initiator has made a registration, and so its share. */
static void test_the_share_of_an_initiator_is_common(void **state)
{
	char name[64];

	(void)state;
	for (unsigned i = 0; i < RSV_SHARE; i++) {
		snprintf(name, sizeof(name), "iqn.x%u,i,0x800000000000", i);
		assert_int_equal(out(0, &(struct pr){ .sa = SCSI_PROUT_REGISTER,
						      .flags = 0x08,
						      .sa_key = key_of[0],
						      .name = name }),
				 i < RSV_SHARE - 1 ? SCSI_GOOD
						   : SCSI_CHECK_CONDITION);
		assert_int_equal(
			out(0,
			    &(struct pr){ .sa = SCSI_PROUT_REGISTER_IGNORE }),
			SCSI_GOOD);
	}
	assert_int_equal(nkeys(3), RSV_SHARE - 1);
}

static void test_a_faster_gateway(void **state)
{
	(void)state;
	gws.is_lazy = true;
	for (unsigned i = 0; i < INIS; i++)
		send_pr(i, &(struct pr){ .sa = SCSI_PROUT_REGISTER,
					 .sa_key = key_of[i] });
	settle();
	for (unsigned i = 0; i < INIS; i++)
		assert_false(gws.i[i].done);
	gws.is_lazy = false;
	settle();
	for (unsigned i = 0; i < INIS; i++)
		assert_int_equal(finish(&gws.i[i]), SCSI_GOOD);
	assert_int_equal(nkeys(0), INIS);
	assert_int_equal(nkeys(2), INIS);
	assert_int_equal(get_be32(in(0, SCSI_PRIN_READ_KEYS)), INIS);
}

/* A decision may be wrong after the change of another gateway. */
static void test_a_change_is_decided_again(void **state)
{
	(void)state;
	assert_int_equal(reg(0), SCSI_GOOD);
	assert_int_equal(reg(2), SCSI_GOOD);
	gws.is_lazy = true;
	notify();
	send_pr(0, &(struct pr){ .sa = SCSI_PROUT_RESERVE,
				 .type = 3,
				 .key = key_of[0] });
	send_pr(2, &(struct pr){ .sa = SCSI_PROUT_RESERVE,
				 .type = 3,
				 .key = key_of[2] });
	settle();
	assert_true(gw_work(&gws.g[1])); /* the second one is the first */
	gws.is_lazy = false;
	settle();
	assert_int_equal(finish(&gws.i[2]), SCSI_GOOD);
	assert_int_equal(finish(&gws.i[0]), SCSI_RESERVATION_CONFLICT);
}

static void test_a_store_that_does_not_answer(void **state)
{
	(void)state;
	gws.g[0].is_cut = true;
	gws.g[0].result = ERR_RESET;
	assert_int_equal(reg(0), SCSI_CHECK_CONDITION);
	expect_sense(0, SENSE_HARDWARE_ERROR, ASC_INTERNAL_TARGET_FAILURE);
	gws.g[0].is_cut = false;
	assert_int_equal(nkeys(0), 0);
}

static void test_a_fenced_gateway_reports_no_change(void **state)
{
	(void)state;
	gws.g[0].is_cut = true;
	gws.g[0].result = ERR_TERMINATED;
	send_pr(0,
		&(struct pr){ .sa = SCSI_PROUT_REGISTER, .sa_key = key_of[0] });
	settle();
	assert_false(gws.i[0].done);
	assert_int_equal(dev_task_abort(&gws.i[0].task, ini_released), 0);
	assert_true(gws.i[0].released);
	dev_task_end(&gws.i[0].task);
	gws.i[0].is_busy = false;
	gws.g[0].is_cut = false;
	assert_int_equal(nkeys(0), 0);
}

/* A save that takes long holds no other unit up. */
static void test_other_units_go_on(void **state)
{
	const struct dev_lu_config cfg = { .lun = 1 };

	(void)state;
	assert_int_equal(dev_lu_add(gws.g[0].server, &cfg,
				    bs_null_new("null", 1u << 20, 512)),
			 0);
	settle();
	take_attentions();
	gws.is_lazy = true;
	send_pr(0,
		&(struct pr){ .sa = SCSI_PROUT_REGISTER, .sa_key = key_of[0] });
	settle();
	assert_false(gws.i[0].done);
	/* RESERVE(6) at the other unit */
	memset(&gws.i[1].task, 0, sizeof(gws.i[1].task));
	gws.i[1].done = false;
	gws.i[1].task.nexus = gws.i[1].nexus;
	gws.i[1].task.lun = dev_lun_encode(1);
	gws.i[1].task.attr = DEV_ATTR_SIMPLE;
	gws.i[1].task.cdb[0] = SCSI_RESERVE_6;
	gws.i[1].task.cdb_len = 16;
	gws.i[1].task.done = ini_done;
	assert_int_equal(dev_task_begin(&gws.i[1].task), 0);
	dev_task_execute(&gws.i[1].task);
	settle();
	(void)finish(&gws.i[1]); /* an attention */
	assert_int_equal(dev_task_begin(&gws.i[1].task), 0);
	gws.i[1].done = false;
	dev_task_execute(&gws.i[1].task);
	settle();
	assert_int_equal(finish(&gws.i[1]), SCSI_GOOD);
	gws.is_lazy = false;
	settle();
	assert_int_equal(finish(&gws.i[0]), SCSI_GOOD);
}

/* ---- RESERVE(6) ---- */

static void test_reserve_6_is_known_and_ends_with_the_owner(void **state)
{
	(void)state;
	assert_int_equal(RUN(0, 0, SCSI_RESERVE_6), SCSI_GOOD);
	assert_int_equal(RUN(1, 0, SCSI_TEST_UNIT_READY),
			 SCSI_RESERVATION_CONFLICT);
	notify();
	assert_int_equal(out(2, &(struct pr){ .sa = SCSI_PROUT_REGISTER,
					      .sa_key = key_of[2] }),
			 SCSI_RESERVATION_CONFLICT);
	assert_int_equal(RUN(2, 0, SCSI_RESERVE_6), SCSI_CHECK_CONDITION);
	set_access(0, DEV_ACCESS_STANDBY);
	assert_int_equal(take_attention(0), ASC_RESERVATIONS_RELEASED);
	set_access(1, DEV_ACCESS_OPTIMIZED);
	take_attentions();
	notify();
	assert_int_equal(RUN(3, 0, SCSI_RESERVE_6), SCSI_GOOD);
	assert_int_equal(RUN(3, 0, SCSI_RELEASE_6), SCSI_GOOD);
	assert_int_equal(reg(2), SCSI_GOOD);
}

static void test_reserve_6_of_a_dead_owner(void **state)
{
	(void)state;
	assert_int_equal(RUN(0, 0, SCSI_RESERVE_6), SCSI_GOOD);
	notify();
	gws.g[0].is_cut = true;
	gws.g[0].result = ERR_TERMINATED;
	set_access(1, DEV_ACCESS_OPTIMIZED);
	take_attentions();
	assert_int_equal(RUN(3, 0, SCSI_TEST_UNIT_READY), SCSI_GOOD);
	assert_int_equal(reg(2), SCSI_GOOD);
	logout(0); /* ends, although its record cannot be changed */
	gws.g[0].is_cut = false;
	notify();
	login(0);
	take_attentions();
	assert_int_equal(nkeys(0), 1);
}

static void test_the_end_of_a_nexus_releases_reserve_6(void **state)
{
	(void)state;
	assert_int_equal(RUN(0, 0, SCSI_RESERVE_6), SCSI_GOOD);
	logout(0);
	assert_int_equal(RUN(1, 0, SCSI_TEST_UNIT_READY), SCSI_GOOD);
	assert_int_equal(reg(3), SCSI_GOOD);
}

/* ---- adoption ---- */

static void count_adopted(void *arg)
{
	++*(unsigned *)arg;
}

static void test_missing_events(void **state)
{
	(void)state;
	for (unsigned i = 0; i < INIS; i++)
		assert_int_equal(reg(i), SCSI_GOOD);
	notify();
	take_attentions();
	assert_int_equal(out(2,
			     &(struct pr){ .sa = SCSI_PROUT_PREEMPT_AND_ABORT,
					   .type = 6,
					   .key = key_of[2],
					   .sa_key = key_of[0] }),
			 SCSI_GOOD);
	gws.forgotten = gws.version;
	while (gws.nevents)
		free(gws.events[--gws.nevents].part.data);
	notify();
	assert_int_equal(take_attention(0), ASC_RESERVATIONS_PREEMPTED);
	assert_int_equal(take_attention(1), ASC_RESERVATIONS_PREEMPTED);
	/* the nexus without registration may have been preempted */
	assert_int_equal(gws.i[0].aborts, 1);
	assert_int_equal(gws.i[1].aborts, 0);
	gws.forgotten = 0;
}

static void test_an_adoption_without_news(void **state)
{
	unsigned n = 0;
	const struct dev_adoption a = { .incomplete = true };

	(void)state;
	assert_int_equal(dev_lu_adopt(gws.g[0].lu, &a, count_adopted, &n), 0);
	assert_int_equal(n, 0); /* never from within */
	settle();
	assert_int_equal(n, 1);
	for (unsigned i = 0; i < INIS; i++)
		assert_int_equal(take_attention(i), 0);
}

static void test_damaged_records_are_not_adopted(void **state)
{
	struct dev_adoption a = { .nevents = 0 };
	uint8_t *bad;
	unsigned n = 0;
	size_t len;

	(void)state;
	for (unsigned i = 0; i < INIS; i++)
		assert_int_equal(reg(i), SCSI_GOOD);
	assert_int_equal(reserve(1, 3), SCSI_GOOD);
	len = gws.parts[DEV_KEPT_RESERVATIONS].len;
	bad = malloc(len);
	a.records[DEV_KEPT_RESERVATIONS].data = bad;
	for (size_t cut = 1; cut < len; cut++) {
		memcpy(bad, gws.parts[DEV_KEPT_RESERVATIONS].data, len);
		a.records[DEV_KEPT_RESERVATIONS].len = cut;
		assert_int_not_equal(
			dev_lu_adopt(gws.g[0].lu, &a, count_adopted, &n), 0);
		if (cut >= 28) /* with a good CRC */
			put_be32(bad + 8, crc32c_wire(crc32c_update(CRC32C_SEED,
								    bad + 12,
								    cut - 12)));
		assert_int_not_equal(
			dev_lu_adopt(gws.g[0].lu, &a, count_adopted, &n), 0);
	}
	a.records[DEV_KEPT_RESERVATIONS].len = len;
	for (size_t bit = 0; bit < 8 * len; bit++) {
		memcpy(bad, gws.parts[DEV_KEPT_RESERVATIONS].data, len);
		bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(
			dev_lu_adopt(gws.g[0].lu, &a, count_adopted, &n), 0);
	}
	free(bad);
	settle();
	assert_int_equal(n, 0);
	assert_int_equal(nkeys(0), INIS);
}

/* Bytes of any kind as events do no harm. */
static void test_events_of_nonsense(void **state)
{
	uint8_t bytes[300];
	unsigned n = 0;

	(void)state;
	srand(1);
	for (unsigned i = 0; i < 200; i++) {
		const struct dev_event e[2] = {
			{ DEV_KEPT_RESERVATIONS, bytes, (size_t)rand() % 300 },
			{ DEV_KEPT_UNIT, bytes, (size_t)rand() % 300 },
		};
		const struct dev_adoption a = { .events = e, .nevents = 2 };

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(rand() % 3 ? rand() : 0);
		assert_int_equal(
			dev_lu_adopt(gws.g[0].lu, &a, count_adopted, &n), 0);
		settle();
	}
	assert_int_equal(n, 200);
	take_attentions();
}

/* ---- random commands, compared with a unit of one gateway ---- */

static unsigned seed(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)atoi(s) : otherwise;
}

static unsigned rnd(unsigned n)
{
	return (unsigned)rand() % n;
}

static struct pr random_pr(unsigned who)
{
	static const uint8_t sas[] = {
		SCSI_PROUT_REGISTER,	      SCSI_PROUT_REGISTER,
		SCSI_PROUT_REGISTER_IGNORE,   SCSI_PROUT_REGISTER_IGNORE,
		SCSI_PROUT_RESERVE,	      SCSI_PROUT_RESERVE,
		SCSI_PROUT_RELEASE,	      SCSI_PROUT_CLEAR,
		SCSI_PROUT_PREEMPT,	      SCSI_PROUT_PREEMPT_AND_ABORT,
		SCSI_PROUT_PREEMPT_AND_ABORT, SCSI_PROUT_REGISTER_AND_MOVE,
	};
	struct pr p = { .sa = sas[rnd(ARRAY_LEN(sas))],
			.type = types[rnd(ARRAY_LEN(types))],
			.key = rnd(5) ? key_of[who] : key_of[rnd(INIS)],
			.sa_key = rnd(6) ? key_of[rnd(INIS)] : 0,
			.port = (uint16_t)(1 + rnd(3)),
			.name = gws.i[rnd(INIS)].name };

	if (p.sa == SCSI_PROUT_REGISTER && !rnd(2))
		p.key = 0;
	if (p.sa == SCSI_PROUT_REGISTER || p.sa == SCSI_PROUT_REGISTER_IGNORE)
		p.flags = (uint8_t)(rnd(3) ? 0 : 0x04);
	else if (p.sa == SCSI_PROUT_REGISTER_AND_MOVE)
		p.flags = rnd(2) ? 0x02 : 0;
	else if (p.sa != SCSI_PROUT_PREEMPT &&
		 p.sa != SCSI_PROUT_PREEMPT_AND_ABORT)
		p.sa_key = 0;
	if (p.sa == SCSI_PROUT_REGISTER && !rnd(4))
		p.flags |= 0x08;
	if (p.sa == SCSI_PROUT_REGISTER || p.sa == SCSI_PROUT_REGISTER_IGNORE)
		p.type = 0;
	return p;
}

static int compare_regs(const void *a, const void *b)
{
	const struct rsv_reg *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : x->port - y->port;
}

static struct rsv_state *sorted(const struct gw *g)
{
	struct rsv_state *s = rsv_copy(g->lu->rsv[0], 0);
	struct rsv_reg holder = { .key = 0 };

	if (s->holder >= 0)
		holder = s->regs[s->holder];
	qsort(s->regs, s->n, sizeof(s->regs[0]), compare_regs);
	if (s->holder >= 0)
		s->holder = rsv_find(s, holder.name, holder.port);
	return s;
}

/* expect_same compares two gateways: the order of the registrations may differ. */
static void expect_same(const struct gw *a, const struct gw *b)
{
	struct rsv_state *x = sorted(a), *y = sorted(b);

	assert_int_equal(x->n, y->n);
	assert_int_equal(x->type, y->type);
	assert_int_equal(x->holder, y->holder);
	assert_int_equal(x->generation, y->generation);
	for (unsigned i = 0; i < x->n; i++) {
		assert_int_equal(compare_regs(&x->regs[i], &y->regs[i]), 0);
		assert_true(x->regs[i].key == y->regs[i].key);
		assert_string_equal(x->regs[i].by, y->regs[i].by);
	}
	free(x);
	free(y);
	for (unsigned w = 1; w < WORKERS; w++)
		assert_ptr_equal(a->lu->rsv[w], a->lu->rsv[0]);
}

/* The same attentions, aborts and denied accesses at each nexus. */
static void expect_same_nexuses(void)
{
	for (unsigned i = 0; i < INIS; i++) {
		uint16_t asc;

		do {
			asc = take_attention(i);
			assert_int_equal(asc, take_attention(INIS + i));
		} while (asc);
		assert_int_equal(gws.i[i].aborts, gws.i[INIS + i].aborts);
	}
}

static void test_one_command_at_a_time(void **state)
{
	unsigned n = seed("PR_COMMANDS", 3000), good = 0;

	(void)state;
	srand(seed("PR_SEED", 1));
	for (unsigned k = 0; k < n; k++) {
		unsigned who = rnd(INIS);
		const struct pr p = random_pr(who);
		int status = out(who, &p);

		assert_int_equal(status, out(INIS + who, &p));
		if (status == SCSI_CHECK_CONDITION)
			assert_memory_equal(&gws.i[who].sense,
					    &gws.i[INIS + who].sense,
					    sizeof(gws.i[who].sense));
		good += status == SCSI_GOOD;
		notify();
		expect_same(&gws.g[0], &gws.g[MODEL]);
		expect_same(&gws.g[1], &gws.g[MODEL]);
		expect_same_nexuses();
		if (rnd(8) == 0)
			make_owner(rnd(2));
	}
	assert_true(good > n / 20);
}

/* ---- random commands at once ---- */

static struct pr in_progress[INIS];

static void drop_attentions(struct dev_lu *lu)
{
	for (unsigned w = 0; w < WORKERS; w++)
		list_for_each(it, &lu->lanes[w].itls)
			list_entry(it, struct dev_itl, link)->attention = 0;
}

/* A change was saved: the model executes it, too. */
static void model_executes(struct gw *g, struct dev_save *s)
{
	const struct rsv_op *op = container_of(
		dev_lu_change_of(container_of(s, struct dev_change, save)),
		struct rsv_op, u);
	unsigned who = 0;

	(void)g;
	if (s->kind != DEV_KEPT_RESERVATIONS || !op->u.task)
		return;
	while (gws.i[who].nexus != op->u.nexus)
		who++;
	drop_attentions(gws.g[MODEL].lu);
	send_pr(INIS + who, &in_progress[who]);
	while (!gws.i[INIS + who].done)
		for (unsigned w = 0; w < WORKERS; w++)
			gw_deliver(&gws.g[MODEL], w);
	assert_int_equal(finish(&gws.i[INIS + who]), SCSI_GOOD);
}

static void one_step(void)
{
	struct gw *g = &gws.g[rnd(GATEWAYS)];
	unsigned who = rnd(INIS);

	switch (rnd(8)) {
	case 0:
	case 1:
		if (gws.i[who].is_busy)
			break;
		drop_attentions(gws.i[who].gw->lu);
		in_progress[who] = random_pr(who);
		send_pr(who, &in_progress[who]);
		break;
	case 2:
		gw_work(g);
		break;
	case 3:
		if (!rnd(4))
			gw_catch_up(g);
		break;
	default:
		gw_deliver(g, rnd(WORKERS));
		break;
	}
	for (unsigned i = 0; i < INIS; i++)
		if (gws.i[i].is_busy && gws.i[i].done)
			finish(&gws.i[i]);
}

static void test_commands_at_once(void **state)
{
	unsigned n = seed("PR_COMMANDS", 3000);

	(void)state;
	srand(seed("PR_SEED", 2));
	gws.saved = model_executes;
	for (unsigned round = 0; round < n / 30; round++) {
		for (unsigned k = 0; k < 300; k++)
			one_step();
		settle();
		for (unsigned i = 0; i < INIS; i++)
			if (gws.i[i].is_busy)
				finish(&gws.i[i]);
		notify();
		expect_same(&gws.g[0], &gws.g[MODEL]);
		expect_same(&gws.g[1], &gws.g[MODEL]);
	}
	take_attentions();
	gws.saved = NULL;
}

#define T(name) \
 cmocka_unit_test_setup_teardown(name, gateways_open, gateways_close)

#define T1(name) \
 cmocka_unit_test_setup_teardown(name, gateways_open_alone, gateways_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_registration_is_known_everywhere),
		T(test_preempt_and_abort_at_another_gateway),
		T(test_ports_of_other_gateways),
		T(test_the_share_of_an_initiator_is_common),
		T(test_a_faster_gateway),
		T(test_a_change_is_decided_again),
		T(test_a_store_that_does_not_answer),
		T(test_a_fenced_gateway_reports_no_change),
		T(test_other_units_go_on),
		T(test_reserve_6_is_known_and_ends_with_the_owner),
		T(test_reserve_6_of_a_dead_owner),
		T(test_the_end_of_a_nexus_releases_reserve_6),
		T(test_missing_events),
		T(test_an_adoption_without_news),
		T(test_damaged_records_are_not_adopted),
		T(test_events_of_nonsense),
		T(test_one_command_at_a_time),
		T(test_commands_at_once),
		T1(test_a_registration_is_known_everywhere),
		T1(test_preempt_and_abort_at_another_gateway),
		T1(test_ports_of_other_gateways),
		T1(test_the_share_of_an_initiator_is_common),
		T1(test_a_faster_gateway),
		T1(test_a_change_is_decided_again),
		T1(test_a_store_that_does_not_answer),
		T1(test_a_fenced_gateway_reports_no_change),
		T1(test_other_units_go_on),
		T1(test_reserve_6_is_known_and_ends_with_the_owner),
		T1(test_reserve_6_of_a_dead_owner),
		T1(test_the_end_of_a_nexus_releases_reserve_6),
		T1(test_missing_events),
		T1(test_an_adoption_without_news),
		T1(test_damaged_records_are_not_adopted),
		T1(test_events_of_nonsense),
		T1(test_one_command_at_a_time),
		T1(test_commands_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
