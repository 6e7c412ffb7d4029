/* SPDX-License-Identifier: BSD-2-Clause */
/* say.h: lines for the administrator on standard error. */
#ifndef DAEMON_SAY_H
#define DAEMON_SAY_H

/*
 * say writes "iserd: TEXT" as one line to standard error, at most 1,023 bytes
 * of TEXT. From any thread. For errors of the command line and of the start,
 * and for what an administrator has to know whatever --log is; everything else
 * goes through trace_emit (log.h).
 */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* say_through: from now on say passes each TEXT to write, which must be safe
 * from any thread; NULL: standard error again. Before other threads start, or
 * after they have ended. */
void say_through(void (*write)(void *arg, const char *text), void *arg);

#endif
