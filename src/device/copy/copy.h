/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy.h: what the files that copy blocks between units share: EXTENDED COPY,
 * POPULATE TOKEN and WRITE USING TOKEN, and what is told about them.
 */
#ifndef DEVICE_COPY_H
#define DEVICE_COPY_H

#include "device/unit/tokens.h"

/* ---- copy.c: a job is at the front of the task's aux ---- */

struct dev_segment {
	struct dev_lu *from, *to;	/* from: NULL for zeros */
	uint64_t from_off, to_off, len; /* bytes */
	uint32_t erasures;		/* of the destination, so far */
	uint16_t from_at, to_at;	/* their descriptors in the list */
	bool by_bytes; /* they need not begin or end with a block */
};

struct dev_job {
	struct dev_token *token; /* what is read must be as it was */
	bool by_list; /* of segment descriptors, which a failure names */
	uint32_t nsegments, now;
	uint64_t done; /* bytes of this segment */
	bool was_read;
	bool dest_read; /* of by_bytes: what is around the bytes */
	bool holds_source;
	bool use_up; /* the token is good no longer when all is done */
	struct dev_segment segments[64];
};

struct dev_job *dev_job_new(struct dev_task *t); /* NULL: task was ended */
void dev_job_run(struct dev_task *t);		 /* t->copy is begun */
/* Why the nexus may not copy from there (NULL: zeros), and to there; 0: it
 * may. */
uint16_t dev_copy_from_refusal(const struct dev_nexus *n,
			       const struct dev_lu *from);
uint16_t dev_copy_to_refusal(const struct dev_nexus *n,
			     const struct dev_lu *to);

/* ---- copy_bytes.c ---- */

#define COPY_DATA_AT	4096u /* in aux: the job, then the data */
#define COPY_BLOCK_MOST 4096u /* of units that it is for */

/* The next I/O of a chunk of a segment by_bytes. */
void dev_copy_bytes(struct dev_task *t, struct dev_job *j,
		    const struct dev_segment *s);

/* ---- token.c ---- */

#define TOKEN_LEN	      512u
#define ROD_CHANGE_VULNERABLE 0x00800001u /* a copy until it is changed */
#define ROD_ZEROS	      0xffff0001u
#define TOKEN_IDLE	      300u /* seconds */
#define TOKEN_IDLE_MAX	      3600u
#define TOKEN_MAX_BYTES	      ((uint64_t)256 << 20) /* of one command */

bool dev_token_is_bad(const struct dev_token *k);
void dev_token_use_up(struct dev_token *k);
void dev_token_put(struct dev_token *k);
void dev_tokens_fini(struct dev_server *s);

/* ---- copied.c ---- */

#define COPY_MAX_TARGETS  16u
#define COPY_MAX_SEGMENTS 64u
#define COPY_TARGET_LEN	  32u
#define COPY_SEGMENT_MOST 32u /* bytes of a segment descriptor */
#define COPY_MAX_LIST \
 (COPY_MAX_TARGETS * COPY_TARGET_LEN + COPY_MAX_SEGMENTS * COPY_SEGMENT_MOST)
#define COPY_NO_ID UINT32_MAX /* where no list identifier is that long */

/* A slot for a new copy, as t->copy; false: the task was ended. */
bool dev_copy_begin(struct dev_task *t, enum dev_copy_kind kind,
		    uint32_t list_id, bool discard);
/* What t's nexus gave to t's unit under this identifier, or NULL. */
struct dev_copy *dev_copy_find(const struct dev_task *t,
			       enum dev_copy_kind kind, uint32_t list_id);
/* The unit is reset: what has ended is told no more. */
void dev_copies_forget(struct dev_nexus *n, const struct dev_lu *lu);
/* t->copy has run. */
void dev_copy_end(struct dev_task *t, bool good);
/* Ends t and its copy with this sense data. */
void dev_copy_fail(struct dev_task *t, const struct scsi_sense *s);
/* t is aborted, and its copy with it. */
void dev_copy_abort(struct dev_task *t);
size_t dev_copy_page(const struct dev_task *t, uint8_t *p); /* VPD 8Fh */

/* ---- commands, by file ---- */

bool dev_has_tokens(const struct dev_lu *lu);
/* copy_list.c */
int dev_prepare_extended_copy(struct dev_task *t, uint64_t *out_len);
void dev_extended_copy(struct dev_task *t);

/* copied.c */
void dev_copy_status(struct dev_task *t);
void dev_copy_parameters(struct dev_task *t);

/* token.c */
int dev_prepare_token(struct dev_task *t, uint64_t *out_len);
void dev_populate_token(struct dev_task *t);
void dev_write_using_token(struct dev_task *t);
void dev_receive_token_information(struct dev_task *t);

#endif
