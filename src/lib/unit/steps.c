/* SPDX-License-Identifier: BSD-2-Clause */
/* steps.c: the commands of a request (SBC-3 §5): chunks that the limits of
 * the unit permit, partial blocks, and what replaces a command that the unit does
 * not support. */
#include <stdlib.h>
#include <string.h>

#include "lib/unit/jobs.h"
#include "scsi/cdb.h"

#define WINDOW	8  /* commands of one READ or WRITE in progress */
#define EXTENTS 64 /* of one GET LBA STATUS */
/* after so many differences of COMPARE AND WRITE, pauses begin */
#define DIFFERENCES 8
#define PAUSE	    (2 * XTIME_MS) /* at most */

static void command_completed(struct iser_io *io);

static void submit(struct unit_job *j, struct unit_cmd *c)
{
	c->io.done = command_completed;
	c->io.arg = c;
	j->in_flight++;
	iser_submit(j->unit->session, &c->io);
}

/* Returns a command for blocks from lba on, or NULL: the job has failed. */
static struct unit_cmd *new_command(struct unit_job *j, unsigned niov,
				    uint64_t lba, uint64_t blocks)
{
	struct unit_cmd *c = lib_cmd_new(j, niov);

	if (!c) {
		lib_job_fail(j, NULL, ISER_E_NOMEM);
		return NULL;
	}
	c->lba = lba;
	c->blocks = (uint32_t)blocks;
	c->io.iov = c->iov;
	return c;
}

static void add_piece(struct unit_cmd *c, void *base, size_t len)
{
	if (len)
		c->iov[c->io.niov++] = (struct iovec){ base, len };
}

static void set_fua(const struct unit_job *j, struct unit_cmd *c)
{
	if ((j->r->flags & ISER_OP_FUA) && j->unit->info.has_fua)
		iser_set_fua(&c->io);
}

/* ---- whole blocks ---- */

/* A READ places the bytes of its first and last block that the request does not
 * want in u->sink. */
static void submit_read(struct unit_job *j, uint64_t blocks)
{
	struct iser_unit *u = j->unit;
	uint64_t block = u->info.block_size;
	uint64_t begin = j->lba * block, end = begin + blocks * block;
	uint64_t from = MAX(begin, j->r->offset);
	uint64_t to = MIN(end, j->r->offset + j->r->length);
	struct unit_cmd *c = new_command(j, j->r->niov + 2, j->lba, blocks);
	unsigned n;

	if (!c)
		return;
	add_piece(c, u->sink, (size_t)(from - begin));
	bufv_slice(&j->data, (size_t)(from - j->r->offset), (size_t)(to - from),
		   c->iov + c->io.niov, j->r->niov, &n);
	c->io.niov += n;
	add_piece(c, u->sink, (size_t)(end - to));
	iser_prep_rw(&c->io, u->lun, false, j->lba, c->blocks);
	set_fua(j, c);
	submit(j, c);
}

static void submit_write(struct unit_job *j, uint64_t blocks)
{
	struct iser_unit *u = j->unit;
	uint64_t block = u->info.block_size;
	struct unit_cmd *c = new_command(j, j->r->niov, j->lba, blocks);

	if (!c)
		return;
	bufv_slice(&j->data, (size_t)(j->lba * block - j->r->offset),
		   (size_t)(blocks * block), c->iov, j->r->niov, &c->io.niov);
	iser_prep_rw(&c->io, u->lun, true, j->lba, c->blocks);
	set_fua(j, c);
	submit(j, c);
}

static void submit_compare(struct unit_job *j, uint64_t blocks)
{
	struct unit_cmd *c = new_command(j, j->r->niov, j->lba, blocks);

	if (!c)
		return;
	bufv_slice(&j->data, 0, j->data.len, c->iov, j->r->niov, &c->io.niov);
	iser_prep_compare_and_write(&c->io, j->unit->lun, j->lba,
				    (uint8_t)blocks);
	set_fua(j, c);
	submit(j, c);
}

static void submit_zeros(struct unit_job *j, uint64_t blocks)
{
	struct iser_unit *u = j->unit;
	uint64_t left = blocks * u->info.block_size;
	struct unit_cmd *c =
		new_command(j, (unsigned)((left + LIB_ZEROS - 1) / LIB_ZEROS),
			    j->lba, blocks);

	if (!c)
		return;
	for (; left > 0; left -= MIN(left, LIB_ZEROS))
		add_piece(c, u->zeros, (size_t)MIN(left, LIB_ZEROS));
	iser_prep_rw(&c->io, u->lun, true, j->lba, c->blocks);
	set_fua(j, c);
	submit(j, c);
}

/* unmap: the unit may unmap the blocks. */
static void submit_same(struct unit_job *j, uint64_t blocks, bool unmap)
{
	struct unit_cmd *c = new_command(j, 1, j->lba, blocks);

	if (!c)
		return;
	add_piece(c, j->unit->zeros, j->unit->info.block_size);
	iser_prep_write_same(&c->io, j->unit->lun, j->lba, c->blocks, unmap);
	submit(j, c);
}

static void submit_unmap(struct unit_job *j, uint64_t blocks)
{
	struct unit_cmd *c = new_command(j, 0, j->lba, blocks);
	const struct iser_unmap_range range = { .lba = j->lba,
						.blocks = (uint32_t)blocks };

	if (!c)
		return;
	iser_prep_unmap(&c->io, j->unit->lun, &c->params, &range, 1);
	submit(j, c);
}

static void submit_status(struct unit_job *j, uint64_t blocks)
{
	struct unit_cmd *c = new_command(j, 0, j->lba, blocks);

	if (!c)
		return;
	iser_prep_lba_status(&c->io, j->unit->lun, j->lba, EXTENTS, &c->params);
	submit(j, c);
}

/* ---- extents ---- */

/* Appends a range, or extends the last one. Returns false if there is no room. */
static bool add_range(struct unit_job *j, uint64_t blocks, bool mapped)
{
	struct iser_request *r = j->r;
	uint64_t block = j->unit->info.block_size;
	uint64_t from = MAX(j->lba * block, r->offset);
	uint64_t to = MIN((j->lba + blocks) * block, r->offset + r->length);
	struct iser_range *last =
		r->nranges ? &r->ranges[r->nranges - 1] : NULL;

	if (last && last->mapped == mapped) {
		last->length += to - from;
	} else if (r->nranges == r->max_ranges) {
		return false;
	} else {
		r->ranges[r->nranges++] = (struct iser_range){
			.offset = from,
			.length = to - from,
			.mapped = mapped,
			.zeros = !mapped && j->unit->info.reads_zeros,
		};
	}
	j->lba += blocks;
	j->left -= blocks;
	return true;
}

/* All blocks that are left count as mapped: the unit does not report more. */
static void end_ranges(struct unit_job *j)
{
	if (j->left)
		add_range(j, j->left, true);
	j->left = 0;
}

static void take_extents(struct unit_job *j, struct unit_cmd *c)
{
	struct iser_extent e[EXTENTS];
	int n = iser_parse_lba_status(&c->io, e, EXTENTS);

	/* the blocks that the command took from j->left */
	j->lba = c->lba;
	j->left = c->blocks + j->left;
	for (int i = 0; i < n && j->left; i++)
		if (!add_range(j, MIN(e[i].blocks, j->left), e[i].mapped))
			j->left = 0;
	if (n <= 0)
		end_ranges(j);
}

/* ---- partial blocks ---- */

/* Sets j->partial for the phase. Returns false if it has no partial block. */
static bool set_partial(struct unit_job *j)
{
	uint64_t block = j->unit->info.block_size;
	uint64_t end = j->r->offset + j->r->length;
	struct unit_partial *p = &j->partial;
	bool head = j->r->offset % block;

	if (!j->has_partial)
		return false;
	if (j->phase == UNIT_HEAD && head) {
		p->lba = j->first;
		p->from = (size_t)(j->r->offset % block);
		p->len = (size_t)MIN(block - p->from, j->r->length);
		p->at = 0;
	} else if (j->phase == UNIT_TAIL && end % block &&
		   !(head && j->end == j->first + 1)) {
		p->lba = j->end - 1;
		p->from = 0;
		p->len = (size_t)(end % block);
		p->at = (size_t)(j->r->length - p->len);
	} else {
		return false;
	}
	p->is_set = true;
	p->is_read = false;
	p->differences = p->losses = 0;
	return true;
}

static void read_partial(struct unit_job *j)
{
	struct unit_partial *p = &j->partial;
	size_t block = j->unit->info.block_size;
	struct unit_cmd *c;

	if (!p->buf)
		p->buf = malloc(2 * 65536); /* two blocks of any size */
	if (!p->buf) {
		lib_job_fail(j, NULL, ISER_E_NOMEM);
		return;
	}
	c = new_command(j, 1, p->lba, 1);
	if (!c)
		return;
	add_piece(c, p->buf, block);
	iser_prep_rw(&c->io, j->unit->lun, false, p->lba, 1);
	submit(j, c);
}

/* The block has arrived: makes the new block after it. */
static void change_partial(struct unit_job *j)
{
	struct unit_partial *p = &j->partial;
	size_t block = j->unit->info.block_size;
	uint8_t *new = p->buf + block;

	memcpy(new, p->buf, block);
	if (j->r->op == ISER_OP_ZERO)
		memset(new + p->from, 0, p->len);
	else
		bufv_copy_out(&j->data, p->at, new + p->from, p->len);
	p->is_read = true;
}

static void write_partial(struct unit_job *j)
{
	struct unit_partial *p = &j->partial;
	struct iser_unit *u = j->unit;
	size_t block = u->info.block_size;
	struct unit_cmd *c = new_command(j, 1, p->lba, 1);

	if (!c)
		return;
	if (u->limits.compare) {
		add_piece(c, p->buf, 2 * block);
		iser_prep_compare_and_write(&c->io, u->lun, p->lba, 1);
	} else {
		add_piece(c, p->buf + block, block);
		iser_prep_rw(&c->io, u->lun, true, p->lba, 1);
	}
	set_fua(j, c);
	submit(j, c);
}

/* Submits the next command for the partial block of the phase. Returns false if
 * there is none. */
static bool advance_partial(struct unit_job *j)
{
	if (!j->partial.is_set && !set_partial(j))
		return false;
	if (j->partial.is_read)
		write_partial(j);
	else
		read_partial(j);
	return true;
}

/* ---- the next command ---- */

static bool unmaps_zeros(const struct unit_job *j)
{
	return (j->r->flags & ISER_OP_MAY_UNMAP) && j->unit->limits.by_same &&
	       j->unit->info.reads_zeros;
}

/* Takes the next blocks, at most `most`, from j->left. */
static uint64_t take_blocks(struct unit_job *j, uint64_t most)
{
	uint64_t n = MIN(j->left, most);

	j->left -= n;
	return n;
}

/* Submits the next command for whole blocks. */
static void advance_blocks(struct unit_job *j)
{
	const struct unit_limits *l = &j->unit->limits;
	uint64_t n = 0;

	switch (j->r->op) {
	case ISER_OP_READ:
		submit_read(j, n = take_blocks(j, l->transfer));
		break;
	case ISER_OP_WRITE:
		submit_write(j, n = take_blocks(j, l->transfer));
		break;
	case ISER_OP_TRIM:
		n = take_blocks(j, l->by_unmap ? l->unmap : l->same);
		if (l->by_unmap)
			submit_unmap(j, n);
		else
			submit_same(j, n, true);
		break;
	case ISER_OP_ZERO:
		if (!l->no_same)
			submit_same(j, n = take_blocks(j, l->same),
				    unmaps_zeros(j));
		else if (j->r->flags & ISER_OP_FAST)
			lib_job_fail(j, NULL, ISER_E_UNSUPPORTED);
		else
			submit_zeros(j, n = take_blocks(j, l->transfer));
		break;
	case ISER_OP_EXTENTS:
		if (!j->unit->info.thin || l->no_status)
			end_ranges(j);
		else
			submit_status(j, n = take_blocks(j, UINT32_MAX));
		break;
	case ISER_OP_COMPARE_AND_WRITE:
		submit_compare(j, n = take_blocks(j, l->compare));
		break;
	case ISER_OP_FLUSH:
		break;
	}
	j->lba += n;
}

/* Commands of other operations than READ and WRITE may be refused, so that the
 * next one depends on the one before. */
static bool may_submit_blocks(const struct unit_job *j)
{
	bool parallel = j->r->op == ISER_OP_READ || j->r->op == ISER_OP_WRITE;

	return j->left && j->in_flight < (parallel ? WINDOW : 1);
}

/* FUA without a FUA bit in the commands. */
static bool needs_flush(const struct unit_job *j)
{
	bool by_bit = j->unit->info.has_fua && j->r->op != ISER_OP_ZERO &&
		      j->r->op != ISER_OP_TRIM;

	if (j->r->op == ISER_OP_FLUSH)
		return true;
	return (j->r->flags & ISER_OP_FUA) && !by_bit &&
	       j->r->op != ISER_OP_READ && j->r->op != ISER_OP_EXTENTS;
}

static void submit_flush(struct unit_job *j)
{
	struct unit_cmd *c = new_command(j, 0, 0, 0);

	if (!c)
		return;
	iser_prep_flush(&c->io, j->unit->lun, 0, 0);
	j->flushed = true;
	submit(j, c);
}

/* Submits one command. Returns false if the phase has none to submit now. */
static bool advance_once(struct unit_job *j)
{
	switch (j->phase) {
	case UNIT_HEAD:
	case UNIT_TAIL:
		return !j->in_flight && advance_partial(j);
	case UNIT_MIDDLE:
		if (!may_submit_blocks(j))
			return false;
		advance_blocks(j);
		return true;
	case UNIT_FLUSH:
		if (j->flushed || !needs_flush(j))
			return false;
		submit_flush(j);
		return true;
	case UNIT_END:
		return false;
	}
	return false;
}

void lib_job_advance(struct unit_job *j)
{
	while (!j->err && j->phase != UNIT_END) {
		if (advance_once(j))
			continue;
		if (j->in_flight)
			return;
		j->phase++;
	}
	if (!j->in_flight)
		lib_job_end(j);
}

/* ---- completions ---- */

static void on_pause_end(struct io_timer *t)
{
	struct unit_job *j = container_of(t, struct unit_job, partial.pause);

	j->in_flight--;
	lib_job_advance(j);
}

/*
 * Another initiator has changed the block. Returns whether the step is repeated:
 * for the time for which refused commands are repeated, too, because an initiator
 * with a faster connection can change the block again and again. Pauses of
 * different lengths end the competition of two such initiators.
 */
static bool repeat_after_difference(struct unit_job *j)
{
	struct unit_partial *p = &j->partial;
	struct iser_unit *u = j->unit;
	xtime now = io_now_exact();

	if (p->differences++ == 0)
		p->since = now;
	if (p->differences <= DIFFERENCES)
		return true;
	if (now - p->since >= u->session->url.retry * XTIME_S)
		return false;
	p->pause.fire = on_pause_end;
	/* the last digits of the time differ between initiators */
	if (!io_timer_set(u->ctx->loop, &p->pause, now + now % PAUSE))
		j->in_flight++; /* until on_pause_end */
	return true;
}

/* The COMPARE AND WRITE of a partial block failed: reads the block again if that
 * may help. */
static bool recover_partial(struct unit_job *j, const struct unit_cmd *c)
{
	struct unit_partial *p = &j->partial;
	struct iser_session *s = j->unit->session;
	bool lost = c->io.err == ISER_E_CLOSED || c->io.err == ISER_E_TIMEOUT ||
		    c->io.err == ISER_E_ABORTED;

	if (c->io.cdb[0] != SCSI_COMPARE_AND_WRITE)
		return false;
	p->is_read = false;
	if (lib_sense_key(&c->io) == SENSE_MISCOMPARE)
		return repeat_after_difference(j);
	/* the target may have executed it: writing the same bytes once more
	 * has the effect that WRITE has (iser_url.reconnect) */
	if (lost)
		return iser_is_connected(s) && p->losses++ < s->url.reconnect;
	if (lib_sense_key(&c->io) != SENSE_ILLEGAL_REQUEST)
		return false;
	/* not supported after all: WRITE from now on */
	j->unit->limits.compare = 0;
	j->unit->info.max_compare_and_write = 0;
	j->unit->info.atomic_partial = false;
	return true;
}

/* Does without a command that the unit does not support: WRITE in place of WRITE
 * SAME, "all mapped" in place of GET LBA STATUS. */
static bool replace_command(struct unit_job *j, const struct unit_cmd *c)
{
	struct iser_unit *u = j->unit;

	if (lib_sense_key(&c->io) != SENSE_ILLEGAL_REQUEST)
		return false;
	if (j->r->op == ISER_OP_ZERO && c->io.cdb[0] == SCSI_WRITE_SAME_16)
		u->limits.no_same = true;
	else if (j->r->op == ISER_OP_EXTENTS)
		u->limits.no_status = true;
	else
		return false;
	if (u->limits.no_same)
		u->info.can_zero = false;
	j->lba = c->lba;
	j->left += c->blocks;
	return true;
}

static void command_failed(struct unit_job *j, const struct unit_cmd *c)
{
	int err = c->io.err;

	if (j->err)
		return;
	if (j->phase == UNIT_HEAD || j->phase == UNIT_TAIL) {
		if (recover_partial(j, c))
			return;
	} else if (j->phase == UNIT_MIDDLE && replace_command(j, c)) {
		return;
	}
	if (j->r->op == ISER_OP_COMPARE_AND_WRITE &&
	    lib_sense_key(&c->io) == SENSE_MISCOMPARE)
		err = ISER_E_MISCOMPARE;
	lib_job_fail(j, c, err);
}

static void command_succeeded(struct unit_job *j, struct unit_cmd *c)
{
	if (j->phase == UNIT_HEAD || j->phase == UNIT_TAIL) {
		if (!j->partial.is_read) {
			change_partial(j);
		} else {
			j->partial.is_set = false;
			j->phase++;
		}
	} else if (j->r->op == ISER_OP_EXTENTS) {
		take_extents(j, c);
	}
}

static void command_completed(struct iser_io *io)
{
	struct unit_cmd *c = io->arg;
	struct unit_job *j = c->job;

	j->in_flight--;
	if (io->err)
		command_failed(j, c);
	else
		command_succeeded(j, c);
	lib_cmd_free(c);
	lib_job_advance(j);
}
