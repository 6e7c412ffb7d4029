/* SPDX-License-Identifier: BSD-2-Clause */
/* pdu_checker.c: see pdu_checker.h. */
#include "sim/pdu_checker.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "cmocka_all.h"

void checker_init(struct pdu_checker *j, const struct iscsi_params *params)
{
	memset(j, 0, sizeof(*j));
	j->params = *params;
}

void checker_fini(struct pdu_checker *j)
{
	free(j->way[0].bytes);
	free(j->way[1].bytes);
}

/* ---- tasks ---- */

static struct checker_task *task(struct pdu_checker *j, uint32_t itt)
{
	struct checker_task *t = &j->task[itt % CHECKER_TASKS];

	assert_true(t->known && t->itt == itt);
	return t;
}

static void check_command(struct pdu_checker *j, const struct iscsi_pdu *p)
{
	struct checker_task *t = &j->task[p->itt % CHECKER_TASKS];

	*t = (struct checker_task){ .known = true,
				    .is_write = p->cmd.write,
				    .itt = p->itt,
				    .edtl = p->cmd.edtl,
				    .unsolicited = p->dsl };
	t->unsolicited_over = p->final;
	/* §11.3.1 */
	assert_true(p->cmd.write || p->final);
	assert_true(p->cmd.read || p->cmd.write || p->cmd.edtl == 0);
	if (p->cmd.write && p->dsl == p->cmd.edtl)
		assert_true(p->final); /* §11.3.4 */
	if (p->dsl) {
		j->immediates++;
		assert_true(p->cmd.write);
		assert_true(j->params.immediate_data); /* §13.11 */
		assert_true(p->dsl <= j->params.first_burst_length);
		assert_true(p->dsl <= p->cmd.edtl);
	}
	if (!p->final)
		assert_false(j->params.initial_r2t); /* §13.10 */
}

/* ---- write data ---- */

static void unsolicited(struct pdu_checker *j, struct checker_task *t,
			const struct iscsi_pdu *p)
{
	assert_false(j->params.initial_r2t);
	assert_false(t->unsolicited_over);
	assert_int_equal(p->data.datasn, t->datasn_out++); /* §11.7.5 */
	assert_int_equal(p->data.offset, t->unsolicited);
	t->unsolicited += p->dsl;
	assert_true(t->unsolicited <=
		    j->params.first_burst_length); /* §13.14 */
	assert_true(t->unsolicited <= t->edtl);
	t->unsolicited_over = p->final;
	if (p->final) /* §11.3.4: as much as is allowed */
		assert_int_equal(t->unsolicited,
				 MIN(t->edtl, j->params.first_burst_length));
}

static struct checker_r2t *r2t_of(struct checker_task *t, uint32_t ttt)
{
	for (unsigned i = 0; i < CHECKER_R2TS; i++)
		if (t->r2t[i].open && t->r2t[i].ttt == ttt)
			return &t->r2t[i];
	fail_msg("Data-Out for a tag that was not given");
	return NULL;
}

static void check_data_out(struct pdu_checker *j, const struct iscsi_pdu *p)
{
	struct checker_task *t = task(j, p->itt);
	struct checker_r2t *r;

	j->data_outs++;
	assert_true(t->is_write);
	if (p->ttt == ISCSI_RESERVED_TAG) {
		unsolicited(j, t, p);
		return;
	}
	r = r2t_of(t, p->ttt);
	assert_int_equal(p->data.datasn, r->datasn++);
	assert_int_equal(p->data.offset, r->off); /* DataPDUInOrder=Yes */
	r->off += p->dsl;
	assert_true(r->off <= r->end);
	assert_int_equal(p->final, r->off == r->end); /* §11.7.1 */
	r->open = !p->final;
}

/* §11.8: R2T has the next StatSN and does not advance it. */
static void r2t(struct pdu_checker *j, const struct iscsi_pdu *p)
{
	struct checker_task *t = task(j, p->itt);
	struct checker_r2t *r = NULL;
	unsigned open = 0;

	j->r2ts++;
	assert_true(t->is_write);
	assert_int_equal(p->statsn, j->statsn);
	assert_int_equal(p->r2t.r2tsn, t->next_sn++);
	assert_int_not_equal(p->ttt, ISCSI_RESERVED_TAG);
	assert_true(p->r2t.ddtl > 0 &&
		    p->r2t.ddtl <= j->params.max_burst_length);
	assert_true(range_ok(p->r2t.offset, p->r2t.ddtl, t->edtl));
	/* §11.8, DataSequenceInOrder=Yes: from the unsolicited data on */
	if (t->asked)
		assert_int_equal(p->r2t.offset, t->asked);
	t->asked = p->r2t.offset + p->r2t.ddtl;
	for (unsigned i = 0; i < CHECKER_R2TS; i++) {
		open += t->r2t[i].open;
		if (!t->r2t[i].open)
			r = &t->r2t[i];
	}
	assert_true(open < j->params.max_outstanding_r2t); /* §13.17 */
	assert_non_null(r);
	*r = (struct checker_r2t){ .open = true,
				   .ttt = p->ttt,
				   .off = p->r2t.offset,
				   .end = p->r2t.offset + p->r2t.ddtl };
}

/* ---- read data and status ---- */

static void takes_statsn(struct pdu_checker *j, const struct iscsi_pdu *p)
{
	if (j->statsn_known)
		assert_int_equal(p->statsn, j->statsn);
	j->statsn_known = true;
	j->statsn = p->statsn + 1;
}

static void data_in(struct pdu_checker *j, const struct iscsi_pdu *p)
{
	struct checker_task *t = task(j, p->itt);

	j->data_ins++;
	assert_false(t->is_write);
	assert_false(p->data.ack); /* §11.7.2: ErrorRecoveryLevel 0 */
	assert_int_equal(p->data.datasn, t->next_sn++);
	assert_int_equal(p->data.offset, t->in_offset);
	t->in_offset += p->dsl;
	t->in_sequence += p->dsl;
	assert_true(t->in_sequence <= j->params.max_burst_length); /* §13.13 */
	assert_true(t->in_offset <= t->edtl);
	if (p->final)
		t->in_sequence = 0;
	if (p->data.status_present) { /* §11.7.3 */
		assert_true(p->final);
		takes_statsn(j, p);
	}
}

/* PDUs that have no data segment, and PDUs that have no AHS. */
static void check_segments(const struct iscsi_pdu *p)
{
	switch (p->op) {
	case ISCSI_TMF_REQUEST:
	case ISCSI_TMF_RESPONSE:
	case ISCSI_R2T:
	case ISCSI_LOGOUT_REQUEST:
	case ISCSI_LOGOUT_RESPONSE:
	case ISCSI_SNACK_REQUEST:
		assert_int_equal(p->dsl, 0);
		break;
	default:
		break;
	}
	if (p->op != ISCSI_SCSI_COMMAND)
		assert_int_equal(p->ahs_len, 0); /* §11.2.1.5 */
}

static void check_pdu(struct pdu_checker *j, const struct iscsi_pdu *p)
{
	check_segments(p);
	switch (p->op) {
	case ISCSI_SCSI_COMMAND:
		check_command(j, p);
		break;
	case ISCSI_DATA_OUT:
		check_data_out(j, p);
		break;
	case ISCSI_R2T:
		r2t(j, p);
		break;
	case ISCSI_DATA_IN:
		data_in(j, p);
		break;
	case ISCSI_SCSI_RESPONSE:
	case ISCSI_TMF_RESPONSE:
		takes_statsn(j, p);
		break;
	case ISCSI_LOGIN_RESPONSE:
		takes_statsn(j, p);
		break;
	default:
		break;
	}
}

/* ---- framing ---- */

static void check_digest(const uint8_t *p, size_t len)
{
	uint32_t crc = crc32c_update(CRC32C_SEED, p, len);

	assert_int_equal(crc32c_wire(crc), get_le32(p + len));
}

/* check_first_pdu checks a complete PDU at the head of way w; returns its length or 0. */
static size_t check_first_pdu(struct pdu_checker *j, unsigned from)
{
	struct checker_way *w = &j->way[from];
	size_t hd = w->digests && j->params.header_digest ? 4 : 0;
	size_t dd = w->digests && j->params.data_digest ? 4 : 0;
	size_t head, data, pad;
	struct iscsi_pdu p;

	if (w->len < ISCSI_BHS_LEN)
		return 0;
	assert_int_equal(iscsi_bhs_decode(&p, w->bytes), 0);
	assert_int_equal(iscsi_opcode_from_initiator(p.op), from == 0);
	head = ISCSI_BHS_LEN + p.ahs_len;
	data = p.dsl;
	pad = round_up4(data) - data;
	if (w->len < head + hd + data + pad + (data ? dd : 0))
		return 0;
	assert_true(p.dsl <= j->params.max_recv_dsl); /* §13.12 */
	if ((p.op == ISCSI_DATA_IN || p.op == ISCSI_DATA_OUT) && !p.final)
		assert_int_equal(p.dsl % 4, 0); /* §11.7.7 */
	if (hd)
		check_digest(w->bytes, head);
	if (dd && data)
		check_digest(w->bytes + head + hd, data + pad);
	for (size_t i = 0; i < pad; i++) /* §11.1: should be zero */
		assert_int_equal(w->bytes[head + hd + data + i], 0);
	check_pdu(j, &p);
	if (p.op == ISCSI_LOGIN_RESPONSE)
		j->way[0].digests = j->way[1].digests = true;
	return head + hd + data + pad + (data ? dd : 0);
}

void checker_bytes(void *checker, unsigned from, const uint8_t *p, size_t n)
{
	struct pdu_checker *j = checker;
	struct checker_way *w = &j->way[from];
	size_t done;

	if (w->len + n > w->room) {
		w->room = (w->len + n) * 2;
		w->bytes = realloc(w->bytes, w->room);
		assert_non_null(w->bytes);
	}
	memcpy(w->bytes + w->len, p, n);
	w->len += n;
	while ((done = check_first_pdu(j, from))) {
		w->len -= done;
		memmove(w->bytes, w->bytes + done, w->len);
		w->at += done;
		if (w->npdus < CHECKER_PDUS)
			w->boundary[w->npdus++] = w->at;
	}
}
