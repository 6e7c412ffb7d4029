/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guard.h: no command goes to another unit. The commands of a LUN that read or change
 * data wait until the unit is identified (ask.h): before the first of them; after each
 * login, since a new I_T nexus may lead to another unit; and after a unit attention that
 * says that the unit may be another one or have another size (lib_guard_is_doubt). They
 * go on if identity, block size and size are what they were. Else none of them is sent
 * any more: they end with ISER_E_CHANGED. A command that was in progress at such an
 * attention may have reached the other unit: its result waits, too.
 *
 * Commands with no_retry, and all others (INQUIRY, TEST UNIT READY, reservations), pass.
 * guard.c has the LUNs and their states, hold.c the commands that wait, verify.c asks
 * (sessions of one path; path/check.c does it for a path of several).
 */
#ifndef LIB_GUARD_H
#define LIB_GUARD_H

#include "base/cold.h"
#include "io/io.h"
#include "lib/ask.h"

struct lib_task;

enum lib_guard_state {
	GUARD_NEW,     /* not asked in this nexus: the first command asks */
	GUARD_UNSURE,  /* being asked; commands wait */
	GUARD_OPEN,    /* commands pass */
	GUARD_REFUSED, /* another unit; commands fail */
};

struct lib_tasks {
	struct lib_task *first, **tail;
};

/* A LUN. */
struct lib_guarded {
	struct lib_guarded *next;
	int lun;
	enum lib_guard_state state;
	bool has_who;
	bool is_new_medium;	/* any number of blocks is right */
	struct lib_who who;	/* the unit that the commands are for */
	struct lib_tasks held;	/* to be issued again */
	struct lib_tasks ended; /* with a result that may be of another unit */
	char why[LIB_WHY_MAX];	/* of GUARD_REFUSED: "is naa.1, not naa.2" */
};

/* The LUNs of a session. */
struct lib_guard {
	struct lib_guarded *luns;
	int open;	/* 1 + the LUN that was found open last; 0: none */
	unsigned round; /* attentions of doubt and logins so far */
	/* begins to ask for an unsure LUN, or ends the commands of the queue for one that
	 * is refused (g = NULL: without memory); neither from within this call */
	void (*ask)(struct iser_session *s, struct lib_guarded *g);
	struct io_defer due; /* verify.c's */
	struct lib_ask *query;
	bool is_asking;
};

/* ---- guard.c ---- */

/* lib_guard_is_doubt returns whether a unit attention with this code says that the unit
 * may be another one, or may have another size. */
bool lib_guard_is_doubt(uint16_t asc);
/* lib_guard_covers returns whether a command reads or changes data of the unit. */
bool lib_guard_covers(const struct iser_io *io);
/* lib_guard_find returns what is known about a LUN, or NULL. */
struct lib_guarded *lib_guard_find(const struct iser_session *s, int lun);
/* lib_guard_get does the same and makes it; NULL: out of memory. */
struct lib_guarded *lib_guard_get(struct iser_session *s, int lun);
/* lib_guard_refusal sets iser_message to the reason of GUARD_REFUSED, and returns
 * ISER_E_CHANGED. */
int lib_guard_refusal(struct iser_session *s, const struct lib_guarded *g);
/* lib_guard_go changes the state of a LUN. */
void lib_guard_go(struct iser_session *s, struct lib_guarded *g,
		  enum lib_guard_state state);
/* lib_guard_ask makes a LUN unsure; lib_guard.ask follows. */
void lib_guard_ask(struct iser_session *s, struct lib_guarded *g);
/* lib_guard_waits returns whether a command has to wait; lib_guard.ask follows where the
 * unit is not being asked yet, and where the command cannot go on. */
COLD bool lib_guard_waits(struct iser_session *s, const struct iser_io *io);
/* lib_guard_note keeps what READ CAPACITY has reported before the first command:
 * that is the size that the caller knows. */
void lib_guard_note(struct iser_session *s, int lun,
		    const struct iser_capacity *c);
/* lib_guard_learn compares what a unit reports with what its LUN is known to be, and keeps
 * the new size; where nothing is known, it keeps all of it, and opens the LUN. Returns 0, or
 * an error with iser_message. */
int lib_guard_learn(struct iser_session *s, int lun, const struct lib_who *who);
/* lib_guard_fini frees the LUNs. */
void lib_guard_fini(struct iser_session *s);

#endif
