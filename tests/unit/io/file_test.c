/* SPDX-License-Identifier: BSD-2-Clause */
/* file_test.c: file operations by completion. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "both.h"
#include "io/io.h"

struct file_op {
	struct io_file_op op;
	struct iovec iov[2];
	unsigned done;
	int64_t result;
};

static void done(struct io_file_op *op, int64_t result)
{
	struct file_op *x = container_of(op, struct file_op, op);

	x->done++;
	x->result = result;
}

static int temp_file(void)
{
	char path[] = "/tmp/openiser-io-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static int64_t run(struct io_loop *l, struct file_op *x)
{
	x->op.done = done;
	io_file_submit(l, &x->op);
	assert_int_equal(x->done, 0); /* not from within io_file_submit */
	both_turns(l, &x->done, 1);
	return x->result;
}

static int64_t transfer(struct io_loop *l, enum io_file_opcode opcode, int fd,
			uint64_t off, void *data, size_t len)
{
	struct file_op x = {
		.op = { .opcode = opcode, .fd = fd, .off = off, .niov = 2 },
		.iov = { { data, 3 }, { (char *)data + 3, len - 3 } },
	};

	x.op.iov = x.iov;
	return run(l, &x);
}

static void test_file_write_sync_read(void **state)
{
	struct io_loop *l = both_loop(state);
	struct file_op sync = { .op = { .opcode = IO_FILE_SYNC } };
	char text[] = "in two pieces", back[sizeof(text)];
	int fd = temp_file();

	assert_int_equal(transfer(l, IO_FILE_WRITE, fd, 5, text, sizeof(text)),
			 sizeof(text));
	sync.op.fd = fd;
	assert_int_equal(run(l, &sync), 0);
	assert_int_equal(transfer(l, IO_FILE_READ, fd, 5, back, sizeof(back)),
			 sizeof(back));
	assert_string_equal(back, text);
	/* a short transfer is reported, not retried */
	assert_int_equal(transfer(l, IO_FILE_READ, fd, 10, back, sizeof(back)),
			 sizeof(back) - 5);
	close(fd);
}

static void test_file_fallocate(void **state)
{
	struct io_loop *l = both_loop(state);
	struct file_op x = {
		.op = { .opcode = IO_FILE_FALLOCATE, .off = 4096, .len = 8192 }
	};
	int fd = temp_file();
	struct stat st;

	x.op.fd = fd;
	assert_int_equal(run(l, &x), 0);
	fstat(fd, &st);
	assert_int_equal(st.st_size, 12288);
	close(fd);
}

static void test_file_errors_are_told(void **state)
{
	struct io_loop *l = both_loop(state);
	int fd = open("/dev/null", O_RDONLY);
	struct file_op sync = { .op = { .opcode = IO_FILE_SYNC, .fd = -1 } };
	char data[8];

	assert_int_equal(transfer(l, IO_FILE_WRITE, fd, 0, data, 8), -EBADF);
	assert_int_equal(run(l, &sync), -EBADF);
	close(fd);
}

static int64_t compute(struct io_file_op *op)
{
	return (int64_t)op->off * 2;
}

#define MANY 1500 /* more than the ring has entries, more than IO_POOL_MAX */

static void test_file_calls_and_files_many_at_once(void **state)
{
	struct io_loop *l = both_loop(state);
	struct file_op *x = calloc(MANY, sizeof(*x));
	char zero = 0;
	int fd = temp_file();

	for (unsigned i = 0; i < MANY; i++) {
		x[i].op = (struct io_file_op){
			.opcode = i % 2 ? IO_FILE_CALL : IO_FILE_WRITE,
			.fd = fd,
			.off = i,
			.iov = x[i].iov,
			.niov = 1,
			.call = compute,
			.done = done,
		};
		x[i].iov[0] = (struct iovec){ &zero, 1 };
		io_file_submit(l, &x[i].op);
	}
	for (unsigned i = 0; i < MANY; i++) {
		both_turns(l, &x[i].done, 1);
		assert_int_equal(x[i].result, i % 2 ? i * 2 : 1);
	}
	close(fd);
	free(x);
}

static void chain_done(struct io_file_op *op, int64_t result)
{
	struct file_op *x = container_of(op, struct file_op, op);

	assert_int_equal(result, op->off * 2);
	if (++x->done < 10)
		io_file_submit(op->loop, op);
}

static void test_file_submit_from_done(void **state)
{
	struct io_loop *l = both_loop(state);
	struct file_op x = { .op = { .opcode = IO_FILE_CALL,
				     .off = 21,
				     .call = compute,
				     .done = chain_done } };

	io_file_submit(l, &x.op);
	both_turns(l, &x.done, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_file_write_sync_read),
		BOTH(test_file_fallocate),
		BOTH(test_file_errors_are_told),
		BOTH(test_file_calls_and_files_many_at_once),
		BOTH(test_file_submit_from_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
