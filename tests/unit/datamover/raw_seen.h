/* SPDX-License-Identifier: BSD-2-Clause */
/* raw_seen.h: raw.h for tests that look at all PDUs that the end sent. */
#ifndef TESTS_DATAMOVER_RAW_SEEN_H
#define TESTS_DATAMOVER_RAW_SEEN_H

#include "raw.h"

#define SEEN_MAX 64
#define DSL	 8192u

static struct raw r;

/* The PDUs that the last call of fetch took. */
static struct iscsi_pdu seen[SEEN_MAX];
static uint8_t seen_bytes[SEEN_MAX][DSL];
static unsigned nseen;

static void fetch(void)
{
	static uint8_t all[1u << 20];
	size_t len = 0, at = 0;
	struct iovec iov[64];
	unsigned n;

	nseen = 0;
	while ((n = dmtcp_stream_ops.tx_what(r.conn, iov, 64))) {
		struct bufv v = bufv_of(iov, n);

		len += bufv_copy_out(&v, 0, all + len, sizeof(all) - len);
		dmtcp_stream_ops.tx_done(r.conn, v.len, XTIME_S);
	}
	while (at < len) {
		struct iscsi_pdu *p = &seen[nseen];

		assert_true(nseen < SEEN_MAX);
		assert_int_equal(iscsi_bhs_decode(p, all + at), 0);
		at += ISCSI_BHS_LEN;
		memcpy(seen_bytes[nseen++], all + at, MIN(p->dsl, DSL));
		at += round_up4(p->dsl);
		at += p->dsl && r.params.data_digest ? ISCSI_DIGEST_LEN : 0;
	}
}

#endif
