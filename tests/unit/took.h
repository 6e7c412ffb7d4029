/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * took.h: which transitions of RFC 7143 §8 the code of a role takes. A program that
 * includes this file is linked with -Wl,--wrap for the two setters of iscsi/states.h, and
 * only one of its files may include it. tests/arch/states_map.py finds the calls of
 * assert_took and requires one for each row of src/iscsi/states.c.
 */
#ifndef TESTS_TOOK_H
#define TESTS_TOOK_H

#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "iscsi/states.h"

#define TOOK_MAX 4096u

static struct {
	enum iscsi_role role;
	char name[12];
} took[TOOK_MAX];
static unsigned ntook;

static inline void took_one(enum iscsi_role role, const char *name)
{
	assert_true(ntook < TOOK_MAX);
	took[ntook].role = role;
	snprintf(took[ntook++].name, sizeof(took[0].name), "%s", name);
}

/* called by name only, by the linker */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
void __real_iscsi_conn_go(enum iscsi_role role, enum iscsi_conn_state *at,
			  enum iscsi_conn_state to);
void __wrap_iscsi_conn_go(enum iscsi_role role, enum iscsi_conn_state *at,
			  enum iscsi_conn_state to);
void __real_iscsi_session_go(enum iscsi_role role, enum iscsi_session_state *at,
			     enum iscsi_session_state to);
void __wrap_iscsi_session_go(enum iscsi_role role, enum iscsi_session_state *at,
			     enum iscsi_session_state to);

void __wrap_iscsi_conn_go(enum iscsi_role role, enum iscsi_conn_state *at,
			  enum iscsi_conn_state to)
{
	took_one(role, iscsi_conn_transition(role, *at, to));
	__real_iscsi_conn_go(role, at, to);
}

void __wrap_iscsi_session_go(enum iscsi_role role, enum iscsi_session_state *at,
			     enum iscsi_session_state to)
{
	took_one(role, iscsi_session_transition(role, *at, to));
	__real_iscsi_session_go(role, at, to);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* name is one of the words of a row: "M4" of "M1 M4". */
static inline bool took_is(const char *row, const char *name)
{
	const char *at = strstr(row, name);
	size_t n = strlen(name);

	return at && (at[n] == '\0' || at[n] == ' ');
}

/* assert_took: the role has taken this transition since the last took_forget; each one
 * counts once. */
static inline void assert_took(enum iscsi_role role, const char *name)
{
	bool found = false;

	for (unsigned i = 0; i < ntook; i++) {
		if (took[i].role != role || !took_is(took[i].name, name))
			continue;
		took[i].name[0] = '\0'; /* counts once */
		found = true;
		break;
	}
	if (!found)
		for (unsigned i = 0; i < ntook; i++)
			print_message("took: %s\n", took[i].name);
	if (!found)
		fail_msg("no transition %s", name);
}

/* assert_took_no: the role has not taken it since the last took_forget. */
static inline void assert_took_no(enum iscsi_role role, const char *name)
{
	for (unsigned i = 0; i < ntook; i++)
		if (took[i].role == role && took_is(took[i].name, name))
			fail_msg("transition %s", name);
}

static inline void took_forget(void)
{
	ntook = 0;
}

#endif
