/* SPDX-License-Identifier: BSD-2-Clause */
/* state_test.c: the changes of state that a session may make. */
#include <string.h>

#include "cmocka_all.h"
#include "lib/internal.h"

#define STATES (SESSION_DOWN + 1)

static void test_lib_session_may_go(void **state)
{
	/* rows: from; columns: CONNECTING LOGIN UP AWAY CLOSING DOWN */
	static const char *const want[STATES] = {
		[SESSION_CONNECTING] = "-x--xx", [SESSION_LOGIN] = "x-x-xx",
		[SESSION_UP] = "---xxx",	 [SESSION_AWAY] = "--xxxx",
		[SESSION_CLOSING] = "-----x",	 [SESSION_DOWN] = "----x-",
	};

	(void)state;
	for (unsigned from = 0; from < STATES; from++)
		for (unsigned to = 0; to < STATES; to++)
			assert_int_equal(
				lib_session_may_go((enum session_state)from,
						   (enum session_state)to),
				want[from][to] == 'x');
}

/* A lost session: each attempt fails, then the session is down. */
static void test_lib_session_go_after_a_loss(void **state)
{
	struct iser_session s = { .state = SESSION_UP };

	(void)state;
	lib_session_go(&s, SESSION_AWAY);
	lib_session_go(&s, SESSION_AWAY);
	s.err = ISER_E_CONNECT;
	lib_session_go(&s, SESSION_DOWN);
	assert_false(iser_is_connected(&s));
	lib_session_go(&s, SESSION_CLOSING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lib_session_may_go),
		cmocka_unit_test(test_lib_session_go_after_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
