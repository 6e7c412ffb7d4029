/* SPDX-License-Identifier: BSD-2-Clause */
/* context.c: the loop of a context, messages, errors. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/internal.h"
#include "net/verbs.h"

const char *iser_version(void)
{
	return OPENISER_VERSION;
}

const char *iser_strerror(int err)
{
	switch ((enum iser_error)err) {
	case ISER_OK:
		return "no error";
	case ISER_E_NOMEM:
		return "out of memory";
	case ISER_E_INVALID:
		return "invalid argument";
	case ISER_E_CONNECT:
		return "could not connect";
	case ISER_E_LOGIN:
		return "login refused";
	case ISER_E_AUTH:
		return "authentication failed";
	case ISER_E_NOT_FOUND:
		return "not found";
	case ISER_E_TIMEOUT:
		return "timed out";
	case ISER_E_CLOSED:
		return "connection lost";
	case ISER_E_SCSI:
		return "the command failed";
	case ISER_E_PROTOCOL:
		return "protocol error";
	case ISER_E_UNSUPPORTED:
		return "not supported";
	case ISER_E_SYSTEM:
		return "system error";
	case ISER_E_ABORTED:
		return "the target dropped the command";
	}
	return "unknown error";
}

int lib_error(int err)
{
	switch (err) {
	case 0:
		return ISER_OK;
	case ERR_NOMEM:
	case -ENOMEM:
		return ISER_E_NOMEM;
	case ERR_TIMEOUT:
	case -ETIMEDOUT:
		return ISER_E_TIMEOUT;
	case ERR_CLOSED:
	case ERR_RESET:
	case -ECONNRESET:
	case -EPIPE:
		return ISER_E_CLOSED;
	case ERR_ABORTED:
		return ISER_E_ABORTED;
	case ERR_AUTH:
		return ISER_E_AUTH;
	case ERR_LOGIN:
	case ERR_DENIED:
		return ISER_E_LOGIN;
	case ERR_UNSUPPORTED:
		return ISER_E_UNSUPPORTED;
	case ERR_NOT_FOUND:
		return ISER_E_NOT_FOUND;
	default:
		return err > -1000 ? ISER_E_SYSTEM : ISER_E_PROTOCOL;
	}
}

int lib_fail(struct iser_context *ctx, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ctx->message, sizeof(ctx->message), fmt, ap);
	va_end(ap);
	return err;
}

const char *iser_message(const struct iser_context *ctx)
{
	return ctx->message;
}

static void emit(struct trace *t, enum trace_event event, const char *text)
{
	struct iser_context *ctx = container_of(t, struct iser_context, trace);

	if (ctx->log)
		ctx->log(ctx->log_arg, (int)trace_event_level(event), text);
}

void iser_set_log(struct iser_context *ctx, int level,
		  void (*fn)(void *arg, int level, const char *text), void *arg)
{
	ctx->trace.level = (enum trace_level)MIN(MAX(level, 0), 4);
	ctx->log = fn;
	ctx->log_arg = arg;
}

static void default_name(char out[ISCSI_NAME_MAX + 1])
{
	char host[128] = "localhost";

	gethostname(host, sizeof(host) - 1);
	for (char *p = host; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	snprintf(out, ISCSI_NAME_MAX + 1, "iqn.2026-01.org.openiser:%s", host);
}

struct iser_context *iser_context_new(const char *initiator_name)
{
	struct iser_context *ctx = calloc(1, sizeof(*ctx));
	int err;

	if (!ctx)
		return NULL;
	ctx->trace = (struct trace){ .emit = emit };
	list_init(&ctx->sessions);
	list_init(&ctx->rdma);
	list_init(&ctx->rdma_listeners);
	if (initiator_name)
		snprintf(ctx->initiator, sizeof(ctx->initiator), "%s",
			 initiator_name);
	else
		default_name(ctx->initiator);
	/* sessions of one initiator name differ in their ISID (§11.12.5) */
	io_random(NULL, (uint8_t *)&ctx->next_isid, sizeof(ctx->next_isid));
	ctx->loop = io_loop_new(IO_EPOLL, &err);
	if (!ctx->loop) {
		free(ctx);
		return NULL;
	}
	return ctx;
}

void iser_context_free(struct iser_context *ctx)
{
	if (!ctx)
		return;
	while (!list_empty(&ctx->sessions))
		iser_disconnect(list_entry(ctx->sessions.next,
					   struct iser_session, link));
	lib_rdma_free_all(ctx);
	net_verbs_close(ctx->verbs);
	io_loop_free(ctx->loop);
	free(ctx);
}

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
