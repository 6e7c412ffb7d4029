/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transport.h: one end of a connection on the virtual wire with the requested
 * datamover: iSCSI over TCP, iSER from the first byte, or iSER after a login over
 * TCP. The counterpart of net/conn.c.
 */
#ifndef TESTS_SIM_TRANSPORT_H
#define TESTS_SIM_TRANSPORT_H

#include "datamover/iser/dmiser.h"
#include "datamover/tcp/dmtcp.h"
#include "rcap/iwarp/iwarp.h"
#include "sim/wire.h"

enum sim_way {
	SIM_TCP,
	SIM_ISER_FIRST,
	SIM_ISER_SWITCH,
	SIM_WAYS
};

struct sim_transport {
	struct wire *wire;
	unsigned end;
	enum sim_way way;
	enum iscsi_role role;
	unsigned rules;
	bool crc, markers;
	struct dmtcp_conn *dmtcp;
	struct iwarp *iwarp;
	struct dmiser_conn *dmiser;
};

void sim_transport_init(struct sim_transport *t, struct wire *wire,
			unsigned end, enum sim_way way);
struct dm_conn *sim_transport_dm(struct sim_transport *t);
/* sim_transport_go attaches the transport to the wire; the role must be attached
 * already. */
void sim_transport_go(struct sim_transport *t);
void sim_transport_fini(struct sim_transport *t);
const char *sim_way_name(enum sim_way way);

#endif
