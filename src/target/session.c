/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c: sessions and their tasks: an array sized by the command window,
 * found by Initiator Task Tag through a table of chains.
 *
 * Twice the window and a few are kept: a task whose response is queued but
 * not yet sent still holds its slot while the initiator, by a number that an
 * earlier response carried, may already send the next command.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

#define IMMEDIATES_MAX 16u /* immediate commands have slots of their own */

/* ---- task states ---- */

static const uint8_t task_may_go[] = {
	[TGT_TASK_FREE] = BIT(TGT_TASK_DATA),
	[TGT_TASK_DATA] = BIT(TGT_TASK_TURN) | BIT(TGT_TASK_RUN) |
			  BIT(TGT_TASK_RESPONSE) | BIT(TGT_TASK_ABORTING),
	[TGT_TASK_TURN] = BIT(TGT_TASK_RUN) | BIT(TGT_TASK_RESPONSE) |
			  BIT(TGT_TASK_ABORTING),
	[TGT_TASK_RUN] = BIT(TGT_TASK_PUT) | BIT(TGT_TASK_RESPONSE) |
			 BIT(TGT_TASK_ABORTING),
	[TGT_TASK_PUT] = BIT(TGT_TASK_RESPONSE) | BIT(TGT_TASK_ABORTING),
	[TGT_TASK_RESPONSE] = BIT(TGT_TASK_FREE) | BIT(TGT_TASK_ABORTING),
	[TGT_TASK_ABORTING] = BIT(TGT_TASK_FREE),
};

void tgt_task_go(struct tgt_task *t, enum tgt_task_state next)
{
	assert(task_may_go[t->state] & BIT(next));
	t->state = next;
}

/* ---- the table of tags ---- */

static struct tgt_task **chain(const struct tgt_session *s, uint32_t itt)
{
	/* Fibonacci hashing: tags that count up spread evenly */
	return &s->hash[(itt * 2654435769u) >> s->hash_shift];
}

struct tgt_task *tgt_task_find(const struct tgt_session *s, uint32_t itt)
{
	struct tgt_task *t = *chain(s, itt);

	while (t && t->dm.itt != itt)
		t = t->hash_next;
	return t;
}

static void unhash(struct tgt_session *s, struct tgt_task *t)
{
	struct tgt_task **p = chain(s, t->dm.itt);

	while (*p != t)
		p = &(*p)->hash_next;
	*p = t->hash_next;
}

/* ---- slots ---- */

/* The window that can be kept: never more than there are slots. */
void tgt_session_window(struct tgt_session *s)
{
	uint32_t depth = s->window.depth;
	uint32_t numbered = s->ntasks - IMMEDIATES_MAX;
	uint32_t held = s->used - s->immediates;
	uint32_t room = numbered > held ? numbered - held : 0;

	s->stalled |= room == 0;
	iscsi_target_window_update(&s->window, depth - MIN(depth, room));
	if (s->conn) {
		s->conn->numbers.expcmdsn = s->window.expcmdsn;
		s->conn->numbers.maxcmdsn = s->window.maxcmdsn;
	}
}

static struct tgt_task *spare_task(struct tgt_session *s)
{
	struct list *n = list_pop_front(&s->spare);
	struct tgt_task *t;

	if (n)
		return list_entry(n, struct tgt_task, link);
	if (s->fresh == s->ntasks)
		return NULL;
	t = &s->tasks[s->fresh++];
	t->session = s;
	list_init(&t->link);
	return t;
}

struct tgt_task *tgt_task_get(struct tgt_session *s, uint32_t itt,
			      bool immediate)
{
	struct tgt_task *t, **head;

	if (immediate && s->immediates >= IMMEDIATES_MAX)
		return NULL;
	t = spare_task(s);
	if (!t)
		return NULL;
	dm_task_init(&t->dm);
	t->dm.itt = itt;
	head = chain(s, itt);
	t->hash_next = *head;
	*head = t;
	list_push_back(&s->active, &t->link);
	s->used++;
	s->immediates += immediate;
	t->immediate = immediate;
	t->has_turn = t->begun = false;
	t->dm_holds = t->abort_late = t->told = false;
	t->dev_asked = t->dev_holds = false;
	t->data_err = 0;
	t->refusal = SCSI_GOOD;
	t->state = TGT_TASK_FREE;
	tgt_task_go(t, TGT_TASK_DATA);
	return t;
}

void tgt_task_put(struct tgt_task *t)
{
	struct tgt_session *s = t->session;

	tgt_task_go(t, TGT_TASK_FREE);
	tgt_order_forget(s, t);
	if (t->begun)
		dev_task_end(&t->dev);
	unhash(s, t);
	list_del(&t->link);
	list_push_front(&s->spare, &t->link);
	s->used--;
	s->immediates -= t->immediate;
	tgt_session_window(s);
}

/* ---- sessions ---- */

static bool tsih_taken(const struct tgt_worker *w, uint16_t tsih)
{
	list_for_each(it, &w->sessions)
		if (list_entry(it, struct tgt_session, link)->tsih == tsih)
			return true;
	return false;
}

/* A TSIH names its worker too: tsih % nworkers. Zero is no TSIH. */
static int tsih_new(struct tgt_worker *w, uint16_t *tsih)
{
	unsigned n = w->tgt->cfg.env.nworkers;
	unsigned span = 65535 / n; /* multiples 1 .. span-1 are safe */

	for (unsigned tries = 1; tries < span; tries++) {
		unsigned v = w->next_tsih * n + w->index;

		w->next_tsih =
			(uint16_t)(w->next_tsih + 1u < span ? w->next_tsih + 1u
							    : 1u);
		if (!tsih_taken(w, (uint16_t)v)) {
			*tsih = (uint16_t)v;
			return 0;
		}
	}
	return ERR_LIMIT;
}

static uint32_t pow2_at_least(uint32_t n)
{
	uint32_t p = 2;

	while (p < n)
		p *= 2;
	return p;
}

static int alloc_tasks(struct tgt_session *s, uint32_t depth)
{
	uint32_t buckets = pow2_at_least(2 * depth);

	s->ntasks = 2 * depth + IMMEDIATES_MAX;
	s->tasks = calloc(s->ntasks, sizeof(*s->tasks));
	s->hash = calloc(buckets, sizeof(*s->hash));
	s->hash_shift = 32;
	for (uint32_t b = buckets; b > 1; b /= 2)
		s->hash_shift--;
	s->ring_mask = pow2_at_least(depth) - 1;
	s->ring = calloc(s->ring_mask + 1, sizeof(*s->ring));
	return s->tasks && s->hash && s->ring ? 0 : ERR_NOMEM;
}

static void session_free(struct tgt_session *s)
{
	free(s->tasks);
	free(s->hash);
	free(s->ring);
	free(s);
}

struct tgt_session *tgt_session_new(struct tgt_conn *c,
				    const struct iscsi_login_id *id,
				    const struct iscsi_params *params,
				    struct tgt_node *node)
{
	struct tgt_worker *w = c->worker;
	struct tgt_session *s = calloc(1, sizeof(*s));
	uint32_t depth = node ? w->tgt->cfg.depth : 1;

	if (!s)
		return NULL;
	s->worker = w;
	s->conn = c;
	s->node = node;
	s->id = *id;
	s->params = *params;
	list_init(&s->active);
	list_init(&s->spare);
	list_init(&s->tmfs);
	list_init(&s->mourners);
	list_init(&s->link);
	s->window.depth = depth;
	if (alloc_tasks(s, depth) || tsih_new(w, &s->tsih)) {
		session_free(s);
		return NULL;
	}
	iscsi_session_go(ISCSI_TARGET, &s->state, ISCSI_Q2_ACTIVE); /* N1 */
	list_push_back(&w->sessions, &s->link);
	return s;
}

/* ---- PREEMPT AND ABORT by another initiator (SPC-4 §5.13.11.2.6) ---- */

static void preempted_gone(struct tgt_abort *a)
{
	struct tgt_session *s = container_of(a, struct tgt_session, preempted);

	s->preempting = false;
	dev_nexus_tasks_gone(s->nexus);
}

static void abort_preempted(void *arg, uint64_t lun,
			    const struct dev_task *except)
{
	struct tgt_session *s = arg;
	const struct tgt_scope scope = {
		.session = s,
		.one_lun = true,
		.lun = lun,
		.except = except,
		.told = true,
		.issuer = except ? s : NULL,
	};

	if (!except)
		tgt_abort_tell(s, &scope);
	s->preempting = true;
	tgt_abort_start(s->worker, &s->preempted, &scope, preempted_gone);
}

/* SAM names of the two ports (RFC 7143 §2.2 "SCSI Port Name"). */
static struct dev_nexus *open_nexus(struct tgt_session *s)
{
	const struct iscsi_login_id *id = &s->id;
	struct dev_nexus_config cfg = {
		.worker = s->worker->index,
		.relative_target_port = s->node->rtpi,
		.abort_tasks = abort_preempted,
		.arg = s,
	};

	snprintf(cfg.initiator_port, sizeof(cfg.initiator_port),
		 "%s,i,0x%02x%02x%02x%02x%02x%02x", id->initiator_name,
		 id->isid[0], id->isid[1], id->isid[2], id->isid[3],
		 id->isid[4], id->isid[5]);
	tgt_port_name(s->worker->tgt, s->node, cfg.target_port);
	snprintf(cfg.target_name, sizeof(cfg.target_name), "%s",
		 s->node->cfg.name);
	return dev_nexus_open(s->node->cfg.server, &cfg);
}

int tgt_session_start(struct tgt_session *s, uint32_t cmdsn)
{
	if (s->node) {
		s->nexus = open_nexus(s);
		if (!s->nexus)
			return ERR_NOMEM;
	}
	iscsi_target_window_init(&s->window, cmdsn, s->window.depth);
	tgt_session_window(s);
	iscsi_session_go(ISCSI_TARGET, &s->state, ISCSI_Q3_LOGGED_IN); /* N2 */
	return 0;
}

/* The last task is gone: the I_T nexus is lost (§6.3.5.1). */
static void session_gone(struct tgt_abort *a)
{
	struct tgt_session *s = container_of(a, struct tgt_session, closing);

	if (s->preempting)
		tgt_abort_cancel(&s->preempted);
	if (s->nexus)
		dev_nexus_close(s->nexus);
	iscsi_session_go(ISCSI_TARGET, &s->state, ISCSI_Q1_FREE); /* N3 N6 N9 */
	list_del(&s->link);
	tgt_reinstate_mourned(s);
	session_free(s);
}

static struct tgt_task *abort_to_end(const struct tgt_session *s)
{
	list_for_each(it, &s->active) {
		struct tgt_task *t = list_entry(it, struct tgt_task, link);

		if (t->state == TGT_TASK_ABORTING && !t->dev_holds)
			return t;
	}
	return NULL;
}

/*
 * The connection is gone and with it, at ErrorRecoveryLevel 0, the session
 * (§8.2: no time to retain). The datamover has let go of every task.
 */
void tgt_session_close(struct tgt_session *s)
{
	const struct tgt_scope scope = { .session = s };
	struct tgt_task *t;

	s->conn = NULL;
	tgt_tmf_forget(s);
	tgt_order_free(s);
	if (s->state == ISCSI_Q3_LOGGED_IN && !s->logged_out)
		iscsi_session_go(ISCSI_TARGET, &s->state,
				 ISCSI_Q4_FAILED); /* N5 */
	list_for_each_safe(it, &s->active) {
		t = list_entry(it, struct tgt_task, link);
		t->dm_holds = t->abort_late = false;
		if (t->state == TGT_TASK_RESPONSE)
			tgt_task_put(t);
	}
	/* those that were being aborted have nothing to wait for any more */
	while ((t = abort_to_end(s)))
		tgt_abort_step(t);
	tgt_abort_start(s->worker, &s->closing, &scope, session_gone);
}
