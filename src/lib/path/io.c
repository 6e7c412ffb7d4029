/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * io.c: the commands of a set of paths. A command is in the queue of the set,
 * or at the session of one path, or on the list of a path whose session was lost,
 * until that target cannot execute it any more.
 *
 * While the library has a command, iser_io.library holds the caller's done, the
 * set, how often it was issued, and its path.
 */
#include "lib/path/path.h"

#include <stdio.h>
#include <string.h>

#include "scsi/cdb.h"

enum {
	DONE,
	SET,
	HISTORY = LIB_IO_HISTORY,
	PATH
};

/* library[HISTORY]: the number of tries, LIB_IO_ABORTING, and the time of the first
 * refusal for the access state in milliseconds (0: none). */
#define TRIES(io)	((unsigned)((io)->library[HISTORY] & 0x7fff))
#define REFUSED(io)	((io)->library[HISTORY] >> 16)
#define ADD_TRY		1u
#define SET_REFUSED(ms) ((uint64_t)(ms) << 16)

static void pump(struct lib_paths *set);

/* ---- lists ---- */

void lib_list_init(struct lib_io_list *l)
{
	l->first = NULL;
	l->tail = &l->first;
}

static void append(struct lib_io_list *l, struct iser_io *io)
{
	io->next = NULL;
	*l->tail = io;
	l->tail = &io->next;
}

static void prepend(struct lib_io_list *l, struct iser_io *io)
{
	io->next = l->first;
	if (!l->first)
		l->tail = &io->next;
	l->first = io;
}

static struct iser_io *take_first(struct lib_io_list *l)
{
	struct iser_io *io = l->first;

	if (!io)
		return NULL;
	l->first = io->next;
	if (!l->first)
		l->tail = &l->first;
	return io;
}

static bool take_one(struct lib_io_list *l, const struct iser_io *io)
{
	for (struct iser_io **link = &l->first; *link; link = &(*link)->next) {
		if (*link != io)
			continue;
		*link = io->next;
		if (!*link)
			l->tail = link;
		return true;
	}
	return false;
}

/* ---- the end of a command ---- */

/* The struct is the caller's again. */
static void restore(struct iser_io *io)
{
	struct lib_paths *set = (void *)(uintptr_t)io->library[SET];

	io->done = (void (*)(struct iser_io *))(uintptr_t)io->library[DONE];
	io->session = set->session;
	if (io->cdb[0] != SCSI_REPORT_LUNS)
		io->lun = set->lun;
	set->in_progress--;
	memset(io->library, 0, sizeof(io->library));
}

static void fail_io(struct lib_paths *set, struct iser_io *io, int err)
{
	restore(io);
	lib_io_fail_later(set->session, io, err);
}

void lib_paths_fail(struct lib_paths *set, int err)
{
	struct iser_io *io;

	while ((io = take_first(&set->queue)))
		fail_io(set, io, err);
	for (unsigned i = 0; i < set->n; i++) {
		while ((io = take_first(&set->paths[i].waiting)))
			fail_io(set, io, err);
		io_timer_clear(set->ctx->loop, &set->paths[i].replace);
	}
}

void lib_paths_abort(struct iser_session *s, struct iser_io *io)
{
	struct lib_paths *set = lib_paths_of(s);
	bool found = take_one(&set->queue, io);

	for (unsigned i = 0; i < set->n && !found; i++)
		found = take_one(&set->paths[i].waiting, io);
	if (found)
		fail_io(set, io, ISER_E_ABORTED);
}

/* ---- commands of a lost session ---- */

void lib_paths_release(struct lib_path *p)
{
	struct lib_paths *set = p->set;

	io_timer_clear(set->ctx->loop, &p->replace);
	p->fence.is_mixed = false;
	if (!p->waiting.first)
		return;
	/* before later ones */
	*p->waiting.tail = set->queue.first;
	if (!set->queue.first)
		set->queue.tail = p->waiting.tail;
	set->queue.first = p->waiting.first;
	lib_list_init(&p->waiting);
	pump(set);
}

static void on_replace(struct io_timer *t)
{
	struct lib_path *p = container_of(t, struct lib_path, replace);

	trace_emit(&p->set->ctx->trace, TRACE_CONN_TIMEOUT,
		   "path %u, %s:%u: not logged in again within "
		   "replacement_timeout: its writes go to another path",
		   p->number, p->url.host, p->url.port);
	lib_paths_release(p);
}

static void hold(struct lib_path *p, struct iser_io *io)
{
	struct lib_paths *set = p->set;
	xtime wait = lib_paths_seconds(set->session->url.replacement_timeout,
				       REPLACEMENT_TIME);

	append(&p->waiting, io);
	if (!wait ||
	    (p->waiting.first == io &&
	     io_timer_set(set->ctx->loop, &p->replace, io_now_exact() + wait)))
		lib_paths_release(p);
}

/* ---- results ---- */

/* Returns whether a command may be issued again: not too often after losses, and
 * for iser_url.retry seconds after a refusal for the access state. */
static bool may_repeat(struct lib_paths *set, struct iser_io *io)
{
	const struct iser_url *u = &set->session->url;
	uint64_t now = (uint64_t)(io_now(set->ctx->loop) / XTIME_MS) + 1;
	unsigned most = u->reconnect ? u->reconnect : LIB_PATH_TRIES;

	if (set->is_ending || (io->library[HISTORY] & LIB_IO_ABORTING))
		return false;
	/* a reset that the caller asked for ends commands, too */
	if (io->err == ISER_E_ABORTED && !u->reconnect)
		return false;
	if (io->err != ISER_E_SCSI)
		return TRIES(io) < most;
	if (!REFUSED(io))
		io->library[HISTORY] |= SET_REFUSED(now);
	return now < REFUSED(io) + u->retry * 1000u;
}

/* Returns whether another path than p carries commands. */
static bool has_other(const struct lib_path *p)
{
	for (unsigned i = 0; i < p->set->n; i++)
		if (i != p->number && lib_path_rank(&p->set->seen[i]))
			return true;
	return false;
}

static void apply_effect(struct lib_path *p, const struct iser_io *io,
			 const struct lib_decision *d)
{
	struct lib_paths *set = p->set;

	switch (d->effect) {
	case LIB_PATH_FINE:
		if (!io->err)
			p->check.refusals = 0;
		return;
	case LIB_PATH_LOST:
		set->up->lost(p, io->err, iser_strerror(io->err));
		return;
	case LIB_PATH_REFUSES:
		set->seen[p->number].access = d->access;
		p->check.refusals++;
		set->up->recheck(p, false);
		return;
	case LIB_PATH_NO_UNIT:
		lib_fail(set->ctx, ISER_E_NOT_FOUND,
			 "%s at %s:%u: LUN %d is gone", p->url.target,
			 p->url.host, p->url.port, p->url.lun);
		set->up->refused(p, ISER_E_NOT_FOUND);
		return;
	}
}

/* Whether the target has ended the tasks of a session that logs out: by its answer, or
 * because the next session of the path is up already. */
static bool has_ended(const struct lib_path *p, const struct iser_session *s)
{
	return p->state == PATH_CHECK || p->state == PATH_READY ||
	       (s->ini && ini_is_logged_out(s->ini));
}

/* Decides on a command that failed. A session that logs out ends its commands late:
 * the path is fine, or was refused. */
static struct lib_decision decide(const struct lib_path *p, struct iser_io *io)
{
	struct lib_decision d =
		lib_path_decide(io, may_repeat(p->set, io), has_other(p));

	if (io->session == p->session)
		return d;
	d.effect = LIB_PATH_FINE;
	if (d.verdict == LIB_HOLD && has_ended(p, io->session))
		d.verdict = LIB_AGAIN;
	return d;
}

static void path_done(struct iser_io *io)
{
	struct lib_path *p = (void *)(uintptr_t)io->library[PATH];
	struct lib_paths *set = p->set;
	struct lib_decision d = { .verdict = LIB_DELIVER };

	set->seen[p->number].in_progress--;
	if (io->err)
		d = decide(p, io);
	if (d.verdict != LIB_DELIVER)
		io->session = set->session;
	if (io->err && io->err != ISER_E_SCSI)
		io->library[HISTORY] += ADD_TRY;
	/* first: the command must not go to this path again */
	apply_effect(p, io, &d);
	if (d.verdict == LIB_AGAIN) {
		prepend(&set->queue, io);
	} else if (d.verdict == LIB_HOLD) {
		hold(p, io);
	} else {
		restore(io);
		if (io->err)
			lib_type_news(set->session, io);
		io->done(io);
	}
	lib_paths_changed(set);
}

/* ---- the states of the paths ---- */

void lib_paths_describe(const struct lib_paths *set, char *out, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < set->n && at < size; i++) {
		const struct lib_path *p = &set->paths[i];
		const char *what = p->reason[0] ? p->reason : "connecting";
		int n;

		if (p->state == PATH_READY)
			what = lib_access_str(set->seen[i].access);
		n = snprintf(out + at, size - at, "%s%s:%u: %s", i ? "; " : "",
			     p->url.host, p->url.port, what);
		at += n > 0 ? (size_t)n : 0;
	}
}

static int fail_no_path(const struct lib_paths *set)
{
	char text[400];

	lib_paths_describe(set, text, sizeof(text));
	return lib_fail(set->ctx, ISER_E_NO_PATH,
			"LUN %d of %s: no path carries commands: %s", set->lun,
			set->session->url.target, text);
}

/* ---- submission ---- */

static void start(struct lib_path *p, struct iser_io *io)
{
	p->set->seen[p->number].in_progress++;
	p->commands++;
	io->library[PATH] = (uintptr_t)p;
	if (io->cdb[0] != SCSI_REPORT_LUNS)
		io->lun = p->url.lun;
	io->done = path_done;
	lib_io_submit(p->session, io);
}

static void pump(struct lib_paths *set)
{
	while (set->queue.first) {
		int i = lib_policy_choose(&set->policy, set->seen, set->n);

		if (i < 0)
			return;
		start(&set->paths[i], take_first(&set->queue));
	}
}

/* Returns the error for a command that cannot be accepted, or 0. */
static int check_io(const struct lib_paths *set, const struct iser_io *io)
{
	if (set->is_ending)
		return ISER_E_CLOSED;
	if (!lib_io_is_valid(io))
		return ISER_E_INVALID;
	if (io->lun != set->lun && io->cdb[0] != SCSI_REPORT_LUNS)
		return lib_fail(set->ctx, ISER_E_INVALID,
				"LUN %d: the paths of this session lead to LUN "
				"%d alone",
				io->lun, set->lun);
	return set->gave_up ? fail_no_path(set) : 0;
}

void lib_paths_submit(struct iser_session *s, struct iser_io *io)
{
	struct lib_paths *set = lib_paths_of(s);
	int err;

	io->session = s;
	lib_io_reset(io);
	err = check_io(set, io);
	if (err) {
		lib_io_fail_later(s, io, err);
		return;
	}
	io->library[DONE] = (uintptr_t)io->done;
	io->library[SET] = (uintptr_t)set;
	io->library[HISTORY] = 0;
	set->in_progress++;
	append(&set->queue, io);
	pump(set);
}

/* ---- no path carries commands ---- */

static void give_up(struct io_timer *t)
{
	struct lib_paths *set = container_of(t, struct lib_paths, dark);

	set->gave_up = true;
	fail_no_path(set);
	trace_emit(&set->ctx->trace, TRACE_CONN_TIMEOUT, "%s",
		   iser_message(set->ctx));
	lib_paths_fail(set, ISER_E_NO_PATH);
}

static void begin_dark(struct lib_paths *set)
{
	xtime wait = lib_paths_seconds(set->session->url.replacement_timeout,
				       REPLACEMENT_TIME);

	if (set->is_dark || !set->any_ready)
		return;
	set->is_dark = true;
	for (unsigned i = 0; i < set->n; i++) {
		set->paths[i].check.dark = 0;
		set->up->recheck(&set->paths[i], false);
	}
	if (io_timer_set(set->ctx->loop, &set->dark, io_now_exact() + wait))
		give_up(&set->dark);
}

void lib_paths_changed(struct lib_paths *set)
{
	if (set->is_ending)
		return;
	if (!lib_policy_update(&set->policy, set->seen, set->n)) {
		begin_dark(set);
		return;
	}
	io_timer_clear(set->ctx->loop, &set->dark);
	set->is_dark = set->gave_up = false;
	pump(set);
}

void lib_paths_timers(struct lib_paths *set)
{
	set->dark.fire = give_up;
	for (unsigned i = 0; i < set->n; i++)
		set->paths[i].replace.fire = on_replace;
}
