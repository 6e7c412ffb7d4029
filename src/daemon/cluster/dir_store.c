/* SPDX-License-Identifier: BSD-2-Clause */
/* dir_store.c: the table of the directory store, its requests and its end. */
#include "daemon/cluster/dir_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cluster/blob.h"
#include "daemon/cluster/dir_internal.h"

/* ---- requests ---- */

static void lane_next(struct dir_lane *l);

static int64_t run_job(struct io_file_op *op)
{
	struct dir_lane *l = container_of(op, struct dir_lane, op);

	return l->kind->run(l);
}

static void job_done(struct io_file_op *op, int64_t result)
{
	struct dir_lane *l = container_of(op, struct dir_lane, op);
	struct dir_store *s = l->s;
	struct cluster_request *r = l->r;
	uint8_t *blob = l->blob;

	l->busy = false;
	l->r = NULL;
	l->blob = NULL;
	if (!s->closed) {
		if (l->why[0] && s->store.events.say)
			s->store.events.say(s->store.events.arg, l->why);
		r->result = (int)result;
		r->version = l->version;
		if (l->kind == &dir_read) {
			r->data = l->len ? blob + CLUSTER_BLOB_HEAD : NULL;
			r->len = l->len ? l->len - CLUSTER_BLOB_HEAD : 0;
		}
		r->done(r);
	}
	free(blob);
	if (!s->closed)
		lane_next(l);
	dir_leave(s);
}

static bool load_job(struct dir_lane *l, const struct cluster_request *r)
{
	l->kind = r->private;
	l->version = r->version;
	l->next = r->version || !r->first ? r->version + 1 : r->first;
	l->len = 0;
	l->why[0] = '\0';
	snprintf(l->whom, sizeof(l->whom), "%s", r->whom ? r->whom : "");
	if (!l->kind->writes || r->len > CLUSTER_RECORD_MAX)
		return true;
	l->len = CLUSTER_BLOB_HEAD + r->len;
	l->blob = malloc(l->len);
	if (!l->blob)
		return false;
	cluster_blob_write(l->blob, l->next, r->data, r->len);
	return true;
}

static int64_t no_memory(struct io_file_op *op)
{
	(void)op;
	return ERR_NOMEM;
}

static int64_t too_long(struct io_file_op *op)
{
	(void)op;
	return ERR_LIMIT;
}

static void lane_next(struct dir_lane *l)
{
	struct list *n = l->busy ? NULL : list_pop_front(&l->waiting);
	struct cluster_request *r;

	if (!n)
		return;
	r = list_entry(n, struct cluster_request, link);
	l->busy = true;
	l->r = r;
	l->op = (struct io_file_op){
		.opcode = IO_FILE_CALL,
		.fd = -1,
		.call = run_job,
		.done = job_done,
	};
	if (!load_job(l, r))
		l->op.call = no_memory;
	else if (l->kind->writes && !l->blob)
		l->op.call = too_long;
	dir_enter(l->s);
	io_file_submit(l->s->loop, &l->op);
}

static void submit(struct dir_lane *l, struct cluster_request *r,
		   const struct dir_kind *kind)
{
	r->private = (void *)kind;
	list_push_back(&l->waiting, &r->link);
	lane_next(l);
}

static void do_read(struct cluster_store *store, struct cluster_request *r)
{
	submit(&dir_store_of(store)->record, r, &dir_read);
}

static void do_swap(struct cluster_store *store, struct cluster_request *r)
{
	submit(&dir_store_of(store)->record, r, &dir_swap);
}

static void do_lock(struct cluster_store *store, struct cluster_request *r)
{
	submit(&dir_store_of(store)->locks, r, &dir_take);
}

static void do_unlock(struct cluster_store *store, struct cluster_request *r)
{
	submit(&dir_store_of(store)->locks, r, &dir_give);
}

static void do_fence(struct cluster_store *store, struct cluster_request *r)
{
	submit(&dir_store_of(store)->locks, r, &dir_fence);
}

static void abort_request(struct cluster_request *r)
{
	r->result = ERR_ABORTED;
	r->done(r);
}

static void abort_lane(struct dir_lane *l)
{
	struct cluster_request *r = l->r;
	struct list *n;

	if (r)
		abort_request(r);
	while ((n = list_pop_front(&l->waiting)))
		abort_request(list_entry(n, struct cluster_request, link));
}

static void do_close(struct cluster_store *store)
{
	struct dir_store *s = dir_store_of(store);

	dir_enter(s);
	s->closed = true;
	abort_lane(&s->record);
	abort_lane(&s->locks);
	dir_notes_close(s);
	dir_release_name(s); /* the gateway may open the store anew at once */
	dir_leave(s);
}

static const struct cluster_store_ops ops = {
	.read = do_read,
	.swap = do_swap,
	.notify = dir_notify,
	.ack = dir_ack,
	.lock = do_lock,
	.unlock = do_unlock,
	.fence = do_fence,
	.close = do_close,
};

static void init_lane(struct dir_store *s, struct dir_lane *l)
{
	l->s = s;
	list_init(&l->waiting);
}

struct cluster_store *
dir_store_open(struct io_loop *loop, const char *directory,
	       const uint8_t uuid[16], int data, const char *id,
	       const struct cluster_store_events *events, uid_t uid, gid_t gid,
	       char *why, size_t size)
{
	struct dir_store *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		snprintf(why, size, "%s: out of memory", directory);
		return NULL;
	}
	s->store.ops = &ops;
	if (events)
		s->store.events = *events;
	s->loop = loop;
	s->dir = s->change = s->lock = s->name = s->data = -1;
	s->shared = s->socket.fd = -1;
	init_lane(s, &s->record);
	init_lane(s, &s->locks);
	list_init(&s->sent);
	list_init(&s->finished);
	if (!cluster_id_ok(id, strlen(id) + 1)) {
		snprintf(why, size,
			 "%s: not a name of a gateway; give 1 to 63 letters, "
			 "digits, dots, hyphens and underscores",
			 id);
		free(s);
		return NULL;
	}
	snprintf(s->store.id, sizeof(s->store.id), "%s", id);
	err = dir_open_files(s, directory, uuid, data, uid, gid, why, size);
	if (!err && data >= 0) {
		s->data = fcntl(data, F_DUPFD_CLOEXEC, 0);
		if (s->data < 0) {
			err = -1;
			snprintf(why, size, "%s: %s", s->path, strerror(errno));
		}
	}
	if (!err) {
		err = dir_notes_open(s);
		if (err)
			snprintf(why, size,
				 "%s: cannot make the socket of gateway %s: %s",
				 s->path, id, strerror(-err));
	}
	if (err) {
		dir_free(s);
		return NULL;
	}
	return &s->store;
}
