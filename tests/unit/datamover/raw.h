/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw.h: one end of datamover/tcp under a small role; the test is the peer and
 * sends arbitrary bytes.
 */
#ifndef TESTS_DATAMOVER_RAW_H
#define TESTS_DATAMOVER_RAW_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "datamover/tcp/dmtcp.h"
#include "sim/dm_roles.h"

struct raw {
	struct dmtcp_conn *conn;
	struct stream_host host;
	struct fake_role role;
	struct iscsi_params params;
	unsigned kicks, sends;
	bool closed;
	/* the PDUs that the end sent: the last one and their number */
	struct iscsi_pdu out;
	uint8_t out_data[65536];
	unsigned nout;
};

static inline void raw_kick(struct stream_host *host)
{
	container_of(host, struct raw, host)->kicks++;
}

/* raw_feed passes n bytes to the end, in one read if there is room. */
static inline void raw_feed(struct raw *r, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n > 0) {
		struct iovec iov[16];
		struct bufv v;
		unsigned k = dmtcp_stream_ops.rx_where(r->conn, iov, 16);
		size_t take;

		if (k == 0)
			return; /* the end takes no more */
		v = bufv_of(iov, k);
		take = MIN(n, v.len);
		bufv_copy_in(&v, 0, p, take);
		dmtcp_stream_ops.rx_done(r->conn, take, XTIME_S);
		p += take;
		n -= take;
	}
}

/* raw_fetch takes all bytes that the end sends; without digests only. */
static inline void raw_fetch(struct raw *r)
{
	struct iovec iov[64];
	static uint8_t all[1u << 20];
	size_t len = 0, at = 0;
	unsigned n;

	while ((n = dmtcp_stream_ops.tx_what(r->conn, iov, 64))) {
		struct bufv v = bufv_of(iov, n);

		r->sends++;
		len += bufv_copy_out(&v, 0, all + len, sizeof(all) - len);
		dmtcp_stream_ops.tx_done(r->conn, v.len, XTIME_S);
	}
	for (; at + ISCSI_BHS_LEN <= len; r->nout++) {
		assert_int_equal(iscsi_bhs_decode(&r->out, all + at), 0);
		at += ISCSI_BHS_LEN + r->out.ahs_len;
		memcpy(r->out_data, all + at,
		       MIN(r->out.dsl, sizeof(r->out_data)));
		at += round_up4(r->out.dsl);
	}
}

static inline void raw_close(struct raw *r, int err)
{
	if (!r->closed)
		dmtcp_stream_ops.closed(r->conn, err, XTIME_S);
	r->closed = true;
}

/* raw_fate asks for the fate and closes the connection if that is the answer.
 * Returns the reason, or 1 if the connection continues. */
static inline int raw_fate(struct raw *r)
{
	int err = 0;

	if (stream_fate_of(&dmtcp_stream_ops, r->conn, &err) == STREAM_GO)
		return 1;
	raw_close(r, 0);
	assert_int_equal(r->role.terminated, 1);
	assert_int_equal(r->role.terminate_err, err);
	return err;
}

/* raw_pdu feeds one PDU with correct or (bad) wrong digests if those are
 * negotiated. */
enum raw_bad {
	RAW_GOOD,
	RAW_BAD_HEADER,
	RAW_BAD_DATA
};

static inline size_t raw_encode(struct raw *r, const struct iscsi_pdu *p,
				const void *data, enum raw_bad bad, uint8_t *to)
{
	bool full = r->role.logged_in;
	size_t n = ISCSI_BHS_LEN, pad = round_up4(p->dsl);

	iscsi_bhs_encode(p, to);
	to[4] = (uint8_t)(p->ahs_len / 4);
	memset(to + n, 0, p->ahs_len);
	n += p->ahs_len;
	if (full && r->params.header_digest) {
		put_le32(to + n,
			 crc32c_wire(crc32c_update(CRC32C_SEED, to, n)) ^
				 (bad == RAW_BAD_HEADER));
		n += 4;
	}
	memset(to + n, 0, pad);
	if (data && p->dsl)
		memcpy(to + n, data, p->dsl);
	if (full && r->params.data_digest && p->dsl) {
		uint32_t crc = crc32c_update(CRC32C_SEED, to + n, pad);

		put_le32(to + n + pad,
			 crc32c_wire(crc) ^ (bad == RAW_BAD_DATA));
		n += 4;
	}
	return n + pad;
}

static inline void raw_pdu(struct raw *r, const struct iscsi_pdu *p,
			   const void *data, enum raw_bad bad)
{
	static uint8_t bytes[1u << 20];

	raw_feed(r, bytes, raw_encode(r, p, data, bad, bytes));
}

static inline void raw_init(struct raw *r, enum iscsi_role role,
			    const struct iscsi_params *params)
{
	struct dmtcp_config cfg;

	memset(r, 0, sizeof(*r));
	r->params = *params;
	r->host.kick = raw_kick;
	dmtcp_config_default(&cfg, role);
	cfg.max_queued_control = 8192;
	r->conn = dmtcp_new(&cfg, &r->host);
	assert_non_null(r->conn);
	if (role == ISCSI_TARGET)
		fake_target_init(&r->role, dmtcp_dm(r->conn), params);
	else
		fake_initiator_init(&r->role, dmtcp_dm(r->conn), params);
}

/* raw_login enters the full feature phase, and forgets the PDUs. */
static inline void raw_login(struct raw *r)
{
	struct iscsi_pdu p = { .final = true, .itt = 1 };

	p.login.transit = true;
	p.login.csg = 1;
	p.login.nsg = 3;
	if (r->role.disk) {
		p.op = ISCSI_LOGIN_REQUEST;
		p.immediate = true;
	} else {
		fake_login(&r->role);
		p.op = ISCSI_LOGIN_RESPONSE;
	}
	raw_pdu(r, &p, NULL, RAW_GOOD);
	raw_fetch(r);
	assert_true(r->role.logged_in);
	r->nout = r->sends = 0;
}

static inline void raw_fini(struct raw *r)
{
	raw_close(r, 0);
	dmtcp_free(r->conn);
	fake_role_fini(&r->role);
}

static inline struct iscsi_params raw_params(void)
{
	struct iscsi_params p;

	iscsi_params_defaults(&p);
	p.max_recv_dsl = p.max_send_dsl = 8192;
	p.max_burst_length = 16384;
	p.first_burst_length = 8192;
	p.initial_r2t = false;
	return p;
}

#endif
