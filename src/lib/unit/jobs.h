/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jobs.h: a unit and its requests (iser/unit.h). A request is carried out by a
 * job, which has commands in progress. Jobs and commands are allocated when they
 * are needed and reused. The files, each of which calls those above it:
 *   job.c    requests of a unit: their order and their end
 *   steps.c  the commands of a request
 *   unit.c   opening a unit: its properties
 *   calls.c  blocking requests, and the text and errno of a result
 */
#ifndef LIB_UNIT_JOBS_H
#define LIB_UNIT_JOBS_H

#include "iser/unit.h"
#include "lib/internal.h"

struct unit_job;

/* One command of a job. */
struct unit_cmd {
	struct iser_io io;
	struct unit_job *job;
	struct unit_cmd *next; /* on iser_unit.free_cmds */
	uint64_t lba;
	uint32_t blocks;
	struct iovec *iov; /* `few`, or room elements on the heap */
	unsigned room;
	struct iovec few[18];
	struct iser_parameters params;
};

/* The parts of a job, in their order. READ, TRIM and EXTENTS have no HEAD and
 * no TAIL. */
enum unit_phase {
	UNIT_HEAD,   /* the partial block at the begin of the range */
	UNIT_MIDDLE, /* whole blocks */
	UNIT_TAIL,   /* the partial block at the end of the range */
	UNIT_FLUSH,  /* FUA without a FUA bit, and ISER_OP_FLUSH */
	UNIT_END,
};

/* A partial block that is read, changed and written. */
struct unit_partial {
	bool is_set;  /* the next three lines have the partial block */
	bool is_read; /* buf has the block, and the block with the new bytes */
	uint64_t lba;
	size_t from, len;     /* the new bytes of the block */
	size_t at;	      /* where in the data of the request they are */
	uint8_t *buf;	      /* two blocks; kept with the job */
	unsigned differences; /* how often COMPARE AND WRITE found one */
	xtime since;	      /* the time of the first one */
	struct io_timer pause;
	unsigned losses; /* of the connection */
};

struct unit_job {
	struct iser_unit *unit;
	struct iser_request *r;
	struct list link; /* of iser_unit.active, waiting or free_jobs */
	enum unit_phase phase;
	struct bufv data;
	uint64_t first, end; /* the blocks that the request touches */
	uint64_t lba, left;  /* of UNIT_MIDDLE: not yet submitted */
	bool starting;	  /* within iser_unit_submit: done must not be called */
	bool has_partial; /* see job.c */
	bool flushed;	  /* the SYNCHRONIZE CACHE was submitted */
	unsigned in_flight; /* commands */
	int err;	    /* the first failure; no command follows */
	struct unit_partial partial;
};

/* Limits of a unit in blocks, each at least 1 where the command is supported. */
struct unit_limits {
	uint32_t transfer, unmap, same, compare;
	bool by_unmap, by_same; /* how to unmap blocks */
	bool no_same;	/* WRITE SAME was refused: it is not tried again */
	bool no_status; /* GET LBA STATUS was refused */
};

/* The queries that follow those of lib_ask when a unit is opened, in their order;
 * unit.c's. */
enum unit_query {
	UNIT_CONFIGURATION, /* of a CD/DVD drive */
	UNIT_BLOCK_LIMITS,
	UNIT_PROVISIONING,
	UNIT_MODE,
	UNIT_OPENED,
};

struct unit_open {
	enum unit_query query;
	bool in_progress;
	struct iser_unit_info info;
	struct unit_limits limits;
	uint64_t blocks;
	struct lib_ask ask;
	struct iser_io io;
	struct iser_parameters params;
	void (*done)(void *arg, struct iser_unit *u, int err);
	void *arg;
};

struct iser_unit {
	struct iser_session *session;
	struct iser_context *ctx;
	int lun;
	bool is_open;
	struct iser_unit_info info;
	struct unit_limits limits;
	struct lib_identity identity;
	uint64_t blocks;
	struct unit_open open;
	/* jobs */
	struct list active, waiting, free_jobs; /* unit_job.link */
	void (*advance)(struct unit_job *j);	/* lib_job_advance */
	unsigned partials;			/* jobs with has_partial */
	unsigned requests;			/* whose done was not called */
	struct iser_request *ended, **ended_tail; /* done is due */
	struct io_defer report;
	struct unit_cmd *free_cmds;
	uint8_t *sink;	/* a block, for bytes that a READ does not want */
	uint8_t *zeros; /* LIB_ZEROS bytes */
};

#define LIB_ZEROS (64u << 10)

/* iser_request.library: of the command that failed, for iser_request_describe */
enum {
	LIB_REQUEST_CAUSE, /* iser_io.cause */
	LIB_REQUEST_CAME,  /* bytes */
	LIB_REQUEST_WANTED,
};

/* ---- steps.c ---- */

/* lib_job_advance submits the next commands of a job; it calls lib_job_end
 * when there are none. */
void lib_job_advance(struct unit_job *j);

/* ---- job.c ---- */

/* lib_job_end ends a job without commands in progress and calls done of its
 * request. */
void lib_job_end(struct unit_job *j);
/* lib_cmd_new returns a zeroed command of a job with room for n elements in
 * iov, or NULL without memory. */
struct unit_cmd *lib_cmd_new(struct unit_job *j, unsigned n);
/* lib_cmd_free makes a command free again. */
void lib_cmd_free(struct unit_cmd *c);
/* lib_job_fail makes err the failure of a job, unless it has one, with the
 * details of the command. */
void lib_job_fail(struct unit_job *j, const struct unit_cmd *c, int err);
/* lib_jobs_init prepares the lists of a unit. */
void lib_jobs_init(struct iser_unit *u, void (*advance)(struct unit_job *j));
/* lib_jobs_fini frees the memory of jobs and commands; no job exists. */
void lib_jobs_fini(struct iser_unit *u);

#endif
