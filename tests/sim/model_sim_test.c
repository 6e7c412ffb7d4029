/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_sim_test.c: a whole unit against a small sequential model. Three
 * initiators on three workers have up to five commands under way at once; mail
 * between workers is delivered and the store answers in any order. Afterwards
 * there must be one order of these commands in which the model, which knows
 * neither workers nor messages, gives each the same end and the same data, and
 * comes to the same blocks, reservations and unit attentions; ORDERED commands
 * in their place. Some are aborted: they did all they had to, or nothing. Some
 * fail with NACA = 1: what comes while there is an ACA is turned away and did
 * nothing, or has the ACA attribute; what was there before ends when it is over.
 *
 * Commands that touch blocks go together, and so do those that change
 * reservations, with commands on blocks of their own beside them. What the
 * standards leave open when others are under way (PREEMPT AND ABORT, resets, a
 * lost nexus) comes alone. MODEL_SEED and MODEL_COMMANDS give other runs.
 */
#include "device/attention.h"
#include "device/reserve.h"
#include "device/table.h"
#include "unit/device/rsv_model.h"

#define COMMANDS 100000u
#define BLOCKS	 24u
#define BLOCK	 512u
#define TOGETHER 5u
#define MOST	 8u /* blocks of a command */
#define KEYS	 4u
#define VALUES	 5u /* few, so that comparisons come true */

static uint64_t dice;

static unsigned rnd(unsigned n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (unsigned)((dice >> 20) % n);
}

/* ---- a store that answers in any order ---- */

static struct slow {
	struct bs bs;
	struct bs *next;
	struct bs_req *waiting[64];
	unsigned n;
} * slow;

static uint8_t *medium;

static void slow_submit(struct bs *b, struct bs_req *req)
{
	struct slow *s = container_of(b, struct slow, bs);

	assert_true(s->n < ARRAY_LEN(s->waiting));
	s->waiting[s->n++] = req;
}

static int slow_lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov)
{
	(void)b;
	(void)off;
	(void)len;
	(void)iov;
	return ERR_UNSUPPORTED;
}

static void slow_close(struct bs *b)
{
	struct slow *s = container_of(b, struct slow, bs);

	assert_int_equal(s->n, 0);
	bs_close(s->next);
	free(s);
	slow = NULL;
}

static void slow_one(unsigned which)
{
	struct bs_req *req = slow->waiting[which];

	slow->waiting[which] = slow->waiting[--slow->n];
	bs_forward(slow->next, req);
}

static struct bs *slow_new(void)
{
	static const struct bs_ops ops = { slow_submit, slow_lend, slow_close };
	struct bs *next;

	medium = calloc(BLOCKS, BLOCK);
	slow = calloc(1, sizeof(*slow));
	assert_true(medium && slow);
	next = bs_ram_new("ram:model", medium, BLOCKS * BLOCK, BLOCK, free,
			  medium);
	assert_non_null(next);
	slow->bs = *next;
	slow->bs.ops = &ops;
	slow->next = next;
	return &slow->bs;
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

enum kind {
	/* on blocks */
	K_READ,
	K_WRITE,
	K_WRITE_VERIFY,
	K_WRITE_ATOMIC,
	K_ORWRITE,
	K_VERIFY,     /* BYTCHK 01b */
	K_VERIFY_ONE, /* 11b */
	K_COMPARE_AND_WRITE,
	K_SAME,
	K_SAME_NO_DATA,
	K_UNMAP,
	K_ON_BLOCKS,
	/* the rest */
	K_FLUSH = K_ON_BLOCKS,
	K_READY,
	K_RESERVE,
	K_RELEASE,
	K_PR_OUT,
	K_KEYS,
	K_RESERVATION,
	K_ALL,
	K_FAULT = K_ALL, /* READ of what is not there, NACA = 1 */
};

static const char *const names[] = { "READ",
				     "WRITE",
				     "WRITE AND VERIFY",
				     "WRITE ATOMIC",
				     "ORWRITE",
				     "VERIFY",
				     "VERIFY one block",
				     "COMPARE AND WRITE",
				     "SAME",
				     "SAME NDOB",
				     "UNMAP",
				     "SYNCHRONIZE CACHE",
				     "READY",
				     "RESERVE",
				     "RELEASE",
				     "PR OUT",
				     "KEYS",
				     "RESERVATION",
				     "FAULT" };

struct op {
	enum kind kind;
	uint8_t attr;
	unsigned who, lba, n;
	uint64_t values[2 * MOST]; /* of its data-out, one a block */
	struct pr_out pr;
	uint8_t cdb[16];
	uint8_t out[2 * MOST * BLOCK];
	uint32_t out_len, in_len;
	/* how it ended */
	struct dev_task task;
	bool begun, done;
	bool aborted, released; /* it vanished: it did all or nothing */
	struct scsi_sense sense;
	uint8_t in[MOST * BLOCK];
	size_t got;
};

static struct op ops[TOGETHER];
static struct {
	unsigned good, conflict, other, aborted;
} seen[K_ALL + 1];
static unsigned turned, past; /* by an ACA; by the ACA attribute */
static unsigned nops;
static bool tmf_only; /* in this round */

static bool writes(const struct op *o)
{
	return o->kind != K_READ && o->kind != K_VERIFY &&
	       o->kind != K_VERIFY_ONE;
}

/* ---- what the model says of each ---- */

static unsigned first_difference(uint64_t a, uint64_t b)
{
	unsigned i = 0;

	while (!((a ^ b) >> (56 - 8 * i) & 0xff))
		i++;
	return i;
}

/* The byte at which blocks and values differ, in *at; false: nowhere. */
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

/* A command that may be carried out, on its blocks. */
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
	for (unsigned i = 0; i < TRIO_N; i++)
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

/* A command that was about to tell an attention (asc 0: any) was aborted:
 * others came by meanwhile, and the attention is there again. */
static bool was_told_in_vain(unsigned who, uint16_t asc)
{
	for (unsigned i = 0; i < nops; i++)
		if (ops[i].who == who && ops[i].aborted &&
		    ops[i].sense.key == SENSE_UNIT_ATTENTION &&
		    (!asc || ops[i].sense.asc == asc))
			return true;
	return false;
}

/* The first of its initiator's attentions but for those told in vain, which
 * were away when others looked. */
static bool model_attention(const struct op *o)
{
	for (unsigned what = 0; what < NEWS_KINDS; what++) {
		if (!(m.news[o->who] & 1u << what))
			continue;
		if (ends(o, check(SENSE_UNIT_ATTENTION, news_asc[what]))) {
			m.news[o->who] &= ~(1u << what);
			return true;
		}
		if (!was_told_in_vain(o->who, news_asc[what]))
			return false;
	}
	return false;
}

/* SAM-5 §§5.10.3, 5.10.4 */
static bool is_turned_away(const struct op *o)
{
	return !o->aborted && (o->task.status == SCSI_BUSY ||
			       o->task.status == SCSI_ACA_ACTIVE);
}

/* Does the model end the command as the unit did? */
static bool model_agrees(const struct op *o)
{
	if (o->attr == DEV_ATTR_ACA &&
	    ends(o, check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_MESSAGE)))
		return true; /* there was no ACA */
	switch (o->kind) {
	case K_FAULT:
		if (model_access(o->who, false).status != SCSI_GOOD)
			return ends(o, conflict);
		return ends(o,
			    check(SENSE_ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE));
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

/* ---- where the unit is in the end ---- */

static bool same_registration(unsigned who, const struct rsv_state *s)
{
	int at = rsv_find_nexus(s, trio.i[who].nexus);

	if (!m.registered[who])
		return at < 0;
	return at >= 0 && s->regs[at].key == m.key[who] &&
	       (!m.type || holds(who) == rsv_is_holder(s, at));
}

static bool same_news(unsigned who)
{
	static const uint8_t ua[] = { UA_POWER_ON, UA_BUS_DEVICE_RESET,
				      UA_RESERVATIONS_PREEMPTED,
				      UA_RESERVATIONS_RELEASED,
				      UA_REGISTRATIONS_PREEMPTED };
	uint32_t want = 0;

	for (unsigned i = 0; i < NEWS_KINDS; i++)
		if (m.news[who] & 1u << i)
			want |= BIT(ua[i]);
	return trio.i[who].nexus->attention[0] == want;
}

static bool model_is_where_we_are(void)
{
	const struct dev_lu *lu = dev_lu_get(trio.server, 0);

	for (unsigned w = 0; w < TRIO_N; w++) {
		const struct rsv_state *s = lu->rsv[w];
		const struct dev_nexus *holder =
			m.reserved < 0 ? NULL : trio.i[m.reserved].nexus;

		if (s->generation != m.generation || s->type != m.type ||
		    s->n != nregistered() || s->spc2 != holder ||
		    !same_registration(w, s) || !same_news(w))
			return false;
	}
	for (unsigned i = 0; i < BLOCKS * BLOCK; i += 8)
		if (get_be64(medium + i) != blocks[i / BLOCK])
			return false;
	return true;
}

/* SAM-5 §8.6: of one initiator's commands. They began in their order. One that
 * was aborted left the set early, and holds nobody up. */
static bool must_wait(const struct op *o, unsigned left)
{
	for (unsigned i = 0; &ops[i] < o; i++)
		if (left & BIT(i) && ops[i].who == o->who && !ops[i].aborted &&
		    !o->aborted && !is_turned_away(&ops[i]) &&
		    o->attr != DEV_ATTR_HEAD_OF_QUEUE &&
		    o->attr != DEV_ATTR_ACA &&
		    (o->attr == DEV_ATTR_ORDERED ||
		     ops[i].attr == DEV_ATTR_ORDERED))
			return true;
	return false;
}

static unsigned old_news[TRIO_N]; /* those from before the round */

/*
 * Is there an order? Tries all that agree so far. An attention that comes while
 * a command is under way may be that command's or the next one's (SAM-5 §5.14:
 * it is looked for when a command is about to be carried out).
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
		if (is_turned_away(o))
			return there_is_an_order(left & ~BIT(i));
		if (must_wait(o, left))
			continue;
		/* refused for its attribute, before any attention */
		if (m.news[o->who] && o->attr == DEV_ATTR_ACA &&
		    ends(o,
			 check(SENSE_ILLEGAL_REQUEST, ASC_INVALID_MESSAGE)) &&
		    there_is_an_order(left & ~BIT(i)))
			return true;
		if (m.news[o->who] && !o->aborted && model_attention(o) &&
		    there_is_an_order(left & ~BIT(i)))
			return true;
		model_put_back(&before);
		if ((!(m.news[o->who] & old_news[o->who]) ||
		     was_told_in_vain(o->who, 0)) &&
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
	for (unsigned i = 0; i < TRIO_N; i++)
		print_message("%c: %sregistered, key %u, news %x\n",
			      'A' + (int)i, m.registered[i] ? "" : "not ",
			      (unsigned)m.key[i], m.news[i]);
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

/* ---- to the unit ---- */

static void op_done(struct dev_task *t)
{
	container_of(t, struct op, task)->done = true;
}

static void begin(struct op *o)
{
	struct dev_task *t = &o->task;

	memset(t, 0, sizeof(*t));
	o->begun = true;
	t->nexus = trio.i[o->who].nexus;
	t->attr = o->attr;
	memcpy(t->cdb, o->cdb, 16);
	t->cdb_len = 16;
	t->edtl_out = o->out_len;
	t->edtl_in = o->in_len;
	t->done = op_done;
	assert_int_equal(dev_task_begin(t), 0);
	if (t->out_len)
		bufv_copy_in(&t->out, 0, o->out, t->out_len);
	dev_task_execute(t);
}

static void op_released(struct dev_task *t)
{
	container_of(t, struct op, task)->released = true;
}

/* One that has not ended, if there is any. */
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
	if (t->sense_len)
		assert_int_equal(
			scsi_sense_parse(&o->sense, t->sense, t->sense_len), 0);
	o->got = bufv_copy_out(&t->in, 0, o->in, MIN(t->in.len, sizeof(o->in)));
	dev_task_end(t);
}

/* One thing happens, of those that can; false: nothing can. */
static bool happen(unsigned *begun)
{
	unsigned what = rnd(TRIO_N + 2);

	if (*begun && rnd(50) == 0 && abort_one(*begun))
		return true;
	for (unsigned i = 0; i < TRIO_N + 2; i++, what = (what + 1) % 5) {
		if (what < TRIO_N) {
			if (trio_one(what))
				return true;
		} else if (what == TRIO_N && slow->n) {
			slow_one(rnd(slow->n));
			return true;
		} else if (what == TRIO_N + 1 && *begun < nops) {
			begin(&ops[(*begun)++]);
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

/* Whoever is faulted clears it, once nothing else can happen; false: nobody is. */
static bool clear_aca(void)
{
	bool any = false;

	for (unsigned i = 0; i < TRIO_N; i++) {
		any |= trio.i[i].nexus->naca != 0;
		dev_nexus_clear_aca(trio.i[i].nexus, 0, cleared, NULL);
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
	unsigned begun = 0;

	do
		while (happen(&begun))
			;
	while (clear_aca());
	for (unsigned i = 0; i < nops; i++)
		end(&ops[i]);
	for (unsigned i = 0; i < TRIO_N; i++)
		old_news[i] = m.news[i];
	for (unsigned i = 0; i < nops; i++) {
		bool got_past = ops[i].attr == DEV_ATTR_ACA &&
				!ops[i].aborted &&
				ops[i].task.status == SCSI_GOOD;

		if (is_turned_away(&ops[i]))
			expect_turned_away(&ops[i]);
		assert_false(got_past && tmf_only); /* SPC-4 §7.5.8 */
		past += got_past;
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
		/* what it is compared with is mostly there, maybe */
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
		o->values[0] = 0; /* other data would be given back, too */
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
	p->to = rnd(TRIO_N);
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
		id = scsi_transportid_put(trio.i[p->to].name, o->out + 24);
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
	o->who = rnd(TRIO_N);
	o->attr = DEV_ATTR_SIMPLE;
	o->lba = o->n = o->out_len = o->in_len = 0;
	o->begun = o->done = o->aborted = o->released = false;
	memset(o->cdb, 0, sizeof(o->cdb));
	memset(&o->pr, 0, sizeof(o->pr));
	memset(o->in, 0, 8);
	return o;
}

/* ---- rounds ---- */

/* In some rounds one or two of them fail and say NACA = 1; others come for the
 * ACA. Not where one comes alone. */
static void make_faults(void)
{
	if (nops < 2 || rnd(8))
		return;
	for (unsigned i = 0; i < 2; i++) {
		struct op *o = &ops[rnd(nops)];

		o->kind = K_FAULT;
		o->attr = DEV_ATTR_SIMPLE;
		o->lba = o->n = o->out_len = 0;
		memset(o->cdb, 0, sizeof(o->cdb));
		o->cdb[0] = SCSI_READ_10;
		o->cdb[2] = 0xff;
		o->cdb[8] = 1;
		o->cdb[9] = CONTROL_NACA;
		o->in_len = BLOCK;
	}
	for (unsigned i = 0; i < nops; i++)
		if (ops[i].kind < K_ON_BLOCKS && rnd(3) == 0)
			ops[i].attr = DEV_ATTR_ACA;
	tmf_only = rnd(4) == 0;
	dev_lu_get(trio.server, 0)->ctl.tmf_only = tmf_only;
}

/* On the same few blocks, as far as they go. */
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
		if (rnd(3) == 0) /* a block that nobody else has */
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
	trio_logout(who);
	if (m.reserved == (int)who)
		m.reserved = -1;
	trio_login(who);
	m.news[who] = 1u << NEWS_POWER_ON;
}

static void reset_unit(unsigned who)
{
	trio_reset(who);
	m.reserved = -1;
	for (unsigned i = 0; i < TRIO_N; i++)
		m.news[i] |= 1u << NEWS_RESET;
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
			relogin(rnd(TRIO_N));
		else
			reset_unit(rnd(TRIO_N));
		run_together(round);
	}
}

static int open_unit(void **state)
{
	memset(&trio, 0, sizeof(trio));
	trio.store = slow_new();
	(void)state;
	trio_start();
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
		/* none of them was always refused, or never */
		assert_true(seen[k].good > n / 500 && seen[k].conflict &&
			    seen[k].other);
	}
	print_message("turned away %u, past an ACA %u, faults %u\n", turned,
		      past, seen[K_FAULT].other);
	assert_true(turned > n / 1000 && past > n / 10000 &&
		    seen[K_FAULT].other > n / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_an_order_explains_what_all_saw, open_unit,
			trio_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
