/* SPDX-License-Identifier: BSD-2-Clause */
/* store_open.c: opens the record of an image that gateways share. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/rbd/store.h"
#include "base/err.h"
#include "cluster/blob.h"

#define NAME_TIME 1000u /* ms; the cluster counts in seconds */

/* The store that is being opened, and the buffer for the error message. */
struct opening {
	struct bsrbd_store *s;
	char *why;
	size_t size;
};

__attribute__((format(printf, 3, 4))) static int
refuse(const struct opening *o, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_why(o->why, o->size, o->s->image->bs.name, format, args);
	va_end(args);
	return err;
}

static int check_image(const struct opening *o)
{
	const struct bsrbd *r = o->s->image;

	if (!r->clustered || r->bs.caps & BS_CAP_READ_ONLY)
		return refuse(o, -EINVAL,
			      "snapshots and read-only images cannot be shared "
			      "by gateways; serve the image itself");
	if (!(r->features & RBD_FEATURE_EXCLUSIVE_LOCK))
		return refuse(o, -EINVAL,
			      "has no exclusive lock, which excludes the other "
			      "gateways; use rbd feature enable IMAGE "
			      "exclusive-lock");
	return 0;
}

static int name_objects(const struct opening *o)
{
	struct bsrbd_store *s = o->s;
	char id[128];
	int err = rbd_get_id(s->image->image, id, sizeof(id));

	if (err)
		return refuse(o, err, "has no identifier: %s", strerror(-err));
	snprintf(s->header, sizeof(s->header), "rbd_header.%s", id);
	snprintf(s->record, sizeof(s->record), "openiser.%s", id);
	snprintf(s->gateways, sizeof(s->gateways), "openiser.%s.gateways", id);
	snprintf(s->client, sizeof(s->client), "client.%" PRIu64,
		 rados_get_instance_id(bsrbd_cluster_rados(s->image->cluster)));
	return 0;
}

/* Other gateways must be able to fence this client before it takes the lock. */
static int register_client(const struct opening *o)
{
	struct bsrbd_store *s = o->s;
	const char *key = s->client, *value = s->store.id;
	const size_t nkey = strlen(key), nvalue = strlen(value);
	rados_write_op_t op = rados_create_write_op();
	int err;

	if (!op)
		return refuse(o, -ENOMEM, "out of memory");
	rados_write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
	rados_write_op_omap_set2(op, &key, &value, &nkey, &nvalue, 1);
	err = rados_write_op_operate(op, s->image->pool, s->gateways, NULL,
				     STORE_WRITE);
	rados_release_write_op(op);
	return err ? refuse(o, err,
			    "%s cannot be written: %s; give the client the "
			    "profile rbd for this pool",
			    s->gateways, strerror(-err))
		   : 0;
}

/* ---- another iserd with the name of this gateway ---- */

/* Returns the client that acknowledged as the gateway s->store.id, but for this one; 0:
 * none. */
static uint64_t find_twin(const struct bsrbd_store *s, char *reply, size_t len)
{
	uint64_t self = rados_get_instance_id(
			 bsrbd_cluster_rados(s->image->cluster)),
		 twin = 0;
	struct notify_ack_t *acks = NULL;
	struct notify_timeout_t *timeouts = NULL;
	size_t n = 0, ntimeouts = 0, idlen = strlen(s->store.id);

	if (!reply || rados_decode_notify_response(reply, len, &acks, &n,
						   &timeouts, &ntimeouts))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (acks[i].notifier_id != self &&
		    acks[i].payload_len == idlen &&
		    memcmp(acks[i].payload, s->store.id, idlen) == 0)
			twin = acks[i].notifier_id;
	rados_free_notify_response(acks, n, timeouts);
	return twin;
}

/* An earlier client that was killed or is stopped does not answer, which takes NAME_TIME; not
 * for each image. */
static bool all_are_gone(struct bsrbd_store *s)
{
	char names[STORE_CLIENTS][STORE_CLIENT];
	size_t n = bsrbd_store_earlier(s, names), left = 0;

	for (size_t i = 0; i < n; i++)
		left += !bsrbd_cluster_gone(s->image->cluster, names[i], false);
	return left == 0;
}

static void note_gone(struct bsrbd_store *s)
{
	char names[STORE_CLIENTS][STORE_CLIENT];
	size_t n = bsrbd_store_earlier(s, names);

	for (size_t i = 0; i < n; i++)
		bsrbd_cluster_gone(s->image->cluster, names[i], true);
}

/* Two iserd of one name would fence each other for ever. */
static int check_name(const struct opening *o)
{
	struct bsrbd_store *s = o->s;
	char name[CLUSTER_ID_SIZE] = "", *reply = NULL;
	size_t len = 0;
	uint64_t twin;
	int err;

	if (all_are_gone(s))
		return 0;
	memcpy(name, s->store.id, strlen(s->store.id));
	err = rados_notify2(s->image->pool, s->gateways, name, sizeof(name),
			    NAME_TIME, &reply, &len);
	twin = find_twin(s, reply, len);
	if (reply)
		rados_buffer_free(reply);
	if (twin)
		return refuse(o, -EEXIST,
			      "another iserd, which runs, is the gateway %s "
			      "(client.%" PRIu64
			      "); give each gateway a name of its own",
			      s->store.id, twin);
	if (err && err != -ETIMEDOUT)
		return refuse(o, err, "%s cannot be notified: %s", s->gateways,
			      strerror(-err));
	note_gone(s);
	return 0;
}

/* The thread leaves all signals to the program's own threads. */
static int start_thread(struct bsrbd_store *s)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&s->thread, NULL, bsrbd_store_main, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_detach(s->thread);
	return -err;
}

static int open_all(const struct opening *o)
{
	struct bsrbd_store *s = o->s;
	int err = check_image(o);

	if (!err)
		err = name_objects(o);
	if (!err)
		err = register_client(o);
	if (err)
		return err;
	err = bsrbd_store_watch(s);
	if (err)
		return refuse(o, err, "%s cannot be watched: %s", s->gateways,
			      strerror(-err));
	err = check_name(o);
	if (!err) {
		s->image->phase = BSRBD_STORE;
		err = start_thread(s);
		if (!err)
			return 0;
		s->image->phase = BSRBD_NO_STORE;
		refuse(o, err, "cannot start a thread: %s", strerror(-err));
	}
	bsrbd_store_unwatch(s);
	return err;
}

static struct bsrbd_store *new_store(struct bsrbd *image, const char *id,
				     const struct cluster_store_events *ev)
{
	struct bsrbd_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->store.ops = &bsrbd_store_ops;
	if (ev)
		s->store.events = *ev;
	snprintf(s->store.id, sizeof(s->store.id), "%s", id);
	s->image = image;
	s->loop = image->loops[0];
	list_init(&s->calls);
	list_init(&s->jobs);
	list_init(&s->failed);
	list_init(&s->failed_notes);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->work, NULL);
	s->refs = 1;
	return s;
}

struct cluster_store *bsrbd_store_open(struct bs *b, const char *id,
				       const struct cluster_store_events *ev,
				       int *err, char *why, size_t size)
{
	struct bsrbd_store *s = NULL;

	if (!cluster_id_ok(id, strlen(id) + 1)) {
		*err = -EINVAL;
		snprintf(why, size,
			 "%s: not a name of a gateway; give 1 to 63 letters, "
			 "digits, dots, hyphens and underscores",
			 id);
		return NULL;
	}
	s = new_store(bsrbd_of(b), id, ev);
	if (!s) {
		*err = -ENOMEM;
		snprintf(why, size, "%s: out of memory", b->name);
		return NULL;
	}
	*err = open_all(&(struct opening){ s, why, size });
	if (!*err)
		return &s->store;
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->mutex);
	free(s);
	return NULL;
}
