/* SPDX-License-Identifier: BSD-2-Clause */
/* common.c: options, addresses and signals of the RDMA commands. */
#include "tools/rdma/common.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLLS	 64  /* without data, before each further poll sleeps */
#define TURN_MS	 200 /* for a signal that comes right before the wait */
#define FPDU_MIN 128
#define FPDU_MAX 65535

/* ---- options ---- */

static enum opt_end set_rcap(void *into, const char *arg, char why[OPT_WHY])
{
	struct iser_rdma_options *o = into;

	o->device = !strcmp(arg, "verbs");
	if (o->device || !strcmp(arg, "iwarp"))
		return OPT_OK;
	snprintf(why, OPT_WHY, "must be one of iwarp, verbs");
	return OPT_BAD;
}

static enum opt_end set_fpdu(void *into, const char *arg, char why[OPT_WHY])
{
	struct iser_rdma_options *o = into;
	uint64_t size;

	if (opt_size(arg, &size) && size >= FPDU_MIN && size <= FPDU_MAX) {
		o->fpdu_max = (uint32_t)size;
		return OPT_OK;
	}
	snprintf(why, OPT_WHY, "must be a size from %d to %d", FPDU_MIN,
		 FPDU_MAX);
	return OPT_BAD;
}

/* by enum iser_rdma_revision */
static const char *const revisions[] = {
	[ISER_RDMA_ENHANCED] = "2",
	[ISER_RDMA_PLAIN] = "1",
	NULL,
};

const struct opt_row rdma_rows[RDMA_NROWS] = {
	{ .name = "rcap",
	  .arg = "iwarp|verbs",
	  .initial = "iwarp",
	  OPT_CALL(set_rcap),
	  .help = "software iWARP, or an RDMA device" },
	{ .name = "no-crc",
	  OPT_FLAG(struct iser_rdma_options, no_crc),
	  .help = "no CRC32C, if the peer agrees" },
	{ .name = "markers",
	  OPT_FLAG(struct iser_rdma_options, markers),
	  .help = "ask the peer for markers in what it sends" },
	{ .name = "mpa",
	  .arg = "1|2",
	  .initial = "2",
	  OPT_WORD(struct iser_rdma_options, revision, revisions),
	  .help = "revision of the MPA request" },
	{ .name = "peer-to-peer",
	  OPT_FLAG(struct iser_rdma_options, peer_to_peer),
	  .help = "the server may send first (MPA 2)" },
	{ .name = "fpdu",
	  .arg = "SIZE",
	  OPT_CALL(set_fpdu),
	  .help = "longest FPDU, 128 to 65535 bytes; without it an FPDU fits "
		  "in a TCP segment" },
};

/* ---- addresses ---- */

const char *rdma_where(const char *command, const struct call *call,
		       bool server)
{
	if (call->noperands)
		return call->operands[0];
	if (server)
		return "127.0.0.1";
	say("%s: no host; give HOST[:PORT], or --server [ADDRESS:PORT]",
	    command);
	return NULL;
}

bool rdma_parse_host(const char *text, uint16_t default_port, char host[256],
		     uint16_t *port)
{
	const char *end = text + strlen(text), *colon = strrchr(text, ':');
	const char *from = text, *to = end;
	char *rest;
	unsigned long v = default_port;

	if (text[0] == '[') {
		from++;
		to = strchr(text, ']');
		colon = to && to[1] == ':' ? to + 1 : NULL;
		if (!to || (!colon && to[1]))
			goto wrong;
	} else if (colon && strchr(text, ':') != colon) {
		colon = NULL; /* a bare IPv6 address */
	} else if (colon) {
		to = colon;
	}
	if (colon) {
		v = strtoul(colon + 1, &rest, 10);
		if (rest == colon + 1 || *rest || v == 0 || v > 65535)
			goto wrong;
	}
	if (to == from || to - from > 255)
		goto wrong;
	memcpy(host, from, (size_t)(to - from));
	host[to - from] = '\0';
	*port = (uint16_t)v;
	return true;
wrong:
	say("%s: not an address; give HOST, HOST:PORT or [V6]:PORT", text);
	return false;
}

/* ---- the loop ---- */

static bool run_turn(struct iser_context *ctx, int timeout_ms)
{
	if (!iser_service(ctx, timeout_ms))
		return true;
	say("%s", iser_message(ctx));
	return false;
}

bool rdma_turn(struct iser_context *ctx)
{
	return run_turn(ctx, TURN_MS);
}

bool rdma_poll(struct iser_context *ctx, struct rdma_polls *l)
{
	static const struct timespec nap = { .tv_nsec = 20000 };

	/* the peer and the threads of the device may need this processor,
	 * which yielding alone does not always give them */
	if (++l->n < POLLS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
	return run_turn(ctx, 0);
}

void rdma_print_address(const char *address)
{
	printf("%s\n", address);
	fflush(stdout);
}

void rdma_put_be(uint8_t *p, uint64_t v, unsigned n)
{
	while (n--) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

uint64_t rdma_get_be(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}
