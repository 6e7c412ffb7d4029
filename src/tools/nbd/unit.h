/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h: NBD requests as requests of libiser (iser/unit.h) for one unit; many are in
 * progress at once.
 */
#ifndef TOOLS_NBD_UNIT_H
#define TOOLS_NBD_UNIT_H

#include "tools/iser.h"
#include "tools/nbd/proto.h"

struct nbd_unit {
	struct iser_session *session;
	struct iser_unit *unit;
	struct iser_url url;
	struct iser_unit_info info;
	bool is_refreshing; /* nbd_unit_read_capacity */
	char description[80];
	size_t held;	/* bytes of data in all jobs; set by the clients */
	size_t buffers; /* bytes of memory of all jobs */
};

/* One request. The owner fills in the first part, and buf with the data of a
 * WRITE, before nbd_job_start; nbd_job_room has made buf. */
struct nbd_job {
	struct nbd_unit *unit;
	struct nbd_request req;
	void (*done)(struct nbd_job *j); /* not from within nbd_job_start */
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
	struct iser_request request;
	struct iovec iov;
};

/* nbd_unit_open logs in and reads the properties of the unit. reconnect is that of
 * open_unit. Returns 0 or an exit code, with the reason printed; the caller
 * closes u in either case. */
int nbd_unit_open(struct nbd_unit *u, struct iser_context *ctx, const char *url,
		  unsigned reconnect);
/* nbd_unit_read_capacity reads the properties again; u->info changes later, from
 * within iser_service. Nothing happens while such a call is in progress. */
void nbd_unit_read_capacity(struct nbd_unit *u);
/* nbd_unit_close begins to log out, which ends the requests in progress, and frees
 * what u holds. */
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
