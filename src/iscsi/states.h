/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states.h: the connection and session state machines of RFC 7143 §8 with
 * the standard's names: states S1.. and Q1.., transitions T1.. and N1...
 * docs/states.md is generated from the tables in states.c.
 */
#ifndef ISCSI_STATES_H
#define ISCSI_STATES_H

#include <stdbool.h>

#include "iscsi/params.h"

/* §8.1.3 (initiator and target of a connection; not each uses each). */
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

/* §8.3 */
enum iscsi_session_state {
	ISCSI_Q1_FREE,
	ISCSI_Q2_ACTIVE, /* target only */
	ISCSI_Q3_LOGGED_IN,
	ISCSI_Q4_FAILED,
	ISCSI_Q5_CONTINUE, /* target only */
};

/* Whether the standard draws an arrow from one state to the other. */
bool iscsi_conn_may_go(enum iscsi_role role, enum iscsi_conn_state from,
		       enum iscsi_conn_state to);
bool iscsi_session_may_go(enum iscsi_role role, enum iscsi_session_state from,
			  enum iscsi_session_state to);

/* iscsi_conn_go / iscsi_session_go: the only way to change a state; assert
 * that the arrow exists. */
void iscsi_conn_go(enum iscsi_role role, enum iscsi_conn_state *s,
		   enum iscsi_conn_state to);
void iscsi_session_go(enum iscsi_role role, enum iscsi_session_state *s,
		      enum iscsi_session_state to);

/* "S5 LOGGED_IN"; never NULL. */
const char *iscsi_conn_state_str(enum iscsi_conn_state s);
const char *iscsi_session_state_str(enum iscsi_session_state s);
/* "T5" for an arrow of the role's table, "" where there is none. */
const char *iscsi_conn_transition(enum iscsi_role role,
				  enum iscsi_conn_state from,
				  enum iscsi_conn_state to);
/* "N3" likewise for sessions. */
const char *iscsi_session_transition(enum iscsi_role role,
				     enum iscsi_session_state from,
				     enum iscsi_session_state to);

#endif
