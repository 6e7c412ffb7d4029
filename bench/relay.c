/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay.c: carries TCP connections and delays their bytes, as a long path does.
 * Each direction is a line with a delay of half a round trip, an optional rate, and
 * a window: the bytes that the sender may have on the line until their
 * acknowledgement is back, a round trip after they left. A lost segment delays itself
 * and all later bytes by one round trip, as a fast retransmission does, and halves the
 * window, which then grows by one segment in each round trip (Reno's congestion
 * avoidance). Not modelled: slow start, retransmission timeouts, loss of
 * acknowledgements, reordering, and the costs of a network card.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#include "loopback.h"

#define SEGMENT	    1448u
#define PIECE	    65536u	/* most bytes with one time of delivery */
#define RING	    (16u << 20) /* most bytes on the line in one direction */
#define PIECES	    8192u	/* most pieces whose window is not given back */
#define CONNECTIONS 256
#define SPIN_NS	    300000u /* shorter waits poll: a sleep may take longer */

struct settings {
	int listen_port, connect_port;
	double rtt_ms, mbit, loss;
	uint64_t window;
	uint64_t seed;
};

struct piece {
	uint64_t deliver_at; /* ns */
	size_t size;	     /* 0: the end of the stream */
};

/* One direction. Pieces acked..sent are delivered but not acknowledged yet, pieces
 * sent..taken are on the line; the numbers grow and are used modulo PIECES. */
struct line {
	int from, to;
	uint8_t *ring;
	uint64_t in, out; /* bytes taken and delivered so far */
	struct piece *piece;
	uint64_t acked, sent, taken;
	size_t piece_sent; /* bytes of piece `sent` that are delivered */
	double window, inflight;
	uint64_t free_at, last; /* when the link is idle; the last delivery */
	bool ended, finished, blocked;
};

struct connection {
	struct line line[2];
	bool open;
};

struct relay {
	struct settings set;
	struct connection c[CONNECTIONS];
	uint64_t half; /* ns of one way */
	int listener, epoll;
	bool may_loop; /* another pass may find something to do */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A random number in [0, 1). */
static double chance(struct relay *r)
{
	uint64_t z = (r->set.seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

/* ---- sockets of this machine ---- */

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static struct sockaddr_in loopback_at(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((uint16_t)port);
	return a;
}

static int listen_at(int port)
{
	struct sockaddr_in a = loopback_at(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;

	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 64))
		fail("listen");
	return fd;
}

static int connect_to(int port)
{
	struct sockaddr_in a = loopback_at(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- one direction ---- */

static void put_on_line(struct relay *r, struct line *l, size_t n, uint64_t now)
{
	uint64_t leave = now > l->free_at ? now : l->free_at;
	uint64_t at;

	if (r->set.mbit > 0)
		leave += (uint64_t)((double)n * 8000 / r->set.mbit);
	l->free_at = leave;
	at = leave + r->half;
	if (n && r->set.loss > 0 &&
	    chance(r) >
		    pow(1 - r->set.loss, ceil((double)n / (double)SEGMENT))) {
		at += 2 * r->half;
		l->window = fmax(l->window / 2, 2.0 * SEGMENT);
	}
	l->last = at > l->last ? at : l->last; /* the order is kept */
	l->piece[l->taken++ % PIECES] =
		(struct piece){ .deliver_at = l->last, .size = n };
	l->in += n;
	l->inflight += (double)n;
}

/* Takes bytes of the sender while the window, the ring and the pieces permit. */
static void take(struct relay *r, struct line *l)
{
	while (!l->ended && l->inflight < l->window &&
	       l->in - l->out < RING - PIECE && l->taken - l->acked < PIECES) {
		size_t at = l->in % RING;
		size_t room = RING - at < PIECE ? RING - at : PIECE;
		ssize_t n = recv(l->from, l->ring + at, room, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		l->ended = n <= 0;
		put_on_line(r, l, n > 0 ? (size_t)n : 0, now_ns());
		r->may_loop = true;
	}
}

/* Delivers the pieces whose time has come, until the receiver's socket is full. */
static void deliver(struct line *l, uint64_t now)
{
	l->blocked = false;
	while (l->sent < l->taken) {
		struct piece *p = &l->piece[l->sent % PIECES];
		size_t left = p->size - l->piece_sent, at = l->out % RING;
		ssize_t n;

		if (p->deliver_at > now)
			return;
		if (p->size == 0) {
			shutdown(l->to, SHUT_WR);
			l->finished = true;
			l->sent++;
			return;
		}
		n = send(l->to, l->ring + at, left,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0) {
			l->blocked = errno == EAGAIN;
			l->finished = l->finished ||
				      (errno != EAGAIN && errno != EINTR);
			return;
		}
		l->out += (uint64_t)n;
		l->piece_sent += (size_t)n;
		if (l->piece_sent == p->size) {
			l->piece_sent = 0;
			l->sent++;
		}
	}
}

/* Gives back the window of the pieces whose acknowledgement has arrived. */
static void acknowledge(struct relay *r, struct line *l, uint64_t now)
{
	while (l->acked < l->sent) {
		const struct piece *p = &l->piece[l->acked % PIECES];

		if (p->deliver_at + r->half > now)
			return;
		l->inflight -= (double)p->size;
		if (r->set.loss > 0)
			l->window = fmin(l->window + (double)SEGMENT *
							     (double)p->size /
							     l->window,
					 (double)r->set.window);
		l->acked++;
	}
}

/* When the line needs attention without an event of a socket. */
static uint64_t line_deadline(const struct relay *r, const struct line *l)
{
	uint64_t at = UINT64_MAX;

	if (l->sent < l->taken && !l->blocked)
		at = l->piece[l->sent % PIECES].deliver_at;
	if (l->acked < l->sent && !l->ended &&
	    (l->inflight >= l->window || l->taken - l->acked == PIECES)) {
		uint64_t ack = l->piece[l->acked % PIECES].deliver_at + r->half;

		at = ack < at ? ack : at;
	}
	return at;
}

/* ---- connections ---- */

static bool line_open(struct relay *r, struct line *l, int from, int to)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET };

	*l = (struct line){ .from = from,
			    .to = to,
			    .ring = malloc(RING),
			    .piece = malloc(PIECES * sizeof(struct piece)),
			    .window = (double)r->set.window };
	no_delay(from);
	return l->ring && l->piece &&
	       !epoll_ctl(r->epoll, EPOLL_CTL_ADD, from, &e);
}

static void connection_close(struct connection *c)
{
	close(c->line[0].from);
	close(c->line[1].from);
	for (int i = 0; i < 2; i++) {
		free(c->line[i].ring);
		free(c->line[i].piece);
	}
	c->open = false;
}

static void accept_all(struct relay *r)
{
	int fd;

	while ((fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct connection *c = r->c;
		int out = connect_to(r->set.connect_port);

		while (c < r->c + CONNECTIONS && c->open)
			c++;
		if (out < 0 || c == r->c + CONNECTIONS) {
			close(fd);
			if (out >= 0)
				close(out);
			continue;
		}
		c->open = true;
		if (!line_open(r, &c->line[0], fd, out) ||
		    !line_open(r, &c->line[1], out, fd))
			fail("connection");
	}
}

/* Serves all lines once; returns the next deadline. */
static uint64_t serve_all(struct relay *r)
{
	uint64_t next = UINT64_MAX;

	r->may_loop = false;
	for (struct connection *c = r->c; c < r->c + CONNECTIONS; c++) {
		if (!c->open)
			continue;
		for (int i = 0; i < 2; i++) {
			struct line *l = &c->line[i];
			uint64_t now = now_ns(), at;

			deliver(l, now);
			acknowledge(r, l, now);
			take(r, l);
			at = line_deadline(r, l);
			next = at < next ? at : next;
		}
		if (c->line[0].finished && c->line[1].finished)
			connection_close(c);
	}
	return next;
}

static void run(struct relay *r)
{
	for (;;) {
		struct epoll_event e[64];
		uint64_t next = serve_all(r), now = now_ns();
		struct timespec wait = { 0 };
		bool spin = r->may_loop || next <= now + SPIN_NS;

		if (!spin && next != UINT64_MAX) {
			uint64_t ns = next - now - SPIN_NS;

			wait.tv_sec = (time_t)(ns / 1000000000u);
			wait.tv_nsec = (long)(ns % 1000000000u);
		}
		if (spin && next > now)
			sched_yield();
		epoll_pwait2(r->epoll, e, 64,
			     !spin && next == UINT64_MAX ? NULL : &wait, NULL);
		accept_all(r);
	}
}

/* ---- the command line ---- */

static bool parse(struct settings *s, int argc, char **argv)
{
	static const struct option options[] = {
		{ "listen", 1, NULL, 'l' }, { "connect", 1, NULL, 'c' },
		{ "rtt", 1, NULL, 'r' },    { "mbit", 1, NULL, 'm' },
		{ "loss", 1, NULL, 'o' },   { "window", 1, NULL, 'w' },
		{ "seed", 1, NULL, 's' },   { NULL, 0, NULL, 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'l')
			s->listen_port = atoi(optarg);
		else if (o == 'c')
			s->connect_port = atoi(optarg);
		else if (o == 'r')
			s->rtt_ms = strtod(optarg, NULL);
		else if (o == 'm')
			s->mbit = strtod(optarg, NULL);
		else if (o == 'o')
			s->loss = strtod(optarg, NULL) / 100;
		else if (o == 'w')
			s->window = strtoull(optarg, NULL, 0);
		else if (o == 's')
			s->seed = strtoull(optarg, NULL, 0);
		else
			return false;
	}
	return optind == argc && s->listen_port > 0 && s->connect_port > 0 &&
	       s->rtt_ms >= 0 && s->mbit >= 0 && s->loss >= 0 && s->loss < 1 &&
	       s->window >= SEGMENT && s->window <= RING - PIECE;
}

int main(int argc, char **argv)
{
	static struct relay r = { .set = { .window = 4u << 20, .seed = 1 } };
	struct epoll_event e = { .events = EPOLLIN };

	if (!parse(&r.set, argc, argv)) {
		fputs("usage: relay --listen PORT --connect PORT [--rtt MS] "
		      "[--mbit N]\n"
		      "             [--loss PERCENT] [--window BYTES] [--seed "
		      "N]\n",
		      stderr);
		return 2;
	}
	prctl(PR_SET_TIMERSLACK, 1);
	signal(SIGPIPE, SIG_IGN);
	r.half = (uint64_t)(r.set.rtt_ms * 5e5);
	r.listener = listen_at(r.set.listen_port);
	r.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r.epoll < 0 ||
	    epoll_ctl(r.epoll, EPOLL_CTL_ADD, r.listener, &e) < 0)
		fail("epoll");
	run(&r);
	return 0;
}
