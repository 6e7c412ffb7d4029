/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor.c: the upper limit of a block protocol with 48-byte headers over
 * loopback TCP on this machine. The server answers all requests of one receive
 * call with one send call; the client sends as many requests as one receive call
 * answered. Neither of them decodes, checks or looks up anything. With
 * --unit and --buffers they touch as much memory as a target whose unit has
 * that size, and as an initiator with those buffers: payload comes from, and
 * goes to, a random place there. Without them all memory stays in the caches.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "loopback.h"

#define HEADER 48u
#define BUFFER (1u << 20)
#define PAIRS  512 /* header and payload in one send */

struct floor {
	size_t size, unit, buffers;
	unsigned depth;
	double seconds;
	bool write, spin;
	int server_cpu, client_cpu;
	uint64_t done;
	double took, p50;
};

/* Memory of which a random piece is used each time. */
struct places {
	uint8_t *memory;
	size_t piece, count;
	uint64_t random;
};

static struct places places_of(size_t piece, size_t span)
{
	size_t count = span > piece ? span / piece : 1;

	return (struct places){ .memory = must_alloc(piece * count),
				.piece = piece,
				.count = count,
				.random = 0x9e3779b97f4a7c15u };
}

static uint8_t *place(struct places *p)
{
	if (p->count == 1)
		return p->memory;
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return p->memory + p->random % p->count * p->piece;
}

/* One end: the bytes that it reads and writes per request. */
struct end {
	int fd, cpu;
	bool spin;
	size_t in, out_payload;
	struct places from_peer, payload;
	size_t partial; /* received bytes of an incomplete message */
};

/* end_of returns an end that receives messages of in bytes, and sends those
 * with out bytes of payload. span: its memory for payload. */
static struct end end_of(int fd, int cpu, bool spin, size_t in, size_t out,
			 size_t span)
{
	return (struct end){ .fd = fd,
			     .cpu = cpu,
			     .spin = spin,
			     .in = HEADER + in,
			     .out_payload = out,
			     .from_peer = places_of(BUFFER, out ? 0 : span),
			     .payload =
				     places_of(out ? out : 1, out ? span : 0) };
}

static void end_free(struct end *e)
{
	free(e->from_peer.memory);
	free(e->payload.memory);
	close(e->fd);
}

/* receive returns how many messages are complete now; -1: the peer closed. */
static int64_t receive(struct end *e)
{
	ssize_t n;
	size_t whole;

	do
		n = recv(e->fd, place(&e->from_peer), BUFFER,
			 e->spin ? MSG_DONTWAIT : 0);
	while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n <= 0)
		return -1;
	whole = (e->partial + (size_t)n) / e->in;
	e->partial = (e->partial + (size_t)n) % e->in;
	return (int64_t)whole;
}

static bool send_all(struct end *e, struct iovec *iov, size_t n)
{
	while (n > 0) {
		struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
		ssize_t sent = sendmsg(e->fd, &m, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return false;
		for (; sent > 0 && n > 0 && (size_t)sent >= iov->iov_len; n--)
			sent -= (ssize_t)iov++->iov_len;
		if (sent > 0) {
			iov->iov_base = (uint8_t *)iov->iov_base + sent;
			iov->iov_len -= (size_t)sent;
		}
	}
	return true;
}

/* answer sends count messages, each of header and payload, in one call. */
static bool answer(struct end *e, int64_t count)
{
	static const uint8_t header[HEADER];
	struct iovec iov[2 * PAIRS];

	while (count > 0) {
		size_t n = 0;

		for (; count > 0 && n + 2 <= 2 * PAIRS; count--) {
			iov[n++] = (struct iovec){ (void *)(uintptr_t)header,
						   HEADER };
			if (e->out_payload)
				iov[n++] = (struct iovec){ place(&e->payload),
							   e->out_payload };
		}
		if (!send_all(e, iov, n))
			return false;
	}
	return true;
}

static void *serve(void *arg)
{
	struct end *e = arg;
	int64_t n;

	pin(e->cpu);
	while ((n = receive(e)) >= 0 && answer(e, n))
		;
	end_free(e);
	return NULL;
}

/* The times of operations at depth 1, in steps of 10 ns up to 10 ms. */
#define STEP  1e-8
#define STEPS 1000000u

static double median_of(const uint32_t *counts, uint64_t total)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		seen += counts[i];
		if (2 * seen > total)
			return i * STEP;
	}
	return 0;
}

static void load(struct floor *f, struct end *e)
{
	uint32_t *counts = calloc(STEPS, sizeof(*counts));
	double start = now(), last = start, at;
	int64_t n = 0;

	pin(e->cpu);
	if (!counts || !answer(e, f->depth))
		fail("send");
	while ((at = now()) - start < f->seconds && (n = receive(e)) >= 0) {
		f->done += (uint64_t)n;
		if (!answer(e, n))
			break;
		if (f->depth == 1 && n == 1) {
			double steps = (at - last) / STEP;

			counts[steps < STEPS ? (unsigned)steps : STEPS - 1]++;
			last = at;
		}
	}
	f->took = now() - start;
	f->p50 = median_of(counts, f->done);
	free(counts);
	end_free(e);
}

static void usage(FILE *to)
{
	fputs("usage: floor [--size BYTES] [--depth N] [--time SECONDS] "
	      "[--write] [--spin]\n"
	      "             [--unit BYTES] [--buffers BYTES] [--server-cpu N] [--client-cpu N]\n",
	      to);
}

static bool parse(struct floor *f, int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", 1, NULL, 's' },	{ "depth", 1, NULL, 'd' },
		{ "time", 1, NULL, 't' },	{ "write", 0, NULL, 'w' },
		{ "spin", 0, NULL, 'p' },	{ "server-cpu", 1, NULL, 'S' },
		{ "client-cpu", 1, NULL, 'C' }, { "unit", 1, NULL, 'u' },
		{ "buffers", 1, NULL, 'b' },	{ "help", 0, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (o == 's')
			f->size = strtoul(optarg, NULL, 0);
		else if (o == 'd')
			f->depth = (unsigned)strtoul(optarg, NULL, 0);
		else if (o == 't')
			f->seconds = strtod(optarg, NULL);
		else if (o == 'u')
			f->unit = strtoul(optarg, NULL, 0);
		else if (o == 'b')
			f->buffers = strtoul(optarg, NULL, 0);
		else if (o == 'w')
			f->write = true;
		else if (o == 'p')
			f->spin = true;
		else if (o == 'S')
			f->server_cpu = atoi(optarg);
		else if (o == 'C')
			f->client_cpu = atoi(optarg);
		else
			return false;
	}
	return f->size > 0 && f->depth > 0 && f->seconds > 0 && optind == argc;
}

int main(int argc, char **argv)
{
	struct floor f = { .size = 4096,
			   .depth = 32,
			   .seconds = 1,
			   .server_cpu = -1,
			   .client_cpu = -1 };
	struct end server, client;
	pthread_t thread;
	size_t in, out;
	int fd[2];

	if (!parse(&f, argc, argv)) {
		usage(stderr);
		return 2;
	}
	make_pair(fd);
	in = f.write ? f.size : 0;
	out = f.size - in;
	server = end_of(fd[0], f.server_cpu, f.spin, in, out, f.unit);
	client = end_of(fd[1], f.client_cpu, f.spin, out, in, f.buffers);
	if (pthread_create(&thread, NULL, serve, &server))
		fail("thread");
	load(&f, &client);
	pthread_join(thread, NULL);
	printf("{\"iops\": %.0f, \"bytes_per_second\": %.0f, \"p50_us\": %.2f}\n",
	       (double)f.done / f.took,
	       (double)f.done * (double)f.size / f.took, f.p50 * 1e6);
	return 0;
}
