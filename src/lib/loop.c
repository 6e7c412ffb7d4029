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

int lib_wait(struct iser_context *ctx, const bool *flag)
{
	while (!*flag) {
		int err = iser_service(ctx, -1);

		if (err)
			return err;
	}
	return 0;
}
