/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_rcap.h: two queue pairs connected in memory, without a wire: the smallest
 * provider that follows rcap/rcap.h. Requests that are posted at one end are
 * executed at the other end when the test calls loop_rcap_run.
 */
#ifndef TESTS_SIM_LOOP_RCAP_H
#define TESTS_SIM_LOOP_RCAP_H

#include "rcap/rcap.h"
#include "sim/regions.h"

#define LOOP_REGIONS 256

struct loop_end {
	struct rcap_qp qp;
	struct loop_end *peer;
	struct list sq, recvs;
	struct sim_region regions[LOOP_REGIONS];
	uint32_t next_stag;
	bool ending; /* the user, or the peer, closes */
	int err;
};

struct loop_rcap {
	struct loop_end end[2]; /* active, passive */
	bool started;
};

void loop_rcap_init(struct loop_rcap *l);
/* loop_rcap_run executes all posted requests, and returns whether there was
 * one. The connection request carries private_data. */
bool loop_rcap_run(struct loop_rcap *l, const uint8_t *private_data,
		   size_t len);

#endif
