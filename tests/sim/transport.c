/* SPDX-License-Identifier: BSD-2-Clause */
/* transport.c: see transport.h. */
#include "sim/transport.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

const char *sim_way_name(enum sim_way way)
{
	static const char *const names[] = { "tcp", "iser first",
					     "iser switch" };

	return names[way];
}

static void make_rdma(struct sim_transport *t, struct dm_conn *stream_dm)
{
	struct dmiser_config d;
	struct iwarp_config w;
	uint8_t cm[DMISER_CM_LEN];

	dmiser_config_default(&d, t->role);
	d.rules = t->rules;
	d.stream_dm = stream_dm;
	iwarp_config_default(&w, t->role == ISCSI_INITIATOR);
	w.wish.want_crc = t->crc;
	w.wish.want_markers = t->markers;
	w.wish.ird = d.ird;
	w.wish.ord = d.ord;
	w.lookahead = 4096;
	w.emss = 1400;
	w.peer_to_peer = true;
	w.seed = 77;
	if (w.active && (d.rules & DMISER_CM_HEADER)) {
		dmiser_cm_request(true, cm);
		w.private_data = cm;
		w.private_len = sizeof(cm);
	}
	t->iwarp = iwarp_new(&w, wire_host(t->wire, t->end), NULL, 0,
			     t->wire->now);
	assert_non_null(t->iwarp);
	t->dmiser = dmiser_new(&d, iwarp_qp(t->iwarp));
	assert_non_null(t->dmiser);
}

static int prepare(void *arg, struct dm_conn *stream_dm,
		   const struct iscsi_params *params,
		   const struct dm_resources *r)
{
	struct sim_transport *t = arg;

	make_rdma(t, stream_dm);
	return dmiser_take_over(t->dmiser, params, r);
}

static void drained(void *arg)
{
	struct sim_transport *t = arg;
	size_t n;

	dmtcp_left(t->dmtcp, &n);
	/* no data may arrive before the Login Response */
	assert_int_equal(n, 0);
	wire_attach(t->wire, t->end, &iwarp_stream_ops, t->iwarp);
}

static void closed_early(void *arg, int err, xtime now)
{
	struct sim_transport *t = arg;

	iwarp_stream_ops.closed(t->iwarp, err, now);
}

void sim_transport_init(struct sim_transport *t, struct wire *wire,
			unsigned end, enum sim_way way)
{
	struct dmtcp_config dc;

	memset(t, 0, sizeof(*t));
	t->wire = wire;
	t->end = end;
	t->way = way;
	t->role = end ? ISCSI_TARGET : ISCSI_INITIATOR;
	t->rules = way == SIM_ISER_FIRST ? DMISER_LINUX : DMISER_STRICT;
	t->crc = true;
	if (way == SIM_ISER_FIRST) {
		make_rdma(t, NULL);
		return;
	}
	dmtcp_config_default(&dc, t->role);
	if (way == SIM_ISER_SWITCH)
		dc.rdma = (struct dmtcp_rdma){ .prepare = prepare,
					       .drained = drained,
					       .closed = closed_early,
					       .arg = t };
	t->dmtcp = dmtcp_new(&dc, wire_host(wire, end));
	assert_non_null(t->dmtcp);
}

struct dm_conn *sim_transport_dm(struct sim_transport *t)
{
	return t->dmtcp ? dmtcp_dm(t->dmtcp) : dmiser_dm(t->dmiser);
}

void sim_transport_go(struct sim_transport *t)
{
	if (t->dmtcp)
		wire_attach(t->wire, t->end, &dmtcp_stream_ops, t->dmtcp);
	else
		wire_attach(t->wire, t->end, &iwarp_stream_ops, t->iwarp);
}

void sim_transport_fini(struct sim_transport *t)
{
	dmiser_free(t->dmiser);
	iwarp_free(t->iwarp);
	dmtcp_free(t->dmtcp);
}
