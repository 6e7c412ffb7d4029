/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor_many.c: floor.c over many connections: a server and a client thread
 * that each wait by epoll, receive once from each ready socket, and send once
 * to it. --uring: all sends of a turn go to the kernel in one call of io_uring.
 */
#include <getopt.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "loopback.h"

#define HEADER	  48u
#define PAYLOAD	  4096u
#define RECEIVE	  65536u
#define MOST	  1024u /* connections, operations of one connection */
#define FOOTPRINT (64u << 20)

struct conn {
	int fd;
	size_t partial; /* received bytes of an incomplete message */
	struct iovec *iov;
	struct msghdr message;
	size_t size;
};

/* One end, with its thread. */
struct end {
	const struct options *o;
	int cpu, epoll;
	size_t in;	/* bytes that it receives for an operation */
	bool is_server; /* it sends payload */
	struct conn *conns;
	uint8_t *payload;
	uint64_t random, operations;
	double cpu_seconds;
	struct io_uring ring;
};

struct options {
	unsigned connections, depth;
	double seconds;
	bool spin, uring;
	int server_cpu, client_cpu;
};

static volatile bool stopping;

static void prepare(struct end *e, struct conn *c, size_t count)
{
	static uint8_t header[HEADER];
	unsigned n = 0;

	c->size = 0;
	for (; count > 0; count--) {
		size_t place;

		c->iov[n++] = (struct iovec){ header, HEADER };
		c->size += HEADER;
		if (!e->is_server)
			continue;
		e->random = e->random * 6364136223846793005u + 1;
		place = (e->random >> 33) % (FOOTPRINT / PAYLOAD);
		c->iov[n++] =
			(struct iovec){ e->payload + place * PAYLOAD, PAYLOAD };
		c->size += PAYLOAD;
	}
	c->message = (struct msghdr){ .msg_iov = c->iov, .msg_iovlen = n };
}

static void send_now(struct conn *c)
{
	if (sendmsg(c->fd, &c->message, MSG_NOSIGNAL) != (ssize_t)c->size &&
	    !stopping)
		fail("sendmsg");
}

static void send_later(struct end *e, struct conn *c)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&e->ring);

	io_uring_prep_sendmsg(sqe, c->fd, &c->message,
			      MSG_NOSIGNAL | MSG_WAITALL);
	io_uring_sqe_set_data(sqe, c);
}

static void send_all(struct end *e)
{
	struct io_uring_cqe *cqe;
	unsigned n = io_uring_sq_ready(&e->ring);

	io_uring_submit_and_wait(&e->ring, n);
	for (; n > 0 && io_uring_wait_cqe(&e->ring, &cqe) == 0; n--)
		io_uring_cqe_seen(&e->ring, cqe);
}

/* One receive; the answer to all messages that are complete. */
static void serve(struct end *e, struct conn *c, uint8_t *buffer)
{
	ssize_t n = recv(c->fd, buffer, RECEIVE, MSG_DONTWAIT);
	size_t bytes, count;

	if (n <= 0)
		return;
	bytes = c->partial + (size_t)n;
	count = bytes / e->in;
	c->partial = bytes % e->in;
	e->operations += count;
	if (count == 0)
		return;
	prepare(e, c, count);
	if (e->o->uring)
		send_later(e, c);
	else
		send_now(c);
}

static void *run(void *arg)
{
	struct epoll_event events[MOST];
	uint8_t *buffer = must_alloc(RECEIVE);
	struct end *e = arg;
	struct timespec ts;

	pin(e->cpu);
	if (e->o->uring && io_uring_queue_init(MOST, &e->ring, 0))
		fail("io_uring");
	for (unsigned i = 0; i < e->o->connections && !e->is_server; i++) {
		prepare(e, &e->conns[i], e->o->depth);
		send_now(&e->conns[i]);
	}
	while (!stopping) {
		int n = epoll_wait(e->epoll, events, MOST,
				   e->o->spin ? 0 : 100);

		for (int i = 0; i < n; i++)
			serve(e, events[i].data.ptr, buffer);
		if (e->o->uring && io_uring_sq_ready(&e->ring))
			send_all(e);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	e->cpu_seconds = (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
	free(buffer);
	return NULL;
}

static void open_end(struct end *e, const struct options *o)
{
	e->o = o;
	e->epoll = epoll_create1(0);
	e->conns = calloc(o->connections, sizeof(*e->conns));
	e->payload = e->is_server ? must_alloc(FOOTPRINT) : NULL;
	if (e->epoll < 0 || !e->conns)
		fail("memory");
}

static void add_socket(struct end *e, unsigned i, int fd)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.ptr = &e->conns[i] };

	e->conns[i].fd = fd;
	e->conns[i].iov = calloc(2 * MOST, sizeof(struct iovec));
	if (!e->conns[i].iov || epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &event))
		fail("epoll_ctl");
}

static bool parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "connections", 1, NULL, 'n' }, { "depth", 1, NULL, 'd' },
		{ "time", 1, NULL, 't' },	 { "spin", 0, NULL, 'p' },
		{ "uring", 0, NULL, 'u' },	 { "server-cpu", 1, NULL, 'S' },
		{ "client-cpu", 1, NULL, 'C' },	 { NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n')
			o->connections = (unsigned)strtoul(optarg, NULL, 0);
		else if (c == 'd')
			o->depth = (unsigned)strtoul(optarg, NULL, 0);
		else if (c == 't')
			o->seconds = strtod(optarg, NULL);
		else if (c == 'p')
			o->spin = true;
		else if (c == 'u')
			o->uring = true;
		else if (c == 'S')
			o->server_cpu = atoi(optarg);
		else if (c == 'C')
			o->client_cpu = atoi(optarg);
		else
			return false;
	}
	return o->connections > 0 && o->connections <= MOST && o->depth > 0 &&
	       o->depth <= MOST && o->seconds > 0 && optind == argc;
}

int main(int argc, char **argv)
{
	struct options o = { 16, 8, 1, false, false, -1, -1 };
	struct end server = { .in = HEADER, .is_server = true };
	struct end client = { .in = HEADER + PAYLOAD };
	pthread_t threads[2];
	double start, took;

	if (!parse(&o, argc, argv)) {
		fputs("usage: floor_many [--connections N] [--depth N] "
		      "[--time SECONDS] [--spin] [--uring]\n"
		      "                  [--server-cpu N] [--client-cpu N]\n",
		      stderr);
		return 2;
	}
	server.cpu = o.server_cpu;
	client.cpu = o.client_cpu;
	open_end(&server, &o);
	open_end(&client, &o);
	for (unsigned i = 0; i < o.connections; i++) {
		int fd[2];

		make_pair(fd);
		add_socket(&server, i, fd[0]);
		add_socket(&client, i, fd[1]);
	}
	start = now();
	if (pthread_create(&threads[0], NULL, run, &server) ||
	    pthread_create(&threads[1], NULL, run, &client))
		fail("thread");
	usleep((useconds_t)(o.seconds * 1e6));
	took = now() - start;
	stopping = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("{\"iops\": %.0f, \"server_cpu_us\": %.2f, "
	       "\"client_cpu_us\": %.2f}\n",
	       (double)client.operations / took,
	       server.cpu_seconds * 1e6 / (double)client.operations,
	       client.cpu_seconds * 1e6 / (double)client.operations);
	return 0;
}
