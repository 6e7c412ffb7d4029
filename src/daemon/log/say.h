/* SPDX-License-Identifier: BSD-2-Clause */
/* say.h: lines for the administrator on standard error. */
#ifndef DAEMON_LOG_SAY_H
#define DAEMON_LOG_SAY_H

#include <stdbool.h>

/*
 * say writes "iserd: TEXT" as one line to standard error, at most 1,023 bytes
 * of TEXT. From any thread. For errors of the command line and of the start,
 * and for what an administrator has to know whatever --log is; everything else
 * goes through trace_emit (log.h).
 */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* say_note does the same for warnings and progress, which say_hold does not keep. */
void say_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * The reason of a failure, which its caller reports with the place in the configuration
 * or to a client: from say_hold to say_release the messages of say on this thread are
 * joined in text, in place of being written. Holds nest.
 */
struct say_hold {
	char text[700];
	struct say_hold *outer;
};
void say_hold(struct say_hold *h);
/* say_release ends say_hold. false_alarm: nothing has failed, so the text is
 * written. */
void say_release(struct say_hold *h, bool false_alarm);

/*
 * say_tap passes each text of say_note on this thread to take, until say_untap. is_only: the
 * text is not written then. Taps nest; the innermost gets the text.
 */
struct say_tap {
	void (*take)(void *arg, const char *text);
	void *arg;
	bool is_only;
	struct say_tap *outer;
};
void say_tap(struct say_tap *t);
/* say_untap ends say_tap. */
void say_untap(struct say_tap *t);

/* say_through: from now on say passes each TEXT to write, which must be safe
 * from any thread; NULL: standard error again. Before other threads start, or
 * after they have ended. */
void say_through(void (*write)(void *arg, const char *text), void *arg);

#endif
