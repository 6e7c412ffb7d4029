/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nbd_unit.h: NBD requests as SCSI commands of one unit. A request becomes one
 * command, or several one after the other where it is larger than the unit
 * takes; many requests are under way at once.
 */
#ifndef TOOLS_NBD_UNIT_H
#define TOOLS_NBD_UNIT_H

#include "iser.h"
#include "nbd_proto.h"

struct nbd_job;

struct nbd_unit {
	struct iser_session *session;
	struct iser_url url;
	uint32_t block;
	uint64_t blocks;
	/* what the unit says of itself */
	bool read_only, has_fua, thin, reads_zeros;
	bool can_unmap, can_unmap_same; /* by UNMAP, by WRITE SAME */
	char description[80];
	/* most blocks per command */
	uint64_t max_transfer, max_unmap, max_same;
	size_t held;	/* bytes of data in all jobs: their owners count it */
	size_t buffers; /* bytes of memory that all jobs have */
	/* learnt on the way */
	bool no_same; /* WRITE SAME is not there */
	uint8_t *zeros;
	/* waiting for a unit that was busy */
	struct nbd_job *busy;
	uint64_t busy_until;
};

/* One request. The owner fills the first part; buf holds what a WRITE writes
 * (nbd_job_room made it) when it starts. */
struct nbd_job {
	struct nbd_unit *unit;
	struct nbd_request req;
	void (*done)(struct nbd_job *j); /* may come from within the start */
	void *owner;
	struct nbd_job *next; /* the owner's, before start and after done */
	size_t held;	      /* the owner's */
	uint8_t *buf;
	size_t buf_size;
	/* how it ended */
	enum nbd_error err;
	uint8_t *data; /* in buf: what the reply brings */
	size_t data_len;
	uint32_t extents;
	uint8_t head[NBD_REPLY_MAX]; /* the owner's */
	size_t head_len;
	/* the unit's */
	struct iser_io io;
	struct iovec iov;
	uint64_t lba, left; /* blocks */
	uint32_t step;	    /* blocks of the command under way */
	uint8_t *at;
	unsigned tries;
	bool flushing;
};

/* nbd_unit_open logs in and asks the unit about itself: 0 or an exit code,
 * said already. */
int nbd_unit_open(struct nbd_unit *u, struct iser_context *ctx,
		  const char *url);
void nbd_unit_close(struct nbd_unit *u);

/* Room for the data of j->req: false when there is no memory. */
bool nbd_job_room(struct nbd_job *j);
/* nbd_job_start does j->req, which nbd_request_check found good. */
void nbd_job_start(struct nbd_job *j);

/* Milliseconds until nbd_unit_tick has something to do; -1: nothing. */
int nbd_unit_timeout(const struct nbd_unit *u);
void nbd_unit_tick(struct nbd_unit *u);

/* Frees a job's memory; keeps it for the next where keep is set and all
 * together do not have much. */
void nbd_job_release(struct nbd_job *j, bool keep);

#endif
