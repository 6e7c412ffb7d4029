/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h: a logical unit as a device of bytes. A request has any offset and any
 * length; the library splits it into commands that the unit permits, and reads
 * and writes partial blocks by whole blocks. iser.h has the rules for threads,
 * ownership, errors and the binary interface, which hold here, too.
 *
 * Partial blocks: a WRITE or ZERO that begins or ends within a block reads that
 * block and writes it back with the new bytes. The library orders the requests
 * of one struct iser_unit so that no request loses bytes of another one. A
 * request of another program, or of another struct iser_unit, may change the
 * block in between: where iser_unit_info.atomic_partial is set, the library
 * detects that by COMPARE AND WRITE and repeats the step, for iser_url.retry
 * seconds at most; elsewhere the change of
 * the other program is lost.
 *
 * Order: requests in progress at the same time are executed in any order. A
 * caller that needs an order waits for done.
 */
#ifndef ISER_UNIT_H
#define ISER_UNIT_H

#include "iser/iser.h"

#ifdef __cplusplus
extern "C" {
#endif

struct iser_unit;

/* What a unit reports about itself. */
struct iser_unit_info {
	uint64_t bytes; /* the capacity */
	uint32_t block_size, physical_block_size;
	/* Most bytes of one READ or WRITE; larger requests become several
	 * commands. */
	uint32_t max_transfer;
	/* Most bytes of ISER_OP_COMPARE_AND_WRITE; 0: not supported. */
	uint32_t max_compare_and_write;
	uint8_t type;	  /* peripheral device type (SPC-4 table 144) */
	bool read_only;	  /* write protected */
	bool has_fua;	  /* else FUA is a WRITE and a SYNCHRONIZE CACHE */
	bool thin;	  /* logical block provisioning: see ISER_OP_EXTENTS */
	bool reads_zeros; /* unmapped blocks read as zeros */
	bool can_trim;	  /* supports UNMAP, or WRITE SAME with UNMAP */
	bool can_zero;	  /* supports WRITE SAME, as far as known */
	bool atomic_partial; /* see the comment at the begin of this header */
	char vendor[9], product[17], revision[5]; /* escaped, not padded */
	uint8_t reserved_bytes[1];
	uint64_t reserved[16]; /* 0 */
};

/*
 * iser_unit_open reads the properties of a unit by INQUIRY, READ CAPACITY and
 * MODE SENSE, and blocks. The caller frees the unit by iser_unit_close before it
 * disconnects s. NULL: *err has the reason, such as ISER_E_NOT_FOUND (the target
 * has no such unit), ISER_E_UNSUPPORTED (a tape, an enclosure), ISER_E_SCSI (no
 * medium).
 */
ISER_API struct iser_unit *iser_unit_open(struct iser_session *s, int lun,
					  int *err);
/*
 * iser_unit_open_start does the same and returns at once. done is called once
 * with arg, the unit and the result, not from within this call. The caller frees
 * the unit by iser_unit_close in either case, not from within done; before done,
 * that waits for the command in progress, and done is not called. NULL: *err has
 * the reason, and done is not called.
 */
ISER_API struct iser_unit *
iser_unit_open_start(struct iser_session *s, int lun,
		     void (*done)(void *arg, struct iser_unit *u, int err),
		     void *arg, int *err);
/* iser_unit_refresh_start reads the properties again, for example after the
 * capacity has changed. done is called as by iser_unit_open_start; after a
 * failure the former properties stay valid. ISER_E_INVALID: the unit is being
 * opened or refreshed already, and done is not called. */
ISER_API int iser_unit_refresh_start(struct iser_unit *u,
				     void (*done)(void *arg,
						  struct iser_unit *u, int err),
				     void *arg);
/* iser_unit_refresh does the same and blocks. */
ISER_API int iser_unit_refresh(struct iser_unit *u);
/* iser_unit_close waits for the requests in progress and frees u. It blocks only
 * if there are any. NULL is allowed. */
ISER_API void iser_unit_close(struct iser_unit *u);
/* iser_unit_get_info fills in *info. */
ISER_API void iser_unit_get_info(const struct iser_unit *u,
				 struct iser_unit_info *info);
/* iser_unit_session returns the session of u. */
ISER_API struct iser_session *iser_unit_session(const struct iser_unit *u);
/* iser_unit_is_same returns whether a and b are one unit, perhaps reached over several
 * portals, target names or LUNs: both have the same target name and LUN, or share
 * a strong designator (see iser_connect_paths). false where the units have no strong
 * designators to compare. */
ISER_API bool iser_unit_is_same(const struct iser_unit *a,
				const struct iser_unit *b);

/* ---- requests ---- */

enum iser_op {
	ISER_OP_READ = 1,
	ISER_OP_WRITE,
	/* All data that were written become durable. */
	ISER_OP_FLUSH,
	/* The whole blocks in the range become unmapped; what they read as is
	 * undefined unless iser_unit_info.reads_zeros is set. Partial blocks at
	 * the ends of the range stay as they are. */
	ISER_OP_TRIM,
	/* The range reads as zeros. */
	ISER_OP_ZERO,
	/* Reports which parts of the range are mapped. */
	ISER_OP_EXTENTS,
	/* Compares `length` bytes of the unit with the first half of iov; if
	 * they are equal, writes the second half, else ISER_E_MISCOMPARE. The
	 * unit does both without another command in between (SBC-3 §5.2). offset
	 * and length are whole blocks. */
	ISER_OP_COMPARE_AND_WRITE,
};

enum iser_op_flags {
	/* The data are durable before the request ends. */
	ISER_OP_FUA = 1,
	/* ZERO: the blocks may become unmapped, if they read as zeros then. */
	ISER_OP_MAY_UNMAP = 2,
	/* ZERO: ends with ISER_E_UNSUPPORTED where it would have to write
	 * zeros from memory. */
	ISER_OP_FAST = 4,
};

/* A run of bytes with one provisioning status. */
struct iser_range {
	uint64_t offset, length;
	bool mapped;	     /* false: deallocated or anchored */
	bool zeros;	     /* reads as zeros */
	uint8_t reserved[6]; /* 0 */
};

/*
 * One request. The caller zeroes the struct, fills in the first part and owns the
 * struct and all that it points to; the library borrows both from
 * iser_unit_submit until it calls done. The struct may then be submitted again.
 */
struct iser_request {
	enum iser_op op;
	unsigned flags; /* enum iser_op_flags */
	uint64_t offset, length;
	/* READ, WRITE: `length` bytes; COMPARE_AND_WRITE: twice that. At most
	 * 1000 elements. */
	struct iovec *iov;
	unsigned niov;
	unsigned max_ranges; /* EXTENTS: elements of ranges, at least 1 */
	struct iser_range *ranges;
	void (*done)(struct iser_request *r); /* the request has ended */
	void *arg;			      /* the caller's */
	uint64_t reserved[4];		      /* 0 */
	/* the result, set by the library before done */
	int err; /* after a failure some of the blocks may have been written */
	/* EXTENTS: elements of ranges that were set. The first begins at
	 * offset, each further one at the end of the one before. The last one
	 * ends at offset + length, or before. */
	unsigned nranges;
	/* COMPARE_AND_WRITE: where in iov the first different byte is */
	uint64_t miscompare;
	/* ISER_E_SCSI, ISER_E_MISCOMPARE: of the command that failed */
	uint8_t opcode, status, sense_key;
	uint8_t reserved_byte;
	uint16_t asc; /* additional sense code and its qualifier */
	uint16_t reserved_word;
	uint64_t reserved_result[4]; /* 0 */
	/* private to the library */
	struct iser_request *next;
	uint64_t library[4];
};

/*
 * iser_unit_submit starts a request. Its end is reported by r->done, always, and
 * not from within this call. ISER_E_INVALID in r->err: the range goes beyond the
 * capacity, an argument contradicts the comments above, or the unit is not open;
 * ISER_E_UNSUPPORTED: the unit is read-only or does not support the operation;
 * else as iser_io.err.
 */
ISER_API void iser_unit_submit(struct iser_unit *u, struct iser_request *r);
/* iser_unit_run submits a request with a done of its own, blocks until it has
 * ended and returns r->err. */
ISER_API int iser_unit_run(struct iser_unit *u, struct iser_request *r);
/* iser_request_describe writes the result of a request to out (size bytes, always
 * ended) as text. */
ISER_API void iser_request_describe(const struct iser_request *r, char *out,
				    size_t size);
/* iser_request_errno returns the POSIX error number for the result of a request,
 * such as EIO, ENOSPC, EROFS, EINVAL, EOPNOTSUPP, ESHUTDOWN; 0 after success. */
ISER_API int iser_request_errno(const struct iser_request *r);

/* These block, and return what r->err would be. flags: enum iser_op_flags. */

/* iser_pread reads len bytes at offset to buf, all of them or fails. */
ISER_API int iser_pread(struct iser_unit *u, void *buf, size_t len,
			uint64_t offset);
/* iser_pwrite writes len bytes of buf at offset. */
ISER_API int iser_pwrite(struct iser_unit *u, const void *buf, size_t len,
			 uint64_t offset, unsigned flags);
/* iser_pflush makes all data that were written durable. */
ISER_API int iser_pflush(struct iser_unit *u);
/* iser_ptrim unmaps the whole blocks in [offset, offset + len). */
ISER_API int iser_ptrim(struct iser_unit *u, uint64_t offset, uint64_t len,
			unsigned flags);
/* iser_pzero makes [offset, offset + len) read as zeros. */
ISER_API int iser_pzero(struct iser_unit *u, uint64_t offset, uint64_t len,
			unsigned flags);
/* iser_pextents stores the ranges of [offset, offset + len), at most max, and
 * returns their number. */
ISER_API int iser_pextents(struct iser_unit *u, uint64_t offset, uint64_t len,
			   struct iser_range *ranges, unsigned max);
/* iser_pcompare_and_write compares len bytes at offset with `expected` and, if
 * they are equal, writes the len bytes of buf. */
ISER_API int iser_pcompare_and_write(struct iser_unit *u, const void *expected,
				     const void *buf, size_t len,
				     uint64_t offset, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif
