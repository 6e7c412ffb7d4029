/* SPDX-License-Identifier: BSD-2-Clause */
/* end.c: reading, writing, holes and closing of the ends of a copy. */
#include "tools/end.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZEROS (1u << 20)

/* Whether fsync failed because the descriptor is a pipe or a terminal, which
 * has nothing to make durable. */
static bool is_unsyncable(const struct end *e)
{
	return e->kind == END_PIPE &&
	       (errno == EINVAL || errno == EROFS || errno == ENOTSUP);
}

bool end_is_stdio(const struct end *e)
{
	return !strcmp(e->name, "-");
}

int end_cut(const struct end *e, uint64_t at)
{
	say("%s: became shorter while it was read: %llu bytes where %llu "
	    "were; read it again",
	    e->name, (unsigned long long)at, (unsigned long long)e->size);
	return EXIT_GENERIC;
}

/* libiser sends no command to a unit that became smaller. */
static int check_unit(const struct end *e)
{
	struct iser_capacity c;
	int err = iser_read_capacity(e->session, e->url.lun, &c);

	if (err)
		return say_failed(iser_session_context(e->session), err);
	if (c.bytes == e->size && c.block_size == e->block)
		return 0;
	say("%s: became larger while it was read: %llu bytes where %llu "
	    "were; read it again",
	    e->name, (unsigned long long)c.bytes, (unsigned long long)e->size);
	return EXIT_GENERIC;
}

int end_check_source(const struct end *e)
{
	struct stat st;

	if (e->kind == END_UNIT)
		return check_unit(e);
	if (e->kind != END_FILE)
		return 0;
	if (fstat(e->fd, &st))
		return end_failed(e, "cannot read its status");
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size >= e->size)
		return 0;
	return end_cut(e, (uint64_t)st.st_size);
}

/* Puts the offset of standard input or output after the copied data, where the
 * next program of a shell script continues. */
static void leave_offset(const struct end *e)
{
	if (e->kind == END_FILE && end_is_stdio(e))
		(void)lseek(e->fd, 0, SEEK_END);
}

int end_close(struct end *e, bool flush)
{
	int code = 0, err;

	if (e->kind == END_UNIT && e->session) {
		err = flush ? iser_pflush(e->unit) : 0;
		if (err)
			code = say_failed(iser_session_context(e->session),
					  err);
		iser_unit_close(e->unit);
		iser_disconnect(e->session);
	}
	if (e->fd >= 0) {
		leave_offset(e);
		if (flush && fsync(e->fd) && !is_unsyncable(e))
			code = end_failed(e, "cannot make it durable");
		if (close(e->fd) && flush)
			code = end_failed(e, "cannot close it");
	}
	e->session = NULL;
	e->unit = NULL;
	e->fd = -1;
	return code;
}

/* ---- holes ---- */

/* Bytes of a unit in which the next run of data is looked for at once. */
#define LOOK (UINT64_C(16) << 30)

/* After an error the range counts as data: reading it has the reason. */
static void unit_next_data(const struct end *e, uint64_t off, uint64_t *start,
			   uint64_t *stop)
{
	uint64_t left = e->size - off, len = left < LOOK ? left : LOOK;
	struct iser_range x[2];
	int n = iser_pextents(e->unit, off, len, x, 2);

	if (n <= 0)
		return;
	*start = x[0].zeros ? off + x[0].length : off;
	*stop = *start;
	if (!x[0].zeros)
		*stop += x[0].length;
	else if (n == 2)
		*stop += x[1].length;
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

void end_next_data(const struct end *e, uint64_t off, uint64_t *start,
		   uint64_t *stop)
{
	*start = off;
	*stop = e->size;
	if (e->reports_holes)
		unit_next_data(e, off, start, stop);
	else if (e->kind == END_FILE)
		file_next_data(e, off, start, stop);
}

static int write_zeros(struct end *e, uint64_t off, uint64_t len)
{
	uint8_t *zeros = calloc(1, ZEROS);
	int code = zeros ? 0 : say_no_memory();

	while (len > 0 && !code) {
		size_t n = (size_t)(len < ZEROS ? len : ZEROS);

		code = end_write_file(e, off, zeros, n);
		off += n;
		len -= n;
	}
	free(zeros);
	return code;
}

int end_zero(struct end *e, uint64_t off, uint64_t len)
{
	int err;

	if (e->reads_zeros_where_new)
		return 0;
	if (e->kind != END_UNIT)
		return write_zeros(e, off, len);
	err = iser_pzero(e->unit, off, len, ISER_OP_MAY_UNMAP);
	return err ? say_failed(iser_session_context(e->session), err) : 0;
}

/* ---- reading and writing ---- */

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
			end_failed(e, "cannot read it");
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
			return end_failed(e, "cannot write it");
		done += (size_t)n;
	}
	return 0;
}

void end_submit(const struct end *e, struct iser_request *r, struct iovec *iov,
		bool write, uint64_t off, void *buf, size_t len)
{
	iov->iov_base = buf;
	iov->iov_len = len;
	r->op = write ? ISER_OP_WRITE : ISER_OP_READ;
	r->offset = off;
	r->length = len;
	r->iov = iov;
	r->niov = 1;
	iser_unit_submit(e->unit, r);
}
