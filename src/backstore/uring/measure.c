/* SPDX-License-Identifier: BSD-2-Clause */
/* measure.c: whether a file or block device can be a store, and its sizes: what can be
 * said before it is locked. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backstore/uring/opening.h"
#include "base/err.h"

__attribute__((format(printf, 3, 4))) int
bsf_refuse(struct bsf_opening *o, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_why(o->why, o->why_size, o->cfg->path, format, args);
	va_end(args);
	return err;
}

bool bsf_is_device(const struct bsf_opening *o)
{
	return S_ISBLK(o->st.st_mode);
}

static int refuse_open(struct bsf_opening *o, int err)
{
	switch (err) {
	case -ENOENT:
		return bsf_refuse(
			o, err,
			"no such file; name an existing file or block "
			"device, or ram:SIZE");
	case -EACCES:
	case -EPERM:
		return bsf_refuse(
			o, err,
			"permission denied; let the user that iserd runs as (uid %u) %s it%s",
			geteuid(),
			o->cfg->read_only ? "read" : "read and write",
			o->cfg->read_only ? "" : ", or serve it read-only");
	case -EROFS:
		return bsf_refuse(
			o, err,
			"is on a file system that is read-only for iserd; "
			"add its directory to ReadWritePaths= of the "
			"service, or serve it read-only");
	case -EBUSY:
		return bsf_refuse(
			o, err,
			"is in use by the system (mounted, or part of a "
			"volume); free it, or serve it read-only");
	default:
		return bsf_refuse(o, err, "cannot be opened: %s",
				  strerror(-err));
	}
}

static int stat_file(struct bsf_opening *o)
{
	if (stat(o->cfg->path, &o->st) < 0)
		return refuse_open(o, -errno);
	if (S_ISDIR(o->st.st_mode))
		return bsf_refuse(
			o, -EISDIR,
			"is a directory; name a file or block device");
	if (!S_ISREG(o->st.st_mode) && !bsf_is_device(o))
		return bsf_refuse(o, -EINVAL,
				  "is neither a file nor a block device");
	return 0;
}

/* The lock belongs to the open file: it ends with the process or, if io_uring
 * had requests of it in progress, shortly after. A process that replaces a
 * killed one waits for that. */
const struct timespec bsf_lock_pause = { .tv_nsec = 25000000 };

/* O_EXCL on a block device fails while the system itself uses the device, or
 * another process has it open with O_EXCL. */
static int open_fd(struct bsf_opening *o)
{
	int flags = O_CLOEXEC | O_NOCTTY;
	int fd;

	flags |= o->cfg->read_only ? O_RDONLY : O_RDWR;
	if (bsf_is_device(o) && !o->cfg->read_only && !o->cfg->shared)
		flags |= O_EXCL;
	fd = open(o->cfg->path, flags);
	for (unsigned i = 0;
	     fd < 0 && errno == EBUSY && i < o->cfg->lock_retries; i++) {
		nanosleep(&bsf_lock_pause, NULL);
		fd = open(o->cfg->path, flags);
	}
	return fd < 0 ? -errno : fd;
}

/* ---- size and blocks ---- */

static int device_size(struct bsf_opening *o, uint64_t *size)
{
	if (ioctl(o->file->fd, BLKGETSIZE64, size) < 0)
		return bsf_refuse(o, -errno, "its size cannot be read: %s",
				  strerror(errno));
	return 0;
}

static uint32_t native_block(const struct bsf_opening *o)
{
	int size = 512;

	if (bsf_is_device(o) && ioctl(o->file->fd, BLKSSZGET, &size) < 0)
		size = 512;
	return (uint32_t)size;
}

static uint32_t physical_block(const struct bsf_opening *o)
{
	unsigned size = (unsigned)o->st.st_blksize;

	if (bsf_is_device(o) && ioctl(o->file->fd, BLKPBSZGET, &size) < 0)
		size = 512;
	if (size < o->file->bs.block_size || size > 65536 ||
	    (size & (size - 1)))
		size = 4096;
	return size;
}

static int measure_file(struct bsf_opening *o)
{
	struct bs *b = &o->file->bs;
	int err = 0;

	if (o->cfg->grain) {
		b->block_size = b->phys_block = o->cfg->grain;
		b->size = 1ull << 50;
		return 0;
	}
	b->block_size =
		o->cfg->block_size ? o->cfg->block_size : native_block(o);
	if (!bs_block_size_ok(b->block_size))
		return bsf_refuse(
			o, -EINVAL,
			"blocks of %u bytes are not supported; use 512 "
			"or 4096",
			b->block_size);
	b->size = (uint64_t)o->st.st_size;
	if (bsf_is_device(o))
		err = device_size(o, &b->size);
	if (err)
		return err;
	if (b->size == 0)
		return bsf_refuse(o, -EINVAL,
				  "is empty; give it a size, for example with "
				  "truncate -s 1G");
	if (b->size % b->block_size)
		return bsf_refuse(
			o, -EINVAL,
			"its %llu bytes are not whole blocks of %u; pad "
			"it with truncate -s %%%u",
			(unsigned long long)b->size, b->block_size,
			b->block_size);
	b->phys_block = physical_block(o);
	return 0;
}

/* ---- all ---- */

int bsf_measure(struct bsf_opening *o)
{
	int err = stat_file(o);

	if (err)
		return err;
	o->file->fd = open_fd(o);
	if (o->file->fd < 0)
		return refuse_open(o, o->file->fd);
	if (fstat(o->file->fd, &o->st) < 0)
		return refuse_open(o, -errno);
	return measure_file(o);
}

int bs_file_look(const struct bs_file_config *cfg, char *why, size_t size)
{
	struct bs_file f = { .fd = -1 };
	struct bsf_opening o = {
		.cfg = cfg, .file = &f, .why = why, .why_size = size
	};
	int err = bsf_measure(&o);

	if (f.fd >= 0)
		close(f.fd);
	return err;
}
