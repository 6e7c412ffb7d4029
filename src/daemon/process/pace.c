/* SPDX-License-Identifier: BSD-2-Clause */
/* pace.c: see pace.h. */
#include "daemon/process/pace.h"

#include "base/bytes.h"

bool pace_may(struct credit *c, xtime now)
{
	if (!c->at)
		c->left = c->burst;
	else
		c->left = MIN(c->burst, c->left + (now - c->at) / c->part);
	c->at = now;
	return c->left > 0;
}

xtime pace_due(const struct credit *c, xtime now)
{
	return now + (1 - c->left) * c->part;
}

void pace_use(struct credit *c, xtime took)
{
	c->left = MAX(c->left - took, -PACE_DEBT * c->burst);
}

static void run_piece(struct pace *p)
{
	xtime began = io_now_exact();

	p->is_running = true;
	p->is_asked = false;
	p->run(p);
	p->is_running = false;
	pace_use(&p->credit, io_now_exact() - began);
	if (p->is_asked)
		pace_ask(p);
}

static void run_later(struct io_defer *d)
{
	run_piece(container_of(d, struct pace, later));
}

static void run_due(struct io_timer *t)
{
	run_piece(container_of(t, struct pace, wait));
}

void pace_init(struct pace *p, struct io_loop *loop, const struct credit *c,
	       void (*run)(struct pace *p))
{
	*p = (struct pace){ .loop = loop,
			    .credit = *c,
			    .run = run,
			    .later.run = run_later,
			    .wait.fire = run_due };
	list_init(&p->later.link);
}

void pace_ask(struct pace *p)
{
	xtime now = io_now(p->loop);

	p->is_asked = true;
	if (p->is_running || p->wait.heap_index)
		return;
	if (pace_may(&p->credit, now) ||
	    io_timer_set(p->loop, &p->wait, pace_due(&p->credit, now)))
		io_loop_give_way(p->loop, &p->later);
}

void pace_end(struct pace *p)
{
	if (!p->loop)
		return;
	io_defer_cancel(&p->later);
	io_timer_clear(p->loop, &p->wait);
}
