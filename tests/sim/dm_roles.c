/* SPDX-License-Identifier: BSD-2-Clause */
/* dm_roles.c: see dm_roles.h. */
#include "sim/dm_roles.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

#define CHECK_CONDITION 2
#define SENSE_LEN	20

static struct fake_role *role_of(struct dm_conn *c)
{
	return c->user;
}

static struct fake_task *fake_of(struct dm_task *t)
{
	return container_of(t, struct fake_task, dm);
}

static uint32_t random_below(struct fake_role *r, uint32_t n)
{
	r->seed = r->seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)r->seed * n >> 32);
}

/* pieces cuts the first len bytes of t->buf into up to eight pieces of odd sizes. */
static struct bufv pieces(struct fake_role *r, struct fake_task *t,
			  uint32_t len)
{
	unsigned n = 0;
	uint32_t at = 0;

	while (at < len && n < ARRAY_LEN(t->iov)) {
		uint32_t piece = n == ARRAY_LEN(t->iov) - 1
					 ? len - at
					 : 1 + random_below(r, len - at);

		t->iov[n++] = (struct iovec){ t->buf + at, piece };
		at += piece;
	}
	return bufv_of(t->iov, n);
}

/* room allocates len zeroed bytes in t->buf. */
static void room(struct fake_task *t, uint32_t len)
{
	if (len > t->buf_room) {
		free(t->buf);
		t->buf = malloc(len);
		assert(t->buf);
		t->buf_room = len;
	}
	if (len)
		memset(t->buf, 0, len);
}

static struct fake_task *free_task(struct fake_role *r)
{
	for (unsigned i = 0; i < FAKE_TASKS; i++)
		if (r->task[i].state == FAKE_FREE)
			return &r->task[i];
	return NULL;
}

static struct dm_task *find_task(struct dm_conn *c, uint32_t itt)
{
	struct fake_role *r = role_of(c);

	for (unsigned i = 0; i < FAKE_TASKS; i++) {
		struct fake_task *t = &r->task[i];

		if (t->state != FAKE_FREE && t->state != FAKE_RELEASING &&
		    t->dm.itt == itt)
			return &t->dm;
	}
	return NULL;
}

static void error_notify(struct dm_conn *c, const struct iscsi_pdu *pdu,
			 const uint8_t bhs[ISCSI_BHS_LEN], int err)
{
	struct fake_role *r = role_of(c);

	(void)pdu;
	(void)bhs;
	assert(err < 0);
	r->errors++;
	r->last_error = err;
}

static void ack_notify(struct dm_conn *c, struct dm_task *t, uint32_t datasn)
{
	(void)c;
	(void)t;
	(void)datasn;
}

static void terminate_notify(struct dm_conn *c, int err)
{
	struct fake_role *r = role_of(c);

	r->terminated++;
	r->terminate_err = err;
	assert(r->terminated == 1);
	for (unsigned i = 0; i < FAKE_TASKS; i++)
		r->task[i].state = FAKE_FREE;
	dm_deallocate_connection_resources(c);
}

/* A primitive may fail only because the connection ends. */
static void expect_ok(struct fake_role *r, int err)
{
	if (err && r->dm->state < DM_TERMINATING)
		dm_connection_terminate(r->dm, DM_TERMINATE_NOW, err);
	assert(!err || !r->strict || err == ERR_CLOSED);
}

/* ---- target ---- */

static struct iscsi_pdu response(struct fake_role *r, struct fake_task *t)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_RESPONSE,
			       .final = true,
			       .itt = t->dm.itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .statsn = r->numbers.statsn++ };

	return p;
}

static void send_response(struct fake_role *r, struct fake_task *t, int err)
{
	struct dm_control ctl = { .pdu = response(r, t) };
	uint8_t sense[SENSE_LEN];

	memset(sense, 0x70, sizeof(sense));
	t->state = FAKE_RESPONDING;
	if (err || t->answer == FAKE_SENSE) {
		ctl.pdu.rsp.status = CHECK_CONDITION;
		ctl.pdu.dsl = SENSE_LEN;
		ctl.data = sense;
	}
	expect_ok(r, dm_send_control(r->dm, &t->dm, &ctl));
}

static void put_data(struct fake_role *r, struct fake_task *t)
{
	struct iscsi_pdu rsp;
	bool with = t->answer == FAKE_STATUS_WITH_DATA;

	memcpy(t->buf, r->disk + t->off, t->dm.edtl); /* edtl > 0 */
	t->data = pieces(r, t, t->dm.edtl);
	if (with)
		rsp = response(r, t);
	t->state = with ? FAKE_RESPONDING : FAKE_PUTTING;
	expect_ok(r,
		  dm_put_data(r->dm, &t->dm, &t->data, 0, with ? &rsp : NULL));
}

static void execute_write(struct fake_role *r, struct fake_task *t)
{
	assert(!r->strict || t->dm.out_done == t->dm.edtl);
	if (t->dm.edtl)
		memcpy(r->disk + t->off, t->buf, t->dm.edtl);
	send_response(r, t, 0);
}

static void target_completion(struct dm_conn *c, struct dm_task *dm,
			      enum dm_completion what, int err);

static void tmf_response(struct fake_role *r, uint32_t itt, uint8_t code)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_TMF_RESPONSE,
					   .final = true,
					   .itt = itt,
					   .statsn = r->numbers.statsn++ } };

	ctl.pdu.tmf_response = code;
	expect_ok(r, dm_send_control(r->dm, NULL, &ctl));
}

static void target_command(struct fake_role *r, const struct iscsi_pdu *p,
			   struct dm_task **out)
{
	struct fake_task *t = free_task(r);
	uint32_t off = get_be32(p->cmd.cdb + 4);

	assert(!r->strict || t);
	if (!t || find_task(r->dm, p->itt) ||
	    !range_ok(off, p->cmd.edtl, FAKE_DISK) || p->cmd.edtl > FAKE_MOST)
		return; /* its data are dropped */
	dm_task_init(&t->dm);
	t->dm.itt = p->itt;
	t->dm.lun = p->lun;
	t->dm.edtl = p->cmd.edtl;
	t->is_write = p->cmd.write;
	t->answer = p->cmd.cdb[1] % FAKE_ANSWERS;
	t->off = off;
	room(t, p->cmd.edtl);
	t->dm.out = (struct bufv){ 0 };
	if (t->is_write) {
		t->data = pieces(r, t, p->cmd.edtl);
		t->dm.out = t->data;
		t->state = FAKE_UNSOLICITED;
		*out = &t->dm;
		return;
	}
	*out = &t->dm;
	if (t->answer == FAKE_SENSE || p->cmd.edtl == 0)
		send_response(r, t, 0);
	else
		put_data(r, t);
}

static void target_abort(struct fake_role *r, const struct iscsi_pdu *p)
{
	struct dm_task *dm = find_task(r->dm, p->tmf.rtt);

	/* A response in the datamover has its StatSN, so it must be sent. */
	if (!dm || fake_of(dm)->state == FAKE_RESPONDING) {
		tmf_response(r, p->itt, ISCSI_TMF_NO_TASK);
		return;
	}
	fake_of(dm)->state = FAKE_RELEASING;
	fake_of(dm)->tmf_itt = p->itt;
	if (dm_deallocate_task_resources(r->dm, dm) == 0)
		target_completion(r->dm, dm, DM_RELEASED, 0);
}

static void target_completion(struct dm_conn *c, struct dm_task *dm,
			      enum dm_completion what, int err)
{
	struct fake_role *r = role_of(c);
	struct fake_task *t = fake_of(dm);

	assert(!r->strict || !err);
	switch (what) {
	case DM_UNSOLICITED:
		assert(t->state == FAKE_UNSOLICITED);
		if (err) {
			send_response(r, t, err);
		} else if (dm->out_done < dm->edtl) {
			t->state = FAKE_GETTING;
			expect_ok(r, dm_get_data(c, dm, dm->out_done,
						 dm->edtl - dm->out_done));
		} else {
			execute_write(r, t);
		}
		break;
	case DM_GET:
		assert(t->state == FAKE_GETTING);
		if (err)
			send_response(r, t, err);
		else
			execute_write(r, t);
		break;
	case DM_PUT:
		assert(t->state == FAKE_PUTTING);
		send_response(r, t, 0);
		break;
	case DM_RESPONSE_SENT:
		assert(t->state == FAKE_RESPONDING);
		if (dm->edtl) /* the role owns the buffer again */
			memset(t->buf, 0xee, dm->edtl);
		t->state = FAKE_FREE;
		r->finished++;
		break;
	case DM_RELEASED:
		assert(t->state == FAKE_RELEASING && !err);
		if (dm->edtl)
			memset(t->buf, 0xdd, dm->edtl);
		t->state = FAKE_FREE;
		r->aborted++;
		tmf_response(r, t->tmf_itt, ISCSI_TMF_COMPLETE);
		break;
	}
}

static int target_login(struct fake_role *r, const struct iscsi_pdu *p)
{
	const struct dm_resources res = { .max_tasks = FAKE_TASKS };
	struct dm_control rsp = { .pdu = { .op = ISCSI_LOGIN_RESPONSE,
					   .final = true,
					   .itt = p->itt,
					   .statsn = r->numbers.statsn++ } };
	int err;

	if (r->dm->state != DM_LOGIN)
		return ERR_PROTOCOL;
	rsp.pdu.login.transit = true;
	rsp.pdu.login.csg = 1;
	rsp.pdu.login.nsg = 3;
	r->numbers.expcmdsn = p->cmdsn;
	r->numbers.maxcmdsn = p->cmdsn + FAKE_TASKS - 1;
	dm_notice_key_values(r->dm, &r->params);
	err = dm_allocate_connection_resources(r->dm, &res);
	if (!err)
		err = dm_enable_datamover(r->dm, &rsp);
	r->logged_in = !err;
	return err;
}

/* Where the role of src/target sends a Reject, this one counts an error. */
static void target_snack(struct fake_role *r, const struct iscsi_pdu *p)
{
	int err = dm_snack(r->dm, p, &r->snack_next);

	r->snacks++;
	if (!err)
		return;
	assert(!r->strict);
	r->errors++;
	r->last_error = err;
}

static int target_control(struct dm_conn *c, const struct dm_control *ctl,
			  struct dm_task **task)
{
	struct fake_role *r = role_of(c);
	const struct iscsi_pdu *p = &ctl->pdu;

	switch (p->op) {
	case ISCSI_LOGIN_REQUEST:
		return target_login(r, p);
	case ISCSI_SCSI_COMMAND:
		if (!p->immediate) {
			r->numbers.expcmdsn++;
			r->numbers.maxcmdsn++;
		}
		target_command(r, p, task);
		return 0;
	case ISCSI_TMF_REQUEST:
		if (c->state == DM_FULL_FEATURE)
			target_abort(r, p);
		return 0;
	case ISCSI_SNACK_REQUEST:
		if (c->retains)
			target_snack(r, p);
		return 0;
	default:
		return ERR_PROTOCOL;
	}
}

static const struct dm_up_ops target_ops = {
	.control_notify = target_control,
	.data_completion_notify = target_completion,
	.data_ack_notify = ack_notify,
	.error_notify = error_notify,
	.connection_terminate_notify = terminate_notify,
	.find_task = find_task,
};

/* ---- initiator ---- */

static void command_ended(struct fake_role *r, struct fake_task *t, int status)
{
	t->status = status;
	t->state = FAKE_FREE;
	r->finished += status >= 0;
	r->aborted += status < 0;
	if (r->done)
		r->done(r->arg, t);
}

/* Handles the answer to an abort: frees the task if it still exists. */
static void aborted(struct fake_role *r, const struct iscsi_pdu *p)
{
	struct fake_task *t = NULL;

	for (unsigned i = 0; i < FAKE_TASKS; i++)
		if (r->task[i].state == FAKE_AT_TARGET && r->task[i].aborting &&
		    (r->task[i].dm.itt | BIT(31)) == p->itt)
			t = &r->task[i];
	if (!t)
		return;
	t->state = FAKE_RELEASING;
	if (dm_deallocate_task_resources(r->dm, &t->dm) == 0)
		command_ended(r, t, -1);
}

static int initiator_login_done(struct fake_role *r)
{
	int err;

	dm_notice_key_values(r->dm, &r->params);
	err = dm_enable_datamover(r->dm, NULL);
	r->logged_in = !err;
	return err;
}

static int initiator_control(struct dm_conn *c, const struct dm_control *ctl,
			     struct dm_task **task)
{
	struct fake_role *r = role_of(c);
	const struct iscsi_pdu *p = &ctl->pdu;

	/* strictly in order, each number once: RFC 7143 §4.2.2.2 */
	assert(!r->strict || !r->logged_in ||
	       p->statsn == r->numbers.expstatsn);
	r->numbers.expstatsn = p->statsn + 1;
	switch (p->op) {
	case ISCSI_LOGIN_RESPONSE:
		return c->state == DM_LOGIN ? initiator_login_done(r)
					    : ERR_PROTOCOL;
	case ISCSI_SCSI_RESPONSE:
		if (!*task)
			return 0;
		fake_of(*task)->sense_len = p->dsl;
		assert(!r->strict || !p->dsl || ctl->data[0] == 0x70);
		command_ended(r, fake_of(*task), p->rsp.status);
		return 0;
	case ISCSI_TMF_RESPONSE:
		aborted(r, p);
		return 0;
	default:
		return r->strict ? ERR_PROTOCOL : 0;
	}
}

static void initiator_completion(struct dm_conn *c, struct dm_task *dm,
				 enum dm_completion what, int err)
{
	assert(what == DM_RELEASED && !err);
	assert(fake_of(dm)->state == FAKE_RELEASING);
	command_ended(role_of(c), fake_of(dm), -1);
}

static const struct dm_up_ops initiator_ops = {
	.control_notify = initiator_control,
	.data_completion_notify = initiator_completion,
	.data_ack_notify = ack_notify,
	.error_notify = error_notify,
	.connection_terminate_notify = terminate_notify,
	.find_task = find_task,
};

void fake_login(struct fake_role *r)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_LOGIN_REQUEST,
					   .immediate = true,
					   .final = true,
					   .itt = 1,
					   .cmdsn = r->next_cmdsn } };

	ctl.pdu.login.transit = true;
	ctl.pdu.login.csg = 1;
	ctl.pdu.login.nsg = 3;
	expect_ok(r, dm_send_control(r->dm, NULL, &ctl));
}

struct fake_task *fake_start(struct fake_role *r, bool is_write, uint32_t off,
			     uint32_t len, enum fake_answer answer)
{
	struct fake_task *t = free_task(r);
	struct dm_control ctl = { .pdu = { .op = ISCSI_SCSI_COMMAND,
					   .cmdsn = r->next_cmdsn } };

	if (!t)
		return NULL;
	dm_task_init(&t->dm);
	t->dm.itt = ++r->next_cmdsn & 0x7fffffff;
	t->dm.edtl = len;
	t->dm.in = t->dm.out = (struct bufv){ 0 };
	room(t, len);
	for (uint32_t i = 0; i < len && is_write; i++)
		t->buf[i] = (uint8_t)random_below(r, 256);
	*(is_write ? &t->dm.out : &t->dm.in) = pieces(r, t, len);
	t->is_write = is_write;
	t->off = off;
	t->answer = (uint8_t)answer;
	t->aborting = false;
	t->sense_len = 0;
	t->state = FAKE_AT_TARGET;
	ctl.pdu.itt = t->dm.itt;
	ctl.pdu.cmd.read = !is_write;
	ctl.pdu.cmd.write = is_write;
	ctl.pdu.cmd.attr = ISCSI_ATTR_SIMPLE;
	ctl.pdu.cmd.edtl = len;
	ctl.pdu.cmd.cdb[0] = is_write;
	ctl.pdu.cmd.cdb[1] = (uint8_t)answer;
	put_be32(ctl.pdu.cmd.cdb + 4, off);
	expect_ok(r, dm_send_control(r->dm, &t->dm, &ctl));
	return t;
}

void fake_abort(struct fake_role *r, struct fake_task *t)
{
	struct dm_control ctl = { .pdu = { .op = ISCSI_TMF_REQUEST,
					   .immediate = true,
					   .final = true,
					   .itt = t->dm.itt | BIT(31),
					   .cmdsn = r->next_cmdsn } };

	if (t->state != FAKE_AT_TARGET || t->aborting)
		return;
	t->aborting = true;
	ctl.pdu.tmf.function = ISCSI_TMF_ABORT_TASK;
	ctl.pdu.tmf.rtt = t->dm.itt;
	expect_ok(r, dm_send_control(r->dm, NULL, &ctl));
}

/* ---- both ---- */

static void init(struct fake_role *r, struct dm_conn *dm,
		 const struct iscsi_params *params, const struct dm_up_ops *up)
{
	memset(r, 0, sizeof(*r));
	r->dm = dm;
	r->params = *params;
	r->seed = 7;
	r->next_cmdsn = 0xfffffff0; /* wraps around soon */
	r->numbers.statsn = 0xfffffff8;
	dm_attach(dm, up, r, &r->numbers);
}

void fake_target_init(struct fake_role *r, struct dm_conn *dm,
		      const struct iscsi_params *params)
{
	init(r, dm, params, &target_ops);
	r->disk = calloc(1, FAKE_DISK);
	assert(r->disk);
}

void fake_initiator_init(struct fake_role *r, struct dm_conn *dm,
			 const struct iscsi_params *params)
{
	init(r, dm, params, &initiator_ops);
}

void fake_role_fini(struct fake_role *r)
{
	for (unsigned i = 0; i < FAKE_TASKS; i++)
		free(r->task[i].buf);
	free(r->disk);
}
