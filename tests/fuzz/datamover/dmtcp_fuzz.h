/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmtcp_fuzz.h: one end of datamover/tcp in full feature phase with a small
 * role, and the fuzzer as its peer. Input: flags, size of the pieces in which
 * the rest arrives, then the bytes of the connection.
 */
#ifndef TESTS_FUZZ_DMTCP_FUZZ_H
#define TESTS_FUZZ_DMTCP_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "datamover/tcp/dmtcp.h"
#include "sim/dm_roles.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum fuzz_flag {
	FUZZ_INITIAL_R2T = 0x01,
	FUZZ_IMMEDIATE = 0x02,
	FUZZ_DATA_DIGEST = 0x04,
	FUZZ_FETCH_LITTLE = 0x08, /* output is slow */
	FUZZ_LARGE = 0x10,	  /* large PDUs and bursts */
	FUZZ_RECOVERY = 0x20,	  /* ErrorRecoveryLevel 1 */
	FUZZ_ANY_ORDER = 0x40, /* DataPDUInOrder=No, DataSequenceInOrder=No */
	FUZZ_MANY_R2TS = 0x80,
};

struct fuzz_end {
	struct dmtcp_conn *conn;
	struct stream_host host;
	struct fake_role role;
	uint8_t flags;
	bool fake_closed;
};

static void fuzz_kick(struct stream_host *host)
{
	(void)host;
}

static inline struct iscsi_params fuzz_params(uint8_t flags)
{
	struct iscsi_params p;
	bool large = flags & FUZZ_LARGE;

	iscsi_params_defaults(&p);
	p.initial_r2t = flags & FUZZ_INITIAL_R2T;
	p.immediate_data = flags & FUZZ_IMMEDIATE;
	p.data_digest = flags & FUZZ_DATA_DIGEST;
	p.max_recv_dsl = p.max_send_dsl = large ? 65536 : 512;
	p.first_burst_length = large ? 65536 : 1024;
	p.max_burst_length = large ? 131072 : 2048;
	p.max_outstanding_r2t = flags & FUZZ_MANY_R2TS ? 65535 : 2;
	p.data_pdu_in_order = p.data_sequence_in_order =
		!(flags & FUZZ_ANY_ORDER);
	p.error_recovery_level = flags & FUZZ_RECOVERY ? 1 : 0;
	return p;
}

static inline bool fuzz_is_up(const struct fuzz_end *e)
{
	int err;

	return stream_fate_of(&dmtcp_stream_ops, e->conn, &err) == STREAM_GO;
}

static inline void fuzz_fetch(struct fuzz_end *e)
{
	struct iovec iov[64];
	unsigned n;

	while ((n = dmtcp_stream_ops.tx_what(e->conn, iov, 64))) {
		size_t len = bufv_of(iov, n).len;
		uint8_t sum = 0;

		for (unsigned i = 0; i < n;
		     i++) /* the sanitizer checks each byte */
			for (size_t k = 0; k < iov[i].iov_len; k += 61)
				sum ^= ((const uint8_t *)iov[i].iov_base)[k];
		len = e->flags & FUZZ_FETCH_LITTLE ? MIN(len, 100) : len;
		dmtcp_stream_ops.tx_done(e->conn, len, XTIME_S + sum);
		if (e->flags & FUZZ_FETCH_LITTLE)
			break;
	}
}

static inline void fuzz_feed(struct fuzz_end *e, const uint8_t *p, size_t n)
{
	while (n > 0 && fuzz_is_up(e)) {
		struct iovec iov[16];
		unsigned k = dmtcp_stream_ops.rx_where(e->conn, iov, 16);
		struct bufv v = bufv_of(iov, k);
		size_t take = MIN(n, v.len);

		if (k == 0)
			return;
		bufv_copy_in(&v, 0, p, take);
		dmtcp_stream_ops.rx_done(e->conn, take, XTIME_S);
		p += take;
		n -= take;
	}
}

static inline void fuzz_login(struct fuzz_end *e, enum iscsi_role role)
{
	struct iscsi_pdu p = { .final = true, .itt = 1 };
	uint8_t bhs[ISCSI_BHS_LEN];

	p.login.transit = true;
	p.login.csg = 1;
	p.login.nsg = 3;
	p.op = role == ISCSI_TARGET ? ISCSI_LOGIN_REQUEST
				    : ISCSI_LOGIN_RESPONSE;
	p.immediate = role == ISCSI_TARGET;
	if (role == ISCSI_INITIATOR)
		fake_login(&e->role);
	iscsi_bhs_encode(&p, bhs);
	fuzz_feed(e, bhs, sizeof(bhs));
	fuzz_fetch(e);
}

static inline bool fuzz_begin(struct fuzz_end *e, enum iscsi_role role,
			      uint8_t flags)
{
	struct iscsi_params params = fuzz_params(flags);
	struct dmtcp_config cfg;

	memset(e, 0, sizeof(*e));
	e->host.kick = fuzz_kick;
	dmtcp_config_default(&cfg, role);
	cfg.lookahead = 16384;
	e->conn = dmtcp_new(&cfg, &e->host);
	if (!e->conn)
		return false;
	if (role == ISCSI_TARGET)
		fake_target_init(&e->role, dmtcp_dm(e->conn), &params);
	else
		fake_initiator_init(&e->role, dmtcp_dm(e->conn), &params);
	fuzz_login(e, role);
	e->flags = flags;
	return true;
}

static inline void fuzz_pieces(struct fuzz_end *e, const uint8_t *p, size_t n,
			       size_t piece)
{
	while (n > 0 && fuzz_is_up(e)) {
		size_t now = piece ? MIN(n, piece) : n;

		fuzz_feed(e, p, now);
		fuzz_fetch(e);
		p += now;
		n -= now;
	}
}

/* Time passes in which the peer sends nothing: the end asks again for what is missing,
 * and gives up. */
static inline void fuzz_wait(struct fuzz_end *e)
{
	for (unsigned i = 0; i < 40 && fuzz_is_up(e); i++) {
		xtime at = stream_deadline_of(&dmtcp_stream_ops, e->conn);

		if (at == XTIME_NEVER)
			return;
		dmtcp_stream_ops.expire(e->conn, at);
		fuzz_fetch(e);
	}
}

static inline void fuzz_end(struct fuzz_end *e)
{
	fuzz_wait(e);
	dmtcp_stream_ops.closed(e->conn, ERR_RESET, XTIME_S);
	if (e->role.terminated != 1)
		abort();
	dmtcp_free(e->conn);
	fake_role_fini(&e->role);
}

#endif
