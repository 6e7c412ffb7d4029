/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target_fuzz.c: the whole target (datamover/tcp, target, device, a ram LU)
 * fed by one connection's bytes, from the first Login Request on. The first
 * byte of the input says how the stream is cut into reads and when held I/O
 * is let go; the rest is the stream.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datamover/tcp/dmtcp.h"
#include "target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BLOCKS	   64u
#define POOL_BYTES (4u << 20)

struct bench {
	struct stream_host host;
	struct tgt *tgt;
	struct dev_server *server;
	struct bs *hold;
	struct dmtcp_conn *dm;
	struct dev_msg *mail, **mail_end;
	size_t buffers;
	uint8_t seen; /* of what was sent: so that it is read */
	xtime now;
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* ---- what the rooms ask for ---- */

static void post(void *arg, unsigned worker, struct dev_msg *m)
{
	struct bench *b = arg;

	must(worker == 0);
	m->next = NULL;
	*b->mail_end = m;
	b->mail_end = &m->next;
}

static void *buf_get(void *arg, unsigned worker, size_t len)
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

static void buf_put(void *arg, unsigned worker, void *buf, size_t len)
{
	struct bench *b = arg;

	(void)worker;
	b->buffers -= len;
	free(buf);
}

static void kick(struct stream_host *h)
{
	(void)h;
}

/* ---- the bench ---- */

static void open_store(struct bench *b)
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

static void open_bench(struct bench *b)
{
	const struct tgt_conn_info info = { .peer = "192.0.2.9:1",
					    .peer_host = "192.0.2.9",
					    .local = "192.0.2.1:3260" };
	struct tgt_node_config node = { .name = "iqn.2026-01.org.example:disk" };
	struct dmtcp_config dm;
	struct tgt_config cfg;

	tgt_config_default(&cfg);
	cfg.env = (struct dev_env){ .nworkers = 1,
				    .post = post,
				    .buf_get = buf_get,
				    .buf_put = buf_put,
				    .arg = b };
	cfg.depth = 16;
	b->mail_end = &b->mail;
	b->host.kick = kick;
	b->server = dev_server_new(&cfg.env, 1u << 20);
	must(b->server != NULL);
	open_store(b);
	node.server = b->server;
	b->tgt = tgt_new(&cfg);
	must(b->tgt && tgt_node_add(b->tgt, &node) == 0);
	dmtcp_config_default(&dm, ISCSI_TARGET);
	dm.lookahead = 4096 + 2048;
	b->dm = dmtcp_new(&dm, &b->host);
	must(b->dm && tgt_conn_accept(tgt_worker(b->tgt, 0), dmtcp_dm(b->dm),
				      &info, 0) == 0);
}

static void run_mail(struct bench *b)
{
	while (b->mail) {
		struct dev_msg *m = b->mail;

		b->mail = m->next;
		if (!b->mail)
			b->mail_end = &b->mail;
		m->run(m);
	}
}

static void release_io(struct bench *b)
{
	while (bs_hold_waiting(b->hold))
		bs_hold_release(b->hold, bs_hold_waiting(b->hold));
	run_mail(b);
}

/* Everything that the target has to say goes out. */
static void drain_tx(struct bench *b)
{
	struct iovec iov[8];
	unsigned n;

	while ((n = dmtcp_stream_ops.tx_what(b->dm, iov, 8)) > 0) {
		size_t len = 0;

		for (unsigned i = 0; i < n; i++) {
			len += iov[i].iov_len;
			for (size_t j = 0; j < iov[i].iov_len; j += 64)
				b->seen ^= ((uint8_t *)iov[i].iov_base)[j];
		}
		dmtcp_stream_ops.tx_done(b->dm, len, b->now);
	}
}

static size_t feed(struct bench *b, const uint8_t *data, size_t size)
{
	struct iovec iov[8];
	unsigned n = dmtcp_stream_ops.rx_where(b->dm, iov, 8);
	size_t done = 0;

	for (unsigned i = 0; i < n && done < size; i++) {
		size_t len = iov[i].iov_len;

		if (len > size - done)
			len = size - done;
		memcpy(iov[i].iov_base, data + done, len);
		done += len;
	}
	if (done)
		dmtcp_stream_ops.rx_done(b->dm, done, b->now);
	return done;
}

static bool alive(const struct bench *b)
{
	int err;

	return dmtcp_stream_ops.fate(b->dm, &err) == STREAM_GO;
}

static void run_stream(struct bench *b, uint8_t how, const uint8_t *data,
		       size_t size)
{
	static const size_t cuts[] = { 1, 7, 48, 100, 512, 4096, 65536, 3 };
	size_t cut = cuts[how & 7], done;
	unsigned turn = 0;

	while (size && alive(b)) {
		done = feed(b, data, size < cut ? size : cut);
		if (!done)
			break;
		data += done;
		size -= done;
		run_mail(b);
		if ((turn++ & (how >> 3 & 3)) == 0)
			release_io(b);
		drain_tx(b);
	}
}

static void close_bench(struct bench *b, bool drain)
{
	struct tgt_worker *w = tgt_worker(b->tgt, 0);

	if (drain)
		tgt_worker_drain(w, b->now);
	for (int i = 0; i < 4; i++) {
		b->now += 20 * XTIME_S;
		tgt_worker_expire(w, b->now);
		run_mail(b);
		drain_tx(b);
	}
	dmtcp_stream_ops.closed(b->dm, 0, b->now);
	release_io(b);
	must(tgt_worker_idle(w));
	must(b->buffers == 0);
	dmtcp_free(b->dm);
	tgt_free(b->tgt);
	dev_server_free(b->server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bench b = { .now = XTIME_S };

	if (size < 1)
		return 0;
	open_bench(&b);
	run_stream(&b, data[0], data + 1, size - 1);
	close_bench(&b, (data[0] & 0x20) != 0);
	return 0;
}
