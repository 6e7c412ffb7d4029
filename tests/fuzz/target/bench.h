/* SPDX-License-Identifier: BSD-2-Clause */
/* bench.h: a target (role, device, a ram LU that holds its I/O) with a
 * connection of the fuzzer. */
#ifndef TESTS_FUZZ_TARGET_BENCH_H
#define TESTS_FUZZ_TARGET_BENCH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "target/target.h"

#define BLOCKS	   64u
#define POOL_BYTES (4u << 20)

struct bench {
	struct tgt *tgt;
	struct dev_server *server;
	struct bs *hold;
	struct dev_msg *mail, **mail_end;
	size_t buffers;
	xtime now;
};

static inline void must(bool ok)
{
	if (!ok)
		abort();
}

/* ---- call-backs of the rooms ---- */

static inline void post(void *arg, unsigned worker, struct dev_msg *m)
{
	struct bench *b = arg;

	must(worker == 0);
	m->next = NULL;
	*b->mail_end = m;
	b->mail_end = &m->next;
}

static inline void *buf_get(void *arg, unsigned worker, size_t len)
{
	struct bench *b = arg;
	void *buf;

	(void)worker;
	if (len > POOL_BYTES - b->buffers)
		return NULL;
	buf = malloc(len);
	if (buf)
		b->buffers += len;
	return buf;
}

static inline void buf_put(void *arg, unsigned worker, void *buf, size_t len)
{
	struct bench *b = arg;

	(void)worker;
	b->buffers -= len;
	free(buf);
}

/* ---- the bench ---- */

static inline void open_store(struct bench *b)
{
	const struct dev_lu_config lu = { .lun = 0 };
	uint8_t *memory = calloc(BLOCKS, 512);
	struct bs *ram;

	must(memory != NULL);
	ram = bs_ram_new("ram:32K", memory, BLOCKS * 512u, 512, free, memory);
	must(ram != NULL);
	b->hold = bs_hold_new(ram);
	must(b->hold != NULL);
	must(dev_lu_add(b->server, &lu, b->hold) == 0);
}

static inline void bench_open(struct bench *b)
{
	struct tgt_node_config node = { .name = "iqn.2026-01.org.example:disk" };
	struct tgt_config cfg;

	memset(b, 0, sizeof(*b));
	b->now = XTIME_S;
	tgt_config_default(&cfg);
	cfg.env = (struct dev_env){ .nworkers = 1,
				    .post = post,
				    .buf_get = buf_get,
				    .buf_put = buf_put,
				    .arg = b };
	cfg.depth = 16;
	b->mail_end = &b->mail;
	b->server = dev_server_new(&cfg.env, 1u << 20);
	must(b->server != NULL);
	open_store(b);
	node.server = b->server;
	b->tgt = tgt_new(&cfg);
	must(b->tgt && tgt_node_add(b->tgt, &node) == 0);
}

static inline void bench_accept(struct bench *b, struct dm_conn *dm)
{
	const struct tgt_conn_info info = { "192.0.2.9:1", "192.0.2.9",
					    "192.0.2.1:3260" };

	must(tgt_conn_accept(tgt_worker(b->tgt, 0), dm, &info, 0) == 0);
}

static inline void bench_mail(struct bench *b)
{
	while (b->mail) {
		struct dev_msg *m = b->mail;

		b->mail = m->next;
		if (!b->mail)
			b->mail_end = &b->mail;
		m->run(m);
	}
}

static inline void bench_release_io(struct bench *b)
{
	while (bs_hold_waiting(b->hold))
		bs_hold_release(b->hold, bs_hold_waiting(b->hold));
	bench_mail(b);
}

/* Advances the clock until all timeouts have expired. */
static inline void bench_wait(struct bench *b)
{
	b->now += 20 * XTIME_S;
	tgt_worker_expire(tgt_worker(b->tgt, 0), b->now);
	bench_mail(b);
}

/* Closes the connection and checks that no object of it remains. */
static inline void bench_close(struct bench *b)
{
	bench_release_io(b);
	must(tgt_worker_idle(tgt_worker(b->tgt, 0)));
	must(b->buffers == 0);
	tgt_free(b->tgt);
	dev_server_free(b->server);
}

#endif
