/* SPDX-License-Identifier: BSD-2-Clause */
/* world.c: see world.h. */
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#include "backstore/protect.h"
#include "base/bytes.h"
#include "cmocka_all.h"

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

static void no_rearm(void *arg, unsigned worker)
{
	(void)arg;
	(void)worker;
}

static struct bs *protect(struct bs *data, uint8_t type)
{
	struct bs_protect_config cfg = { .data = data, .type = type };
	void *pi = calloc(BLOCKS, 8);

	cfg.pi = bs_ram_new("ram:pi", pi, BLOCKS * 8, 8, free, pi);
	return bs_protect_new(&cfg);
}

static void open_on(struct world *w,
		    void (*seen)(void *arg, const struct bs_req *req),
		    void *arg, bool held, uint8_t type)
{
	struct dev_lu_config lu = { .lun = 0 };
	struct tgt_node_config node = { .name = TARGET };
	struct bs *store;

	memset(w, 0, sizeof(*w));
	w->mail_end = &w->mail;
	w->medium = calloc(BLOCKS, BLOCK);
	store = bs_ram_new("ram", w->medium, BLOCKS * BLOCK, BLOCK, free,
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
				       .buf_get = buf_get,
				       .buf_put = buf_put,
				       .arg = w };
	w->cfg.rearm = no_rearm;
	w->cfg.arg = w;
	w->cfg.idle_time = XTIME_NEVER;
	w->server = dev_server_new(&w->cfg.env, 1u << 20);
	assert_int_equal(dev_lu_add(w->server, &lu, store), 0);
	node.server = w->server;
	w->tgt = tgt_new(&w->cfg);
	assert_int_equal(tgt_node_add(w->tgt, &node), 0);
}

void world_open(struct world *w)
{
	open_on(w, NULL, NULL, false, 0);
}

void world_open_held(struct world *w)
{
	open_on(w, NULL, NULL, true, 0);
}

void world_open_seen(struct world *w,
		     void (*seen)(void *arg, const struct bs_req *req),
		     void *arg)
{
	open_on(w, seen, arg, false, 0);
}

void world_open_protected(struct world *w, uint8_t type)
{
	open_on(w, NULL, NULL, false, type);
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
}

void world_close(struct world *w)
{
	world_run_mail(w);
	assert_true(tgt_worker_idle(tgt_worker(w->tgt, 0)));
	assert_int_equal(w->buffers, 0);
	tgt_free(w->tgt);
	dev_server_free(w->server);
}
