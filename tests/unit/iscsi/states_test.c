/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states_test.c: docs/states.md shows the tables of states.c and rx_state.h.
 * With an argument this program writes that file; without one it checks that
 * the file in the tree shows the present tables. The rest of the file, from END on, is
 * written by tests/arch/states_map.py.
 */
#include "iscsi/states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "datamover/tcp/rx_state.h"

#define END "<!-- written by tests/arch/states_map.py -->\n"

static void conn_table(FILE *f, enum iscsi_role role)
{
	fputs("| from \\ to |", f);
	for (int to = 0; to <= ISCSI_S8_CLEANUP_WAIT; to++)
		fprintf(f, " %s |",
			iscsi_conn_state_str((enum iscsi_conn_state)to));
	fputs("\n|---|", f);
	for (int to = 0; to <= ISCSI_S8_CLEANUP_WAIT; to++)
		fputs("---|", f);
	for (int from = 0; from <= ISCSI_S8_CLEANUP_WAIT; from++) {
		fprintf(f, "\n| %s |",
			iscsi_conn_state_str((enum iscsi_conn_state)from));
		for (int to = 0; to <= ISCSI_S8_CLEANUP_WAIT; to++)
			fprintf(f, " %s |",
				iscsi_conn_transition(
					role, (enum iscsi_conn_state)from,
					(enum iscsi_conn_state)to));
	}
	fputs("\n", f);
}

static void session_table(FILE *f, enum iscsi_role role)
{
	fputs("| from \\ to |", f);
	for (int to = 0; to <= ISCSI_Q5_CONTINUE; to++)
		fprintf(f, " %s |",
			iscsi_session_state_str((enum iscsi_session_state)to));
	fputs("\n|---|", f);
	for (int to = 0; to <= ISCSI_Q5_CONTINUE; to++)
		fputs("---|", f);
	for (int from = 0; from <= ISCSI_Q5_CONTINUE; from++) {
		fprintf(f, "\n| %s |",
			iscsi_session_state_str(
				(enum iscsi_session_state)from));
		for (int to = 0; to <= ISCSI_Q5_CONTINUE; to++)
			fprintf(f, " %s |",
				iscsi_session_transition(
					role, (enum iscsi_session_state)from,
					(enum iscsi_session_state)to));
	}
	fputs("\n", f);
}

/* [from][to] of struct rx; the transitions have no names. */
static void rx_table(FILE *f)
{
	static const char *const names[] = { "HEADER", "PAYLOAD", "TRAILER",
					     "HELD",   "RESUMED", "STOPPED" };

	fputs("| from \\ to |", f);
	for (unsigned to = 0; to < ARRAY_LEN(names); to++)
		fprintf(f, " %s |", names[to]);
	fputs("\n|---|", f);
	for (unsigned to = 0; to < ARRAY_LEN(names); to++)
		fputs("---|", f);
	for (unsigned from = 0; from < ARRAY_LEN(names); from++) {
		fprintf(f, "\n| %s |", names[from]);
		for (unsigned to = 0; to < ARRAY_LEN(names); to++)
			fprintf(f, " %s |",
				dmtcp_rx_may_go[from] & BIT(to) ? "x" : "");
	}
	fputs("\n", f);
}

static void write_all(FILE *f)
{
	fputs("# State machines\n\n"
	      "tests/unit/iscsi/states_test.c writes this file from the tables "
	      "in src/iscsi/states.c and\nsrc/datamover/tcp/rx_state.h. "
	      "Connections and sessions have the names of RFC 7143 section "
	      "8.\n\n## Connection, initiator\n\n",
	      f);
	conn_table(f, ISCSI_INITIATOR);
	fputs("\n## Connection, target\n\n", f);
	conn_table(f, ISCSI_TARGET);
	fputs("\n## Session, initiator\n\n", f);
	session_table(f, ISCSI_INITIATOR);
	fputs("\n## Session, target\n\n", f);
	session_table(f, ISCSI_TARGET);
	fputs("\n## Receiving PDUs over TCP\n\n", f);
	rx_table(f);
	fputs("\n" END, f);
}

static void test_states_md_is_up_to_date(void **state)
{
	static char made[16384], found[32768];
	FILE *f = fmemopen(made, sizeof(made), "w");
	const char *path = getenv("STATES_MD");
	size_t n;

	(void)state;
	assert_non_null(f);
	write_all(f);
	fclose(f);
	assert_non_null(path);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(found, 1, sizeof(found) - 1, f);
	fclose(f);
	found[n] = '\0';
	assert_non_null(strstr(found, END));
	strstr(found, END)[strlen(END)] = '\0';
	assert_string_equal(found, made);
}

/* A transition that the standard's tables leave blank is not allowed. */
static void test_blank_transitions_rfc7143_8(void **state)
{
	(void)state;
	assert_false(iscsi_conn_may_go(ISCSI_TARGET, ISCSI_S1_FREE,
				       ISCSI_S5_LOGGED_IN));
	assert_false(iscsi_conn_may_go(ISCSI_TARGET, ISCSI_S5_LOGGED_IN,
				       ISCSI_S4_IN_LOGIN));
	assert_false(iscsi_conn_may_go(ISCSI_TARGET, ISCSI_S6_IN_LOGOUT,
				       ISCSI_S6_IN_LOGOUT)); /* T14 */
	assert_true(iscsi_conn_may_go(ISCSI_INITIATOR, ISCSI_S6_IN_LOGOUT,
				      ISCSI_S6_IN_LOGOUT));
	assert_false(iscsi_session_may_go(ISCSI_INITIATOR, ISCSI_Q1_FREE,
					  ISCSI_Q2_ACTIVE));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_md_is_up_to_date),
		cmocka_unit_test(test_blank_transitions_rfc7143_8),
	};

	if (argc == 2) {
		FILE *f = fopen(argv[1], "w");

		if (!f)
			return 1;
		write_all(f);
		return fclose(f) ? 1 : 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
