/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h: where the gateways that share a unit keep the record of the unit, notify each
 * other of changes, and exclude each other from its data. One cluster_store is one unit
 * at one gateway. There are two kinds: a directory that several iserd of one machine
 * share, and a RADOS object beside an RBD image.
 *
 * All functions and all call-backs run on worker 0, no call-back from within a
 * function. Requests are borrowed until done. A store has no time limits of its own
 * unless stated: a request that gets no answer ends when the store is closed, with
 * ERR_ABORTED.
 */
#ifndef CLUSTER_STORE_H
#define CLUSTER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define CLUSTER_ID_SIZE	   64u /* the name of a gateway, with the NUL */
#define CLUSTER_GATEWAYS   16u /* gateways of one unit */
#define CLUSTER_RECORD_MAX (512u << 10)
#define CLUSTER_NOTE_MAX   1024u

struct cluster_store;

/* A request. result is 0, or:
 * ERR_AGAIN	 swap: the record has another version; lock: another gateway has it
 * ERR_TERMINATED  this gateway was fenced: nothing that it sends reaches the data or the
 *		 record any more
 * ERR_RESET	 the store did not answer as it should: whether a swap took place is not
 *		 known; `read` shows that
 * ERR_NOT_FOUND   fence: no gateway has the lock
 * ERR_FORMAT	 read, swap: the record is damaged
 * ERR_ABORTED	 the store was closed
 * ERR_NOMEM, ERR_DENIED, ERR_LIMIT */
struct cluster_request {
	void (*done)(struct cluster_request *r);
	int result;
	/* read: the version of the record, 0: there is none yet. swap: the version
	 * that the caller has read, then the new one, which is the next number. */
	uint64_t version;
	/* swap with version 0: the version that the new record gets; 0: 1 */
	uint64_t first;
	/* fence: the gateway that is to lose the lock; NULL: any other one */
	const char *whom;
	/* read: the record, the store's until done returns. swap: the new record, the
	 * caller's until done. */
	const uint8_t *data;
	size_t len;
	struct list link; /* private to the store */
	void *private;
};

/* A notification to the other gateways of the unit. */
struct cluster_note {
	void (*done)(struct cluster_note *n);
	const uint8_t *data; /* at most CLUSTER_NOTE_MAX bytes */
	size_t len;
	unsigned ms; /* how long the receivers may take */
	/* The gateways that acknowledged; those that are gone or did not are not among
	 * them. done is called when all have, or after `ms`. */
	unsigned nacks;
	char acks[CLUSTER_GATEWAYS][CLUSTER_ID_SIZE];
	int result; /* 0 also if no gateway acknowledged; ERR_TERMINATED, ERR_RESET */
	struct list link;
	void *private;
};

/* What happens at the store without a request. */
struct cluster_store_events {
	/* A notification of the gateway `from`; `cookie` is for ops->ack, which the
	 * receiver calls once, at once or later. */
	void (*noted)(void *arg, const char *from, uint64_t cookie,
		      const uint8_t *data, size_t len);
	/* Notifications may have been missed: read the record. */
	void (*missed)(void *arg);
	/* This gateway was fenced. */
	void (*fenced)(void *arg);
	/* A sentence for the log. */
	void (*say)(void *arg, const char *sentence);
	void *arg;
};

struct cluster_store_ops {
	/* Reads the record. */
	void (*read)(struct cluster_store *s, struct cluster_request *r);
	/* Replaces the record durably if its version still is r->version. */
	void (*swap)(struct cluster_store *s, struct cluster_request *r);
	void (*notify)(struct cluster_store *s, struct cluster_note *n);
	void (*ack)(struct cluster_store *s, uint64_t cookie);
	/* Takes the lock of the data; 0 also with the lock. The lock of a gateway that is gone may still
	 * exclude others (ERR_AGAIN): `fence` ends that. */
	void (*lock)(struct cluster_store *s, struct cluster_request *r);
	/* Gives the lock back; 0 also without the lock. The caller has ended all I/O. */
	void (*unlock)(struct cluster_store *s, struct cluster_request *r);
	/* Takes the lock from the gateway r->whom. After result 0 nothing that this gateway
	 * sent or sends reaches the data or the record, even if it goes on to run, until it
	 * opens the store anew. ERR_AGAIN: another gateway has the lock. 0 also if this
	 * gateway has the lock. */
	void (*fence)(struct cluster_store *s, struct cluster_request *r);
	/* Calls done of all requests and notes with ERR_ABORTED, from within close, gives
	 * the lock back if it can, and frees s; no call-back follows. */
	void (*close)(struct cluster_store *s);
};

/* Embedded in the stores. */
struct cluster_store {
	const struct cluster_store_ops *ops;
	struct cluster_store_events events; /* cluster_unit_new sets them */
	char id[CLUSTER_ID_SIZE];	    /* of this gateway */
	/* Set before close: requests for the data may be on their way, so the store that is
	 * opened next has to shut this one out. */
	bool lost;
};

#endif
