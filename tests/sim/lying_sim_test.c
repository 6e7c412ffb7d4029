/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lying_sim_test.c: the initiator, and libiser's block helpers, with a target
 * that answers with anything (liar.h), over TCP on a virtual wire and clock. The
 * oracle: data reported as success are exactly the data that the target sent for
 * that offset, or received; otherwise the command fails; each command ends once,
 * in bounded virtual time. For iSER, where the initiator sees no data, see
 * unit/initiator/residual_test.c.
 *
 * LYING_SEED, LYING_RUNS: replace the fixed seeds and number of runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "datamover/tcp/dmtcp.h"
#include "scsi/cdb.h"
#include "sim/liar.h"
#include "sim/thin.h"
#include "unit/lib/fake_message.h"

#define BLOCK	512u
#define BATCH	12
#define POISON	0xee
#define PATIENT (120 * XTIME_S) /* virtual, of one batch */

struct rig {
	struct wire wire;
	struct liar liar;
	struct dmtcp_conn *conn;
	struct ini_session *ini;
	bool logged_in, closed;
	xtime now;
};

static struct rig g;
static unsigned good, shorts, failures;

/* ---- the initiator ---- */

static void on_logged_in(void *arg, int err)
{
	(void)arg;
	g.logged_in = err == 0;
}

static void on_closed(void *arg, int err)
{
	(void)arg;
	(void)err;
	assert_false(g.closed);
	g.closed = true;
}

static void on_async(void *arg, const struct iscsi_async *a)
{
	(void)arg;
	(void)a;
}

static void on_rearm(void *arg)
{
	(void)arg;
}

static void rig_open(uint32_t seed, unsigned honesty)
{
	struct wire_config wc = { .seed = seed,
				  .max_chunk = seed % 3 ? 0 : 700,
				  .max_delay = seed % 5 ? 0 : XTIME_MS,
				  .cut = { WIRE_NO_CUT, WIRE_NO_CUT } };
	struct dmtcp_config dc;
	struct ini_config cfg;

	memset(&g, 0, sizeof(g));
	g.now = XTIME_S;
	wire_init(&g.wire, &wc);
	liar_init(&g.liar, &g.wire, seed);
	g.liar.honesty = honesty;
	dmtcp_config_default(&dc, ISCSI_INITIATOR);
	g.conn = dmtcp_new(&dc, wire_host(&g.wire, 0));
	assert_non_null(g.conn);
	ini_config_default(&cfg);
	cfg.login.want.max_recv_dsl = 8192;
	strcpy(cfg.login.id.initiator_name, "iqn.2026-01.org.example:i");
	strcpy(cfg.login.id.target_name, "iqn.2026-01.org.example:t");
	cfg.login.id.isid[0] = 0x80;
	cfg.depth = 32;
	cfg.logged_in = on_logged_in;
	cfg.closed = on_closed;
	cfg.async = on_async;
	cfg.rearm = on_rearm;
	g.ini = ini_new(&cfg, dmtcp_dm(g.conn));
	assert_non_null(g.ini);
	wire_attach(&g.wire, 0, &dmtcp_stream_ops, g.conn);
	ini_start(g.ini, g.now);
	wire_idle(&g.wire);
	assert_true(g.logged_in);
}

static void rig_close(void)
{
	if (!g.closed)
		ini_kill(g.ini, 0);
	wire_idle(&g.wire);
	assert_true(g.closed);
	ini_free(g.ini);
	dmtcp_free(g.conn);
	wire_fini(&g.wire);
	liar_fini(&g.liar);
}

/* Advances the clock until all commands have ended, within a limit. */
static void wait_for(const unsigned *left)
{
	xtime end = g.now + PATIENT;

	wire_idle(&g.wire);
	while (*left && !g.closed) {
		xtime next = ini_deadline(g.ini);

		assert_true(g.now < end);
		g.now = MAX(MIN(next, g.now + XTIME_S), g.now + 1);
		ini_expire(g.ini, g.now);
		wire_idle(&g.wire);
	}
	assert_int_equal(*left, 0);
}

/* ---- the oracle ---- */

struct job {
	struct ini_task task;
	struct iovec iov;
	uint8_t *data;
	unsigned *left;
	bool over;
};

static void job_done(struct ini_task *t)
{
	struct job *j = container_of(t, struct job, task);

	assert_false(j->over);
	j->over = true;
	(*j->left)--;
}

static void check_read_data(const struct job *j, const struct liar_task *l)
{
	for (uint32_t i = 0; i < j->task.moved; i++) {
		assert_int_equal(l->has_sent[i], LIAR_SENT);
		assert_int_equal(j->data[i], l->sent[i]);
	}
}

static void check_written_data(const struct job *j, const struct liar_task *l)
{
	for (uint32_t i = 0; i < j->task.moved; i++) {
		assert_int_equal(l->has_taken[i], 1);
		assert_int_equal(j->data[i], l->taken[i]);
	}
}

static void check_job(const struct job *j)
{
	const struct ini_task *t = &j->task;
	uint32_t edtl = (uint32_t)j->iov.iov_len;
	const struct liar_task *l;

	assert_true(j->over);
	assert_true(t->moved <= edtl);
	shorts += t->err == ERR_SHORT;
	failures += t->err || t->status;
	if (t->err || t->status)
		return;
	assert_true(t->moved == edtl || t->short_ok);
	assert_false(t->underflow && t->overflow);
	assert_false(t->write && t->overflow && t->resid && !t->short_ok);
	if (t->underflow)
		assert_true(t->resid <= edtl && t->moved <= edtl - t->resid);
	good++;
	l = liar_find(&g.liar, t->dm.itt);
	assert_non_null(l);
	if (t->write)
		check_written_data(j, l);
	else
		check_read_data(j, l);
}

static void submit_command(struct job *j, enum iser_direction way,
			   const uint8_t *cdb, uint8_t cdb_len, bool short_ok)
{
	j->over = false;
	j->task = (struct ini_task){ .cdb_len = cdb_len,
				     .read = way == ISER_READ,
				     .write = way == ISER_WRITE,
				     .short_ok = short_ok,
				     .attr = ISCSI_ATTR_SIMPLE,
				     .deadline = g.now + 20 * XTIME_S,
				     .done = job_done };
	memcpy(j->task.cdb, cdb, MIN((size_t)cdb_len, sizeof(j->task.cdb)));
	if (way == ISER_READ)
		j->task.in = bufv_of(&j->iov, 1);
	if (way == ISER_WRITE)
		j->task.out = bufv_of(&j->iov, 1);
	(*j->left)++;
	ini_submit(g.ini, &j->task, g.now);
}

/* ---- many commands at once ---- */

static void start_job(struct job *j)
{
	uint8_t cdb[32] = { 0 };
	uint32_t blocks = 1 + liar_roll(&g.liar, 32);
	bool write = liar_roll(&g.liar, 2);
	size_t n = scsi_cdb_rw(cdb, write, 0, blocks, 0);

	j->iov = (struct iovec){ j->data, blocks * BLOCK };
	for (size_t i = 0; i < j->iov.iov_len; i++)
		j->data[i] = write ? (uint8_t)liar_roll(&g.liar, 256) : POISON;
	submit_command(j, write ? ISER_WRITE : ISER_READ, cdb, (uint8_t)n,
		       liar_roll(&g.liar, 4) == 0);
}

static void run_batches(uint32_t seed, unsigned honesty)
{
	struct job *jobs = calloc(BATCH, sizeof(*jobs));
	unsigned left = 0;

	rig_open(seed, honesty);
	for (unsigned i = 0; i < BATCH; i++) {
		jobs[i].data = malloc(LIAR_MOST);
		jobs[i].left = &left;
	}
	for (unsigned round = 0; round < 6 && !g.closed; round++) {
		for (unsigned i = 0; i < BATCH; i++)
			start_job(&jobs[i]);
		wait_for(&left);
		wire_idle(&g.wire);
		for (unsigned i = 0; i < BATCH; i++)
			check_job(&jobs[i]);
	}
	rig_close();
	for (unsigned i = 0; i < BATCH; i++)
		free(jobs[i].data);
	free(jobs);
}

static unsigned number(const char *name, unsigned usual)
{
	const char *v = getenv(name);

	return v ? (unsigned)strtoul(v, NULL, 0) : usual;
}

static void test_commands_rfc7143_11_4_5_1(void **state)
{
	unsigned seed = number("LYING_SEED", 1);
	unsigned runs = number("LYING_RUNS", 800 / SIM_THIN);

	(void)state;
	good = shorts = failures = 0;
	for (unsigned i = 0; i < runs; i++)
		run_batches(seed + i, 40 + i % 60);
	print_message("%u good, %u short, %u failures\n", good, shorts,
		      failures);
	assert_true(good > runs && shorts > runs / 4 && failures > runs);
}

/* ---- the block helpers: lib/block.c on the same initiator ---- */

bool lib_may_be_iser(const struct iser_session *s)
{
	(void)s;
	return false;
}

void lib_guard_note(struct iser_session *s, int lun,
		    const struct iser_capacity *c)
{
	(void)s;
	(void)lun;
	(void)c;
}

static struct job ask; /* the command that block.c runs */
static uint32_t last_moved;

static void bring_back(void)
{
	if (!g.closed)
		return;
	rig_close();
	rig_open(ask.task.cdb[0] + good + failures, 60);
}

/* Executes an iser_io as lib/io.c does, without its loop. */
int iser_run(struct iser_session *s, struct iser_io *io)
{
	unsigned left = 0;
	uint8_t cdb[32];

	(void)s;
	memcpy(cdb, io->cdb, sizeof(io->cdb));
	ask.left = &left;
	ask.iov = io->niov ? io->iov[0] : (struct iovec){ NULL, 0 };
	ask.data = ask.iov.iov_base;
	submit_command(&ask, io->direction, cdb, io->cdb_len, io->short_ok);
	wait_for(&left);
	wire_idle(&g.wire);
	check_job(&ask);
	io->status = ask.task.status;
	io->transferred = last_moved = ask.task.moved;
	io->sense_len = 0;
	io->err = ask.task.err == ERR_SHORT ? ISER_E_SHORT
		  : ask.task.err	    ? ISER_E_PROTOCOL
		  : ask.task.status	    ? ISER_E_SCSI
					    : 0;
	return io->err;
}

static size_t parameters(struct liar *l, const struct iscsi_pdu *cmd,
			 uint8_t *p, size_t n)
{
	static const uint64_t lasts[] = { 2047, UINT64_MAX, (1ull << 55) - 1 };
	uint8_t b[LIAR_MOST] = { 0 };
	size_t len = 0;

	switch (cmd->cmd.cdb[0]) {
	case SCSI_INQUIRY:
		len = cmd->cmd.cdb[1] & 1 ? 64 : 36;
		b[7] = 2;
		break;
	case SCSI_READ_CAPACITY_10:
		len = 8;
		put_be32(b, liar_roll(l, 2) ? 2047 : UINT32_MAX);
		put_be32(b + 4, BLOCK);
		break;
	case SCSI_REPORT_LUNS:
		len = 8 + 8 * 5;
		put_be32(b, liar_roll(l, 2) ? 40 : UINT32_MAX);
		break;
	case SCSI_SERVICE_ACTION_IN_16:
		len = 32;
		put_be64(b, lasts[liar_roll(l, 3)]);
		put_be32(b + 8, liar_roll(l, 4) ? BLOCK : liar_roll(l, 2000));
		if ((cmd->cmd.cdb[1] & 0x1f) == SCSI_SAI_READ_CAPACITY_16)
			break;
		len = 8 + 16 * 3;
		put_be32(b, liar_roll(l, 2) ? (uint32_t)len - 4 : UINT32_MAX);
		for (unsigned i = 0; i < 3; i++) {
			put_be64(b + 8 + 16 * i, i * 8);
			put_be32(b + 16 + 16 * i, liar_roll(l, 4) ? 8 : 0);
		}
		break;
	default:
		break;
	}
	len = MIN(len, n);
	memcpy(p, b, len);
	return len;
}

static void zeros_behind(const uint8_t *b, size_t n, size_t size)
{
	for (size_t i = n; i < size; i++)
		assert_int_equal(b[i], 0);
}

static void ask_inquiry(struct iser_session *s)
{
	uint8_t b[96];
	int n;

	memset(b, POISON, sizeof(b));
	n = iser_inquiry(s, 0, (int)liar_roll(&g.liar, 3) - 1, b, sizeof(b));
	assert_true(n <= (int)last_moved);
	zeros_behind(b, n < 0 ? 0 : (size_t)n, sizeof(b));
}

static void ask_capacity(struct iser_session *s)
{
	struct iser_capacity c;

	s->typed.is_known = false;
	if (iser_read_capacity(s, 0, &c))
		return;
	/* the only valid capacity of those that the target reports */
	assert_true(c.block_size >= 512 && c.blocks == 2048);
	assert_int_equal(c.bytes, 2048ull * c.block_size);
}

static void ask_lists(struct iser_session *s)
{
	struct iser_extent x[64];
	int luns[64], n = iser_report_luns(s, luns, 64);
	struct iser_io io = { 0 };
	struct iser_parameters p;

	if (n > 0)
		assert_true(8 + 8 * (uint32_t)n <= last_moved);
	iser_prep_lba_status(&io, 0, 0, 64, &p);
	n = iser_run(s, &io) ? 0 : iser_parse_lba_status(&io, x, 64);
	if (n > 0)
		assert_true(8 + 16 * (uint32_t)n <= last_moved);
	for (int i = 0; i < n; i++)
		assert_true(x[i].lba == 8u * (unsigned)i && x[i].blocks == 8);
}

static void move_blocks(struct iser_session *s)
{
	static uint8_t b[LIAR_MOST];
	size_t len = BLOCK * (1 + liar_roll(&g.liar, 32));
	struct iovec iov = { b, len };
	struct iser_io io = { .iov = &iov, .niov = 1 };

	memset(b, POISON, sizeof(b));
	iser_prep_rw(&io, 0, !liar_roll(&g.liar, 2), 5,
		     (uint32_t)(len / BLOCK));
	if (!iser_run(s, &io))
		assert_int_equal(last_moved, len);
}

/* Calls without data from the target: they succeed with GOOD only. */
static void ask_without_data(struct iser_session *s)
{
	const struct iser_unmap_range range = { .lba = 8, .blocks = 16 };
	struct iser_io io = { 0 };
	struct iser_parameters p;
	int err;

	switch (liar_roll(&g.liar, 3)) {
	case 0:
		iser_prep_flush(&io, 0, 0, 0);
		err = iser_run(s, &io);
		break;
	case 1:
		err = iser_test_unit_ready(s, 0);
		break;
	default:
		iser_prep_unmap(&io, 0, &p, &range, 1);
		err = iser_run(s, &io);
		/* the list of UNMAP: a header of 8 bytes, 16 for each extent */
		assert_true(err || last_moved == 24);
		break;
	}
	if (!err)
		assert_true(!ask.task.err && ask.task.status == 0);
}

static void test_block_helpers(void **state)
{
	struct iser_session *s = calloc(1, sizeof(*s));
	unsigned rounds = number("LYING_RUNS", 800 / SIM_THIN);

	(void)state;
	good = shorts = failures = 0;
	rig_open(number("LYING_SEED", 1), 60);
	for (unsigned i = 0; i < rounds; i++) {
		g.liar.parameters = parameters;
		ask_inquiry(s);
		bring_back();
		g.liar.parameters = parameters;
		ask_capacity(s);
		bring_back();
		g.liar.parameters = parameters;
		ask_lists(s);
		bring_back();
		move_blocks(s);
		bring_back();
		ask_without_data(s);
		bring_back();
	}
	rig_close();
	print_message("%u good, %u short, %u failures\n", good, shorts,
		      failures);
	assert_true(good > rounds && shorts > rounds / 20);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands_rfc7143_11_4_5_1),
		cmocka_unit_test(test_block_helpers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
