/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states.c: the state machines of RFC 7143 §8: one row per transition, with
 * the standard's name and the roles that have it.
 */
#include "iscsi/states.h"

#include <assert.h>
#include <stddef.h>

#include "base/bytes.h"

#define CONN_STATES    (ISCSI_S8_CLEANUP_WAIT + 1)
#define SESSION_STATES (ISCSI_Q5_CONTINUE + 1)

#define INI  BIT(ISCSI_INITIATOR)
#define TGT  BIT(ISCSI_TARGET)
#define BOTH (INI | TGT)

struct transition {
	uint8_t from, to, roles;
	const char *name;
};

/* §8.1.3 and §8.1.4; M1 and M4 (§8.2) lead from S8 back to S1. docs/states.md gives the
 * reason for each row of the standard that is missing. */
static const struct transition conn_transitions[] = {
	{ ISCSI_S1_FREE, ISCSI_S2_XPT_WAIT, INI, "T1" },
	{ ISCSI_S1_FREE, ISCSI_S3_XPT_UP, TGT, "T3" },
	{ ISCSI_S2_XPT_WAIT, ISCSI_S4_IN_LOGIN, INI, "T4" },
	{ ISCSI_S3_XPT_UP, ISCSI_S4_IN_LOGIN, TGT, "T4" },
	{ ISCSI_S4_IN_LOGIN, ISCSI_S5_LOGGED_IN, BOTH, "T5" },
	{ ISCSI_S3_XPT_UP, ISCSI_S1_FREE, TGT, "T6" },
	{ ISCSI_S4_IN_LOGIN, ISCSI_S1_FREE, BOTH, "T7" },
	{ ISCSI_S5_LOGGED_IN, ISCSI_S1_FREE, BOTH, "T8" },
	{ ISCSI_S5_LOGGED_IN, ISCSI_S6_IN_LOGOUT, BOTH, "T9" },
	{ ISCSI_S7_LOGOUT_REQUESTED, ISCSI_S6_IN_LOGOUT, BOTH, "T10" },
	{ ISCSI_S5_LOGGED_IN, ISCSI_S7_LOGOUT_REQUESTED, BOTH, "T11" },
	{ ISCSI_S7_LOGOUT_REQUESTED, ISCSI_S7_LOGOUT_REQUESTED, INI, "T12" },
	{ ISCSI_S6_IN_LOGOUT, ISCSI_S1_FREE, BOTH, "T13" },
	{ ISCSI_S6_IN_LOGOUT, ISCSI_S6_IN_LOGOUT, INI, "T14" },
	{ ISCSI_S5_LOGGED_IN, ISCSI_S8_CLEANUP_WAIT, BOTH, "T15" },
	{ ISCSI_S7_LOGOUT_REQUESTED, ISCSI_S8_CLEANUP_WAIT, BOTH, "T16" },
	{ ISCSI_S6_IN_LOGOUT, ISCSI_S8_CLEANUP_WAIT, BOTH, "T17" },
	{ ISCSI_S7_LOGOUT_REQUESTED, ISCSI_S1_FREE, BOTH, "T18" },
	{ ISCSI_S8_CLEANUP_WAIT, ISCSI_S1_FREE, BOTH, "M1 M4" },
};

/* §8.3.5 and §8.3.6 */
static const struct transition session_transitions[] = {
	{ ISCSI_Q1_FREE, ISCSI_Q3_LOGGED_IN, INI, "N1" },
	{ ISCSI_Q1_FREE, ISCSI_Q2_ACTIVE, TGT, "N1" },
	{ ISCSI_Q2_ACTIVE, ISCSI_Q3_LOGGED_IN, TGT, "N2" },
	{ ISCSI_Q3_LOGGED_IN, ISCSI_Q1_FREE, BOTH, "N3" },
	{ ISCSI_Q4_FAILED, ISCSI_Q3_LOGGED_IN, INI, "N4" },
	{ ISCSI_Q3_LOGGED_IN, ISCSI_Q4_FAILED, BOTH, "N5" },
	{ ISCSI_Q4_FAILED, ISCSI_Q1_FREE, BOTH, "N6" },
	{ ISCSI_Q4_FAILED, ISCSI_Q5_CONTINUE, TGT, "N7" },
	{ ISCSI_Q5_CONTINUE, ISCSI_Q4_FAILED, TGT, "N8" },
	{ ISCSI_Q2_ACTIVE, ISCSI_Q1_FREE, TGT, "N9" },
	{ ISCSI_Q5_CONTINUE, ISCSI_Q3_LOGGED_IN, TGT, "N10" },
	{ ISCSI_Q5_CONTINUE, ISCSI_Q1_FREE, TGT, "N11" },
};

/* Returns the name of the transition, "" if the role has none. */
static const char *find_transition(const struct transition *rows, size_t n,
				   enum iscsi_role role, unsigned from,
				   unsigned to)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].from == from && rows[i].to == to &&
		    (rows[i].roles & BIT(role)))
			return rows[i].name;
	return "";
}

const char *iscsi_conn_transition(enum iscsi_role role,
				  enum iscsi_conn_state from,
				  enum iscsi_conn_state to)
{
	return find_transition(conn_transitions, ARRAY_LEN(conn_transitions),
			       role, from, to);
}

const char *iscsi_session_transition(enum iscsi_role role,
				     enum iscsi_session_state from,
				     enum iscsi_session_state to)
{
	return find_transition(session_transitions,
			       ARRAY_LEN(session_transitions), role, from, to);
}

bool iscsi_conn_may_go(enum iscsi_role role, enum iscsi_conn_state from,
		       enum iscsi_conn_state to)
{
	return iscsi_conn_transition(role, from, to)[0] != '\0';
}

bool iscsi_session_may_go(enum iscsi_role role, enum iscsi_session_state from,
			  enum iscsi_session_state to)
{
	return iscsi_session_transition(role, from, to)[0] != '\0';
}

void iscsi_conn_go(enum iscsi_role role, enum iscsi_conn_state *s,
		   enum iscsi_conn_state to)
{
	assert(iscsi_conn_may_go(role, *s, to));
	*s = to;
}

void iscsi_session_go(enum iscsi_role role, enum iscsi_session_state *s,
		      enum iscsi_session_state to)
{
	assert(iscsi_session_may_go(role, *s, to));
	*s = to;
}

const char *iscsi_conn_state_str(enum iscsi_conn_state s)
{
	static const char *const names[CONN_STATES] = {
		"S1 FREE",
		"S2 XPT_WAIT",
		"S3 XPT_UP",
		"S4 IN_LOGIN",
		"S5 LOGGED_IN",
		"S6 IN_LOGOUT",
		"S7 LOGOUT_REQUESTED",
		"S8 CLEANUP_WAIT",
	};

	return s < CONN_STATES ? names[s] : "?";
}

const char *iscsi_session_state_str(enum iscsi_session_state s)
{
	static const char *const names[SESSION_STATES] = {
		"Q1 FREE",   "Q2 ACTIVE",      "Q3 LOGGED_IN",
		"Q4 FAILED", "Q5 IN_CONTINUE",
	};

	return s < SESSION_STATES ? names[s] : "?";
}
