/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stall.c: ends connections whose peer holds memory without progress: the peer
 * owes write data, does not read responses and read data, or leaves a CmdSN out
 * before commands whose data are in. Checks are periodic, so that commands pay
 * nothing for them. RFC 7143 has no such timeout, and at ErrorRecoveryLevel 0 no
 * other recovery than to drop the connection (§7.1.4).
 */
#include "base/err.h"
#include "target/internal.h"

#define CHECKS	 4u	     /* in data_time of the session */
#define PROGRESS (64u << 10) /* bytes in that time are progress */

/* While other sessions wait for memory, the data of each command must have moved
 * after TASK_TIMES times data_time, and a turn (share.h) must have ended after
 * TURN_TIMES times data_time. Otherwise a peer that moves PROGRESS bytes, or
 * data of other commands only, could keep the memory for ever. */
#define TASK_TIMES 8
#define TURN_TIMES 16

/* The initiator owes write data of t. The target does not read from a held
 * connection, so that its initiator owes nothing. */
static bool owes_data(const struct tgt_conn *c, const struct tgt_task *t)
{
	return t->conn == c && t->state == TGT_TASK_DATA && !c->held;
}

static bool is_sending(const struct tgt_conn *c, const struct tgt_task *t)
{
	return t->conn == c &&
	       (t->state == TGT_TASK_PUT || t->state == TGT_TASK_RESPONSE);
}

static const struct tgt_task *oldest_task(const struct tgt_conn *c,
					  bool (*is)(const struct tgt_conn *c,
						     const struct tgt_task *t))
{
	list_for_each(it, &c->session->tasks.active) {
		const struct tgt_task *t =
			list_entry(it, struct tgt_task, link);

		if (is(c, t))
			return t;
	}
	return NULL;
}

/* True: the watch has waited for the same object, without progress, for most. */
static bool is_stuck(struct tgt_watch *w, const void *what, uint32_t cmdsn,
		     uint64_t bytes, xtime now, xtime most)
{
	if (w->what != what || w->cmdsn != cmdsn ||
	    bytes - w->bytes >= PROGRESS) {
		*w = (struct tgt_watch){ what, cmdsn, bytes, now };
		return false;
	}
	return what && now - w->since >= most;
}

static bool task_is_stuck(struct tgt_watch *w, const struct tgt_task *t,
			  uint64_t bytes, xtime now, xtime most)
{
	return is_stuck(w, t, t ? t->cmdsn : 0, bytes, now, most);
}

/* True: the condition `is` has held since *since, for most. *since is 0 while it
 * does not hold. */
static bool lasts(xtime *since, bool is, xtime now, xtime most)
{
	if (!is)
		*since = 0;
	else if (*since == 0)
		*since = now;
	return is && now - *since >= most;
}

/* True: data of one command have been in progress for most while other sessions
 * waited for its memory. Checks every command, since each has its own time. */
static bool holds_memory(const struct tgt_conn *c, bool in_the_way, xtime now,
			 xtime most)
{
	bool found = false;

	list_for_each(it, &c->session->tasks.active) {
		struct tgt_task *t = list_entry(it, struct tgt_task, link);
		bool moves = owes_data(c, t) || is_sending(c, t);

		if (t->conn != c)
			continue;
		found |= lasts(&t->moves_since, in_the_way && moves, now, most);
	}
	return found;
}

static void drop_conn(struct tgt_conn *c, const char *why, unsigned times)
{
	xtime time = c->session->data_time * times;

	conn_trace(c, TRACE_CONN_TIMEOUT, "%s for %u s; connection dropped",
		   why, (unsigned)(time / XTIME_S));
	tgt_conn_end(c, DM_TERMINATE_NOW, ERR_TIMEOUT);
}

/* At ErrorRecoveryLevel 1 a response keeps its task and buffer until ExpStatSN
 * acknowledges it, for which an idle initiator needs a NOP-In (§7.1.4.2). */
static void ask_to_acknowledge(struct tgt_conn *c)
{
	const struct tgt_task *t = oldest_task(c, is_sending);

	if (c->dm->retains && t && t == c->stall.out.what &&
	    t->cmdsn == c->stall.out.cmdsn)
		tgt_ping(c); /* again, if the last one was lost */
}

/* The session whose next CmdSN is missing; NULL: none is, or it may be in what the
 * target does not read from a held connection. */
static const struct tgt_session *misses_cmdsn(const struct tgt_session *s)
{
	list_for_each(it, &s->conns.list)
		if (list_entry(it, struct tgt_conn, session_link)->held)
			return NULL;
	return s->ring.ahead ? s : NULL;
}

static void check_progress(struct tgt_conn *c, xtime now)
{
	const struct tgt_session *s = c->session;
	xtime most = c->session->data_time;
	bool in_the_way = dev_nexus_in_the_way(s->nexus);
	bool has_turn = in_the_way && dev_nexus_has_turn(s->nexus);
	struct dm_progress p;

	dm_progress(c->dm, &p);
	ask_to_acknowledge(c);
	if (task_is_stuck(&c->stall.in, oldest_task(c, owes_data), p.in, now,
			  most))
		drop_conn(c, "no data came for a WRITE", 1);
	else if (task_is_stuck(&c->stall.out, oldest_task(c, is_sending), p.out,
			       now, most))
		drop_conn(c,
			  c->dm->retains ? "what was sent was not acknowledged"
					 : "nothing of what was sent was taken",
			  1);
	else if (is_stuck(&c->stall.gap, misses_cmdsn(s), s->window.expcmdsn, 0,
			  now, most))
		drop_conn(c, "a CmdSN before those received is missing", 1);
	else if (holds_memory(c, in_the_way, now, TASK_TIMES * most))
		drop_conn(c, "others waited for memory of a slow command",
			  TASK_TIMES);
	else if (lasts(&c->stall.turn_since, has_turn, now, TURN_TIMES * most))
		drop_conn(c, "others waited for their turn at memory",
			  TURN_TIMES);
}

/* A connection without a task since the last check gives back memory that only
 * commands need. */
static void rest_if_idle(struct tgt_conn *c)
{
	bool idle = c->stall.commands == c->count.commands &&
		    c->session->tasks.used == 0;

	c->stall.commands = c->count.commands;
	if (idle && !c->stall.rests) {
		tgt_tasks_rest(c->session);
		dm_rest(c->dm);
	}
	c->stall.rests = idle;
}

void tgt_stall_start(struct tgt_conn *c)
{
	xtime time = c->session->data_time;

	if (!c->session->node || time == XTIME_NEVER)
		return;
	c->stall.at = c->worker->now + time / CHECKS;
	tgt_due_changed(c);
}

/* A check that is so late: the process, or its virtual machine, stood still, and the initiator
 * could not move anything. (With very many connections all checks are a little late.) */
#define STOOD_STILL (2 * XTIME_S)

void tgt_stall_expire(struct tgt_conn *c, xtime now)
{
	bool stood_still = now - c->stall.at >= STOOD_STILL;

	c->stall.at = XTIME_NEVER;
	if (!tgt_conn_open(c))
		return;
	if (stood_still) /* all times begin anew */
		c->stall.in = c->stall.out = c->stall.gap =
			(struct tgt_watch){ .what = NULL };
	c->stall.at = now + c->session->data_time / CHECKS;
	rest_if_idle(c);
	check_progress(c, now);
}
