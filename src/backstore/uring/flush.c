/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flush.c: BS_FLUSH. One fdatasync of a store is in progress at a time, on the
 * worker that requested it first; flushes that arrive meanwhile wait and share
 * the next one. All flushes of a group get its result.
 */
#include "backstore/uring/file.h"

static void sync_begin(struct bsf_step *s);

static struct bsf_step *step_of(struct list *link)
{
	return bsf_step_of_op(list_entry(link, struct io_file_op, link));
}

/* The result of another worker's fdatasync has arrived at the step's worker. */
static void group_ended(struct io_post *p)
{
	struct bsf_step *s = container_of(p, struct bsf_step, post);

	bsf_finish(s, s->op.result);
}

/* The step leads the next group, from its own worker. */
static void lead_group(struct io_post *p)
{
	sync_begin(container_of(p, struct bsf_step, post));
}

static void post_step(struct bsf_step *s, void (*run)(struct io_post *p))
{
	s->post.run = run;
	io_loop_post(s->file->loops[s->req->worker], &s->post);
}

/* Moves all of from, which is empty afterwards, to the end of to. */
static void move_all(struct list *to, struct list *from)
{
	while (!list_empty(from))
		list_push_back(to, list_pop_front(from));
}

static void synced(struct io_file_op *op, int64_t result)
{
	struct bsf_step *s = bsf_step_of_op(op), *next = NULL;
	struct bs_file *f = s->file;
	struct list ended;

	if (result)
		bs_flush_failed(&f->bs);
	list_init(&ended);
	pthread_mutex_lock(&f->flush_lock);
	move_all(&ended, &f->group);
	if (!list_empty(&f->flushes))
		next = step_of(list_pop_front(&f->flushes));
	move_all(&f->group, &f->flushes);
	f->flushing = next != NULL;
	pthread_mutex_unlock(&f->flush_lock);
	if (next)
		post_step(next, lead_group);
	while (!list_empty(&ended)) {
		struct bsf_step *member = step_of(list_pop_front(&ended));

		member->op.result = result;
		post_step(member, group_ended);
	}
	bsf_finish(s, result);
}

static void sync_begin(struct bsf_step *s)
{
	s->op.opcode = IO_FILE_SYNC;
	bsf_go(s, synced);
}

void bsf_flush(struct bsf_step *s)
{
	struct bs_file *f = s->file;
	bool first;

	pthread_mutex_lock(&f->flush_lock);
	first = !f->flushing;
	f->flushing = true;
	if (!first)
		list_push_back(&f->flushes, &s->op.link);
	pthread_mutex_unlock(&f->flush_lock);
	if (first)
		sync_begin(s);
}

void bsf_flush_init(struct bs_file *f)
{
	pthread_mutex_init(&f->flush_lock, NULL);
	list_init(&f->flushes);
	list_init(&f->group);
}

void bsf_flush_fini(struct bs_file *f)
{
	pthread_mutex_destroy(&f->flush_lock);
}
