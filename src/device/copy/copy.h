/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy.h: copies of blocks between units, shared by EXTENDED COPY, POPULATE
 * TOKEN and WRITE USING TOKEN, and the commands that report about copies.
 */
#ifndef DEVICE_COPY_H
#define DEVICE_COPY_H

#include "device/unit/tokens.h"

#define COPY_MAX_TARGETS 16u

/* ---- copy.c: a job is at the beginning of the task's aux buffer ---- */

struct dev_segment {
	struct dev_lu *from, *to;	/* from: NULL for zeros */
	uint64_t from_off, to_off, len; /* bytes */
	/* of the destination, when the job began */
	uint32_t erasures;
	/* offsets of the target descriptors in the list */
	uint16_t from_at, to_at;
	bool by_bytes; /* offsets and len need not be whole blocks */
};

struct dev_job {
	/* the copy fails once the token is revoked; may be NULL */
	struct dev_token *token;
	bool by_list; /* from segment descriptors, which a failure reports */
	uint32_t nsegments, now;
	uint64_t done; /* bytes of this segment */
	bool was_read;
	/* of by_bytes: the blocks of the destination were read */
	bool dest_read;
	bool holds_source;
	bool use_up; /* revoke the token at the end of the copy */
	struct dev_lu *targets[COPY_MAX_TARGETS]; /* of the descriptors */
	struct dev_segment segments[64];
};

/* dev_job_new allocates a job without segments in t->mem.aux. NULL: t was
 * ended. */
struct dev_job *dev_job_new(struct dev_task *t);
/* dev_job_run executes the job of t and ends t; dev_copy_begin has set
 * t->copy. */
void dev_job_run(struct dev_task *t);
/* dev_copy_from_refusal and dev_copy_to_refusal return the additional sense
 * code if n may not read from or write to the unit; 0: n may. from NULL:
 * zeros. */
uint16_t dev_copy_from_refusal(const struct dev_nexus *n,
			       const struct dev_lu *from);
uint16_t dev_copy_to_refusal(const struct dev_nexus *n,
			     const struct dev_lu *to);

/* ---- copy_bytes.c ---- */

#define COPY_DATA_AT 4096u /* in aux: the data, after the job */
/* the largest block of a unit with segments by_bytes */
#define COPY_BLOCK_MOST 4096u

/* dev_copy_bytes begins the next I/O of a chunk of a segment by_bytes. */
void dev_copy_bytes(struct dev_task *t, struct dev_job *j,
		    const struct dev_segment *s);

/* ---- token.c ---- */

#define TOKEN_LEN 512u
/* point in time copy, change vulnerable */
#define ROD_CHANGE_VULNERABLE 0x00800001u
#define ROD_ZEROS	      0xffff0001u
#define TOKEN_IDLE	      300u /* seconds */
#define TOKEN_IDLE_MAX	      3600u
#define TOKEN_MAX_BYTES	      ((uint64_t)256 << 20) /* of one command */

/* dev_token_is_bad returns whether k is revoked. */
bool dev_token_is_bad(const struct dev_token *k);
/* dev_token_use_up revokes k. */
void dev_token_use_up(struct dev_token *k);
/* dev_token_put releases a reference of k and frees k with the last one;
 * NULL: no effect. */
void dev_token_put(struct dev_token *k);
/* dev_tokens_retire revokes the tokens of the unit, which is being removed. On worker
 * 0. dev_tokens_fini frees them, when no worker runs any more. */
void dev_tokens_retire(struct dev_lu *lu);
void dev_tokens_fini(struct dev_lu *lu);

/* ---- copied.c ---- */

#define COPY_MAX_SEGMENTS 64u
#define COPY_TARGET_LEN	  32u
#define COPY_SEGMENT_MOST 32u /* bytes of a segment descriptor */
#define COPY_MAX_LIST \
 (COPY_MAX_TARGETS * COPY_TARGET_LEN + COPY_MAX_SEGMENTS * COPY_SEGMENT_MOST)
/* no list identifier; those of LID1 have one byte */
#define COPY_NO_ID UINT64_MAX

/* dev_copy_begin sets t->copy to an entry for a new copy. False: t was
 * ended. */
bool dev_copy_begin(struct dev_task *t, enum dev_copy_kind kind,
		    uint64_t list_id, bool discard);
/* dev_copy_find returns the entry of the copy that t's nexus began at t's
 * unit with this list identifier, or NULL. */
struct dev_copy *dev_copy_find(const struct dev_task *t,
			       enum dev_copy_kind kind, uint64_t list_id);
/* dev_copies_forget clears the entries of completed copies, because lu is
 * reset. */
void dev_copies_forget(struct dev_nexus *n, const struct dev_lu *lu);
/* dev_copy_succeed, dev_copy_fail and dev_copy_abort set the result of t->copy,
 * and t->copy to NULL. dev_copy_fail also ends t with this sense data; the other
 * two do not end t. */
void dev_copy_succeed(struct dev_task *t);
void dev_copy_fail(struct dev_task *t, const struct scsi_sense *s);
void dev_copy_abort(struct dev_task *t);
/* dev_copy_prepare_list sets the data-out of a command with a parameter list of at
 * most `most` bytes, whose length is in bytes 10 to 13 of the CDB; 1: refused. */
int dev_copy_prepare_list(struct dev_task *t, uint32_t most, uint64_t *out_len);
/* dev_copy_page writes VPD page 8Fh to p and returns its length. */
size_t dev_copy_page(const struct dev_task *t, uint8_t *p);

/* ---- commands, by file ---- */

/* dev_has_tokens returns whether the unit has the commands for ROD tokens. */
bool dev_has_tokens(const struct dev_lu *lu);
/* copy_list.c: EXTENDED COPY(LID1) */
int dev_prepare_extended_copy(struct dev_task *t, uint64_t *out_len);
void dev_extended_copy(struct dev_task *t);

/* copied.c: RECEIVE COPY STATUS(LID1), RECEIVE COPY OPERATING PARAMETERS */
void dev_copy_status(struct dev_task *t);
void dev_copy_parameters(struct dev_task *t);

/* token.c */
int dev_prepare_token(struct dev_task *t, uint64_t *out_len);
void dev_populate_token(struct dev_task *t);
void dev_write_using_token(struct dev_task *t);
void dev_receive_token_information(struct dev_task *t);

#endif
