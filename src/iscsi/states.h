/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states.h: the connection and session state machines of RFC 7143 §8 with
 * the standard's names: states S1 to S8 and Q1 to Q5, transitions T1 to T18
 * and N1 to N11. docs/states.md is generated from the tables in states.c.
 */
#ifndef ISCSI_STATES_H
#define ISCSI_STATES_H

#include <stdbool.h>

#include "iscsi/params.h"

/* The states of a connection, §8.1.3: initiators do not use S3, targets do not
 * use S2. */
enum iscsi_conn_state {
	ISCSI_S1_FREE,
	ISCSI_S2_XPT_WAIT,
	ISCSI_S3_XPT_UP,
	ISCSI_S4_IN_LOGIN,
	ISCSI_S5_LOGGED_IN,
	ISCSI_S6_IN_LOGOUT,
	ISCSI_S7_LOGOUT_REQUESTED,
	ISCSI_S8_CLEANUP_WAIT,
};

/* The states of a session, §8.3. */
enum iscsi_session_state {
	ISCSI_Q1_FREE,
	ISCSI_Q2_ACTIVE, /* target only */
	ISCSI_Q3_LOGGED_IN,
	ISCSI_Q4_FAILED,
	ISCSI_Q5_CONTINUE, /* target only */
};

/* iscsi_conn_may_go and iscsi_session_may_go return whether the standard has a
 * transition between the two states for this role. */
bool iscsi_conn_may_go(enum iscsi_role role, enum iscsi_conn_state from,
		       enum iscsi_conn_state to);
bool iscsi_session_may_go(enum iscsi_role role, enum iscsi_session_state from,
			  enum iscsi_session_state to);

/* iscsi_conn_go and iscsi_session_go are the only functions that change a
 * state; they assert that the transition exists. */
void iscsi_conn_go(enum iscsi_role role, enum iscsi_conn_state *s,
		   enum iscsi_conn_state to);
void iscsi_session_go(enum iscsi_role role, enum iscsi_session_state *s,
		      enum iscsi_session_state to);

/* These two return the standard's name, for example "S5 LOGGED_IN". */
const char *iscsi_conn_state_str(enum iscsi_conn_state s);
const char *iscsi_session_state_str(enum iscsi_session_state s);
/* These two return the standard's name of a transition, for example "T5"; ""
 * if the role has no such transition. */
const char *iscsi_conn_transition(enum iscsi_role role,
				  enum iscsi_conn_state from,
				  enum iscsi_conn_state to);
const char *iscsi_session_transition(enum iscsi_role role,
				     enum iscsi_session_state from,
				     enum iscsi_session_state to);

#endif
