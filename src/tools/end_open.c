/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * end_open.c: opening the ends of a copy. A destination is opened, locked and
 * compared with the source before any of its data changes; only end_begin
 * empties a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/loop.h>

#include "tools/end.h"

/* ---- units ---- */

static int open_end_unit(struct end *e, struct iser_context *ctx)
{
	struct iser_unit_info i;
	int code;

	e->kind = END_UNIT;
	code = open_unit(ctx, e->name, 0, &e->url, &e->session, &e->unit);
	if (code)
		return code;
	iser_unit_get_info(e->unit, &i);
	e->size = i.bytes;
	e->block = i.block_size;
	e->reports_holes = i.thin && i.reads_zeros;
	return 0;
}

/* ---- files ---- */

int end_failed(const struct end *e, const char *what)
{
	say("%s: %s: %s", e->name, what, strerror(errno));
	return EXIT_GENERIC;
}

static int refuse_end(const struct end *e, const char *why)
{
	say("%s: %s; nothing was written", e->name, why);
	return EXIT_INVALID;
}

static void make_pipe(struct end *e)
{
	e->kind = END_PIPE;
	e->size = UINT64_MAX;
}

static int file_kind(struct end *e)
{
	struct stat st;

	if (fstat(e->fd, &st))
		return end_failed(e, "cannot read its status");
	if (S_ISDIR(st.st_mode))
		return refuse_end(e,
				  "is a directory: give a file, a block device "
				  "or a URL");
	e->block = 1;
	e->kind = END_FILE;
	if (S_ISREG(st.st_mode)) {
		e->size = (uint64_t)st.st_size;
		return 0;
	}
	if (S_ISBLK(st.st_mode)) {
		if (ioctl(e->fd, BLKGETSIZE64, &e->size))
			return end_failed(e, "cannot read its size");
		return 0;
	}
	make_pipe(e);
	return 0;
}

static int check_stdio(const struct end *e, int wanted)
{
	int mode = fcntl(e->fd, F_GETFL) & O_ACCMODE;

	if (mode == wanted || mode == O_RDWR)
		return 0;
	return refuse_end(e,
			  wanted == O_RDONLY
				  ? "standard input is not open for reading"
				  : "standard output is not open for writing");
}

/* Treats standard input or output as a pipe if its file is in use already: the
 * shell may have written to it or read from it before this program began. */
static void check_offset(struct end *e, bool write)
{
	int flags = fcntl(e->fd, F_GETFL);
	bool used = lseek(e->fd, 0, SEEK_CUR) != 0;
	struct stat st;

	if (e->kind != END_FILE)
		return;
	if (write)
		used |= (flags & O_APPEND) || e->size > 0 ||
			fstat(e->fd, &st) || !S_ISREG(st.st_mode);
	if (used)
		make_pipe(e);
}

/* The storage of a descriptor: device and inode of a file, or the number of
 * a block device. */
struct place {
	uint64_t device, inode;
	bool is_file;
};

/* find_place replaces a loop device by its file. */
static bool find_place(const struct end *e, struct place *p)
{
	struct loop_info64 loop;
	struct stat st;

	if (e->fd < 0 || fstat(e->fd, &st))
		return false;
	if (S_ISBLK(st.st_mode) && !ioctl(e->fd, LOOP_GET_STATUS64, &loop))
		*p = (struct place){ .device = loop.lo_device,
				     .inode = loop.lo_inode,
				     .is_file = true };
	else if (S_ISBLK(st.st_mode))
		*p = (struct place){ .device = st.st_rdev };
	else
		*p = (struct place){ .device = st.st_dev,
				     .inode = st.st_ino,
				     .is_file = true };
	return S_ISBLK(st.st_mode) || S_ISREG(st.st_mode);
}

/* is_same_file compares inodes and device numbers, so that links and device
 * nodes of other names are found. */
static bool is_same_file(const struct end *a, const struct end *b)
{
	struct place pa, pb;

	return find_place(a, &pa) && find_place(b, &pb) &&
	       pa.device == pb.device && pa.inode == pb.inode &&
	       pa.is_file == pb.is_file;
}

/*
 * is_locked takes the lock that iserd holds on the files that it serves and
 * QEMU on its images, and returns whether another process holds it. Closing the
 * descriptor releases the lock. The shell shares standard input and output,
 * which would stay locked when this program has ended: their lock is only
 * tested. On a file system without such locks the file counts as not locked.
 */
static bool is_locked(const struct end *e, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET };

	if (e->kind != END_FILE)
		return false;
	if (end_is_stdio(e))
		return !fcntl(e->fd, F_OFD_GETLK, &l) && l.l_type != F_UNLCK;
	return fcntl(e->fd, F_OFD_SETLK, &l) &&
	       (errno == EAGAIN || errno == EACCES);
}

/* Only warns: reading a file that another process writes destroys no data. */
static void lock_source(const struct end *e)
{
	if (is_locked(e, F_RDLCK))
		say("%s: another process has it open for writing (iserd, "
		    "QEMU?): the copy may mix data of different moments; stop "
		    "that process for a consistent copy",
		    e->name);
}

int end_open_source(struct end *e, struct iser_context *ctx, const char *name)
{
	int code;

	*e = (struct end){ .name = name, .fd = -1 };
	if (is_url(name))
		return open_end_unit(e, ctx);
	e->fd = end_is_stdio(e) ? dup(STDIN_FILENO)
				: open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (e->fd < 0)
		return end_failed(e, "cannot open it for reading");
	code = file_kind(e);
	if (!code && end_is_stdio(e))
		code = check_stdio(e, O_RDONLY);
	if (code)
		return code;
	if (end_is_stdio(e))
		check_offset(e, false);
	lock_source(e);
	/* files of /proc report size 0 and have data */
	if (e->kind == END_FILE && e->size == 0)
		make_pipe(e);
	return 0;
}

/* ---- the sink ---- */

static int check_room(const struct end *e, uint64_t size)
{
	char need[32], have[32];

	if (e->kind == END_PIPE || e->resizable || size == UINT64_MAX ||
	    size <= e->size)
		return 0;
	say("%s: holds %s, the source has %s; nothing was written", e->name,
	    human(e->size, have), human(size, need));
	return EXIT_INVALID;
}

static int open_sink_unit(struct end *e, struct iser_context *ctx,
			  const struct end *src)
{
	int code = open_end_unit(e, ctx);
	const char *why = code ? NULL : read_only_reason(e->unit);

	if (code)
		return code;
	if (why)
		return refuse_end(e, why);
	if (src->kind == END_UNIT && iser_unit_is_same(src->unit, e->unit))
		return refuse_end(e, "is the same unit as the source");
	return check_room(e, src->size);
}

/* O_EXCL refuses a block device that the system uses (a mount, a volume) or that
 * another process has opened with O_EXCL. A FIFO is opened for writing alone,
 * which waits for its reader: data written before would be lost. */
static int open_sink_path(struct end *e)
{
	int flags = O_CLOEXEC | O_NOCTTY;
	struct stat st = { 0 };

	if (stat(e->name, &st) && errno != ENOENT)
		return end_failed(e, "cannot read its status");
	if (S_ISBLK(st.st_mode))
		flags |= O_RDWR | O_EXCL;
	else if (S_ISREG(st.st_mode) || st.st_mode == 0)
		flags |= O_RDWR | O_CREAT;
	else
		flags |= O_WRONLY;
	e->fd = open(e->name, flags, 0666);
	if (e->fd >= 0)
		return 0;
	if (errno == EBUSY)
		return refuse_end(e, "is in use by the system or by another "
				     "process (mounted, part of a volume, or "
				     "served)");
	return end_failed(e, "cannot open it for writing");
}

static int open_sink_file(struct end *e, const struct end *src)
{
	struct stat st;
	int code = 0;

	if (!end_is_stdio(e))
		code = open_sink_path(e);
	else
		e->fd = dup(STDOUT_FILENO);
	if (code)
		return code;
	if (e->fd < 0)
		return end_failed(e, "cannot open it for writing");
	code = file_kind(e);
	if (!code && end_is_stdio(e))
		code = check_stdio(e, O_WRONLY);
	if (code)
		return code;
	if (is_same_file(src, e))
		return refuse_end(e, "is the same file as the source");
	if (is_locked(e, F_WRLCK))
		return refuse_end(e, "another process has locked it (iserd, "
				     "QEMU?): stop that process first");
	if (end_is_stdio(e))
		check_offset(e, true);
	e->resizable = e->kind == END_FILE && !fstat(e->fd, &st) &&
		       S_ISREG(st.st_mode);
	return check_room(e, src->size);
}

int end_open_sink(struct end *e, struct iser_context *ctx, const char *name,
		  const struct end *src)
{
	*e = (struct end){ .name = name, .fd = -1 };
	return is_url(name) ? open_sink_unit(e, ctx, src)
			    : open_sink_file(e, src);
}

int end_begin(struct end *e, uint64_t size)
{
	if (!e->resizable)
		return 0;
	/* a file that was emptied and extended consists of holes */
	if (ftruncate(e->fd, 0))
		return end_failed(e, "cannot empty it");
	e->reads_zeros_where_new = true;
	if (size == UINT64_MAX)
		return 0;
	if (ftruncate(e->fd, (off_t)size))
		return end_failed(e,
				  "cannot extend it to the size of the source");
	e->size = size;
	return 0;
}
