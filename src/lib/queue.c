/* SPDX-License-Identifier: BSD-2-Clause */
/* queue.c: commands that wait for a free task, and commands that have failed. */
#include <stdlib.h>
#include <string.h>

#include "base/cold.h"
#include "lib/internal.h"

/* ---- failures ---- */

/* Calls the done of failed commands from the loop: iser_submit must not call
 * it. */
static void report_failed(struct io_defer *d)
{
	struct iser_session *s =
		container_of(d, struct iser_session, commands.report_failed);
	struct lib_commands *c = &s->commands;

	while (c->failed) {
		struct iser_io *io = c->failed;

		c->failed = io->next;
		if (!c->failed)
			c->failed_tail = &c->failed;
		io->done(io);
	}
}

void lib_io_fail_later(struct iser_session *s, struct iser_io *io, int err)
{
	struct lib_commands *c = &s->commands;

	io->err = err;
	io->next = NULL;
	*c->failed_tail = io;
	c->failed_tail = &io->next;
	io_loop_defer(s->ctx->loop, &c->report_failed);
}

void lib_io_free_task(struct iser_session *s, struct lib_task *lt)
{
	lt->io = NULL;
	lt->next = s->commands.free;
	s->commands.free = lt;
}

void lib_io_fail_task(struct iser_session *s, struct lib_task *lt, int err)
{
	struct iser_io *io = lt->io;

	lib_io_free_task(s, lt);
	lib_io_fail_later(s, io, err);
}

void lib_io_fail_queue(struct iser_session *s, int err)
{
	struct lib_commands *c = &s->commands;

	while (c->queue) {
		struct iser_io *io = c->queue;

		c->queue = io->next;
		lib_io_fail_later(s, io, err);
	}
	c->queue_tail = &c->queue;
}

/* ---- the queue ---- */

xtime lib_io_deadline(const struct iser_session *s, xtime now)
{
	return s->url.timeout ? now + s->url.timeout * XTIME_S : XTIME_NEVER;
}

/* most: the deadline, unless that of the URL comes before. */
static ALWAYS_INLINE void start_task(struct iser_session *s,
				     struct lib_task *lt, struct iser_io *io,
				     xtime most)
{
	struct ini_task *t = &lt->task;
	xtime now = io_now(s->ctx->loop);
	const struct bufv data = bufv_of(io->iov, io->niov);
	bool both = io->direction == LIB_BOTH;

	lt->io = io;
	lt->tries = 0;
	lt->saw_attention = lt->is_aborting = lt->is_doubtful = false;
	lt->attentions = lt->refusals = 0;
	t->lun = lib_wire_lun(s, io->lun);
	memcpy(t->cdb, io->cdb, sizeof(io->cdb));
	t->cdb_len = io->cdb_len;
	t->read = both || io->direction == ISER_READ;
	t->write = both || io->direction == ISER_WRITE;
	t->attr = ISCSI_ATTR_SIMPLE;
	t->immediate = false;
	t->short_ok = io->short_ok;
	t->in = both ? lib_bidi_in(io) : t->read ? data : (struct bufv){ 0 };
	t->out = t->write ? data : (struct bufv){ 0 };
	t->priority = io->priority ? io->priority : (uint8_t)s->url.priority;
	t->deadline = MIN(lib_io_deadline(s, now), most);
	t->done = s->commands.completed;
	s->commands.starting = true;
	ini_submit(s->ini, t, now);
	s->commands.starting = false;
}

bool lib_retry_holds(const struct iser_session *s, int lun)
{
	for (const struct lib_task *lt = s->retry.first; lt; lt = lt->next)
		if (lt->io->lun == lun && lt->why != LIB_NOT_READY)
			return true;
	return false;
}

static bool must_wait(struct iser_session *s, const struct iser_io *io)
{
	return (io->lun + 1 != s->guard.open && lib_guard_waits(s, io)) ||
	       lib_retry_holds(s, io->lun);
}

static struct iser_io *unlink_io(struct iser_session *s, struct iser_io **link)
{
	struct iser_io *io = *link;

	*link = io->next;
	if (!*link)
		s->commands.queue_tail = link;
	return io;
}

/* Takes the first command off the queue whose unit takes commands; or NULL. */
static struct iser_io *next_of_queue(struct iser_session *s)
{
	struct iser_io **link = &s->commands.queue;

	while (*link && must_wait(s, *link))
		link = &(*link)->next;
	return *link ? unlink_io(s, link) : NULL;
}

struct iser_io *lib_io_take_guarded(struct iser_session *s, int lun)
{
	struct iser_io **link = &s->commands.queue, *first = NULL;
	struct iser_io **tail = &first;

	while (*link) {
		struct iser_io *io = *link;

		if (io->lun != lun || !lib_guard_covers(io)) {
			link = &io->next;
			continue;
		}
		unlink_io(s, link);
		*tail = io;
		tail = &io->next;
		*tail = NULL;
	}
	return first;
}

void lib_io_pump_queue(struct iser_session *s)
{
	struct lib_commands *c = &s->commands;

	/* the last free task is for lib_io_ask */
	while (c->queue && c->free && c->free->next && s->ini &&
	       s->state == SESSION_UP) {
		struct iser_io *io = next_of_queue(s);
		struct lib_task *lt = c->free;

		if (!io)
			return;
		c->free = lt->next;
		start_task(s, lt, io, XTIME_NEVER);
	}
}

void lib_io_add(struct iser_session *s, struct iser_io *io)
{
	*s->commands.queue_tail = io;
	s->commands.queue_tail = &io->next;
}

bool lib_io_unqueue(struct iser_session *s, struct iser_io *io)
{
	for (struct iser_io **link = &s->commands.queue; *link;
	     link = &(*link)->next) {
		if (*link != io)
			continue;
		unlink_io(s, link);
		return true;
	}
	return false;
}

void lib_io_ask(struct iser_session *s, struct iser_io *io)
{
	struct lib_commands *c = &s->commands;
	struct lib_task *lt = c->free;

	io->session = s;
	if (!lt || s->state != SESSION_UP || !s->ini) {
		lib_io_fail_later(s, io, s->err ? s->err : ISER_E_CLOSED);
		return;
	}
	c->free = lt->next;
	start_task(s, lt, io, io_now(s->ctx->loop) + LIB_CHECK_TIME * XTIME_S);
}

struct lib_task *lib_io_find(struct iser_session *s, const struct iser_io *io)
{
	for (unsigned i = 0; i <= s->commands.depth; i++)
		if (s->commands.tasks[i].io == io)
			return &s->commands.tasks[i];
	return NULL;
}

/* ---- life ---- */

int lib_io_init(struct iser_session *s,
		void (*completed)(struct ini_task *task))
{
	struct lib_commands *c = &s->commands;

	c->tasks = calloc((size_t)c->depth + 1, sizeof(*c->tasks));
	if (!c->tasks)
		return ISER_E_NOMEM;
	for (unsigned i = 0; i <= c->depth; i++)
		lib_io_free_task(s, &c->tasks[i]);
	c->completed = completed;
	c->queue_tail = &c->queue;
	c->failed_tail = &c->failed;
	c->report_failed.run = report_failed;
	list_init(&c->report_failed.link);
	return 0;
}

void lib_io_fini(struct iser_session *s)
{
	lib_io_fail_queue(s, ISER_E_CLOSED);
	report_failed(&s->commands.report_failed);
	io_defer_cancel(&s->commands.report_failed);
	free(s->commands.tasks);
}
