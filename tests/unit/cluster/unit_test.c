/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit_test.c: a shared unit at one gateway, with a store and a logical unit that do
 * only what the test says, at the times that it says: what the simulation (sim_cluster)
 * cannot see, since it accepts each order that is safe.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cluster/record.h"
#include "cmocka_all.h"

#define BEACON	 XTIME_S
#define SILENCE	 (4 * XTIME_S)
#define PATIENCE (3 * XTIME_S)

enum kind {
	NONE,
	READ,
	SWAP,
	LOCK,
	UNLOCK,
	FENCE
};

static struct {
	struct cluster_store store;
	struct cluster_request *r; /* in progress */
	enum kind kind;
	struct cluster_note *note; /* the last one */
	unsigned notes, reads;
	bool closed;
	/* the record in the store */
	struct cluster_record rec;
	uint8_t bytes[4096];
	size_t len;
	uint64_t version;
	/* the logical unit */
	enum cluster_access access;
	struct cluster_step *access_step, *adopt_step, *drop_step;
	unsigned adopts, gateways, wakes;
	char said[256];
	xtime now, next;
	struct cluster_unit *u;
	/* a caller */
	struct cluster_step step;
	unsigned ended;
} f;

static void begin(struct cluster_request *r, enum kind kind)
{
	assert_null(f.r); /* one request at a time */
	f.r = r;
	f.kind = kind;
}

static void do_read(struct cluster_store *s, struct cluster_request *r)
{
	(void)s;
	f.reads++;
	begin(r, READ);
}

static void do_swap(struct cluster_store *s, struct cluster_request *r)
{
	(void)s;
	begin(r, SWAP);
}

static void do_notify(struct cluster_store *s, struct cluster_note *n)
{
	(void)s;
	f.note = n;
	f.notes++;
}

static void do_ack(struct cluster_store *s, uint64_t cookie)
{
	(void)s;
	(void)cookie;
}

static void do_lock(struct cluster_store *s, struct cluster_request *r)
{
	(void)s;
	begin(r, LOCK);
}

static void do_unlock(struct cluster_store *s, struct cluster_request *r)
{
	(void)s;
	begin(r, UNLOCK);
}

static void do_fence(struct cluster_store *s, struct cluster_request *r)
{
	(void)s;
	begin(r, FENCE);
}

static const struct cluster_store_ops store_ops = {
	.read = do_read,
	.swap = do_swap,
	.notify = do_notify,
	.ack = do_ack,
	.lock = do_lock,
	.unlock = do_unlock,
	.fence = do_fence,
};

static void op_access(void *arg, enum cluster_access a, struct cluster_step *s)
{
	(void)arg;
	f.access = a;
	f.access_step = s;
}

static void op_gateways(void *arg, const struct cluster_record *r)
{
	(void)arg;
	(void)r;
	f.gateways++;
}

static void op_adopt(void *arg, const struct cluster_record *r, uint64_t since,
		     struct cluster_step *s)
{
	(void)arg;
	(void)r;
	(void)since;
	f.adopts++;
	f.adopt_step = s;
}

static void op_drop(void *arg, struct cluster_step *s)
{
	(void)arg;
	f.drop_step = s;
}

static void op_say(void *arg, const char *sentence)
{
	(void)arg;
	strcpy(f.said, sentence);
}

static void op_wake(void *arg)
{
	(void)arg;
	f.wakes++;
}

static const struct cluster_unit_ops unit_ops = {
	.access = op_access,
	.gateways = op_gateways,
	.adopt = op_adopt,
	.drop = op_drop,
	.say = op_say,
	.wake = op_wake,
};

static void tick(void)
{
	f.next = cluster_unit_tick(f.u, f.now);
}

static void after(xtime t)
{
	f.now += t;
	tick();
}

static void step_end(struct cluster_step **s, int result)
{
	struct cluster_step *step = *s;

	assert_non_null(step);
	*s = NULL;
	step->result = result;
	step->done(step);
}

/* Ends the request in progress, which is of this kind. */
static void answer(enum kind kind, int result)
{
	struct cluster_request *r = f.r;

	assert_non_null(r);
	assert_int_equal(f.kind, kind);
	f.r = NULL;
	f.kind = NONE;
	r->result = result;
	if (kind == READ && !result) {
		r->data = f.bytes;
		r->len = f.len;
		r->version = f.version;
	} else if (kind == SWAP && !result) {
		assert_int_equal(r->version, f.version);
		f.len = r->len;
		memcpy(f.bytes, r->data, r->len);
		f.version = f.version ? f.version + 1 : MAX(r->first, 1u);
		r->version = f.version;
		assert_int_equal(cluster_record_decode(&f.rec, f.bytes, f.len),
				 0);
	}
	r->done(r);
	tick();
}

static void end_note(int result, const char *who)
{
	struct cluster_note *n = f.note;

	assert_non_null(n);
	f.note = NULL;
	n->result = result;
	n->nacks = who ? 1 : 0;
	if (who)
		strcpy(n->acks[0], who);
	n->done(n);
	tick();
}

/* Another gateway changes the record. */
static void put_record(void)
{
	f.rec.version++;
	f.version++;
	f.len = cluster_record_encode(&f.rec, f.bytes);
}

static void add_gateway(const char *id, uint16_t number)
{
	struct cluster_gateway *g = &f.rec.gateways[f.rec.ngateways++];

	memset(g, 0, sizeof(*g));
	strcpy(g->id, id);
	g->number = number;
}

static int make(void **state)
{
	struct cluster_unit_config cfg = { .self = { .id = "me", .number = 2 },
					   .run = 7,
					   .failover = true,
					   .beacon = BEACON,
					   .silence = SILENCE,
					   .patience = PATIENCE };

	(void)state;
	memset(&f, 0, sizeof(f));
	f.store.ops = &store_ops;
	f.now = 100 * XTIME_S;
	f.u = cluster_unit_new(&cfg, &unit_ops, &f.store, f.now);
	assert_non_null(f.u);
	return 0;
}

static int drop(void **state)
{
	(void)state;
	cluster_unit_free(f.u);
	return 0;
}

static enum cluster_role role(void)
{
	struct cluster_status st;

	cluster_unit_status(f.u, &st);
	return st.role;
}

static void caller_done(struct cluster_step *s)
{
	assert_ptr_equal(s, &f.step);
	f.ended++;
}

static struct cluster_step *caller(void)
{
	f.step = (struct cluster_step){ .done = caller_done, .result = 77 };
	f.ended = 0;
	return &f.step;
}

static void adopt(int result)
{
	step_end(&f.adopt_step, result);
	tick();
}

static void access_done(void)
{
	step_end(&f.access_step, 0);
	tick();
}

/* ... with a record that names `owner`, in which gateway "other" has number 1. */
static void stand_by(const char *owner)
{
	f.rec.generation = 3;
	add_gateway("me", 2);
	add_gateway("other", 1);
	strcpy(f.rec.owner, owner);
	put_record();
	tick();
	answer(READ, 0);
	assert_int_equal(f.access, CLUSTER_STANDBY);
	access_done();
}

/* From the claim in the record on. */
static void take(void)
{
	access_done(); /* transitioning */
	answer(LOCK, 0);
	answer(READ, 0);
	adopt(0);
	assert_int_equal(f.access, CLUSTER_OPTIMIZED);
	assert_int_equal(role(), CLUSTER_TAKING);
	access_done();
	assert_int_equal(role(), CLUSTER_OWNER);
	assert_string_equal(f.said, "this gateway is the owner");
}

static void own(void)
{
	stand_by("me");
	assert_int_equal(role(), CLUSTER_TAKING);
	take();
}

/* ---- joining ---- */

static void test_first(void **state)
{
	(void)state;
	tick();
	answer(READ, 0); /* there is no record */
	assert_null(f.r);
	assert_int_equal(role(), CLUSTER_JOINING);
	assert_int_equal(f.notes, 1); /* is there a gateway? */
	end_note(0, NULL);
	answer(SWAP, 0);
	assert_int_equal(f.rec.ngateways, 1);
	assert_int_equal(f.version, 1);
	assert_int_equal(role(), CLUSTER_TAKING); /* no gateway has the unit */
	access_done();
	assert_int_equal(f.access, CLUSTER_TRANSITIONING);
	access_done();
	answer(SWAP, 0);
	assert_string_equal(f.rec.owner, "me");
	assert_int_equal(f.rec.generation, 1);
	answer(LOCK, 0);
	answer(READ, 0);
	adopt(0);
	access_done();
	assert_int_equal(role(), CLUSTER_OWNER);
}

/* A record that is missing while another gateway serves: it is not made anew. */
/* Gateways with blocks of different sizes would serve different disks. */
static void test_other_blocks(void **state)
{
	struct cluster_gateway self = { .id = "me",
					.number = 2,
					.block_size = 4096 };
	struct cluster_status st;

	(void)state;
	cluster_unit_describe(f.u, &self);
	add_gateway("other", 1);
	f.rec.gateways[0].block_size = 512;
	strcpy(f.rec.owner, "other");
	put_record();
	tick();
	answer(READ, 0);
	assert_null(f.r);
	assert_int_equal(role(), CLUSTER_JOINING);
	cluster_unit_status(f.u, &st);
	assert_string_equal(st.refused, f.said);
	assert_string_equal(
		st.refused,
		"gateway other serves the unit with blocks of 512 bytes, this gateway with 4096: give all gateways the same block-size");
	f.said[0] = '\0';
	after(SILENCE);
	answer(READ, 0);
	assert_int_equal(f.said[0], '\0'); /* once */
	f.rec.gateways[0].block_size = 4096;
	put_record();
	after(SILENCE);
	answer(READ, 0);
	answer(SWAP, 0);
	assert_int_equal(f.rec.gateways[1].block_size, 4096);
	cluster_unit_status(f.u, &st);
	assert_null(st.refused);
	assert_int_equal(role(), CLUSTER_STANDING_BY);
}

static void test_missing(void **state)
{
	(void)state;
	tick();
	answer(READ, 0);
	end_note(0, "other");
	assert_string_equal(f.said, "the record was removed; waiting for "
				    "gateway other to write it again");
	assert_null(f.r);
	after(BEACON - 1);
	assert_null(f.r);
	after(1);
	answer(READ, 0);
	end_note(ERR_RESET, NULL); /* nor if that is not known */
	assert_null(f.r);
	after(BEACON);
	assert_int_equal(f.kind, READ);
	f.r = NULL;
}

/* ---- the owner ---- */

static void test_restores(void **state)
{
	uint64_t version, record;

	(void)state;
	own();
	version = f.version;
	record = f.rec.version;
	f.len = 0;
	f.version = 0;
	after(SILENCE);
	answer(READ, 0);
	assert_string_equal(f.said, "the record was removed: this gateway "
				    "writes it again");
	answer(SWAP, ERR_AGAIN); /* as if it had come back meanwhile */
	answer(READ, 0);
	answer(SWAP, 0);
	assert_true(f.version > version + 100);
	assert_true(f.rec.version > record + 100);
	assert_string_equal(f.rec.owner, "me");
	assert_int_equal(f.rec.ngateways, 2);
	assert_int_equal(role(), CLUSTER_OWNER);
	assert_null(f.r);
}

static void test_reads_now_and_then(void **state)
{
	unsigned reads;

	(void)state;
	own();
	assert_int_equal(f.next, f.now + SILENCE);
	reads = f.reads;
	after(SILENCE - 1);
	assert_int_equal(f.reads, reads);
	after(1);
	assert_int_equal(f.reads, reads + 1);
	f.r = NULL;
}

static void note_alive(void)
{
	struct cluster_note_body b = { .kind = CLUSTER_NOTE_ALIVE };
	uint8_t note[CLUSTER_NOTE_SIZE];

	b.version = f.rec.version;
	b.generation = f.rec.generation;
	cluster_note_encode(&b, note);
	f.store.events.noted(f.store.events.arg, "other", 1, note,
			     sizeof(note));
	tick();
}

/* The store answers nothing, and no note comes: after 2 silences and a beacon, the owner
 * drops. */
static void test_cut_off(void **state)
{
	(void)state;
	own();
	for (unsigned i = 0; i < 20; i++) {
		after(BEACON);
		note_alive();
	}
	after(2 * SILENCE - 1); /* the read has no answer */
	assert_int_equal(f.kind, READ);
	after(1);
	assert_int_equal(role(), CLUSTER_OWNER);
	after(BEACON - 1);
	assert_int_equal(role(), CLUSTER_OWNER);
	assert_false(f.store.lost);
	after(1);
	assert_int_equal(role(), CLUSTER_FENCED);
	assert_true(f.store.lost);
	assert_non_null(f.drop_step);
	f.r = NULL;
}

/* An answer that is an error shows that the store is there; an answer after a pause
 * of the process counts, too. */
static void test_not_cut_off(void **state)
{
	(void)state;
	own();
	for (unsigned i = 0; i < 6; i++) {
		after(SILENCE);
		answer(READ, ERR_FORMAT);
	}
	assert_int_equal(role(), CLUSTER_OWNER);
	after(SILENCE);
	f.now += 100 * SILENCE;
	tick();
	answer(READ, 0);
	after(BEACON);
	assert_int_equal(role(), CLUSTER_OWNER);
}

/* ---- callers ---- */

static void test_refusals(void **state)
{
	char name[CLUSTER_ID_SIZE + 1];
	struct cluster_step other = { .done = caller_done };

	(void)state;
	stand_by("other");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cluster_unit_yield(f.u, name, caller());
	assert_int_equal(f.ended, 0); /* not from within */
	tick();
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, ERR_NOT_FOUND);
	cluster_unit_yield(f.u, "other", caller());
	tick();
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, ERR_WRONG_STATE);
	cluster_unit_take(f.u, CLUSTER_TAKE, &other);
	cluster_unit_take(f.u, CLUSTER_TAKE, caller());
	tick();
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, ERR_BUSY);
	cluster_unit_yield(f.u, NULL, caller());
	tick();
	assert_int_equal(f.step.result, ERR_BUSY);
}

/* An owner that does not answer is fenced after `patience`; a take does not last for
 * ever. */
static void test_take(void **state)
{
	(void)state;
	stand_by("other");
	cluster_unit_take(f.u, CLUSTER_TAKE, caller());
	tick();
	after(PATIENCE - 1);
	assert_int_equal(role(), CLUSTER_STANDING_BY);
	after(1);
	assert_int_equal(role(), CLUSTER_TAKING);
	access_done();
	answer(SWAP, 0);
	assert_int_equal(f.kind, FENCE);
	assert_string_equal(f.r->whom, "other");
	after(2 * PATIENCE - 1);
	assert_int_equal(f.ended, 0);
	after(1);
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, ERR_TIMEOUT);
	f.r = NULL;
}

/* Two initiators lose the path to the owner. Each asks another gateway to take the unit; a third
 * gateway gets it. */
static void test_take_unless_moved(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		enum cluster_take how =
			i ? CLUSTER_TAKE : CLUSTER_TAKE_UNLESS_MOVED;

		if (i) {
			drop(state);
			make(state);
		}
		stand_by("other");
		add_gateway("third", 3);
		cluster_unit_take(f.u, how, caller());
		tick();
		assert_int_equal(f.ended, 0);
		strcpy(f.rec.owner, "third");
		f.rec.generation++;
		put_record();
		f.store.events.missed(f.store.events.arg);
		tick();
		answer(READ, 0);
		assert_int_equal(role(), CLUSTER_STANDING_BY);
		assert_int_equal(f.ended, i == 0);
		if (i == 0)
			assert_int_equal(f.step.result, ERR_BUSY);
	}
}

static void test_take_fences_at_once(void **state)
{
	(void)state;
	stand_by("other");
	cluster_unit_take(f.u, CLUSTER_TAKE_FENCE, caller());
	tick();
	access_done();
	answer(SWAP, 0);
	answer(FENCE, 0);
	answer(READ, 0);
	adopt(0);
	after(XTIME_S);
	access_done();
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, 0);
}

static void test_leave(void **state)
{
	(void)state;
	stand_by("other");
	cluster_unit_leave(f.u, caller());
	tick();
	access_done();
	assert_int_equal(f.ended, 0);
	answer(SWAP, 0);
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, 0);
	assert_int_equal(f.rec.ngateways, 1);
	assert_int_equal(f.next, XTIME_NEVER);
}

static void test_leave_late(void **state)
{
	(void)state;
	stand_by("other");
	cluster_unit_leave(f.u, caller());
	tick();
	after(PATIENCE - 1);
	assert_int_equal(f.ended, 0);
	after(1);
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, ERR_TIMEOUT);
	f.r = NULL;
}

/* ---- yielding ---- */

/* To the end of the hand-over to "other", or to none. */
static void yield_ends(const char *to)
{
	assert_int_equal(role(), CLUSTER_YIELDING);
	assert_int_equal(f.access, CLUSTER_TRANSITIONING);
	assert_null(f.r); /* commands are in progress */
	access_done();
	answer(UNLOCK, 0);
	answer(SWAP, 0);
	assert_string_equal(f.rec.owner, to);
	assert_int_equal(role(), CLUSTER_STANDING_BY);
}

static void test_yield(void **state)
{
	(void)state;
	own();
	end_note(0, NULL); /* of the take */
	cluster_unit_yield(f.u, "me", caller());
	tick();
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, 0);
	cluster_unit_yield(f.u, "stranger", caller());
	tick();
	assert_int_equal(f.step.result, ERR_NOT_FOUND);
	cluster_unit_yield(f.u, "other", caller());
	tick();
	assert_int_equal(role(), CLUSTER_OWNER); /* is it there? */
	assert_int_equal(f.ended, 0);
	end_note(0, NULL);
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, ERR_NOT_FOUND);
	assert_int_equal(role(), CLUSTER_OWNER);
	cluster_unit_yield(f.u, "other", caller());
	tick();
	end_note(0, "other");
	yield_ends("other");
	assert_false(f.rec.withheld);
	assert_int_equal(f.ended, 1);
	assert_int_equal(f.step.result, 0);
}

/* No gateway takes a unit that was given to none, until one is asked to. */
static void test_yield_to_none(void **state)
{
	(void)state;
	own();
	cluster_unit_yield(f.u, NULL, caller());
	tick();
	yield_ends("");
	assert_true(f.rec.withheld);
	assert_int_equal(f.step.result, 0);
	access_done();
	after(3 * BEACON);
	assert_int_equal(role(), CLUSTER_STANDING_BY);
	cluster_unit_take(f.u, CLUSTER_TAKE, caller());
	tick();
	assert_int_equal(role(), CLUSTER_TAKING);
}

/* The gateway that asks gets the unit: once. */
static void test_asked_to_yield(void **state)
{
	struct cluster_note_body b = { .kind = CLUSTER_NOTE_YIELD };
	uint8_t note[CLUSTER_NOTE_SIZE];

	(void)state;
	own();
	b.version = f.rec.version;
	b.generation =
		f.rec.generation + 1; /* it was meant for another owner */
	cluster_note_encode(&b, note);
	f.store.events.noted(f.store.events.arg, "other", 1, note,
			     sizeof(note));
	tick();
	assert_int_equal(role(), CLUSTER_OWNER);
	b.generation = f.rec.generation;
	cluster_note_encode(&b, note);
	f.store.events.noted(f.store.events.arg, "stranger", 2, note,
			     sizeof(note));
	tick();
	assert_int_equal(role(), CLUSTER_OWNER);
	f.store.events.noted(f.store.events.arg, "other", 3, note,
			     sizeof(note));
	tick();
	yield_ends("other");
}

/* The gateway that is to get the unit has left meanwhile: none has it, and each may take it. */
static void test_yield_to_a_gateway_that_leaves(void **state)
{
	(void)state;
	own();
	end_note(0, NULL);
	cluster_unit_yield(f.u, "other", caller());
	tick();
	end_note(0, "other");
	access_done();
	answer(UNLOCK, 0);
	answer(SWAP, ERR_AGAIN);
	f.rec.ngateways = 1;
	put_record();
	answer(READ, 0);
	answer(SWAP, 0);
	assert_string_equal(f.rec.owner, "");
	assert_false(f.rec.withheld);
	assert_int_equal(f.ended, 1);
}

/* Another gateway wrote itself into the record: the lock goes back, and the record stays. */
static void test_deposed(void **state)
{
	(void)state;
	own();
	strcpy(f.rec.owner, "other");
	f.rec.generation++;
	put_record();
	f.store.events.missed(f.store.events.arg);
	tick();
	answer(READ, 0);
	assert_int_equal(role(), CLUSTER_YIELDING);
	access_done();
	answer(UNLOCK, 0);
	assert_null(f.r);
	assert_int_equal(role(), CLUSTER_STANDING_BY);
}

/* ---- taking ---- */

/* The lock of a gateway that the record does not name: of any gateway, but only after the record
 * was read again. */
static void test_lock_of_another(void **state)
{
	(void)state;
	stand_by("me");
	access_done();
	answer(LOCK, ERR_AGAIN);
	answer(READ, 0);
	assert_int_equal(f.kind, FENCE);
	assert_null(f.r->whom);
	answer(FENCE, ERR_NOT_FOUND); /* it is free by now */
	answer(LOCK, 0);
	f.r = NULL;
}

/* Another gateway is faster: it may have the lock that this one got. */
static void test_release(void **state)
{
	(void)state;
	stand_by("me");
	access_done();
	answer(LOCK, 0);
	strcpy(f.rec.owner, "other");
	f.rec.generation++;
	put_record();
	answer(READ, 0);
	answer(UNLOCK, 0);
	assert_int_equal(role(), CLUSTER_STANDING_BY);
}

/* ---- an owner that does not answer ---- */

static void test_silence(void **state)
{
	xtime begin;

	(void)state;
	stand_by("other");
	begin = f.now;
	tick();
	end_note(0, "other"); /* the beacon */
	after(BEACON);
	for (unsigned i = 0; i < 3; i++) {
		end_note(0, NULL);
		assert_int_equal(role(), CLUSTER_STANDING_BY);
		after(BEACON);
	}
	/* heard at `begin`, and the rank is 0 */
	assert_int_equal(f.now, begin + SILENCE);
	answer(READ, 0);
	assert_int_equal(role(), CLUSTER_TAKING);
	assert_string_equal(f.said, "gateway other does not answer: taking the "
				    "unit from it");
}

/* A beacon that the store did not carry says nothing of the owner. */
static void test_silence_of_the_store(void **state)
{
	(void)state;
	stand_by("other");
	for (unsigned i = 0; i < 12; i++) {
		if (f.note)
			end_note(ERR_RESET, NULL);
		if (f.r)
			answer(READ, 0);
		after(BEACON);
	}
	assert_int_equal(role(), CLUSTER_STANDING_BY);
	f.r = NULL;
}

/* ---- the logical unit ---- */

static void test_wake(void **state)
{
	unsigned wakes;

	(void)state;
	stand_by("other");
	wakes = f.wakes;
	cluster_unit_fenced(f.u);
	assert_int_equal(f.wakes, wakes + 1);
	tick();
	assert_int_equal(role(), CLUSTER_FENCED);
}

/* What cannot be put in force is tried again after a beacon, not before. */
static void test_adopt_fails(void **state)
{
	(void)state;
	stand_by("other");
	f.rec.parts[CLUSTER_KEPT].changed = f.rec.version + 1;
	f.rec.parts[CLUSTER_KEPT].data = (const uint8_t *)"kept";
	f.rec.parts[CLUSTER_KEPT].len = 4;
	put_record();
	after(SILENCE);
	answer(READ, 0);
	assert_int_equal(f.adopts, 1);
	adopt(ERR_NOMEM);
	assert_memory_equal(f.said,
			    "the state of the unit in the record: ", 37);
	assert_int_equal(f.adopts, 1);
	after(BEACON - 1);
	assert_int_equal(f.adopts, 1);
	after(1);
	assert_int_equal(f.adopts, 2);
	adopt(0);
	after(BEACON);
	assert_int_equal(f.adopts, 2);
	f.r = NULL;
}

static void test_fenced(void **state)
{
	struct cluster_store fresh = { .ops = &store_ops };
	struct cluster_status st;

	(void)state;
	own();
	cluster_unit_fenced(f.u);
	tick();
	assert_int_equal(f.access, CLUSTER_UNAVAILABLE);
	access_done();
	assert_int_equal(role(), CLUSTER_FENCED); /* until the drop ends */
	cluster_unit_reopened(f.u, &fresh);
	tick();
	assert_null(f.r);
	step_end(&f.drop_step, 0);
	tick();
	assert_int_equal(role(), CLUSTER_JOINING);
	assert_int_equal(f.kind, READ);
	cluster_unit_status(f.u, &st);
	assert_int_equal(st.fenced, 1);
	f.r = NULL;
}

/* The store closes during the drop: a note that was to be sent once more is not. */
static void test_fenced_with_notes(void **state)
{
	struct cluster_store fresh = { .ops = &store_ops };
	unsigned notes;

	(void)state;
	stand_by("other");
	cluster_unit_take(f.u, CLUSTER_TAKE, caller());
	tick();
	after(500 *
	      XTIME_MS); /* to the owner again, once the first has ended */
	cluster_unit_fenced(f.u);
	tick();
	assert_int_equal(role(), CLUSTER_FENCED);
	notes = f.notes;
	end_note(ERR_ABORTED, NULL);
	access_done();
	note_alive();
	assert_int_equal(f.notes, notes);
	cluster_unit_reopened(f.u, &fresh);
	step_end(&f.drop_step, 0);
	tick();
	assert_int_equal(role(), CLUSTER_JOINING);
	assert_int_equal(f.kind, READ);
	f.r = NULL;
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_first),
		CASE(test_other_blocks),
		CASE(test_missing),
		CASE(test_restores),
		CASE(test_reads_now_and_then),
		CASE(test_cut_off),
		CASE(test_not_cut_off),
		CASE(test_refusals),
		CASE(test_take),
		CASE(test_take_unless_moved),
		CASE(test_take_fences_at_once),
		CASE(test_leave),
		CASE(test_leave_late),
		CASE(test_yield),
		CASE(test_yield_to_none),
		CASE(test_asked_to_yield),
		CASE(test_yield_to_a_gateway_that_leaves),
		CASE(test_deposed),
		CASE(test_lock_of_another),
		CASE(test_release),
		CASE(test_silence),
		CASE(test_silence_of_the_store),
		CASE(test_wake),
		CASE(test_adopt_fails),
		CASE(test_fenced),
		CASE(test_fenced_with_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
