/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_rcap.h: two queue pairs joined in memory, without a wire: the smallest
 * thing that keeps rcap/rcap.h's promises. What is posted at one end is carried
 * out at the other when the test says so.
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
	bool ending; /* the user, or the peer, wants to close */
	int err;
};

struct loop_rcap {
	struct loop_end end[2]; /* active, passive */
	bool started;
};

void loop_rcap_init(struct loop_rcap *l);
/* loop_rcap_run carries out what is posted until nothing is left. Returns
 * whether anything happened. private_data goes with the request. */
bool loop_rcap_run(struct loop_rcap *l, const uint8_t *private_data,
		   size_t len);

#endif
