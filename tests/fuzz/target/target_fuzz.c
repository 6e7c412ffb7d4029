/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target_fuzz.c: the target (datamover/tcp, target, device, a ram LU) with the
 * bytes of one connection, from the first Login Request on. The first byte of
 * the input selects how the stream is cut into reads and when held I/O is
 * completed; the rest is the stream.
 */
#include "datamover/tcp/dmtcp.h"
#include "fuzz/target/target_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct stream {
	struct stream_host host;
	struct target_fixture fixture;
	struct dmtcp_conn *dm;
	uint8_t seen; /* sum of the sent bytes, so that all are read */
};

static void kick(struct stream_host *h)
{
	(void)h;
}

static void open_stream(struct stream *s)
{
	struct dmtcp_config dm;

	fixture_open(&s->fixture);
	s->host.kick = kick;
	dmtcp_config_default(&dm, ISCSI_TARGET);
	dm.lookahead = 4096 + 2048;
	s->dm = dmtcp_new(&dm, &s->host);
	require(s->dm != NULL);
	fixture_accept(&s->fixture, dmtcp_dm(s->dm));
}

/* Takes all output of the target. */
static void drain_tx(struct stream *s)
{
	struct iovec iov[8];
	unsigned n;

	while ((n = dmtcp_stream_ops.tx_what(s->dm, iov, 8)) > 0) {
		size_t len = 0;

		for (unsigned i = 0; i < n; i++) {
			len += iov[i].iov_len;
			for (size_t j = 0; j < iov[i].iov_len; j += 64)
				s->seen ^= ((uint8_t *)iov[i].iov_base)[j];
		}
		dmtcp_stream_ops.tx_done(s->dm, len, s->fixture.now);
	}
}

static size_t feed_target(struct stream *s, const uint8_t *data, size_t size)
{
	struct iovec iov[8];
	unsigned n = dmtcp_stream_ops.rx_where(s->dm, iov, 8);
	size_t done = 0;

	for (unsigned i = 0; i < n && done < size; i++) {
		size_t len = iov[i].iov_len;

		if (len > size - done)
			len = size - done;
		memcpy(iov[i].iov_base, data + done, len);
		done += len;
	}
	if (done)
		dmtcp_stream_ops.rx_done(s->dm, done, s->fixture.now);
	return done;
}

static bool alive(const struct stream *s)
{
	int err;

	return stream_fate_of(&dmtcp_stream_ops, s->dm, &err) == STREAM_GO;
}

static void run_stream(struct stream *s, uint8_t how, const uint8_t *data,
		       size_t size)
{
	static const size_t cuts[] = { 1, 7, 48, 100, 512, 4096, 65536, 3 };
	size_t cut = cuts[how & 7], done;
	unsigned turn = 0;

	while (size && alive(s)) {
		done = feed_target(s, data, size < cut ? size : cut);
		if (!done)
			break;
		data += done;
		size -= done;
		fixture_deliver_messages(&s->fixture);
		if ((turn++ & (how >> 3 & 3)) == 0)
			fixture_release_io(&s->fixture);
		drain_tx(s);
	}
}

static void close_stream(struct stream *s, bool drain)
{
	if (drain)
		tgt_worker_drain(tgt_worker(s->fixture.tgt, 0), s->fixture.now);
	for (int i = 0; i < 4; i++) {
		fixture_wait(&s->fixture);
		drain_tx(s);
	}
	dmtcp_stream_ops.closed(s->dm, 0, s->fixture.now);
	fixture_close(&s->fixture);
	dmtcp_free(s->dm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream s = { .seen = 0 };

	if (size < 1)
		return 0;
	open_stream(&s);
	run_stream(&s, data[0], data + 1, size - 1);
	close_stream(&s, (data[0] & 0x20) != 0);
	return 0;
}
