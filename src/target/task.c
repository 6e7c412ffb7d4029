/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task.c: the tasks of a session: an array sized by the command window; a hash
 * table of chains finds a task by its Initiator Task Tag.
 *
 * A session has slots for twice its window and TGT_IMMEDIATES more: a task whose
 * response is queued but not yet sent still holds its slot, while the initiator
 * may already send the next command by a MaxCmdSN of an earlier response. A session
 * without commands has no array (tgt_tasks_ready, tgt_tasks_rest).
 */
#include <stdlib.h>

#include "base/err.h"
#include "target/task_state.h"

/* ---- tags ---- */

static void unhash_task(struct tgt_session *s, struct tgt_task *t)
{
	struct tgt_task **p = tgt_task_chain(s, t->dm.itt);

	while (*p != t)
		p = &(*p)->hash_next;
	*p = t->hash_next;
}

/* ---- slots ---- */

static struct tgt_task *spare_task(struct tgt_session *s)
{
	struct list *n = list_pop_front(&s->tasks.spare);
	struct tgt_task *t;

	if (n)
		return list_entry(n, struct tgt_task, link);
	if (s->tasks.fresh == s->tasks.n)
		return NULL;
	t = &s->tasks.all[s->tasks.fresh++];
	t->session = s;
	list_init(&t->link);
	list_init(&t->held.link);
	return t;
}

/* [RFC 7143: 4.2.2.1 #5] */
struct tgt_task *tgt_task_get(struct tgt_conn *c, uint32_t itt, bool immediate)
{
	struct tgt_session *s = c->session;
	struct tgt_task *t, **head;

	if (immediate && s->tasks.immediates >= TGT_IMMEDIATES)
		return NULL;
	t = spare_task(s);
	if (!t)
		return NULL;
	dm_task_init(&t->dm);
	t->dm.itt = itt;
	t->conn = c;
	head = tgt_task_chain(s, itt);
	t->hash_next = *head;
	*head = t;
	list_push_back(&s->tasks.active, &t->link);
	s->tasks.used++;
	s->tasks.immediates += immediate;
	t->immediate = immediate;
	t->report_abort = false;
	t->data_err = 0;
	t->moves_since = 0;
	t->refusal = SCSI_GOOD;
	tgt_task_go(t, TGT_TASK_DATA);
	return t;
}

void tgt_task_put(struct tgt_task *t)
{
	struct tgt_session *s = t->session;

	tgt_task_go(t, TGT_TASK_FREE);
	if (s->ring.ahead)
		tgt_window_forget(s, t);
	if (s->fences.on)
		tgt_fence_forget(s, &t->held);
	if (tgt_task_is_begun(t))
		dev_task_end(&t->dev);
	unhash_task(s, t);
	list_del(&t->link);
	list_push_front(&s->tasks.spare, &t->link);
	s->tasks.used--;
	s->tasks.immediates -= t->immediate;
	if (!tgt_window_is_open(s))
		tgt_session_window(s);
}

static uint32_t pow2_at_least(uint32_t n)
{
	uint32_t p = 2;

	while (p < n)
		p *= 2;
	return p;
}

int tgt_tasks_alloc(struct tgt_session *s, uint32_t depth)
{
	uint32_t buckets = pow2_at_least(2 * depth);

	s->tasks.n = 2 * depth + TGT_IMMEDIATES;
	s->tasks.hash = calloc(buckets, sizeof(*s->tasks.hash));
	s->tasks.hash_shift = 32;
	for (uint32_t b = buckets; b > 1; b /= 2)
		s->tasks.hash_shift--;
	s->ring.mask = pow2_at_least(depth) - 1;
	s->ring.slots = calloc(s->ring.mask + 1, sizeof(*s->ring.slots));
	return s->tasks.hash && s->ring.slots ? 0 : ERR_NOMEM;
}

int tgt_tasks_ready(struct tgt_session *s)
{
	s->tasks.all = calloc(s->tasks.n, sizeof(*s->tasks.all));
	return s->tasks.all ? 0 : ERR_NOMEM;
}

void tgt_tasks_rest(struct tgt_session *s)
{
	if (s->tasks.used)
		return;
	free(s->tasks.all);
	s->tasks.all = NULL;
	s->tasks.fresh = 0;
	list_init(&s->tasks.spare);
}

void tgt_tasks_free(struct tgt_session *s)
{
	free(s->tasks.all);
	free(s->tasks.hash);
	free(s->ring.slots);
}
