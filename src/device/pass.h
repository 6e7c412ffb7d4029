/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass.h: the interface to a SCSI device of this machine, which executes the
 * commands of a passthrough unit (pass/pass.c). A driver (device/sg) or a test
 * provides the operations.
 *
 * Threads: any worker may submit at any time; done runs on the worker that
 * submitted (req->worker).
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

/* How a command ended. The host is this machine with its transport. */
enum pass_end {
	PASS_ENDED,   /* with status and sense data of the device */
	PASS_GONE,    /* the device was removed */
	PASS_TIMEOUT, /* no answer: the host aborted the command */
	PASS_RESET,   /* the host aborted the command, by a reset for example */
	PASS_BUSY,    /* the queue of the host is full */
	PASS_PARITY,  /* the transport damaged the data */
	PASS_FAILED,  /* the transport failed otherwise */
	PASS_REFUSED, /* the host does not support the command */
	PASS_FORBIDDEN, /* the process has no permission for the command */
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
	unsigned timeout; /* seconds until the host aborts the command */
	uint8_t *sense;	  /* borrowed */
	uint8_t sense_max;
	/* Called once, possibly before submit returns. */
	void (*done)(struct pass_req *r);
	/* set before done */
	enum pass_end end;
	uint8_t status; /* SAM-5 */
	uint8_t sense_len;
	uint32_t resid; /* octets of len that were not moved, <= len */
	/* for the driver only */
	_Alignas(16) unsigned char priv[PASS_REQ_PRIVATE];
};

struct pass;

struct pass_ops {
	/* Starts a command; owns r until done. On r->worker. */
	void (*submit)(struct pass *p, struct pass_req *r);
	/* Removes r from the queue of the driver. True: r was not sent, and the
	 * driver does not call done. False: r was sent, and the driver calls
	 * done at its end. On r->worker. */
	bool (*withdraw)(struct pass *p, struct pass_req *r);
	/* Begins a reset of the device, which aborts all its commands; does
	 * nothing if the host cannot reset the device. On that worker. */
	void (*reset)(struct pass *p, unsigned worker);
	/* Frees p. No request is in flight. */
	void (*close)(struct pass *p);
};

/* The part that all drivers have; a driver embeds struct pass. Only block_size
 * changes after the driver has opened the device. */
struct pass {
	const struct pass_ops *ops;
	uint8_t type;	       /* peripheral device type (SPC-4 table 142) */
	uint8_t version;       /* of INQUIRY data */
	uint32_t block_size;   /* 0: no blocks, or unknown; atomic */
	uint32_t max_transfer; /* bytes of one command */
	unsigned timeout;      /* seconds; of most commands */
	uint8_t uuid[16]; /* the same at each open of the device; zeros: the
				* device has no name */
	char name[256];	  /* the path of the device */
};

#endif
