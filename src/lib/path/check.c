/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.c: the check of one path. After each login and each doubt (guard.h): does it
 * reach the unit of the set, with the same size (ask.h)? Then, and at each polling_interval: which access
 * state has its target port group (REPORT TARGET PORT GROUPS, SPC-4 §6.37), and does
 * the unit answer (TEST UNIT READY)? A status other than those for access states is
 * an answer: the unit, not the path, has a problem.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/path/path.h"
#include "scsi/cdb.h"

#define TPGS_SHIFT 4 /* byte 5 of INQUIRY data */
#define AGAIN_TIME (100 * XTIME_MS)
#define DARK_TIME  (25 * XTIME_MS)
#define LATE_TIME  (2 * XTIME_S)

static void advance(struct lib_path *p);

/* ---- results ---- */

static bool has_states(const struct lib_path *p)
{
	return p->check.tpgs && p->set->uses_states;
}

static bool sense_of(const struct iser_io *io, struct scsi_sense *sense)
{
	return io->err == ISER_E_SCSI &&
	       !scsi_sense_parse(sense, io->sense, io->sense_len);
}

/* Ends the check of a path that does not reach the unit. */
static void refuse(struct lib_path *p, int err)
{
	p->check.step = CHECK_OVER;
	p->set->up->refused(p, err);
}

/* What holds the commands of the path; NULL: out of memory, and none is held. */
static struct lib_guarded *guarded(const struct lib_path *p)
{
	return lib_guard_get(p->session, p->url.lun);
}

/* Sets the reason why a path is refused, and returns err. */
static int fail_other(const struct lib_path *p, int err, const char *why)
{
	const struct lib_path *first = &p->set->paths[p->set->named];

	if (err == ISER_E_UNSUPPORTED)
		return lib_fail(p->set->ctx, err,
				"LUN %d of %s at %s:%u: the unit %s",
				p->url.lun, p->url.target, p->url.host,
				p->url.port, why);
	return lib_fail(p->set->ctx, err,
			"LUN %d of %s at %s:%u: the unit %s, as at %s:%u; give "
			"URLs of one unit",
			p->url.lun, p->url.target, p->url.host, p->url.port,
			why, first->url.host, first->url.port);
}

/* The path reaches another unit. Commands that wait at its session go to another
 * path. */
static void refuse_other(struct lib_path *p, int err, const char *why)
{
	struct lib_guarded *g = guarded(p);

	p->is_wrong = err == ISER_E_CHANGED;
	if (g) {
		snprintf(g->why, sizeof(g->why), "%s", why);
		lib_hold_refuse(p->session, g);
	}
	/* before the first report a wrong URL is an error of the caller */
	if (p->is_wrong && !p->set->is_reported)
		err = ISER_E_INVALID;
	refuse(p, fail_other(p, err, why));
}

static unsigned accepts(const struct lib_path *p)
{
	return (p->set->n == 1 ? LIB_WEAK : 0) |
	       (p->has_joined ? LIB_GROWTH : 0);
}

/* The unit is the right one: its commands go on, or end as READ CAPACITY has. */
static void join(struct lib_path *p)
{
	struct lib_check *c = &p->check;
	struct lib_paths *set = p->set;
	struct lib_guarded *g = guarded(p);

	if (!set->who.has_capacity || c->ask.who.has_capacity)
		set->who = c->ask.who;
	p->has_joined = true;
	p->port = c->ask.who.port;
	c->tpgs = c->ask.who.inquiry_len >= 6
			  ? c->ask.who.inquiry[5] >> TPGS_SHIFT & 3
			  : 0;
	c->step = CHECK_GROUPS;
	if (g && c->ask.capacity_err)
		lib_hold_fail(p->session, g, &c->ask.failed);
	else if (g)
		lib_hold_open(p->session, g);
}

/* The LUN has no unit, or the unit does not answer INQUIRY. */
static int fail_without_unit(const struct lib_path *p, int err)
{
	char text[200];

	if (err == ISER_E_NOT_FOUND)
		return lib_fail(p->set->ctx, err, "%s at %s:%u: no LUN %d",
				p->url.target, p->url.host, p->url.port,
				p->url.lun);
	iser_io_describe(&p->check.ask.failed, text, sizeof(text));
	return lib_fail(p->set->ctx, err, "%s at %s:%u: LUN %d: %s",
			p->url.target, p->url.host, p->url.port, p->url.lun,
			text);
}

static void take_who(struct lib_path *p, int err)
{
	const struct lib_who *who = &p->check.ask.who;
	struct lib_paths *set = p->set;
	char why[LIB_WHY_MAX];

	if (err) {
		refuse(p, fail_without_unit(p, err));
		return;
	}
	if (!set->has_who) {
		set->who = *who;
		set->named = p->number;
		set->has_who = true;
	} else {
		err = lib_who_check(&set->who, who, accepts(p), why,
				    sizeof(why));
	}
	if (err)
		refuse_other(p, err, why);
	else
		join(p);
}

static void set_access(struct lib_path *p, uint8_t access)
{
	struct lib_candidate *c = &p->set->seen[p->number];

	if (c->is_ready && c->access != access)
		trace_emit(&p->set->ctx->trace, TRACE_CONN_TIMEOUT,
			   "path %u, %s:%u: access state %s", p->number,
			   p->url.host, p->url.port, lib_access_str(access));
	c->access = access;
}

/* Whether the report says that the group of another ready path carries commands, or is about
 * to: another initiator has activated it, which the checks of that path find next. */
static bool others_serve(const struct lib_path *p, const uint8_t *data,
			 size_t len)
{
	const struct lib_paths *set = p->set;

	for (unsigned i = 0; i < set->n; i++) {
		uint16_t group = set->paths[i].port.group;
		uint8_t access = LIB_STANDBY;
		bool preferred;

		if (set->seen[i].is_ready && group != p->port.group &&
		    lib_groups_find(data, len, group, &access, &preferred) &&
		    (access == LIB_OPTIMIZED || access == LIB_NON_OPTIMIZED ||
		     access == LIB_TRANSITIONING))
			return true;
	}
	return false;
}

/* What an active path reports of the group of a lost path to the same target. A group that
 * does not move data any more executes no WRITE (SPC-4 §5.16.2.4.4 and §5.16.2.4.5). A
 * ready path speaks for itself. */
static void take_other_groups(struct lib_path *p, const uint8_t *data,
			      size_t len)
{
	struct lib_paths *set = p->set;

	if (!set->uses_states || set->seen[p->number].access != LIB_OPTIMIZED)
		return;
	for (unsigned i = 0; i < set->n; i++) {
		struct lib_path *q = &set->paths[i];
		uint8_t access = LIB_OPTIMIZED;
		bool preferred;

		if (set->seen[i].is_ready || q->port.group == p->port.group ||
		    strcasecmp(q->url.target, p->url.target) != 0)
			continue;
		lib_groups_find(data, len, q->port.group, &access, &preferred);
		if (access == LIB_STANDBY || access == LIB_UNAVAILABLE)
			set->up->excluded(q);
	}
}

/* A unit that has no groups after all, or a port in none of them, counts as
 * optimized. */
static void take_groups(struct lib_path *p)
{
	struct lib_check *c = &p->check;
	bool preferred = false;
	uint8_t access = LIB_OPTIMIZED;
	size_t len = MIN(c->io.transferred, sizeof(c->params.data));

	if (!c->io.err)
		lib_groups_find(c->params.data, len, p->port.group, &access,
				&preferred);
	c->others_serve = !c->io.err && others_serve(p, c->params.data, len);
	p->set->seen[p->number].preferred = preferred;
	set_access(p, access);
	if (!c->io.err)
		take_other_groups(p, c->params.data, len);
	c->step = CHECK_UNIT;
}

static bool any_active(const struct lib_paths *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (lib_path_rank(&set->seen[i]))
			return true;
	return false;
}

static bool any_sets(const struct lib_paths *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->paths[i].check.in_progress &&
		    set->paths[i].check.step == CHECK_SET)
			return true;
	return false;
}

/* alua=explicit: a group is activated where no path carries commands, and not
 * before each path had its first attempt. One at a time, or initiators that lost the same
 * path would take the unit from each other. */
static bool must_set(const struct lib_path *p)
{
	uint8_t access = p->set->seen[p->number].access;

	return p->set->may_set && p->set->is_reported && (p->check.tpgs & 2) &&
	       p->port.group &&
	       (access == LIB_STANDBY || access == LIB_UNAVAILABLE) &&
	       !p->check.others_serve && !any_active(p->set) &&
	       !any_sets(p->set);
}

static void take_ready(struct lib_path *p)
{
	struct lib_check *c = &p->check;
	struct scsi_sense sense = { 0 };
	bool has_sense = sense_of(&c->io, &sense);

	if (has_sense && sense.asc == ASC_LUN_NOT_SUPPORTED) {
		refuse(p, lib_fail(p->set->ctx, ISER_E_NOT_FOUND,
				   "%s at %s:%u: LUN %d is gone", p->url.target,
				   p->url.host, p->url.port, p->url.lun));
		return;
	}
	if (has_sense && sense.asc == ASC_ACCESS_TRANSITION)
		set_access(p, LIB_TRANSITIONING);
	else if (has_sense && sense.asc == ASC_PORT_IN_STANDBY)
		set_access(p, LIB_STANDBY);
	else if (has_sense && sense.asc == ASC_PORT_UNAVAILABLE)
		set_access(p, LIB_UNAVAILABLE);
	else if (!has_states(p))
		set_access(p, LIB_OPTIMIZED);
	c->step = must_set(p) ? CHECK_SET : CHECK_OVER;
}

static void take_set(struct lib_path *p)
{
	struct lib_check *c = &p->check;

	trace_emit(&p->set->ctx->trace, TRACE_CONN_TIMEOUT,
		   "path %u, %s:%u: SET TARGET PORT GROUPS, group %u to "
		   "active/optimized: %s",
		   p->number, p->url.host, p->url.port, p->port.group,
		   c->io.err ? iser_strerror(c->io.err) : "done");
	if (!c->io.err) { /* the check that follows looks again */
		set_access(p, LIB_OPTIMIZED);
		c->again = true;
	}
	c->step = CHECK_OVER;
}

static void (*const take_answer[])(struct lib_path *p) = {
	[CHECK_GROUPS] = take_groups,
	[CHECK_UNIT] = take_ready,
	[CHECK_SET] = take_set,
};

/* ---- commands ---- */

static void prep_groups(struct lib_check *c)
{
	c->io.cdb[0] = SCSI_MAINTENANCE_IN;
	c->io.cdb[1] = SCSI_MI_REPORT_TARGET_PORT_GROUPS;
	put_be32(c->io.cdb + 6, sizeof(c->params.data));
	c->io.cdb_len = 12;
	c->io.direction = ISER_READ;
	c->io.short_ok = true;
	c->params.iov =
		(struct iovec){ c->params.data, sizeof(c->params.data) };
	c->io.iov = &c->params.iov;
	c->io.niov = 1;
}

/* SPC-4 §6.45: 4 reserved bytes, then one descriptor. */
static void prep_set(struct lib_check *c, uint16_t group)
{
	/* a unit attention may say that another initiator was faster: look again */
	c->io.no_retry = true;
	c->io.cdb[0] = SCSI_MAINTENANCE_OUT;
	c->io.cdb[1] = SCSI_MO_SET_TARGET_PORT_GROUPS;
	put_be32(c->io.cdb + 6, 8);
	c->io.cdb_len = 12;
	c->io.direction = ISER_WRITE;
	c->params.data[4] = LIB_OPTIMIZED;
	put_be16(c->params.data + 6, group);
	c->params.iov = (struct iovec){ c->params.data, 8 };
	c->io.iov = &c->params.iov;
	c->io.niov = 1;
}

static void prep_step(struct lib_path *p)
{
	struct lib_check *c = &p->check;

	switch (c->step) {
	case CHECK_GROUPS:
		prep_groups(c);
		break;
	case CHECK_UNIT:
		iser_prep_test_unit_ready(&c->io, p->url.lun);
		break;
	case CHECK_SET:
		prep_set(c, p->port.group);
		break;
	case CHECK_WHO:
	case CHECK_OVER:
		break;
	}
}

/* ---- the sequence ---- */

static bool is_checkable(const struct lib_path *p)
{
	return p->state == PATH_CHECK || p->state == PATH_READY;
}

/* After refusals that the reported state does not explain, the next check has to
 * wait, or the two would follow each other without a pause. */
static xtime pause_of(const struct lib_check *c)
{
	return c->refusals > 1 ? AGAIN_TIME << MIN(c->refusals - 2, 4u) : 0;
}

/* While no path carries commands: a hand-over takes some 10 ms, a fail-over seconds. */
static xtime pause_in_the_dark(struct lib_check *c)
{
	xtime pause = DARK_TIME << MIN(c->dark, 6u);

	c->dark++;
	return MIN(pause, XTIME_S);
}

static void end_check(struct lib_path *p)
{
	struct lib_check *c = &p->check;
	xtime wait = lib_paths_seconds(p->set->session->url.polling_interval,
				       POLLING_TIME);

	if (c->want_whole) { /* a doubt came in between */
		lib_check_begin(p, true);
		return;
	}
	if (p->set->is_dark)
		wait = MIN(wait, pause_in_the_dark(c));
	if (c->again)
		wait = pause_of(c);
	io_timer_set(p->set->ctx->loop, &p->timer, io_now_exact() + wait);
	p->set->up->checked(p);
}

/* The step has its result. */
static void go_on(struct lib_path *p)
{
	struct lib_check *c = &p->check;

	if (!is_checkable(p))
		return;
	if (c->step == CHECK_GROUPS && !has_states(p))
		c->step = CHECK_UNIT;
	if (c->step == CHECK_OVER)
		end_check(p);
	else
		advance(p);
}

static void step_completed(struct iser_io *io)
{
	struct lib_path *p = io->arg;

	p->check.in_progress = false;
	if (!is_checkable(p))
		return; /* lost in the meantime */
	if (io->err && io->err != ISER_E_SCSI && io->err != ISER_E_SHORT) {
		p->set->up->lost(p, io->err, iser_strerror(io->err));
		return;
	}
	take_answer[p->check.step](p);
	go_on(p);
}

static void on_asked(struct lib_ask *a, int err)
{
	struct lib_check *c = container_of(a, struct lib_check, ask);
	struct lib_path *p = container_of(c, struct lib_path, check);

	c->in_progress = c->want_whole = false;
	if (!is_checkable(p))
		return;
	if (lib_ask_is_lost(err)) {
		p->set->up->lost(p, err, iser_strerror(err));
		return;
	}
	take_who(p, err);
	go_on(p);
}

static void ask(struct lib_path *p)
{
	p->check.ask = (struct lib_ask){ .session = p->session,
					 .lun = p->url.lun,
					 .submit = lib_io_ask,
					 .done = on_asked };
	lib_ask_begin(&p->check.ask);
}

static void advance(struct lib_path *p)
{
	struct lib_check *c = &p->check;

	c->in_progress = true;
	if (c->step == CHECK_WHO) {
		ask(p);
		return;
	}
	memset(&c->params, 0, sizeof(c->params));
	c->io = (struct iser_io){ .lun = p->url.lun,
				  .done = step_completed,
				  .arg = p };
	prep_step(p);
	lib_io_submit(p->session, &c->io);
}

void lib_check_begin(struct lib_path *p, bool whole)
{
	struct lib_check *c = &p->check;
	xtime end = io_now_exact() + LIB_CHECK_TIME * XTIME_S;

	if (!is_checkable(p))
		return;
	if (c->in_progress) {
		lib_check_soon(p, whole);
		return;
	}
	whole |= c->want_whole;
	c->again = c->want_whole = c->is_late = false;
	if (whole)
		c->step = CHECK_WHO;
	else
		c->step = has_states(p) ? CHECK_GROUPS : CHECK_UNIT;
	io_timer_set(p->set->ctx->loop, &p->timer, end);
	advance(p);
}

void lib_check_late(struct lib_path *p)
{
	p->check.is_late = true;
	io_timer_set(p->set->ctx->loop, &p->timer, io_now_exact() + LATE_TIME);
}

void lib_check_soon(struct lib_path *p, bool whole)
{
	struct lib_check *c = &p->check;

	if (!is_checkable(p))
		return;
	c->want_whole |= whole;
	if (!c->in_progress && !c->again)
		io_timer_set(p->set->ctx->loop, &p->timer,
			     io_now(p->set->ctx->loop) + pause_of(c));
	c->again = true;
}

void lib_check_doubt(struct lib_path *p)
{
	p->set->session->guard.round++;
	if (p->state == PATH_READY) {
		p->state = PATH_CHECK;
		p->set->seen[p->number].is_ready = false;
	}
	lib_check_soon(p, true);
}
