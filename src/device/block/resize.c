/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resize.c: changes the size of a unit's backstore during operation (SBC-3
 * §4.5). The change has exclusive access to the whole unit, so that no command
 * uses a block that the change removes.
 */
#include <stdlib.h>

#include "device/unit/attention.h"
#include "device/unit/condition.h"
#include "device/unit/lu_life.h"
#include "device/unit/range.h"

#define HOME 0u /* worker */

struct resize {
	struct dev_lu *lu;
	struct dev_range range;
	struct bs_req req;
	void (*done)(void *arg, int err);
	void *arg;
	uint64_t size; /* 0: adopt the current size of the backstore */
};

static void end(struct resize *z, int err)
{
	struct dev_lu *lu = z->lu;

	dev_range_drop(&z->range);
	z->done(z->arg, err);
	free(z);
	dev_background_end(lu);
}

static void submit(struct resize *z, enum bs_op op,
		   void (*done)(struct bs_req *req))
{
	z->req = (struct bs_req){
		.op = op, .worker = HOME, .size_now = z->size, .done = done
	};
	bs_submit(z->lu->bs, &z->req);
}

/* The new size is known: all nexuses get CAPACITY DATA HAS CHANGED. */
static void measured(struct bs_req *req)
{
	struct resize *z = container_of(req, struct resize, req);
	struct dev_lu *lu = z->lu;
	uint64_t now = req->size_now >> lu->block_shift;

	if (!req->result &&
	    __atomic_exchange_n(&lu->blocks, now, __ATOMIC_RELAXED) != now)
		dev_attention_unit(lu, HOME, NULL, UA_CAPACITY_CHANGED);
	end(z, req->result);
}

static void resized(struct bs_req *req)
{
	struct resize *z = container_of(req, struct resize, req);

	if (req->result)
		end(z, req->result);
	else
		submit(z, BS_SIZE, measured);
}

static void taken(struct dev_range *r)
{
	struct resize *z = container_of(r, struct resize, range);

	if (dev_condition(z->lu) != LU_READY)
		end(z, ERR_BUSY); /* an erasure uses the old size */
	else if (z->size)
		submit(z, BS_RESIZE, resized);
	else
		submit(z, BS_SIZE, measured);
}

static int check(const struct dev_lu *lu, uint64_t size, bool force)
{
	if (lu->cfg.type != DEV_DISK || lu->pass.device ||
	    !(lu->bs->caps & BS_CAP_SIZE))
		return ERR_UNSUPPORTED;
	if (size && !(lu->bs->caps & BS_CAP_RESIZE))
		return ERR_UNSUPPORTED;
	if (size & (lu->block_size - 1))
		return ERR_RANGE;
	if (size && size >> lu->block_shift < lu->blocks && !force)
		return ERR_DENIED;
	return dev_condition(lu) == LU_READY && !dev_lu_is_leaving(lu)
		       ? 0
		       : ERR_BUSY;
}

int dev_lu_resize(struct dev_lu *lu, uint64_t size, bool force,
		  void (*done)(void *arg, int err), void *arg)
{
	int err = check(lu, size, force);
	struct resize *z = err ? NULL : calloc(1, sizeof(*z));

	if (!z)
		return err ? err : ERR_NOMEM;
	z->lu = lu;
	z->size = size;
	z->done = done;
	z->arg = arg;
	dev_background_begin(lu);
	if (!dev_range_take(&z->range, lu, HOME, 0, DEV_WHOLE_UNIT,
			    DEV_HOLD_ALONE, taken))
		return 0;
	dev_background_end(lu);
	free(z);
	return ERR_NOMEM;
}
