/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dir_internal.h: the directory store. Private to the files dir_*.c, each of which calls those
 * above it:
 *   dir_base.c    messages, errors, flocks, the life of a store
 *   dir_open.c    the files of the store
 *   dir_record.c  the record: read, swap
 *   dir_lock.c    the lock of the data, and the fence
 *   dir_notes.c   notifications
 *   dir_store.c   the table, requests, the end
 *
 * The folder of a unit has these files:
 *   record     the record with its head (cluster/blob.h), only ever replaced as a whole
 *   new	the next record, before it is renamed
 *   change     flock: held while the record is replaced
 *   lock       flock: held by the process that owns the data; its text names that
 *	      process
 *   data	flock, shared: held by each gateway; its text says which data they serve,
 *	      since a copy of a disk may have its identity, too
 *   name.ID    flock: held by the process that is the gateway ID
 *   g.ID       the socket at which the gateway ID receives notifications
 *
 * Threads: all members belong to worker 0, except that a helper thread has the lane
 * whose job it carries out.
 */
#ifndef DAEMON_CLUSTER_DIR_INTERNAL_H
#define DAEMON_CLUSTER_DIR_INTERNAL_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/list.h"
#include "cluster/store.h"
#include "io/io.h"

#define DIR_SENDERS 32u
#define DIR_NOTED   64u

struct dir_store;

/* Requests that a helper thread carries out one after the other. */
struct dir_lane {
	struct dir_store *s;
	struct list waiting;	   /* cluster_request.link */
	struct cluster_request *r; /* in progress, unless the store is closed */
	bool busy;
	struct io_file_op op;
	/* of the job; the request may end before it */
	const struct dir_kind *kind;
	uint64_t version, next;
	uint8_t *blob; /* of the record read, or to be written */
	size_t len;
	char whom[CLUSTER_ID_SIZE]; /* "": any */
	char why[512];		    /* a sentence for the log */
};

/* What a request does on the helper thread: 0 or a result of store.h. */
struct dir_kind {
	int (*run)(struct dir_lane *l);
	bool writes; /* the lane gets the blob of r->data */
};

/* A notification of this gateway that is not acknowledged by all. */
struct dir_sent;

/* The newest notification of another gateway. */
struct dir_sender {
	char id[CLUSTER_ID_SIZE];
	uint64_t incarnation, number;
};

/* A notification of another gateway, until the answer to it is sent. */
struct dir_noted {
	char from[CLUSTER_ID_SIZE];
	uint64_t cookie, incarnation, number;
	bool answered; /* the answer is to be sent, until `end` */
	xtime end;
};

struct dir_store {
	struct cluster_store store;
	struct io_loop *loop;
	char path[512]; /* the folder, for messages */
	int dir, change, lock, name;
	int shared;    /* the file `data` */
	int data;      /* a copy: the open file is that of the I/O; -1: none */
	bool has_lock; /* the lane of locks */
	bool closed;
	unsigned frames; /* call-backs and jobs in progress: s stays */
	struct dir_lane record, locks;
	/* notifications */
	struct io_watch socket;
	struct io_timer timer;
	uint64_t incarnation, number, cookie;
	struct list sent;     /* dir_sent.link */
	struct list finished; /* cluster_note.link: done is to be called */
	struct io_post report;
	bool reporting;
	unsigned next_sender, next_noted;
	struct dir_sender senders[DIR_SENDERS];
	struct dir_noted noted[DIR_NOTED];
};

/* dir_open.c: 0, or -1 after a sentence in why; data as of dir_store_open. dir_free closes
 * the descriptors. */
int dir_open_files(struct dir_store *s, const char *directory,
		   const uint8_t uuid[16], int data, uid_t uid, gid_t gid,
		   char *why, size_t size);

/* dir_base.c: dir_enter and dir_leave enclose what may call back; after dir_leave s may
 * be gone. */
void dir_enter(struct dir_store *s);
void dir_leave(struct dir_store *s);
/* dir_free closes the files of the store and frees it. */
void dir_free(struct dir_store *s);
/* dir_release_name gives up the name of the gateway. */
void dir_release_name(struct dir_store *s);
/* dir_say writes to l->why: the folder, ": ", the text. Any thread that has the
 * lane. */
__attribute__((format(printf, 2, 3))) void dir_say(struct dir_lane *l,
						   const char *format, ...);
/* dir_err maps a value of errno to a result. */
int dir_err(int err);
/* dir_flock takes the exclusive flock of fd, and tries again `tries` times after `pause`
 * nanoseconds while another process has it. Returns 0 or a value of errno; EWOULDBLOCK:
 * the other process still has it. On a helper thread. */
int dir_flock(int fd, unsigned tries, long pause);
/* dir_is_file returns whether the open file fd still is the file `name` of the
 * folder. */
bool dir_is_file(const struct dir_store *s, int fd, const char *name);

/* dir_record.c, dir_lock.c: the jobs. */
extern const struct dir_kind dir_read, dir_swap, dir_take, dir_give, dir_fence;

/* dir_notes.c: dir_notes_open makes the socket. 0, or -Exxx. */
int dir_notes_open(struct dir_store *s);
void dir_notes_close(struct dir_store *s);
void dir_notify(struct cluster_store *store, struct cluster_note *n);
void dir_ack(struct cluster_store *store, uint64_t cookie);

static inline struct dir_store *dir_store_of(struct cluster_store *store)
{
	return container_of(store, struct dir_store, store);
}

#endif
