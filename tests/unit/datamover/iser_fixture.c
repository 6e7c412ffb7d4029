/* SPDX-License-Identifier: BSD-2-Clause */
/* iser_fixture.c: see iser_fixture.h. */
#include "iser_fixture.h"

#include <stdlib.h>

#include "datamover/impl.h"

/* ---- the role ---- */

static struct fixture *fixture_of(struct dm_conn *c)
{
	return c->user;
}

struct fixture_task *fixture_find(struct fixture *r, uint32_t itt)
{
	for (unsigned i = 0; i < FIXTURE_TASKS; i++)
		if (r->task[i].used && r->task[i].dm.itt == itt)
			return &r->task[i];
	return NULL;
}

static struct dm_task *find_task(struct dm_conn *c, uint32_t itt)
{
	struct fixture_task *t = fixture_find(fixture_of(c), itt);

	return t ? &t->dm : NULL;
}

static struct fixture_task *new_task(struct fixture *r, uint32_t itt,
				     uint32_t edtl)
{
	for (unsigned i = 0; i < FIXTURE_TASKS; i++) {
		struct fixture_task *t = &r->task[i];

		if (t->used)
			continue;
		memset(t, 0, sizeof(*t));
		t->used = true;
		dm_task_init(&t->dm);
		t->dm.itt = itt;
		t->dm.edtl = edtl;
		t->iov[0] = (struct iovec){ t->buf, edtl };
		return t;
	}
	fail_msg("no task is free");
	return NULL;
}

static int login(struct fixture *r)
{
	const struct dm_control rsp = {
		.pdu = { .op = ISCSI_LOGIN_RESPONSE,
			 .final = true,
			 .login = { .transit = true, .csg = 1, .nsg = 3 } }
	};
	int err;

	if (r->no_enable)
		return 0;
	dm_notice_key_values(r->dm, &r->params);
	err = dm_allocate_connection_resources(r->dm, &r->resources);
	/* RFC 5047 §8.4: a second call has no effect */
	if (!err)
		err = dm_allocate_connection_resources(r->dm, &r->resources);
	if (!err)
		err = dm_enable_datamover(
			r->dm, r->dm->role == ISCSI_TARGET ? &rsp : NULL);
	return err;
}

static void take_command(struct fixture *r, const struct iscsi_pdu *p,
			 struct dm_task **task)
{
	struct fixture_task *t;

	if (r->no_task)
		return;
	t = new_task(r, p->itt, p->cmd.edtl);
	assert_true(p->cmd.edtl <= FIXTURE_BUF);
	t->dm.lun = p->lun;
	if (p->cmd.write) {
		if (r->out_len)
			t->iov[0].iov_len = r->out_len;
		t->dm.out = bufv_of(t->iov, 1);
	}
	*task = &t->dm;
	if (r->on_command)
		r->on_command(r, t);
}

static void take_response(struct fixture *r, const struct dm_control *ctl,
			  struct dm_task *task)
{
	struct fixture_task *t = container_of(task, struct fixture_task, dm);

	assert_true(t->used);
	t->used = false;
	t->rsp = ctl->pdu;
	t->stags_left = fake_rcap_valid(&r->f);
	if (ctl->data)
		memcpy(t->sense, ctl->data, MIN(ctl->pdu.dsl, 512u));
	r->ended++;
}

static int control_notify(struct dm_conn *c, const struct dm_control *ctl,
			  struct dm_task **task)
{
	struct fixture *r = fixture_of(c);

	assert_non_null(ctl->bhs);
	r->controls++;
	r->in = ctl->pdu;
	r->has_remote = ctl->remote != NULL;
	if (ctl->remote)
		r->remote = *ctl->remote;
	r->in_ahs = ctl->ahs ? ctl->pdu.ahs_len : 0;
	if (ctl->data)
		memcpy(r->in_data, ctl->data,
		       MIN((size_t)ctl->pdu.dsl, sizeof(r->in_data)));
	if (r->answer)
		return r->answer;
	switch (ctl->pdu.op) {
	case ISCSI_LOGIN_REQUEST:
	case ISCSI_LOGIN_RESPONSE:
		return c->state == DM_LOGIN ? login(r) : 0;
	case ISCSI_SCSI_COMMAND:
		take_command(r, &ctl->pdu, task);
		return 0;
	case ISCSI_SCSI_RESPONSE:
		if (*task)
			take_response(r, ctl, *task);
		return 0;
	default:
		return 0;
	}
}

static void completion(struct dm_conn *c, struct dm_task *dm,
		       enum dm_completion what, int err)
{
	struct fixture_task *t = container_of(dm, struct fixture_task, dm);

	(void)c;
	assert_true(t->used);
	t->seen[what]++;
	t->err = err;
	if (what == DM_UNSOLICITED && dm->peek) /* not in the task's buffer */
		memcpy(t->buf, dm->peek, dm->out.len);
	dm->peek = NULL;
	if (what == DM_RELEASED)
		assert_int_equal(err, 0); /* never fails */
	if (what == DM_RESPONSE_SENT || what == DM_RELEASED)
		t->used = false;
}

static void ack_notify(struct dm_conn *c, struct dm_task *t, uint32_t datasn)
{
	struct fixture *r = c->user;

	assert_non_null(t);
	r->acks++;
	r->acked_sn = datasn;
}

static void error_notify(struct dm_conn *c, const struct iscsi_pdu *pdu,
			 const uint8_t bhs[ISCSI_BHS_LEN], int err)
{
	struct fixture *r = fixture_of(c);

	assert_int_equal(pdu->op, bhs[0] & 0x3f);
	r->errors++;
	r->last_err = err;
}

static void terminate_notify(struct dm_conn *c, int err)
{
	struct fixture *r = fixture_of(c);

	/* RFC 7145 §5.2.3.2: all STags are invalid before this report */
	assert_int_equal(fake_rcap_valid(&r->f), 0);
	assert_int_equal(r->f.nposted, 0);
	r->terminated++;
	r->terminate_err = err;
	dm_deallocate_connection_resources(c);
}

static const struct dm_up_ops up_ops = {
	.control_notify = control_notify,
	.data_completion_notify = completion,
	.data_ack_notify = ack_notify,
	.error_notify = error_notify,
	.connection_terminate_notify = terminate_notify,
	.find_task = find_task,
};

/* ---- the end under test ---- */

static void emit(struct trace *t, enum trace_event event,
		 const struct trace_about *about, const char *text)
{
	struct fixture *r = container_of(t, struct fixture, trace);

	(void)about;
	if (event != TRACE_PROTOCOL)
		return;
	r->nlog++;
	strncpy(r->log, text, sizeof(r->log) - 1);
}

struct iscsi_params fixture_params(void)
{
	struct iscsi_params p;

	iscsi_params_defaults(&p);
	p.rdma_extensions = true;
	p.max_recv_dsl = p.max_send_dsl = 8192;
	p.max_burst_length = 16384;
	p.first_burst_length = 16384;
	p.initial_r2t = false;
	return p;
}

static void begin(struct fixture *r, enum iscsi_role role, unsigned rules,
		  const struct iscsi_params *params, struct dm_conn *stream_dm)
{
	struct dmiser_config cfg;

	memset(r, 0, sizeof(*r));
	r->params = *params;
	r->resources.max_tasks = FIXTURE_TASKS;
	r->numbers = (struct iscsi_numbers){
		.statsn = 100, .expcmdsn = 7, .maxcmdsn = 15, .expstatsn = 55
	};
	r->trace.level = TRACE_LEVEL_DEBUG;
	r->trace.emit = emit;
	fake_rcap_init(&r->f, role == ISCSI_INITIATOR ? 4 : 0,
		       role == ISCSI_INITIATOR ? 0 : 4);
	dmiser_config_default(&cfg, role);
	cfg.rules = rules;
	cfg.stream_dm = stream_dm;
	r->conn = dmiser_new(&cfg, &r->f.qp);
	assert_non_null(r->conn);
	r->dm = stream_dm ? stream_dm : dmiser_dm(r->conn);
	r->dm->role = role;
	dm_attach(r->dm, &up_ops, r, &r->numbers);
	dm_set_trace(r->dm, &r->trace, FIXTURE_PEER);
}

void fixture_raw(struct fixture *r, enum iscsi_role role, unsigned rules,
		 const struct iscsi_params *params)
{
	begin(r, role, rules, params, NULL);
}

void fixture_init(struct fixture *r, enum iscsi_role role, unsigned rules,
		  const struct iscsi_params *params)
{
	begin(r, role, rules, params, NULL);
	fixture_up(r);
}

void fixture_up(struct fixture *r)
{
	fixture_up_with(r, 0x80);
}

void fixture_up_with(struct fixture *r, int flags)
{
	const uint8_t cm[DMISER_CM_LEN] = { (uint8_t)flags };
	size_t n = flags < 0 ? 0 : sizeof(cm);

	if (r->dm->role == ISCSI_TARGET) {
		fake_rcap_request(&r->f, cm, n);
		assert_true(r->f.accepted);
	}
	fake_rcap_establish(&r->f, cm, n);
}

void fixture_login(struct fixture *r)
{
	struct iscsi_pdu p = { .final = true,
			       .itt = 1,
			       .login = {
				       .transit = true, .csg = 1, .nsg = 3 } };

	p.op = ISCSI_LOGIN_REQUEST;
	p.immediate = true;
	if (r->dm->role == ISCSI_INITIATOR) {
		const struct dm_control ctl = { .pdu = p };

		assert_int_equal(dm_send_control(r->dm, NULL, &ctl), 0);
		fixture_flush(r);
		p.op = ISCSI_LOGIN_RESPONSE;
		p.immediate = false;
	}
	fixture_plain_pdu(r, &p, NULL);
	fixture_flush(r);
	if (!r->no_enable)
		assert_int_equal(r->dm->state, DM_FULL_FEATURE);
	r->controls = 0;
}

void fixture_unswitched(struct fixture *r, enum iscsi_role role, unsigned rules,
			const struct iscsi_params *params)
{
	begin(r, role, rules, params, &r->stream_dm);
}

bool fixture_switch(struct fixture *r)
{
	if (dmiser_take_over(r->conn, &r->params, &r->resources))
		return false;
	dm_conn_go(&r->stream_dm, DM_FULL_FEATURE);
	return true;
}

void fixture_switched(struct fixture *r, enum iscsi_role role, unsigned rules,
		      const struct iscsi_params *params)
{
	fixture_unswitched(r, role, rules, params);
	assert_true(fixture_switch(r));
}

void fixture_target(struct fixture *r, unsigned rules,
		    const struct iscsi_params *p)
{
	fixture_init(r, ISCSI_TARGET, rules, p);
	fixture_login(r);
	fake_rcap_remote(&r->f, FIXTURE_READ_STAG, FIXTURE_READ_BASE,
			 r->peer_in, FIXTURE_BUF);
	fake_rcap_remote(&r->f, FIXTURE_WRITE_STAG, FIXTURE_WRITE_BASE,
			 r->peer_out, FIXTURE_BUF);
	for (size_t i = 0; i < FIXTURE_BUF; i++)
		r->peer_out[i] = fixture_byte(i);
}

void fixture_initiator(struct fixture *r, unsigned rules,
		       const struct iscsi_params *p)
{
	fixture_init(r, ISCSI_INITIATOR, rules, p);
	fixture_login(r);
}

void fixture_fini(struct fixture *r)
{
	if (r->conn && r->f.qp.state != RCAP_CLOSED)
		fake_rcap_close(&r->f, 0, "the test is over");
	assert_int_equal(r->terminated, 1);
	assert_int_equal(r->dm->state, DM_TERMINATED);
	dmiser_free(r->conn);
}

/* ---- the peer ---- */

uint8_t fixture_byte(size_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) + 0x40);
}

struct iser_header fixture_plain(void)
{
	return (struct iser_header){ .opcode = ISER_CONTROL };
}

size_t fixture_message(uint8_t *to, const struct iser_header *h,
		       const struct iscsi_pdu *pdu, const void *data)
{
	size_t n = ISER_PDU;

	iser_header_encode(h, to);
	iscsi_bhs_encode(pdu, to + ISER_HEADER_LEN);
	memset(to + n, 0, pdu->ahs_len);
	n += pdu->ahs_len;
	if (data && pdu->dsl)
		memcpy(to + n, data, pdu->dsl);
	else
		memset(to + n, 0, pdu->dsl);
	return n + pdu->dsl;
}

int fixture_deliver(struct fixture *r, const struct iser_header *h,
		    const struct iscsi_pdu *pdu, const void *data)
{
	static uint8_t bytes[2 * FIXTURE_BUF];

	return fake_rcap_deliver(&r->f, bytes,
				 fixture_message(bytes, h, pdu, data), 0);
}

int fixture_plain_pdu(struct fixture *r, const struct iscsi_pdu *pdu,
		      const void *data)
{
	const struct iser_header h = fixture_plain();

	return fixture_deliver(r, &h, pdu, data);
}

struct iscsi_pdu fixture_command(uint32_t itt, uint32_t edtl, bool write)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_COMMAND,
			       .final = true,
			       .itt = itt,
			       .cmdsn = 7,
			       .expstatsn = 100 };

	p.cmd.write = write;
	p.cmd.read = !write;
	p.cmd.attr = ISCSI_ATTR_SIMPLE;
	p.cmd.edtl = edtl;
	return p;
}

void fixture_read(struct fixture *r, uint32_t itt, uint32_t edtl)
{
	const struct iscsi_pdu p = fixture_command(itt, edtl, false);
	struct iser_header h = fixture_plain();

	h.rsv = true;
	h.read_stag = FIXTURE_READ_STAG;
	h.read_base = FIXTURE_READ_BASE;
	fixture_deliver(r, &h, &p, NULL);
}

void fixture_write(struct fixture *r, uint32_t itt, uint32_t edtl, uint32_t dsl,
		   bool final)
{
	struct iscsi_pdu p = fixture_command(itt, edtl, true);
	struct iser_header h = fixture_plain();
	static uint8_t data[FIXTURE_BUF];

	for (size_t i = 0; i < dsl; i++)
		data[i] = fixture_byte(i);
	p.dsl = dsl;
	p.final = final;
	h.wsv = true;
	h.write_stag = FIXTURE_WRITE_STAG;
	h.write_base = FIXTURE_WRITE_BASE;
	fixture_deliver(r, &h, &p, data);
}

void fixture_data_out(struct fixture *r, uint32_t itt, uint32_t datasn,
		      uint32_t off, uint32_t len, bool final)
{
	struct iscsi_pdu p = { .op = ISCSI_DATA_OUT,
			       .final = final,
			       .dsl = len,
			       .itt = itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .expstatsn = 100 };
	static uint8_t data[FIXTURE_BUF];

	p.data.datasn = datasn;
	p.data.offset = off;
	for (size_t i = 0; i < len; i++)
		data[i] = fixture_byte(off + i);
	fixture_plain_pdu(r, &p, data);
}

/* ---- primitives ---- */

struct iscsi_pdu fixture_response(const struct fixture_task *t)
{
	return (struct iscsi_pdu){ .op = ISCSI_SCSI_RESPONSE,
				   .final = true,
				   .itt = t->dm.itt,
				   .statsn = 100 };
}

int fixture_respond(struct fixture *r, struct fixture_task *t,
		    uint32_t sense_len)
{
	static uint8_t sense[1024];
	struct dm_control ctl = { .pdu = fixture_response(t), .data = sense };

	for (size_t i = 0; i < sizeof(sense); i++)
		sense[i] = fixture_byte(i);
	if (sense_len)
		put_be16(sense, (uint16_t)(sense_len - 2));
	ctl.pdu.dsl = sense_len;
	return dm_send_control(r->dm, &t->dm, &ctl);
}

static void cut(struct fixture_task *t, uint32_t len, unsigned pieces)
{
	for (unsigned i = 0; i < pieces; i++) {
		uint32_t from = (uint32_t)((uint64_t)len * i / pieces);
		uint32_t to = (uint32_t)((uint64_t)len * (i + 1) / pieces);

		t->iov[i] = (struct iovec){ t->buf + from, to - from };
	}
}

struct fixture_task *fixture_start(struct fixture *r, uint32_t itt, bool write,
				   uint32_t len, unsigned pieces, int *err)
{
	struct dm_control ctl = { .pdu = fixture_command(itt, len, write) };
	struct fixture_task *t = new_task(r, itt, len);

	cut(t, len, pieces);
	for (size_t i = 0; i < len && write; i++)
		t->buf[i] = fixture_byte(i);
	*(write ? &t->dm.out : &t->dm.in) = bufv_of(t->iov, pieces);
	*err = dm_send_control(r->dm, &t->dm, &ctl);
	return t;
}

int fixture_send(struct fixture *r, uint8_t op, uint32_t itt, uint32_t dsl)
{
	static uint8_t data[70000];
	const struct dm_control ctl = { .pdu = { .op = op,
						 .final = true,
						 .itt = itt,
						 .ttt = ISCSI_RESERVED_TAG,
						 .statsn = r->numbers.statsn,
						 .dsl = dsl },
					.data = data };

	return dm_send_control(r->dm, NULL, &ctl);
}

/* ---- what was sent ---- */

struct fixture_sent *fixture_sent_at(struct fixture *r, unsigned i)
{
	static struct fixture_sent s;
	static uint8_t bytes[2 * FIXTURE_BUF];

	memset(&s, 0, sizeof(s));
	s.wr = fake_rcap_wr(&r->f, i);
	assert_non_null(s.wr);
	assert_int_equal(s.wr->op, RCAP_SEND);
	s.len = fake_rcap_bytes(s.wr, bytes, sizeof(bytes));
	assert_int_equal(s.len, s.wr->data.len);
	assert_true(s.len >= ISER_PDU);
	assert_int_equal(iser_header_decode(&s.h, bytes, s.len), 0);
	assert_int_equal(s.h.opcode, ISER_CONTROL);
	assert_int_equal(iscsi_bhs_decode(&s.pdu, bytes + ISER_HEADER_LEN), 0);
	assert_true(s.len >= ISER_PDU + s.pdu.ahs_len + s.pdu.dsl);
	assert_true(s.len <= ISER_PDU + s.pdu.ahs_len + round_up4(s.pdu.dsl));
	memcpy(s.data, bytes + ISER_PDU + s.pdu.ahs_len, s.pdu.dsl);
	return &s;
}

void fixture_flush(struct fixture *r)
{
	while (fake_rcap_complete(&r->f, 1))
		;
}

void fixture_expect_ended(struct fixture *r, int err, const char *what)
{
	unsigned recvs = r->f.nrecvs;

	assert_true(r->f.terminated);
	assert_int_equal(r->f.term_err, err);
	assert_int_equal(r->dm->state, DM_TERMINATING);
	assert_int_equal(r->nlog, 1);
	if (!strstr(r->log, FIXTURE_PEER) || !strstr(r->log, what))
		fail_msg("the log has \"%s\", not \"%s\"", r->log, what);
	assert_int_equal(r->terminated, 0);
	/* later messages are not processed, and their receives not posted again */
	if (recvs && !fake_rcap_deliver(&r->f, "", 0, 0)) {
		assert_int_equal(r->f.nrecvs, recvs - 1);
		assert_int_equal(r->nlog, 1);
		assert_int_equal(r->f.term_err, err);
	}
	fake_rcap_close(&r->f, err, "terminated");
	assert_int_equal(r->terminated, 1);
	assert_int_equal(r->terminate_err, err);
}

void fixture_expect_alive(struct fixture *r)
{
	assert_false(r->f.terminated);
	assert_false(r->f.disconnected);
	assert_int_equal(r->terminated, 0);
	assert_int_equal(r->dm->state, DM_FULL_FEATURE);
}
