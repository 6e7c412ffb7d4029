/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * end.h: one end of a copy: a unit behind a URL, a file, a block device, or a
 * pipe. Reads and writes of units are under way together; those of files are
 * done at once.
 */
#ifndef TOOLS_END_H
#define TOOLS_END_H

#include "iser.h"

enum end_kind {
	END_UNIT,
	END_FILE, /* regular file or block device: has places */
	END_PIPE, /* only goes forward */
};

struct end {
	enum end_kind kind;
	const char *name;
	uint64_t size;		    /* bytes; UINT64_MAX: not known (a pipe) */
	uint32_t block;		    /* bytes; 1 for files */
	bool reads_zeros_where_new; /* holes need not be written */
	bool can_unmap;
	/* unit */
	struct iser_session *session;
	struct iser_url url;
	uint64_t max_transfer;
	/* file, pipe */
	int fd;
};

/* end_open_source / end_open_sink: 0 or an exit code, said already. size: how
 * much will be written, UINT64_MAX if not known. */
int end_open_source(struct end *e, struct iser_context *ctx, const char *name);
int end_open_sink(struct end *e, struct iser_context *ctx, const char *name,
		  uint64_t size);
/* end_close makes what was written durable when flush is set. */
int end_close(struct end *e, bool flush);

/*
 * The data run at or behind off: [*start, *stop) within [off, size); what is
 * before *start is a hole and reads as zeros. Without knowledge: all of it.
 */
void end_next_data(struct end *e, uint64_t off, uint64_t *start,
		   uint64_t *stop);
/* Makes [off, off + len) read as zeros, by giving it back where possible. */
int end_zero(struct end *e, uint64_t off, uint64_t len);

/* For files and pipes: all of len, or up to the end of file. Returns bytes,
 * or -1 (said). */
int64_t end_read_file(struct end *e, uint64_t off, void *buf, size_t len);
int end_write_file(struct end *e, uint64_t off, const void *buf, size_t len);

/* Readies io to move len bytes (whole blocks) at off of a unit. */
void end_prep(const struct end *e, struct iser_io *io, struct iovec *iov,
	      bool write, uint64_t off, void *buf, size_t len);

#endif
