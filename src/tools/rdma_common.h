/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_common.h: what the RDMA commands, rping and rbench, share. */
#ifndef TOOLS_RDMA_COMMON_H
#define TOOLS_RDMA_COMMON_H

#include <iser/rdma.h>

#include "iser.h"

/* For getopt_long's table and --help. */
#define RDMA_OPTIONS                                 \
 { "rcap", required_argument, NULL, 'D' },           \
	 { "no-crc", no_argument, NULL, 'K' },       \
	 { "markers", no_argument, NULL, 'M' },      \
	 { "mpa", required_argument, NULL, 'R' },    \
	 { "peer-to-peer", no_argument, NULL, 'P' }, \
 {                                                   \
  "fpdu", required_argument, NULL, 'F'               \
 }
#define RDMA_HELP                                                     \
 "  --rcap iwarp|verbs   software iWARP, or an RDMA device (iwarp)\n" \
 "  --no-crc             no CRC32C, if the other side agrees\n"       \
 "  --markers            ask for markers in what comes in\n"          \
 "  --mpa 1|2            revision of the MPA request (2)\n"           \
 "  --peer-to-peer       the server may speak first (MPA 2)\n"        \
 "  --fpdu SIZE          longest FPDU; the default fits in a TCP segment\n"

/* rdma_option: false if opt is none of these, or arg is wrong (said). */
bool rdma_option(struct iser_rdma_options *o, int opt, const char *arg);

/* Behind the options, where optind is: whom to reach or, for a server, maybe
 * where to listen. NULL: said. */
const char *rdma_where(const char *command, int argc, char **argv, bool server);
/* "HOST", "HOST:PORT", "[V6]:PORT"; false: said. */
bool rdma_parse_host(const char *text, uint16_t default_port, char host[256],
		     uint16_t *port);

/* SIGINT and SIGTERM end a command in order: rdma_stopped tells. */
void rdma_catch_signals(void);
bool rdma_stopped(void);
/* One turn of ctx's loop that comes back for a signal, too; false: it failed,
 * said already. */
bool rdma_turn(struct iser_context *ctx);
/*
 * The same for who looks at memory that a device writes to, which wakes nobody:
 * it does not wait in the loop, but lets others run, and naps for microseconds
 * once it has looked in vain for a while. n is set to 0 when something came.
 */
struct rdma_looks {
	unsigned n;
};
bool rdma_look(struct iser_context *ctx, struct rdma_looks *l);

/* Numbers of n bytes in what the two ends say, most significant first. */
void rdma_put_be(uint8_t *p, uint64_t v, unsigned n);
uint64_t rdma_get_be(const uint8_t *p, unsigned n);

/* One line on stdout when clients may come. */
void rdma_say_ready(const char *address);

#endif
