/* SPDX-License-Identifier: BSD-2-Clause */
/* bs_file.c: requests to a file or block device. */
#include "backstore/uring/bs_file.h"

#include <assert.h>
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

/* err_of_errno is the one place that says what a failed call means to a
 * logical unit. */
static int err_of_errno(int64_t err)
{
	switch (-err) {
	case 0:
		return 0;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return ERR_NO_SPACE;
	case EROFS:
	case EPERM:
		return ERR_READ_ONLY;
	case ENOMEM:
		return ERR_NOMEM;
	default:
		return ERR_MEDIUM;
	}
}

void bsf_finish(struct bsf_step *s, int64_t result)
{
	struct bs_req *req = s->req;

	free(s->bounce);
	s->bounce = NULL;
	bs_complete(req, err_of_errno(result));
}

void bsf_go(struct bsf_step *s,
	    void (*done)(struct io_file_op *op, int64_t result))
{
	assert(s->req->worker < s->file->nloops);
	s->op.fd = s->file->fd;
	s->op.done = done;
	io_file_submit(s->file->loops[s->req->worker], &s->op);
}

/* ---- flush ---- */

/* The kernel tells of a failed write-back once; so does the unit. */
static void flushed(struct io_file_op *op, int64_t result)
{
	bsf_finish(bsf_step_of_op(op), result);
}

void bsf_flush(struct bsf_step *s)
{
	s->op.opcode = IO_FILE_SYNC;
	bsf_go(s, flushed);
}

/* ---- read and write ---- */

/* is_usable: whether the kernel can move the request's own memory in one
 * call. */
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

static void moved(struct io_file_op *op, int64_t result)
{
	struct bsf_step *s = bsf_step_of_op(op);
	struct bs_req *req = s->req;

	if (result <= 0) { /* 0: the file has become shorter */
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

static void move(struct bsf_step *s, struct iovec *iov, unsigned n)
{
	struct bs_req *req = s->req;

	s->op.opcode = req->op == BS_READ ? IO_FILE_READ : IO_FILE_WRITE;
	s->op.flags = req->flags & BS_FUA ? RWF_DSYNC : 0;
	s->op.off = req->off + s->moved;
	s->op.iov = iov;
	s->op.niov = n;
	bsf_go(s, moved);
}

/* next_chunk moves what is left through a bounce buffer: memory that O_DIRECT
 * can't take, or the rest of a short transfer. */
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
	move(s, &s->iov, 1);
}

static void read_or_write(struct bsf_step *s)
{
	struct bs_req *req = s->req;

	if (req->op == BS_READ)
		req->flags &= ~BS_FUA;
	if (is_usable(s->file, &req->data))
		move(s, req->data.iov, req->data.n);
	else
		next_chunk(s);
}

/* ---- extents, space ---- */

/* is_hole_at finds the run at off that is alike: returns whether it is a hole,
 * and its end in *end. */
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

/* What lseek calls a hole may be space that was allocated and never written:
 * then it is kept. *end moves to where that changes. No FIEMAP, no saying. */
static bool is_kept(int fd, uint64_t off, uint64_t *end)
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
	if (e->fe_logical > off) { /* a true hole up to there */
		*end = MIN(*end, e->fe_logical);
		return false;
	}
	*end = MIN(*end, e->fe_logical + e->fe_length);
	return e->fe_flags & FIEMAP_EXTENT_UNWRITTEN;
}

/* A block that is part hole, part data counts as mapped. */
static int64_t find_extent(struct io_file_op *op)
{
	struct bsf_step *s = bsf_step_of_op(op);
	struct bs_req *req = s->req;
	uint64_t block = s->file->bs.block_size, end = req->off;
	int64_t hole = is_hole_at(op->fd, req->off, &end);

	if (hole < 0)
		return hole;
	end = MIN(end, req->off + req->len);
	req->extent_kept = hole && is_kept(op->fd, req->off, &end);
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

/* A file grows into its file system, but not beyond its size. */
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

/* A file as it is now, a device as the kernel knows it now. */
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

static void answered(struct io_file_op *op, int64_t result)
{
	bsf_finish(bsf_step_of_op(op), result);
}

static void ask(struct bsf_step *s, int64_t (*call)(struct io_file_op *op))
{
	s->op.opcode = IO_FILE_CALL;
	s->op.call = call;
	bsf_go(s, answered);
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
		ask(s, find_extent);
		break;
	case BS_SPACE:
		ask(s, measure_space);
		break;
	case BS_SIZE:
		ask(s, measure_size);
		break;
	case BS_PROTECT: /* not b->protection */
	case BS_MEND:
	case BS_REKEY: /* not BS_CAP_REKEY */
		bs_complete(req, ERR_UNSUPPORTED);
		break;
	}
}

static int file_lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov)
{
	(void)b;
	(void)off;
	(void)len;
	(void)iov;
	return ERR_UNSUPPORTED;
}

static void file_close(struct bs *b)
{
	struct bs_file *f = bsf_of(b);

	close(f->fd);
	munmap(f->zeros, BSF_CHUNK);
	free(f->loops);
	free(f);
}

const struct bs_ops bsf_ops = {
	.submit = file_submit,
	.lend = file_lend,
	.close = file_close,
};
