/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rbench.h: the messages between the two ends of iser rbench. The private data
 * of the client's request are the plan: the test and the size. Then each side
 * describes its memory region in a 16-byte Send, the client first. The measured
 * operations follow and, where the bandwidth of Sends is measured, credits from
 * the server. A run ends with a solicited Send of the client that invalidates
 * the server's region, answered by a Send that invalidates the client's.
 * RDMA devices do not report solicited events, and those of the kernel close a
 * connection over the invalidation of a region that is not a memory window:
 * there the last Sends have RBENCH_END as their base instead.
 */
#ifndef TOOLS_RBENCH_H
#define TOOLS_RBENCH_H

#include "tools/rdma/common.h"

#define RBENCH_PORT	  7175
#define RBENCH_CONTROL	  16 /* be64 base, be32 STag, be32 count or length */
#define RBENCH_PLAN	  16
#define RBENCH_END	  0x4f5242454e442121u /* base of the last Send */
#define RBENCH_SIZE_MAX	  (64u << 20)
#define RBENCH_DEPTH_MAX  4096
#define RBENCH_CREDITS	  512 /* Sends that the server takes without credit */
#define RBENCH_CREDIT_LOT 128

enum rbench_test {
	RBENCH_WRITE_BW,
	RBENCH_READ_BW,
	RBENCH_SEND_BW,
	RBENCH_WRITE_LAT,
	RBENCH_READ_LAT,
	RBENCH_SEND_LAT,
	RBENCH_TESTS,
};

struct rbench_plan {
	enum rbench_test test;
	uint32_t size; /* bytes of a message */
};

struct rbench_region {
	uint64_t base;
	uint32_t stag, len; /* in a credit, len is the number of Sends */
};

/* rbench_put_plan encodes the private data of the request. */
void rbench_put_plan(const struct rbench_plan *p, uint8_t out[RBENCH_PLAN]);
/* rbench_get_plan decodes them. Returns false if they are not a plan, or one
 * outside the limits above. */
bool rbench_get_plan(struct rbench_plan *p, const void *in, size_t len);
/* rbench_put_region encodes a control message. */
void rbench_put_region(const struct rbench_region *r,
		       uint8_t out[RBENCH_CONTROL]);
/* rbench_get_region decodes one. */
void rbench_get_region(struct rbench_region *r,
		       const uint8_t in[RBENCH_CONTROL]);

/* A control message and the request that sends it; in use until the request
 * is done. */
struct rbench_message {
	uint8_t body[RBENCH_CONTROL];
	struct iovec iov;
	struct iser_rdma_wr wr;
};
/* rbench_send sends r in m. flags and stag are those of the request. Returns an
 * enum iser_error. */
int rbench_send(struct iser_rdma *c, struct rbench_message *m,
		const struct rbench_region *r, unsigned flags, uint32_t stag);
/* rbench_send_end sends the last message of either side; stag is the peer's
 * region. Returns an enum iser_error. */
int rbench_send_end(struct iser_rdma *c, struct rbench_message *m,
		    unsigned flags, uint32_t stag);
/* rbench_is_end returns whether r is the peer's last message; over software
 * iWARP that is what the caller passes in iwarp_end. */
bool rbench_is_end(const struct iser_rdma *c, const struct iser_rdma_recv *r,
		   bool iwarp_end);

/* rbench_serve answers clients at `where` until a signal comes. Returns an exit
 * code; failures are printed. */
int rbench_serve(struct iser_context *ctx, const char *where,
		 const struct iser_rdma_options *options);

#endif
