/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_rcap.h: a queue pair (rcap/rcap.h) whose peer is the test. The test
 * controls all progress: posted requests stay until the test completes them, and
 * messages arrive when the test delivers them. The peer's memory is a table of
 * regions for RDMA Writes and Reads; the test may read and write the user's
 * registered memory through its STag, as a peer would.
 *
 * The queue pair aborts the test if the user breaks the rules of rcap.h: a
 * request that is posted twice, memory that changes while it is sent (unless
 * RCAP_UNSTABLE), more Reads in progress than ord.
 */
#ifndef TESTS_SIM_FAKE_RCAP_H
#define TESTS_SIM_FAKE_RCAP_H

#include "rcap/rcap.h"
#include "sim/regions.h"

#define FAKE_REGIONS 64
#define FAKE_POSTED  1024

struct fake_rcap {
	struct rcap_qp qp;
	/* posted requests that are not completed, oldest first */
	struct rcap_wr *posted[FAKE_POSTED];
	uint32_t sums[FAKE_POSTED];
	unsigned nposted;
	struct list recvs;
	unsigned nrecvs;
	struct sim_region local[FAKE_REGIONS]; /* the user's */
	struct sim_region remote[FAKE_REGIONS];
	struct iovec pieces[FAKE_REGIONS]; /* of remote, one each */
	uint32_t next_stag;
	/* requests of the user */
	bool accepted, rejected, disconnected, terminated;
	xtime grace; /* of its disconnect */
	int term_err;
	const char *term_why;
	uint8_t private_data[64]; /* of its accept */
	size_t private_len;
	uint16_t accept_ird, accept_ord;
	unsigned chains; /* posts of more than one request */
	unsigned most_reads;
	/* set by the test */
	unsigned fail_regs; /* the next so many fail: ERR_BUSY */
	bool lax;	    /* an access that the peer refuses ends it */
};

void fake_rcap_init(struct fake_rcap *f, uint16_t ird, uint16_t ord);

/* The start of a connection; a passive user gets the request first.
 * private_len 0: no private data. */
void fake_rcap_request(struct fake_rcap *f, const void *private_data,
		       size_t private_len);
void fake_rcap_establish(struct fake_rcap *f, const void *private_data,
			 size_t private_len);

/* Delivers a Send of the peer; stag 0: without Invalidate. Returns 0, or an
 * error that ended the connection: ERR_LIMIT (no receive is posted),
 * ERR_TOO_LONG, ERR_ACCESS (an invalid STag). */
int fake_rcap_deliver(struct fake_rcap *f, const void *bytes, size_t n,
		      uint32_t stag);

/* fake_rcap_complete completes the n oldest requests, and returns how many
 * existed. */
unsigned fake_rcap_complete(struct fake_rcap *f, unsigned n);
/* The i-th oldest request, or NULL; its bytes. */
struct rcap_wr *fake_rcap_wr(const struct fake_rcap *f, unsigned i);
size_t fake_rcap_bytes(const struct rcap_wr *wr, void *to, size_t max);

/* fake_rcap_close returns posted requests, removes regions, then calls
 * `closed`. */
void fake_rcap_close(struct fake_rcap *f, int err, const char *why);

/* The peer's memory: [base, base + n) of buf under stag. */
void fake_rcap_remote(struct fake_rcap *f, uint32_t stag, uint64_t base,
		      void *buf, size_t n);
/* An access of the peer to the user's memory: 0 or ERR_ACCESS. */
int fake_rcap_peer_write(struct fake_rcap *f, uint32_t stag, uint64_t to,
			 const void *bytes, size_t n);
int fake_rcap_peer_read(struct fake_rcap *f, uint32_t stag, uint64_t to,
			void *bytes, size_t n);
unsigned
fake_rcap_valid(const struct fake_rcap *f); /* valid STags of the user */

#endif
