/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h: log events of the rooms. Each event is a row of TRACE_EVENTS with
 * its level; its text names the object, the peer and what to do. The sink adds
 * time stamps, limits the rate, and writes the event to stderr, the journal or
 * as JSON.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum trace_level {
	TRACE_LEVEL_ERROR,  /* local: disk, memory, configuration */
	TRACE_LEVEL_WARN,   /* a peer or a user made an error */
	TRACE_LEVEL_NOTICE, /* sessions begin and end */
	TRACE_LEVEL_INFO,
	TRACE_LEVEL_DEBUG, /* every PDU, every change of state */
};

/* X(name, level, what it reports). An event that a peer can cause is never
 * ERROR. */
#define TRACE_EVENTS(X)                                           \
 X(START, NOTICE, "the daemon is ready, or a portal opened")      \
 X(STOP, NOTICE, "a step of the shutdown")                        \
 X(CONFIG, ERROR, "a setting, a file or an address is unusable")  \
 X(CONN_OPEN, INFO, "a connection was accepted or established")   \
 X(CONN_CLOSE, INFO, "a connection ended, and why")               \
 X(CONN_LIMIT, WARN, "refused: too many connections")             \
 X(CONN_TIMEOUT, WARN, "the peer did not answer in time")         \
 X(LOGIN, NOTICE, "a session logged in")                          \
 X(LOGIN_FAILED, WARN, "a login failed, and why")                 \
 X(LOGIN_REDIRECTED, NOTICE, "a login was sent elsewhere")        \
 X(LOGOUT, NOTICE, "a session ended")                             \
 X(PROTOCOL, WARN, "the peer violated the protocol, with clause") \
 X(REJECT, WARN, "a PDU was rejected")                            \
 X(DIGEST, WARN, "a digest or CRC error")                         \
 X(CHANGE, NOTICE, "an administrator changed something")          \
 X(CLUSTER, NOTICE, "what gateways share of a unit has changed")  \
 X(TMF, NOTICE, "a task management function and its response")    \
 X(MEDIUM, ERROR, "a backstore failed")                           \
 X(SLOW, WARN, "a command took longer than --slow-command")       \
 X(RDMA, INFO, "an RDMA connection changed")                      \
 X(TERMINATE, WARN, "an RDMA Terminate was sent or received")     \
 X(RESOURCE, ERROR, "memory, descriptors or slots ran out")       \
 X(STATE, DEBUG, "a state machine changed its state")             \
 X(PDU, DEBUG, "a PDU was received or sent")

enum trace_event {
#define TRACE_ENUM(name, level, text) TRACE_##name,
	TRACE_EVENTS(TRACE_ENUM)
#undef TRACE_ENUM
	TRACE_EVENT_COUNT,
};

/* A value in the text of an event, for readers that are programs. */
struct trace_field {
	const char *name;
	const char *text; /* NULL: value */
	uint64_t value;
};

/* The subjects of an event, as far as they are known: NULL or "" is unknown.
 * The texts are borrowed; peers send the names. */
struct trace_about {
	const char *peer; /* "ADDRESS:PORT" of the connection */
	const char *initiator, *target;
	const char *backstore;
	const struct trace_field *fields;
	unsigned nfields;
};

/* A sink of events; its owner embeds it. */
struct trace {
	enum trace_level level; /* the least severe level to emit */
	/* about is never NULL; text is escaped, the texts of about are not */
	void (*emit)(struct trace *t, enum trace_event event,
		     const struct trace_about *about, const char *text);
};

/* The names are constant; "?" stands for a number outside of the enum. */
const char *trace_event_name(enum trace_event e);
enum trace_level trace_event_level(enum trace_event e);
const char *trace_level_name(enum trace_level l);

/* trace_wanted returns whether t emits events of level l, so that the caller
 * can save the work of making a text. t may be NULL. */
static inline bool trace_wanted(const struct trace *t, enum trace_level l)
{
	return t && l <= t->level;
}

/* trace_emit formats the text (at most 1 KiB), escapes it by text_escape, and
 * passes it to t's sink if t's level allows; t may be NULL. */
void trace_emit(struct trace *t, enum trace_event e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* trace_emit_about does the same, with the subjects of the event. */
void trace_emit_about(struct trace *t, enum trace_event e,
		      const struct trace_about *about, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
