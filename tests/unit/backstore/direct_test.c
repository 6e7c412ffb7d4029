/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct_test.c: when a file is opened with O_DIRECT, by the alignment that the
 * kernel reports. The functions below replace those of the C library (linked
 * with --wrap) and play the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backstore/uring/file.h"
#include "cmocka_all.h"

int __wrap_statx(int dir, const char *path, int flags, unsigned mask,
		 struct statx *sx);
int __wrap_fcntl64(int fd, int cmd, int flags);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap___pread64_chk(int fd, void *p, size_t n, off_t at, size_t room);
int __real_fcntl64(int fd, int cmd, int flags);

/* Answers of the kernel. */
static struct {
	bool asked_too_early; /* Linux before 6.1 has no STATX_DIOALIGN */
	uint32_t mem, off;
	bool takes_flag, reads;
} kernel;
static bool direct; /* the file has the flag */

int __wrap_statx(int dir, const char *path, int flags, unsigned mask,
		 struct statx *sx)
{
	(void)dir;
	(void)path;
	(void)flags;
	(void)mask;
	*sx = (struct statx){ .stx_mask = kernel.asked_too_early
						  ? 0
						  : STATX_DIOALIGN,
			      .stx_dio_mem_align = kernel.mem,
			      .stx_dio_offset_align = kernel.off };
	return 0;
}

int __wrap_fcntl64(int fd, int cmd, int flags)
{
	if (cmd != F_SETFL)
		return __real_fcntl64(fd, cmd, flags);
	if ((flags & O_DIRECT) && !kernel.takes_flag) {
		errno = EINVAL;
		return -1;
	}
	direct = flags & O_DIRECT;
	return 0;
}

ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at)
{
	(void)fd;
	(void)at;
	memset(p, 0, n);
	if (kernel.reads)
		return (ssize_t)n;
	errno = EINVAL;
	return -1;
}

ssize_t __wrap___pread64_chk(int fd, void *p, size_t n, off_t at, size_t room)
{
	assert_true(n <= room);
	return __wrap_pread64(fd, p, n, at);
}

static void test_direct_by_what_the_kernel_says(void **state)
{
	static const struct {
		bool too_early;
		uint32_t mem, off;
		bool takes_flag, reads;
		uint32_t align; /* 0: buffered */
	} rows[] = {
		{ false, 512, 512, true, true, 512 },
		{ false, 4, 512, true, true, 4 },
		{ false, 1, 1, true, true, 1 },
		{ false, 4096, 512, true, true, 4096 },
		{ true, 0, 0, true, true, 4096 },
		/* an alignment of offsets above the block size */
		{ false, 512, 4096, true, true, 0 },
		{ false, 512, 513, true, true, 0 },
		/* zero: no O_DIRECT */
		{ false, 512, 0, true, true, 0 },
		{ false, 0, 512, true, true, 0 },
		{ false, 0, 0, true, true, 0 },
		/* no power of two */
		{ false, 3, 512, true, true, 0 },
		{ false, 768, 512, true, true, 0 },
		/* refused at open, or at the first read */
		{ false, 512, 512, false, true, 0 },
		{ false, 512, 512, true, false, 0 },
		{ true, 0, 0, true, false, 0 },
	};
	char path[] = "/tmp/openiser-direct-XXXXXX", why[256];
	struct io_loop *loops[1] = { NULL }; /* not run */
	struct bs_file_config cfg = {
		.path = path, .block_size = 512, .loops = loops, .nloops = 1
	};
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	close(fd);
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		size_t k = i / 2;
		struct bs *b;
		int err;

		kernel.asked_too_early = rows[k].too_early;
		kernel.mem = rows[k].mem;
		kernel.off = rows[k].off;
		kernel.takes_flag = rows[k].takes_flag;
		kernel.reads = rows[k].reads;
		cfg.buffered = i % 2;
		direct = false;
		b = bs_file_open(&cfg, &err, why, sizeof(why));
		assert_non_null(b);
		assert_int_equal(bsf_of(b)->direct,
				 rows[k].align && !cfg.buffered);
		assert_int_equal(direct, bsf_of(b)->direct);
		assert_int_equal(!!(b->caps & BS_CAP_FUA), direct);
		if (direct)
			assert_int_equal(bsf_of(b)->mem_align, rows[k].align);
		bs_close(b);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direct_by_what_the_kernel_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
