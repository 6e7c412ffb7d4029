/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file_test.c: files and block devices. Each test of requests runs with both
 * back ends; random requests are compared with a copy in memory and with a
 * plain read of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "backstore/uring/file.h"
#include "base/bytes.h"
#include "base/err.h"
#include "req.h"
#include "unit/io/both.h"

#define SIZE  (4u << 20)
#define TMPFS 0x01021994

static char path[256];

/* temp makes a sparse file of size bytes in dir; path gets its name. */
static void temp(const char *dir, off_t size)
{
	int fd;

	snprintf(path, sizeof(path), "%s/openiser-bs-XXXXXX", dir);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

static struct bs *open_path(struct io_loop *l, bool buffered)
{
	struct bs_file_config cfg = {
		.path = path, .buffered = buffered, .loops = &l, .nloops = 1
	};
	char why[256];
	int err;
	struct bs *b = bs_file_open(&cfg, &err, why, sizeof(why));

	if (!b)
		print_error("%s\n", why);
	assert_non_null(b);
	return b;
}

/* run submits a request and turns the loop until it completes. */
static int run_req(struct io_loop *l, struct bs *b, struct test_req *t,
		   enum bs_op op, unsigned flags, uint64_t off, uint64_t len,
		   void *data)
{
	test_submit(b, t, op, flags, off, len, data);
	both_turns(l, &t->done, 1);
	return t->req.result;
}

static int run(struct io_loop *l, struct bs *b, enum bs_op op, unsigned flags,
	       uint64_t off, uint64_t len, void *data)
{
	struct test_req t;

	return run_req(l, b, &t, op, flags, off, len, data);
}

/* ---- random requests against a shadow ---- */

struct model {
	struct io_loop *l;
	struct bs *b;
	uint8_t *shadow, *data;
	uint32_t seed;
};

static uint32_t rnd(struct model *m, uint32_t below)
{
	m->seed = m->seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)m->seed * below >> 32);
}

static void model_write(struct model *m, uint8_t *data, uint64_t off,
			uint64_t len, unsigned flags)
{
	for (uint64_t i = 0; i < len; i++)
		data[i] = (uint8_t)rnd(m, 256);
	assert_int_equal(run(m->l, m->b, BS_WRITE, flags, off, len, data), 0);
	memcpy(m->shadow + off, data, len);
}

static void model_zero(struct model *m, enum bs_op op, uint64_t off,
		       uint64_t len, unsigned flags)
{
	if (op == BS_UNMAP && !(m->b->caps & BS_CAP_UNMAP))
		op = BS_ZERO;
	assert_int_equal(run(m->l, m->b, op, flags, off, len, NULL), 0);
	memset(m->shadow + off, 0, len);
}

static void model_step(struct model *m)
{
	uint64_t len = (1 + rnd(m, rnd(m, 8) ? 64 : 4000)) * 512;
	uint64_t off = rnd(m, (uint32_t)((SIZE - len) / 512 + 1)) * 512;
	unsigned flags = rnd(m, 2) ? BS_FUA : 0;
	/* sometimes memory that O_DIRECT does not support */
	uint8_t *data = m->data + (rnd(m, 4) ? 0 : 1 + rnd(m, 511));

	switch (rnd(m, 8)) {
	case 0:
		model_zero(m, BS_ZERO, off, len, flags);
		break;
	case 1:
		model_zero(m, BS_ZERO, off, len, flags | BS_MAY_UNMAP);
		break;
	case 2:
		model_zero(m, BS_UNMAP, off, len, 0);
		break;
	case 3:
		assert_int_equal(run(m->l, m->b, BS_FLUSH, 0, 0, 0, NULL), 0);
		break;
	case 4:
	case 5:
		model_write(m, data, off, len, flags);
		break;
	default:
		assert_int_equal(run(m->l, m->b, BS_READ, 0, off, len, data),
				 0);
		assert_memory_equal(data, m->shadow + off, len);
		break;
	}
}

static void compare_file(const uint8_t *want)
{
	uint8_t *got = malloc(SIZE);
	int fd = open(path, O_RDONLY);

	assert_int_equal(pread(fd, got, SIZE, 0), SIZE);
	assert_memory_equal(got, want, SIZE);
	close(fd);
	free(got);
}

static void random_requests(struct io_loop *l, bool buffered)
{
	struct model m = { .l = l,
			   .b = open_path(l, buffered),
			   .shadow = calloc(1, SIZE),
			   .data = aligned_alloc(4096, SIZE),
			   .seed = 20260 };

	for (int i = 0; i < 300; i++)
		model_step(&m);
	bs_close(m.b);
	compare_file(m.shadow);
	free(m.shadow);
	free(m.data);
}

static void test_random_requests_direct(void **state)
{
	struct io_loop *l = both_loop(state);

	temp(".", SIZE);
	random_requests(l, false);
	unlink(path);
}

static void test_random_requests_buffered(void **state)
{
	struct io_loop *l = both_loop(state);

	temp(".", SIZE);
	random_requests(l, true);
	unlink(path);
}

static void test_random_requests_tmpfs(void **state)
{
	struct io_loop *l = both_loop(state);
	struct statfs fs;

	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS) {
		printf("skipped: no tmpfs at /dev/shm\n");
		skip();
	}
	temp("/dev/shm", SIZE);
	random_requests(l, false);
	unlink(path);
}

/* ---- a block device: a loop device over a file ---- */

static int loop_fd = -1;

/* attach makes a loop device of path; path gets the name of the device. */
static bool attach(void)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), backing, n;

	if (control < 0)
		return false;
	n = ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	backing = open(path, O_RDWR | O_CLOEXEC);
	unlink(path);
	snprintf(path, sizeof(path), "/dev/loop%d", n);
	loop_fd = n < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
	if (loop_fd >= 0 && ioctl(loop_fd, LOOP_SET_FD, backing) < 0) {
		close(loop_fd);
		loop_fd = -1;
	}
	close(backing);
	return loop_fd >= 0;
}

static void detach(void)
{
	ioctl(loop_fd, LOOP_CLR_FD, 0);
	close(loop_fd);
}

static void need_device(void)
{
	char backing[sizeof(path)];

	temp(".", SIZE);
	memcpy(backing, path, sizeof(path));
	if (attach())
		return;
	unlink(backing);
	printf("skipped: no loop device (needs root)\n");
	skip();
}

static void test_random_requests_device(void **state)
{
	struct io_loop *l = both_loop(state);

	need_device();
	random_requests(l, false);
	detach();
}

static void test_device_size_and_caps(void **state)
{
	struct io_loop *l = both_loop(state);
	struct bs *b;

	need_device();
	b = open_path(l, false);
	assert_int_equal(b->size, SIZE);
	assert_int_equal(b->block_size, 512);
	assert_true(b->caps & BS_CAP_WRITE_CACHE);
	assert_false(b->caps & BS_CAP_EXTENTS);
	bs_close(b);
	detach();
}

static void test_device_used_by_the_system_is_refused(void **state)
{
	struct io_loop *l = both_loop(state);
	struct bs_file_config cfg = { .path = path, .loops = &l, .nloops = 1 };
	char why[256];
	int err, holder;

	need_device();
	holder = open(path, O_RDWR | O_EXCL | O_CLOEXEC); /* as a mount does */
	assert_null(bs_file_open(&cfg, &err, why, sizeof(why)));
	assert_int_equal(err, -EBUSY);
	assert_non_null(strstr(why, "is in use by the system"));
	close(holder);
	detach();
}

/* ---- single properties ---- */

/* More pieces than one system call takes, of odd lengths. */
static void test_many_odd_pieces(void **state)
{
	struct io_loop *l = both_loop(state);
	enum {
		PIECES = 2048,
		LEN = PIECES * 3
	};
	static struct iovec iov[PIECES];
	uint8_t *data = malloc(LEN), back[LEN];
	struct bs_req req = { .len = LEN, .done = test_req_done };
	struct test_req t = { .req = req };
	struct bs *b;

	temp(".", SIZE);
	b = open_path(l, false);
	for (unsigned i = 0, at = 0; i < PIECES; i++) {
		unsigned n = i % 2 ? 5 : 1;

		for (size_t k = at; k < at + n; k++)
			data[k] = (uint8_t)(k * 13);
		iov[i] = (struct iovec){ data + at, n };
		at += n;
	}
	t.req.op = BS_WRITE;
	t.req.data = bufv_of(iov, PIECES);
	bs_submit(b, &t.req);
	both_turns(l, &t.done, 1);
	assert_int_equal(t.req.result, 0);
	assert_int_equal(run(l, b, BS_READ, 0, 0, LEN, back), 0);
	assert_memory_equal(back, data, LEN);
	memset(data, 0, LEN);
	t.req.op = BS_READ;
	bs_submit(b, &t.req);
	both_turns(l, &t.done, 2);
	assert_memory_equal(back, data, LEN);
	bs_close(b);
	unlink(path);
	free(data);
}

static void test_extents_and_unmap(void **state)
{
	struct io_loop *l = both_loop(state);
	uint8_t *data = aligned_alloc(4096, 65536);
	struct test_req t;
	struct stat before, after;
	struct bs *b;

	temp(".", SIZE);
	b = open_path(l, false);
	if (!(b->caps & BS_CAP_EXTENTS) || !(b->caps & BS_CAP_UNMAP)) {
		bs_close(b);
		printf("skipped: no holes on this file system\n");
		skip();
	}
	memset(data, 0x5a, 65536);
	assert_int_equal(run(l, b, BS_WRITE, BS_FUA, 1 << 20, 65536, data), 0);
	assert_int_equal(run_req(l, b, &t, BS_EXTENTS, 0, 0, SIZE, NULL), 0);
	assert_false(t.req.extent_mapped);
	assert_int_equal(t.req.extent_len, 1 << 20);
	run_req(l, b, &t, BS_EXTENTS, 0, 1 << 20, SIZE - (1 << 20), NULL);
	assert_true(t.req.extent_mapped);
	assert_int_equal(t.req.extent_len, 65536);
	run_req(l, b, &t, BS_EXTENTS, 0, (1 << 20) + 65536, 1024, NULL);
	assert_false(t.req.extent_mapped);
	assert_int_equal(t.req.extent_len, 1024); /* not beyond the request */
	stat(path, &before);
	assert_int_equal(run(l, b, BS_UNMAP, 0, 1 << 20, 65536, NULL), 0);
	stat(path, &after);
	assert_true(after.st_blocks < before.st_blocks);
	assert_int_equal(after.st_size, SIZE);
	assert_int_equal(run(l, b, BS_READ, 0, 1 << 20, 65536, data), 0);
	for (size_t i = 0; i < 65536; i++)
		assert_int_equal(data[i], 0);
	bs_close(b);
	unlink(path);
	free(data);
}

static void test_size_follows_the_file(void **state)
{
	struct io_loop *l = both_loop(state);
	uint8_t *data = aligned_alloc(4096, 4096);
	struct test_req t;
	struct bs *b;

	temp(".", SIZE);
	b = open_path(l, false);
	assert_true(b->caps & BS_CAP_SIZE);
	assert_int_equal(run(l, b, BS_READ, 0, SIZE, 4096, data), ERR_RANGE);
	assert_int_equal(truncate(path, SIZE + 4096 + 100), 0);
	assert_int_equal(run_req(l, b, &t, BS_SIZE, 0, 0, 0, NULL), 0);
	assert_int_equal(t.req.size_now, SIZE + 4096);
	assert_int_equal(b->size, SIZE + 4096);
	assert_int_equal(run(l, b, BS_READ, 0, SIZE, 4096, data), 0);
	assert_int_equal(truncate(path, 8192), 0);
	assert_int_equal(run(l, b, BS_SIZE, 0, 0, 0, NULL), 0);
	assert_int_equal(run(l, b, BS_READ, 0, 8192, 4096, data), ERR_RANGE);
	bs_close(b);
	unlink(path);
	free(data);
}

/* Space that is allocated for zeros is neither a hole nor data. */
static void test_space_kept_and_space_used(void **state)
{
	struct io_loop *l = both_loop(state);
	struct test_req t;
	struct bs *b;
	uint64_t before;

	temp(".", SIZE);
	b = open_path(l, false);
	if (!(b->caps & BS_CAP_EXTENTS) || !(b->caps & BS_CAP_UNMAP)) {
		bs_close(b);
		printf("skipped: no holes on this file system\n");
		skip();
	}
	assert_int_equal(run_req(l, b, &t, BS_SPACE, 0, 0, 0, NULL), 0);
	before = t.req.space_used;
	assert_true(before + t.req.space_left <= SIZE);
	assert_int_equal(run(l, b, BS_ZERO, 0, 1 << 20, 65536, NULL), 0);
	assert_int_equal(run_req(l, b, &t, BS_SPACE, 0, 0, 0, NULL), 0);
	assert_int_equal(t.req.space_used, before + 65536);
	run_req(l, b, &t, BS_EXTENTS, 0, 0, SIZE, NULL);
	assert_false(t.req.extent_mapped || t.req.extent_kept);
	assert_int_equal(t.req.extent_len, 1 << 20);
	run_req(l, b, &t, BS_EXTENTS, 0, 1 << 20, SIZE - (1 << 20), NULL);
	/* a file system without that state has written zeros */
	assert_true(t.req.extent_mapped || t.req.extent_kept);
	assert_int_equal(t.req.extent_len, 65536);
	bs_close(b);
	unlink(path);
}

/* ZERO without MAY_UNMAP must not free space (thin provisioning). */
static void test_zero_keeps_space(void **state)
{
	struct io_loop *l = both_loop(state);
	uint8_t *data = aligned_alloc(4096, 65536);
	struct stat before, after;
	struct bs *b;

	temp(".", SIZE);
	b = open_path(l, false);
	memset(data, 1, 65536);
	assert_int_equal(run(l, b, BS_WRITE, BS_FUA, 0, 65536, data), 0);
	stat(path, &before);
	assert_int_equal(run(l, b, BS_ZERO, BS_FUA, 0, 65536, NULL), 0);
	stat(path, &after);
	assert_true(after.st_blocks >= before.st_blocks);
	bs_close(b);
	unlink(path);
	free(data);
}

static void test_file_truncated_behind_our_back(void **state)
{
	struct io_loop *l = both_loop(state);
	uint8_t data[8192];
	struct bs *b;

	temp(".", SIZE);
	b = open_path(l, false);
	assert_int_equal(truncate(path, SIZE / 2), 0);
	assert_int_equal(run(l, b, BS_READ, 0, SIZE / 2 - 4096, 8192, data),
			 ERR_MEDIUM);
	assert_int_equal(run(l, b, BS_READ, 0, SIZE / 2, 512, data),
			 ERR_MEDIUM);
	assert_int_equal(run(l, b, BS_READ, 0, 0, 8192, data), 0);
	bs_close(b);
	unlink(path);
}

static void test_fault_in_front_of_a_file(void **state)
{
	struct io_loop *l = both_loop(state);
	uint8_t data[512] = { 7 };
	struct bs *b;

	temp(".", SIZE);
	b = bs_fault_new(open_path(l, false), BIT(BS_WRITE), 2, 2, ERR_MEDIUM);
	for (int i = 1; i <= 6; i++)
		assert_int_equal(run(l, b, BS_WRITE, 0, 0, 512, data),
				 i % 2 ? 0 : ERR_MEDIUM);
	bs_close(b);
	unlink(path);
}

/* Two workers: a request completes on the loop that submitted it. */
static void test_completion_on_the_submitters_loop(void **state)
{
	struct io_loop *l = both_loop(state), *other, *loops[2];
	struct bs_file_config cfg = { .path = path,
				      .loops = loops,
				      .nloops = 2 };
	uint8_t data[512];
	struct iovec iov = { data, 512 };
	struct test_req t = { .req = { .op = BS_READ,
				       .worker = 1,
				       .len = 512,
				       .done = test_req_done } };
	char why[256];
	int err;
	struct bs *b;

	other = io_loop_new(io_loop_backend(l), &err);
	loops[0] = l;
	loops[1] = other;
	temp(".", SIZE);
	b = bs_file_open(&cfg, &err, why, sizeof(why));
	assert_non_null(b);
	t.req.data = bufv_of(&iov, 1);
	bs_submit(b, &t.req);
	for (int i = 0; i < 10; i++)
		io_loop_turn(l, XTIME_MS);
	assert_int_equal(t.done, 0);
	both_turns(other, &t.done, 1);
	bs_close(b);
	io_loop_free(other);
	unlink(path);
}

/* Flushes of two workers that arrive while one is in progress share the next,
 * and each completes on its own worker. */
static void test_flushes_share_a_sync(void **state)
{
	struct io_loop *l = both_loop(state), *loops[2] = { l };
	struct bs_file_config cfg = { .path = path,
				      .loops = loops,
				      .nloops = 2 };
	struct test_req t[8];
	char why[256];
	struct bs *b;
	int err;

	loops[1] = io_loop_new(io_loop_backend(l), &err);
	assert_non_null(loops[1]);
	temp(".", SIZE);
	b = bs_file_open(&cfg, &err, why, sizeof(why));
	assert_non_null(b);
	for (unsigned i = 0; i < 8; i++) {
		t[i] = (struct test_req){ .req = { .op = BS_FLUSH,
						   .worker = i % 2,
						   .done = test_req_done } };
		bs_submit(b, &t[i].req);
	}
	for (unsigned i = 0; i < 8;) {
		assert_true(io_loop_turn(l, XTIME_MS) >= 0);
		assert_true(io_loop_turn(loops[1], XTIME_MS) >= 0);
		for (i = 0; i < 8 && t[i].done; i++)
			assert_int_equal(t[i].req.result, 0);
	}
	assert_int_equal(bs_flush_failures(b), 0);
	bs_close(b);
	io_loop_free(loops[1]);
	unlink(path);
}

/* A file that is larger than its file system: 2 MiB on a tmpfs of 1 MiB. The
 * write is short first, and then fails. */
static void test_no_space(void **state)
{
	struct io_loop *l = both_loop(state);
	char dir[] = "openiser-tiny-XXXXXX";
	uint8_t *data = calloc(1, SIZE);
	struct bs *b;

	assert_non_null(mkdtemp(dir));
	if (mount("tiny", dir, "tmpfs", 0, "size=1M")) {
		rmdir(dir);
		free(data);
		printf("skipped: mount: %s (needs root)\n", strerror(errno));
		skip();
	}
	temp(dir, SIZE);
	b = open_path(l, false);
	assert_int_equal(run(l, b, BS_WRITE, 0, 0, 2 << 20, data),
			 ERR_NO_SPACE);
	assert_int_equal(run(l, b, BS_ZERO, BS_FUA, 2 << 20, 2 << 20, NULL),
			 ERR_NO_SPACE);
	assert_int_equal(run(l, b, BS_UNMAP, 0, 0, SIZE, NULL), 0);
	assert_int_equal(run(l, b, BS_WRITE, 0, 3 << 20, 4096, data), 0);
	bs_close(b);
	unlink(path);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	free(data);
}

/* ---- what is refused, and in which words ---- */

static int refused(const char *name, bool read_only, uint32_t block_size,
		   const char *word)
{
	struct io_loop *none = NULL;
	struct bs_file_config cfg = { .path = name,
				      .read_only = read_only,
				      .block_size = block_size,
				      .loops = &none,
				      .nloops = 1 };
	char why[512];
	int err;

	assert_null(bs_file_open(&cfg, &err, why, sizeof(why)));
	if (!strstr(why, word))
		print_error("'%s' lacks '%s'\n", why, word);
	assert_non_null(strstr(why, word));
	assert_ptr_equal(strstr(why, name), why);
	return err;
}

static void test_open_refusals(void **state)
{
	(void)state;
	assert_int_equal(refused("/no/such", false, 0, "no such file"),
			 -ENOENT);
	assert_int_equal(refused("/tmp", false, 0, "is a directory"), -EISDIR);
	assert_int_equal(refused("/dev/null", false, 0, "neither a file"),
			 -EINVAL);
	temp(".", 0);
	assert_int_equal(refused(path, false, 0, "is empty"), -EINVAL);
	assert_int_equal(truncate(path, 1000), 0);
	assert_int_equal(refused(path, false, 0, "truncate -s %512"), -EINVAL);
	assert_int_equal(truncate(path, 8192 + 512), 0);
	assert_int_equal(refused(path, false, 4096, "not whole blocks of 4096"),
			 -EINVAL);
	assert_int_equal(refused(path, false, 1024, "use 512 or 4096"),
			 -EINVAL);
	unlink(path);
}

static struct bs *open_mode(bool read_only)
{
	struct io_loop *none = NULL;
	struct bs_file_config cfg = { .path = path,
				      .read_only = read_only,
				      .loops = &none,
				      .nloops = 1 };
	char why[256];
	int err;

	return bs_file_open(&cfg, &err, why, sizeof(why));
}

static void test_open_locks(void **state)
{
	struct bs *a, *b;

	(void)state;
	temp(".", SIZE);
	a = open_mode(false);
	assert_non_null(a);
	assert_int_equal(refused(path, false, 0, "locked"), -EBUSY);
	assert_int_equal(refused(path, true, 0, "locked"), -EBUSY);
	bs_close(a);
	a = open_mode(true);
	b = open_mode(true);
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(refused(path, false, 0, "locked"), -EBUSY);
	bs_close(a);
	bs_close(b);
	unlink(path);
}

/* A shared file cannot be resized. */
static void test_only_its_owner_resizes_a_file(void **state)
{
	struct io_loop *none = NULL;
	struct bs_file_config cfg = { .path = path,
				      .loops = &none,
				      .nloops = 1 };
	char why[256];

	(void)state;
	temp(".", SIZE);
	for (unsigned shared = 0; shared < 2; shared++) {
		int err;
		struct bs *b;

		cfg.shared = shared;
		b = bs_file_open(&cfg, &err, why, sizeof(why));
		assert_non_null(b);
		assert_int_equal(!!(b->caps & BS_CAP_RESIZE), !shared);
		bs_close(b);
	}
	unlink(path);
}

static void test_read_only_writes_nothing(void **state)
{
	struct bs *b;
	struct test_req t;
	uint8_t data[512] = { 1 };

	(void)state;
	temp(".", SIZE);
	b = open_mode(true);
	assert_true(b->caps & BS_CAP_READ_ONLY);
	assert_false(b->caps & BS_CAP_UNMAP);
	assert_false(b->caps & BS_CAP_RESIZE);
	test_submit(b, &t, BS_WRITE, 0, 0, 512, data);
	assert_int_equal(t.done, 1);
	assert_int_equal(t.req.result, ERR_READ_ONLY);
	bs_close(b);
	unlink(path);
}

/* A read of what the page cache holds ends within submit, without a helper
 * thread; a read of the same blocks by O_DIRECT, where it works, does not. */
#define WRITES 200

/* Writes of one turn: more than a helper thread gets at once, small and large;
 * each ends once and with its own result. */
static void test_buffered_writes_of_a_turn(void **state)
{
	struct io_loop *l = both_loop(state);
	static struct test_req t[WRITES];
	uint8_t *data = malloc(SIZE), *want = malloc(SIZE);
	struct bs *b;

	temp(".", SIZE);
	b = open_path(l, true);
	for (unsigned i = 0; i < SIZE; i++)
		want[i] = data[i] = (uint8_t)(i / 4096 * 7 + i);
	/* block i * 77 % WRITES: out of order; the last one is large */
	for (unsigned i = 0; i + 1 < WRITES; i++) {
		unsigned at = i * 77 % (WRITES - 1) * 4096;

		test_submit(b, &t[i], BS_WRITE, i % 9 ? 0 : BS_FUA, at, 4096,
			    data + at);
	}
	test_submit(b, &t[WRITES - 1], BS_WRITE, 0, SIZE / 2, SIZE / 2,
		    data + SIZE / 2);
	for (unsigned i = 0; i < WRITES; i++) {
		both_turns(l, &t[i].done, 1);
		assert_int_equal(t[i].req.result, 0);
	}
	bs_close(b);
	memset(want + (WRITES - 1) * 4096, 0, SIZE / 2 - (WRITES - 1) * 4096);
	compare_file(want);
	unlink(path);
	free(data);
	free(want);
}

static void test_cached_read_ends_at_once(void **state)
{
	struct io_loop *l = both_loop(state);
	uint8_t wrote[4096], got[4096] = { 0 };
	struct test_req t;
	struct bs *b;

	memset(wrote, 0x5a, sizeof(wrote));
	temp("/var/tmp", 1 << 20);
	b = open_path(l, true);
	assert_int_equal(run(l, b, BS_WRITE, 0, 8192, sizeof(wrote), wrote), 0);
	test_submit(b, &t, BS_READ, 0, 8192, sizeof(got), got);
	if (!bsf_of(b)->asks_cache) {
		both_turns(l, &t.done, 1);
		bs_close(b);
		unlink(path);
		skip();
	}
	assert_int_equal(t.done, 1);
	assert_int_equal(t.req.result, 0);
	assert_memory_equal(got, wrote, sizeof(got));
	bs_close(b);
	b = open_path(l, false);
	test_submit(b, &t, BS_READ, 0, 8192, sizeof(got), got);
	assert_int_equal(t.done, !bsf_of(b)->direct);
	both_turns(l, &t.done, 1);
	bs_close(b);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_random_requests_direct),
		BOTH(test_random_requests_buffered),
		BOTH(test_buffered_writes_of_a_turn),
		BOTH(test_cached_read_ends_at_once),
		BOTH(test_random_requests_tmpfs),
		BOTH(test_random_requests_device),
		BOTH(test_device_size_and_caps),
		BOTH(test_device_used_by_the_system_is_refused),
		BOTH(test_many_odd_pieces),
		BOTH(test_extents_and_unmap),
		BOTH(test_space_kept_and_space_used),
		BOTH(test_size_follows_the_file),
		BOTH(test_zero_keeps_space),
		BOTH(test_file_truncated_behind_our_back),
		BOTH(test_fault_in_front_of_a_file),
		BOTH(test_completion_on_the_submitters_loop),
		BOTH(test_flushes_share_a_sync),
		BOTH(test_no_space),
		cmocka_unit_test(test_open_refusals),
		cmocka_unit_test(test_open_locks),
		cmocka_unit_test(test_only_its_owner_resizes_a_file),
		cmocka_unit_test(test_read_only_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
