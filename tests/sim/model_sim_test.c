/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_sim_test.c: compares a unit with a small sequential model. Three
 * initiators on three workers have up to five commands in progress at once;
 * messages between workers are delivered, and the backstore answers, in any
 * order. Afterwards there must be an order of these commands in which the model,
 * which has neither workers nor messages, gives each command the same end and the
 * same data, and reaches the same blocks, reservations and unit attentions;
 * ORDERED commands keep their place. An aborted command is executed completely or
 * not at all. Some commands fail with NACA = 1: a command that arrives during the
 * ACA is refused without effect, or has the ACA attribute; an earlier command ends
 * after the ACA. The data of a command arrive some time after the command, or the
 * transport fails: then the command has no effect. All commands end within a
 * bounded number of turns.
 *
 * Commands on blocks run together, and so do commands that change reservations,
 * with commands on separate blocks. Commands whose result the standards leave
 * open during other commands (PREEMPT AND ABORT, resets, a lost nexus) run alone.
 * MODEL_SEED and MODEL_COMMANDS change the run.
 */
#include "device/reserve/reserve.h"
#include "device/unit/attention.h"
#include "device/unit/command.h"
#include "device/unit/itl.h"
#include "model_op.h"
#include "slow_store.h"
#include "unit/device/rsv_model.h"

#define COMMANDS 100000u
#define BLOCKS	 SLOW_BLOCKS
#define TOGETHER 5u
#define KEYS	 4u
#define TURNS	 10000u /* of a round; the longest takes some hundred */
#define VALUES	 5u	/* few, so that comparisons often succeed */

static uint64_t dice;

static unsigned rnd(unsigned n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (unsigned)((dice >> 20) % n);
}

/* ---- the model: blocks beside reservations ---- */

static uint64_t blocks[BLOCKS]; /* the eight bytes that fill each */

struct whole {
	struct model rsv;
	uint64_t blocks[BLOCKS];
};

static struct whole model_keep(void)
{
	struct whole w = { .rsv = m };

	memcpy(w.blocks, blocks, sizeof(blocks));
	return w;
}

static void model_put_back(const struct whole *w)
{
	m = w->rsv;
	memcpy(blocks, w->blocks, sizeof(blocks));
}

/* ---- commands ---- */

static struct op ops[TOGETHER];
static struct {
	unsigned good, conflict, other, aborted;
} seen[K_ALL + 1];
static unsigned turned,
	past; /* refused because of an ACA; executed by the ACA attribute */
static unsigned cut_off; /* their transport failed */
static unsigned nops;
static bool tmf_only; /* in this round */

static bool writes(const struct op *o)
{
	if (o->kind == K_FAULT)
		return o->cdb[0] == SCSI_WRITE_10;
	return o->kind != K_READ && o->kind != K_VERIFY &&
	       o->kind != K_VERIFY_ONE;
}

/* ---- the result of the model for each command ---- */

static unsigned first_difference(uint64_t a, uint64_t b)
{
	unsigned i = 0;

	while (!((a ^ b) >> (56 - 8 * i) & 0xff))
		i++;
	return i;
}

/* Returns whether blocks and values differ, and the first byte in *at. */
static bool differ(const struct op *o, bool one, unsigned *at)
{
	for (unsigned i = 0; i < o->n; i++) {
		uint64_t v = o->values[one ? 0 : i];

		if (blocks[o->lba + i] == v)
			continue;
		*at = i * BLOCK + first_difference(blocks[o->lba + i], v);
		return true;
	}
	return false;
}

static bool ends(const struct op *o, struct result r)
{
	return o->task.status == r.status &&
	       (r.status != SCSI_CHECK_CONDITION ||
		(o->sense.key == r.key && o->sense.asc == r.asc));
}

static bool miscompares(const struct op *o, unsigned at)
{
	return ends(o, check(SENSE_MISCOMPARE, 0x1d00)) && o->sense.has_info &&
	       o->sense.info == at;
}

static bool was_read(const struct op *o)
{
	if (o->got != o->n * BLOCK)
		return false;
	for (size_t i = 0; i < o->got; i += 8)
		if (get_be64(o->in + i) != blocks[o->lba + i / BLOCK])
			return false;
	return true;
}

/* Executes a permitted command on its blocks. */
static bool model_blocks(const struct op *o)
{
	uint64_t *b = blocks + o->lba;
	unsigned at;

	if ((o->kind == K_VERIFY || o->kind == K_VERIFY_ONE ||
	     o->kind == K_COMPARE_AND_WRITE) &&
	    differ(o, o->kind == K_VERIFY_ONE, &at))
		return miscompares(o, at);
	for (unsigned i = 0; i < o->n; i++)
		switch (o->kind) {
		case K_WRITE:
		case K_WRITE_VERIFY:
		case K_WRITE_ATOMIC:
			b[i] = o->values[i];
			break;
		case K_ORWRITE:
			b[i] |= o->values[i];
			break;
		case K_COMPARE_AND_WRITE:
			b[i] = o->values[o->n + i];
			break;
		case K_SAME:
			b[i] = o->values[0];
			break;
		case K_SAME_NO_DATA:
		case K_UNMAP:
			b[i] = 0;
			break;
		default:
			break;
		}
	return ends(o, good) && (o->kind != K_READ || was_read(o));
}

static bool model_keys(const struct op *o)
{
	unsigned count[KEYS] = { 0 };

	if (!ends(o, good) || get_be32(o->in) != m.generation ||
	    o->got != 8 + 8 * nregistered())
		return false;
	for (size_t at = 8; at < o->got; at += 8)
		count[get_be64(o->in + at) % KEYS]++;
	for (unsigned i = 0; i < INITIATORS; i++)
		if (m.registered[i] && count[m.key[i]]-- == 0)
			return false;
	return true;
}

static bool model_reservation(const struct op *o)
{
	if (!ends(o, good) || get_be32(o->in) != m.generation ||
	    o->got != (m.type ? 24u : 8u))
		return false;
	return !m.type || (o->in[21] == m.type &&
			   get_be64(o->in + 8) ==
				   (all_registrants() ? 0 : m.key[m.holder]));
}

/* A command that was about to report an attention (asc 0: any) was aborted:
 * later commands passed in the meantime, and the attention is pending again. */
static bool report_was_aborted(unsigned who, uint16_t asc)
{
	for (unsigned i = 0; i < nops; i++)
		if (ops[i].who == who && ops[i].aborted &&
		    ops[i].sense.key == SENSE_UNIT_ATTENTION &&
		    (!asc || ops[i].sense.asc == asc))
			return true;
	return false;
}

/* Reports the first attention of the initiator, except attentions whose
 * report was aborted, which later commands did not see. */
static bool model_attention(const struct op *o)
{
	for (unsigned what = 0; what < ATTENTION_KINDS; what++) {
		if (!(m.attentions[o->who] & 1u << what))
			continue;
		if (ends(o, check(SENSE_UNIT_ATTENTION, attention_asc[what]))) {
			m.attentions[o->who] &= ~(1u << what);
			return true;
		}
		if (!report_was_aborted(o->who, attention_asc[what]))
			return false;
	}
	return false;
}

/* SAM-5 §§5.10.3, 5.10.4 */
static bool is_refused_by_aca(const struct op *o)
{
	return !o->aborted && (o->task.status == SCSI_BUSY ||
			       o->task.status == SCSI_ACA_ACTIVE);
}

/* Returns whether the model ends the command as the unit did. */
static bool model_agrees(const struct op *o)
{
	if (o->attr == DEV_ATTR_ACA &&
	    ends(o, check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_MESSAGE)))
		return true; /* there was no ACA */
	if (o->kind == K_FAULT || o->transport) {
		if (model_access(o->who, writes(o)).status != SCSI_GOOD)
			return ends(o, conflict);
		return ends(o, o->bad);
	}
	switch (o->kind) {
	case K_READY:
		return ends(o, m.reserved >= 0 && m.reserved != (int)o->who
				       ? conflict
				       : good);
	case K_RESERVE:
		return ends(o, model_reserve_6(o->who));
	case K_RELEASE:
		return ends(o, model_release_6(o->who));
	case K_PR_OUT:
		return ends(o, model_out(o->who, &o->pr));
	case K_KEYS:
		return m.reserved >= 0 ? ends(o, conflict) : model_keys(o);
	case K_RESERVATION:
		return m.reserved >= 0 ? ends(o, conflict)
				       : model_reservation(o);
	default:
		if (model_access(o->who, writes(o)).status != SCSI_GOOD)
			return ends(o, conflict);
		return o->kind == K_FLUSH ? ends(o, good) : model_blocks(o);
	}
}

/* ---- the final state of the unit ---- */

static bool same_registration(unsigned who, const struct rsv_state *s)
{
	int at = rsv_find_nexus(s, three.i[who].nexus);

	if (!m.registered[who])
		return at < 0;
	return at >= 0 && s->regs[at].key == m.key[who] &&
	       (!m.type || holds(who) == rsv_is_holder(s, at));
}

static bool same_attentions(unsigned who)
{
	static const uint8_t ua[] = { UA_POWER_ON, UA_BUS_DEVICE_RESET,
				      UA_RESERVATIONS_PREEMPTED,
				      UA_RESERVATIONS_RELEASED,
				      UA_REGISTRATIONS_PREEMPTED };
	uint32_t want = 0;

	for (unsigned i = 0; i < ATTENTION_KINDS; i++)
		if (m.attentions[who] & 1u << i)
			want |= BIT(ua[i]);
	return dev_itl_find(three.i[who].nexus, 0)->attention == want;
}

static bool model_is_where_we_are(void)
{
	const struct dev_lu *lu = dev_lu_get(three.server, 0);

	for (unsigned w = 0; w < INITIATORS; w++) {
		const struct rsv_state *s = lu->rsv[w];
		const struct dev_nexus *holder =
			m.reserved < 0 ? NULL : three.i[m.reserved].nexus;

		if (s->generation != m.generation || s->type != m.type ||
		    s->n != nregistered() || s->spc2 != holder ||
		    !same_registration(w, s) || !same_attentions(w))
			return false;
	}
	for (unsigned i = 0; i < BLOCKS * BLOCK; i += 8)
		if (get_be64(medium + i) != blocks[i / BLOCK])
			return false;
	return true;
}

/* A command that the unit may end before SAM-5 §8 enables it: an abort, a
 * failed transport, ACA ACTIVE or BUSY, a reservation conflict or a unit
 * attention that the unit finds when the command arrives. Such a command
 * neither waits for older commands nor delays younger ones. */
static bool may_end_early(const struct op *o)
{
	return o->aborted || o->transport || is_refused_by_aca(o) ||
	       o->task.status == SCSI_RESERVATION_CONFLICT ||
	       (o->task.status == SCSI_CHECK_CONDITION &&
		o->sense.key == SENSE_UNIT_ATTENTION);
}

/* SAM-5 §8.6: must o wait for another command of its initiator that is still
 * in left? The commands of ops began in their order. */
static bool must_wait(const struct op *o, unsigned left)
{
	if (may_end_early(o))
		return false;
	for (unsigned i = 0; &ops[i] < o; i++)
		if (left & BIT(i) && ops[i].who == o->who &&
		    !may_end_early(&ops[i]) &&
		    o->attr != DEV_ATTR_HEAD_OF_QUEUE &&
		    o->attr != DEV_ATTR_ACA &&
		    (o->attr == DEV_ATTR_ORDERED ||
		     ops[i].attr == DEV_ATTR_ORDERED))
			return true;
	return false;
}

static unsigned
	old_attentions[INITIATORS]; /* the attentions from before the round */

/*
 * Searches for an order that explains the results, by trying all commands that
 * agree so far. An attention that is established while a command is in progress
 * may be reported by that command or by the next one (SAM-5 §5.14: the unit
 * checks for attentions before it executes a command).
 */
static bool there_is_an_order(unsigned left)
{
	const struct whole before = model_keep();

	if (left == 0)
		return model_is_where_we_are();
	for (unsigned i = 0; i < nops; i++) {
		const struct op *o = &ops[i];

		if (!(left & BIT(i)))
			continue;
		if (is_refused_by_aca(o))
			return there_is_an_order(left & ~BIT(i));
		if (must_wait(o, left))
			continue;
		/* refused for its attribute, before any attention */
		if (m.attentions[o->who] && o->attr == DEV_ATTR_ACA &&
		    ends(o,
			 check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_MESSAGE)) &&
		    there_is_an_order(left & ~BIT(i)))
			return true;
		if (m.attentions[o->who] && !o->aborted && model_attention(o) &&
		    there_is_an_order(left & ~BIT(i)))
			return true;
		model_put_back(&before);
		if ((!(m.attentions[o->who] & old_attentions[o->who]) ||
		     report_was_aborted(o->who, 0)) &&
		    (model_agrees(o) || o->aborted) &&
		    there_is_an_order(left & ~BIT(i)))
			return true;
		model_put_back(&before);
		if (o->aborted && there_is_an_order(left & ~BIT(i)))
			return true;
		model_put_back(&before);
	}
	return false;
}

static void tell(unsigned round)
{
	print_message("round %u; type %u holder %d reserved %d\n", round,
		      m.type, m.holder, m.reserved);
	for (unsigned i = 0; i < INITIATORS; i++)
		print_message("%c: %sregistered, key %u, attentions %x\n",
			      'A' + (int)i, m.registered[i] ? "" : "not ",
			      (unsigned)m.key[i], m.attentions[i]);
	for (unsigned i = 0; i < nops; i++) {
		const struct op *o = &ops[i];

		print_message(
			"%c: %s (%u) blocks %u+%u pr %u/%u key %u>%u: status "
			"%02x key %x asc %04x got %zu %016llx%s\n",
			'A' + (int)o->who, names[o->kind], o->attr, o->lba,
			o->n, o->pr.action, o->pr.type, (unsigned)o->pr.key,
			(unsigned)o->pr.sa_key, o->task.status, o->sense.key,
			o->sense.asc, o->got,
			(unsigned long long)get_be64(o->in),
			o->aborted ? ", aborted" : "");
	}
}

/* ---- commands to the unit ---- */

static void op_done(struct dev_task *t)
{
	container_of(t, struct op, task)->done = true;
}

static void begin(struct op *o)
{
	struct dev_task *t = &o->task;

	memset(t, 0, sizeof(*t));
	o->begun = true;
	t->nexus = three.i[o->who].nexus;
	t->attr = o->attr;
	memcpy(t->cdb, o->cdb, 16);
	t->cdb_len = 16;
	t->edtl.out = o->out_len;
	t->edtl.in = o->in_len;
	t->done = op_done;
	assert_int_equal(dev_task_begin(t), 0);
}

static void send_data(struct op *o)
{
	struct dev_task *t = &o->task;

	o->sent = true;
	if (o->transport) {
		dev_task_fail(t, o->failure);
		return;
	}
	if (t->out_len)
		bufv_copy_in(&t->out, 0, o->out, t->out_len);
	dev_task_execute(t);
}

/* Delivers the data of one command; false: no command waits for data. */
static bool send_one(unsigned begun)
{
	unsigned from = rnd(nops);

	for (unsigned i = 0; i < nops; i++) {
		unsigned which = (from + i) % nops;
		struct op *o = &ops[which];

		if (which >= begun || o->sent || o->aborted)
			continue;
		send_data(o);
		return true;
	}
	return false;
}

static void op_released(struct dev_task *t)
{
	container_of(t, struct op, task)->released = true;
}

/* Aborts a command that has not ended, if there is one. */
static bool abort_one(unsigned begun)
{
	unsigned from = rnd(nops);

	for (unsigned i = 0; i < nops; i++) {
		struct op *o = &ops[(from + i) % nops];

		if (o - ops >= begun || o->done || o->aborted)
			continue;
		o->aborted = true;
		assert_int_equal(dev_task_abort(&o->task, op_released), 0);
		return true;
	}
	return false;
}

static void end(struct op *o)
{
	struct dev_task *t = &o->task;

	assert_true(o->done != o->aborted && o->aborted == o->released);
	memset(&o->sense, 0, sizeof(o->sense));
	if (t->sense.len)
		assert_int_equal(scsi_sense_parse(&o->sense, t->sense.data,
						  t->sense.len),
				 0);
	o->got = bufv_copy_out(&t->in, 0, o->in, MIN(t->in.len, sizeof(o->in)));
	dev_task_end(t);
}

#define EVENTS (INITIATORS + 3)

/* Executes one of the possible events; false: no event is possible. */
static bool happen(unsigned *begun)
{
	unsigned what = rnd(EVENTS);

	if (*begun && rnd(50) == 0 && abort_one(*begun))
		return true;
	for (unsigned i = 0; i < EVENTS; i++, what = (what + 1) % EVENTS) {
		if (what < INITIATORS) {
			if (three_deliver_one(what))
				return true;
		} else if (what == INITIATORS && slow->n) {
			slow_one(rnd(slow->n));
			return true;
		} else if (what == INITIATORS + 1 && *begun < nops) {
			begin(&ops[*begun]);
			if (rnd(2)) /* immediate data, or none */
				send_data(&ops[*begun]);
			++*begun;
			return true;
		} else if (what == INITIATORS + 2 && *begun &&
			   send_one(*begun)) {
			return true;
		}
	}
	return false;
}

static void cleared(void *arg, int err)
{
	(void)arg;
	assert_int_equal(err, 0);
}

/* The faulted initiator clears the ACA when no other event is possible; false:
 * there is no ACA. */
static bool clear_aca(void)
{
	bool any = false;

	for (unsigned i = 0; i < INITIATORS; i++) {
		any |= three.i[i].nexus->naca != 0;
		dev_nexus_clear_aca(three.i[i].nexus, 0, cleared, NULL);
	}
	return any;
}

static void expect_turned_away(const struct op *o)
{
	bool any = false;

	for (unsigned i = 0; i < nops; i++)
		any |= ops[i].kind == K_FAULT && &ops[i] != o;
	assert_true(any);
	turned++;
}

static void run_together(unsigned round)
{
	unsigned begun = 0, turns = 0;

	cpu_limit(CPU_SECONDS);
	do
		while (happen(&begun))
			if (++turns > TURNS) {
				tell(round);
				fail_msg("these commands go on for ever");
			}
	while (clear_aca());
	for (unsigned i = 0; i < nops; i++)
		end(&ops[i]);
	for (unsigned i = 0; i < INITIATORS; i++)
		old_attentions[i] = m.attentions[i];
	for (unsigned i = 0; i < nops; i++) {
		bool got_past = ops[i].attr == DEV_ATTR_ACA &&
				!ops[i].aborted &&
				ops[i].task.status == SCSI_GOOD;

		if (is_refused_by_aca(&ops[i]))
			expect_turned_away(&ops[i]);
		assert_false(got_past && tmf_only); /* SPC-4 §7.5.8 */
		past += got_past;
		cut_off += ops[i].transport && !ops[i].aborted &&
			   ends(&ops[i], ops[i].bad);
		if (ops[i].aborted)
			seen[ops[i].kind].aborted++;
		else if (ops[i].task.status == SCSI_GOOD)
			seen[ops[i].kind].good++;
		else if (ops[i].task.status == SCSI_RESERVATION_CONFLICT)
			seen[ops[i].kind].conflict++;
		else
			seen[ops[i].kind].other++;
	}
	if (!there_is_an_order(BIT(nops) - 1)) {
		tell(round);
		fail_msg("no order of these commands explains what they did");
	}
}

/* ---- commands as bytes ---- */

static uint64_t value(void)
{
	static const uint64_t some[VALUES] = { 0, 0x1111111111111111,
					       0x1111111111221111,
					       0xff00000000000000,
					       0x00000000000000ff };

	return some[rnd(VALUES)];
}

static void put_data(struct op *o, unsigned n)
{
	o->out_len = n * BLOCK;
	for (unsigned i = 0; i < n; i++) {
		o->values[i] = value();
		/* mostly compare with the expected contents */
		if (rnd(3) && i < o->n)
			o->values[i] = blocks[o->lba + i];
		for (unsigned at = 0; at < BLOCK; at += 8)
			put_be64(o->out + i * BLOCK + at, o->values[i]);
	}
}

/* Operation codes by the length of the CDB; 0: there is none. */
static const uint8_t codes[K_ON_BLOCKS][4] = {
	[K_READ] = { 0x08, 0x28, 0xa8, 0x88 },
	[K_WRITE] = { 0x0a, 0x2a, 0xaa, 0x8a },
	[K_WRITE_VERIFY] = { 0, 0x2e, 0xae, 0x8e },
	[K_WRITE_ATOMIC] = { 0, 0, 0, 0x9c },
	[K_ORWRITE] = { 0, 0, 0, 0x8b },
	[K_VERIFY] = { 0, 0x2f, 0xaf, 0x8f },
	[K_VERIFY_ONE] = { 0, 0x2f, 0xaf, 0x8f },
	[K_COMPARE_AND_WRITE] = { 0, 0, 0, 0x89 },
	[K_SAME] = { 0, 0x41, 0, 0x93 },
	[K_SAME_NO_DATA] = { 0, 0, 0, 0x93 },
};

static void put_range(struct op *o)
{
	unsigned which;

	do
		which = rnd(4);
	while (!codes[o->kind][which]);
	o->cdb[0] = codes[o->kind][which];
	switch (which) {
	case 0:
		o->cdb[3] = (uint8_t)o->lba;
		o->cdb[4] = (uint8_t)o->n;
		break;
	case 1:
		put_be32(o->cdb + 2, o->lba);
		put_be16(o->cdb + 7, (uint16_t)o->n);
		break;
	case 2:
		put_be32(o->cdb + 2, o->lba);
		put_be32(o->cdb + 6, o->n);
		break;
	default:
		put_be64(o->cdb + 2, o->lba);
		put_be32(o->cdb + 10, o->n); /* 13 and 12 to 13, too */
	}
}

static void make_unmap(struct op *o)
{
	o->cdb[0] = SCSI_UNMAP;
	o->cdb[8] = 24;
	o->out_len = 24;
	memset(o->out, 0, 24);
	put_be16(o->out, 22);
	put_be16(o->out + 2, 16);
	put_be64(o->out + 8, o->lba);
	put_be32(o->out + 16, o->n);
}

static void make_on_blocks(struct op *o, unsigned lba, unsigned n)
{
	static const uint8_t byte_1[K_ON_BLOCKS] = {
		[K_VERIFY] = 0x02, [K_VERIFY_ONE] = 0x06, [K_SAME_NO_DATA] = 0x01
	};

	o->lba = lba;
	o->n = n;
	if (o->kind == K_UNMAP) {
		make_unmap(o);
		return;
	}
	put_range(o);
	o->cdb[1] = byte_1[o->kind];
	if (o->kind == K_READ)
		o->in_len = n * BLOCK;
	else if (o->kind == K_COMPARE_AND_WRITE)
		put_data(o, 2 * n);
	else if (o->kind == K_SAME || o->kind == K_VERIFY_ONE)
		put_data(o, 1);
	else if (o->kind != K_SAME_NO_DATA)
		put_data(o, n);
	if (o->kind == K_SAME && rnd(3) == 0)
		o->cdb[1] |= 0x08; /* UNMAP */
	if (o->kind == K_SAME && (o->cdb[1] & 0x08)) {
		o->values[0] = 0; /* other data would be unmapped, too */
		memset(o->out, 0, BLOCK);
	}
}

static void make_pr_out(struct op *o, bool alone)
{
	static const uint8_t types[] = { 1, 3, 5, 6, 7, 8 };
	static const uint8_t actions[] = { 0, 0, 0, 1, 1, 1, 2,
					   3, 4, 4, 6, 6, 7, 5 };
	struct pr_out *p = &o->pr;
	size_t id;

	p->action = actions[rnd(sizeof(actions) - !alone)];
	p->type = types[rnd(6)];
	p->key = rnd(3) && m.registered[o->who] ? m.key[o->who] : rnd(KEYS);
	p->sa_key = rnd(KEYS);
	p->to = rnd(INITIATORS);
	p->unreg = rnd(2);
	if (rnd(2) && m.type)
		p->type = (uint8_t)m.type;
	o->cdb[0] = SCSI_PERSISTENT_RESERVE_OUT;
	o->cdb[1] = p->action;
	if (p->action && p->action != 3 && p->action < 6)
		o->cdb[2] = p->type;
	o->out_len = 24;
	memset(o->out, 0, 64);
	put_be64(o->out, p->key);
	put_be64(o->out + 8, p->sa_key);
	if (p->action == SCSI_PROUT_REGISTER_AND_MOVE) {
		o->out[17] = p->unreg ? 0x02 : 0;
		put_be16(o->out + 18, 1);
		id = scsi_transportid_put(three.i[p->to].name, o->out + 24);
		put_be32(o->out + 20, (uint32_t)id);
		o->out_len += (uint32_t)id;
	}
	put_be32(o->cdb + 5, o->out_len);
}

static void make_other(struct op *o, bool alone)
{
	static const uint8_t codes_6[] = {
		[K_FLUSH] = 0x35,   [K_READY] = 0x00, [K_RESERVE] = 0x16,
		[K_RELEASE] = 0x17, [K_KEYS] = 0x5e,  [K_RESERVATION] = 0x5e
	};

	if (o->kind == K_PR_OUT) {
		make_pr_out(o, alone);
		return;
	}
	o->cdb[0] = codes_6[o->kind];
	if (o->kind == K_KEYS || o->kind == K_RESERVATION) {
		o->cdb[1] = o->kind == K_RESERVATION;
		o->cdb[8] = 255;
		o->in_len = 255;
	}
}

static struct op *add(enum kind kind)
{
	struct op *o = &ops[nops++];

	o->kind = kind;
	o->who = rnd(INITIATORS);
	o->attr = DEV_ATTR_SIMPLE;
	o->lba = o->n = o->out_len = o->in_len = 0;
	o->begun = o->sent = o->done = o->aborted = o->released = false;
	o->transport = false;
	memset(o->cdb, 0, sizeof(o->cdb));
	memset(&o->pr, 0, sizeof(o->pr));
	memset(o->in, 0, 8);
	return o;
}

/* ---- rounds ---- */

/* Selects why the data of a command do not arrive. */
static void cut_off_data(struct op *o)
{
	static const uint16_t asc[] = {
		[DEV_FAILURE_DATA_CRC] = ASC_PROTOCOL_SERVICE_CRC_ERROR,
		[DEV_FAILURE_UNEXPECTED_DATA] = ASC_UNEXPECTED_UNSOLICITED_DATA,
		[DEV_FAILURE_DATA_MISSING] = ASC_NOT_ENOUGH_UNSOLICITED_DATA,
	};

	o->transport = true;
	o->failure = (enum dev_failure)rnd(ARRAY_LEN(asc));
	o->bad = check(SENSE_ABORTED_COMMAND, asc[o->failure]);
}

/* Makes a READ of a nonexistent block, or a READ or WRITE whose transport fails. */
static void make_fault(struct op *o)
{
	unsigned what = rnd(3);

	o->kind = K_FAULT;
	o->attr = DEV_ATTR_SIMPLE;
	o->lba = o->n = o->out_len = o->in_len = 0;
	o->transport = false;
	memset(o->cdb, 0, sizeof(o->cdb));
	o->cdb[0] = what == 2 ? SCSI_WRITE_10 : SCSI_READ_10;
	o->cdb[8] = 1;
	o->cdb[9] = CONTROL_NACA;
	if (what == 2)
		o->out_len = BLOCK;
	else
		o->in_len = BLOCK;
	if (what) {
		cut_off_data(o);
	} else {
		o->cdb[2] = 0xff;
		o->bad = check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
	}
}

/* In some rounds one or two commands fail with NACA = 1, and other commands
 * have the ACA attribute. Not for a command that runs alone. */
static void make_faults(void)
{
	for (unsigned i = 0; i < nops; i++)
		if (ops[i].kind < K_ON_BLOCKS && rnd(32) == 0)
			cut_off_data(&ops[i]);
	if (nops < 2 || rnd(8))
		return;
	for (unsigned i = 0; i < 2; i++)
		make_fault(&ops[rnd(nops)]);
	for (unsigned i = 0; i < nops; i++)
		if (ops[i].kind < K_ON_BLOCKS && rnd(3) == 0)
			ops[i].attr = DEV_ATTR_ACA;
	tmf_only = rnd(4) == 0;
	dev_lu_get(three.server, 0)->ctl.tmf_only = tmf_only;
}

/* Makes a round of commands on the same few blocks. */
static void make_data_round(void)
{
	static const uint8_t attrs[] = {
		DEV_ATTR_SIMPLE,  DEV_ATTR_SIMPLE,	  DEV_ATTR_UNTAGGED,
		DEV_ATTR_ORDERED, DEV_ATTR_HEAD_OF_QUEUE,
	};
	unsigned n = 1 + rnd(TOGETHER), from = rnd(BLOCKS - MOST);

	for (unsigned i = 0; i < n; i++) {
		unsigned at = rnd(MOST / 2), most = MOST - at;
		struct op *o = add((enum kind)rnd(K_ON_BLOCKS));

		o->attr = attrs[rnd(ARRAY_LEN(attrs))];
		make_on_blocks(o, from + at, 1 + rnd(most));
	}
	make_faults();
}

static void make_reservation_round(void)
{
	unsigned n = 1 + rnd(TOGETHER);

	for (unsigned i = 0; i < n; i++) {
		if (rnd(3) == 0) /* a block that no other command uses */
			make_on_blocks(add((enum kind)rnd(K_ON_BLOCKS)), i, 1);
		else if (rnd(2))
			make_other(add(K_PR_OUT), n == 1);
		else
			make_other(add(K_FLUSH + rnd(K_ALL - K_FLUSH)), n == 1);
	}
	make_faults();
}

static void relogin(unsigned who)
{
	three_logout(who);
	if (m.reserved == (int)who)
		m.reserved = -1;
	three_login(who);
	m.attentions[who] = 1u << ATTENTION_POWER_ON;
}

static void reset_unit(unsigned who)
{
	three_reset(who);
	m.reserved = -1;
	for (unsigned i = 0; i < INITIATORS; i++)
		m.attentions[i] |= 1u << ATTENTION_RESET;
}

static unsigned from_environment(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 0) : otherwise;
}

static void play(unsigned seed, unsigned commands)
{
	dice = 0x9e3779b97f4a7c15 ^ seed;
	memset(&m, 0, sizeof(m));
	m.reserved = -1;
	memset(blocks, 0, sizeof(blocks));
	for (unsigned round = 0, n = 0; n < commands; n += nops, round++) {
		unsigned what = rnd(1000);

		nops = 0;
		if (what < 600)
			make_data_round();
		else if (what < 990)
			make_reservation_round();
		else if (what < 996)
			relogin(rnd(INITIATORS));
		else
			reset_unit(rnd(INITIATORS));
		run_together(round);
	}
}

static int open_unit(void **state)
{
	memset(&three, 0, sizeof(three));
	three.store = slow_new();
	(void)state;
	three_start();
	return 0;
}

static void test_an_order_explains_what_all_saw(void **state)
{
	unsigned n = from_environment("MODEL_COMMANDS", COMMANDS);
	unsigned seed = from_environment("MODEL_SEED", 20261121);

	(void)state;
	print_message("%u commands, seed %u\n", n, seed);
	play(seed, n);
	for (unsigned k = 0; k < K_ALL; k++) {
		print_message(
			"%-18s good %u, conflict %u, other %u, aborted %u\n",
			names[k], seen[k].good, seen[k].conflict, seen[k].other,
			seen[k].aborted);
		/* each kind of command succeeded sometimes, and was refused sometimes */
		assert_true(seen[k].good > n / 500 && seen[k].conflict &&
			    seen[k].other);
	}
	print_message("turned away %u, past an ACA %u, faults %u, cut off %u\n",
		      turned, past, seen[K_FAULT].other, cut_off);
	assert_true(turned > n / 1000 && past > n / 10000 &&
		    seen[K_FAULT].other > n / 1000 && cut_off > n / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_an_order_explains_what_all_saw, open_unit,
			three_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
