/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmiser_fuzz.h: one end of datamover/iser on a fake queue pair, under a small
 * role. Input: a byte of settings, then steps (fabric_fuzz.h).
 */
#ifndef TESTS_FUZZ_DMISER_FUZZ_H
#define TESTS_FUZZ_DMISER_FUZZ_H

#include "datamover/impl.h"
#include "fuzz/datamover/fabric_fuzz.h"
#include "sim/dm_roles.h"

enum fuzz_setting {
	FUZZ_STRICT = 0x01,
	FUZZ_SWITCHED = 0x02, /* the login went over TCP */
	FUZZ_HELLO = 0x04,
	FUZZ_INITIAL_R2T = 0x08,
	FUZZ_IMMEDIATE = 0x10,
	FUZZ_LITTLE = 0x20, /* small PDUs and bursts, iSER-ORD of 1 */
	FUZZ_NO_INVALIDATE = 0x40,
	FUZZ_LEVEL_2 = 0x80, /* ErrorRecoveryLevel */
};

struct fuzz_end {
	struct fuzz_fabric w;
	struct dmiser_conn *conn;
	struct dm_conn stream_dm;
	struct fake_role role;
	uint8_t settings;
};

static inline struct iscsi_params fuzz_params(uint8_t settings)
{
	struct iscsi_params p;
	bool little = settings & FUZZ_LITTLE;

	iscsi_params_defaults(&p);
	p.rdma_extensions = true;
	p.initial_r2t = settings & FUZZ_INITIAL_R2T;
	p.immediate_data = settings & FUZZ_IMMEDIATE;
	p.iser_hello_required = settings & FUZZ_HELLO;
	p.error_recovery_level = settings & FUZZ_LEVEL_2 ? 2 : 0;
	p.max_recv_dsl = p.max_send_dsl = little ? 512 : 2048;
	p.first_burst_length = little ? 1024 : 4096;
	p.max_burst_length = little ? 2048 : 16384;
	return p;
}

static inline void fuzz_login(struct fuzz_end *e, enum iscsi_role role)
{
	struct iscsi_pdu p = { .op = role == ISCSI_TARGET
					     ? ISCSI_LOGIN_REQUEST
					     : ISCSI_LOGIN_RESPONSE,
			       .immediate = role == ISCSI_TARGET,
			       .final = true };
	uint8_t bytes[ISER_HEADER_LEN + ISCSI_BHS_LEN] = { 0x10 };

	fuzz_up(&e->w);
	if (role == ISCSI_INITIATOR)
		fake_login(&e->role);
	iscsi_bhs_encode(&p, bytes + ISER_HEADER_LEN);
	fake_rcap_complete(&e->w.f, 100);
	fake_rcap_deliver(&e->w.f, bytes, sizeof(bytes), 0);
}

static inline bool fuzz_begin(struct fuzz_end *e, enum iscsi_role role,
			      const uint8_t *data, size_t size)
{
	const struct dm_resources res = { .max_tasks = FAKE_TASKS };
	struct iscsi_params params;
	struct dmiser_config cfg;
	bool target = role == ISCSI_TARGET;

	memset(e, 0, sizeof(*e));
	e->settings = data[0];
	params = fuzz_params(e->settings);
	fuzz_fabric_init(&e->w, target,
			 target && (e->settings & FUZZ_LITTLE) ? 1 : 4,
			 data + 1, size - 1);
	if (e->settings & FUZZ_NO_INVALIDATE)
		e->w.cm = 0xc0;
	dmiser_config_default(&cfg, role);
	cfg.rules = e->settings & FUZZ_STRICT ? DMISER_STRICT : DMISER_LINUX;
	if (e->settings & FUZZ_SWITCHED) {
		e->stream_dm.role = role;
		cfg.stream_dm = &e->stream_dm;
	}
	e->conn = dmiser_new(&cfg, &e->w.f.qp);
	if (!e->conn)
		return false;
	if (target)
		fake_target_init(&e->role,
				 cfg.stream_dm ? cfg.stream_dm
					       : dmiser_dm(e->conn),
				 &params);
	else
		fake_initiator_init(&e->role,
				    cfg.stream_dm ? cfg.stream_dm
						  : dmiser_dm(e->conn),
				    &params);
	if (!cfg.stream_dm) {
		fuzz_login(e, role);
		return true;
	}
	if (dmiser_take_over(e->conn, &params, &res))
		abort();
	dm_conn_go(&e->stream_dm, DM_FULL_FEATURE);
	e->role.logged_in = true;
	return true;
}

static inline void fuzz_end(struct fuzz_end *e)
{
	fake_rcap_close(&e->w.f, ERR_RESET, "the input is over");
	if (e->role.terminated != 1)
		abort();
	dmiser_free(e->conn);
	fake_role_fini(&e->role);
}

#endif
