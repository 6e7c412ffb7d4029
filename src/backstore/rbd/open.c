/* SPDX-License-Identifier: BSD-2-Clause */
/* open.c: opens an image: its identity, size, capabilities and lock. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backstore/rbd/internal.h"
#include "base/err.h"

#define CLOSE_TIME 5 /* seconds */

int bsrbd_refuse(struct bsrbd_opening *o, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_why(o->why, o->why_size, o->cfg->name, format, args);
	va_end(args);
	return err;
}

static int open_pool(struct bsrbd_opening *o)
{
	struct bsrbd *r = o->r;
	int err = rados_ioctx_create(bsrbd_cluster_rados(r->cluster),
				     o->spec.pool, &r->pool);

	if (err) {
		r->pool = NULL;
		return bsrbd_refuse(o, err,
				    "pool %s: %s; name a pool of the cluster",
				    o->spec.pool, strerror(-err));
	}
	/* a pool that is full refuses requests; by default they would wait for room */
	rados_set_pool_full_try(r->pool);
	if (o->spec.space)
		rados_ioctx_set_namespace(r->pool, o->spec.space);
	return 0;
}

static int open_image(struct bsrbd_opening *o)
{
	const struct bsrbd_spec *s = &o->spec;
	struct bsrbd *r = o->r;
	int err = o->cfg->read_only || s->snap
			  ? rbd_open_read_only(r->pool, s->image, &r->image,
					       s->snap)
			  : rbd_open(r->pool, s->image, &r->image, NULL);

	if (!err)
		return 0;
	r->image = NULL;
	if (err == -ENOENT)
		return bsrbd_refuse(o, err,
				    "no such image or snapshot; make the image "
				    "with rbd create");
	if (err == -EPERM || err == -EACCES)
		return bsrbd_refuse(o, err,
				    "permission denied; give the client the "
				    "profile rbd for this pool");
	return bsrbd_refuse(o, err, "cannot be opened: %s", strerror(-err));
}

/* The identity is that of the image and its snapshot, under any name. */
static int identify(struct bsrbd_opening *o)
{
	struct bsrbd *r = o->r;
	char id[128], key[512];
	int err = rbd_get_id(r->image, id, sizeof(id)), n;

	if (err)
		return bsrbd_refuse(o, err,
				    "has no identifier (%s); only images of "
				    "format 2 can be served",
				    strerror(-err));
	n = snprintf(key, sizeof(key), "rbd %s %lld %s %s %s",
		     bsrbd_cluster_fsid(r->cluster),
		     (long long)rados_ioctx_get_id(r->pool),
		     o->spec.space ? o->spec.space : "", id,
		     o->spec.snap ? o->spec.snap : "");
	bs_uuid_derive(r->bs.uuid, key, MIN((size_t)n, sizeof(key) - 1));
	return 0;
}

static int measure(struct bsrbd_opening *o)
{
	struct bsrbd *r = o->r;
	struct bs *b = &r->bs;
	rbd_image_info_t info;
	int err = rbd_stat(r->image, &info, sizeof(info));

	if (!err)
		err = rbd_get_features(r->image, &r->features);
	if (err)
		return bsrbd_refuse(o, err, "cannot be read: %s",
				    strerror(-err));
	b->block_size = o->cfg->block_size;
	b->size = info.size;
	if (b->size == 0 || b->size % b->block_size)
		return bsrbd_refuse(o, -EINVAL,
				    "its %llu bytes are not whole blocks of "
				    "%u; give it another size with rbd resize",
				    (unsigned long long)b->size, b->block_size);
	b->phys_block = 4096;
	/* a whole object can be removed; a part of one is written with zeros */
	b->unmap_grain = (uint32_t)MIN(info.obj_size, (uint64_t)1 << 30);
	b->caps = BS_CAP_UNMAP | BS_CAP_EXTENTS | BS_CAP_SIZE | BS_CAP_RESIZE |
		  BS_CAP_CHECK | BS_CAP_FUA;
	if (r->features & RBD_FEATURE_FAST_DIFF)
		b->caps |= BS_CAP_SPACE;
	if (o->spec.snap)
		b->caps &= ~(BS_CAP_SIZE | BS_CAP_RESIZE | BS_CAP_CHECK |
			     BS_CAP_SPACE);
	if (o->cfg->read_only || o->spec.snap)
		b->caps = (b->caps | BS_CAP_READ_ONLY) & ~BS_CAP_RESIZE;
	return 0;
}

static int open_by_connection(struct bsrbd_opening *o)
{
	int err = bsrbd_cluster_get(o);

	if (!err)
		err = open_pool(o);
	if (!err)
		err = open_image(o);
	return err;
}

static void leave_connection(struct bsrbd *r)
{
	if (r->pool)
		rados_ioctx_destroy(r->pool);
	if (r->cluster)
		bsrbd_cluster_put(r->cluster);
	r->pool = NULL;
	r->cluster = NULL;
}

static int open_all(struct bsrbd_opening *o)
{
	const char *wrong = bsrbd_spec_parse(&o->spec, o->cfg->operand);
	int err;

	if (wrong)
		return bsrbd_refuse(o, -EINVAL, "%s", wrong);
	err = open_by_connection(o);
	if (err == -ESHUTDOWN && o->r->cluster) {
		/* fenced, which no request has found out yet */
		bsrbd_cluster_fenced(o->r->cluster);
		leave_connection(o->r);
		err = open_by_connection(o);
	}
	if (!err)
		err = identify(o);
	if (!err)
		err = measure(o);
	if (!err && !o->cfg->shared && !o->cfg->clustered &&
	    !(o->r->bs.caps & BS_CAP_READ_ONLY))
		err = bsrbd_lock(o);
	return err;
}

/* close_image closes the image, if it is open. */
static void close_image(struct bsrbd *r)
{
	if (!r->image)
		return;
	if (r->locked)
		rbd_lock_release(r->image);
	rbd_close(r->image);
	r->image = NULL;
}

/* free_image frees what of r is open. */
static void free_image(struct bsrbd *r)
{
	close_image(r);
	leave_connection(r);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->mutex);
	free(r->loops);
	free(r->bs.latencies);
	free(r);
}

/* The end of an image; bsrbd_close and the thread that closes share it. */
struct closing {
	struct bsrbd *r;
	/* guards the members below */
	pthread_mutex_t mutex;
	pthread_cond_t ended;
	bool closed; /* the image is closed, and its lock given back */
	unsigned refs;
};

static void put_closing(struct closing *c)
{
	bool last;

	pthread_mutex_lock(&c->mutex);
	last = --c->refs == 0;
	pthread_mutex_unlock(&c->mutex);
	if (!last)
		return;
	pthread_cond_destroy(&c->ended);
	pthread_mutex_destroy(&c->mutex);
	free(c);
}

/*
 * librados must not be shut down while the process ends, which destroys its objects. A
 * thread that was left alone holds this lock while it shuts down; the end of the process
 * takes it for good.
 */
static pthread_mutex_t shutting_down = PTHREAD_MUTEX_INITIALIZER;

static void prevent_shutdown(void)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += CLOSE_TIME;
	(void)pthread_mutex_timedlock(&shutting_down, &limit);
}

static void register_exit(void)
{
	(void)atexit(prevent_shutdown);
}

static void signal_closed(struct closing *c)
{
	pthread_mutex_lock(&c->mutex);
	c->closed = true;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->mutex);
}

/* wait_while waits while the phase is `first`, or between `first` and `last`. */
static enum bsrbd_phase wait_while(struct bsrbd *r, enum bsrbd_phase first,
				   enum bsrbd_phase last)
{
	enum bsrbd_phase phase;

	pthread_mutex_lock(&r->mutex);
	while (r->phase >= first && r->phase <= last)
		pthread_cond_wait(&r->changed, &r->mutex);
	phase = r->phase;
	pthread_mutex_unlock(&r->mutex);
	return phase;
}

static void *close_all(void *arg)
{
	struct closing *c = arg;
	enum bsrbd_phase phase = wait_while(c->r, BSRBD_STORE, BSRBD_STORE);

	close_image(c->r);
	if (phase == BSRBD_NOTIFIES)
		signal_closed(c);
	wait_while(c->r, BSRBD_STORE, BSRBD_NOTIFIES);
	pthread_mutex_lock(&shutting_down);
	free_image(c->r);
	pthread_mutex_unlock(&shutting_down);
	signal_closed(c);
	put_closing(c);
	return NULL;
}

static struct closing *new_closing(struct bsrbd *r)
{
	struct closing *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->r = r;
	c->refs = 2;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->ended, NULL);
	return c;
}

static bool wait_for_end(struct closing *c)
{
	struct timespec limit;
	bool closed;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += CLOSE_TIME;
	pthread_mutex_lock(&c->mutex);
	while (!c->closed && !err)
		err = pthread_cond_timedwait(&c->ended, &c->mutex, &limit);
	closed = c->closed;
	pthread_mutex_unlock(&c->mutex);
	return closed;
}

/*
 * The end of an image changes objects of the cluster, and a cluster that does not
 * answer blocks the caller. So a thread does it; after CLOSE_TIME that thread is
 * left alone with the image.
 */
void bsrbd_close(struct bs *b)
{
	struct bsrbd *r = bsrbd_of(b);
	struct closing *c = new_closing(r);
	void (*say)(const char *sentence) = r->say;
	pthread_t thread;
	char text[512];

	if (!c) /* no memory: the image stays open until iserd ends */
		return;
	snprintf(text, sizeof(text),
		 "%s: the cluster does not answer: the image is not closed in "
		 "order; its lock expires when the cluster answers again",
		 b->name);
	if (pthread_create(&thread, NULL, close_all, c)) {
		close_all(c);
		put_closing(c);
		return;
	}
	pthread_detach(thread);
	if (!wait_for_end(c))
		say(text);
	put_closing(c);
}

static struct bsrbd *new_image(const struct bs_module_config *cfg)
{
	struct bsrbd *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->loops = calloc(cfg->nloops, sizeof(r->loops[0]));
	r->bs.latencies = calloc(cfg->nloops, sizeof(r->bs.latencies[0]));
	if (!r->loops || !r->bs.latencies) {
		free(r->loops);
		free(r->bs.latencies);
		free(r);
		return NULL;
	}
	r->bs.nlatencies = cfg->nloops;
	memcpy(r->loops, cfg->loops, cfg->nloops * sizeof(r->loops[0]));
	r->nloops = cfg->nloops;
	r->say = cfg->say;
	r->clustered = cfg->clustered;
	pthread_mutex_init(&r->mutex, NULL);
	pthread_cond_init(&r->changed, NULL);
	bs_set_name(&r->bs, cfg->name);
	return r;
}

static struct bs *open_store(const struct bs_module_config *cfg, int *err,
			     char *why, size_t size)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct bsrbd_opening *o = calloc(1, sizeof(*o));
	struct bsrbd *r = o ? new_image(cfg) : NULL;

	if (!r) {
		snprintf(why, size, "%s: out of memory", cfg->name);
		*err = -ENOMEM;
		free(o);
		return NULL;
	}
	pthread_once(&once, register_exit);
	*o = (struct bsrbd_opening){
		.cfg = cfg, .r = r, .why = why, .why_size = size
	};
	*err = open_all(o);
	free(o);
	if (*err) {
		free_image(r);
		return NULL;
	}
	r->bs.ops = &bsrbd_ops;
	r->bs.state = BS_OPEN;
	return &r->bs;
}

__attribute__((
	visibility("default"))) extern const struct bs_module openiser_store;
const struct bs_module openiser_store = {
	.abi = BS_MODULE_ABI,
	.open = open_store,
	.cluster = bsrbd_store_open,
};
