/* SPDX-License-Identifier: BSD-2-Clause */
/* env.h: a fixture with sessions whose unit attentions are cleared, for each
 * case of a program. */
#ifndef TESTS_TARGET_ENV_H
#define TESTS_TARGET_ENV_H

#include "cmocka_all.h"
#include "device/unit/unit.h"
#include "fixture.h"

struct env {
	struct fixture *r;
	struct peer *p, *other; /* other: NULL, or on another worker */
};

static inline int env_open(void **state, unsigned sessions)
{
	static struct env e;

	e = (struct env){ .r = fixture_new(sessions, NULL) };
	e.p = peer_session(e.r, 0, 1);
	if (sessions > 1)
		e.other = peer_session(e.r, 1, 2);
	peer_ready(e.p);
	if (e.other)
		peer_ready(e.other);
	*state = &e;
	return 0;
}

static inline int env_one(void **state)
{
	return env_open(state, 1);
}

static inline int env_two(void **state)
{
	return env_open(state, 2);
}

static inline int env_close(void **state)
{
	struct env *e = *state;

	fixture_free(e->r);
	return 0;
}

static inline struct dev_control *control_page(struct env *e)
{
	return &dev_lu_get(e->r->server, 0)->ctl;
}

#define ONE(f) cmocka_unit_test_setup_teardown(f, env_one, env_close)
#define TWO(f) cmocka_unit_test_setup_teardown(f, env_two, env_close)

#endif
