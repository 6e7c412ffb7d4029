/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h: iser-check, the conformance suite. The engine runs cases, which are
 * Lua scripts, as coroutines of one Lua state: a case waits for a socket or a
 * deadline, and the event loop resumes the case. The suite is a second reading
 * of the standards: it shares no code with the rooms that it checks
 * (tests/arch/wall.py).
 *
 * Each file of this list calls those above it: say.c, crc.c, fields.c, capture.c,
 * sock.c, crypt.c, report.c, run.c, cases.c, main.c.
 */
#ifndef TOOLS_CHECK_CHECK_H
#define TOOLS_CHECK_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/list.h"
#include "base/xtime.h"

typedef struct lua_State lua_State; /* lua.h */

/* Exit statuses; main.c has their texts. Those that iser has, too, are the same. */
enum check_exit {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_NOMEM = 3,
	EXIT_TRANSPORT = 4,
	EXIT_INVALID = 7,
	EXIT_UNSUPPORTED = 127,
	EXIT_INTERRUPTED = 130,
};

enum verdict {
	VERDICT_PASS,
	VERDICT_FAIL,
	VERDICT_WARN,	     /* a SHOULD that the peer does not follow */
	VERDICT_UNSUPPORTED, /* the peer does not have what the case needs */
	VERDICT_SKIPPED,     /* not run */
	VERDICT_BROKEN,	     /* the case itself failed */
};
#define VERDICTS 6

/* What a case states about itself, and its result. */
struct check_case {
	const char *id, *clause, *level, *what, *why, *source;
	bool destructive, alone, selected, known;
	int ref; /* of the table of the case in the Lua registry */
	/* set by run.c */
	bool begun, done;
	enum verdict verdict;
	char *reason, *conversation; /* on the heap */
	xtime took;
};

struct capture;

/* A case that runs: the value in the extra space of its Lua thread. */
struct job {
	struct check_case *c; /* NULL: the job is free */
	lua_State *co;
	int ref; /* of the thread */
	xtime begun, deadline, wake;
	int fd; /* -1: waits for the time alone */
	short events;
	bool cleans_up; /* after its deadline or an interruption */
	struct list socks;
	struct capture *capture;
};

#define CHECK_JOBS 64

struct options {
	const char *cases, *initiator, *only, *skip, *explain, *json, *junit,
		*pcap, *known;
	bool list, strict, destructive, force, verbose;
	unsigned jobs, seed, timeout;
};

struct suite {
	lua_State *l;
	struct options o;
	struct check_case *cases;
	size_t ncases;
	struct job jobs[CHECK_JOBS];
	unsigned running;
	bool interrupted, live_color;
};

/* ---- say.c ---- */

/* check_now returns the monotonic time. */
xtime check_now(void);
/* check_say prints "iser-check: MESSAGE" on stderr, escaped. */
void check_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- crc.c ---- */

/* check_crc32c returns the CRC32C of len bytes, as RFC 7143 §13.1 stores it
 * with the least significant byte first. */
uint32_t check_crc32c(const void *data, size_t len);

/* ---- fields.c ---- */

/* fields_open adds pdu_encode, pdu_decode and pdu_kinds to the table at the
 * top of the stack. */
void fields_open(lua_State *l);

/* ---- capture.c: the packets of a case, as a file that tshark reads ---- */

struct capture *capture_new(void);
void capture_free(struct capture *c);
/* capture_add notes that a connection sent len bytes; port names the
 * connection, seq counts the bytes of each direction. */
void capture_add(struct capture *c, uint16_t port, bool to_peer,
		 uint32_t seq[2], const void *data, size_t len);
/* capture_write writes the file; returns 0 or -errno. */
int capture_write(const struct capture *c, const char *path);

/* ---- sock.c ---- */

/* sock_job returns the job whose case runs in the thread l. */
struct job *sock_job(lua_State *l);
/* sock_open adds connect to the table at the top of the stack. */
void sock_open(lua_State *l);
/* sock_probe connects within some seconds, and closes. Returns NULL, or why
 * there is no connection. */
const char *sock_probe(const char *host, const char *port, unsigned seconds);
/* sock_close_all closes the connections of a job that ends. */
void sock_close_all(struct job *j);

/* ---- crypt.c ---- */

/* crypt_open adds hash and random to the table at the top of the stack. */
void crypt_open(lua_State *l);

/* ---- report.c ---- */

extern const char *const verdict_names[VERDICTS];
/* report_case prints the line of a case that ended. */
void report_case(const struct suite *s, const struct check_case *c);
/* report_end prints the counts and writes the files that were asked for.
 * Returns an exit status. */
int report_end(const struct suite *s);
/* report_list prints the cases that are selected. */
void report_list(const struct suite *s);
/* report_explain prints what the case is about, and its source. */
void report_explain(const struct check_case *c);

/* ---- run.c ---- */

/* run_open adds wait and now to the table at the top of the stack. */
void run_open(lua_State *l);
/* run_all runs the selected cases. */
void run_all(struct suite *s);

/* ---- cases.c ---- */

/* One file that is compiled in: embed.py makes the table, which ends with a
 * NULL name. */
struct embedded {
	const char *name;
	const char *text;
	size_t len;
};
extern const struct embedded embedded_cases[];

/* cases_load makes the Lua state with the engine and all cases. Returns an
 * exit status; what failed is printed. */
int cases_load(struct suite *s);
/* cases_select applies --only, --skip, --explain, --destructive and --known. Returns an exit
 * status; what failed is printed. */
int cases_select(struct suite *s);
/* cases_free frees all. */
void cases_free(struct suite *s);

#endif
