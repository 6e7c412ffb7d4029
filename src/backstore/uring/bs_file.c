/* SPDX-License-Identifier: BSD-2-Clause */
/* bs_file.c: requests to a file or block device. */
#include "backstore/uring/bs_file.h"

#include <errno.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backstore/uring/file.h"
#include "base/err.h"

/* ---- read and write ---- */

/* is_usable: the kernel can transfer the memory of the request in one call. */
static bool is_usable(const struct bs_file *f, const struct bufv *v)
{
	uintptr_t all = 0;

	if (v->n > IOV_MAX)
		return false;
	if (!f->direct)
		return true;
	for (unsigned i = 0; i < v->n; i++)
		all |= (uintptr_t)v->iov[i].iov_base | v->iov[i].iov_len;
	return (all & (f->mem_align - 1)) == 0;
}

static void next_chunk(struct bsf_step *s);
static void transfer(struct bsf_step *s, struct iovec *iov, unsigned n);

/*
 * A write with RWF_DSYNC fails in the write or in its flush; only a failed
 * flush affects other data. Repeat the write without the flag to find out.
 * Returns false if the result needs no such treatment.
 */
static bool write_failed(struct bsf_step *s, int64_t result)
{
	if (s->failure) {
		if (result > 0) {
			bs_flush_failed(&s->file->bs);
			result = s->failure;
		}
		bsf_finish(s, result ? result : s->failure);
		return true;
	}
	if (result >= 0 || !(s->op.flags & RWF_DSYNC))
		return false;
	s->failure = result;
	transfer(s, s->op.iov, s->op.niov);
	return true;
}

static void transfer_done(struct io_file_op *op, int64_t result)
{
	struct bsf_step *s = bsf_step_of_op(op);
	struct bs_req *req = s->req;

	if (write_failed(s, result))
		return;
	if (result <= 0) { /* 0: the file has shrunk */
		bsf_finish(s, result ? result : -EIO);
		return;
	}
	if (s->bounce && req->op == BS_READ)
		bufv_copy_in(&req->data, s->moved, s->bounce, (size_t)result);
	s->moved += (uint64_t)result;
	if (s->moved == req->len)
		bsf_finish(s, 0);
	else
		next_chunk(s);
}

static void transfer(struct bsf_step *s, struct iovec *iov, unsigned n)
{
	struct bs_req *req = s->req;

	s->op.opcode = req->op == BS_READ ? IO_FILE_READ : IO_FILE_WRITE;
	s->op.flags = req->flags & BS_FUA && !s->failure ? RWF_DSYNC : 0;
	s->op.off = req->off + s->moved;
	s->op.iov = iov;
	s->op.niov = n;
	if (req->op == BS_WRITE && !s->file->direct)
		bsf_write(s, transfer_done);
	else
		bsf_go(s, transfer_done);
}

/* next_chunk transfers the rest through a bounce buffer: memory that O_DIRECT
 * does not support, or the rest of a short transfer. */
static void next_chunk(struct bsf_step *s)
{
	struct bs_req *req = s->req;
	size_t len = (size_t)MIN(req->len - s->moved, BSF_CHUNK);

	if (!s->bounce)
		s->bounce = aligned_alloc(4096, BSF_CHUNK);
	if (!s->bounce) {
		bsf_finish(s, -ENOMEM);
		return;
	}
	if (req->op == BS_WRITE)
		bufv_copy_out(&req->data, s->moved, s->bounce, len);
	s->iov = (struct iovec){ s->bounce, len };
	transfer(s, &s->iov, 1);
}

/*
 * is_read_cached reads what the page cache holds whole, without a helper thread
 * and without blocking. A part is not worth a second call: the caller reads all
 * of it again.
 */
static bool is_read_cached(struct bsf_step *s)
{
	const struct bs_file *f = s->file;
	const struct bs_req *req = s->req;
	ssize_t n;

	if (!f->asks_cache)
		return false;
	n = preadv2(f->fd, req->data.iov, (int)req->data.n, (off_t)req->off,
		    RWF_NOWAIT);
	return n >= 0 && (uint64_t)n == req->len;
}

static void read_or_write(struct bsf_step *s)
{
	struct bs_req *req = s->req;
	bool usable = is_usable(s->file, &req->data);

	if (req->op == BS_READ) {
		req->flags &= ~BS_FUA;
		if (usable && is_read_cached(s)) {
			bsf_finish(s, 0);
			return;
		}
	}
	if (usable)
		transfer(s, req->data.iov, req->data.n);
	else
		next_chunk(s);
}

/* ---- extents, space ---- */

/* is_hole_at returns whether the run at off is a hole, and its end in *end; or
 * -Exxx. */
static int64_t is_hole_at(int fd, uint64_t off, uint64_t *end)
{
	off_t data = lseek(fd, (off_t)off, SEEK_DATA), hole;

	if (data < 0 && errno != ENXIO)
		return -errno;
	if (data < 0) { /* no data up to the end */
		*end = UINT64_MAX;
		return true;
	}
	*end = (uint64_t)data;
	if (*end > off)
		return true;
	hole = lseek(fd, (off_t)off, SEEK_HOLE);
	if (hole < 0)
		return -errno;
	*end = (uint64_t)hole;
	return false;
}

/* A hole of lseek may be space that was allocated and never written. *end moves
 * to the end of that state. Without FIEMAP: false. */
static bool is_allocated(int fd, uint64_t off, uint64_t *end)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} u = { .map = { .fm_start = off,
			 .fm_length = *end - off,
			 .fm_extent_count = 1 } };
	const struct fiemap_extent *e = u.map.fm_extents;

	if (ioctl(fd, FS_IOC_FIEMAP, &u.map) < 0 ||
	    u.map.fm_mapped_extents == 0)
		return false;
	if (e->fe_logical > off) { /* a real hole up to there */
		*end = MIN(*end, e->fe_logical);
		return false;
	}
	*end = MIN(*end, e->fe_logical + e->fe_length);
	return e->fe_flags & FIEMAP_EXTENT_UNWRITTEN;
}

/* A block that is partly a hole counts as mapped. */
static int64_t find_extent(struct io_file_op *op)
{
	struct bsf_step *s = bsf_step_of_op(op);
	struct bs_req *req = s->req;
	uint64_t block = s->file->bs.block_size, end = req->off;
	int64_t hole = is_hole_at(op->fd, req->off, &end);

	if (hole < 0)
		return hole;
	end = MIN(end, req->off + req->len);
	req->extent_kept = hole && is_allocated(op->fd, req->off, &end);
	if (hole && end - req->off < block) {
		hole = false;
		end = req->off + block;
	}
	req->extent_len = hole ? (end - req->off) / block * block
			       : (end - req->off + block - 1) / block * block;
	req->extent_mapped = !hole;
	req->extent_kept &= hole != 0;
	return 0;
}

/* A file takes space of its file system, up to its own size. */
static int64_t measure_space(struct io_file_op *op)
{
	struct bsf_step *s = bsf_step_of_op(op);
	struct bs_req *req = s->req;
	uint64_t size = s->file->bs.size;
	struct statvfs fs;
	struct stat st;

	if (fstat(op->fd, &st) < 0 || fstatvfs(op->fd, &fs) < 0)
		return -errno;
	req->space_used = MIN((uint64_t)st.st_blocks * 512, size);
	req->space_left = MIN(size - req->space_used,
			      (uint64_t)fs.f_bavail * fs.f_frsize);
	return 0;
}

/* The current size of the file, or of the device as the kernel knows it. */
static int64_t measure_size(struct io_file_op *op)
{
	struct bsf_step *s = bsf_step_of_op(op);
	off_t size = lseek(op->fd, 0, SEEK_END);

	if (size < 0)
		return -errno;
	s->req->size_now =
		(uint64_t)size & ~((uint64_t)s->file->bs.block_size - 1);
	return 0;
}

static int64_t resize_file(struct io_file_op *op)
{
	const struct bsf_step *s = bsf_step_of_op(op);

	if (ftruncate(op->fd, (off_t)s->req->size_now) < 0)
		return -errno;
	return fsync(op->fd) < 0 ? -errno : 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode))
		return S_ISBLK(b->st_mode) && a->st_rdev == b->st_rdev;
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static enum bs_trouble compare_file(const struct bs_file *f,
				    const struct stat *st)
{
	struct stat named;
	off_t size = lseek(f->fd, 0, SEEK_END);
	uint64_t served = __atomic_load_n(&f->bs.size, __ATOMIC_RELAXED);

	/* no permission to look at the path: no result */
	if (!stat(f->path, &named)) {
		if (!is_same(st, &named))
			return BS_REPLACED;
	} else if (S_ISREG(st->st_mode) && st->st_nlink == 0) {
		return BS_DELETED;
	} else if (errno == ENOENT || errno == ENOTDIR) {
		return BS_MOVED;
	}
	if (!f->is_records && size >= 0 && (uint64_t)size < served)
		return BS_SHRUNK;
	return BS_SOUND;
}

static int64_t check_file(struct io_file_op *op)
{
	struct bsf_step *s = bsf_step_of_op(op);
	struct stat st;

	if (fstat(op->fd, &st) < 0)
		return -errno;
	s->req->trouble = compare_file(s->file, &st);
	return 0;
}

static void call_done(struct io_file_op *op, int64_t result)
{
	bsf_finish(bsf_step_of_op(op), result);
}

static void submit_call(struct bsf_step *s,
			int64_t (*call)(struct io_file_op *op))
{
	s->op.opcode = IO_FILE_CALL;
	s->op.call = call;
	bsf_go(s, call_done);
}

/* ---- the table ---- */

static void file_submit(struct bs *b, struct bs_req *req)
{
	struct bsf_step *s = (struct bsf_step *)(void *)req->priv;

	*s = (struct bsf_step){ .file = bsf_of(b), .req = req };
	switch (req->op) {
	case BS_READ:
	case BS_WRITE:
		read_or_write(s);
		break;
	case BS_FLUSH:
		bsf_flush(s);
		break;
	case BS_UNMAP:
	case BS_ZERO:
		bsf_zero(s);
		break;
	case BS_EXTENTS:
		submit_call(s, find_extent);
		break;
	case BS_SPACE:
		submit_call(s, measure_space);
		break;
	case BS_SIZE:
		submit_call(s, measure_size);
		break;
	case BS_RESIZE:
		submit_call(s, resize_file);
		break;
	case BS_CHECK:
		submit_call(s, check_file);
		break;
	case BS_PROTECT: /* not b->protection */
	case BS_MEND:
	case BS_REKEY: /* not BS_CAP_REKEY */
		bs_complete(req, ERR_UNSUPPORTED);
		break;
	}
}

static void file_close(struct bs *b)
{
	struct bs_file *f = bsf_of(b);

	bsf_flush_fini(f);
	bsf_lanes_fini(f);
	close(f->fd);
	munmap(f->zeros, BSF_CHUNK);
	free(f->loops);
	free(f->path);
	free(f);
}

const struct bs_ops bsf_ops = {
	.submit = file_submit,
	.lend = bs_lend_unsupported,
	.close = file_close,
};
