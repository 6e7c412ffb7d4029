/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.c: the event loop. Each case is a coroutine with a deadline; several run
 * at once, except those that disturb others ("alone"). After its deadline or an
 * interruption a case has some seconds to clean up.
 */
#include <errno.h>
#include <lauxlib.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/check/check.h"

#define CLEANUP	     (3 * XTIME_S)
#define INSTRUCTIONS 200000000 /* of a case between two waits */

static volatile sig_atomic_t signalled;

static void note_signal(int sig)
{
	signalled = sig;
}

/* wait(sock or nil, "r" or "w", seconds) returns "ready", "timeout", "deadline"
 * or "interrupted". */
static int wait_in_case(lua_State *l)
{
	struct job *j = sock_job(l);
	double seconds = luaL_checknumber(l, 3);

	j->fd = -1;
	if (!lua_isnil(l, 1)) {
		lua_getfield(l, 1, "fd");
		lua_pushvalue(l, 1);
		lua_call(l, 1, 1);
		j->fd = (int)lua_tointeger(l, -1);
	}
	j->events = *luaL_checkstring(l, 2) == 'w' ? POLLOUT : POLLIN;
	j->wake = check_now() + (xtime)(seconds * (double)XTIME_S);
	return lua_yield(l, 0);
}

static int push_now(lua_State *l)
{
	lua_pushnumber(l, (double)check_now() / (double)XTIME_S);
	return 1;
}

/* extend(seconds) gives the case a later deadline. */
static int extend(lua_State *l)
{
	struct job *j = sock_job(l);

	j->deadline =
		j->begun + (xtime)(luaL_checknumber(l, 1) * (double)XTIME_S);
	return 0;
}

void run_open(lua_State *l)
{
	lua_pushcfunction(l, wait_in_case);
	lua_setfield(l, -2, "wait");
	lua_pushcfunction(l, push_now);
	lua_setfield(l, -2, "now");
	lua_pushcfunction(l, extend);
	lua_setfield(l, -2, "extend");
}

static void stop_runaway(lua_State *l, lua_Debug *ar)
{
	(void)ar;
	luaL_error(l, "the case does not end: it neither waits nor returns");
}

static enum verdict verdict_of(const char *name)
{
	for (int v = 0; name && v < VERDICTS; v++)
		if (!strcmp(name, verdict_names[v]))
			return (enum verdict)v;
	return VERDICT_BROKEN;
}

static char *copy_result(lua_State *l, int at)
{
	const char *text = luaL_tolstring(l, at, NULL);
	char *copy = strdup(text ? text : "");

	lua_pop(l, 1);
	return copy;
}

/* Writes the capture of a case that failed. */
static void write_capture(const struct suite *s, const struct job *j)
{
	char path[4096];
	int err;

	if (!s->o.pcap ||
	    (j->c->verdict != VERDICT_FAIL && j->c->verdict != VERDICT_WARN &&
	     j->c->verdict != VERDICT_BROKEN))
		return;
	snprintf(path, sizeof(path), "%s/%s.pcap", s->o.pcap, j->c->id);
	err = capture_write(j->capture, path);
	if (err)
		check_say("%s: cannot write the capture: %s", path,
			  strerror(-err));
}

static void end_case(struct suite *s, struct job *j, enum verdict v,
		     char *reason, char *conversation)
{
	struct check_case *c = j->c;

	c->done = true;
	c->verdict = v;
	c->reason = reason;
	c->conversation = conversation;
	c->took = check_now() - j->begun;
	sock_close_all(j);
	write_capture(s, j);
	capture_free(j->capture);
	luaL_unref(s->l, LUA_REGISTRYINDEX, j->ref);
	memset(j, 0, sizeof(*j));
	s->running--;
	report_case(s, c);
}

static void resume_case(struct suite *s, struct job *j, int nargs)
{
	int nresults = 0;
	int result = lua_resume(j->co, s->l, nargs, &nresults);

	if (result == LUA_YIELD) {
		lua_pop(j->co, nresults);
		return;
	}
	if (result == LUA_OK && nresults == 3)
		end_case(s, j, verdict_of(lua_tostring(j->co, -3)),
			 copy_result(j->co, -2), copy_result(j->co, -1));
	else
		end_case(s, j, VERDICT_BROKEN, copy_result(j->co, -1),
			 strdup(""));
}

static void resume_with(struct suite *s, struct job *j, const char *event)
{
	lua_pushstring(j->co, event);
	resume_case(s, j, 1);
}

static void begin_case(struct suite *s, struct job *j, struct check_case *c)
{
	memset(j, 0, sizeof(*j));
	j->c = c;
	j->begun = check_now();
	j->deadline = j->begun + (xtime)(6 * s->o.timeout) * XTIME_S;
	j->fd = -1;
	list_init(&j->socks);
	j->capture = s->o.pcap ? capture_new() : NULL;
	j->co = lua_newthread(s->l);
	j->ref = luaL_ref(s->l, LUA_REGISTRYINDEX);
	*(struct job **)lua_getextraspace(j->co) = j;
	lua_sethook(j->co, stop_runaway, LUA_MASKCOUNT, INSTRUCTIONS);
	s->running++;
	lua_getglobal(j->co, "run_case");
	lua_rawgeti(j->co, LUA_REGISTRYINDEX, c->ref);
	resume_case(s, j, 1);
}

static struct job *free_job(struct suite *s)
{
	for (unsigned i = 0; i < s->o.jobs; i++)
		if (!s->jobs[i].c)
			return &s->jobs[i];
	return NULL;
}

/* Begins cases until all places are taken. */
static void begin_cases(struct suite *s)
{
	for (int alone = 0; alone < 2; alone++) {
		for (size_t i = 0; i < s->ncases; i++) {
			struct check_case *c = &s->cases[i];
			struct job *j = free_job(s);

			if (!c->selected || c->begun || c->alone != alone)
				continue;
			if (!j || (alone && s->running))
				return;
			c->begun = true;
			begin_case(s, j, c);
		}
	}
}

static void clean_up(struct suite *s, struct job *j, const char *why)
{
	j->cleans_up = true;
	j->deadline = check_now() + CLEANUP;
	resume_with(s, j, why);
}

static void turn_job(struct suite *s, struct job *j, short revents)
{
	xtime t = check_now();

	if (s->interrupted && !j->cleans_up)
		clean_up(s, j, "interrupted");
	else if (t >= j->deadline && j->cleans_up)
		end_case(s, j, VERDICT_BROKEN,
			 strdup("the case did not clean up in time"),
			 strdup(""));
	else if (t >= j->deadline)
		clean_up(s, j, "deadline");
	else if (revents)
		resume_with(s, j, "ready");
	else if (t >= j->wake)
		resume_with(s, j, "timeout");
}

static void turn(struct suite *s, const sigset_t *during)
{
	struct pollfd fds[CHECK_JOBS];
	xtime until = XTIME_NEVER, t = check_now();
	struct timespec limit;

	for (unsigned i = 0; i < CHECK_JOBS; i++) {
		struct job *j = &s->jobs[i];

		fds[i] = (struct pollfd){ .fd = j->c ? j->fd : -1,
					  .events = j->events };
		if (j->c)
			until = MIN(until, MIN(j->wake, j->deadline));
	}
	until = MAX(until - t, 0);
	limit.tv_sec = until / XTIME_S;
	limit.tv_nsec = until % XTIME_S;
	if (ppoll(fds, CHECK_JOBS, &limit, during) < 0)
		memset(fds, 0, sizeof(fds));
	s->interrupted = signalled != 0;
	for (unsigned i = 0; i < CHECK_JOBS; i++)
		if (s->jobs[i].c)
			turn_job(s, &s->jobs[i], fds[i].revents);
}

void run_all(struct suite *s)
{
	struct sigaction action = { .sa_handler = note_signal };
	sigset_t stops, during;

	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigprocmask(SIG_BLOCK, &stops, &during);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	begin_cases(s);
	while (s->running) {
		turn(s, &during);
		if (!s->interrupted)
			begin_cases(s);
	}
}
