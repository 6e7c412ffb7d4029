/* SPDX-License-Identifier: BSD-2-Clause */
/* open.c: opens a file or block device: its capabilities and its lock. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "backstore/uring/opening.h"
#include "base/err.h"

/* ---- the lock ---- */

/* A file system without such locks cannot be protected: continue. */
static int lock_file(struct bsf_opening *o)
{
	bool alone = !o->cfg->read_only && !o->cfg->shared;
	struct flock l = {
		.l_type = alone ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET,
	};

	for (unsigned i = 0; i <= o->cfg->lock_retries; i++) {
		if (fcntl(o->file->fd, F_OFD_SETLK, &l) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return 0;
		if (i < o->cfg->lock_retries)
			nanosleep(&bsf_lock_pause, NULL);
	}
	return bsf_refuse(
		o, -EBUSY,
		"is locked by another process (iserd, QEMU?); stop that process%s",
		alone ? ", or let both serve it read-only" : "");
}

/* ---- O_DIRECT ---- */

/* Linux reports the requirements of O_DIRECT from 6.1 on. */
static bool ask_alignment(int fd, uint32_t *mem, uint32_t *off)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) < 0 ||
	    !(sx.stx_mask & STATX_DIOALIGN))
		return false;
	*mem = sx.stx_dio_mem_align;
	*off = sx.stx_dio_offset_align;
	return true;
}

/* can_read_direct reads a block: some file systems permit O_DIRECT at open and
 * refuse every transfer. */
static bool can_read_direct(int fd, uint32_t block)
{
	void *page = aligned_alloc(4096, 4096);
	bool ok = page && pread(fd, page, block, 0) == (ssize_t)block;

	free(page);
	return ok;
}

static bool is_direct_good(struct bsf_opening *o)
{
	int fd = o->file->fd;
	uint32_t mem = 4096, off = 0;

	if (ask_alignment(fd, &mem, &off) &&
	    (off == 0 || off > o->file->bs.block_size))
		return false;
	if (mem == 0 || (mem & (mem - 1)) ||
	    !can_read_direct(fd, o->file->bs.block_size))
		return false;
	o->file->mem_align = mem;
	return true;
}

/* can_read_without_waiting: the file system knows RWF_NOWAIT; whether the byte
 * is cached does not matter. */
static bool can_read_without_waiting(int fd)
{
	uint8_t byte;
	struct iovec iov = { &byte, 1 };

	return preadv2(fd, &iov, 1, 0, RWF_NOWAIT) >= 0 || errno == EAGAIN;
}

/* set_direct changes the open file: a second open of a device with O_EXCL would
 * fail. */
static int set_direct(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	return fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

/* go_direct uses O_DIRECT only if it supports every request of whole blocks. */
static void go_direct(struct bsf_opening *o)
{
	if (o->cfg->buffered || set_direct(o->file->fd, true) < 0)
		return;
	o->file->direct = is_direct_good(o);
	if (!o->file->direct)
		set_direct(o->file->fd, false);
}

/* ---- capabilities ---- */

/* A hole beyond the end has no effect, and shows whether holes are
 * supported. */
static bool can_punch(const struct bsf_opening *o)
{
	uint64_t end = ((uint64_t)o->st.st_size + 4095) / 4096 * 4096;

	return fallocate(o->file->fd,
			 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)end,
			 4096) == 0;
}

/* A limit of discard in /sys; a partition has those of its disk. */
static uint32_t device_discard(const struct bsf_opening *o,
			       const char *set_name)
{
	unsigned long n = 0;
	char path[128];

	for (int part = 0; part < 2 && n == 0; part++) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%squeue/%s",
			 major(o->st.st_rdev), minor(o->st.st_rdev),
			 part ? "../" : "", set_name);
		if (!io_read_number(path, &n))
			n = 0;
	}
	return (uint32_t)MIN(n, (unsigned long)UINT32_MAX);
}

static uint32_t unmap_grain(const struct bsf_opening *o)
{
	uint32_t block = o->file->bs.block_size, grain = 0;

	if (o->cfg->read_only)
		return 0;
	if (bsf_is_device(o) && device_discard(o, "discard_max_bytes"))
		grain = device_discard(o, "discard_granularity");
	else if (!bsf_is_device(o) && can_punch(o))
		grain = (uint32_t)o->st.st_blksize;
	if (grain == 0)
		return 0;
	return grain < block || grain % block ? block : grain;
}

static bool knows_holes(const struct bsf_opening *o)
{
	off_t at;

	if (bsf_is_device(o))
		return false;
	at = lseek(o->file->fd, 0, SEEK_HOLE);
	return at >= 0;
}

static void find_caps(struct bsf_opening *o)
{
	struct bs *b = &o->file->bs;

	/* RWF_DSYNC of a buffered file would consume the report of a failed
	 * write-back that the flush of another session has to return. */
	b->caps = BS_CAP_WRITE_CACHE | BS_CAP_SIZE | BS_CAP_CHECK;
	if (o->file->direct)
		b->caps |= BS_CAP_FUA;
	if (o->cfg->read_only)
		b->caps |= BS_CAP_READ_ONLY;
	b->unmap_grain = unmap_grain(o);
	if (b->unmap_grain)
		b->caps |= BS_CAP_UNMAP;
	if (knows_holes(o))
		b->caps |= BS_CAP_EXTENTS;
	if (!bsf_is_device(o))
		b->caps |= BS_CAP_SPACE;
	if (!bsf_is_device(o) && !o->cfg->read_only && !o->cfg->shared)
		b->caps |= BS_CAP_RESIZE;
}

/* ---- open ---- */

static int copy_loops(struct bsf_opening *o)
{
	struct bs_file *f = o->file;
	size_t bytes = o->cfg->nloops * sizeof(f->loops[0]);

	f->loops = malloc(bytes);
	f->zeros = mmap(NULL, BSF_CHUNK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (f->zeros == MAP_FAILED)
		f->zeros = NULL;
	f->path = strdup(o->cfg->path);
	f->is_records = o->cfg->grain != 0;
	if (!f->loops || !f->zeros || !f->path)
		return bsf_refuse(o, -ENOMEM, "out of memory");
	memcpy(f->loops, o->cfg->loops, bytes);
	f->nloops = o->cfg->nloops;
	if (bsf_lanes_init(f))
		return bsf_refuse(o, -ENOMEM, "out of memory");
	return 0;
}

static int open_all(struct bsf_opening *o)
{
	int err = bsf_measure(o);

	if (err)
		return err;
	go_direct(o);
	o->file->asks_cache =
		!o->file->direct && can_read_without_waiting(o->file->fd);
	err = lock_file(o);
	if (err)
		return err;
	find_caps(o);
	bs_set_name(&o->file->bs, o->cfg->path);
	return copy_loops(o);
}

static void free_file(struct bs_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->zeros)
		munmap(f->zeros, BSF_CHUNK);
	bsf_lanes_fini(f);
	free(f->loops);
	free(f->path);
	free(f);
}

struct bs *bs_file_open(const struct bs_file_config *cfg, int *err, char *why,
			size_t size)
{
	struct bsf_opening o = { .cfg = cfg, .why = why, .why_size = size };

	why[0] = '\0';
	o.file = calloc(1, sizeof(*o.file));
	if (!o.file) {
		*err = bsf_refuse(&o, -ENOMEM, "out of memory");
		return NULL;
	}
	o.file->fd = -1;
	*err = open_all(&o);
	if (*err) {
		free_file(o.file);
		return NULL;
	}
	bsf_flush_init(o.file);
	o.file->bs.failures[0] = &o.file->bs.own_failures;
	o.file->bs.ops = &bsf_ops;
	o.file->bs.fd = &o.file->fd;
	o.file->bs.state = BS_OPEN;
	return &o.file->bs;
}
