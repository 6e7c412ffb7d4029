/* SPDX-License-Identifier: BSD-2-Clause */
/* common.h: what the RDMA commands, rping and rbench, share. */
#ifndef TOOLS_RDMA_COMMON_H
#define TOOLS_RDMA_COMMON_H

#include <iser/rdma.h>

#include "tools/iser.h"

/* The rows of the options that both commands have; they fill in a struct
 * iser_rdma_options. */
#define RDMA_NROWS 6
extern const struct opt_row rdma_rows[RDMA_NROWS];

/* rdma_where returns the operand of a command: the host to connect to or, for a
 * server, the address to listen at (127.0.0.1 without an operand). NULL: a
 * client without a host, printed. */
const char *rdma_where(const char *command, const struct call *call,
		       bool server);
/* rdma_parse_host splits "HOST", "HOST:PORT" or "[V6]:PORT". Returns false for
 * another form, printed. */
bool rdma_parse_host(const char *text, uint16_t default_port, char host[256],
		     uint16_t *port);

/* rdma_turn runs one turn of ctx's loop and returns early for a signal. Returns
 * false if the loop has failed, printed. */
bool rdma_turn(struct iser_context *ctx);

/* How often rdma_poll has found nothing since n was set to 0. */
struct rdma_polls {
	unsigned n;
};
/*
 * rdma_poll runs one turn of ctx's loop without waiting, for a caller that
 * watches memory to which a device writes: such a write wakes no loop. It yields
 * the processor, and sleeps for microseconds after some polls in vain. The
 * caller sets l->n to 0 when data came. Returns false as rdma_turn.
 */
bool rdma_poll(struct iser_context *ctx, struct rdma_polls *l);

/* rdma_put_be writes v as n bytes, most significant first. */
void rdma_put_be(uint8_t *p, uint64_t v, unsigned n);
/* rdma_get_be reads a number of n bytes, most significant first. */
uint64_t rdma_get_be(const uint8_t *p, unsigned n);

/* rdma_print_address prints the address of a server when clients may connect. */
void rdma_print_address(const char *address);

#endif
