/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h: what the rooms have to say. One hook, typed events: each event is
 * a row of TRACE_EVENTS with its level, and every text names what, who and
 * what to do. Rendering (stderr, journal, JSON), time stamps and rate limits
 * are the sink's business.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum trace_level {
	TRACE_LEVEL_ERROR,  /* ours to mend: disk, memory, configuration */
	TRACE_LEVEL_WARN,   /* a peer or a person did something wrong */
	TRACE_LEVEL_NOTICE, /* sessions come and go */
	TRACE_LEVEL_INFO,
	TRACE_LEVEL_DEBUG, /* every PDU, every state */
};

/* X(name, level, what it reports). Peer-caused events are never ERROR. */
#define TRACE_EVENTS(X)                                          \
 X(START, NOTICE, "the daemon is ready or a portal opened")      \
 X(STOP, NOTICE, "shutdown and its steps")                       \
 X(CONFIG, ERROR, "a setting, a file or an address is unusable") \
 X(CONN_OPEN, INFO, "a connection was accepted or made")         \
 X(CONN_CLOSE, INFO, "a connection ended, and why")              \
 X(CONN_LIMIT, WARN, "refused: too many connections")            \
 X(CONN_TIMEOUT, WARN, "the peer did not answer in time")        \
 X(LOGIN, NOTICE, "a session logged in")                         \
 X(LOGIN_FAILED, WARN, "a login was refused, and why")           \
 X(LOGOUT, NOTICE, "a session ended")                            \
 X(PROTOCOL, WARN, "the peer broke the protocol, with clause")   \
 X(REJECT, WARN, "a PDU was rejected")                           \
 X(DIGEST, WARN, "a digest or CRC was wrong")                    \
 X(TMF, NOTICE, "a task management function and its answer")     \
 X(MEDIUM, ERROR, "a backstore failed")                          \
 X(RDMA, INFO, "an RDMA connection changed")                     \
 X(TERMINATE, WARN, "an RDMA Terminate was sent or received")    \
 X(RESOURCE, ERROR, "memory, descriptors or slots ran out")      \
 X(STATE, DEBUG, "a state machine moved")                        \
 X(PDU, DEBUG, "a PDU went in or out")

enum trace_event {
#define TRACE_ENUM(name, level, text) TRACE_##name,
	TRACE_EVENTS(TRACE_ENUM)
#undef TRACE_ENUM
	TRACE_EVENT_COUNT,
};

struct trace {
	enum trace_level level; /* the most talkative level wanted */
	void (*emit)(struct trace *t, enum trace_event event, const char *text);
};

const char *trace_event_name(enum trace_event e);
enum trace_level trace_event_level(enum trace_event e);
const char *trace_level_name(enum trace_level l);

/* trace_wanted: whether it is worth making the text. t may be NULL. */
static inline bool trace_wanted(const struct trace *t, enum trace_level l)
{
	return t && l <= t->level;
}

/* trace_emit formats (at most 1 KiB) and hands on; t may be NULL. */
void trace_emit(struct trace *t, enum trace_event e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
