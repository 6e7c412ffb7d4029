/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.h: which path of a set gets the next command, and what happens to a
 * command that a path did not execute. Functions of their arguments alone.
 */
#ifndef LIB_PATH_POLICY_H
#define LIB_PATH_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "iser/iser.h"

/* Asymmetric access states, SPC-4 table 248. */
enum lib_access {
	LIB_OPTIMIZED = 0x0,
	LIB_NON_OPTIMIZED = 0x1,
	LIB_STANDBY = 0x2,
	LIB_UNAVAILABLE = 0x3,
	LIB_LBA_DEPENDENT = 0x4,
	LIB_OFFLINE = 0xe,
	LIB_TRANSITIONING = 0xf,
};

enum lib_balance {
	LIB_ROUND_ROBIN,  /* in turn */
	LIB_QUEUE_LENGTH, /* the one with the fewest commands in progress */
	LIB_FAILOVER,	  /* one path, until it carries no commands */
};

/* What the choice needs to know about a path. */
struct lib_candidate {
	bool is_ready;	/* logged in, and its unit was checked */
	uint8_t access; /* enum lib_access */
	bool preferred; /* the PREF bit of its target port group */
	bool is_parked; /* better than the paths in use, and failback=manual */
	bool was_used;	/* carried commands at the last lib_policy_update */
	unsigned in_progress, depth; /* commands; at most depth */
};

struct lib_policy {
	enum lib_balance balance;
	bool is_manual; /* failback=manual */
	unsigned last;	/* the path that was chosen last */
};

/* lib_access_str returns the name of an access state, a static string. */
const char *lib_access_str(uint8_t access);
/* lib_path_rank returns how good a path is for commands; 0: it carries none. */
unsigned lib_path_rank(const struct lib_candidate *c);
/* lib_policy_update follows changes of is_ready and access: which paths are
 * parked. Returns whether any path carries commands. */
bool lib_policy_update(const struct lib_policy *p, struct lib_candidate *c,
		       unsigned n);
/* lib_policy_fail_back ends the parking of all paths. */
void lib_policy_fail_back(struct lib_candidate *c, unsigned n);
/* lib_policy_is_used returns whether path i is one of those that new commands may
 * use. */
bool lib_policy_is_used(const struct lib_policy *p,
			const struct lib_candidate *c, unsigned n, unsigned i);
/* lib_policy_choose returns the path for the next command, and keeps it in
 * p->last; -1: none carries commands, or those that do have no room. */
int lib_policy_choose(struct lib_policy *p, const struct lib_candidate *c,
		      unsigned n);

/* What happens to a command that has ended on a path. */
enum lib_verdict {
	LIB_DELIVER, /* the result is the caller's */
	LIB_AGAIN,   /* another path gets it at once: it was not executed, or
			changes nothing */
	LIB_HOLD,    /* another path gets it when this target cannot execute it
			any more */
};

/* What a result means for the path. */
enum lib_effect {
	LIB_PATH_FINE,
	LIB_PATH_LOST,	  /* its connection */
	LIB_PATH_REFUSES, /* its access state is another one */
	LIB_PATH_NO_UNIT, /* it does not reach the unit any more */
};

struct lib_decision {
	enum lib_verdict verdict;
	enum lib_effect effect;
	uint8_t access; /* with LIB_PATH_REFUSES */
};

/*
 * lib_path_decide decides by the result of a command. may_repeat: it was not issued
 * too often yet; has_other: another path carries commands. RESERVATION CONFLICT and
 * all other statuses that are not named in policy.c are the caller's.
 */
struct lib_decision lib_path_decide(const struct iser_io *io, bool may_repeat,
				    bool has_other);

#endif
