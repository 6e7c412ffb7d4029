/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * token.c: POPULATE TOKEN (SBC-3 §5.7), WRITE USING TOKEN (§5.46), RECEIVE ROD
 * TOKEN INFORMATION (SPC-4 §6.26). A token represents blocks at a point in time
 * ("point in time copy, change vulnerable", SPC-4 §5.17.6.3): the first write
 * to any of them revokes the token. Every worker has a list of all tokens of a
 * unit in its lane, and checks the list before a write. A new token is added to
 * all lists while a fence excludes writes to its blocks (range.c).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "device/copy/copy.h"
#include "device/unit/itl.h"
#include "device/unit/lu_life.h"
#include "device/unit/names.h"
#include "device/unit/range.h"
#include "scsi/transportid.h"

/* Per unit. Beyond this, the oldest token of the initiator with the most
 * tokens is revoked, so that an initiator with too many tokens revokes its
 * own. */
#define MAX_TOKENS   64u
#define ROD_INTERNAL 0u /* the device selects the ROD type */
#define SECRET_AT    128u
#define SECRET_LEN   32u

struct dev_token {
	/* one of all lanes together, one of each nexus's entry */
	unsigned refs;
	bool listed; /* the token is in all lanes */
	bool leaving;
	struct dev_lu *lu;
	struct dev_task *task; /* POPULATE TOKEN, until listed */
	struct dev_round round;
	char by[SCSI_DEVICE_NAME_MAX + 1]; /* the initiator of POPULATE TOKEN */
	uint8_t bytes[TOKEN_LEN];
	uint64_t total; /* bytes of the medium */
	uint64_t idle_ms, used_ms;
	struct dev_token_cover cover;
	struct dev_token_part parts[]; /* one for each worker */
};

bool dev_has_tokens(const struct dev_lu *lu)
{
	const struct dev_env *env = &lu->server->env;

	return env->random && env->wall_ms;
}

/* ---- references and lists ---- */

void dev_token_put(struct dev_token *k)
{
	if (k && __atomic_sub_fetch(&k->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(k);
}

static void get(struct dev_token *k)
{
	__atomic_add_fetch(&k->refs, 1, __ATOMIC_RELAXED);
}

static bool is_expired(const struct dev_token *k)
{
	return dev_wall_ms(k->lu) -
		       __atomic_load_n(&k->used_ms, __ATOMIC_RELAXED) >
	       k->idle_ms;
}

bool dev_token_is_bad(const struct dev_token *k)
{
	return __atomic_load_n(&k->cover.revoked, __ATOMIC_RELAXED);
}

static void leave_lane(struct dev_round *r, unsigned worker)
{
	struct dev_token *k = container_of(r, struct dev_token, round);

	list_del(&k->parts[worker].link);
	dev_round_next(r);
}

static void left(struct dev_round *r)
{
	struct dev_token *k = container_of(r, struct dev_token, round);

	dev_lu_release(k->lu);
	dev_token_put(k);
}

/* Revokes k and removes it from all lanes; worker is the calling one. */
static void retire(struct dev_token *k, unsigned worker)
{
	dev_token_revoke(&k->cover);
	if (!__atomic_load_n(&k->listed, __ATOMIC_SEQ_CST) ||
	    __atomic_exchange_n(&k->leaving, true, __ATOMIC_ACQ_REL))
		return;
	k->round.visit = leave_lane;
	k->round.done = left;
	dev_round_start(&k->round, worker);
}

static struct dev_token *token_at(struct list *it)
{
	return container_of(list_entry(it, struct dev_token_part, link)->cover,
			    struct dev_token, cover);
}

/* Returns how many valid tokens the initiator of k has. */
static unsigned count_of(struct list *tokens, const struct dev_token *k)
{
	unsigned n = 0;

	list_for_each(it, tokens)
		n += !dev_token_is_bad(token_at(it)) &&
		     !strcmp(token_at(it)->by, k->by);
	return n;
}

static struct dev_token *one_too_many(struct list *tokens)
{
	struct dev_token *worst = NULL;
	unsigned most = 0;

	list_for_each(it, tokens) {
		struct dev_token *k = token_at(it);
		unsigned n = dev_token_is_bad(k) ? 0 : count_of(tokens, k);

		if (n <= most)
			continue;
		most = n;
		worst = k;
	}
	return worst;
}

/* Removes revoked and expired tokens, and makes room for a new one. */
static void purge(struct dev_lu *lu, unsigned worker)
{
	struct list *tokens = &lu->lanes[worker].tokens;
	struct dev_token *k;
	unsigned n = 0;

	list_for_each_safe(it, tokens) {
		k = token_at(it);
		if (dev_token_is_bad(k) || is_expired(k))
			retire(k, worker);
		else
			n++;
	}
	for (; n >= MAX_TOKENS && (k = one_too_many(tokens)); n--)
		retire(k, worker);
}

void dev_tokens_retire(struct dev_lu *lu)
{
	list_for_each_safe(it, &lu->lanes[0].tokens)
		retire(token_at(it), 0);
}

void dev_tokens_fini(struct dev_lu *lu)
{
	struct list *it;

	while ((it = list_pop_front(&lu->lanes[0].tokens)))
		dev_token_put(token_at(it));
}

/* ---- parameter lists ---- */

#define DESC_LEN	16u
#define POPULATE_HEADER 16u
#define WRITE_HEADER	536u
#define MAX_LIST	(WRITE_HEADER + TOKEN_RANGES * DESC_LEN)
#define RTV		0x02 /* the ROD TYPE field is valid */
#define DELETE_TOKEN	0x02

int dev_prepare_token(struct dev_task *t, uint64_t *out_len)
{
	return dev_copy_prepare_list(t, MAX_LIST, out_len);
}

/* Checks that the parameter list is complete and its lengths are valid. */
static bool check_lengths(struct dev_task *t, uint32_t header, unsigned len_at)
{
	const uint8_t *p = t->own.mem.buf;
	uint32_t descs;

	if (t->out_len < header)
		goto bad;
	descs = get_be16(p + len_at);
	if (header + descs > t->out_len || get_be16(p) + 2u < header + descs)
		goto bad;
	if (descs == 0 || descs % DESC_LEN || descs / DESC_LEN > TOKEN_RANGES) {
		dev_bad_parameter(t, len_at);
		return false;
	}
	return true;
bad:
	dev_bad_length(t);
	return false;
}

static bool overlaps_one_of(const struct dev_token_range *r, unsigned n,
			    uint64_t lba, uint64_t blocks)
{
	for (unsigned i = 0; i < n; i++)
		if (blocks && r[i].blocks &&
		    ranges_overlap(lba, blocks, r[i].lba, r[i].blocks))
			return true;
	return false;
}

/* Reads the n descriptors at `at` into r; returns n, or 0: t was ended.
 * *total gets the number of bytes of all ranges. */
static unsigned take_ranges(struct dev_task *t, uint32_t at, unsigned n,
			    struct dev_token_range *r, uint64_t *total)
{
	const uint8_t *p = (const uint8_t *)t->own.mem.buf + at;

	*total = 0;
	for (unsigned i = 0; i < n; i++, p += DESC_LEN) {
		uint64_t lba = get_be64(p), blocks = get_be32(p + 8);

		if (dev_range(t, lba, blocks))
			return 0;
		if (overlaps_one_of(r, i, lba, blocks)) {
			dev_bad_parameter(t, at + i * DESC_LEN);
			return 0;
		}
		r[i] = (struct dev_token_range){ lba, blocks };
		*total += blocks << t->lu->block_shift;
	}
	if (*total > TOKEN_MAX_BYTES) {
		dev_bad_parameter(t, at + 8);
		return 0;
	}
	return n;
}

/* ---- POPULATE TOKEN ---- */

/* SPC-4 table 123. The random bytes make the token impossible to guess. */
static void write_token(struct dev_token *k)
{
	const struct dev_env *env = &k->lu->server->env;
	uint8_t *p = k->bytes;

	put_be32(p, ROD_CHANGE_VULNERABLE);
	put_be16(p + 6, TOKEN_LEN - 8);
	env->random(env->arg, p + 8, 8);
	p[16] = 0xe4;
	dev_lu_put_name(k->lu, p + 16 + 4);
	put_be64(p + 56, k->total);
	env->random(env->arg, p + SECRET_AT, SECRET_LEN);
}

static struct dev_token *token_new(struct dev_lu *lu)
{
	unsigned n = lu->server->env.nworkers;
	struct dev_token *k = calloc(1, sizeof(*k) + n * sizeof(k->parts[0]));

	if (!k)
		return NULL;
	k->refs = 1;
	k->lu = lu;
	k->round.server = lu->server;
	for (unsigned i = 0; i < n; i++) {
		k->parts[i].cover = &k->cover;
		list_init(&k->parts[i].link);
	}
	return k;
}

static void enter_lane(struct dev_round *r, unsigned worker)
{
	struct dev_token *k = container_of(r, struct dev_token, round);

	list_push_back(&k->lu->lanes[worker].tokens, &k->parts[worker].link);
	dev_round_next(r);
}

static void listed(struct dev_round *r)
{
	struct dev_token *k = container_of(r, struct dev_token, round);
	struct dev_task *t = k->task;

	k->task = NULL;
	__atomic_store_n(&k->listed, true, __ATOMIC_SEQ_CST);
	if (dev_lu_is_leaving(k->lu))
		retire(k, t->nexus->cfg.worker);
	t->own.copy->bytes = k->total;
	dev_copy_succeed(t);
	dev_good(t);
}

/* The fence excludes writes to the blocks now. */
static void fenced(struct dev_range *r)
{
	struct dev_task *t = container_of(r, struct dev_task, own.range);
	struct dev_token *k = t->own.copy->token;

	if (t->own.abort.due) {
		dev_token_put(k); /* k is in no lane */
		dev_good(t);
		return;
	}
	dev_lu_hold(k->lu);
	k->task = t;
	k->round.visit = enter_lane;
	k->round.done = listed;
	dev_round_start(&k->round, t->nexus->cfg.worker);
}

/* Sets lba and blocks to the smallest range that contains all ranges of k. */
static void span(const struct dev_token *k, uint64_t *lba, uint64_t *blocks)
{
	uint64_t end = 0;

	*lba = UINT64_MAX;
	for (unsigned i = 0; i < k->cover.n; i++) {
		*lba = MIN(*lba, k->cover.ranges[i].lba);
		end = MAX(end,
			  k->cover.ranges[i].lba + k->cover.ranges[i].blocks);
	}
	*blocks = end - *lba;
}

static void begin_populate(struct dev_task *t, struct dev_token *k)
{
	uint64_t lba, blocks;

	if (!dev_copy_begin(t, COPY_BY_TOKEN, get_be32(t->cdb + 6), false)) {
		dev_token_put(k);
		return;
	}
	get(k);
	t->own.copy->token = k;
	write_token(k);
	span(k, &lba, &blocks);
	if (dev_range_take(&t->own.range, t->lu, t->nexus->cfg.worker, lba,
			   blocks, DEV_HOLD_ALONE, fenced)) {
		dev_token_put(k); /* k is in no lane */
		dev_copy_fail(t, &(struct scsi_sense){
					 .key = SENSE_ABORTED_COMMAND,
					 .asc = ASC_INSUFFICIENT_RESOURCES });
	}
}

void dev_populate_token(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	uint32_t idle, type;
	struct dev_token *k;

	if (get_be32(t->cdb + 10) == 0) {
		dev_good(t); /* an empty parameter list is valid */
		return;
	}
	dev_count(t, COUNT_READS, 0);
	if (!check_lengths(t, POPULATE_HEADER, 14))
		return;
	idle = get_be32(p + 4);
	type = get_be32(p + 8);
	if (idle > TOKEN_IDLE_MAX) {
		dev_bad_parameter(t, 4);
		return;
	}
	if ((p[2] & RTV) && type != ROD_INTERNAL &&
	    type != ROD_CHANGE_VULNERABLE) {
		dev_bad_parameter(t, 8);
		return;
	}
	purge(t->lu, t->nexus->cfg.worker);
	k = token_new(t->lu);
	if (!k) {
		dev_no_resources(t);
		return;
	}
	scsi_port_device(t->nexus->cfg.initiator_port, k->by);
	k->idle_ms = (idle ? idle : TOKEN_IDLE) * 1000u;
	k->used_ms = dev_wall_ms(t->lu);
	k->cover.n =
		take_ranges(t, POPULATE_HEADER, get_be16(p + 14) / DESC_LEN,
			    k->cover.ranges, &k->total);
	if (k->cover.n == 0)
		dev_token_put(k);
	else
		begin_populate(t, k);
}

/* ---- WRITE USING TOKEN ---- */

/* Returns the token with these bytes, among the tokens of the units of the
 * nexus, or NULL: *asc has the reason. */
static struct dev_token *find(const struct dev_task *t, const uint8_t *bytes,
			      uint16_t *asc)
{
	*asc = ASC_TOKEN_UNKNOWN;
	for (const struct dev_itl *i = dev_itl_first(t->nexus); i;
	     i = dev_itl_next(i)) {
		list_for_each(it, &i->lu->lanes[t->nexus->cfg.worker].tokens) {
			struct dev_token *k = token_at(it);

			if (memcmp(k->bytes + 8, bytes + 8, 8) != 0)
				continue;
			*asc = memcmp(k->bytes, bytes, TOKEN_LEN) != 0
				       ? ASC_TOKEN_CORRUPT
			       : dev_token_is_bad(k) ? ASC_TOKEN_REVOKED
			       : is_expired(k)	     ? ASC_TOKEN_EXPIRED
						     : 0;
			return *asc ? NULL : k;
		}
	}
	return NULL;
}

/* A position in a list of ranges: byte `done` of range `i`. */
struct walk {
	const struct dev_token_range *r;
	unsigned n, i;
	uint64_t done;
	unsigned shift;
};

static uint64_t walk_left(const struct walk *w)
{
	return (w->r[w->i].blocks << w->shift) - w->done;
}

static void walk_on(struct walk *w, uint64_t bytes)
{
	w->done += bytes;
	while (w->i < w->n && walk_left(w) == 0) {
		w->i++;
		w->done = 0;
	}
}

static void skip_bytes(struct walk *w, uint64_t bytes)
{
	walk_on(w, 0);
	while (bytes && w->i < w->n) {
		uint64_t n = MIN(bytes, walk_left(w));

		bytes -= n;
		walk_on(w, n);
	}
}

static uint64_t walk_at(const struct walk *w)
{
	return (w->r[w->i].lba << w->shift) + w->done;
}

static uint64_t whole_blocks(const struct dev_lu *lu, uint64_t bytes)
{
	return bytes >> lu->block_shift << lu->block_shift;
}

/* Makes segments of the token's ranges and the destination's ranges, up to
 * the end of the shorter list; returns the number of bytes. k NULL: zeros. */
static uint64_t pair_up(struct dev_task *t, struct dev_job *j,
			const struct dev_token *k, uint64_t skip,
			const struct dev_token_range *dst, unsigned ndst)
{
	uint64_t left = k ? whole_blocks(t->lu, k->total - skip) : UINT64_MAX;
	uint64_t sum = 0;
	struct walk from = { .r = k ? k->cover.ranges : NULL,
			     .n = k ? k->cover.n : 0,
			     .shift = k ? k->lu->block_shift : 0 };
	struct walk to = { .r = dst, .n = ndst, .shift = t->lu->block_shift };

	skip_bytes(&to, 0);
	if (k)
		skip_bytes(&from, skip);
	while (to.i < to.n && sum < left) {
		struct dev_segment *s = &j->segments[j->nsegments++];

		s->to = t->lu;
		s->to_off = walk_at(&to);
		s->len = MIN(walk_left(&to), left - sum);
		s->from = NULL;
		if (k) {
			s->from = k->lu;
			s->from_off = walk_at(&from);
			s->len = MIN(s->len, walk_left(&from));
			walk_on(&from, s->len);
		}
		walk_on(&to, s->len);
		sum += s->len;
	}
	return sum;
}

static_assert(2 * TOKEN_RANGES <= sizeof(((struct dev_job *)0)->segments) /
					  sizeof(struct dev_segment),
	      "n ranges to m ranges are n + m - 1 segments");

/* Returns whether a segment begins or ends inside a block of source or
 * destination. */
static bool is_ragged(const struct dev_job *j)
{
	for (uint32_t i = 0; i < j->nsegments; i++) {
		const struct dev_segment *s = &j->segments[i];

		if ((s->len | s->to_off) & (s->to->block_size - 1) ||
		    (s->from &&
		     (s->len | s->from_off) & (s->from->block_size - 1)))
			return true;
	}
	return false;
}

static bool resolve(struct dev_task *t, struct dev_token **k)
{
	const uint8_t *p = (const uint8_t *)t->own.mem.buf + 16;
	uint16_t asc;

	*k = NULL;
	if (get_be16(p + 6) != TOKEN_LEN - 8) {
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_TOKEN_CORRUPT);
		return false;
	}
	if (get_be32(p) == ROD_ZEROS)
		return true;
	*k = find(t, p, &asc);
	if (!*k)
		dev_check(t, SENSE_ILLEGAL_REQUEST, asc);
	return *k != NULL;
}

static void write_from(struct dev_task *t, struct dev_token *k,
		       const struct dev_token_range *dst, unsigned n,
		       uint64_t wanted)
{
	const uint8_t *p = t->own.mem.buf;
	struct dev_job *j = dev_job_new(t);
	uint16_t refusal;
	uint64_t sum;

	if (!j)
		return;
	refusal = dev_copy_from_refusal(t->nexus, k ? k->lu : NULL);
	if (!refusal)
		refusal = dev_copy_to_refusal(t->nexus, t->lu);
	if (refusal) {
		dev_check(t, SENSE_COPY_ABORTED, refusal);
		return;
	}
	sum = pair_up(t, j, k, get_be64(p + 8) << t->lu->block_shift, dst, n);
	if (is_ragged(j)) {
		dev_check(t, SENSE_COPY_ABORTED, ASC_INEXACT_SEGMENT);
		return;
	}
	if (!dev_copy_begin(t, COPY_BY_TOKEN, get_be32(t->cdb + 6), false))
		return;
	if (k) {
		__atomic_store_n(&k->used_ms, dev_wall_ms(t->lu),
				 __ATOMIC_RELAXED);
		get(k);
		t->own.copy->token = k;
		j->token = k;
		j->use_up = p[2] & DELETE_TOKEN;
	}
	t->own.copy->partial = sum < wanted;
	dev_job_run(t);
}

void dev_write_using_token(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	struct dev_token_range dst[TOKEN_RANGES];
	struct dev_token *k;
	uint64_t wanted;
	unsigned n;

	if (get_be32(t->cdb + 10) == 0) {
		dev_good(t);
		return;
	}
	dev_count(t, COUNT_WRITES, 0);
	if (!check_lengths(t, WRITE_HEADER, 534))
		return;
	n = take_ranges(t, WRITE_HEADER, get_be16(p + 534) / DESC_LEN, dst,
			&wanted);
	if (n == 0 || !resolve(t, &k))
		return;
	if (k && get_be64(p + 8) > k->total >> t->lu->block_shift) {
		dev_bad_parameter(t, 8);
		return;
	}
	write_from(t, k, dst, n, wanted);
}

void dev_token_use_up(struct dev_token *k)
{
	dev_token_revoke(&k->cover);
}

/* ---- RECEIVE ROD TOKEN INFORMATION ---- */

#define INFO_HEADER  32u
#define UNITS_BLOCKS 0xf1
#define NOT_KNOWN    0xffffffffu /* ESTIMATED STATUS UPDATE DELAY */
#define NO_NEED	     0xfffffffeu

/* Writes the status of the copy to the parameter data p (SPC-4 tables 249,
 * 250). */
static void put_status(const struct dev_copy *c, uint8_t *p)
{
	put_be32(p + 8, NO_NEED);
	switch (c->state) {
	case COPY_RUNS:
		p[5] = 0x11; /* in progress in the foreground */
		put_be32(p + 8, NOT_KNOWN);
		break;
	case COPY_DONE:
		p[5] = c->partial ? 0x04 : 0x01; /* with residual, or not */
		p[12] = SCSI_GOOD;
		break;
	case COPY_ABORTED:
		p[5] = 0x60;
		p[12] = SCSI_TASK_ABORTED;
		break;
	default:
		p[5] = 0x02; /* with errors */
		p[12] = SCSI_CHECK_CONDITION;
	}
}

void dev_receive_token_information(struct dev_task *t)
{
	const struct dev_copy *c =
		dev_copy_find(t, COPY_BY_TOKEN, get_be32(t->cdb + 2));
	size_t len = INFO_HEADER, sense;
	uint8_t *p;

	if (!c) {
		dev_bad_field(t, 2, -1);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	p[4] = c->sa;
	put_status(c, p);
	put_be16(p + 6, 1); /* OPERATION COUNTER */
	sense = round_up4(c->sense_len);
	p[13] = (uint8_t)sense;
	p[14] = c->sense_len;
	p[15] = UNITS_BLOCKS;
	put_be64(p + 16, c->bytes >> t->lu->block_shift);
	memcpy(p + len, c->sense, c->sense_len);
	len += sense;
	if (c->sa == SCSI_XC_POPULATE_TOKEN && c->state == COPY_DONE) {
		put_be32(p + len, 2 + TOKEN_LEN);
		memcpy(p + len + 6, c->token->bytes, TOKEN_LEN);
		len += 2 + TOKEN_LEN;
	}
	len += 4;
	put_be32(p, (uint32_t)len - 4);
	dev_return(t, len, get_be32(t->cdb + 10));
}
