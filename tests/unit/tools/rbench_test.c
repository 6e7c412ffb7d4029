/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rbench_test.c: iser rbench on an RDMA device that reports the answer of the
 * peer before the completion of the request. The functions below replace those
 * of the library (--wrap of the linker) and find a request that is posted again
 * before its completion.
 */
#include <string.h>

#include "cmocka_all.h"
#include "tools/rdma/rbench.h"

#define SIZE 65536

/* The only connection of the device. */
static struct {
	const struct iser_rdma_callbacks *callbacks;
	void *arg;
	bool established, closing;
	struct iser_rdma_recv *recvs[64];
	unsigned first, last;
	struct iser_rdma_wr *out; /* posted and not completed */
	bool answered;		  /* the peer has answered out */
	enum iser_rdma_op op;
	uint8_t *landing; /* of the client's region */
	unsigned posted;
} dev;

static struct iser_rdma *handle(void)
{
	return (struct iser_rdma *)&dev;
}

static void deliver_message(const struct rbench_region *region, size_t len)
{
	struct iser_rdma_recv *r = dev.recvs[dev.first++ % 64];

	assert_true(dev.first <= dev.last);
	if (region)
		rbench_put_region(region, r->buf);
	r->err = 0;
	r->len = len;
	r->done(r);
}

static void complete_request(struct iser_rdma_wr *wr)
{
	dev.out = NULL;
	wr->err = 0;
	wr->done(wr);
}

struct iser_rdma *__wrap_iser_rdma_connect_start(
	struct iser_context *ctx, const char *host, uint16_t port,
	const struct iser_rdma_options *options, const void *private_data,
	size_t private_len, const struct iser_rdma_callbacks *callbacks,
	void *arg, int *err);
int __wrap_iser_rdma_post(struct iser_rdma *c, struct iser_rdma_wr *const *wr,
			  unsigned n);
int __wrap_iser_rdma_post_recv(struct iser_rdma *c, struct iser_rdma_recv *r);
int __wrap_iser_rdma_register(struct iser_rdma *c, struct iovec *iov,
			      unsigned niov, uint64_t base, unsigned rights,
			      struct iser_rdma_mr *mr);
void __wrap_iser_rdma_get_info(const struct iser_rdma *c,
			       struct iser_rdma_info *info);
void __wrap_iser_rdma_get_stats(const struct iser_rdma *c,
				struct iser_rdma_stats *stats);
void __wrap_iser_rdma_disconnect(struct iser_rdma *c);
void __wrap_iser_rdma_free(struct iser_rdma *c);
int __wrap_iser_service(struct iser_context *ctx, int timeout_ms);

struct iser_rdma *__wrap_iser_rdma_connect_start(
	struct iser_context *ctx, const char *host, uint16_t port,
	const struct iser_rdma_options *options, const void *private_data,
	size_t private_len, const struct iser_rdma_callbacks *callbacks,
	void *arg, int *err)
{
	(void)ctx;
	(void)host;
	(void)port;
	(void)options;
	(void)private_data;
	(void)private_len;
	(void)err;
	memset(&dev, 0, sizeof(dev));
	dev.callbacks = callbacks;
	dev.arg = arg;
	return handle();
}

int __wrap_iser_rdma_post(struct iser_rdma *c, struct iser_rdma_wr *const *wr,
			  unsigned n)
{
	size_t len = wr[0]->iov[0].iov_len;

	(void)c;
	assert_int_equal(n, 1);
	if (len == RBENCH_CONTROL) { /* completes at once */
		struct rbench_region region;

		rbench_get_region(&region, wr[0]->iov[0].iov_base);
		dev.closing = region.base == RBENCH_END;
		wr[0]->err = 0;
		wr[0]->done(wr[0]);
		return 0;
	}
	assert_null(dev.out); /* posted twice */
	dev.out = wr[0];
	dev.op = wr[0]->op;
	dev.answered = false;
	dev.posted++;
	return 0;
}

int __wrap_iser_rdma_post_recv(struct iser_rdma *c, struct iser_rdma_recv *r)
{
	(void)c;
	dev.recvs[dev.last++ % 64] = r;
	return 0;
}

int __wrap_iser_rdma_register(struct iser_rdma *c, struct iovec *iov,
			      unsigned niov, uint64_t base, unsigned rights,
			      struct iser_rdma_mr *mr)
{
	(void)c;
	(void)niov;
	(void)base;
	(void)rights;
	memset(mr, 0, sizeof(*mr));
	dev.landing = iov[0].iov_base;
	return 0;
}

void __wrap_iser_rdma_get_info(const struct iser_rdma *c,
			       struct iser_rdma_info *info)
{
	(void)c;
	memset(info, 0, sizeof(*info));
	info->device = "fake0";
}

void __wrap_iser_rdma_get_stats(const struct iser_rdma *c,
				struct iser_rdma_stats *stats)
{
	(void)c;
	memset(stats, 0, sizeof(*stats));
}

void __wrap_iser_rdma_disconnect(struct iser_rdma *c)
{
	dev.callbacks->closed(dev.arg, c, 0);
}

void __wrap_iser_rdma_free(struct iser_rdma *c)
{
	(void)c;
}

/* One turn of the loop: the start, or one step of a request. The answer comes
 * first, the completion in the next turn. */
int __wrap_iser_service(struct iser_context *ctx, int timeout_ms)
{
	static const struct rbench_region theirs = { .len = SIZE },
					  end = { .base = RBENCH_END };

	(void)ctx;
	(void)timeout_ms;
	if (!dev.established) {
		const struct iser_rdma_peer peer = { 0 };

		dev.established = true;
		dev.callbacks->established(dev.arg, handle(), &peer);
		deliver_message(&theirs, RBENCH_CONTROL);
	} else if (dev.closing) {
		dev.closing = false;
		deliver_message(&end, RBENCH_CONTROL);
	} else if (dev.out && !dev.answered && dev.op != ISER_RDMA_READ) {
		const uint8_t *sent = dev.out->iov[0].iov_base;

		dev.answered = true;
		if (dev.op == ISER_RDMA_WRITE)
			dev.landing[SIZE - 1] = sent[SIZE - 1];
		else
			deliver_message(NULL, SIZE);
	} else if (dev.out) {
		complete_request(dev.out);
	}
	return 0;
}

static int rbench(const char *test)
{
	char *argv[] = {
		(char *)(uintptr_t) "--rcap",	    (char *)(uintptr_t) "verbs",
		(char *)(uintptr_t) "--iterations", (char *)(uintptr_t) "300",
		(char *)(uintptr_t) "--test",	    (char *)(uintptr_t)test,
		(char *)(uintptr_t) "192.0.2.1",    NULL
	};

	return command_run(&command_rbench, 7, argv);
}

static void test_an_answer_before_the_completion(void **state)
{
	static const char *const tests[] = { "send_lat", "write_lat",
					     "read_lat" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(rbench(tests[i]), 0);
		assert_int_equal(dev.posted, 300);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_before_the_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
