/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states.c: the state machines of RFC 7143 §8 as tables of allowed
 * transitions, each with the standard's name for it.
 */
#include "iscsi/states.h"

#include <assert.h>
#include <stddef.h>

#define CONN_STATES    (ISCSI_S8_CLEANUP_WAIT + 1)
#define SESSION_STATES (ISCSI_Q5_CONTINUE + 1)

/* §8.1.3 and §8.1.4; M1 of §8.2 closes the circle from S8. */
static const char *const
	conn_arrows[2][CONN_STATES][CONN_STATES] = {
		[ISCSI_INITIATOR] = {
			[ISCSI_S1_FREE] = { [ISCSI_S2_XPT_WAIT] = "T1" },
			[ISCSI_S2_XPT_WAIT] = { [ISCSI_S1_FREE] = "T2",
						[ISCSI_S4_IN_LOGIN] = "T4" },
			[ISCSI_S4_IN_LOGIN] = { [ISCSI_S1_FREE] = "T7",
						[ISCSI_S5_LOGGED_IN] = "T5" },
			[ISCSI_S5_LOGGED_IN] = {
				[ISCSI_S1_FREE] = "T8",
				[ISCSI_S6_IN_LOGOUT] = "T9",
				[ISCSI_S7_LOGOUT_REQUESTED] = "T11",
				[ISCSI_S8_CLEANUP_WAIT] = "T15",
			},
			[ISCSI_S6_IN_LOGOUT] = {
				[ISCSI_S1_FREE] = "T13",
				[ISCSI_S6_IN_LOGOUT] = "T14",
				[ISCSI_S8_CLEANUP_WAIT] = "T17",
			},
			[ISCSI_S7_LOGOUT_REQUESTED] = {
				[ISCSI_S1_FREE] = "T18",
				[ISCSI_S6_IN_LOGOUT] = "T10",
				[ISCSI_S7_LOGOUT_REQUESTED] = "T12",
				[ISCSI_S8_CLEANUP_WAIT] = "T16",
			},
			[ISCSI_S8_CLEANUP_WAIT] = { [ISCSI_S1_FREE] = "M1" },
		},
		[ISCSI_TARGET] = {
			[ISCSI_S1_FREE] = { [ISCSI_S3_XPT_UP] = "T3" },
			[ISCSI_S3_XPT_UP] = { [ISCSI_S1_FREE] = "T6",
					      [ISCSI_S4_IN_LOGIN] = "T4" },
			[ISCSI_S4_IN_LOGIN] = { [ISCSI_S1_FREE] = "T7",
						[ISCSI_S5_LOGGED_IN] = "T5" },
			[ISCSI_S5_LOGGED_IN] = {
				[ISCSI_S1_FREE] = "T8",
				[ISCSI_S6_IN_LOGOUT] = "T9",
				[ISCSI_S7_LOGOUT_REQUESTED] = "T11",
				[ISCSI_S8_CLEANUP_WAIT] = "T15",
			},
			[ISCSI_S6_IN_LOGOUT] = {
				[ISCSI_S1_FREE] = "T13",
				[ISCSI_S8_CLEANUP_WAIT] = "T17",
			},
			[ISCSI_S7_LOGOUT_REQUESTED] = {
				[ISCSI_S1_FREE] = "T18",
				[ISCSI_S6_IN_LOGOUT] = "T10",
				[ISCSI_S7_LOGOUT_REQUESTED] = "T12",
				[ISCSI_S8_CLEANUP_WAIT] = "T16",
			},
			[ISCSI_S8_CLEANUP_WAIT] = { [ISCSI_S1_FREE] = "M1" },
		},
	};

/* §8.3.5 and §8.3.6 */
static const char *const
	session_arrows[2][SESSION_STATES][SESSION_STATES] = {
		[ISCSI_INITIATOR] = {
			[ISCSI_Q1_FREE] = { [ISCSI_Q3_LOGGED_IN] = "N1" },
			[ISCSI_Q3_LOGGED_IN] = { [ISCSI_Q1_FREE] = "N3",
						 [ISCSI_Q4_FAILED] = "N5" },
			[ISCSI_Q4_FAILED] = { [ISCSI_Q1_FREE] = "N6",
					      [ISCSI_Q3_LOGGED_IN] = "N4" },
		},
		[ISCSI_TARGET] = {
			[ISCSI_Q1_FREE] = { [ISCSI_Q2_ACTIVE] = "N1" },
			[ISCSI_Q2_ACTIVE] = { [ISCSI_Q1_FREE] = "N9",
					      [ISCSI_Q3_LOGGED_IN] = "N2" },
			[ISCSI_Q3_LOGGED_IN] = { [ISCSI_Q1_FREE] = "N3",
						 [ISCSI_Q4_FAILED] = "N5" },
			[ISCSI_Q4_FAILED] = { [ISCSI_Q1_FREE] = "N6",
					      [ISCSI_Q5_CONTINUE] = "N7" },
			[ISCSI_Q5_CONTINUE] = {
				[ISCSI_Q1_FREE] = "N11",
				[ISCSI_Q3_LOGGED_IN] = "N10",
				[ISCSI_Q4_FAILED] = "N8",
			},
		},
	};

bool iscsi_conn_may_go(enum iscsi_role role, enum iscsi_conn_state from,
		       enum iscsi_conn_state to)
{
	return conn_arrows[role][from][to] != NULL;
}

bool iscsi_session_may_go(enum iscsi_role role, enum iscsi_session_state from,
			  enum iscsi_session_state to)
{
	return session_arrows[role][from][to] != NULL;
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

const char *iscsi_conn_transition(enum iscsi_role role,
				  enum iscsi_conn_state from,
				  enum iscsi_conn_state to)
{
	const char *arrow = conn_arrows[role][from][to];

	return arrow ? arrow : "";
}

const char *iscsi_session_transition(enum iscsi_role role,
				     enum iscsi_session_state from,
				     enum iscsi_session_state to)
{
	const char *arrow = session_arrows[role][from][to];

	return arrow ? arrow : "";
}
