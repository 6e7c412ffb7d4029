/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_stream.c: measures plain TCP sockets on the loopback interface, as the
 * reference for RDMA over TCP sockets: a stream of sends of one size, which the
 * server receives into one buffer of that size, and blocking round trips.
 *   --mode stream   one send per message; --read: bytes per receive call
 *   --mode batch    --depth messages per sendmsg
 *   --mode pong     one round trip at a time
 */
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "loopback.h"

#define BATCH_MAX 512
#define LOOK	  65536u /* one receive call reads many small messages */

enum mode {
	STREAM,
	BATCH,
	PONG
};

struct raw {
	enum mode mode;
	size_t size, read; /* bytes per send call and per receive call */
	unsigned depth;
	double seconds;
	int server_cpu, client_cpu;
	int fd[2]; /* server, client */
	uint64_t messages;
	double took;
	double cpu[2]; /* seconds of CPU: server, client */
};

/* Returns the CPU seconds of this thread so far. */
static double cpu_time(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static bool exactly(int fd, uint8_t *p, size_t n, bool out)
{
	while (n > 0) {
		ssize_t k =
			out ? send(fd, p, n, MSG_NOSIGNAL) : recv(fd, p, n, 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

/* ---- the server ---- */

static void swallow(const struct raw *r, uint8_t *buffer, size_t size)
{
	ssize_t n;

	do
		n = recv(r->fd[0], buffer, size, 0);
	while (n > 0 || (n < 0 && errno == EINTR));
	send(r->fd[0], buffer, 1,
	     MSG_NOSIGNAL); /* acknowledges the whole amount */
}

static size_t read_size(const struct raw *r)
{
	if (r->mode == PONG)
		return r->size;
	if (r->read)
		return r->read;
	return r->size < LOOK ? LOOK : r->size;
}

static void *serve(void *arg)
{
	struct raw *r = arg;
	size_t size = read_size(r);
	uint8_t *buffer = must_alloc(size);

	pin(r->server_cpu);
	if (r->mode == PONG)
		while (exactly(r->fd[0], buffer, r->size, false) &&
		       exactly(r->fd[0], buffer, r->size, true))
			;
	else
		swallow(r, buffer, size);
	free(buffer);
	r->cpu[0] = cpu_time();
	return NULL;
}

/* ---- the client ---- */

static bool send_batch(int fd, uint8_t *p, size_t size, unsigned depth)
{
	struct iovec iov[BATCH_MAX];
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = depth };
	size_t left = size * depth;

	for (unsigned i = 0; i < depth; i++)
		iov[i] = (struct iovec){ p, size };
	while (left > 0) {
		ssize_t k = sendmsg(fd, &m, MSG_NOSIGNAL);
		size_t n = k > 0 ? (size_t)k : 0;

		if (k < 0 && errno != EINTR)
			return false;
		left -= n;
		for (; n && n >= m.msg_iov->iov_len; m.msg_iovlen--)
			n -= m.msg_iov++->iov_len;
		if (n) {
			m.msg_iov->iov_base =
				(uint8_t *)m.msg_iov->iov_base + n;
			m.msg_iov->iov_len -= n;
		}
	}
	return true;
}

static bool once(struct raw *r, uint8_t *p)
{
	int fd = r->fd[1];

	if (r->mode == BATCH) {
		r->messages += r->depth;
		return send_batch(fd, p, r->size, r->depth);
	}
	r->messages++;
	return exactly(fd, p, r->size, true) &&
	       (r->mode != PONG || exactly(fd, p, r->size, false));
}

static void load(struct raw *r)
{
	uint8_t *p = must_alloc(r->size);
	double start, cpu;

	pin(r->client_cpu);
	start = now();
	cpu = cpu_time();
	while (now() - start < r->seconds)
		if (!once(r, p))
			fail("the connection");
	shutdown(r->fd[1], SHUT_WR);
	if (r->mode != PONG)
		exactly(r->fd[1], p, 1, false);
	r->took = now() - start;
	r->cpu[1] = cpu_time() - cpu;
	free(p);
}

static bool set_mode(struct raw *r, const char *name)
{
	static const char *const names[] = { "stream", "batch", "pong" };

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(name, names[i])) {
			r->mode = (enum mode)i;
			return true;
		}
	return false;
}

static bool parse(struct raw *r, int argc, char **argv)
{
	static const struct option options[] = {
		{ "mode", 1, NULL, 'm' },	{ "size", 1, NULL, 's' },
		{ "depth", 1, NULL, 'd' },	{ "time", 1, NULL, 't' },
		{ "read", 1, NULL, 'r' },	{ "server-cpu", 1, NULL, 'S' },
		{ "client-cpu", 1, NULL, 'C' }, { NULL, 0, NULL, 0 },
	};
	bool ok = true;
	int o;

	while (ok && (o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'm')
			ok = set_mode(r, optarg);
		else if (o == 's')
			r->size = strtoul(optarg, NULL, 0);
		else if (o == 'r')
			r->read = strtoul(optarg, NULL, 0);
		else if (o == 'd')
			r->depth = (unsigned)strtoul(optarg, NULL, 0);
		else if (o == 't')
			r->seconds = strtod(optarg, NULL);
		else if (o == 'S')
			r->server_cpu = atoi(optarg);
		else if (o == 'C')
			r->client_cpu = atoi(optarg);
		else
			ok = false;
	}
	return ok && r->size > 0 && r->depth > 0 && r->depth <= BATCH_MAX &&
	       r->seconds > 0 && optind == argc;
}

int main(int argc, char **argv)
{
	struct raw r = { .size = 1u << 20,
			 .depth = 32,
			 .seconds = 1,
			 .server_cpu = -1,
			 .client_cpu = -1 };
	pthread_t thread;

	if (!parse(&r, argc, argv)) {
		fputs("usage: raw_stream [--mode stream|batch|pong] [--size "
		      "BYTES] [--depth N]\n"
		      "                  [--read BYTES] [--time SECONDS] [--server-cpu N] "
		      "[--client-cpu N]\n",
		      stderr);
		return 2;
	}
	make_pair(r.fd);
	if (pthread_create(&thread, NULL, serve, &r))
		fail("thread");
	load(&r);
	close(r.fd[1]);
	pthread_join(thread, NULL);
	close(r.fd[0]);
	printf("{\"messages_per_second\": %.0f, \"bytes_per_second\": %.0f, "
	       "\"us_per_message\": %.3f, \"server_cpu\": %.3f, "
	       "\"client_cpu\": %.3f}\n",
	       (double)r.messages / r.took,
	       (double)r.messages * (double)r.size / r.took,
	       r.took * 1e6 / (double)r.messages, r.cpu[0] / r.took,
	       r.cpu[1] / r.took);
	return 0;
}
