/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_common.c: options, addresses and signals of the RDMA commands. */
#include "rdma_common.h"

#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOKS	64  /* without a nap */
#define TURN_MS 200 /* a signal may come right before the wait */

static bool set_revision(struct iser_rdma_options *o, const char *arg)
{
	if (!strcmp(arg, "1"))
		o->revision = ISER_RDMA_PLAIN;
	else if (!strcmp(arg, "2"))
		o->revision = ISER_RDMA_ENHANCED;
	else
		say("--mpa is 1 or 2");
	return !strcmp(arg, "1") || !strcmp(arg, "2");
}

static bool set_fpdu(struct iser_rdma_options *o, const char *arg)
{
	uint64_t size;

	if (!parse_size(arg, &size) || size < 128 || size > 65535) {
		say("--fpdu is 128 to 65535");
		return false;
	}
	o->fpdu_max = (uint32_t)size;
	return true;
}

bool rdma_option(struct iser_rdma_options *o, int opt, const char *arg)
{
	switch (opt) {
	case 'D':
		o->device = !strcmp(arg, "verbs");
		if (o->device || !strcmp(arg, "iwarp"))
			return true;
		say("--rcap is iwarp or verbs");
		return false;
	case 'K':
		o->no_crc = true;
		return true;
	case 'M':
		o->markers = true;
		return true;
	case 'R':
		return set_revision(o, arg);
	case 'P':
		o->peer_to_peer = true;
		return true;
	case 'F':
		return set_fpdu(o, arg);
	default:
		return false;
	}
}

const char *rdma_where(const char *command, int argc, char **argv, bool server)
{
	if (optind + 1 < argc || (optind == argc && !server)) {
		say("%s takes one HOST[:PORT], or --server [ADDRESS:PORT]",
		    command);
		return NULL;
	}
	return optind < argc ? argv[optind] : "127.0.0.1";
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
	say("'%s' is no HOST, HOST:PORT or [V6]:PORT", text);
	return false;
}

static volatile sig_atomic_t stop;

static void on_signal(int n)
{
	(void)n;
	stop = 1;
}

void rdma_catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

bool rdma_stopped(void)
{
	return stop;
}

static bool turn(struct iser_context *ctx, int timeout_ms)
{
	if (!iser_service(ctx, timeout_ms))
		return true;
	say("%s", iser_message(ctx));
	return false;
}

bool rdma_turn(struct iser_context *ctx)
{
	return turn(ctx, TURN_MS);
}

bool rdma_look(struct iser_context *ctx, struct rdma_looks *l)
{
	static const struct timespec nap = { .tv_nsec = 20000 };

	/* The other end and the device's own threads may need this
	 * processor: after a while only a nap lets them have it. */
	if (++l->n < LOOKS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
	return turn(ctx, 0);
}

void rdma_say_ready(const char *address)
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
