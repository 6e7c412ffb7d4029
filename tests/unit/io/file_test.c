/* SPDX-License-Identifier: BSD-2-Clause */
/* file_test.c: file operations by completion. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

#define BLOCK  4096u
#define DIRECT 700u /* more than the kernel takes at once */

/* Submits a transfer of each block of fd and waits for all. */
static void transfer_blocks(struct io_loop *l, enum io_file_opcode opcode,
			    int fd, uint8_t *data)
{
	struct file_op *x = calloc(DIRECT, sizeof(*x));

	for (unsigned i = 0; i < DIRECT; i++) {
		x[i].op = (struct io_file_op){
			.opcode = opcode,
			.fd = fd,
			.direct = true,
			.off = (uint64_t)i * BLOCK,
			.iov = x[i].iov,
			.niov = 1,
			.done = done,
		};
		x[i].iov[0] = (struct iovec){ data + i * BLOCK, BLOCK };
		io_file_submit(l, &x[i].op);
		assert_int_equal(x[i].done, 0);
	}
	for (unsigned i = 0; i < DIRECT; i++) {
		both_turns(l, &x[i].done, 1);
		assert_int_equal(x[i].result, BLOCK);
	}
	free(x);
}

/* The first writes have to allocate blocks, which may wait. */
static void test_direct_transfers(void **state)
{
	struct io_loop *l = both_loop(state);
	uint8_t *data = aligned_alloc(BLOCK, DIRECT * BLOCK);
	uint8_t *copy = aligned_alloc(BLOCK, DIRECT * BLOCK);
	char path[] = "openiser-io-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	for (unsigned i = 0; i < DIRECT * BLOCK; i++)
		data[i] = (uint8_t)(i / BLOCK * 5 + i);
	if (fcntl(fd, F_SETFL, O_DIRECT) < 0)
		print_message("no O_DIRECT here: with the page cache\n");
	for (int i = 0; i < 2; i++)
		transfer_blocks(l, IO_FILE_WRITE, fd, data);
	transfer_blocks(l, IO_FILE_READ, fd, copy);
	assert_memory_equal(copy, data, DIRECT * BLOCK);
	close(fd);
	free(data);
	free(copy);
}

/* An error of one transfer leaves the rest of its turn alone. */
static void test_direct_errors(void **state)
{
	struct io_loop *l = both_loop(state);
	uint8_t *data = aligned_alloc(BLOCK, BLOCK);
	char path[] = "openiser-io-XXXXXX";
	int fd = mkstemp(path);
	struct file_op x[4];

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, BLOCK), 0);
	for (int i = 0; i < 4; i++) {
		x[i] = (struct file_op){
			.op = { .opcode = IO_FILE_READ,
				.fd = i == 1 ? -1 : fd,
				.direct = true,
				.off = i == 2 ? BLOCK : 0, /* the end */
				.niov = 1,
				.done = done },
			.iov = { { data, BLOCK } },
		};
		x[i].op.iov = x[i].iov;
		io_file_submit(l, &x[i].op);
	}
	for (int i = 0; i < 4; i++)
		both_turns(l, &x[i].done, 1);
	assert_int_equal(x[0].result, BLOCK);
	assert_int_equal(x[1].result, -EBADF);
	assert_int_equal(x[2].result, 0);
	assert_int_equal(x[3].result, BLOCK);
	close(fd);
	free(data);
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

/* ---- a loop that polls, and threads ---- */

static xtime cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * XTIME_S + t.tv_nsec;
}

static int64_t sleep_and_count_cpus(struct io_file_op *op)
{
	const struct timespec time = { .tv_nsec = 200 * XTIME_MS };
	cpu_set_t cpus;

	(void)op;
	nanosleep(&time, NULL);
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	return CPU_COUNT(&cpus);
}

/* The loop leaves its CPU to a thread that works for it, and the thread may use the CPUs that
 * the process had when the loop was made. */
static void test_no_spin_beside_threads(void **state)
{
	struct io_loop *l = both_loop(state);
	struct file_op x = { .op = { .opcode = IO_FILE_CALL,
				     .call = sleep_and_count_cpus,
				     .done = done } };
	cpu_set_t all, one;
	xtime used;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	one = all;
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) > 1; cpu++)
		CPU_CLR(cpu, &one);
	io_loop_set_spin(l, 10 * XTIME_S);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	io_loop_turn(l, 0);
	io_file_submit(l, &x.op);
	used = cpu_time();
	both_turns(l, &x.done, 1);
	used = cpu_time() - used;
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_true(used < 100 * XTIME_MS);
	assert_int_equal(x.result, CPU_COUNT(&all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_file_write_sync_read),
		BOTH(test_file_fallocate),
		BOTH(test_file_errors_are_told),
		BOTH(test_file_calls_and_files_many_at_once),
		BOTH(test_direct_transfers),
		BOTH(test_direct_errors),
		BOTH(test_file_submit_from_done),
		BOTH(test_no_spin_beside_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
