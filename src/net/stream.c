/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.c: a socket under a protocol core. Input when the socket has some;
 * output, fate and deadline once at the end of the turn.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bufv.h"
#include "base/bytes.h"
#include "base/err.h"
#include "net/backed.h"
#include "net/net.h"

#define RX_PIECES 64
#define TX_PIECES 512
/* Most of an FPDU may be with the core already (64 KiB), and is owed no more. */
#define PATIENT_FROM (96u << 10)
#define PATIENT_FOR  (32 << 10)
/* For what is only likely to come we wait no longer than this. */
#define PATIENCE_MAX (2 * XTIME_MS)
#define RX_PER_TURN  (1u << 20) /* then the other connections have their turn */
#define FLUSH_MAX    (5 * XTIME_S) /* for a peer that does not read */
#define LOOPBACK_MSS 16384	   /* beyond any frame that hardware sends */
#define LINGER_MAX   (500 * XTIME_MS)

enum stream_state {
	NEW,
	RUNNING,
	LINGERING, /* all is said and FIN is out; waits for the peer's */
	CLOSED,
};

struct net_stream {
	struct io_loop *l;
	struct io_watch watch;
	struct io_timer timer, impatience;
	struct io_defer service;
	struct stream_host host;
	/* the core */
	const struct stream_ops *ops;
	void *core;
	void (*closed)(void *arg, int err);
	void *arg;
	/* where we are */
	enum stream_state state;
	bool rx_paused;	 /* the core takes no input now */
	bool patient;	 /* set_low_water */
	bool timing;	 /* impatience is set */
	bool in_vain;	 /* nothing came while we were, of what was likely */
	bool tx_blocked; /* the socket takes no output now */
	bool ended;	 /* nothing more comes in: FIN or an error */
	bool gave_up;	 /* ended by give_up, not by the peer */
	bool hold;	 /* net_stream_hold */
	int end_err;	 /* why: 0 = FIN */
	int fate_err;	 /* LINGERING: why the core wanted to close */
	xtime timer_at;	 /* XTIME_NEVER: not set */
	xtime give_up;	 /* flushing or lingering has to end then */
	/* the socket */
	struct net_send send;
	struct net_addr peer, local;
	struct net_stream_stats stats;
};

static void end(struct net_stream *s, int err)
{
	if (s->ended)
		return;
	s->ended = true;
	s->end_err = err;
}

/* err_of_errno says to a core what became of its socket. */
static int err_of_errno(int err)
{
	switch (err) {
	case 0:
		return 0;
	case -ENOMEM:
	case -ENOBUFS:
		return ERR_NOMEM;
	case -ETIMEDOUT:
		return ERR_TIMEOUT;
	default:
		return ERR_RESET;
	}
}

/* ---- input ---- */

static ssize_t receive(struct net_stream *s, struct iovec *iov, unsigned n)
{
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t got;

	s->stats.rx_calls++;
	do
		got = recvmsg(s->watch.fd, &m, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static bool wants_input(const struct net_stream *s)
{
	int err;

	return s->state == RUNNING && !s->ended && !s->rx_paused &&
	       s->ops->fate(s->core, &err) == STREAM_GO;
}

/* receive_once returns false when the socket has no more for now. */
static bool receive_once(struct net_stream *s, size_t *budget)
{
	struct iovec iov[RX_PIECES];
	unsigned n = s->ops->rx_where(s->core, iov, RX_PIECES);
	ssize_t got;

	if (n == 0) {
		s->rx_paused = true;
		return false;
	}
	got = receive(s, iov, n);
	if (got <= 0) {
		if (got != -EAGAIN)
			end(s, err_of_errno((int)got));
		return false;
	}
	s->stats.rx_bytes += (uint64_t)got;
	s->in_vain = false;
	s->ops->rx_done(s->core, (size_t)got, io_now(s->l));
	*budget -= MIN(*budget, (size_t)got);
	/* A short read emptied the socket: no call to be told so. */
	return (size_t)got == bufv_of(iov, n).len;
}

/* A peer that most likely sends much: while it does, we have patience. A timer
 * that is set stays: too early, it costs less than to be moved each time. */
static bool is_likely(struct net_stream *s)
{
	if (s->in_vain || s->ops->rx_likely(s->core) < PATIENT_FROM)
		return false;
	if (!s->timing)
		s->timing = !io_timer_set(s->l, &s->impatience,
					  io_now(s->l) + PATIENCE_MAX);
	return s->timing;
}

/* Where the peer owes much, a few bytes of it wake nobody: siw sends what it
 * was asked for in pieces of a segment. Its FIN does, and so does an error. */
static void set_low_water(struct net_stream *s)
{
	bool patient =
		s->state == RUNNING &&
		(s->ops->rx_sure(s->core) >= PATIENT_FROM || is_likely(s));
	int bytes = patient ? PATIENT_FOR : 1;

	if (patient == s->patient)
		return;
	s->patient = patient;
	setsockopt(s->watch.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

static void take_input(struct net_stream *s)
{
	size_t budget = RX_PER_TURN;

	while (budget > 0 && wants_input(s) && receive_once(s, &budget))
		;
	set_low_water(s);
}

/* patience_ended: what came meanwhile is taken, however little it is. Where the
 * core takes nothing now, nobody would look at the time when it does again. */
static void patience_ended(struct io_timer *t)
{
	struct net_stream *s = container_of(t, struct net_stream, impatience);
	uint64_t before = s->stats.rx_bytes;

	s->timing = false;
	if (!s->patient)
		return;
	if (wants_input(s))
		take_input(s);
	if (s->stats.rx_bytes == before) {
		s->in_vain = true;
		set_low_water(s);
	}
	io_loop_defer(s->l, &s->service);
}

/* drop_input reads what a peer still sends after our FIN, lest the close that
 * follows becomes a reset which takes our last bytes away from it. */
static void drop_input(struct net_stream *s)
{
	uint8_t junk[4096];
	struct iovec iov = { junk, sizeof(junk) };
	ssize_t got;

	for (int i = 0; i < 64 && (got = receive(s, &iov, 1)) != -EAGAIN; i++)
		if (got <= 0) {
			s->ended = true;
			return;
		}
}

static int socket_error(const struct net_stream *s)
{
	int err = 0;
	socklen_t len = sizeof(err);

	getsockopt(s->watch.fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return -err;
}

/* hung_up: an error that neither reading nor writing came across. */
static void hung_up(struct net_stream *s)
{
	int err = socket_error(s);

	if (err || s->rx_paused || s->state == LINGERING)
		end(s, err ? err_of_errno(err) : ERR_RESET);
}

static void stream_ready(struct io_watch *w, unsigned events)
{
	struct net_stream *s = container_of(w, struct net_stream, watch);

	if (events & IO_OUT)
		s->tx_blocked = false;
	if ((events & IO_IN) && s->state == LINGERING)
		drop_input(s);
	else if (events & IO_IN)
		take_input(s);
	if ((events & IO_ERR) && !s->ended)
		hung_up(s);
	io_loop_defer(s->l, &s->service);
}

/* ---- output ---- */

/* send_once returns false when there is nothing more to send for now. */
static bool send_once(struct net_stream *s)
{
	struct iovec iov[TX_PIECES];
	unsigned n = s->ops->tx_what(s->core, iov, TX_PIECES);
	int64_t sent;

	if (n == 0)
		return false;
	sent = net_send_pieces(&s->send, iov, n);
	if (sent < 0) {
		end(s, err_of_errno((int)sent));
		return false;
	}
	s->stats.tx_bytes += (uint64_t)sent;
	s->tx_blocked = (size_t)sent < bufv_of(iov, n).len;
	if (sent > 0) {
		s->ops->tx_done(s->core, (size_t)sent, io_now(s->l));
		s->rx_paused = false; /* there may be room now: ask again */
	}
	return !s->tx_blocked;
}

/* ---- the end ---- */

/* shut: s may be freed by closed. */
static void shut(struct net_stream *s, int err)
{
	bool keep = s->hold && (!s->ended || s->gave_up);

	s->state = CLOSED;
	io_timer_clear(s->l, &s->timer);
	io_timer_clear(s->l, &s->impatience);
	io_watch_del(s->l, &s->watch);
	io_defer_cancel(&s->service);
	if (!keep) {
		close(s->watch.fd);
		s->watch.fd = -1;
	}
	s->ops->closed(s->core, err, io_now_exact());
	s->closed(s->arg, err);
}

static void set_timer(struct net_stream *s)
{
	xtime at = s->give_up;

	if (s->state == RUNNING)
		at = MIN(at, s->ops->deadline(s->core));
	/* A timer that fires too early is cheaper than one that is moved
	 * with every request. */
	if (at >= s->timer_at)
		return;
	s->timer_at = at;
	if (io_timer_set(s->l, &s->timer, at))
		end(s, ERR_NOMEM);
}

static void timer_fired(struct io_timer *t)
{
	struct net_stream *s = container_of(t, struct net_stream, timer);
	xtime now = io_now(s->l);

	s->timer_at = XTIME_NEVER;
	if (s->give_up <= now) {
		s->gave_up = !s->ended;
		end(s, ERR_TIMEOUT);
	} else if (s->state == RUNNING && s->ops->deadline(s->core) <= now) {
		s->ops->expire(s->core, now);
		s->rx_paused = false;
	}
	io_loop_defer(s->l, &s->service);
}

static void linger(struct net_stream *s, int err)
{
	s->state = LINGERING;
	s->fate_err = err;
	s->give_up = io_now(s->l) + LINGER_MAX;
	if (shutdown(s->watch.fd, SHUT_WR) < 0)
		s->ended = true;
}

static unsigned wanted(const struct net_stream *s)
{
	if (s->state == LINGERING)
		return IO_IN;
	return (wants_input(s) ? IO_IN : 0) | (s->tx_blocked ? IO_OUT : 0);
}

/* carry_out does what the core's fate asks for; true: the stream is shut. */
static bool carry_out(struct net_stream *s)
{
	int err = 0;
	enum stream_fate fate = s->ops->fate(s->core, &err);

	if (fate == STREAM_CLOSE || s->ended) {
		shut(s, fate == STREAM_GO ? s->end_err : err);
		return true;
	}
	if (fate == STREAM_GO)
		return false;
	if (!s->tx_blocked)
		linger(s, err);
	else if (s->give_up == XTIME_NEVER)
		s->give_up = io_now(s->l) + FLUSH_MAX;
	return false;
}

static bool is_doomed(const struct net_stream *s)
{
	int err;

	return (s->ended && s->end_err) ||
	       s->ops->fate(s->core, &err) == STREAM_CLOSE;
}

/* serve is the end of a turn: all output of it, then fate and deadline. What
 * was answered before the peer's FIN still goes out. */
static void serve(struct io_defer *d)
{
	struct net_stream *s = container_of(d, struct net_stream, service);

	if (s->state == RUNNING) {
		while (!s->tx_blocked && !is_doomed(s) && send_once(s))
			;
		if (carry_out(s))
			return;
	}
	set_timer(s);
	if (s->state == LINGERING && s->ended) {
		shut(s, s->fate_err);
		return;
	}
	io_watch_want(s->l, &s->watch, wanted(s));
}

/* ---- what others call ---- */

static void kick(struct stream_host *host)
{
	struct net_stream *s = container_of(host, struct net_stream, host);

	if (s->state != RUNNING)
		return;
	s->rx_paused = false; /* rx_where will say if it still is */
	io_loop_defer(s->l, &s->service);
}

static void set_up_socket(int fd)
{
	int one = 1;

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* Fails on sockets that are not TCP, which have no need of it. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void ask_addresses(struct net_stream *s, int fd)
{
	s->peer.len = sizeof(s->peer.sa);
	if (getpeername(fd, (struct sockaddr *)&s->peer.sa, &s->peer.len))
		s->peer.len = 0;
	s->local.len = sizeof(s->local.sa);
	if (getsockname(fd, (struct sockaddr *)&s->local.sa, &s->local.len))
		s->local.len = 0;
}

struct net_stream *net_stream_new(struct io_loop *l, int fd)
{
	struct net_stream *s = calloc(1, sizeof(*s));

	if (!s) {
		close(fd);
		return NULL;
	}
	set_up_socket(fd);
	s->l = l;
	s->watch = (struct io_watch){
		.fd = fd,
		.want = IO_IN,
		.ready = stream_ready,
	};
	s->timer.fire = timer_fired;
	s->impatience.fire = patience_ended;
	s->timer_at = s->give_up = XTIME_NEVER;
	s->service.run = serve;
	list_init(&s->service.link);
	s->host.kick = kick;
	s->send.fd = fd;
	ask_addresses(s, fd);
	return s;
}

struct stream_host *net_stream_host(struct net_stream *s)
{
	return &s->host;
}

int net_stream_start(struct net_stream *s, const struct stream_ops *ops,
		     void *core, void (*closed)(void *arg, int err), void *arg)
{
	int err;

	assert(s->state == NEW);
	err = io_watch_add(s->l, &s->watch);
	if (err)
		return err;
	s->ops = ops;
	s->core = core;
	s->closed = closed;
	s->arg = arg;
	s->state = RUNNING;
	io_loop_defer(s->l, &s->service); /* the core may speak first */
	return 0;
}

void net_stream_switch(struct net_stream *s, const struct stream_ops *ops,
		       void *core)
{
	assert(s->state == RUNNING);
	s->ops = ops;
	s->core = core;
	kick(&s->host);
}

size_t net_stream_mss(const struct net_stream *s)
{
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(s->watch.fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len))
		return 0;
	return mss > 0 && mss < LOOPBACK_MSS ? (size_t)mss : 0;
}

void net_stream_hold(struct net_stream *s)
{
	s->hold = true;
}

int net_stream_held(struct net_stream *s)
{
	int fd = s->watch.fd;

	assert(s->state == CLOSED);
	s->watch.fd = -1;
	return fd;
}

void net_reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

void net_stream_free(struct net_stream *s)
{
	if (!s)
		return;
	assert(s->state == NEW || s->state == CLOSED);
	if (s->watch.fd >= 0)
		close(s->watch.fd);
	free(s);
}

void net_stream_peer(const struct net_stream *s, struct net_addr *a)
{
	*a = s->peer;
}

void net_stream_local(const struct net_stream *s, struct net_addr *a)
{
	*a = s->local;
}

const struct net_stream_stats *net_stream_stats(struct net_stream *s)
{
	s->stats.tx_calls = s->send.calls;
	return &s->stats;
}
