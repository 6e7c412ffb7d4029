/* SPDX-License-Identifier: BSD-2-Clause */
/* fallback_test.c: where io_uring is forbidden, as in a container, IO_AUTO
 * falls back to epoll silently and IO_URING fails with the reason. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "io/io.h"

/* forbid makes one system call fail with EPERM from now on. */
static int forbid(unsigned nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0 ? -errno
								     : 0;
}

static int64_t answer(struct io_file_op *op)
{
	(void)op;
	return 42;
}

static int64_t got;

static void done(struct io_file_op *op, int64_t result)
{
	got = result;
	io_loop_stop(op->loop);
}

/* In the child: the number of the step that failed; 0: none. */
static int forbidden_child(void)
{
	struct io_file_op op = { .opcode = IO_FILE_CALL,
				 .call = answer,
				 .done = done };
	uint8_t byte[4];
	struct iovec iov = { byte, sizeof(byte) };
	struct io_loop *l;
	int err;

	if (forbid(SYS_io_uring_setup) || forbid(SYS_io_setup))
		return 1;
	if (io_loop_new(IO_URING, &err) || err != -EPERM)
		return 2;
	l = io_loop_new(IO_AUTO, &err);
	if (!l || err)
		return 3;
	if (io_loop_backend(l) != IO_EPOLL)
		return 4;
	io_file_submit(l, &op);
	if (io_loop_run(l) || got != 42)
		return 5;
	/* without asynchronous I/O, a helper thread transfers */
	op = (struct io_file_op){ .opcode = IO_FILE_READ,
				  .fd = open("/proc/self/exe", O_RDONLY),
				  .direct = true,
				  .iov = &iov,
				  .niov = 1,
				  .done = done };
	io_file_submit(l, &op);
	if (io_loop_run(l) || got != sizeof(byte))
		return 6;
	io_loop_free(l);
	return 0;
}

static void test_auto_takes_epoll_where_io_uring_is_forbidden(void **state)
{
	int status = -1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(forbidden_child());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_auto_takes_io_uring_where_it_works(void **state)
{
	struct io_loop *uring, *l;
	int err;

	(void)state;
	uring = io_loop_new(IO_URING, &err);
	l = io_loop_new(IO_AUTO, &err);
	assert_non_null(l);
	assert_int_equal(io_loop_backend(l), uring ? IO_URING : IO_EPOLL);
	io_loop_free(l);
	io_loop_free(uring);
}

static void test_backend_names(void **state)
{
	(void)state;
	assert_string_equal(io_backend_name(IO_URING), "io_uring");
	assert_string_equal(io_backend_name(IO_EPOLL), "epoll");
	assert_string_equal(io_backend_name(IO_AUTO), "auto");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_auto_takes_epoll_where_io_uring_is_forbidden),
		cmocka_unit_test(test_auto_takes_io_uring_where_it_works),
		cmocka_unit_test(test_backend_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
