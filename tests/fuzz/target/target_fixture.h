/* SPDX-License-Identifier: BSD-2-Clause */
/* target_fixture.h: a target (role, device, a ram LU that holds its I/O) with a
 * connection of the fuzzer. */
#ifndef TESTS_FUZZ_TARGET_FIXTURE_H
#define TESTS_FUZZ_TARGET_FIXTURE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "device/device.h"
#include "device/task.h"
#include "target/directory.h"
#include "target/target.h"

#define BLOCKS	   64u
#define POOL_BYTES (4u << 20)

struct target_fixture {
	struct tgt *tgt;
	struct dev_server *server;
	struct bs *hold;
	struct dev_msg *messages, **messages_end;
	size_t buffers;
	xtime now;
};

static inline void require(bool ok)
{
	if (!ok)
		abort();
}

/* ---- call-backs of the rooms ---- */

static inline void post(void *arg, unsigned worker, struct dev_msg *m)
{
	struct target_fixture *f = arg;

	require(worker == 0);
	m->next = NULL;
	*f->messages_end = m;
	f->messages_end = &m->next;
}

static inline void *buf_get(void *arg, unsigned worker, size_t len)
{
	struct target_fixture *f = arg;
	void *buf;

	(void)worker;
	if (len > POOL_BYTES - f->buffers)
		return NULL;
	buf = malloc(len);
	if (buf)
		f->buffers += len;
	return buf;
}

static inline void buf_put(void *arg, unsigned worker, void *buf, size_t len)
{
	struct target_fixture *f = arg;

	(void)worker;
	f->buffers -= len;
	free(buf);
}

/* ---- the fixture ---- */

static inline void open_store(struct target_fixture *f)
{
	const struct dev_lu_config lu = { .lun = 0 };
	uint8_t *memory = calloc(BLOCKS, 512);
	struct bs *ram;

	require(memory != NULL);
	ram = bs_ram_new("ram:32K", memory, BLOCKS * 512u, 512, free, memory);
	require(ram != NULL);
	f->hold = bs_hold_new(ram);
	require(f->hold != NULL);
	require(dev_lu_add(f->server, &lu, f->hold) == 0);
}

static inline void fixture_open(struct target_fixture *f)
{
	static const struct tgt_portal_group_config group = { .tag = 1 };
	static const struct tgt_target_config target = {
		.name = "iqn.2026-01.org.example:disk"
	};
	struct tgt_directory *d = tgt_directory_new();
	struct tgt_config cfg;

	memset(f, 0, sizeof(*f));
	f->now = XTIME_S;
	tgt_config_default(&cfg);
	cfg.env = (struct dev_env){ .nworkers = 1,
				    .post = post,
				    .give_way = post,
				    .buf_get = buf_get,
				    .buf_put = buf_put,
				    .arg = f };
	cfg.depth = 16;
	f->messages_end = &f->messages;
	f->server = dev_server_new(&cfg.env, 1u << 20);
	require(f->server != NULL);
	open_store(f);
	cfg.server = f->server;
	f->tgt = tgt_new(&cfg);
	require(f->tgt && d && tgt_portal_group_add(d, &group) == 0);
	require(tgt_target_add(d, &target) == 0);
	require(tgt_target_portal_group(d, 0, 0) == 0);
	require(tgt_begin(f->tgt, d) == 0);
}

static inline void fixture_accept(struct target_fixture *f, struct dm_conn *dm)
{
	const struct tgt_conn_info info = { .peer = "192.0.2.9:1",
					    .local = "192.0.2.9",
					    .portal_group = 1 };

	require(tgt_conn_accept(tgt_worker(f->tgt, 0), dm, &info, 0) == 0);
}

static inline void fixture_deliver_messages(struct target_fixture *f)
{
	while (f->messages) {
		struct dev_msg *m = f->messages;

		f->messages = m->next;
		if (!f->messages)
			f->messages_end = &f->messages;
		m->run(m);
	}
}

static inline void fixture_release_io(struct target_fixture *f)
{
	while (bs_hold_waiting(f->hold))
		bs_hold_release(f->hold, bs_hold_waiting(f->hold));
	fixture_deliver_messages(f);
}

/* Advances the clock until all timeouts have expired. */
static inline void fixture_wait(struct target_fixture *f)
{
	f->now += 20 * XTIME_S;
	tgt_worker_expire(tgt_worker(f->tgt, 0), f->now);
	fixture_deliver_messages(f);
}

/* Closes the connection and checks that no object of it remains. */
static inline void fixture_close(struct target_fixture *f)
{
	fixture_release_io(f);
	require(tgt_worker_idle(tgt_worker(f->tgt, 0)));
	require(f->buffers == 0);
	tgt_free(f->tgt);
	dev_server_free(f->server);
}

#endif
