/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adopt_test.c: a session over a connection of an RDMA device, while the n-th
 * allocation fails, for every n: each connection is freed once, and a datamover
 * that was freed gets no calls, and freed memory has no secrets.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "fail_alloc.h"
#include "initiator/initiator.h"
#include "lib/internal.h"
#include "net/verbs.h"

/* ---- freed memory ---- */

#define SECRET "secret-of-joe"

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p)
{
	bool found =
		p && memmem(p, malloc_usable_size(p), SECRET, strlen(SECRET));

	__real_free(p);
	assert_false(found);
}

/* ---- a device whose peer never answers ---- */

struct verbs_conn {
	struct rcap_qp qp;
	struct io_loop *l;
	struct io_defer end;
	struct list recvs;
	void (*gone)(void *arg);
	void *gone_arg;
	int err;
};

static struct iser_context *ctx;
static unsigned made, freed;

static struct verbs_conn *conn_of(struct rcap_qp *qp)
{
	return container_of(qp, struct verbs_conn, qp);
}

static void post_recv(struct rcap_qp *qp, struct rcap_recv *r)
{
	list_push_back(&conn_of(qp)->recvs, &r->link);
}

static void terminate(struct rcap_qp *qp, int err, const char *why)
{
	struct verbs_conn *c = conn_of(qp);

	(void)why;
	qp->state = RCAP_CLOSING;
	c->err = err;
	io_loop_defer(c->l, &c->end);
}

static void disconnect(struct rcap_qp *qp, xtime grace)
{
	(void)grace;
	terminate(qp, 0, "closed");
}

static void end(struct io_defer *d)
{
	struct verbs_conn *c = container_of(d, struct verbs_conn, end);
	struct list *n;

	c->qp.state = RCAP_CLOSED;
	while ((n = list_pop_front(&c->recvs)))
		c->qp.user->received(c->qp.arg,
				     list_entry(n, struct rcap_recv, link),
				     ERR_ABORTED);
	c->qp.user->closed(c->qp.arg, c->err, "over");
	c->gone(c->gone_arg);
}

static const struct rcap_ops ops = {
	.post_recv = post_recv,
	.disconnect = disconnect,
	.terminate = terminate,
};

static struct rcap_qp *qp(struct verbs_conn *c)
{
	return &c->qp;
}

static void on_gone(struct verbs_conn *c, void (*gone)(void *arg), void *arg)
{
	c->gone = gone;
	c->gone_arg = arg;
}

static void conn_free(struct verbs_conn *c)
{
	assert_in_range(++freed, 1, made);
	io_defer_cancel(&c->end);
	free(c);
}

static const struct verbs_module module = {
	.abi = VERBS_ABI,
	.qp = qp,
	.on_gone = on_gone,
	.free = conn_free,
};

/* ---- replaces net/verbs.c ---- */

struct net_verbs *net_verbs_open(struct io_loop *l,
				 const struct verbs_host *host, int *err,
				 char *why, size_t size)
{
	(void)l;
	(void)host;
	(void)err;
	(void)why;
	(void)size;
	return (struct net_verbs *)(uintptr_t)&module; /* opaque to the library */
}

void net_verbs_close(struct net_verbs *v)
{
	(void)v;
}

const struct verbs_module *net_verbs_module(const struct net_verbs *v)
{
	(void)v;
	return &module;
}

struct verbs *net_verbs_handle(const struct net_verbs *v)
{
	(void)v;
	return NULL;
}

struct verbs_conn *net_verbs_connect(struct net_verbs *v,
				     const struct net_addr *a, int *err)
{
	struct verbs_conn *c = calloc(1, sizeof(*c));

	(void)v;
	(void)a;
	*err = -ENOMEM;
	if (!c)
		return NULL;
	made++;
	c->l = ctx->loop;
	c->qp.ops = &ops;
	c->end.run = end;
	list_init(&c->end.link);
	list_init(&c->recvs);
	return c;
}

/* ---- tests ---- */

/* Returns whether there was an n-th allocation, which failed. */
static bool run_failing(unsigned long nth, const struct iser_url *url)
{
	struct iser_session *s;
	int err;

	made = freed = 0;
	failed = false;
	countdown = nth;
	s = iser_connect_start(ctx, url, NULL, NULL, &err);
	countdown = 0;
	assert_true(s ? err == 0 : failed && err < 0);
	assert_true(s || list_empty(&ctx->sessions));
	if (s && !failed) {
		assert_int_equal(s->state, SESSION_LOGIN);
		assert_true(ini_deadline(s->ini) != XTIME_NEVER);
	}
	iser_disconnect(s);
	assert_int_equal(freed, made);
	assert_true(list_empty(&ctx->sessions));
	return failed;
}

static void test_nth_allocation_fails(void **state)
{
	struct iser_url url;
	char why[256];
	unsigned long n = 1;

	(void)state;
	ctx = iser_context_new("iqn.i");
	assert_non_null(ctx);
	assert_int_equal(iser_url_parse(&url,
					"iser://joe%" SECRET
					"@127.0.0.1/iqn.t/0"
					"?rcap=verbs",
					false, why, sizeof(why)),
			 0);
	while (run_failing(n, &url))
		n++;
	assert_int_equal(made, 1);
	assert_true(n > 8);
	iser_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nth_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
