/* SPDX-License-Identifier: BSD-2-Clause */
/* mangler.c: see mangler.h. */
#include "sim/mangler.h"

#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

/* xorshift: the same choice is not made several times in a row, as a linear generator
 * makes it. */
uint32_t mangler_random(uint32_t *seed, uint32_t n)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed % n;
}

void mangler_init(struct mangler *m, uint32_t seed, bool header_digest,
		  bool data_digest, const struct mangler_plan *plan)
{
	memset(m, 0, sizeof(*m));
	m->seed = seed * 2654435761u + 1;
	m->header_digest = header_digest;
	m->data_digest = data_digest;
	m->plan = *plan;
	m->way[0].victim = m->way[1].victim = SIZE_MAX;
}

static bool ends_login(const uint8_t *head)
{
	return (head[0] & 0x3f) == ISCSI_LOGIN_RESPONSE &&
	       (head[1] & 0x83) == 0x83 && head[36] == 0;
}

static bool hits(struct mangler *m, enum mangle what, uint8_t op)
{
	if (!m->full_feature || !m->plan.one_in[what] || !m->plan.most ||
	    mangler_random(&m->seed, m->plan.one_in[what]))
		return false;
	m->plan.most--;
	m->done[what]++;
	m->ops[what][op]++;
	return true;
}

/* The header is complete: how long the PDU is, and what happens to it. */
static void plan_pdu(struct mangler *m, struct mangler_way *w)
{
	struct iscsi_pdu p;
	size_t header, data;

	assert_int_equal(iscsi_bhs_decode(&p, w->head), 0);
	header = ISCSI_BHS_LEN + p.ahs_len;
	if (m->full_feature && m->header_digest)
		header += ISCSI_DIGEST_LEN;
	data = round_up4(p.dsl);
	if (m->full_feature && m->data_digest && p.dsl)
		data += ISCSI_DIGEST_LEN;
	w->size = header + data;
	if (hits(m, MANGLE_LOSE, p.op))
		w->lost = true;
	else if (m->header_digest && hits(m, MANGLE_HEADER, p.op))
		w->victim = mangler_random(&m->seed, (uint32_t)header);
	else if (m->data_digest && p.dsl && hits(m, MANGLE_DATA, p.op))
		w->victim = header + mangler_random(&m->seed, (uint32_t)data);
	if (ends_login(w->head))
		m->full_feature = true;
}

/* The header goes on its way. */
static size_t put_head(struct mangler *m, struct mangler_way *w, uint8_t *out)
{
	memcpy(out, w->head, ISCSI_BHS_LEN);
	if (w->victim < ISCSI_BHS_LEN)
		out[w->victim] ^= (uint8_t)(1u << mangler_random(&m->seed, 8));
	return w->lost ? 0 : ISCSI_BHS_LEN;
}

size_t mangler_filter(struct mangler *m, unsigned from, uint8_t *out,
		      const uint8_t *in, size_t n)
{
	struct mangler_way *w = &m->way[from];
	size_t put = 0;

	for (size_t i = 0; i < n; i++) {
		uint8_t byte = in[i];

		if (w->at < ISCSI_BHS_LEN) {
			w->head[w->at++] = byte;
			if (w->at < ISCSI_BHS_LEN)
				continue;
			plan_pdu(m, w);
			put += put_head(m, w, out + put);
		} else {
			if (w->at == w->victim)
				byte ^= (uint8_t)(1u << mangler_random(&m->seed,
								       8));
			if (!w->lost)
				out[put++] = byte;
			w->at++;
		}
		if (w->at == w->size)
			*w = (struct mangler_way){ .victim = SIZE_MAX };
	}
	return put;
}
