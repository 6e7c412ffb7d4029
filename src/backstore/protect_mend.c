/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * protect_mend.c: BS_MEND: in marked regions, replaces guards that do not match
 * their blocks, and keeps the tags. One request at a time, from the loop.
 */
#include <stdlib.h>
#include <string.h>

#include "backstore/protect_internal.h"

#define CHUNK (256u << 10)

struct mend {
	struct bs_protect *p;
	struct bs_req *req, own;
	struct iovec iov;
	uint64_t page;	 /* current page of marks */
	unsigned at;	 /* current mark of the page */
	uint64_t off;	 /* offset of the data */
	size_t len, npi; /* bytes of data and of information in the chunk */
	bool any;
	void (*next)(struct mend *m);
	uint8_t marks[MARKS_AT_ONCE * 8];
	uint8_t pi[CHUNK / 512 * PI_LEN];
	uint8_t data[CHUNK];
};

static void finish_mend(struct mend *m, int result)
{
	struct bs_req *req = m->req;

	free(m);
	bs_complete(req, result);
}

static void own_done(struct bs_req *own)
{
	struct mend *m = container_of(own, struct mend, own);

	if (own->result)
		finish_mend(m, own->result);
	else
		m->next(m);
}

static void submit_own(struct mend *m, struct bs *b, enum bs_op op,
		       uint64_t off, uint64_t len, void *data,
		       void (*next)(struct mend *m))
{
	m->next = next;
	m->own = (struct bs_req){ .op = op,
				  .worker = m->req->worker,
				  .flags = op == BS_ZERO ? BS_MAY_UNMAP : 0,
				  .off = off,
				  .len = len,
				  .done = own_done };
	m->iov = (struct iovec){ data, len };
	m->own.data = bufv_of(&m->iov, data ? 1 : 0);
	bs_submit(b, &m->own);
}

static void next_chunk(struct mend *m);
static void next_region(struct mend *m);

static void pi_written(struct mend *m)
{
	m->off += m->len;
	next_chunk(m);
}

/* True: at least one guard was replaced. */
static bool renew_guards(struct mend *m)
{
	size_t block = m->p->data->block_size;
	uint8_t type = m->p->protection.type;
	uint64_t had = m->req->mended;

	protect_invert(m->pi, m->npi);
	for (size_t i = 0; i < m->len / block; i++) {
		uint8_t *pi = m->pi + i * PI_LEN;
		uint16_t guard = pi_guard(m->data + i * block, block);

		if (pi_is_off(type, pi) || get_be16(pi) == guard)
			continue;
		put_be16(pi, guard);
		m->req->mended++;
	}
	protect_invert(m->pi, m->npi);
	return m->req->mended != had;
}

static void data_read(struct mend *m)
{
	if (renew_guards(m))
		submit_own(m, m->p->pi, BS_WRITE, protect_pi_off(m->p, m->off),
			   m->npi, m->pi, pi_written);
	else
		pi_written(m);
}

static void pi_read(struct mend *m)
{
	submit_own(m, m->p->data, BS_READ, m->off, m->len, m->data, data_read);
}

static void next_chunk(struct mend *m)
{
	uint64_t end = (m->off / PROTECT_REGION + 1) * PROTECT_REGION;

	end = MIN(end, m->p->data->size);
	if (m->off == end || (m->off % PROTECT_REGION == 0 && m->len)) {
		m->at++;
		next_region(m);
		return;
	}
	m->len = (size_t)MIN(end - m->off, (uint64_t)CHUNK);
	m->npi = m->len / m->p->data->block_size * PI_LEN;
	submit_own(m, m->p->pi, BS_READ, protect_pi_off(m->p, m->off), m->npi,
		   m->pi, pi_read);
}

static void settled(struct mend *m)
{
	finish_mend(m, 0);
}

static void data_flushed(struct mend *m)
{
	submit_own(m, m->p->pi, BS_ZERO, PROTECT_MARKS_AT, PROTECT_REGIONS * 8,
		   NULL, settled);
}

/* Flush the data, too: after a kill the data read here may be in a cache
 * only. */
static void pi_flushed(struct mend *m)
{
	submit_own(m, m->p->data, BS_FLUSH, 0, 0, NULL, data_flushed);
}

static void read_marks(struct mend *m)
{
	m->at = 0;
	submit_own(m, m->p->pi, BS_READ,
		   PROTECT_MARKS_AT + m->page * sizeof(m->marks),
		   sizeof(m->marks), m->marks, next_region);
}

static void next_region(struct mend *m)
{
	static const uint8_t none[8];
	uint64_t regions =
		(m->p->data->size + PROTECT_REGION - 1) / PROTECT_REGION;
	uint64_t region;

	while (m->at < MARKS_AT_ONCE &&
	       memcmp(m->marks + m->at * 8, none, 8) == 0)
		m->at++;
	region = m->page * MARKS_AT_ONCE + m->at;
	if (m->at < MARKS_AT_ONCE && region < regions) {
		m->any = true;
		m->off = region * PROTECT_REGION;
		m->len = 0;
		next_chunk(m);
	} else if ((m->page + 1) * MARKS_AT_ONCE < regions) {
		m->page++;
		read_marks(m);
	} else if (m->any) {
		submit_own(m, m->p->pi, BS_FLUSH, 0, 0, NULL, pi_flushed);
	} else {
		finish_mend(m, 0);
	}
}

void protect_mend(struct bs_protect *p, struct bs_req *req)
{
	struct mend *m;

	req->mended = 0;
	if (!p->lasting || !p->protection.type) {
		bs_complete(req, 0);
		return;
	}
	m = calloc(1, sizeof(*m));
	if (!m) {
		bs_complete(req, ERR_NOMEM);
		return;
	}
	m->p = p;
	m->req = req;
	read_marks(m);
}
