/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_test.c: one scenario over iSCSI on TCP, over iSER on software iWARP
 * with both starts, and over iSER on two queue pairs connected in memory. The
 * requests to the backstore, and the results at the initiator, must be the same,
 * byte for byte. This tests the Datamover Interface: the code above it does not
 * depend on the transport.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "initiator/initiator.h"
#include "scsi/cdb.h"
#include "sim/loop_rcap.h"
#include "sim/transport.h"
#include "sim/world.h"

#define TEXT_MAX (64u << 10)
#define BATCH	 8
#define DATA_MAX (300u * BLOCK)

/* The fourth kind of connection, in addition to enum sim_way. */
#define WAY_LOOP SIM_WAYS

struct text {
	char s[TEXT_MAX];
	size_t len;
};

static void say(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	t->len += (size_t)vsnprintf(t->s + t->len, TEXT_MAX - t->len, fmt, ap);
	va_end(ap);
	assert_true(t->len < TEXT_MAX);
}

struct job {
	struct run *run;
	struct ini_task task;
	struct iovec iov;
	uint8_t data[DATA_MAX];
	char line[256];
	bool over;
};

/* One run of the scenario. */
struct run {
	unsigned way;
	struct text device, answers;
	struct world world;
	struct wire wire;
	struct sim_transport transport[2];
	struct loop_rcap loop;
	struct dmiser_conn *dmiser[2];
	struct ini_session *ini;
	struct job jobs[BATCH];
	unsigned njobs;
	bool logged_in, closed;
	struct ini_request request;
	bool answered;
	int answer_err;
};

/* ---- the compared text ---- */

static void seen(void *arg, const struct bs_req *req)
{
	struct run *r = arg;
	bool moves = req->op == BS_READ || req->op == BS_WRITE;

	say(&r->device, "store: op %d at %llu len %llu result %d data %08x\n",
	    req->op, (unsigned long long)req->off, (unsigned long long)req->len,
	    req->result,
	    moves ? bufv_crc32c(&req->data, 0, req->len, CRC32C_SEED) : 0);
}

static void done(struct ini_task *t)
{
	struct job *j = container_of(t, struct job, task);

	j->over = true;
}

static void report(struct run *r, const struct job *j)
{
	const struct ini_task *t = &j->task;

	say(&r->answers,
	    "%s: err %d status %02x %s%u sense %08x read %u data %08x\n",
	    j->line, t->err, t->status,
	    t->underflow  ? "under "
	    : t->overflow ? "over "
			  : "",
	    t->resid, crc32c_update(CRC32C_SEED, t->sense, t->sense_len),
	    t->bidi.arrived,
	    t->in.len ? crc32c_update(CRC32C_SEED, j->data, t->bidi.arrived)
		      : 0);
}

/* ---- set-up ---- */

static void on_logged_in(void *arg, int err)
{
	struct run *r = arg;

	assert_int_equal(err, 0);
	r->logged_in = true;
}

static void on_closed(void *arg, int err)
{
	struct run *r = arg;

	assert_int_equal(err, 0);
	r->closed = true;
}

static void make_transports(struct run *r, struct dm_conn *dm[2])
{
	const struct wire_config wc = { .seed = 7,
					.max_chunk = 3000,
					.max_delay = XTIME_MS,
					.cut = { WIRE_NO_CUT, WIRE_NO_CUT } };

	wire_init(&r->wire, &wc);
	if (r->way != WAY_LOOP) {
		for (unsigned i = 0; i < 2; i++) {
			sim_transport_init(&r->transport[i], &r->wire, i,
					   (enum sim_way)r->way);
			dm[i] = sim_transport_dm(&r->transport[i]);
		}
		return;
	}
	loop_rcap_init(&r->loop);
	for (unsigned i = 0; i < 2; i++) {
		struct dmiser_config d;

		dmiser_config_default(&d, i ? ISCSI_TARGET : ISCSI_INITIATOR);
		r->dmiser[i] = dmiser_new(&d, &r->loop.end[i].qp);
		assert_non_null(r->dmiser[i]);
		dm[i] = dmiser_dm(r->dmiser[i]);
	}
}

static void run_until_idle(struct run *r)
{
	static const uint8_t cm[4] = { 0x80 };
	bool more;

	do {
		world_run_mail(&r->world);
		more = false;
		if (r->way == WAY_LOOP)
			more = loop_rcap_run(&r->loop, cm, sizeof(cm));
		else
			wire_idle(&r->wire);
	} while (more || r->world.mail);
}

static void open_run(struct run *r)
{
	struct tgt_conn_info info = { .peer = "sim:1",
				      .local = "sim:3260",
				      .portal_group = TAG };
	struct dm_conn *dm[2];
	struct ini_config cfg;

	world_open_seen(&r->world, seen, r);
	make_transports(r, dm);
	world_host_config(&r->world, &cfg, BATCH);
	cfg.login.want.rdma_extensions = r->way != SIM_TCP;
	cfg.login.want.initial_r2t =
		true; /* iSER negotiates this; the same for all */
	cfg.login.header_digest_crc_ok = cfg.login.data_digest_crc_ok = false;
	cfg.logged_in = on_logged_in;
	cfg.closed = on_closed;
	cfg.arg = r;
	r->ini = ini_new(&cfg, dm[0]);
	assert_int_equal(tgt_conn_accept(tgt_worker(r->world.tgt, 0), dm[1],
					 &info, 0),
			 0);
	for (unsigned i = 0; i < 2 && r->way != WAY_LOOP; i++)
		sim_transport_go(&r->transport[i]);
	ini_start(r->ini, 0);
	run_until_idle(r);
	assert_true(r->logged_in);
	assert_string_equal(ini_transport(r->ini),
			    r->way == SIM_TCP ? "tcp" : "iser");
}

static void close_run(struct run *r)
{
	ini_logout(r->ini, 0);
	run_until_idle(r);
	if (r->way != WAY_LOOP)
		wire_run(&r->wire, r->wire.now + 60 * XTIME_S);
	assert_true(r->closed);
	ini_free(r->ini);
	for (unsigned i = 0; i < 2; i++) {
		if (r->way != WAY_LOOP)
			sim_transport_fini(&r->transport[i]);
		dmiser_free(r->dmiser[i]);
	}
	wire_fini(&r->wire);
	world_close(&r->world);
}

/* ---- lines ---- */

static void answer(struct ini_request *q, int err, const struct dm_control *rsp)
{
	struct run *r = container_of(q, struct run, request);

	r->answered = true;
	r->answer_err = err;
	if (rsp)
		say(&r->answers, "answer: op %02x dsl %u response %u\n",
		    rsp->pdu.op, rsp->pdu.dsl,
		    rsp->pdu.op == ISCSI_TMF_RESPONSE ? rsp->pdu.tmf_response
						      : 0);
}

static bool run_request(struct run *r, const char *line)
{
	static const uint8_t zeros[512];
	unsigned n;
	int err;

	r->request.done = answer;
	r->answered = false;
	if (!strcmp(line, "lu-reset"))
		err = ini_task_management(r->ini, &r->request,
					  ISCSI_TMF_LU_RESET, 0, NULL,
					  XTIME_NEVER);
	else if (sscanf(line, "ping %u", &n) == 1)
		err = ini_ping(r->ini, &r->request, zeros, n, XTIME_NEVER);
	else
		return false;
	assert_int_equal(err, 0);
	run_until_idle(r);
	assert_true(r->answered);
	assert_int_equal(r->answer_err, 0);
	return true;
}

static void set_data(struct job *j, bool write, size_t len, unsigned seed)
{
	struct ini_task *t = &j->task;

	assert_true(len <= sizeof(j->data));
	for (size_t i = 0; i < len; i++)
		j->data[i] =
			write ? (uint8_t)(seed * 31 + i * 7 + (i >> 9)) : 0xee;
	if (len == 0)
		return;
	j->iov = (struct iovec){ j->data, len };
	t->write = write;
	t->read = !write;
	if (write)
		t->out = bufv_of(&j->iov, 1);
	else
		t->in = bufv_of(&j->iov, 1);
}

static void set_rw(struct job *j, bool write, unsigned lba, unsigned blocks,
		   unsigned bytes, unsigned seed)
{
	j->task.cdb_len =
		(uint8_t)scsi_cdb_rw(j->task.cdb, write, lba, blocks, 0);
	set_data(j, write, bytes, seed);
}

static void set_cdb(struct job *j, const uint8_t *cdb, size_t n, size_t in)
{
	memcpy(j->task.cdb, cdb, n);
	j->task.cdb_len = (uint8_t)n;
	set_data(j, false, in, 0);
}

static bool parse_rw(struct job *j, const char *s)
{
	unsigned a, n, b, seed;

	if (sscanf(s, "read %u %u", &a, &n) == 2)
		set_rw(j, false, a, n, n * BLOCK, 0);
	else if (sscanf(s, "write %u %u seed %u", &a, &n, &seed) == 3)
		set_rw(j, true, a, n, n * BLOCK, seed);
	else if (sscanf(s, "read-%*[a-z] %u %u bytes %u", &a, &n, &b) == 3)
		set_rw(j, false, a, n, b, 0);
	else if (sscanf(s, "write-%*[a-z] %u %u bytes %u seed %u", &a, &n, &b,
			&seed) == 4)
		set_rw(j, true, a, n, b, seed);
	else
		return false;
	return true;
}

static bool parse_blocks(struct job *j, const char *s)
{
	uint8_t verify[10] = { 0x2f }, unmap[10] = { 0x42 },
		same[16] = { 0x93 };
	unsigned a, n, seed;

	if (sscanf(s, "verify %u %u", &a, &n) == 2) {
		put_be32(verify + 2, a);
		put_be16(verify + 7, (uint16_t)n);
		set_cdb(j, verify, 10, 0);
	} else if (sscanf(s, "unmap %u %u", &a, &n) == 2) {
		unmap[8] = 24;
		set_cdb(j, unmap, 10, 0);
		set_data(j, true, 24, 0);
		memset(j->data, 0, 24);
		put_be16(j->data, 22);
		put_be16(j->data + 2, 16);
		put_be32(j->data + 12, a);
		put_be32(j->data + 16, n);
	} else if (sscanf(s, "write-same %u %u seed %u", &a, &n, &seed) == 3) {
		put_be32(same + 6, a);
		put_be32(same + 10, n);
		set_cdb(j, same, 16, 0);
		set_data(j, true, BLOCK, seed);
	} else {
		return false;
	}
	return true;
}

static bool parse_plain(struct job *j, const char *s)
{
	static const uint8_t inquiry[6] = { 0x12, 0, 0, 0, 96, 0 };
	static const uint8_t tur[6], sync[10] = { 0x35 };
	uint8_t capacity[16] = { 0x9e, 0x10 }, any[16] = { 0 };
	unsigned op;

	capacity[13] = 32;
	if (!strcmp(s, "inquiry"))
		set_cdb(j, inquiry, 6, 96);
	else if (!strcmp(s, "tur"))
		set_cdb(j, tur, 6, 0);
	else if (!strcmp(s, "capacity"))
		set_cdb(j, capacity, 16, 32);
	else if (!strcmp(s, "sync"))
		set_cdb(j, sync, 10, 0);
	else if (sscanf(s, "opcode %x", &op) == 1) {
		any[0] = (uint8_t)op;
		set_cdb(j, any, 16, 0);
	} else {
		return false;
	}
	return true;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Concurrent commands may reach the medium in any order (SAM-5 §8.6.2): their
 * lines are compared as a set. */
static void sort_lines(struct text *t, size_t from)
{
	char *copy = strdup(t->s + from), *line[4 * BATCH], *save;
	size_t n = 0;

	for (char *l = strtok_r(copy, "\n", &save); l;
	     l = strtok_r(NULL, "\n", &save)) {
		assert_true(n < ARRAY_LEN(line));
		line[n++] = l;
	}
	qsort(line, n, sizeof(line[0]), by_text);
	t->len = from;
	for (size_t i = 0; i < n; i++)
		say(t, "%s\n", line[i]);
	free(copy);
}

static void finish_batch(struct run *r)
{
	size_t from = r->device.len;

	for (unsigned i = 0; i < r->njobs; i++)
		ini_submit(r->ini, &r->jobs[i].task, 0);
	run_until_idle(r);
	if (r->njobs > 1)
		sort_lines(&r->device, from);
	for (unsigned i = 0; i < r->njobs; i++) {
		assert_true(r->jobs[i].over);
		report(r, &r->jobs[i]);
	}
	r->njobs = 0;
}

static void run_line(struct run *r, const char *line)
{
	bool at_once = !strncmp(line, "at once ", 8);
	const char *s = at_once ? line + 8 : line;
	struct job *j = &r->jobs[r->njobs];

	if (run_request(r, s))
		return;
	assert_true(r->njobs < BATCH);
	memset(&j->task, 0, sizeof(j->task));
	j->over = false;
	snprintf(j->line, sizeof(j->line), "%s", s);
	j->task.attr = ISCSI_ATTR_SIMPLE;
	j->task.deadline = XTIME_NEVER;
	j->task.done = done;
	if (!parse_rw(j, s) && !parse_blocks(j, s) && !parse_plain(j, s))
		fail_msg("scenario: what is \"%s\"?", s);
	r->njobs++;
	if (!at_once)
		finish_batch(r);
}

static struct run *play_scenario(unsigned way, const char *path)
{
	struct run *r = calloc(1, sizeof(*r));
	FILE *f = fopen(path, "r");
	char line[256];

	assert_non_null(f);
	r->way = way;
	open_run(r);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] && line[0] != '#')
			run_line(r, line);
	}
	fclose(f);
	close_run(r);
	return r;
}

/* [RFC 7145: 3.1 #1, 7.3 #1, 7.3.5 #1, 7.3.6 #1, 7.3.9 #1] [RFC 5047: 5.4
 * #1, 6 #1-2, 7.1 #1, 8 #1, 8.1 #1, 8.2 #1, 8.3 #1, 9 #1] */
static void test_every_datamover_gives_the_same(void **state)
{
	struct run *tcp = play_scenario(SIM_TCP, SCENARIO);

	(void)state;
	assert_true(tcp->device.len > 1000);
	assert_true(tcp->answers.len > 1000);
	/* the scenario reaches the medium and causes errors */
	assert_non_null(strstr(tcp->answers.s, "status 02"));
	for (unsigned way = SIM_ISER_FIRST; way <= WAY_LOOP; way++) {
		struct run *r = play_scenario(way, SCENARIO);

		assert_string_equal(r->device.s, tcp->device.s);
		assert_string_equal(r->answers.s, tcp->answers.s);
		free(r);
	}
	free(tcp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_datamover_gives_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
