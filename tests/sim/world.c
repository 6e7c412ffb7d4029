/* SPDX-License-Identifier: BSD-2-Clause */
/* world.c: see world.h. */
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#include "backstore/protect.h"
#include "base/bytes.h"
#include "cmocka_all.h"
#include "unit/device/task_sanity.h"

static void post(void *arg, unsigned worker, struct dev_msg *m)
{
	struct world *w = arg;

	assert_int_equal(worker, 0);
	m->next = NULL;
	*w->mail_end = m;
	w->mail_end = &m->next;
}

static void *buf_get(void *arg, unsigned worker, size_t len)
{
	struct world *w = arg;

	(void)worker;
	if (w->limit && len > w->limit - w->buffers)
		return NULL;
	w->buffers += len;
	return malloc(len);
}

static void buf_put(void *arg, unsigned worker, void *buf, size_t len)
{
	struct world *w = arg;

	(void)worker;
	w->buffers -= len;
	free(buf);
}

static void rearm(void *arg, unsigned worker)
{
	struct world *w = arg;

	(void)worker;
	w->clock = 0;
}

static struct bs *protect(struct bs *data, uint8_t type)
{
	struct bs_protect_config cfg = { .data = data, .type = type };
	void *pi = calloc(BLOCKS, 8);

	cfg.pi = bs_ram_new("ram:pi", pi, BLOCKS * 8, 8, free, pi);
	return bs_protect_new(&cfg);
}

static void begin(struct world *w)
{
	const struct tgt_portal_group_config group = { .tag = TAG };
	const struct tgt_target_config target = { .name = TARGET };
	struct tgt_directory *d = tgt_directory_new();

	assert_int_equal(tgt_portal_group_add(d, &group), 0);
	assert_int_equal(tgt_target_add(d, &target), 0);
	assert_int_equal(tgt_target_portal_group(d, 0, 0), 0);
	assert_int_equal(tgt_begin(w->tgt, d), 0);
}

/* The medium of the last world: a simulation opens thousands, and with sanitizers fresh
 * memory of this size costs more than what happens in most of them. */
static void *spare;

static void put_medium(void *medium)
{
	free(spare);
	spare = medium;
}

static uint8_t *get_medium(void)
{
	uint8_t *medium = spare ? spare : malloc(BLOCKS * BLOCK);

	spare = NULL;
	assert_non_null(medium);
	return memset(medium, 0, BLOCKS * BLOCK);
}

static void open_on(struct world *w,
		    void (*seen)(void *arg, const struct bs_req *req),
		    void *arg, bool held, uint8_t type)
{
	struct dev_lu_config lu = { .lun = 0 };
	struct bs *store;

	w->mail_end = &w->mail;
	w->medium = get_medium();
	store = bs_ram_new("ram", w->medium, BLOCKS * BLOCK, BLOCK, put_medium,
			   w->medium);
	if (type)
		store = protect(store, type);
	if (seen)
		store = bs_trace_new(store, seen, arg);
	if (held)
		store = w->hold = bs_hold_new(store);
	tgt_config_default(&w->cfg);
	w->cfg.env = (struct dev_env){ .nworkers = 1,
				       .post = post,
				       .give_way = post,
				       .buf_get = buf_get,
				       .buf_put = buf_put,
				       .buf_common = w->common,
				       .buf_reserve = w->reserve,
				       .buf_burst = w->burst,
				       .arg = w };
	w->cfg.rearm = rearm;
	w->cfg.arg = w;
	w->clock = XTIME_NEVER;
	if (!w->pings)
		w->cfg.idle_time = XTIME_NEVER;
	w->cfg.trace = w->trace;
	if (w->connections)
		w->cfg.want.max_connections = w->connections;
	w->cfg.want.error_recovery_level = w->level;
	if (w->level == 2)
		w->cfg.want.default_time2retain = 20;
	if (w->any_order)
		w->cfg.want.data_pdu_in_order =
			w->cfg.want.data_sequence_in_order = false;
	w->server = dev_server_new(&w->cfg.env, 1u << 20);
	assert_int_equal(dev_lu_add(w->server, &lu, store), 0);
	w->cfg.server = w->server;
	w->tgt = tgt_new(&w->cfg);
	begin(w);
}

void world_run_clock(struct world *w, xtime now)
{
	struct tgt_worker *worker = tgt_worker(w->tgt, 0);

	if (w->clock > now)
		return;
	tgt_worker_expire(worker, now);
	w->clock = tgt_worker_deadline(worker);
}

void world_open(struct world *w)
{
	memset(w, 0, sizeof(*w));
	open_on(w, NULL, NULL, false, 0);
}

void world_open_wide(struct world *w, uint16_t connections)
{
	memset(w, 0, sizeof(*w));
	w->connections = connections;
	open_on(w, NULL, NULL, false, 0);
}

void world_open_level(struct world *w, uint8_t level)
{
	memset(w, 0, sizeof(*w));
	w->level = level;
	open_on(w, NULL, NULL, false, 0);
}

void world_open_recovery(struct world *w, uint8_t level, uint16_t connections,
			 struct trace *trace)
{
	memset(w, 0, sizeof(*w));
	w->level = level;
	w->connections = connections;
	w->pings = w->any_order = true;
	w->trace = trace;
	open_on(w, NULL, NULL, false, 0);
}

void world_open_held(struct world *w)
{
	memset(w, 0, sizeof(*w));
	open_on(w, NULL, NULL, true, 0);
}

void world_open_seen(struct world *w,
		     void (*seen)(void *arg, const struct bs_req *req),
		     void *arg)
{
	memset(w, 0, sizeof(*w));
	open_on(w, seen, arg, false, 0);
}

void world_open_protected(struct world *w, uint8_t type)
{
	memset(w, 0, sizeof(*w));
	open_on(w, NULL, NULL, false, type);
}

static void see_nothing(void *arg, const struct bs_req *req)
{
	(void)arg;
	(void)req;
}

void world_open_limited(struct world *w, size_t common, size_t reserve,
			size_t burst)
{
	memset(w, 0, sizeof(*w));
	w->common = common;
	w->reserve = reserve;
	w->burst = burst;
	open_on(w, see_nothing, NULL, false, 0);
}

void world_run_mail(struct world *w)
{
	while (w->mail) {
		struct dev_msg *m = w->mail;

		w->mail = m->next;
		if (!w->mail)
			w->mail_end = &w->mail;
		m->run(m);
	}
	check_tasks(w->server, 0);
}

void world_close(struct world *w)
{
	world_run_mail(w);
	assert_true(tgt_worker_idle(tgt_worker(w->tgt, 0)));
	assert_int_equal(w->buffers, 0);
	tgt_free(w->tgt);
	dev_server_free(w->server);
}

/* ---- initiators ---- */

static void on_async(void *arg, const struct iscsi_async *a)
{
	(void)arg;
	(void)a;
}

static void on_rearm(void *arg)
{
	(void)arg;
}

void world_host_config(struct world *w, struct ini_config *cfg, unsigned depth)
{
	ini_config_default(cfg);
	strcpy(cfg->login.id.initiator_name, INITIATOR);
	strcpy(cfg->login.id.target_name, TARGET);
	cfg->login.id.isid[0] = 0x80;
	cfg->login.id.isid[5] = (uint8_t)w->isid++;
	cfg->depth = depth;
	cfg->idle_time = XTIME_NEVER;
	cfg->async = on_async;
	cfg->rearm = on_rearm;
}

struct ini_session *world_connect(struct world *w, struct wire *wire,
				  struct sim_transport ends[2],
				  enum sim_way way, struct ini_config *cfg)
{
	const struct tgt_conn_info info = { .peer = "sim:1",
					    .local = "sim:3260",
					    .portal_group = TAG };
	struct ini_session *ini;

	for (unsigned i = 0; i < 2; i++)
		sim_transport_init(&ends[i], wire, i, way);
	cfg->login.want.rdma_extensions = way != SIM_TCP;
	if (way == SIM_ISER_FIRST) /* RFC 7145 §6.1 */
		cfg->login.header_digest_crc_ok =
			cfg->login.data_digest_crc_ok = false;
	ini = ini_new(cfg, sim_transport_dm(&ends[0]));
	assert_non_null(ini);
	assert_int_equal(tgt_conn_accept(tgt_worker(w->tgt, 0),
					 sim_transport_dm(&ends[1]), &info,
					 w->now),
			 0);
	sim_transport_go(&ends[0]);
	sim_transport_go(&ends[1]);
	ini_start(ini, w->now);
	return ini;
}

void world_disconnect(struct ini_session *ini, struct wire *wire,
		      struct sim_transport ends[2])
{
	ini_free(ini);
	for (unsigned i = 0; i < 2; i++)
		sim_transport_fini(&ends[i]);
	wire_fini(wire);
}
