/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * space.c: the space that an image takes in its pool, and can still take. Only an
 * image with a map of its objects (fast-diff) can say that without a look at each.
 */
#include "backstore/rbd/df.h"
#include "backstore/rbd/internal.h"

/* The monitor is asked again after ROOM_KNOWN, and the objects are counted again
 * one by one after USED_KNOWN. */
#define ROOM_KNOWN (5 * XTIME_S)
#define USED_KNOWN (60 * XTIME_S)

static int add_length(uint64_t off, size_t len, int exists, void *sum)
{
	(void)off;
	if (exists)
		*(uint64_t *)sum += len;
	return 0;
}

/* is_known returns whether *value was found less than `age` ago. */
static bool is_known(struct bsrbd *r, const struct bsrbd_figure *f, xtime age,
		     uint64_t *value)
{
	bool known;

	pthread_mutex_lock(&r->mutex);
	known = f->at && io_now_exact() - f->at < age;
	*value = f->value;
	pthread_mutex_unlock(&r->mutex);
	return known;
}

static void keep(struct bsrbd *r, struct bsrbd_figure *f, uint64_t value)
{
	pthread_mutex_lock(&r->mutex);
	f->value = value;
	f->at = io_now_exact();
	pthread_mutex_unlock(&r->mutex);
}

/* Whole objects of this image, without those of its parent. With a map that is
 * invalid, librbd looks at each object, which must not happen often. */
static int sum_objects(struct bsrbd *r, uint64_t *used)
{
	uint64_t flags, size;
	int err = rbd_get_flags(r->image, &flags);

	if (!err)
		err = rbd_get_size(r->image, &size);
	if (err)
		return err;
	if ((flags &
	     (RBD_FLAG_OBJECT_MAP_INVALID | RBD_FLAG_FAST_DIFF_INVALID)) &&
	    is_known(r, &r->used, USED_KNOWN, used))
		return 0;
	*used = 0;
	err = rbd_diff_iterate2(r->image, NULL, 0, size, 0, 1, add_length,
				used);
	if (!err)
		keep(r, &r->used, *used);
	return err;
}

/* What the pool can take; all, if the cluster does not say. */
static uint64_t ask_room(struct bsrbd *r)
{
	static const char command[] =
		"{\"prefix\": \"df\", \"format\": \"json\"}";
	const char *lines[] = { command };
	char *out = NULL, *status = NULL;
	size_t nout = 0, nstatus = 0;
	uint64_t room = UINT64_MAX;

	if (!rados_mon_command(bsrbd_cluster_rados(r->cluster), lines, 1, "", 0,
			       &out, &nout, &status, &nstatus))
		(void)bsrbd_df_room(out, nout, rados_ioctx_get_id(r->pool),
				    &room);
	rados_buffer_free(out);
	rados_buffer_free(status);
	return room;
}

static uint64_t room_of_pool(struct bsrbd *r)
{
	uint64_t room;

	if (!is_known(r, &r->room, ROOM_KNOWN, &room)) {
		room = ask_room(r);
		keep(r, &r->room, room);
	}
	return room;
}

int bsrbd_space(struct bsrbd *r, uint64_t *used, uint64_t *left)
{
	uint64_t size = __atomic_load_n(&r->bs.size, __ATOMIC_RELAXED), taken;
	int err = sum_objects(r, &taken);

	if (err)
		return err;
	*used = MIN(taken, size);
	*left = MIN(size - *used, room_of_pool(r));
	return 0;
}
