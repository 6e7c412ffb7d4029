/* SPDX-License-Identifier: BSD-2-Clause */
/* fixture.c: a target whose datamover, clock and threads are the test. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"

/* ---- environment of device and target ---- */

static void post(void *arg, unsigned worker, struct dev_msg *m)
{
	struct fixture *r = arg;

	m->next = NULL;
	*r->message_end[worker] = m;
	r->message_end[worker] = &m->next;
}

static void *buf_get(void *arg, unsigned worker, size_t len)
{
	struct fixture *r = arg;

	(void)worker;
	if (r->no_buffers)
		return NULL;
	r->buffers++;
	return aligned_alloc(4096, (len + 4095) & ~(size_t)4095);
}

static void buf_put(void *arg, unsigned worker, void *buf, size_t len)
{
	struct fixture *r = arg;

	(void)worker;
	(void)len;
	r->buffers--;
	free(buf);
}

static void rearm(void *arg, unsigned worker)
{
	struct fixture *r = arg;

	(void)worker;
	r->rearmed = true;
}

static void emit(struct trace *t, enum trace_event e,
		 const struct trace_about *about, const char *text)
{
	struct fixture *r = container_of(t, struct fixture, trace);

	(void)about;
	snprintf(r->last_trace, sizeof(r->last_trace), "%s %s",
		 trace_event_name(e), text);
}

/* ---- the fixture ---- */

static void add_store(struct fixture *r)
{
	const struct dev_lu_config lu = { .lun = 0, .name = "disk" };
	struct bs *ram;

	r->memory = calloc(FIXTURE_BLOCKS, 512);
	assert_non_null(r->memory);
	ram = bs_ram_new("ram:1M", r->memory, FIXTURE_BLOCKS * 512u, 512, free,
			 r->memory);
	assert_non_null(ram);
	if (r->fault_nth) {
		ram = bs_fault_new(ram,
				   BIT(BS_READ) | BIT(BS_WRITE) |
					   BIT(BS_FLUSH) | BIT(BS_UNMAP) |
					   BIT(BS_ZERO) | BIT(BS_EXTENTS),
				   r->fault_nth, 0, r->fault_err);
		assert_non_null(ram);
	}
	r->hold = bs_hold_new(ram);
	assert_non_null(r->hold);
	assert_int_equal(dev_lu_add(r->server, &lu, r->hold), 0);
}

unsigned fixture_target(struct tgt_directory *d, const char *name)
{
	const struct tgt_target_config target = { .name = name };
	int index = tgt_target_add(d, &target);

	assert_true(index >= 0);
	assert_int_equal(tgt_target_portal_group(d, (unsigned)index, 0), 0);
	return (unsigned)index;
}

struct tgt_directory *fixture_directory(const char *name)
{
	const struct tgt_portal_group_config group = { .tag = FIXTURE_TAG };
	struct tgt_directory *d = tgt_directory_new();

	assert_non_null(d);
	assert_int_equal(tgt_portal_group_add(d, &group), 0);
	fixture_target(d, name);
	return d;
}

static void applied(void *arg)
{
	*(bool *)arg = true;
}

void fixture_apply(struct fixture *r, struct tgt_directory *d)
{
	bool done = false;
	const struct tgt_apply_events events = { .done = applied,
						 .arg = &done };

	assert_int_equal(tgt_apply(r->tgt, d, &events), 0);
	assert_false(done);
	fixture_messages(r);
	assert_true(done);
}

struct fixture *fixture_new(unsigned nworkers,
			    void (*change)(struct tgt_config *cfg))
{
	return fixture_new_faulty(nworkers, change, 0, 0);
}

struct fixture *fixture_new_faulty(unsigned nworkers,
				   void (*change)(struct tgt_config *cfg),
				   unsigned nth, int err)
{
	struct fixture *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->fault_nth = nth;
	r->fault_err = err;
	list_init(&r->peers);
	for (unsigned i = 0; i < FIXTURE_WORKERS; i++)
		r->message_end[i] = &r->messages[i];
	r->trace.level = TRACE_LEVEL_DEBUG;
	r->trace.emit = emit;
	tgt_config_default(&r->cfg);
	r->cfg.env = (struct dev_env){ .nworkers = nworkers,
				       .post = post,
				       .give_way = post,
				       .buf_get = buf_get,
				       .buf_put = buf_put,
				       .arg = r };
	r->cfg.trace = &r->trace;
	r->cfg.rearm = rearm;
	r->cfg.arg = r;
	if (change)
		change(&r->cfg);
	r->server = dev_server_new(&r->cfg.env, 1u << 20);
	assert_non_null(r->server);
	add_store(r);
	r->cfg.server = r->server;
	r->tgt = tgt_new(&r->cfg);
	assert_non_null(r->tgt);
	assert_int_equal(tgt_begin(r->tgt, fixture_directory(FIXTURE_TARGET)),
			 0);
	return r;
}

static bool run_one_message(struct fixture *r, unsigned worker)
{
	struct dev_msg *m = r->messages[worker];

	if (!m)
		return false;
	r->messages[worker] = m->next;
	if (!m->next)
		r->message_end[worker] = &r->messages[worker];
	m->run(m);
	return true;
}

bool fixture_message_one(struct fixture *r)
{
	for (unsigned i = 0; i < r->cfg.env.nworkers; i++)
		if (run_one_message(r, i))
			return true;
	return false;
}

void fixture_messages(struct fixture *r)
{
	bool again;

	do {
		again = false;
		for (unsigned i = 0; i < r->cfg.env.nworkers; i++)
			again |= run_one_message(r, i);
	} while (again);
}

void fixture_release(struct fixture *r)
{
	while (bs_hold_waiting(r->hold))
		bs_hold_release(r->hold, bs_hold_waiting(r->hold));
}

/* Gives a terminated connection its notice, after its queue was sent. */
static bool finish_terminated(struct fixture *r)
{
	list_for_each(it, &r->peers) {
		struct peer *p = list_entry(it, struct peer, link);

		if (p->terminated && !p->gone) {
			if (p->how != DM_TERMINATE_NOW)
				peer_flush(p);
			peer_cut(p, p->terminate_err);
			return true;
		}
	}
	return false;
}

void fixture_settle(struct fixture *r)
{
	do {
		fixture_messages(r);
		if (!r->holding)
			fixture_release(r);
		list_for_each(it, &r->peers) {
			struct peer *p = list_entry(it, struct peer, link);

			if (!p->gone)
				peer_flush(p);
		}
	} while (finish_terminated(r));
	fixture_messages(r);
}

static void peer_free(struct peer *p)
{
	for (unsigned i = 0; i < p->nsent; i++)
		free(p->sent[i].data);
	free(p);
}

void fixture_free(struct fixture *r)
{
	struct list *n;

	r->holding = false;
	list_for_each(it, &r->peers) {
		struct peer *p = list_entry(it, struct peer, link);

		if (!p->gone)
			peer_cut(p, ERR_RESET);
	}
	fixture_settle(r);
	for (unsigned i = 0; i < r->cfg.env.nworkers; i++) {
		struct tgt_worker *w = tgt_worker(r->tgt, i);

		tgt_worker_kill(w); /* sessions that wait for recovery */
		tgt_worker_expire(w, XTIME_NEVER - 1);
	}
	fixture_settle(r);
	for (unsigned i = 0; i < r->cfg.env.nworkers; i++)
		assert_true(tgt_worker_idle(tgt_worker(r->tgt, i)));
	assert_int_equal(r->buffers, 0);
	while ((n = list_pop_front(&r->peers)))
		peer_free(list_entry(n, struct peer, link));
	tgt_free(r->tgt);
	dev_server_free(r->server);
	free(r);
}

/* ---- the datamover ---- */

static struct peer *peer_of(struct dm_conn *c)
{
	return container_of(c, struct peer, dm);
}

static struct sent *record(struct peer *p, const struct iscsi_pdu *pdu,
			   struct dm_task *t)
{
	struct sent *s = &p->sent[p->nsent];

	assert_true(p->nsent < FIXTURE_SENT);
	assert_false(p->gone);
	p->nsent++;
	*s = (struct sent){ .task = t };
	if (pdu)
		s->pdu = *pdu;
	s->pdu.expcmdsn = p->dm.numbers->expcmdsn;
	s->pdu.maxcmdsn = p->dm.numbers->maxcmdsn;
	return s;
}

static void keep(struct sent *s, const struct bufv *v)
{
	s->len = v->len;
	s->data = malloc(v->len ? v->len : 1);
	assert_non_null(s->data);
	bufv_copy_out(v, 0, s->data, v->len);
}

static int send_control(struct dm_conn *c, struct dm_task *t,
			const struct dm_control *ctl)
{
	struct peer *p = peer_of(c);
	struct iovec iov = { (void *)ctl->data, ctl->pdu.dsl };
	struct bufv v = bufv_of(&iov, 1);

	if (p->send_error)
		return p->send_error;
	keep(record(p, &ctl->pdu, t), &v);
	return 0;
}

static int put_data(struct dm_conn *c, struct dm_task *t,
		    const struct bufv *data, uint32_t offset,
		    const struct iscsi_pdu *response)
{
	struct sent *s = record(peer_of(c), response, t);

	assert_int_equal(offset, 0);
	s->put = true;
	if (!response)
		s->pdu.op = ISCSI_DATA_IN;
	s->pdu.itt = t->itt;
	keep(s, data);
	return 0;
}

static int get_data(struct dm_conn *c, struct dm_task *t, uint32_t offset,
		    uint32_t len)
{
	struct peer *p = peer_of(c);

	p->get_task = t;
	p->get_offset = offset;
	p->get_len = len;
	return 0;
}

static int allocate(struct dm_conn *c, const struct dm_resources *r)
{
	(void)c;
	assert_true(r->max_tasks > 0);
	return 0;
}

static void deallocate(struct dm_conn *c)
{
	(void)c;
}

static int enable(struct dm_conn *c, const struct dm_control *final)
{
	struct peer *p = peer_of(c);

	p->enabled = true;
	c->retains = p->params.error_recovery_level > 0;
	return send_control(c, NULL, final);
}

static void terminate(struct dm_conn *c, enum dm_terminate how, int err)
{
	struct peer *p = peer_of(c);

	p->terminated = true;
	p->how = how;
	p->terminate_err = err;
}

static void notice(struct dm_conn *c, const struct iscsi_params *params)
{
	peer_of(c)->params = *params;
}

static int forget(struct dm_conn *c, struct dm_task *t)
{
	struct peer *p = peer_of(c);

	if (p->get_task == t)
		p->get_task = NULL;
	for (unsigned i = 0; i < p->nsent; i++)
		if (p->sent[i].task == t)
			p->sent[i].acknowledged = true;
	if (!p->release_later)
		return 0;
	p->releasing = t;
	return ERR_AGAIN;
}

static void resume(struct dm_conn *dm, struct dm_task *t)
{
	(void)dm;
	(void)t;
}

static void progress(const struct dm_conn *dm, struct dm_progress *p)
{
	*p = container_of(dm, struct peer, dm)->progress;
}

static int snack(struct dm_conn *dm, const struct iscsi_pdu *p, uint32_t *next)
{
	(void)dm;
	(void)p;
	(void)next;
	return 0;
}

static void adopt(struct dm_conn *dm, struct dm_task *t, uint32_t exp_datasn,
		  const struct dm_remote *remote)
{
	struct peer *p = peer_of(dm);

	(void)t;
	p->adopted++;
	p->has_remote = remote != NULL;
	if (remote)
		p->remote = *remote;
	p->exp_datasn = exp_datasn;
}

static const struct dm_ops ops = {
	.send_control = send_control,
	.put_data = put_data,
	.get_data = get_data,
	.allocate_connection_resources = allocate,
	.deallocate_connection_resources = deallocate,
	.enable_datamover = enable,
	.connection_terminate = terminate,
	.notice_key_values = notice,
	.deallocate_task_resources = forget,
	.resume = resume,
	.progress = progress,
	.snack = snack,
	.adopt = adopt,
};

/* ---- the wire ---- */

struct peer *peer_try(struct fixture *r, unsigned worker, const char *host,
		      int *err)
{
	struct peer *p = calloc(1, sizeof(*p));
	struct tgt_conn_info info = { .local = "192.0.2.1:3260",
				      .portal_group = FIXTURE_TAG };

	assert_non_null(p);
	snprintf(info.peer, sizeof(info.peer), "%s:1234", host);
	p->fixture = r;
	p->dm.ops = &ops;
	p->dm.role = ISCSI_TARGET;
	p->dm.transport = "fake";
	p->cmdsn = 100;
	p->itt = 1000;
	*err = tgt_conn_accept(tgt_worker(r->tgt, worker), &p->dm, &info,
			       XTIME_S);
	if (*err) {
		free(p);
		return NULL;
	}
	list_push_back(&r->peers, &p->link);
	return p;
}

struct peer *peer_new(struct fixture *r, unsigned worker)
{
	int err;
	struct peer *p = peer_try(r, worker, "192.0.2.9", &err);

	assert_non_null(p);
	return p;
}

void peer_cut(struct peer *p, int err)
{
	assert_false(p->gone);
	p->gone = true;
	p->dm.state = DM_TERMINATED;
	p->dm.up->connection_terminate_notify(&p->dm, err);
}

int peer_rx(struct peer *p, struct iscsi_pdu *pdu, const void *data)
{
	uint8_t bhs[ISCSI_BHS_LEN];
	struct dm_control ctl = {
		.pdu = *pdu, .bhs = bhs, .ahs = p->ahs, .data = data
	};
	struct dm_task *t = NULL;
	int err;

	iscsi_bhs_encode(pdu, bhs);
	err = p->dm.up->control_notify(&p->dm, &ctl, &t);
	if (pdu->op == ISCSI_SCSI_COMMAND)
		p->last_task = t;
	return err;
}

struct sent *peer_next(struct peer *p)
{
	if (p->next >= p->nsent)
		fail_msg("the target sent nothing; it said: %s",
			 p->fixture->last_trace);
	return &p->sent[p->next++];
}

struct sent *peer_expect(struct peer *p, enum iscsi_opcode op)
{
	struct sent *s = peer_next(p);

	if (s->pdu.op != op)
		fail_msg("%s came, not %s; the target said: %s",
			 iscsi_opcode_name(s->pdu.op),
			 iscsi_opcode_name((uint8_t)op),
			 p->fixture->last_trace);
	return s;
}

void peer_expect_status(struct peer *p, uint8_t status)
{
	assert_int_equal(peer_expect(p, ISCSI_SCSI_RESPONSE)->pdu.rsp.status,
			 status);
}

void peer_expect_tmf(struct peer *p, uint32_t itt, uint8_t response)
{
	struct sent *s = peer_expect(p, ISCSI_TMF_RESPONSE);

	assert_int_equal(s->pdu.itt, itt);
	assert_int_equal(s->pdu.tmf_response, response);
}

bool peer_quiet(const struct peer *p)
{
	return p->next == p->nsent;
}

void peer_flush(struct peer *p)
{
	for (unsigned i = 0; i < p->nsent; i++) {
		struct sent *s = &p->sent[i];
		bool final = s->pdu.op == ISCSI_SCSI_RESPONSE;

		if (s->acknowledged || !s->task || (final && p->silent))
			continue;
		s->acknowledged = true;
		p->dm.up->data_completion_notify(
			&p->dm, s->task, final ? DM_RESPONSE_SENT : DM_PUT, 0);
	}
}

/* ---- an initiator ---- */

uint16_t peer_login(struct peer *p, const char *keys, size_t len,
		    const uint8_t isid[6], uint16_t tsih)
{
	struct iscsi_pdu pdu = {
		.op = ISCSI_LOGIN_REQUEST,
		.immediate = true,
		.final = true,
		.itt = 7,
		.cmdsn = p->cmdsn,
		.dsl = (uint32_t)len,
	};
	struct sent *s;

	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.login.tsih = tsih;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(p, &pdu, keys);
	fixture_settle(p->fixture);
	s = peer_expect(p, ISCSI_LOGIN_RESPONSE);
	return (uint16_t)(s->pdu.login.status_class << 8 |
			  s->pdu.login.status_detail);
}

struct peer *peer_session(struct fixture *r, unsigned worker, uint8_t last)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Normal\0"
				   "TargetName=" FIXTURE_TARGET "\0"
				   "InitialR2T=No\0"
				   "ImmediateData=Yes\0"
				   "MaxRecvDataSegmentLength=65536\0"
				   "iSCSIProtocolLevel=2";
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, last };
	struct peer *p = peer_new(r, worker);

	assert_int_equal(peer_login(p, keys, sizeof(keys), isid, 0), 0);
	assert_true(p->enabled);
	return p;
}

struct peer *peer_discovery(struct fixture *r)
{
	static const char keys[] = "InitiatorName=" FIXTURE_INI "\0"
				   "SessionType=Discovery";
	const uint8_t isid[6] = { 0x80 };
	struct peer *p = peer_new(r, 0);

	assert_int_equal(peer_login(p, keys, sizeof(keys), isid, 0), 0);
	return p;
}

uint32_t peer_command(struct peer *p, const uint8_t cdb[16], bool read,
		      bool write, uint32_t edtl)
{
	struct iscsi_pdu pdu = {
		.op = ISCSI_SCSI_COMMAND,
		.final = true,
		.itt = p->itt++,
		.lun = p->lun,
		.cmdsn = p->cmdsn++,
		.ahs_len = p->ahs_len,
	};

	pdu.cmd.read = read;
	pdu.cmd.write = write;
	pdu.cmd.attr = p->attr ? p->attr : ISCSI_ATTR_SIMPLE;
	pdu.cmd.priority = p->priority;
	pdu.cmd.edtl = edtl;
	memcpy(pdu.cmd.cdb, cdb, 16);
	assert_int_equal(peer_rx(p, &pdu, NULL), 0);
	return pdu.itt;
}

static uint32_t rw10(struct peer *p, uint8_t op, uint32_t lba, uint16_t blocks)
{
	uint8_t cdb[16] = { op };

	put_be32(cdb + 2, lba);
	put_be16(cdb + 7, blocks);
	return peer_command(p, cdb, op == 0x28, op == 0x2a, blocks * 512u);
}

uint32_t peer_read(struct peer *p, uint32_t lba, uint16_t blocks)
{
	return rw10(p, 0x28, lba, blocks);
}

uint32_t peer_write(struct peer *p, uint32_t lba, uint16_t blocks)
{
	return rw10(p, 0x2a, lba, blocks);
}

uint32_t peer_tur(struct peer *p)
{
	const uint8_t cdb[16] = { 0 };

	return peer_command(p, cdb, false, false, 0);
}

void peer_unsolicited(struct peer *p, struct dm_task *t, uint8_t byte,
		      uint32_t n, int err)
{
	bufv_fill(&t->out, 0, byte, n);
	t->out_done = n;
	p->dm.up->data_completion_notify(&p->dm, t, DM_UNSOLICITED, err);
}

void peer_solicited(struct peer *p, uint8_t byte, int err)
{
	struct dm_task *t = p->get_task;

	assert_non_null(t);
	p->get_task = NULL;
	bufv_fill(&t->out, p->get_offset, byte, p->get_len);
	t->out_done += p->get_len;
	p->dm.up->data_completion_notify(&p->dm, t, DM_GET, err);
}

uint32_t peer_tmf(struct peer *p, enum iscsi_tmf function, uint64_t lun,
		  uint32_t rtt, uint32_t ref_cmdsn)
{
	struct iscsi_pdu pdu = {
		.op = ISCSI_TMF_REQUEST,
		.immediate = true,
		.final = true,
		.itt = p->itt++,
		.lun = lun,
		.cmdsn = p->cmdsn,
	};

	pdu.tmf.function = (uint8_t)function;
	pdu.tmf.rtt = rtt;
	pdu.tmf.ref_cmdsn = ref_cmdsn;
	assert_int_equal(peer_rx(p, &pdu, NULL), 0);
	return pdu.itt;
}

void peer_ready(struct peer *p)
{
	uint8_t status;

	do {
		peer_tur(p);
		fixture_settle(p->fixture);
		status = peer_expect(p, ISCSI_SCSI_RESPONSE)->pdu.rsp.status;
	} while (status == SCSI_CHECK_CONDITION);
	assert_int_equal(status, SCSI_GOOD);
}
