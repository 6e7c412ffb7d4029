/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path.h: a set of paths to one unit (iser.h: several paths). A set is a session
 * without a connection, whose struct lib_set has the functions that other files
 * call; each path has a session with a connection of its own. The files, each of
 * which calls those above it only:
 *   policy.c  which path gets a command; what a failed command means
 *   unit.c    target port groups
 *   io.c      the commands of a set
 *   fence.c   ends a lost session through the portal of another path
 *   check.c   identity, access state and readiness of one path
 *   link.c    the session of one path: log in, lose, log in again
 *   set.c     making and ending a set; SendTargets
 *   calls.c   struct lib_set_ops and the public calls for paths
 *   connect.c the calls that connect a session of one path or of several
 */
#ifndef LIB_PATH_PATH_H
#define LIB_PATH_PATH_H

#include "lib/internal.h"
#include "lib/path/policy.h"
#include "lib/path/unit.h"

#define LIB_SLOW_TIME \
 60 /* seconds until an attempt that is not likely to help */
#define LIB_PATH_TRIES	 5 /* per command, as in Linux' sd */
#define LIB_CONNECT_TIME 3 /* seconds after the first path is ready */

enum lib_path_state {
	PATH_DOWN,  /* without a session; the timer has the next attempt */
	PATH_LOGIN, /* connecting */
	PATH_CHECK, /* logged in; whether it reaches the unit is being checked */
	PATH_READY,
	PATH_LOST,  /* the session is ending */
	PATH_FENCE, /* without a session; fence.c ends the lost one */
};

enum lib_check_step {
	CHECK_WHO,    /* lib_ask: identity, size, TPGS */
	CHECK_GROUPS, /* REPORT TARGET PORT GROUPS */
	CHECK_UNIT,   /* TEST UNIT READY */
	CHECK_SET,    /* SET TARGET PORT GROUPS, on request only */
	CHECK_OVER,
};

struct lib_path;

/* check.c's */
struct lib_check {
	enum lib_check_step step;
	bool in_progress;
	bool again;	 /* another check is due, or follows this one */
	bool want_whole; /* it begins at CHECK_WHO */
	bool is_late;	 /* LIB_CHECK_TIME is over */
	bool others_serve; /* the path reports so of the group of another ready path */
	uint8_t tpgs;	   /* SPC-4 table 168; 0: no access states */
	unsigned refusals; /* of commands, since one succeeded */
	unsigned dark;	   /* checks since no path carries commands */
	struct lib_ask ask;
	struct iser_io io;
	struct iser_parameters params;
};

/* fence.c's */
struct lib_fence {
	struct iser_session *session; /* of PATH_FENCE, else NULL */
	unsigned tried; /* bit N: the portal of path N was asked, without result */
	int group;	/* target portal group tag of the last login */
	/* commands of sessions with several target ports wait */
	bool is_mixed;
	void (*ended)(struct lib_path *p); /* up-call at the end of PATH_FENCE */
};

struct lib_io_list {
	struct iser_io *first, **tail;
};

struct lib_path {
	struct lib_paths *set;
	unsigned number;
	struct iser_url url;
	enum lib_path_state state;
	struct iser_session *session; /* not in PATH_DOWN, PATH_FENCE */
	unsigned leaving;	      /* earlier sessions that log out */
	bool was_tried;		      /* the first attempt has ended */
	bool is_wrong;		      /* it reached another unit */
	bool has_joined; /* it reached the unit of the set before */
	/* the session that was lost */
	bool has_isid, was_redirected;
	uint8_t isid[6]; /* so that the next login ends it (RFC 7143 §6.3.5) */
	/* its sockets, or -1: see reconnect.c */
	int held[LIB_CONNECTIONS_MAX];
	unsigned time2wait;
	unsigned attempts;     /* that failed, since it was ready */
	struct io_timer timer; /* the next attempt, the next check, or the end
				  of a check */
	struct io_defer kill;
	struct lib_fence fence;
	struct lib_io_list waiting; /* commands of LIB_HOLD */
	struct io_timer replace;    /* when they go to another path anyhow */
	struct lib_check check;
	struct lib_port port;
	/* for iser_get_path */
	uint64_t commands, losses;
	int err;
	char reason[220];
};

/* What the files above call in those below them. */
struct lib_path_ups {
	void (*recheck)(struct lib_path *p, bool whole); /* lib_check_soon */
	void (*lost)(struct lib_path *p, int err, const char *what);
	void (*refused)(struct lib_path *p, int err);
	void (*checked)(struct lib_path *p);
	void (*tried)(struct lib_paths *set);
	void (*excluded)(struct lib_path *p); /* lib_link_excluded */
};

struct lib_paths {
	struct lib_set set; /* the first member */
	const struct lib_path_ups *up;
	struct iser_session *session;
	struct iser_context *ctx;
	struct lib_path *paths;
	struct lib_candidate seen[ISER_PATHS_MAX]; /* [lib_path.number] */
	unsigned n;
	int lun; /* for callers; each path has its own */
	struct lib_policy policy;
	bool uses_states, may_set; /* alua= */
	struct lib_io_list queue;
	unsigned in_progress;
	struct lib_who who; /* of the first path that was checked */
	unsigned named;	    /* the number of that path */
	bool has_who;
	/* no path carries commands */
	struct io_timer dark; /* set while it is so, until it gives up */
	bool is_dark, gave_up;
	/* connecting */
	struct iser_discovery *discovery;
	struct io_timer patience;
	bool is_reported, any_ready;
	bool is_ending;
};

static inline struct lib_paths *lib_paths_of(const struct iser_session *s)
{
	return (struct lib_paths *)(void *)s->set;
}

/* lib_paths_seconds returns a time of the URL, or its default. */
static inline xtime lib_paths_seconds(unsigned seconds, unsigned initial)
{
	if (seconds == ISER_NO_TIME)
		return 0;
	return (seconds ? seconds : initial) * XTIME_S;
}

/* ---- io.c ---- */

/* lib_list_init empties a list of commands. */
void lib_list_init(struct lib_io_list *l);
/* lib_paths_submit is iser_submit. */
void lib_paths_submit(struct iser_session *s, struct iser_io *io);
/* lib_paths_abort ends a command that is not at a path. */
void lib_paths_abort(struct iser_session *s, struct iser_io *io);
/* lib_paths_changed follows a change of lib_candidate: commands that wait begin,
 * or the time begins after which they fail. */
void lib_paths_changed(struct lib_paths *set);
/* lib_paths_release lets the commands that wait for the end of a lost session go
 * to another path: the target cannot execute them any more. */
void lib_paths_release(struct lib_path *p);
/* lib_paths_fail ends all commands that wait with err. */
void lib_paths_fail(struct lib_paths *set, int err);
/* lib_paths_describe writes the state of each path to out (size bytes, always
 * ended). */
void lib_paths_describe(const struct lib_paths *set, char *out, size_t size);
/* lib_paths_timers prepares the timers of a set and of its paths. */
void lib_paths_timers(struct lib_paths *set);

/* ---- fence.c ---- */

/* lib_path_leave logs out of an earlier session of a path and frees the session;
 * lib_link_is_ended waits for the end. */
void lib_path_leave(struct lib_path *p, struct iser_session *s);
/* lib_fence_begin begins to end the lost session of a path in PATH_DOWN, if commands
 * wait for that and another path reaches the same target port. fence.ended follows.
 * Returns false if nothing was begun. */
bool lib_fence_begin(struct lib_path *p);
/* lib_fence_end ends an attempt in progress without a result. */
void lib_fence_end(struct lib_path *p);
/* lib_fence_note is called after a login on the path itself; group: its target portal
 * group tag. If that is the target port of the lost session, the login has ended that
 * session, and its commands go on. */
void lib_fence_note(struct lib_path *p, int group);

/* ---- check.c ---- */

/* lib_check_begin begins a check; whole: with the identity of the unit. */
void lib_check_begin(struct lib_path *p, bool whole);
/* lib_check_late gives a check a little more time: a program that did not run the
 * loop has not read the answer. */
void lib_check_late(struct lib_path *p);
/* lib_check_soon begins a check now, or after the one in progress. */
void lib_check_soon(struct lib_path *p, bool whole);
/* lib_check_doubt takes a path out of use until a check finds that it still reaches the
 * unit; struct lib_guard of its session asks for that. */
void lib_check_doubt(struct lib_path *p);

/* ---- link.c ---- */

/* lib_link_begin begins an attempt to log in. */
void lib_link_begin(struct lib_path *p);
/* lib_link_init prepares a path of a set. */
void lib_link_init(struct lib_path *p, struct lib_paths *set, unsigned number,
		   const struct iser_url *url);
/* lib_link_lost takes a path out of use whose connection is lost or is given up;
 * what: the reason. Its session ends later. */
void lib_link_lost(struct lib_path *p, int err, const char *what);
/* lib_link_refused takes a path out of use that reaches no unit or another one, and
 * logs out. iser_message has the reason. */
void lib_link_refused(struct lib_path *p, int err);
/* lib_link_checked is called at the end of a check that succeeded. */
void lib_link_checked(struct lib_path *p);
/* lib_link_excluded: the target port of a path executes no WRITE any more. Those of its
 * lost session go to another path. */
void lib_link_excluded(struct lib_path *p);
/* lib_link_end ends the session of a path; lib_link_is_ended: none is left. */
void lib_link_end(struct lib_path *p);
bool lib_link_is_ended(const struct lib_path *p);

/* ---- set.c ---- */

/* lib_paths_start begins to connect a set. Arguments as of
 * iser_connect_paths_start. */
struct iser_session *
lib_paths_start(struct iser_context *ctx, const struct iser_url *urls,
		unsigned n, const struct lib_set_ops *ops,
		void (*done)(void *arg, struct iser_session *s, int err),
		void *arg, int *err);
/* lib_paths_end, lib_paths_is_ended and lib_paths_free are those of struct
 * lib_set_ops. */
void lib_paths_end(struct iser_session *s);
bool lib_paths_is_ended(const struct iser_session *s);
void lib_paths_free(struct iser_session *s);

#endif
