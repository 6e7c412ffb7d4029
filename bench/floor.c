/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor.c: the upper limit of a block protocol with 48-byte headers over
 * loopback TCP on this machine. The server answers all requests of one receive
 * call with one send call; the client sends as many requests as one receive call
 * answered. Neither of them decodes, checks or looks up anything.
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
	size_t size;
	unsigned depth;
	double seconds;
	bool write, spin;
	int server_cpu, client_cpu;
	uint64_t done;
	double took;
};

/* One end: the bytes that it reads and writes per request. */
struct end {
	int fd;
	bool spin;
	size_t in, out_payload;
	uint8_t *buffer, *payload;
	size_t partial; /* received bytes of an incomplete message */
};

static struct end end_of(int fd, const struct floor *f, size_t in, size_t out)
{
	return (struct end){ .fd = fd,
			     .spin = f->spin,
			     .in = in,
			     .out_payload = out,
			     .buffer = must_alloc(BUFFER),
			     .payload = must_alloc(out ? out : 1) };
}

static void end_free(struct end *e)
{
	free(e->buffer);
	free(e->payload);
	close(e->fd);
}

/* receive returns how many messages are complete now; -1: the peer closed. */
static int64_t receive(struct end *e)
{
	ssize_t n;
	size_t whole;

	do
		n = recv(e->fd, e->buffer, BUFFER, e->spin ? MSG_DONTWAIT : 0);
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
				iov[n++] = (struct iovec){ e->payload,
							   e->out_payload };
		}
		if (!send_all(e, iov, n))
			return false;
	}
	return true;
}

struct server {
	const struct floor *f;
	int fd;
};

static void *serve(void *arg)
{
	const struct server *s = arg;
	const struct floor *f = s->f;
	struct end e = end_of(s->fd, f, HEADER + (f->write ? f->size : 0),
			      f->write ? 0 : f->size);
	int64_t n;

	pin(f->server_cpu);
	while ((n = receive(&e)) >= 0 && answer(&e, n))
		;
	end_free(&e);
	return NULL;
}

static void load(struct floor *f, int fd)
{
	struct end e = end_of(fd, f, HEADER + (f->write ? 0 : f->size),
			      f->write ? f->size : 0);
	double start = now();
	int64_t n = 0;

	pin(f->client_cpu);
	if (!answer(&e, f->depth))
		fail("send");
	while (now() - start < f->seconds && (n = receive(&e)) >= 0) {
		f->done += (uint64_t)n;
		if (!answer(&e, n))
			break;
	}
	f->took = now() - start;
	end_free(&e);
}

static void usage(FILE *to)
{
	fputs("usage: floor [--size BYTES] [--depth N] [--time SECONDS] "
	      "[--write] [--spin]\n"
	      "             [--server-cpu N] [--client-cpu N]\n",
	      to);
}

static bool parse(struct floor *f, int argc, char **argv)
{
	static const struct option options[] = {
		{ "size", 1, NULL, 's' },	{ "depth", 1, NULL, 'd' },
		{ "time", 1, NULL, 't' },	{ "write", 0, NULL, 'w' },
		{ "spin", 0, NULL, 'p' },	{ "server-cpu", 1, NULL, 'S' },
		{ "client-cpu", 1, NULL, 'C' }, { "help", 0, NULL, 'h' },
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
	struct server s = { .f = &f };
	pthread_t thread;
	int fd[2];

	if (!parse(&f, argc, argv)) {
		usage(stderr);
		return 2;
	}
	make_pair(fd);
	s.fd = fd[0];
	if (pthread_create(&thread, NULL, serve, &s))
		fail("thread");
	load(&f, fd[1]);
	pthread_join(thread, NULL);
	printf("{\"iops\": %.0f, \"bytes_per_second\": %.0f}\n",
	       (double)f.done / f.took,
	       (double)f.done * (double)f.size / f.took);
	return 0;
}
