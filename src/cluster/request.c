/* SPDX-License-Identifier: BSD-2-Clause */
/* request.c: requests to the store, and notes to the other gateways. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cluster/internal.h"

/* ---- requests ---- */

static void request_done(struct cluster_request *r)
{
	struct cluster_unit *u = container_of(r, struct cluster_unit, ask.req);

	if (u->ask.op == OP_READ && r->result == 0 && r->len > 0) {
		u->ask.in = malloc(r->len);
		u->ask.in_len = r->len;
		if (u->ask.in)
			memcpy(u->ask.in, r->data, r->len);
		else
			r->result = ERR_NOMEM;
	}
	u->ask.ended = true;
	clu_wake(u);
}

bool clu_can_ask(struct cluster_unit *u)
{
	return u->store && u->ask.op == OP_NONE && clu_due(u, u->ask.retry_at);
}

static void ask_begin(struct cluster_unit *u, enum op op)
{
	assert(u->ask.op == OP_NONE && !u->ask.in);
	u->ask.op = op;
	u->ask.ended = false;
	u->ask.req = (struct cluster_request){ .done = request_done };
	list_init(&u->ask.req.link);
}

void clu_ask(struct cluster_unit *u, enum op op)
{
	ask_begin(u, op);
	switch (op) {
	case OP_READ:
		u->view.wanted = false;
		clu_move_all(&u->saves.unread, &u->saves.reading);
		u->store->ops->read(u->store, &u->ask.req);
		break;
	case OP_LOCK:
		u->store->ops->lock(u->store, &u->ask.req);
		break;
	case OP_UNLOCK:
		u->store->ops->unlock(u->store, &u->ask.req);
		break;
	case OP_FENCE:
		u->count.fences++;
		if (u->take.victim[0] != '\0')
			u->ask.req.whom = u->take.victim;
		u->store->ops->fence(u->store, &u->ask.req);
		break;
	case OP_SWAP:
	case OP_NONE:
	case OPS:
		assert(false);
	}
}

int clu_ask_swap(struct cluster_unit *u)
{
	struct asking *a = &u->ask;
	size_t len = cluster_record_size(&a->draft);

	a->out = malloc(len);
	if (!a->out)
		return ERR_NOMEM;
	cluster_record_encode(&a->draft, a->out);
	ask_begin(u, OP_SWAP);
	a->req.version = u->view.version;
	a->req.first = u->view.again;
	a->req.data = a->out;
	a->req.len = len;
	a->number = u->change.number;
	u->count.swaps++;
	u->store->ops->swap(u->store, &a->req);
	return 0;
}

/* ---- the record ---- */

static bool same_members(const struct cluster_record *a,
			 const struct cluster_record *b)
{
	if (a->ngateways != b->ngateways || strcmp(a->owner, b->owner) != 0 ||
	    a->generation != b->generation)
		return false;
	for (unsigned i = 0; i < a->ngateways; i++)
		if (memcmp(&a->gateways[i], &b->gateways[i],
			   offsetof(struct cluster_gateway, last)) != 0)
			return false;
	return true;
}

/* The record has new contents: blob, which u owns from now on. */
static int record_set(struct cluster_unit *u, uint8_t *blob, size_t len,
		      uint64_t version)
{
	/* `draft` is free: no swap is in progress. */
	struct cluster_record *r = &u->ask.draft;
	int err = 0;

	if (len > 0)
		err = cluster_record_decode(r, blob, len);
	else
		memset(r, 0, sizeof(*r));
	if (err || r->version < u->view.rec.version) {
		free(blob);
		return err ? err : ERR_SEQUENCE;
	}
	if (r->generation != u->view.rec.generation) {
		u->peers.heard = u->now;
		u->peers.unanswered = 0;
	}
	if (!same_members(r, &u->view.rec))
		u->ops->gateways(u->ops->arg, r);
	free(u->view.blob);
	u->view.rec = *r;
	u->view.blob = blob;
	u->view.version = version;
	u->view.again = 0;
	u->view.fresh = true;
	u->view.at = u->now;
	return 0;
}

/* The record was removed. The owner's copy has every change that was acknowledged, so the owner
 * writes it again, with versions that no gateway has seen. */
static bool must_restore(struct cluster_unit *u)
{
	if ((u->role != CLUSTER_OWNER && u->role != CLUSTER_TAKING &&
	     u->role != CLUSTER_YIELDING) ||
	    !clu_is_self(u, u->view.rec.owner))
		return false;
	if (!u->view.again) {
		clu_say(u, "the record was removed: ",
			"this gateway writes it again", "");
		u->view.again = u->view.version + UNSEEN;
		u->view.rec.version += UNSEEN;
	}
	u->view.version = 0;
	u->view.fresh = true;
	u->view.at = u->now;
	return true;
}

static void complain(struct cluster_unit *u, enum op op, int err)
{
	if (err == u->ask.complained[op] || err == ERR_ABORTED ||
	    err == ERR_AGAIN)
		return;
	u->ask.complained[op] = err;
	if (err)
		clu_say(u, "the record of the gateways: ", err_str(err), "");
}

static void back_off(struct cluster_unit *u)
{
	u->ask.retry_at = u->now + u->cfg.beacon / 4;
}

/* Refreshes that waited for the read have its record now, or need another read. */
static void refresh_read(struct cluster_unit *u, int result)
{
	if (list_empty(&u->saves.reading))
		return;
	if (result) {
		clu_move_all(&u->saves.reading, &u->saves.unread);
		return;
	}
	clu_move_all(&u->saves.reading, &u->saves.waiting);
	u->saves.need = cluster_record_changed(&u->view.rec);
}

static int read_ended(struct cluster_unit *u, int result)
{
	uint8_t *blob = u->ask.in;

	u->ask.in = NULL;
	if (result == 0 && (blob || !must_restore(u)))
		result = record_set(u, blob, blob ? u->ask.in_len : 0,
				    u->ask.req.version);
	u->view.error = result;
	if (result)
		u->view.wanted = true;
	refresh_read(u, result);
	return result;
}

static int swap_ended(struct cluster_unit *u, int result)
{
	uint8_t *blob = u->ask.out;

	u->ask.out = NULL;
	if (result) {
		free(blob);
		u->view.fresh = false;
	} else {
		result =
			record_set(u, blob, u->ask.req.len, u->ask.req.version);
		assert(result == 0);
	}
	if (result == ERR_AGAIN)
		u->count.conflicts++;
	return result;
}

/* The store is there; a gateway that was fenced gets no note any more, either. */
static void heard(struct cluster_unit *u)
{
	u->ask.heard = u->now;
	u->ask.silent = 0;
}

enum op clu_ask_look(struct cluster_unit *u, int *ended)
{
	enum op op = u->ask.op;
	int result = u->ask.req.result;

	if (u->ask.noted)
		heard(u);
	u->ask.noted = false;
	if (op == OP_NONE || !u->ask.ended)
		return OP_NONE;
	u->ask.op = OP_NONE;
	if (op == OP_READ)
		result = read_ended(u, result);
	else if (op == OP_SWAP)
		result = swap_ended(u, result);
	if (result == ERR_ABORTED)
		u->store = NULL; /* closed: cluster_unit_reopened follows */
	if (result == ERR_TERMINATED)
		u->fence_seen = true;
	else if (result == 0 || result == ERR_AGAIN || result == ERR_NOT_FOUND)
		u->ask.answered = u->now;
	else
		back_off(u);
	if (result != ERR_RESET && result != ERR_ABORTED)
		heard(u);
	if (result == 0 || (op != OP_UNLOCK && result != ERR_NOT_FOUND))
		complain(u, op, result);
	*ended = result;
	return op;
}

/* ---- notes ---- */

static void note_done(struct cluster_note *n)
{
	struct post *p = container_of(n, struct post, note);

	p->busy = false;
	p->ended = true;
	if (n->result == ERR_TERMINATED)
		p->u->fence_seen = true;
	clu_wake(p->u);
}

static const enum cluster_note_kind kinds[POSTS] = {
	[POST_BEACON] = CLUSTER_NOTE_ALIVE,
	[POST_PROBE] = CLUSTER_NOTE_ALIVE,
	[POST_CHANGED] = CLUSTER_NOTE_CHANGED,
	[POST_CONFIRM] = CLUSTER_NOTE_CONFIRM,
	[POST_IN_FORCE] = CLUSTER_NOTE_IN_FORCE,
	[POST_YIELD] = CLUSTER_NOTE_YIELD,
};

static void post_send(struct cluster_unit *u, enum post_kind kind,
		      uint64_t version)
{
	struct post *p = &u->ask.posts[kind];
	struct cluster_note_body b = { .kind = kinds[kind],
				       .version = version,
				       .generation = u->view.rec.generation };
	unsigned ms = NOTE_MS;

	if (kind == POST_BEACON || kind == POST_PROBE)
		ms = (unsigned)(u->cfg.beacon / XTIME_MS);
	cluster_note_encode(&b, p->data);
	p->version = version;
	p->sent = u->now;
	p->busy = true;
	p->again = p->ended = false;
	p->u = u;
	memset(&p->note, 0, sizeof(p->note));
	p->note.done = note_done;
	p->note.data = p->data;
	p->note.len = CLUSTER_NOTE_SIZE;
	p->note.ms = ms;
	list_init(&p->note.link);
	u->store->ops->notify(u->store, &p->note);
}

void clu_post(struct cluster_unit *u, enum post_kind kind, uint64_t version)
{
	struct post *p = &u->ask.posts[kind];

	p->sent = u->now;
	if (!u->store)
		return;
	if (p->busy) {
		p->again = true;
		p->version = MAX(p->version, version);
	} else {
		post_send(u, kind, version);
	}
}

bool clu_post_acked(const struct post *p, const char *id)
{
	for (unsigned i = 0; i < p->note.nacks; i++)
		if (strcmp(p->note.acks[i], id) == 0)
			return true;
	return false;
}

void clu_posts_look(struct cluster_unit *u)
{
	for (unsigned i = 0; i < POSTS; i++) {
		struct post *p = &u->ask.posts[i];

		if (!p->busy && p->again && u->store)
			post_send(u, (enum post_kind)i, p->version);
	}
}

/* ---- what the store reports by itself ---- */

static bool takes_part(const struct cluster_unit *u)
{
	return u->role == CLUSTER_STANDING_BY || u->role == CLUSTER_TAKING ||
	       u->role == CLUSTER_OWNER || u->role == CLUSTER_YIELDING;
}

static void noted(void *arg, const char *from, uint64_t cookie,
		  const uint8_t *data, size_t len)
{
	struct cluster_unit *u = arg;
	struct cluster_note_body b;
	int err = cluster_note_decode(&b, data, len);

	u->ask.noted = true;
	/* A gateway that could not serve the unit does not answer whether it is
	 * there. */
	if (u->store && (err || b.kind != CLUSTER_NOTE_ALIVE || takes_part(u)))
		u->store->ops->ack(u->store, cookie);
	if (err || strlen(from) >= CLUSTER_ID_SIZE)
		return;
	if (b.kind == CLUSTER_NOTE_IN_FORCE)
		u->peers.confirmed = MAX(u->peers.confirmed, b.version);
	else if (b.version > u->view.rec.version || b.version == 0)
		u->view.wanted = true;
	if (b.kind == CLUSTER_NOTE_CONFIRM)
		u->peers.asked = MAX(u->peers.asked, b.version);
	if (b.kind == CLUSTER_NOTE_YIELD && u->role == CLUSTER_OWNER &&
	    b.generation == u->view.rec.generation)
		strcpy(u->peers.asker, from);
	clu_wake(u);
}

static void missed(void *arg)
{
	struct cluster_unit *u = arg;

	u->view.wanted = true;
	clu_wake(u);
}

static void fenced(void *arg)
{
	struct cluster_unit *u = arg;

	u->fence_seen = true;
	clu_wake(u);
}

static void store_says(void *arg, const char *sentence)
{
	const struct cluster_unit *u = arg;

	clu_say(u, sentence, "", "");
}

void clu_store_use(struct cluster_unit *u, struct cluster_store *store)
{
	/* the old store has ended all requests */
	assert(u->ask.op == OP_NONE || u->ask.ended);
	u->ask.op = OP_NONE;
	free(u->ask.in);
	free(u->ask.out);
	u->ask.in = u->ask.out = NULL;
	refresh_read(u, ERR_ABORTED);
	u->store = store;
	store->events = (struct cluster_store_events){ .noted = noted,
						       .missed = missed,
						       .fenced = fenced,
						       .say = store_says,
						       .arg = u };
	for (unsigned i = 0; i < POSTS; i++)
		u->ask.posts[i].again = false;
	u->view.fresh = false;
	u->view.wanted = true;
	u->ask.retry_at = 0;
}
