/* SPDX-License-Identifier: BSD-2-Clause */
/* context.c: making and freeing a context, and its log. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal.h"
#include "net/verbs.h"

static void emit_event(struct trace *t, enum trace_event event,
		       const struct trace_about *about, const char *text)
{
	struct iser_context *ctx = container_of(t, struct iser_context, trace);

	(void)about;
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

/* An iSCSI name with the host's name, mapped to the characters that RFC 3722
 * §6.2 allows. */
static void default_name(char out[ISCSI_NAME_MAX + 1])
{
	char host[128];

	net_host_name(host, sizeof(host));
	for (char *p = host; *p; p++) {
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
		else if (!(*p >= 'a' && *p <= 'z') &&
			 !(*p >= '0' && *p <= '9') && *p != '.')
			*p = '-';
	}
	snprintf(out, ISCSI_NAME_MAX + 1, "iqn.2026-01.org.openiser:%s",
		 host[0] ? host : "localhost");
}

struct iser_context *iser_context_new(const char *initiator_name)
{
	struct iser_context *ctx;
	int err;

	if (initiator_name && strlen(initiator_name) > ISCSI_NAME_MAX) {
		errno = EINVAL; /* RFC 7143 §4.2.7.1 */
		return NULL;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	ctx->trace = (struct trace){ .emit = emit_event };
	list_init(&ctx->sessions);
	list_init(&ctx->rdma);
	list_init(&ctx->rdma_listeners);
	if (initiator_name)
		strcpy(ctx->initiator, initiator_name);
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
	if (ctx->free_rdma)
		ctx->free_rdma(ctx);
	net_verbs_close(ctx->verbs);
	io_loop_free(ctx->loop);
	free(ctx);
}
