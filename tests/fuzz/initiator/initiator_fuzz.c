/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * initiator_fuzz.c: the initiator (datamover/tcp and role) with any bytes of a
 * target, from the login on. The first byte selects the pieces in which the bytes
 * arrive, and whether a correct login precedes them, so that commands are in
 * progress.
 */
#include "datamover/tcp/dmtcp.h"
#include "fuzz/initiator/initiator_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct stream_host host;
static struct dmtcp_conn *dm;

static void kick(struct stream_host *h)
{
	(void)h;
}

static void send_all(void)
{
	struct iovec iov[64];
	unsigned n;

	while ((n = dmtcp_stream_ops.tx_what(dm, iov, 64))) {
		size_t len = 0;

		for (unsigned i = 0; i < n; i++)
			len += iov[i].iov_len;
		dmtcp_stream_ops.tx_done(dm, len, 0);
	}
}

static bool feed_initiator(const uint8_t *p, size_t n)
{
	int err;

	while (n > 0 &&
	       stream_fate_of(&dmtcp_stream_ops, dm, &err) == STREAM_GO) {
		struct iovec iov[16];
		unsigned k = dmtcp_stream_ops.rx_where(dm, iov, 16);
		struct bufv v = bufv_of(iov, k);
		size_t took = bufv_copy_in(&v, 0, p, n);

		if (took == 0)
			return false;
		dmtcp_stream_ops.rx_done(dm, took, 0);
		send_all();
		p += took;
		n -= took;
	}
	return n == 0;
}

static void open_all(void)
{
	struct dmtcp_config dc;

	host.kick = kick;
	dmtcp_config_default(&dc, ISCSI_INITIATOR);
	dc.lookahead = 16384;
	dm = dmtcp_new(&dc, &host);
	fixture_open(dmtcp_dm(dm), false);
	send_all();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece;

	if (size < 1)
		return 0;
	piece = data[0] ? data[0] : size;
	data++;
	size--;
	open_all();
	while (size > 0) {
		size_t n = MIN(piece, size);

		if (!feed_initiator(data, n))
			break;
		data += n;
		size -= n;
	}
	dmtcp_stream_ops.closed(dm, 0, 0);
	fixture_close();
	dmtcp_free(dm);
	return 0;
}
