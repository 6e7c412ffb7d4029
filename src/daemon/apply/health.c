/* SPDX-License-Identifier: BSD-2-Clause */
/* health.c: checks of the files of the LUNs. */
#include "daemon/apply/health.h"

#include <stdlib.h>

#include "daemon/apply/units.h"
#include "daemon/log/say.h"

#define CHECK_TIME  (5 * XTIME_S)
#define CLOSE_LIMIT (2 * XTIME_S)

struct health {
	struct daemon *d;
	struct io_timer timer;
	struct bs_req req;
	bool is_checking, closing; /* is_checking: a check is in progress */
	unsigned at;		   /* the check is of d->units[at] */
};

static void check_flushes(struct health *h)
{
	const struct daemon *d = h->d;

	for (unsigned i = 0; i < d->nunits; i++) {
		struct unit *u = d->units[i];
		bool failed = dev_lu_flush_failed(u->lu);

		if (failed && !u->flush_failed)
			trace_emit(&h->d->log.trace, TRACE_MEDIUM,
				   "backstore %s, %s: a flush failed: data "
				   "that were written before it may be lost; "
				   "write them again, or end this state with "
				   "iserctl clear %s",
				   u->name, dev_lu_backstore(u->lu)->name,
				   u->name);
		u->flush_failed = failed;
	}
}

static void check_next(struct health *h);

static void set_checking(struct health *h, bool on)
{
	h->is_checking = h->d->units[h->at]->in_check = on;
}

/* ---- space ---- */

static void space_measured(struct bs_req *req)
{
	struct health *h = container_of(req, struct health, req);
	struct unit *u = h->d->units[h->at];

	set_checking(h, false);
	u->space.is_known = !req->result;
	u->space.used = req->space_used;
	u->space.left = req->space_left;
	h->at++;
	check_next(h);
}

/* Of files only: measuring an image of Ceph asks its cluster. */
static bool is_measured(const struct health *h, const struct unit *u)
{
	return h->d->http && u->spec->kind == LUN_FILE && !h->closing &&
	       (dev_lu_backstore(u->lu)->caps & BS_CAP_SPACE);
}

static void measure(struct health *h, const struct unit *u)
{
	set_checking(h, true);
	h->req = (struct bs_req){ .op = BS_SPACE, .done = space_measured };
	bs_submit(dev_lu_backstore(u->lu), &h->req);
}

/* ---- checks ---- */

static void size_adopted(void *arg, int err)
{
	(void)arg;
	(void)err; /* a unit that is busy is asked again */
}

static void check_done(struct bs_req *req)
{
	struct health *h = container_of(req, struct health, req);
	struct unit *u = h->d->units[h->at];

	set_checking(h, false);
	if (!req->result && req->trouble == BS_RESIZED) {
		u->trouble = BS_SOUND;
		dev_lu_resize(u->lu, 0, false, size_adopted, NULL);
	} else if (!req->result) {
		if (req->trouble && req->trouble != u->trouble)
			trace_emit(&h->d->log.trace, TRACE_MEDIUM,
				   "backstore %s, %s: %s", u->name,
				   dev_lu_backstore(u->lu)->name,
				   bs_trouble_str(req->trouble));
		u->trouble = req->trouble;
	}
	if (is_measured(h, u)) {
		measure(h, u);
		return;
	}
	h->at++;
	check_next(h);
}

/* The medium of a drive may change during a check, so drives are skipped. */
static bool is_checked(const struct unit *u)
{
	return dev_lu_type(u->lu) == DEV_DISK && !u->is_held &&
	       (dev_lu_backstore(u->lu)->caps & BS_CAP_CHECK);
}

static void check_next(struct health *h)
{
	struct daemon *d = h->d;

	while (h->at < d->nunits && !is_checked(d->units[h->at]))
		h->at++;
	if (h->at == d->nunits || h->closing)
		return;
	set_checking(h, true);
	h->req = (struct bs_req){ .op = BS_CHECK, .done = check_done };
	bs_submit(dev_lu_backstore(d->units[h->at]->lu), &h->req);
}

/* A check that hangs, such as of a file on a server that does not answer, is
 * not repeated. */
static void check_all(struct io_timer *t)
{
	struct health *h = container_of(t, struct health, timer);
	struct io_loop *l = h->d->loops[0];

	check_flushes(h);
	if (!h->is_checking) {
		h->at = 0;
		check_next(h);
	}
	io_timer_set(l, t, io_now(l) + CHECK_TIME);
}

bool health_open(struct daemon *d)
{
	struct health *h = calloc(1, sizeof(*h));
	struct io_loop *l = d->loops[0];

	if (h) {
		h->d = d;
		h->timer.fire = check_all;
	}
	if (!h || io_timer_set(l, &h->timer, io_now(l) + CHECK_TIME)) {
		free(h);
		say("out of memory");
		return false;
	}
	d->health = h;
	return true;
}

bool health_close(struct daemon *d)
{
	struct health *h = d->health;
	xtime limit = io_now_exact() + CLOSE_LIMIT;

	if (!h)
		return true;
	io_timer_clear(d->loops[0], &h->timer);
	h->closing = true;
	while (h->is_checking && io_now_exact() < limit)
		io_loop_turn(d->loops[0], 50 * XTIME_MS);
	d->health = NULL;
	if (!h->is_checking) {
		free(h);
		return true;
	}
	/* The helper thread still writes to h->req: h is never freed. */
	say("%s: cannot end its check: the file system does not answer",
	    dev_lu_backstore(d->units[h->at]->lu)->name);
	return false;
}

void health_detached(struct daemon *d, unsigned index)
{
	if (d->health && d->health->at > index)
		d->health->at--;
}
