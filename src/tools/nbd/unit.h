/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h: NBD requests as SCSI commands of one unit. A request becomes one
 * command, or several one after the other if it exceeds a limit of the unit;
 * many requests are in progress at once.
 */
#ifndef TOOLS_NBD_UNIT_H
#define TOOLS_NBD_UNIT_H

#include "tools/iser.h"
#include "tools/nbd/proto.h"

struct nbd_job;

struct nbd_unit {
	struct iser_session *session;
	struct iser_url url;
	uint32_t block;	 /* bytes */
	uint64_t blocks; /* the capacity */
	/* reported by the unit */
	bool read_only, has_fua, thin, reads_zeros;
	bool can_unmap, can_unmap_same; /* by UNMAP, by WRITE SAME */
	char description[80];
	/* most blocks per command */
	uint64_t max_transfer, max_unmap, max_same;
	size_t held;	/* bytes of data in all jobs; set by the clients */
	size_t buffers; /* bytes of memory of all jobs */
	bool no_same;	/* WRITE SAME was refused: it is not tried again */
	uint8_t *zeros; /* source of WRITE SAME and WRITE for zeros */
	bool has_capacity_10; /* asked by READ CAPACITY(10) */
	struct {	      /* nbd_unit_read_capacity */
		bool in_progress;
		struct iser_io io;
		struct iovec iov;
		uint8_t data[32];
	} capacity;
};

/* One request. The owner fills in the first part, and buf with the data of a
 * WRITE, before nbd_job_start; nbd_job_room has made buf. */
struct nbd_job {
	struct nbd_unit *unit;
	struct nbd_request req;
	void (*done)(struct nbd_job *j); /* also from within nbd_job_start */
	void *owner;
	struct nbd_job *next; /* the owner's, before start and after done */
	size_t held;	      /* the owner's */
	uint8_t *buf;
	size_t buf_size;
	/* the result */
	enum nbd_error err;
	uint8_t *data; /* in buf: the data of the reply */
	size_t data_len;
	uint32_t extents;	     /* descriptors in data */
	uint8_t head[NBD_REPLY_MAX]; /* the owner's */
	size_t head_len;
	/* in progress, of unit.c */
	struct iser_io io;
	struct iovec iov;
	uint64_t lba, left; /* blocks; left: from lba on */
	uint32_t step;	    /* blocks of the command in progress */
	uint8_t *at;
	bool flushing;
};

/* nbd_unit_open logs in and reads the limits of the unit. reconnect is that of
 * open_url_lasting. Returns 0 or an exit code, with the reason printed; the caller
 * closes u in either case. */
int nbd_unit_open(struct nbd_unit *u, struct iser_context *ctx, const char *url,
		  unsigned reconnect);
/* nbd_unit_read_capacity reads the capacity again; u->blocks changes later, from
 * within iser_service. Nothing happens while such a command is in progress. */
void nbd_unit_read_capacity(struct nbd_unit *u);
/* nbd_unit_close logs out and frees what u holds. */
void nbd_unit_close(struct nbd_unit *u);

/* nbd_job_room makes memory for the data of j->req. Returns false if there is
 * none. */
bool nbd_job_room(struct nbd_job *j);
/* nbd_job_start carries out j->req, which nbd_request_check has accepted; done
 * follows. */
void nbd_job_start(struct nbd_job *j);
/* nbd_job_release frees the memory of a job; with keep, the job keeps it for
 * its next request while all jobs together hold little. */
void nbd_job_release(struct nbd_job *j, bool keep);

#endif
