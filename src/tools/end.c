/* SPDX-License-Identifier: BSD-2-Clause */
/* end.c: units, files and pipes as ends of a copy. */
#include "end.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#define ZEROS (1u << 20)

/* ---- opening ---- */

static int open_unit(struct end *e, struct iser_context *ctx)
{
	struct iser_capacity c;
	int code = 0, err;

	e->kind = END_UNIT;
	e->session = open_url(ctx, e->name, &e->url, &code);
	if (!e->session)
		return code;
	err = iser_read_capacity(e->session, e->url.lun, &c);
	if (err)
		return failed(ctx, err);
	e->size = c.blocks * c.block_size;
	e->block = c.block_size;
	e->can_unmap = c.thin && c.reads_zeros;
	e->max_transfer = iser_max_transfer(e->session, e->url.lun, e->block);
	return 0;
}

static int system_failed(const struct end *e, const char *what)
{
	say("%s: %s: %s", e->name, what, strerror(errno));
	return EXIT_GENERIC;
}

static int file_kind(struct end *e)
{
	struct stat st;

	if (fstat(e->fd, &st))
		return system_failed(e, "can't be looked at");
	e->block = 1;
	e->kind = END_FILE;
	if (S_ISREG(st.st_mode)) {
		e->size = (uint64_t)st.st_size;
		return 0;
	}
	if (S_ISBLK(st.st_mode)) {
		if (ioctl(e->fd, BLKGETSIZE64, &e->size))
			return system_failed(e, "no size");
		return 0;
	}
	e->kind = END_PIPE;
	e->size = UINT64_MAX;
	return 0;
}

int end_open_source(struct end *e, struct iser_context *ctx, const char *name)
{
	*e = (struct end){ .name = name, .fd = -1 };
	if (is_url(name))
		return open_unit(e, ctx);
	if (!strcmp(name, "-"))
		e->fd = dup(STDIN_FILENO);
	else
		e->fd = open(name, O_RDONLY | O_CLOEXEC);
	if (e->fd < 0)
		return system_failed(e, "can't be opened for reading");
	return file_kind(e);
}

/* A new or emptied file is as long as what goes in: its holes are free. */
static int size_file(struct end *e, uint64_t size)
{
	struct stat st;

	if (e->kind != END_FILE || fstat(e->fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	e->reads_zeros_where_new = true;
	if (size == UINT64_MAX)
		return 0;
	if (ftruncate(e->fd, (off_t)size))
		return system_failed(e, "can't be made as long as the source");
	e->size = size;
	return 0;
}

static int check_room(const struct end *e, uint64_t size)
{
	char need[32], have[32];

	if (e->kind == END_PIPE || e->reads_zeros_where_new ||
	    size == UINT64_MAX || size <= e->size)
		return 0;
	say("%s holds %s, the source has %s: nothing was written", e->name,
	    human(e->size, have), human(size, need));
	return EXIT_INVALID;
}

static int check_unit(const struct end *e, uint64_t size)
{
	if (is_read_only_cd(e->session, e->url.lun)) {
		say("%s is a CD/DVD drive, what is in it can't be written",
		    e->name);
		return EXIT_INVALID;
	}
	return check_room(e, size);
}

int end_open_sink(struct end *e, struct iser_context *ctx, const char *name,
		  uint64_t size)
{
	int code;

	*e = (struct end){ .name = name, .fd = -1 };
	if (is_url(name)) {
		code = open_unit(e, ctx);
		return code ? code : check_unit(e, size);
	}
	if (!strcmp(name, "-"))
		e->fd = dup(STDOUT_FILENO);
	else
		e->fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
			     0666);
	if (e->fd < 0)
		return system_failed(e, "can't be opened for writing");
	code = file_kind(e);
	if (!code)
		code = size_file(e, size);
	return code ? code : check_room(e, size);
}

int end_close(struct end *e, bool flush)
{
	int code = 0;

	if (e->kind == END_UNIT && e->session) {
		if (flush && iser_flush(e->session, e->url.lun))
			code = failed(iser_session_context(e->session),
				      ISER_E_SCSI);
		iser_disconnect(e->session);
	}
	if (e->fd >= 0) {
		if (flush && e->kind == END_FILE && fsync(e->fd))
			code = system_failed(e, "can't be made durable");
		if (close(e->fd) && flush)
			code = system_failed(e, "can't be closed");
	}
	e->session = NULL;
	e->fd = -1;
	return code;
}

/* ---- holes ---- */

#define EXTENTS 64

static void unit_next_data(struct end *e, uint64_t off, uint64_t *start,
			   uint64_t *stop)
{
	struct iser_extent x[EXTENTS];
	uint64_t lba = off / e->block;
	int n = iser_lba_status(e->session, e->url.lun, lba, x, EXTENTS);

	if (n <= 0) { /* not offered: all may be data, ask no more */
		e->can_unmap = false;
		return;
	}
	*start = *stop = e->size;
	for (int i = 0; i < n; i++) {
		uint64_t from = x[i].lba * e->block;
		uint64_t to = from + x[i].blocks * e->block;

		if (x[i].mapped) {
			*start = from > off ? from : off;
			*stop = to < e->size ? to : e->size;
			return;
		}
		/* nothing but holes so far: go on behind them */
		if (i == n - 1 && to < e->size) {
			*start = *stop = to;
		}
	}
}

static void file_next_data(const struct end *e, uint64_t off, uint64_t *start,
			   uint64_t *stop)
{
	off_t data = lseek(e->fd, (off_t)off, SEEK_DATA), hole;

	if (data < 0) {
		if (errno == ENXIO) /* a hole to the end */
			*start = *stop = e->size;
		return;
	}
	hole = lseek(e->fd, data, SEEK_HOLE);
	*start = (uint64_t)data;
	if (hole > data)
		*stop = (uint64_t)hole;
}

void end_next_data(struct end *e, uint64_t off, uint64_t *start, uint64_t *stop)
{
	*start = off;
	*stop = e->size;
	if (e->kind == END_UNIT && e->can_unmap)
		unit_next_data(e, off, start, stop);
	else if (e->kind == END_FILE)
		file_next_data(e, off, start, stop);
}

static int write_zeros(struct end *e, uint64_t off, uint64_t len)
{
	bool limited = e->max_transfer && e->max_transfer < ZEROS;
	uint64_t most = limited ? e->max_transfer : ZEROS;
	uint8_t *zeros = calloc(1, ZEROS);
	int code = zeros ? 0 : EXIT_NOMEM;

	while (len > 0 && !code) {
		size_t n = (size_t)(len < most ? len : most);

		if (e->kind != END_UNIT)
			code = end_write_file(e, off, zeros, n);
		else if (iser_write(e->session, e->url.lun, e->block,
				    off / e->block, zeros, n))
			code = failed(iser_session_context(e->session),
				      ISER_E_SCSI);
		off += n;
		len -= n;
	}
	free(zeros);
	return code;
}

int end_zero(struct end *e, uint64_t off, uint64_t len)
{
	uint64_t tail = len % e->block;

	if (e->reads_zeros_where_new)
		return 0;
	/* a torn last block is the caller's, with the data around it */
	len -= tail;
	if (e->kind == END_UNIT && e->can_unmap &&
	    !iser_unmap(e->session, e->url.lun, off / e->block, len / e->block))
		return 0;
	return write_zeros(e, off, len);
}

/* ---- moving ---- */

int64_t end_read_file(struct end *e, uint64_t off, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint8_t *to = (uint8_t *)buf + done;
		ssize_t n = e->kind == END_PIPE ? read(e->fd, to, len - done)
						: pread(e->fd, to, len - done,
							(off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			system_failed(e, "can't be read");
			return -1;
		}
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (int64_t)done;
}

int end_write_file(struct end *e, uint64_t off, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const uint8_t *from = (const uint8_t *)buf + done;
		ssize_t n = e->kind == END_PIPE
				    ? write(e->fd, from, len - done)
				    : pwrite(e->fd, from, len - done,
					     (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return system_failed(e, "can't be written");
		done += (size_t)n;
	}
	return 0;
}

void end_prep(const struct end *e, struct iser_io *io, struct iovec *iov,
	      bool write, uint64_t off, void *buf, size_t len)
{
	iov->iov_base = buf;
	iov->iov_len = len;
	io->iov = iov;
	io->niov = 1;
	iser_prep_rw(io, e->url.lun, write, off / e->block,
		     (uint32_t)(len / e->block));
}
