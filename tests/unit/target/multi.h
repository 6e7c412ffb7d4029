/* SPDX-License-Identifier: BSD-2-Clause */
/* multi.h: a session of three connections on the fixture. */
#ifndef TESTS_TARGET_MULTI_H
#define TESTS_TARGET_MULTI_H

#include <string.h>

#include "cmocka_all.h"
#include "fixture.h"
#include "iscsi/login.h"

#define CONNS 3u

static inline void three(struct tgt_config *cfg)
{
	cfg->want.max_connections = CONNS;
}

/* A session of CONNS connections with the CIDs 0, 1, 2, and its CmdSN. */
struct multi {
	struct fixture *r;
	struct peer *p[CONNS + 1];
	uint16_t tsih;
	uint32_t cmdsn;
};

static const char join_keys[] = "InitiatorName=" FIXTURE_INI "\0"
				"SessionType=Normal\0"
				"TargetName=" FIXTURE_TARGET "\0"
				"MaxRecvDataSegmentLength=8192";

static inline uint16_t log_in(struct peer *p, uint16_t tsih, uint16_t cid,
			      const char *keys, size_t len)
{
	struct iscsi_pdu pdu = { .op = ISCSI_LOGIN_REQUEST,
				 .immediate = true,
				 .final = true,
				 .cmdsn = p->cmdsn,
				 .dsl = (uint32_t)len };
	const uint8_t isid[6] = { 0x80, 1, 2, 3, 4, 1 };
	struct sent *s;

	pdu.login.transit = true;
	pdu.login.csg = 1;
	pdu.login.nsg = 3;
	pdu.login.tsih = tsih;
	pdu.login.cid = cid;
	memcpy(pdu.login.isid, isid, 6);
	peer_rx(p, &pdu, keys);
	fixture_settle(p->fixture);
	s = peer_expect(p, ISCSI_LOGIN_RESPONSE);
	return (uint16_t)(s->pdu.login.status_class << 8 |
			  s->pdu.login.status_detail);
}

static inline uint16_t add(struct multi *m, uint16_t cid)
{
	struct peer *p = peer_new(m->r, 0);
	uint16_t status = log_in(p, m->tsih, cid, join_keys, sizeof(join_keys));

	if (!status) {
		m->p[cid] = p;
		p->itt = 1000u * (cid + 1u); /* an ITT is the session's */
	}
	return status;
}

/* Sends a TEST UNIT READY with the next CmdSN on this connection. */
static inline void tur(struct multi *m, unsigned i)
{
	m->p[i]->cmdsn = m->cmdsn++;
	peer_tur(m->p[i]);
}

/* All that was sent on each connection is acknowledged, before it is asked for. */
static inline void acknowledge_all(struct multi *m)
{
	for (unsigned i = 0; i < CONNS; i++) {
		struct iscsi_pdu nop = { .op = ISCSI_NOP_OUT,
					 .immediate = true,
					 .final = true,
					 .itt = ISCSI_RESERVED_TAG,
					 .ttt = ISCSI_RESERVED_TAG,
					 .cmdsn = m->cmdsn };

		nop.expstatsn = m->p[i]->dm.numbers->statsn;
		peer_rx(m->p[i], &nop, NULL);
	}
	fixture_settle(m->r);
	for (unsigned i = 0; i < CONNS; i++)
		m->p[i]->next = m->p[i]->nsent;
}

/* Takes the unit attentions, each of which may be fenced. */
static inline void get_ready(struct multi *m)
{
	for (unsigned i = 0; i < 8; i++) {
		acknowledge_all(m);
		tur(m, 0);
		fixture_settle(m->r);
	}
	peer_expect_status(m->p[0], SCSI_GOOD);
}

static inline int open_multi_with(void **state, const char *reporting)
{
	static const char common[] = "InitiatorName=" FIXTURE_INI "\0"
				     "SessionType=Normal\0"
				     "TargetName=" FIXTURE_TARGET "\0"
				     "MaxConnections=8\0"
				     "InitialR2T=No\0"
				     "ImmediateData=Yes\0"
				     "MaxRecvDataSegmentLength=65536\0"
				     "iSCSIProtocolLevel=2\0"
				     "TaskReporting=";
	static struct multi m;
	char keys[512];
	size_t len = sizeof(common) - 1;
	uint32_t maxcmdsn;

	memcpy(keys, common, len);
	memcpy(keys + len, reporting, strlen(reporting) + 1);
	len += strlen(reporting) + 1;
	m = (struct multi){ .r = fixture_new(1, three) };
	m.p[0] = peer_new(m.r, 0);
	assert_int_equal(log_in(m.p[0], 0, 0, keys, len), 0);
	m.tsih = m.p[0]->sent[0].pdu.login.tsih;
	assert_int_equal(m.p[0]->params.max_connections, CONNS);
	assert_int_equal(add(&m, 1), 0);
	assert_int_equal(add(&m, 2), 0);
	m.cmdsn = m.p[0]->cmdsn;
	get_ready(&m);
	maxcmdsn = m.p[2]->dm.numbers->maxcmdsn;
	assert_int_equal(m.p[0]->dm.numbers->maxcmdsn, maxcmdsn);
	*state = &m;
	return 0;
}

static inline int open_multi(void **state)
{
	return open_multi_with(state, "RFC3720");
}

static inline int close_multi(void **state)
{
	struct multi *m = *state;

	fixture_free(m->r);
	return 0;
}

/* Answers the ping that the target has sent on p: all its responses came. */
static inline void acknowledge(struct multi *m, struct peer *p)
{
	struct iscsi_pdu nop = { .op = ISCSI_NOP_OUT,
				 .immediate = true,
				 .final = true,
				 .itt = ISCSI_RESERVED_TAG,
				 .cmdsn = m->cmdsn };

	nop.ttt = peer_expect(p, ISCSI_NOP_IN)->pdu.ttt;
	assert_int_not_equal(nop.ttt, ISCSI_RESERVED_TAG);
	nop.expstatsn = p->dm.numbers->statsn;
	peer_rx(p, &nop, NULL);
	fixture_settle(m->r);
}

#define MULTI(f) cmocka_unit_test_setup_teardown(f, open_multi, close_multi)

#endif
