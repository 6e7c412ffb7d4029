/* SPDX-License-Identifier: BSD-2-Clause */
/* rbd_store_test.c: the record of an RBD image: what every store must do. The argument
 * is the image as iserd has it, without "rbd:" and with conf=/FILE; OPENISER_MODULES names the folder of
 * backstore-rbd.so. */
#include "store_cases.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backstore/module.h"
#include "base/bytes.h"
#include "base/err.h"
#include "io/module.h"

static const struct bs_module *module;
static const char *image;

static struct {
	struct cluster_store *s;
	struct bs *b;
	struct io_loop *loops[1];
} opened[8];

static void say(const char *sentence)
{
	fprintf(stderr, "%s\n", sentence);
}

static struct bs *data_of(const struct cluster_store *s, unsigned *slot)
{
	for (unsigned i = 0; i < ARRAY_LEN(opened); i++)
		if (opened[i].s == s) {
			*slot = i;
			return opened[i].b;
		}
	return NULL;
}

/* A gateway is a process, whose images share a connection. Here each gateway has one of
 * its own, by a spelling of the path of its own: "conf=///FILE". */
static void spell(char *text, size_t size, const char *id)
{
	const char *conf = strstr(image, "conf=/");
	size_t n = 0;

	assert_non_null(conf);
	for (const char *c = id; *c; c++)
		n = (31 * n + (unsigned char)*c) % 61;
	snprintf(
		text, size, "%.*sconf=%.*s%s", (int)(conf - image), image,
		(int)n,
		"/////////////////////////////////////////////////////////////",
		conf + 5);
}

static struct cluster_store *open_rbd(struct io_loop *l, const char *id,
				      const struct cluster_store_events *ev)
{
	char spelled[512];
	struct bs_module_config cfg = {
		.name = image,
		.operand = spelled,
		.clustered = true,
		.block_size = 512,
		.say = say,
		.nloops = 1,
	};
	char why[512] = "";
	unsigned i = 0;
	int err = 0;

	spell(spelled, sizeof(spelled), id);
	data_of(NULL, &i);
	opened[i].loops[0] = l;
	cfg.loops = opened[i].loops;
	opened[i].b = module->open(&cfg, &err, why, sizeof(why));
	if (opened[i].b)
		opened[i].s = module->cluster(opened[i].b, id, ev, &err, why,
					      sizeof(why));
	if (!opened[i].s)
		fprintf(stderr, "%s (%d)\n", why, err);
	return opened[i].s;
}

static void shut_rbd(struct cluster_store *s)
{
	unsigned i = 0;
	struct bs *b = data_of(s, &i);

	s->ops->close(s);
	bs_close(b);
	opened[i].s = NULL;
}

struct transfer {
	struct bs_req req;
	unsigned ended;
	char data[4096];
	struct iovec iov;
};

static void transfer_done(struct bs_req *req)
{
	container_of(req, struct transfer, req)->ended++;
}

static int transfer(struct io_loop *l, struct cluster_store *s, enum bs_op op,
		    struct transfer *t)
{
	unsigned i = 0;

	t->iov = (struct iovec){ t->data, sizeof(t->data) };
	t->req.op = op;
	t->req.len = sizeof(t->data);
	t->req.data =
		(struct bufv){ .iov = &t->iov, .n = 1, .len = sizeof(t->data) };
	t->req.done = transfer_done;
	bs_submit(data_of(s, &i), &t->req);
	store_end_until(l, &t->ended);
	return t->req.result;
}

static int write_rbd(struct io_loop *l, struct cluster_store *s, char byte)
{
	struct transfer t = { .ended = 0 };

	memset(t.data, byte, sizeof(t.data));
	return transfer(l, s, BS_WRITE, &t);
}

static char read_rbd(struct io_loop *l, struct cluster_store *s)
{
	struct transfer t = { .ended = 0 };

	assert_int_equal(transfer(l, s, BS_READ, &t), 0);
	return t.data[0];
}

static const struct store_kit kit = {
	.open = open_rbd,
	.shut = shut_rbd,
	.write = write_rbd,
	.read = read_rbd,
};

/* A gateway that does not have the lock changes nothing. */
static void test_write_without_lock(void **state)
{
	struct cluster_request r = { .version = 0 };
	struct store_end a, b;
	struct io_loop *l;
	int err;

	(void)state;
	l = io_loop_new(IO_AUTO, &err);
	store_end_open(&a, l, "a");
	store_end_open(&b, l, "b");
	assert_int_equal(write_rbd(l, a.s, 'x'), ERR_TERMINATED);
	assert_int_equal(store_end_do(&a, a.s->ops->lock, &r), 0);
	assert_int_equal(write_rbd(l, a.s, 'a'), 0);
	assert_int_equal(write_rbd(l, b.s, 'x'), ERR_TERMINATED);
	assert_int_equal(store_end_do(&a, a.s->ops->unlock, &r), 0);
	assert_int_equal(write_rbd(l, a.s, 'x'), ERR_TERMINATED);
	assert_int_equal(read_rbd(l, b.s), 'a');
	shut_rbd(a.s);
	shut_rbd(b.s);
	io_loop_free(l);
}

/* In one process: the fence hits the connection, not the process, and its other
 * images go on. */
static void test_fence_one_connection(void **state)
{
	struct cluster_request r = { .whom = "a" };
	struct store_end a, b;
	struct io_loop *l;
	int err;

	(void)state;
	l = io_loop_new(IO_AUTO, &err);
	store_end_open(&a, l, "a");
	store_end_open(&b, l, "b");
	assert_int_equal(store_end_do(&a, a.s->ops->lock, &r), 0);
	assert_int_equal(store_end_do(&b, b.s->ops->fence, &r), 0);
	assert_int_equal(store_end_do(&b, b.s->ops->lock, &r), 0);
	assert_int_equal(write_rbd(l, b.s, 'b'), 0);
	store_end_until(l, &a.fenced); /* without a request of a */
	assert_int_equal(write_rbd(l, a.s, 'x'), ERR_TERMINATED);
	assert_int_equal(store_end_do(&a, a.s->ops->unlock, &r),
			 ERR_TERMINATED);
	assert_int_equal(read_rbd(l, b.s), 'b');
	shut_rbd(a.s);
	store_end_open(&a, l, "a");
	assert_int_equal(store_end_do(&b, b.s->ops->unlock, &r), 0);
	assert_int_equal(store_end_do(&a, a.s->ops->lock, &r), 0);
	assert_int_equal(write_rbd(l, a.s, 'a'), 0);
	shut_rbd(a.s);
	shut_rbd(b.s);
	io_loop_free(l);
}

/* ---- for tests/interop/test_rbd.py ---- */

static int read_damaged(void)
{
	struct cluster_request r = { .version = 0 };
	struct store_end e;
	struct io_loop *l;
	int err;

	l = io_loop_new(IO_AUTO, &err);
	store_end_open(&e, l, "a");
	printf("read %d\n", store_end_do(&e, e.s->ops->read, &r));
	shut_rbd(e.s);
	io_loop_free(l);
	return 0;
}

/* Takes notifications until there is input. */
static int serve(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	struct store_end e;
	struct io_loop *l;
	int err;

	l = io_loop_new(IO_AUTO, &err);
	store_end_open(&e, l, "a");
	printf("ready\n");
	fflush(stdout);
	while (poll(&in, 1, 0) == 0)
		io_loop_turn(l, 10 * XTIME_MS);
	printf("noted %u\n", e.noted);
	shut_rbd(e.s);
	io_loop_free(l);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_without_lock),
		cmocka_unit_test(test_fence_one_connection),
	};
	char *args[] = { argv[0], argv[1], NULL };
	char why[512] = "";
	void *handle;
	int err, failed;

	if (argc < 2)
		return 2;
	image = argv[1];
	module = io_module_load("backstore-rbd.so", BS_MODULE_SYMBOL, &handle,
				&err, why, sizeof(why));
	if (!module || module->abi != BS_MODULE_ABI) {
		fprintf(stderr, "%s\n", why);
		return 2;
	}
	store_cases_use(&kit);
	if (argc == 3 && strcmp(argv[2], "damaged") == 0)
		return read_damaged();
	if (argc == 3 && strcmp(argv[2], "serve") == 0)
		return serve();
	if (argc == 3)
		return store_cases_fenced(&kit);
	failed = store_cases_run(&kit, args);
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
