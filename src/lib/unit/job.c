/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * job.c: the requests of a unit: which may be in progress together, and their
 * end.
 *
 * A job that changes part of a block reads the whole block and writes it back.
 * Another job that changes the same block must not be in progress then: it waits,
 * and so do all later jobs that overlap with a job that waits. Jobs of whole
 * blocks never wait for each other.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/unit/jobs.h"

#define NIOV_MAX  1000
#define ALL_FLAGS (ISER_OP_FUA | ISER_OP_MAY_UNMAP | ISER_OP_FAST)

/* ---- memory ---- */

struct unit_cmd *lib_cmd_new(struct unit_job *j, unsigned n)
{
	struct iser_unit *u = j->unit;
	struct unit_cmd *c = u->free_cmds;
	struct iovec *iov;

	if (c)
		u->free_cmds = c->next;
	else
		c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	if (!c->iov) {
		c->iov = c->few;
		c->room = ARRAY_LEN(c->few);
	}
	c->job = j;
	c->io = (struct iser_io){ .lun = u->lun };
	if (n <= c->room)
		return c;
	iov = reallocarray(c->iov == c->few ? NULL : c->iov, n, sizeof(*iov));
	if (!iov) {
		lib_cmd_free(c);
		return NULL;
	}
	c->iov = iov;
	c->room = n;
	return c;
}

void lib_cmd_free(struct unit_cmd *c)
{
	struct iser_unit *u = c->job->unit;

	c->next = u->free_cmds;
	u->free_cmds = c;
}

static struct unit_job *job_new(struct iser_unit *u)
{
	struct list *l = list_pop_front(&u->free_jobs);
	struct unit_job *j;

	if (l)
		return list_entry(l, struct unit_job, link);
	j = calloc(1, sizeof(*j));
	if (j)
		list_init(&j->link);
	return j;
}

/* ---- which jobs may be in progress together ---- */

static bool modifies(const struct unit_job *j)
{
	return j->r->op != ISER_OP_READ && j->r->op != ISER_OP_EXTENTS &&
	       j->r->op != ISER_OP_FLUSH;
}

static bool conflict(const struct unit_job *a, const struct unit_job *b)
{
	return a != b && (a->has_partial || b->has_partial) && modifies(a) &&
	       modifies(b) &&
	       ranges_overlap(a->first, a->end - a->first, b->first,
			      b->end - b->first);
}

/* Returns whether j conflicts with a job of the list, before j if j is on it. */
static bool conflicts_in(const struct list *l, const struct unit_job *j)
{
	list_for_each(it, l) {
		const struct unit_job *o =
			list_entry(it, struct unit_job, link);

		if (o == j)
			return false;
		if (conflict(o, j))
			return true;
	}
	return false;
}

static bool must_wait(const struct iser_unit *u, const struct unit_job *j)
{
	return u->partials > 0 &&
	       (conflicts_in(&u->active, j) || conflicts_in(&u->waiting, j));
}

/* Returns the first job that waits and no longer has to, or NULL. */
static struct unit_job *next_of_waiting(const struct iser_unit *u)
{
	list_for_each(it, &u->waiting) {
		struct unit_job *j = list_entry(it, struct unit_job, link);

		if (!must_wait(u, j))
			return j;
	}
	return NULL;
}

static void start_waiting(struct iser_unit *u)
{
	struct unit_job *j;

	while ((j = next_of_waiting(u))) {
		list_del(&j->link);
		list_push_back(&u->active, &j->link);
		u->advance(j);
	}
}

/* ---- the end ---- */

/* Calls the done of requests that ended within iser_unit_submit. */
static void report_ended(struct io_defer *d)
{
	struct iser_unit *u = container_of(d, struct iser_unit, report);

	while (u->ended) {
		struct iser_request *r = u->ended;

		u->ended = r->next;
		if (!u->ended)
			u->ended_tail = &u->ended;
		u->requests--;
		r->done(r);
	}
}

static void end_later(struct iser_unit *u, struct iser_request *r, int err)
{
	r->err = err;
	r->next = NULL;
	*u->ended_tail = r;
	u->ended_tail = &r->next;
	io_loop_defer(u->ctx->loop, &u->report);
}

void lib_job_fail(struct unit_job *j, const struct unit_cmd *c, int err)
{
	struct iser_request *r = j->r;
	struct scsi_sense sense;

	if (j->err)
		return;
	j->err = err;
	if (!c)
		return;
	r->library[LIB_REQUEST_CAUSE] = (uint64_t)c->io.cause;
	r->library[LIB_REQUEST_CAME] = c->io.transferred;
	r->library[LIB_REQUEST_WANTED] = c->io.transferred + c->io.resid;
	if (c->io.err != ISER_E_SCSI)
		return;
	r->opcode = c->io.cdb[0];
	r->status = c->io.status;
	if (scsi_sense_parse(&sense, c->io.sense, c->io.sense_len))
		return;
	r->sense_key = sense.key;
	r->asc = sense.asc;
	if (sense.has_info && sense.key == SENSE_MISCOMPARE)
		r->miscompare = sense.info;
}

void lib_job_end(struct unit_job *j)
{
	struct iser_unit *u = j->unit;
	struct iser_request *r = j->r;
	int err = j->err;
	bool starting = j->starting;

	list_del(&j->link);
	u->partials -= j->has_partial;
	list_push_front(&u->free_jobs, &j->link);
	if (starting) {
		end_later(u, r, err);
		return;
	}
	if (!list_empty(&u->waiting))
		start_waiting(u);
	r->err = err;
	u->requests--;
	r->done(r);
}

/* ---- the begin ---- */

/* Returns whether the request has the memory that its operation needs. */
static bool has_memory(const struct iser_request *r)
{
	bool valid = r->niov <= NIOV_MAX;
	uint64_t len = valid ? bufv_of(r->iov, r->niov).len : 0;

	switch (r->op) {
	case ISER_OP_READ:
	case ISER_OP_WRITE:
		return valid && len == r->length;
	case ISER_OP_COMPARE_AND_WRITE:
		return valid && len / 2 == r->length && len % 2 == 0;
	case ISER_OP_EXTENTS:
		return r->ranges && r->max_ranges > 0;
	case ISER_OP_FLUSH:
	case ISER_OP_TRIM:
	case ISER_OP_ZERO:
		return true;
	}
	return false; /* not an operation */
}

static int check_compare(const struct iser_unit *u,
			 const struct iser_request *r)
{
	uint32_t block = u->info.block_size;

	if (!u->limits.compare)
		return ISER_E_UNSUPPORTED;
	return r->offset % block || r->length % block ||
			       r->length > u->info.max_compare_and_write
		       ? ISER_E_INVALID
		       : 0;
}

static int check_request(const struct iser_unit *u,
			 const struct iser_request *r)
{
	if (!u->is_open || !LIB_UNUSED(r) || (r->flags & ~ALL_FLAGS) ||
	    !has_memory(r))
		return ISER_E_INVALID;
	if (r->op != ISER_OP_FLUSH &&
	    !range_ok(r->offset, r->length, u->info.bytes))
		return ISER_E_INVALID;
	if ((r->op == ISER_OP_TRIM && !u->info.can_trim) ||
	    (r->op == ISER_OP_ZERO && (r->flags & ISER_OP_FAST) &&
	     u->limits.no_same))
		return ISER_E_UNSUPPORTED;
	if (r->op == ISER_OP_COMPARE_AND_WRITE)
		return check_compare(u, r);
	return 0;
}

/* Returns whether the range contains nothing to do. Read-only drives do not
 * support SYNCHRONIZE CACHE. */
static bool is_empty(const struct iser_unit *u, const struct iser_request *r)
{
	uint64_t block = u->info.block_size;

	if (r->op == ISER_OP_FLUSH)
		return u->info.read_only;
	if (r->op == ISER_OP_TRIM)
		return (r->offset + r->length) / block <=
		       (r->offset + block - 1) / block;
	return r->length == 0;
}

static void init_job(struct unit_job *j, struct iser_unit *u,
		     struct iser_request *r)
{
	uint64_t block = u->info.block_size, end = r->offset + r->length;
	uint64_t whole = end / block;
	uint8_t *buf = j->partial.buf;
	bool inner = r->op == ISER_OP_WRITE || r->op == ISER_OP_ZERO;

	*j = (struct unit_job){ .unit = u, .r = r, .phase = UNIT_MIDDLE };
	list_init(&j->link);
	j->partial.buf = buf;
	j->data = bufv_of(r->iov, r->niov);
	if (r->op == ISER_OP_FLUSH) {
		j->phase = UNIT_FLUSH;
		return;
	}
	j->first = r->offset / block;
	j->end = (end + block - 1) / block;
	if (inner || r->op == ISER_OP_TRIM) {
		j->phase = UNIT_HEAD;
		j->lba = (r->offset + block - 1) / block;
		j->left = whole > j->lba ? whole - j->lba : 0;
	} else {
		j->lba = j->first;
		j->left = j->end - j->first;
	}
	j->has_partial = inner && (r->offset % block || end % block);
}

void iser_unit_submit(struct iser_unit *u, struct iser_request *r)
{
	struct unit_job *j = NULL;
	int err = check_request(u, r);

	r->err = 0;
	r->nranges = 0;
	r->miscompare = 0;
	r->opcode = r->status = r->sense_key = 0;
	r->asc = 0;
	memset(r->library, 0, sizeof(r->library));
	u->requests++;
	if (!err && !is_empty(u, r)) {
		j = job_new(u);
		err = j ? 0 : ISER_E_NOMEM;
	}
	if (!j) {
		end_later(u, r, err);
		return;
	}
	init_job(j, u, r);
	u->partials += j->has_partial;
	if (must_wait(u, j)) {
		list_push_back(&u->waiting, &j->link);
		return;
	}
	list_push_back(&u->active, &j->link);
	j->starting = true;
	u->advance(j);
	j->starting = false; /* of a free job, too */
}

/* ---- life ---- */

void lib_jobs_init(struct iser_unit *u, void (*advance)(struct unit_job *j))
{
	u->advance = advance;
	list_init(&u->active);
	list_init(&u->waiting);
	list_init(&u->free_jobs);
	u->ended_tail = &u->ended;
	u->report.run = report_ended;
	list_init(&u->report.link);
}

void lib_jobs_fini(struct iser_unit *u)
{
	struct list *l;

	io_defer_cancel(&u->report);
	while ((l = list_pop_front(&u->free_jobs))) {
		struct unit_job *j = list_entry(l, struct unit_job, link);

		free(j->partial.buf);
		free(j);
	}
	while (u->free_cmds) {
		struct unit_cmd *c = u->free_cmds;

		u->free_cmds = c->next;
		if (c->iov != c->few)
			free(c->iov);
		free(c);
	}
}
