/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.c: the event loop of a context. */
#include <poll.h>
#include <string.h>

#include "lib/internal.h"

int iser_get_fd(struct iser_context *ctx)
{
	return io_loop_fd(ctx->loop);
}

int iser_which_events(struct iser_context *ctx)
{
	(void)ctx;
	return POLLIN;
}

int iser_next_timeout(struct iser_context *ctx)
{
	xtime at = io_loop_next_timer(ctx->loop), now = io_now_exact();

	if (at == XTIME_NEVER)
		return -1;
	if (at <= now)
		return 0;
	return (int)MIN((at - now + XTIME_MS - 1) / XTIME_MS, 1000000);
}

int iser_service(struct iser_context *ctx, int timeout_ms)
{
	int r = io_loop_turn(ctx->loop, timeout_ms < 0 ? XTIME_NEVER
						       : timeout_ms * XTIME_MS);

	if (r < 0)
		return lib_fail(ctx, ISER_E_SYSTEM, "the event loop failed: %s",
				strerror(-r));
	return 0;
}

void iser_set_spin(struct iser_context *ctx, unsigned microseconds)
{
	io_loop_set_spin(ctx->loop, microseconds * XTIME_US);
}

static void run_call(struct io_post *p)
{
	struct iser_call *c = (struct iser_call *)(void *)p;

	c->run(c);
}

void iser_call(struct iser_context *ctx, struct iser_call *c)
{
	/* the first members of the private part are a struct io_post */
	struct io_post *p = (struct io_post *)(void *)c;

	_Static_assert(offsetof(struct iser_call, library) == 0 &&
			       sizeof(struct io_post) <= sizeof(c->library),
		       "iser_call has room for io_post");
	p->run = run_call;
	io_loop_post(ctx->loop, p);
}

int lib_wait(struct iser_context *ctx, const bool *flag)
{
	while (!*flag) {
		int err = iser_service(ctx, -1);

		if (err)
			return err;
	}
	return 0;
}
