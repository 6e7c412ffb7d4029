/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * end.h: one end of a copy: the unit of a URL, a file, a block device, or a
 * pipe. Many reads and writes of a unit may be in progress at once; those of
 * files and pipes block. Functions that return an exit code have printed the
 * reason of a failure.
 */
#ifndef TOOLS_END_H
#define TOOLS_END_H

#include "tools/iser.h"

enum end_kind {
	END_UNIT,
	END_FILE, /* a regular file or block device: can be read anywhere */
	END_PIPE, /* a pipe or another stream: sequential only */
};

/* All zero but for fd = -1 is an end that is not open. */
struct end {
	enum end_kind kind;
	const char *name;	    /* borrowed from the command line */
	uint64_t size;		    /* bytes; UINT64_MAX: not known (a pipe) */
	uint32_t block;		    /* bytes; 1 for files */
	bool resizable;		    /* a regular file that end_begin empties */
	bool reads_zeros_where_new; /* set by end_begin: holes need no write */
	/* a unit */
	bool reports_holes; /* and they read as zeros */
	struct iser_session *session;
	struct iser_unit *unit;
	struct iser_url url;
	/* a file or pipe; -1: not open */
	int fd;
};

/* end_open_source opens the end that is read. Returns 0 or an exit code; the
 * caller closes it by end_close in either case. */
int end_open_source(struct end *e, struct iser_context *ctx, const char *name);
/* end_open_sink opens the end that is written, and refuses one that is the
 * source, that another process has locked, or that is too small for the source.
 * It changes no data of the sink. Returns 0 or an exit code; the caller closes
 * it by end_close in either case. */
int end_open_sink(struct end *e, struct iser_context *ctx, const char *name,
		  const struct end *src);
/* end_begin empties a sink that is a regular file and makes it size bytes long
 * (UINT64_MAX: not known). Returns 0 or an exit code. */
int end_begin(struct end *e, uint64_t size);
/* end_failed prints what failed and the reason in errno; returns the exit
 * code. */
int end_failed(const struct end *e, const char *what);
/* end_is_stdio returns whether the end is standard input or output. */
bool end_is_stdio(const struct end *e);
/* end_cut prints that a file ended at this byte, before its size; returns the
 * exit code. */
int end_cut(const struct end *e, uint64_t at);
/* end_check_source calls end_cut if the file has become shorter since it was
 * opened: data at its end may have been taken for a hole. It prints that a unit has
 * become larger, too: its end was not read. Returns 0 or an exit code. */
int end_check_source(const struct end *e);
/* end_close closes the end, and makes the written data durable first when flush
 * is set. Returns 0 or an exit code. */
int end_close(struct end *e, bool flush);

/* end_next_data finds the first run of data at or after off: [*start, *stop)
 * within [off, size), which is empty where a search has come no further. What lies
 * between off and *start is a hole and reads as zeros. An end that does not report
 * holes is one run of data. */
void end_next_data(const struct end *e, uint64_t off, uint64_t *start,
		   uint64_t *stop);
/* end_zero makes [off, off + len) read as zeros, by unmapping where possible.
 * Returns 0 or an exit code. */
int end_zero(struct end *e, uint64_t off, uint64_t len);

/* end_read_file reads len bytes, or what there is before the end of file.
 * Returns the number of bytes, or -1 after a failure. */
int64_t end_read_file(struct end *e, uint64_t off, void *buf, size_t len);
/* end_write_file writes len bytes. Returns 0 or an exit code. */
int end_write_file(struct end *e, uint64_t off, const void *buf, size_t len);

/* end_submit begins to move len bytes at off of a unit. r, which has done and arg, iov
 * and buf are borrowed until the request has ended. */
void end_submit(const struct end *e, struct iser_request *r, struct iovec *iov,
		bool write, uint64_t off, void *buf, size_t len);

#endif
