/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * command.c: the walk of a SCSI Command: header in, write data in, its turn,
 * the device, data and status out.
 */
#include <string.h>

#include "base/err.h"
#include "target/internal.h"

/* ---- out: status, sense, residuals ---- */

/* §11.4.5.2: what the command would have moved against what was expected. */
static void set_residual(struct iscsi_scsi_response *r, uint64_t spdtl,
			 uint32_t edtl)
{
	uint64_t diff;

	if (spdtl == edtl)
		return;
	diff = spdtl > edtl ? spdtl - edtl : edtl - spdtl;
	r->resid_flags =
		spdtl > edtl ? ISCSI_RESID_OVERFLOW : ISCSI_RESID_UNDERFLOW;
	r->resid = (uint32_t)MIN(diff, (uint64_t)UINT32_MAX);
}

/* SAM-5 §5.3.2: come again after 100 ms (RFC 7144 §5.2.1 brings it over). */
static uint16_t qualifier(uint8_t status)
{
	return status == SCSI_BUSY || status == SCSI_TASK_SET_FULL ? 1 : 0;
}

static void make_response(const struct tgt_task *t, struct iscsi_pdu *pdu)
{
	const struct dev_task *d = &t->dev;
	uint64_t moved = t->begun ? d->in_total + d->out_total : 0;

	*pdu = (struct iscsi_pdu){
		.op = ISCSI_SCSI_RESPONSE,
		.final = true,
		.itt = t->dm.itt,
		.ttt = ISCSI_RESERVED_TAG,
	};
	pdu->rsp.status = t->refusal ? t->refusal : d->status;
	if (t->session->params.protocol_level >= 2)
		pdu->rsp.status_qualifier = qualifier(pdu->rsp.status);
	set_residual(&pdu->rsp, moved, t->dm.edtl);
}

static void check_sent(struct tgt_task *t, int err)
{
	if (err)
		tgt_conn_fail(t->session->conn, err, "response not sent");
}

/* The response as a PDU of its own, with sense (§11.4.7). */
/* [RFC 7145: 9.5.1 #8] */
static void send_response(struct tgt_task *t)
{
	struct tgt_conn *c = t->session->conn;
	uint8_t segment[2 + DEV_SENSE_MAX];
	struct dm_control ctl = { .data = segment };
	size_t sense = t->begun && !t->refusal ? t->dev.sense_len : 0;

	make_response(t, &ctl.pdu);
	if (sense) {
		segment[0] = (uint8_t)(sense >> 8);
		segment[1] = (uint8_t)sense;
		memcpy(segment + 2, t->dev.sense, sense);
		ctl.pdu.dsl = (uint32_t)sense + 2;
	}
	tgt_task_go(t, TGT_TASK_RESPONSE);
	if (!tgt_conn_open(c))
		return; /* retired with its connection */
	ctl.pdu.statsn = c->numbers.statsn++;
	check_sent(t, dm_send_control(c->dm, &t->dm, &ctl));
}

/* SAM-5 §5.3.1: TASK ABORTED. The datamover has let go of the task. */
void tgt_command_aborted(struct tgt_task *t)
{
	struct tgt_conn *c = t->session->conn;
	struct dm_control ctl = { .data = NULL };

	if (!c || !tgt_conn_open(c))
		return;
	t->refusal = SCSI_TASK_ABORTED;
	make_response(t, &ctl.pdu);
	tgt_conn_send(c, &ctl);
}

/* [RFC 7145: 7.3.5 #1, 9.5.2 #5] */
static void put_data(struct tgt_task *t)
{
	struct tgt_conn *c = t->session->conn;
	struct dev_task *d = &t->dev;
	bool with_status = d->sense_len == 0;
	struct iscsi_pdu pdu;

	tgt_task_go(t, with_status ? TGT_TASK_RESPONSE : TGT_TASK_PUT);
	t->session->bytes_read += d->in.len;
	if (!tgt_conn_open(c))
		return;
	if (with_status) {
		make_response(t, &pdu);
		pdu.statsn = c->numbers.statsn++;
	}
	check_sent(t, dm_put_data(c->dm, &t->dm, &d->in, 0,
				  with_status ? &pdu : NULL));
}

/* What a store can't do is ours to mend: a person must hear of it. */
static void say_store_failed(const struct tgt_task *t)
{
	const struct dev_task *d = &t->dev;
	bool fixed = (d->sense[0] & 0x7f) < 0x72; /* SPC-4 §4.5 */
	uint8_t key = d->sense[fixed ? 2 : 1] & 0x0f;
	uint8_t asc = d->sense[fixed ? 12 : 2];
	bool full = key == 0x07 && asc == 0x27 && d->sense[fixed ? 13 : 3] == 7;
	struct dev_lu *lu = tgt_find_lu(t->session->node, t->dm.lun);
	const struct bs *b = lu ? dev_lu_backstore(lu) : NULL;

	if (!lu || (key != 0x03 && key != 0x04 && !full))
		return; /* the initiator's own doing */
	trace_emit(t->session->worker->tgt->cfg.trace, TRACE_MEDIUM,
		   "LUN %u, %s: command %02x of %s failed: %s", dev_lu_lun(lu),
		   b ? b->name : "its medium is out by now", d->cdb[0],
		   t->session->id.initiator_name,
		   full ? "no space left; make room on its file system"
			: "the medium failed; check the file or device");
}

static void device_done(struct dev_task *d)
{
	struct tgt_task *t = container_of(d, struct tgt_task, dev);

	if (d->sense_len && t->begun)
		say_store_failed(t);
	if (d->in.len)
		put_data(t);
	else
		send_response(t);
}

/* ---- the device ---- */

/* §11.4.7.2: the sense of what went wrong on the way. */
static void fail_task(struct tgt_task *t)
{
	switch (t->data_err) {
	case ERR_DATA_DIGEST: /* PROTOCOL SERVICE CRC ERROR */
		dev_task_fail(&t->dev, 0x0b, 0x4705);
		break;
	case ERR_UNSUPPORTED: /* INVALID FIELD IN COMMAND INFORMATION UNIT */
		dev_task_fail(&t->dev, 0x05, 0x0e03);
		break;
	case ERR_PROTOCOL: /* WRITE ERROR: UNEXPECTED UNSOLICITED DATA */
		dev_task_fail(&t->dev, 0x0b, 0x0c0c);
		break;
	default: /* WRITE ERROR: NOT ENOUGH UNSOLICITED DATA */
		dev_task_fail(&t->dev, 0x0b, 0x0c0d);
		break;
	}
}

static void run(struct tgt_task *t)
{
	if (t->refusal) {
		send_response(t);
		return;
	}
	tgt_task_go(t, TGT_TASK_RUN);
	t->session->bytes_written += t->dev.out_len;
	if (t->data_err)
		fail_task(t);
	else
		dev_task_execute(&t->dev);
}

/* All write data are in, or there are none. */
static void data_in(struct tgt_task *t)
{
	if (t->has_turn)
		run(t);
	else
		tgt_task_go(t, TGT_TASK_TURN);
}

void tgt_command_turn(struct tgt_task *t)
{
	t->has_turn = true;
	if (t->state == TGT_TASK_TURN)
		run(t);
}

/* ---- in: write data ---- */

/* [RFC 7145: 7.3.6 #1, 9.5.1 #7] */
static void want_rest(struct tgt_task *t)
{
	struct tgt_conn *c = t->session->conn;
	uint32_t have = t->dm.out_done;
	uint32_t want = t->begun ? t->dev.out_len : 0;

	if (t->data_err || want <= have || !tgt_conn_open(c)) {
		data_in(t);
		return;
	}
	t->data_err = dm_get_data(c->dm, &t->dm, have, want - have);
	if (t->data_err)
		data_in(t);
}

void tgt_command_data(struct tgt_task *t, enum dm_completion what, int err)
{
	if (t->state == TGT_TASK_ABORTING) {
		tgt_abort_data(t);
		return;
	}
	if (err && !t->data_err)
		t->data_err = err;
	switch (what) {
	case DM_UNSOLICITED:
		want_rest(t);
		break;
	case DM_GET:
		data_in(t);
		break;
	case DM_PUT:
		send_response(t);
		break;
	default:
		break;
	}
}

/* ---- in: the header ---- */

static int fill_cdb(struct dev_task *d, const struct dm_control *ctl)
{
	struct iscsi_ahs ahs = { .ext_cdb = NULL };
	int err;

	memcpy(d->cdb, ctl->pdu.cmd.cdb, 16);
	d->cdb_len = 16;
	if (!ctl->pdu.ahs_len || !ctl->ahs)
		return 0;
	err = iscsi_ahs_decode(&ahs, ctl->ahs, ctl->pdu.ahs_len);
	if (err)
		return err;
	if (ahs.ext_cdb_len > DEV_CDB_MAX - 16)
		return ERR_TOO_LONG;
	if (ahs.ext_cdb_len)
		memcpy(d->cdb + 16, ahs.ext_cdb, ahs.ext_cdb_len);
	d->cdb_len = (uint16_t)(16 + ahs.ext_cdb_len);
	return 0;
}

/* The device looks at the command: what data it wants and where. Bidirectional
 * ones are looked at only to be refused. */
static void begin(struct tgt_task *t, const struct iscsi_scsi_command *cmd)
{
	struct tgt_session *s = t->session;
	struct dev_task *d = &t->dev;
	bool bidi = cmd->read && cmd->write;

	d->nexus = s->nexus;
	d->lun = t->dm.lun;
	d->attr = cmd->attr;
	/* RFC 7144 §5.1.1: ignored unless that was negotiated */
	d->priority = s->params.protocol_level >= 2 ? cmd->priority : 0;
	d->edtl_out = cmd->write && !bidi ? cmd->edtl : 0;
	d->edtl_in = cmd->read && !bidi ? cmd->edtl : 0;
	d->done = device_done;
	d->out_len = 0;
	d->out = d->in = (struct bufv){ .n = 0 };
	d->status = SCSI_GOOD;
	d->sense_len = 0;
	d->in_total = d->out_total = 0;
	if (dev_task_begin(d)) {
		/* SAM-5 §5.3.1: BUSY only where no task could make room */
		t->refusal = s->used > 1 ? SCSI_TASK_SET_FULL : SCSI_BUSY;
		return;
	}
	t->begun = true;
	if (bidi)
		t->data_err = ERR_UNSUPPORTED;
	else
		t->dm.out = d->out;
}

/* May this command become a task? 0, or a Reject reason with *why. */
static int refuse(const struct tgt_conn *c, const struct iscsi_pdu *pdu,
		  const char **why)
{
	const struct tgt_session *s = c->session;

	if (c->state == ISCSI_S6_IN_LOGOUT) {
		*why = "SCSI Command after Logout Request (RFC 7143 §11.14)";
		return ISCSI_REJECT_WAITING_LOGOUT;
	}
	if (!s->node) {
		*why = "SCSI Command in a discovery session (§4.3, §13.21)";
		return ISCSI_REJECT_PROTOCOL;
	}
	if (pdu->itt == ISCSI_RESERVED_TAG) {
		*why = "SCSI Command with the reserved task tag (§11.2.1.8)";
		return ISCSI_REJECT_INVALID_PDU_FIELD;
	}
	if (tgt_task_find(s, pdu->itt)) {
		*why = "Initiator Task Tag is in use (§4.2.5.3)";
		return ISCSI_REJECT_TASK_IN_PROGRESS;
	}
	return 0;
}

static int reject_command(struct tgt_conn *c, const struct dm_control *ctl,
			  int reason, const char *why)
{
	int err =
		tgt_reject(c, (enum iscsi_reject_reason)reason, ctl->bhs, why);

	/* it was received all the same: the numbers behind it go on */
	if (!ctl->pdu.immediate)
		tgt_order_plug(c->session, ctl->pdu.cmdsn);
	return err;
}

static int accept(struct tgt_conn *c, const struct dm_control *ctl,
		  enum iscsi_window_verdict v, struct dm_task **task)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	struct tgt_session *s = c->session;
	struct tgt_task *t = tgt_task_get(s, pdu->itt, pdu->immediate);

	if (!t)
		return reject_command(c, ctl, ISCSI_REJECT_TOO_MANY_IMMEDIATE,
				      "no slot left (RFC 7143 §4.2.2.1)");
	t->cmdsn = pdu->cmdsn;
	t->dm.lun = pdu->lun;
	t->dm.edtl = pdu->cmd.edtl;
	t->dm.out = (struct bufv){ .n = 0 };
	if (fill_cdb(&t->dev, ctl)) {
		tgt_task_go(t, TGT_TASK_ABORTING);
		tgt_task_put(t);
		return reject_command(c, ctl, ISCSI_REJECT_INVALID_PDU_FIELD,
				      "malformed AHS (RFC 7143 §11.2.2)");
	}
	*task = &t->dm;
	s->commands++;
	begin(t, &pdu->cmd);
	if (!pdu->cmd.write)
		tgt_task_go(t, TGT_TASK_TURN);
	if (!pdu->immediate)
		return tgt_order_command(s, t, v);
	tgt_command_turn(t);
	return 0;
}

int tgt_command(struct tgt_conn *c, const struct dm_control *ctl,
		struct dm_task **task)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	enum iscsi_window_verdict v = ISCSI_CMDSN_EXPECTED;
	struct tgt_session *s = c->session;
	const char *why;
	int reason;

	*task = NULL;
	if (!pdu->immediate) {
		v = iscsi_target_window_check(&s->window, pdu->cmdsn);
		if (v == ISCSI_CMDSN_IGNORE ||
		    (v == ISCSI_CMDSN_AHEAD &&
		     tgt_order_duplicate(s, pdu->cmdsn)))
			return 0; /* §4.2.2.1: silently */
	}
	reason = refuse(c, pdu, &why);
	if (reason)
		return reject_command(c, ctl, reason, why);
	return accept(c, ctl, v, task);
}
