/* SPDX-License-Identifier: BSD-2-Clause */
/* protect.c: requests to a store with protection information: first to the
 * store of the information, then to the store of the data. */
#include "backstore/protect.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/filter.h"
#include "backstore/protect_internal.h"
#include "base/crc32c.h"

/* ---- the head ---- */

static const char magic[16] = "openiser PI 1\n";

#define TYPE_AT	 16
#define BLOCK_AT 20
#define OF_AT	 24
#define CRC_AT	 60

void protect_head_put(const struct protect_head *h, uint8_t p[PROTECT_HEAD_LEN])
{
	memset(p, 0, PROTECT_HEAD_LEN);
	memcpy(p, magic, sizeof(magic));
	p[TYPE_AT] = h->type;
	put_be32(p + BLOCK_AT, h->block_size);
	memcpy(p + OF_AT, h->of, sizeof(h->of));
	put_be32(p + CRC_AT, crc32c_update(0, p, CRC_AT));
}

int protect_head_get(struct protect_head *h, const uint8_t p[PROTECT_HEAD_LEN])
{
	if (memcmp(p, magic, sizeof(magic)) != 0)
		return ERR_FORMAT;
	if (get_be32(p + CRC_AT) != crc32c_update(0, p, CRC_AT))
		return ERR_DATA_DIGEST;
	h->type = p[TYPE_AT];
	h->block_size = get_be32(p + BLOCK_AT);
	memcpy(h->of, p + OF_AT, sizeof(h->of));
	return h->type > 3 ? ERR_FORMAT : 0;
}

/* ---- a request to both stores ---- */

struct step {
	struct bs_protect *p;
	struct bs_req *req; /* the request of the user */
	struct bs_req own;  /* the request to the store of the information */
	struct iovec iov;
	uint64_t region, last; /* regions still to be marked */
	unsigned marking;      /* how many marks the current write sets */
	void (*next)(struct step *s);
	uint8_t type;
	size_t pi_len;
	uint8_t pi[];
};

static uint8_t type_of(const struct bs_protect *p)
{
	return __atomic_load_n(&p->protection.type, __ATOMIC_RELAXED);
}

static void finish_step(struct step *s, int result)
{
	struct bs_req *req = s->req;

	free(s);
	bs_complete(req, result);
}

static struct step *step_new(struct bs_protect *p, struct bs_req *req,
			     size_t pi_len)
{
	struct step *s = malloc(sizeof(*s) + pi_len);

	if (!s) {
		bs_complete(req, ERR_NOMEM);
		return NULL;
	}
	s->p = p;
	s->req = req;
	s->own.worker = req->worker;
	s->own.pi = NULL;
	s->pi_len = pi_len;
	s->type = type_of(p);
	return s;
}

static void own_done(struct bs_req *own)
{
	struct step *s = container_of(own, struct step, own);

	if (own->result)
		finish_step(s, own->result);
	else
		s->next(s);
}

/* Submits a request to the store of the information, then calls next; ends the
 * user's request if it fails. */
static void submit_own(struct step *s, enum bs_op op, unsigned flags,
		       uint64_t off, uint64_t len, void *data,
		       void (*next)(struct step *s))
{
	s->next = next;
	s->own.op = op;
	s->own.flags = flags;
	s->own.off = off;
	s->own.len = len;
	s->own.done = own_done;
	s->iov = (struct iovec){ data, len };
	s->own.data = bufv_of(&s->iov, data ? 1 : 0);
	bs_submit(s->p->pi, &s->own);
}

static void data_done(void *arg, struct bs_req *req)
{
	finish_step(arg, req->result);
}

static void forward_data(struct step *s)
{
	bs_req_push(s->req, data_done, s);
	bs_forward(s->p->data, s->req);
}

/* ---- blocks and their information ---- */

/* Block i of the request's data, in one piece. */
static const void *block_at(const struct bs_req *req, uint64_t i, size_t len,
			    uint8_t *bounce)
{
	struct iovec iov = { 0 };
	unsigned n = 0;

	if (bufv_slice(&req->data, i * len, len, &iov, 1, &n) == len)
		return iov.iov_base;
	bufv_copy_out(&req->data, i * len, bounce, len);
	return bounce;
}

/*
 * SBC-3 §5.32 (WRPROTECT 000b): the reference tag of type 1 is the LBA, that of
 * types 2 and 3 is all ones. The application tag is all ones if an application
 * owns it (ATO = 1), else it is our choice: 0, so that blocks are checked.
 */
static void make_pi(const struct step *s, uint8_t *pi)
{
	const struct bs_req *req = s->req;
	size_t len = s->p->data->block_size;
	uint16_t app = req->flags & BS_PI_OWNED ? 0xffff : 0;
	uint64_t lba = req->off / len;
	uint8_t bounce[4096];

	for (uint64_t i = 0; i < req->len / len; i++)
		pi_put(pi + i * PI_LEN,
		       pi_guard(block_at(req, i, len, bounce), len), app,
		       s->type == 1 ? (uint32_t)(lba + i) : 0xffffffff);
}

/* §5.11 (RDPROTECT 000b): checks the known fields. */
static int check_pi(const struct step *s)
{
	struct bs_req *req = s->req;
	size_t len = s->p->data->block_size;
	const struct pi_rule r = {
		.type = s->type,
		.guard = true,
		.ref = s->type == 1,
		.ref_want = (uint32_t)(req->off / len),
	};
	uint8_t bounce[4096];

	for (uint64_t i = 0; i < req->len / len; i++) {
		int err = pi_check(&r, block_at(req, i, len, bounce), len,
				   s->pi + i * PI_LEN, i);

		if (!err)
			continue;
		req->bad_at = req->off + i * len;
		return err;
	}
	return 0;
}

/* ---- READ ---- */

static void read_done(void *arg, struct bs_req *req)
{
	struct step *s = arg;
	int err = req->result;

	if (!err && req->pi)
		memcpy(req->pi, s->pi, s->pi_len);
	else if (!err && !(req->flags & BS_PI_UNCHECKED))
		err = check_pi(s);
	finish_step(s, err);
}

static void pi_read(struct step *s)
{
	protect_invert(s->pi, s->pi_len);
	bs_req_push(s->req, read_done, s);
	bs_forward(s->p->data, s->req);
}

static void read_both(struct step *s)
{
	submit_own(s, BS_READ, 0, protect_pi_off(s->p, s->req->off), s->pi_len,
		   s->pi, pi_read);
}

/* ---- changes of blocks: marks first ---- */

static void write_marks(struct step *s);

static void write_pi(struct step *s)
{
	const struct bs_req *req = s->req;
	unsigned fua = req->flags & BS_FUA;
	uint64_t off = protect_pi_off(s->p, req->off);

	if (req->op != BS_WRITE || (req->flags & BS_PI_NONE)) {
		submit_own(s, BS_ZERO, fua | BS_MAY_UNMAP, off,
			   req->len / s->p->data->block_size * PI_LEN, NULL,
			   forward_data);
		return;
	}
	if (req->pi)
		memcpy(s->pi, req->pi, s->pi_len);
	else
		make_pi(s, s->pi);
	protect_invert(s->pi, s->pi_len);
	submit_own(s, BS_WRITE, fua, off, s->pi_len, s->pi, forward_data);
}

static bool is_marked(const struct bs_protect *p, uint64_t region)
{
	return __atomic_load_n(&p->marked[region], __ATOMIC_ACQUIRE);
}

static void marks_written(struct step *s)
{
	struct bs_protect *p = s->p;

	for (unsigned i = 0; i < s->marking; i++, s->region++)
		if (!__atomic_exchange_n(&p->marked[s->region], 1,
					 __ATOMIC_RELEASE))
			__atomic_fetch_add(&p->protection.unsettled, 1,
					   __ATOMIC_RELAXED);
	write_marks(s);
}

/* Two workers may mark a region at the same time: a mark is a separate word,
 * and is cleared only while no request is in progress. */
static void write_marks(struct step *s)
{
	struct bs_protect *p = s->p;
	unsigned n = 0;

	while (p->lasting && s->region <= s->last && is_marked(p, s->region))
		s->region++;
	if (!p->lasting || s->region > s->last) {
		write_pi(s);
		return;
	}
	while (n < MARKS_AT_ONCE && s->region + n <= s->last &&
	       !is_marked(p, s->region + n))
		n++;
	s->marking = n;
	submit_own(s, BS_WRITE, BS_FUA, PROTECT_MARKS_AT + s->region * 8,
		   n * 8u, p->ones, marks_written);
}

static void begin_change(struct step *s)
{
	s->region = s->req->off / PROTECT_REGION;
	s->last = (s->req->off + s->req->len - 1) / PROTECT_REGION;
	write_marks(s);
}

/* ---- FLUSH ---- */

static void unmarked(struct step *s)
{
	struct bs_protect *p = s->p;

	memset(p->marked, 0, PROTECT_REGIONS);
	__atomic_store_n(&p->protection.unsettled, 0, __ATOMIC_RELAXED);
	finish_step(s, 0);
}

static void both_flushed(void *arg, struct bs_req *req)
{
	struct step *s = arg;
	struct bs_protect *p = s->p;

	if (req->result || !p->lasting || !(req->flags & BS_ALONE) ||
	    p->protection.unsettled == 0) {
		finish_step(s, req->result);
	} else if (bs_flush_failures(&p->bs)) {
		/* Data or information may be lost: the marks stay on the
		 * medium, and the next start checks their regions. */
		__atomic_store_n(&p->protection.unsettled, 0, __ATOMIC_RELAXED);
		finish_step(s, 0);
	} else {
		submit_own(s, BS_ZERO, BS_MAY_UNMAP, PROTECT_MARKS_AT,
			   PROTECT_REGIONS * 8, NULL, unmarked);
	}
}

static void pi_flushed(struct step *s)
{
	bs_req_push(s->req, both_flushed, s);
	bs_forward(s->p->data, s->req);
}

/* ---- REKEY: the blocks are lost; clear their information, too ---- */

static void flush_pi(struct step *s)
{
	submit_own(s, BS_FLUSH, 0, 0, 0, NULL, forward_data);
}

static void clear_all(struct step *s, void (*next)(struct step *s))
{
	submit_own(s, BS_ZERO, BS_MAY_UNMAP, protect_pi_off(s->p, 0),
		   s->p->bs.size / s->p->data->block_size * PI_LEN, NULL, next);
}

static void clear_for_rekey(struct step *s)
{
	clear_all(s, flush_pi);
}

/* ---- PROTECT: the head, with the new type, is written last ---- */

static void head_written(struct step *s)
{
	__atomic_store_n(&s->p->protection.type, s->req->pi_type,
			 __ATOMIC_RELAXED);
	finish_step(s, 0);
}

static void write_head(struct step *s)
{
	struct protect_head h = {
		.type = s->req->pi_type,
		.block_size = s->p->data->block_size,
	};

	if (!s->p->lasting) {
		head_written(s);
		return;
	}
	memcpy(h.of, s->p->of, sizeof(h.of));
	protect_head_put(&h, s->pi);
	submit_own(s, BS_WRITE, BS_FUA, 0, PROTECT_HEAD_LEN, s->pi,
		   head_written);
}

static void pi_cleared(struct step *s)
{
	submit_own(s, BS_FLUSH, 0, 0, 0, NULL, write_head);
}

static void protect(struct step *s)
{
	clear_all(s, pi_cleared);
}

/* ---- SIZE: added blocks have no information ---- */

static void grown(struct step *s)
{
	__atomic_store_n(&s->p->covered, s->req->size_now, __ATOMIC_RELAXED);
	finish_step(s, 0);
}

static void extend(struct step *s)
{
	memset(s->pi, 0, PI_LEN); /* inverted */
	submit_own(s, BS_WRITE, 0,
		   protect_pi_off(s->p, s->req->size_now) - PI_LEN, PI_LEN,
		   s->pi, grown);
}

static void size_came(void *arg, struct bs_req *req)
{
	struct step *s = arg;
	struct bs_protect *p = s->p;
	uint64_t had = __atomic_load_n(&p->covered, __ATOMIC_RELAXED);
	uint64_t most = PROTECT_REGIONS * PROTECT_REGION;

	req->size_now = MIN(req->size_now, most);
	if (req->result || req->size_now <= had) {
		if (!req->result)
			__atomic_store_n(&p->covered, req->size_now,
					 __ATOMIC_RELAXED);
		finish_step(s, req->result);
		return;
	}
	submit_own(s, BS_ZERO, BS_MAY_UNMAP, protect_pi_off(p, had),
		   protect_pi_off(p, req->size_now) - protect_pi_off(p, had),
		   NULL, extend);
}

static void ask_size(struct step *s)
{
	bs_req_push(s->req, size_came, s);
	bs_forward(s->p->data, s->req);
}

/* ---- CHECK: both files ---- */

static void pi_looked_at(struct step *s)
{
	s->req->trouble = s->own.trouble;
	finish_step(s, 0);
}

static void data_looked_at(void *arg, struct bs_req *req)
{
	struct step *s = arg;

	if (req->result || req->trouble || !(s->p->pi->caps & BS_CAP_CHECK))
		finish_step(s, req->result);
	else
		submit_own(s, BS_CHECK, 0, 0, 0, NULL, pi_looked_at);
}

static void check_stores(struct step *s)
{
	bs_req_push(s->req, data_looked_at, s);
	bs_forward(s->p->data, s->req);
}

/* ---- the table ---- */

static void protect_submit(struct bs *b, struct bs_req *req)
{
	struct bs_protect *p = protect_of(b);
	bool has_type = type_of(p) != 0;
	void (*go)(struct step * s) = NULL;
	size_t room = 0;
	struct step *s;

	switch (req->op) {
	case BS_READ:
	case BS_WRITE:
		room = req->len / p->data->block_size * PI_LEN;
		if (has_type)
			go = req->op == BS_READ ? read_both : begin_change;
		break;
	case BS_UNMAP:
	case BS_ZERO:
		if (has_type)
			go = begin_change;
		break;
	case BS_PROTECT:
		room = PROTECT_HEAD_LEN;
		go = protect;
		break;
	case BS_REKEY:
		go = clear_for_rekey;
		break;
	case BS_SIZE:
		room = PI_LEN;
		go = ask_size;
		break;
	case BS_CHECK:
		go = check_stores;
		break;
	case BS_MEND:
		protect_mend(p, req);
		return;
	case BS_FLUSH:
	case BS_EXTENTS:
	case BS_SPACE:
	case BS_RESIZE: /* BS_SIZE makes room for the information */
		break;
	}
	if (!go && req->op != BS_FLUSH) {
		bs_forward(p->data, req);
		return;
	}
	s = step_new(p, req, room);
	if (s && go)
		go(s);
	else if (s)
		submit_own(s, BS_FLUSH, 0, 0, 0, NULL, pi_flushed);
}

static void close_both(struct bs *b)
{
	struct bs_protect *p = protect_of(b);

	bs_close(p->data);
	bs_close(p->pi);
	free(p->marked);
	free(p);
}

static const struct bs_ops protect_ops = {
	.submit = protect_submit,
	.lend = bs_lend_unsupported,
	.close = close_both,
};

struct bs *bs_protect_new(const struct bs_protect_config *cfg)
{
	struct bs_protect *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	assert(cfg->pi->block_size == PROTECT_GRAIN);
	/* pages are allocated when touched */
	p->marked = calloc(PROTECT_REGIONS, 1);
	if (!p->marked) {
		free(p);
		return NULL;
	}
	bs_filter_init(&p->bs, &protect_ops, cfg->data);
	p->bs.protection = &p->protection;
	p->bs.failures[1] = cfg->pi->failures[0];
	p->data = cfg->data;
	p->pi = cfg->pi;
	p->lasting = cfg->lasting;
	memcpy(p->of, cfg->of, sizeof(p->of));
	p->covered = cfg->data->size;
	p->protection.type = cfg->type;
	memset(p->ones, 1, sizeof(p->ones));
	return &p->bs;
}
