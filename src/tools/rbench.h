/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rbench.h: what the two ends of iser rbench say to each other. The client's
 * plan is the private data of its request. Then each side tells its region in
 * a 16-byte Send, the client first. A run ends with a solicited Send that
 * invalidates the server's region, answered by a Send that invalidates the
 * client's. In between come the operations that are measured, and, where
 * Sends are measured for bandwidth, credits from the server. Over devices
 * the end is known by what it says: they tell users of no solicited event, and
 * those of the kernel end a connection over the invalidation of a plain region.
 */
#ifndef TOOLS_RBENCH_H
#define TOOLS_RBENCH_H

#include "rdma_common.h"

#define RBENCH_PORT	  7175
#define RBENCH_CONTROL	  16 /* be64 base, be32 STag, be32 count or length */
#define RBENCH_PLAN	  16
#define RBENCH_END	  0x4f5242454e442121u /* base of a device's last Send */
#define RBENCH_SIZE_MAX	  (64u << 20)
#define RBENCH_DEPTH_MAX  4096
#define RBENCH_CREDITS	  512 /* Sends that the server can take unasked */
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
	uint32_t size;
};

struct rbench_region {
	uint64_t base;
	uint32_t stag, len; /* as a credit: len is how many more */
};

void rbench_put_plan(const struct rbench_plan *p, uint8_t out[RBENCH_PLAN]);
/* false: it is not a plan, or one that nobody could follow. */
bool rbench_get_plan(struct rbench_plan *p, const void *in, size_t len);
void rbench_put_region(const struct rbench_region *r,
		       uint8_t out[RBENCH_CONTROL]);
void rbench_get_region(struct rbench_region *r,
		       const uint8_t in[RBENCH_CONTROL]);

/* A message of 16 bytes on its way, with its own room. */
struct rbench_message {
	uint8_t body[RBENCH_CONTROL];
	struct iovec iov;
	struct iser_rdma_wr wr;
};
int rbench_send(struct iser_rdma *c, struct rbench_message *m,
		const struct rbench_region *r, unsigned flags, uint32_t stag);
/* The end of a run, from either side: with the peer's region. */
int rbench_send_end(struct iser_rdma *c, struct rbench_message *m,
		    unsigned flags, uint32_t stag);
bool rbench_is_end(const struct iser_rdma *c, const struct iser_rdma_recv *r,
		   bool otherwise);

/* rbench_server.c: serves until it is told to stop; an exit code. */
int rbench_serve(struct iser_context *ctx, const char *where,
		 const struct iser_rdma_options *options);

#endif
