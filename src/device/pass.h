/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass.h: a real SCSI device that takes CDBs: what a passthrough unit (pass.c)
 * hands its commands to. One table of operations, filled by a driver
 * (device/sg) or a test.
 *
 * Threads: any worker may submit at any time; the completion comes on the
 * worker that submitted (req->worker).
 */
#ifndef DEVICE_PASS_H
#define DEVICE_PASS_H

#include <stdbool.h>
#include <stdint.h>

#define PASS_CDB_MAX	 32
#define PASS_REQ_PRIVATE 384
#define PASS_BLOCK_MAX	 65536u

enum pass_dir {
	PASS_NONE,
	PASS_IN,
	PASS_OUT,
};

/* How far a command came. */
enum pass_end {
	PASS_ENDED,	/* status and sense are the device's */
	PASS_GONE,	/* the device is not there (any longer) */
	PASS_TIMEOUT,	/* it did not answer; the host gave the command up */
	PASS_RESET,	/* the host aborted it, with a reset for example */
	PASS_BUSY,	/* the host has no room now */
	PASS_PARITY,	/* the data were damaged on the way */
	PASS_FAILED,	/* another failure of the transport below */
	PASS_REFUSED,	/* the host does not take such a command */
	PASS_FORBIDDEN, /* the host does not let us send it */
	PASS_NO_MEMORY,
};

struct pass_req {
	/* set by the submitter */
	unsigned worker;
	uint8_t cdb[PASS_CDB_MAX];
	uint8_t cdb_len;
	enum pass_dir dir;
	void *buf; /* borrowed */
	uint32_t len;
	unsigned timeout; /* seconds; the host gives the command up then */
	uint8_t *sense;	  /* borrowed */
	uint8_t sense_max;
	/* Called once, possibly before submit returns. */
	void (*done)(struct pass_req *r);
	/* set before done */
	enum pass_end end;
	uint8_t status; /* SAM-5 */
	uint8_t sense_len;
	uint32_t resid; /* octets of len that were not moved, <= len */
	/* the driver's own */
	_Alignas(16) unsigned char priv[PASS_REQ_PRIVATE];
};

struct pass;

struct pass_ops {
	void (*submit)(struct pass *p, struct pass_req *r);
	/* True: r was not sent yet and never will be; done is not called.
	 * False: done comes, when the device or the host ends it. On the
	 * request's worker. */
	bool (*withdraw)(struct pass *p, struct pass_req *r);
	/* The device is to be reset, with all its commands, as soon as may be;
	 * where that is not possible nothing happens. On that worker. */
	void (*reset)(struct pass *p, unsigned worker);
	/* Frees p. No request is in flight. */
	void (*close)(struct pass *p);
};

/* The common part; a driver embeds it. Constant but for block_size. */
struct pass {
	const struct pass_ops *ops;
	uint8_t type;	       /* peripheral device type (SPC-4 table 142) */
	uint8_t version;       /* of INQUIRY data */
	uint32_t block_size;   /* 0: none, or not known; atomic */
	uint32_t max_transfer; /* bytes of one command */
	unsigned timeout;      /* seconds; of most commands */
	uint8_t uuid[16];      /* the same each time it is opened */
	char name[256];	       /* its path */
};

#endif
