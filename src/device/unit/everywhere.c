/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * everywhere.c: a visit to every worker, one after the other, by one message:
 * how a change of a unit comes into force without a lock.
 */
#include "device/unit/unit.h"

static void hop(struct dev_round *r, unsigned here, unsigned to,
		void (*run)(struct dev_msg *m))
{
	const struct dev_env *env = &r->server->env;

	r->msg.run = run;
	if (here == to)
		run(&r->msg);
	else
		env->post(env->arg, to, &r->msg);
}

static void arrived(struct dev_msg *m)
{
	struct dev_round *r = container_of(m, struct dev_round, msg);

	r->visit(r, r->at);
}

static void back(struct dev_msg *m)
{
	struct dev_round *r = container_of(m, struct dev_round, msg);

	r->done(r);
}

void dev_round_start(struct dev_round *r, unsigned here)
{
	r->from = here;
	r->at = 0;
	hop(r, here, 0, arrived);
}

void dev_round_next(struct dev_round *r)
{
	unsigned here = r->at;

	if (++r->at == r->server->env.nworkers)
		hop(r, here, r->from, back);
	else
		hop(r, here, r->at, arrived);
}

void dev_round_go(struct dev_round *r, unsigned here, unsigned to,
		  void (*run)(struct dev_msg *m))
{
	hop(r, here, to, run);
}
