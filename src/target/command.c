/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * command.c: a SCSI Command from its header to its response: write data, its
 * turn by CmdSN, the device, read data and status.
 */
#include <string.h>

#include "base/cold.h"
#include "base/err.h"
#include "target/task_state.h"

/* ---- the device ---- */

/* log_store_fault logs a failure of the backstore: only the administrator can
 * repair it. */
static COLD void log_store_fault(const struct tgt_task *t)
{
	enum dev_store_fault fault = dev_task_store_fault(&t->dev);
	struct dev_lu *lu = t->lu;
	const char *store = lu ? dev_lu_store_name(lu) : NULL;
	const struct trace_about about = {
		.initiator = t->session->id.initiator_name,
		.target = t->session->id.target_name,
		.backstore = lu ? dev_lu_name(lu) : NULL,
	};

	if (!lu || fault == DEV_STORE_SOUND)
		return;
	trace_emit_about(
		t->session->worker->tgt->cfg.trace, TRACE_MEDIUM, &about,
		"backstore %s, %s: command %02x of %s failed: %s",
		dev_lu_name(lu), store ? store : "CD/DVD medium", t->dev.cdb[0],
		t->session->id.initiator_name,
		fault == DEV_STORE_FULL
			? "no space left; make room where it is stored"
			: "the medium failed; check the file or device");
}

static void device_done(struct dev_task *d)
{
	struct tgt_task *t = container_of(d, struct tgt_task, dev);

	t->dm.out = (struct bufv){ .n = 0 }; /* the device has it again */
	if (d->sense.len)
		log_store_fault(t);
	if (d->in.len)
		tgt_response_put(t);
	else
		tgt_response_send(t);
}

/* Maps the datamover's error to the device's: §11.4.7.2 has the sense data. */
/* [RFC 7143: 7.8 #4] */
static enum dev_failure data_failure(int err)
{
	switch (err) {
	case ERR_DATA_DIGEST:
		return DEV_FAILURE_DATA_CRC;
	case ERR_PROTOCOL:
		return DEV_FAILURE_UNEXPECTED_DATA;
	default:
		return DEV_FAILURE_DATA_MISSING;
	}
}

/* [RFC 7143: 4.2.2.1 #15] */
static void run_task(struct tgt_task *t)
{
	if (!tgt_task_is_begun(t)) {
		tgt_response_send(t);
		return;
	}
	tgt_task_go(t, TGT_TASK_RUN);
	t->conn->count.bytes_written += t->dev.out_len;
	if (t->data_err)
		dev_task_fail(&t->dev, data_failure(t->data_err));
	else
		dev_task_execute(&t->dev);
}

/* All commands before t were received: ExpCmdSN has passed its CmdSN. */
/* [RFC 7143: 4.2.2.1 #15] */
static bool has_turn(const struct tgt_task *t)
{
	return t->immediate || sn_lt(t->cmdsn, t->session->window.expcmdsn);
}

/* All write data are in, or there are none. */
static void data_complete(struct tgt_task *t)
{
	if (has_turn(t))
		run_task(t);
	else
		tgt_task_go(t, TGT_TASK_TURN);
}

void tgt_command_turn(struct tgt_task *t)
{
	if (tgt_task_is_begun(t) && t->dev.order.early)
		dev_task_in_turn(&t->dev);
	if (t->state == TGT_TASK_TURN)
		run_task(t);
}

/* ---- in: its place in the order ---- */

/* Gives a numbered command its place. t is NULL if it was aborted already; t may
 * be free afterwards. */
/* [RFC 7143: 4.2.2.1 #6 #12] */
static void order_command(struct tgt_session *s, uint32_t cmdsn,
			  struct tgt_task *t)
{
	if (cmdsn != s->window.expcmdsn) {
		tgt_window_hold(s, cmdsn, t);
		return;
	}
	tgt_window_take(s);
	if (t)
		tgt_command_turn(t);
	if (s->ring.ahead || !list_empty(&s->tmfs))
		tgt_order_advance(s);
}

void tgt_command_verified(struct tgt_conn *c)
{
	const struct tgt_unverified u = c->unverified;

	c->unverified.pending = false;
	if (!u.pending || u.immediate)
		return;
	order_command(c->session, u.cmdsn, tgt_task_find(c->session, u.itt));
}

void tgt_command_discard(struct tgt_conn *c)
{
	const struct tgt_unverified u = c->unverified;
	struct tgt_task *t = tgt_task_find(c->session, u.itt);

	c->unverified.pending = false;
	if (u.pending && t)
		tgt_abort_discard(t);
}

/* ---- in: write data ---- */

/* Asks for the write data that did not come unsolicited. */
/* [RFC 7145: 7.3.6 #1, 9.5.1 #7] */
/* [RFC 7143: 4.2.5.1 #4] */
static void get_rest(struct tgt_task *t)
{
	struct tgt_conn *c = t->conn;
	bool begun = tgt_task_is_begun(t);
	uint32_t have = t->dm.out_done;
	uint32_t want = begun ? t->dev.out_len : 0;

	if (begun && t->dev.waits && !t->data_err) {
		tgt_task_go(t, TGT_TASK_MEMORY); /* until device_ready */
		c->count.waits++;
		return;
	}
	if (t->data_err || want <= have) {
		data_complete(t);
		return;
	}
	if (!tgt_conn_open(c))
		return; /* tgt_abort_orphans ends the task */
	c->count.solicited++;
	t->data_err = dm_get_data(c->dm, &t->dm, have, want - have);
	if (t->data_err)
		data_complete(t);
}

void tgt_command_go_on(struct tgt_task *t)
{
	if (t->state == TGT_TASK_DATA)
		get_rest(t);
}

/* The device has memory for the unsolicited data, or for all write data. */
static void device_ready(struct dev_task *d)
{
	struct tgt_task *t = container_of(d, struct tgt_task, dev);
	struct tgt_conn *c = t->conn;

	t->dm.out = d->out;
	if (c && c->held == t) {
		c->held = NULL;
		dm_resume(c->dm, &t->dm);
	}
	if (t->state == TGT_TASK_MEMORY && !d->waits) {
		tgt_task_go(t, TGT_TASK_DATA);
		get_rest(t);
	}
}

static bool is_unverified(const struct tgt_conn *c, const struct tgt_task *t)
{
	return c->unverified.pending && c->unverified.itt == t->dm.itt;
}

/* [RFC 7143: 11.4.2 #1] */
static void unsolicited_complete(struct tgt_task *t)
{
	struct tgt_conn *c = t->conn;

	if (is_unverified(c, t)) {
		tgt_command_verified(c);
		if (t->state != TGT_TASK_DATA)
			return; /* a function that waited for t aborted it */
	}
	get_rest(t);
}

/* The device may write data from the memory of the datamover; what it does not write now
 * goes to its own buffer. */
static void unsolicited_data(struct tgt_task *t)
{
	dev_task_peek(&t->dev, t->dm.peek, t->dm.out.len);
	t->dm.peek = NULL;
	unsolicited_complete(t);
	dev_task_keep(&t->dev);
}

void tgt_command_data(struct tgt_task *t, enum dm_completion what, int err)
{
	if (tgt_task_is_aborting(t)) {
		tgt_abort_data(t);
		return;
	}
	if (err && !t->data_err)
		t->data_err = err;
	switch (what) {
	case DM_UNSOLICITED:
		if (t->dm.peek && !t->data_err)
			unsolicited_data(t);
		else
			unsolicited_complete(t);
		break;
	case DM_GET:
		data_complete(t);
		break;
	case DM_PUT:
		tgt_response_send(t);
		break;
	default:
		break;
	}
}

/* ---- in: the header ---- */

/* §11.2.2.3: Extended CDB and Bidirectional Read Expected Data Transfer Length.
 * ERR_FORMAT; ERR_PROTOCOL: a reserved AHS code; ERR_TOO_LONG: more than the
 * device takes. */
static COLD int check_ahs(const struct dm_control *ctl)
{
	struct iscsi_ahs ahs;
	int err = iscsi_ahs_decode(&ahs, ctl->ahs, ctl->pdu.ahs_len);

	if (err)
		return err;
	return ahs.ext_cdb_len > DEV_CDB_MAX - 16 ? ERR_TOO_LONG : 0;
}

static COLD void take_ahs(struct tgt_task *t, const struct dm_control *ctl)
{
	const struct iscsi_scsi_command *cmd = &ctl->pdu.cmd;
	struct dev_task *d = &t->dev;
	struct iscsi_ahs ahs;

	(void)iscsi_ahs_decode(&ahs, ctl->ahs, ctl->pdu.ahs_len); /* checked */
	if (ahs.ext_cdb_len)
		memcpy(d->cdb + 16, ahs.ext_cdb, ahs.ext_cdb_len);
	d->cdb_len = (uint16_t)(16 + ahs.ext_cdb_len);
	if (cmd->read && cmd->write)
		t->dm.bidi_edtl = ahs.bidi_read_edtl;
}

static bool has_ahs(const struct dm_control *ctl)
{
	return ctl->pdu.ahs_len && ctl->ahs;
}

static void fill_cdb(struct tgt_task *t, const struct dm_control *ctl)
{
	memcpy(t->dev.cdb, ctl->pdu.cmd.cdb, 16);
	t->dev.cdb_len = 16;
	t->dm.bidi_edtl = 0;
	if (has_ahs(ctl))
		take_ahs(t, ctl);
}

/* How many bytes of write data the initiator may send unsolicited (RFC 7143
 * §4.2.5.2). */
static uint32_t unsolicited_max(const struct tgt_session *s,
				const struct iscsi_pdu *pdu)
{
	if (pdu->final || s->params.initial_r2t)
		return pdu->dsl;
	return MAX(pdu->dsl, MIN(s->params.first_burst_length, pdu->cmd.edtl));
}

/* The device checks the command and says which write data it needs, and where
 * they go. */
/* [RFC 7144: 5.1.1 #2] */
static void begin_task(struct tgt_task *t, const struct iscsi_pdu *pdu)
{
	const struct iscsi_scsi_command *cmd = &pdu->cmd;
	struct tgt_session *s = t->session;
	struct dev_task *d = &t->dev;
	/* a command with a data digest takes its CmdSN later */
	bool is_its_turn =
		t->immediate ||
		(pdu->cmdsn == s->window.expcmdsn &&
		 !(cmd->write && pdu->dsl && t->conn->params.data_digest));
	int err;

	if (s->luns.step)
		t->lu = dev_nexus_unit(s->nexus, t->dm.lun);
	if (tgt_session_loses(s, t->lu)) {
		t->refusal = SCSI_BUSY; /* until the unit is gone */
		return;
	}
	d->nexus = s->nexus;
	d->lun = t->dm.lun;
	d->attr = cmd->attr;
	/* RFC 7144 §5.1.1: ignored unless that level was negotiated */
	d->priority = s->params.protocol_level >= 2 ? cmd->priority : 0;
	d->edtl.both = cmd->read && cmd->write;
	d->edtl.out = cmd->write ? cmd->edtl : 0;
	d->edtl.in = d->edtl.both ? t->dm.bidi_edtl : cmd->read ? cmd->edtl : 0;
	d->unsolicited.len = cmd->write ? unsolicited_max(s, pdu) : 0;
	d->unsolicited.may_hold = t->conn->dm->may_hold;
	/* memory that the backstore lends would show what a later ORDERED
	 * command writes before the data are sent */
	d->edtl.keeps = cmd->attr == ISCSI_ATTR_ORDERED;
	d->edtl.again = t->conn->dm->retains;
	/* unless its turn is now, tgt_command_turn follows: the order of CmdSN is
	 * that of the task set */
	d->order.early = !is_its_turn;
	d->order.at_once = is_its_turn && !cmd->write;
	d->ready = device_ready;
	d->done = device_done;
	err = dev_task_begin(d);
	t->lu = d->lu;
	if (err) {
		/* SAM-5 §5.3.1: BUSY only where no other task could make room
		 * by its end */
		t->refusal = s->tasks.used > 1 ? SCSI_TASK_SET_FULL : SCSI_BUSY;
		return;
	}
	t->dm.out = d->out;
	t->dm.held = d->held_back;
	t->dm.may_peek = true;
	if (d->held_back)
		t->conn->held = t;
}

struct refusal {
	enum iscsi_reject_reason reason;
	const char *why;
};

/* NULL: the command may become a task. */
/* [RFC 7143: 4.3 #2, 11.2.1.8 #1-2] */
static const struct refusal *check_command(const struct tgt_conn *c,
					   const struct iscsi_pdu *pdu)
{
	static const struct refusal
		in_logout = { ISCSI_REJECT_WAITING_LOGOUT,
			      "SCSI Command after Logout Request (RFC 7143 "
			      "§11.14)" },
		in_discovery = { ISCSI_REJECT_PROTOCOL,
				 "SCSI Command in a discovery session (§4.3, "
				 "§13.21)" },
		reserved_tag = { ISCSI_REJECT_INVALID_PDU_FIELD,
				 "SCSI Command with the reserved task tag "
				 "(§11.2.1.8)" },
		tag_in_use = { ISCSI_REJECT_TASK_IN_PROGRESS,
			       "Initiator Task Tag is in use (§4.2.5.3)" };
	const struct tgt_session *s = c->session;

	if (c->state == ISCSI_S6_IN_LOGOUT || s->logout.begun)
		return &in_logout;
	if (!s->node)
		return &in_discovery;
	if (pdu->itt == ISCSI_RESERVED_TAG)
		return &reserved_tag;
	return tgt_task_find(s, pdu->itt) ? &tag_in_use : NULL;
}

/* §7.3: its CmdSN counts as not received; the initiator fills the gap. */
/* [RFC 7143: 7.3 #2] */
static COLD int reject_command(struct tgt_conn *c, const struct dm_control *ctl,
			       int reason, const char *why)
{
	return tgt_reject(c, (enum iscsi_reject_reason)reason, ctl->bhs, why);
}

/* [RFC 7143: 11 #3] */
static int accept_command(struct tgt_conn *c, const struct dm_control *ctl,
			  struct dm_task **task)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	struct tgt_session *s = c->session;
	int err = has_ahs(ctl) ? check_ahs(ctl) : 0;
	struct tgt_task *t;

	if (err == ERR_PROTOCOL)
		return reject_command(c, ctl, ISCSI_REJECT_PROTOCOL,
				      "reserved AHS code (RFC 7143 §11.2.2.1)");
	if (err)
		return reject_command(c, ctl, ISCSI_REJECT_INVALID_PDU_FIELD,
				      "malformed AHS (RFC 7143 §11.2.2)");
	if (!s->tasks.all && tgt_tasks_ready(s))
		return ERR_NOMEM;
	t = tgt_task_get(c, pdu->itt, pdu->immediate);
	if (!t)
		return reject_command(c, ctl, ISCSI_REJECT_TOO_MANY_IMMEDIATE,
				      "no slot left (RFC 7143 §4.2.2.1)");
	t->cmdsn = pdu->cmdsn;
	t->dm.lun = pdu->lun;
	t->lu = NULL; /* begin_task sets it */
	t->dm.edtl = pdu->cmd.edtl;
	t->dm.out = (struct bufv){ .n = 0 };
	fill_cdb(t, ctl);
	*task = &t->dm;
	c->count.commands++;
	tgt_stats_begin(t);
	begin_task(t, pdu);
	t->unit = t->lu ? dev_lu_lun(t->lu) : 0;
	if (!pdu->cmd.write)
		tgt_task_go(t, TGT_TASK_TURN);
	if (pdu->cmd.write && pdu->dsl && c->params.data_digest) {
		c->unverified = (struct tgt_unverified){ true, pdu->immediate,
							 pdu->itt, pdu->cmdsn };
		return 0;
	}
	if (pdu->immediate)
		tgt_command_turn(t);
	else
		order_command(s, pdu->cmdsn, t);
	/* a function that waited for this command may have aborted it */
	if (tgt_task_is_released(t))
		*task = NULL;
	return 0;
}

/* [RFC 7143: 4.2.2.1 #11] */
int tgt_command(struct tgt_conn *c, const struct dm_control *ctl,
		struct dm_task **task)
{
	const struct iscsi_pdu *pdu = &ctl->pdu;
	enum iscsi_window_verdict v;
	struct tgt_session *s = c->session;
	const struct refusal *refusal;

	*task = NULL;
	if (!pdu->immediate) {
		v = iscsi_target_window_check(&s->window, pdu->cmdsn);
		if (v == ISCSI_CMDSN_IGNORE ||
		    (v == ISCSI_CMDSN_AHEAD &&
		     tgt_window_duplicate(s, pdu->cmdsn)))
			return 0; /* §4.2.2.1: silently */
	}
	refusal = check_command(c, pdu);
	if (refusal)
		return reject_command(c, ctl, refusal->reason, refusal->why);
	return accept_command(c, ctl, task);
}
