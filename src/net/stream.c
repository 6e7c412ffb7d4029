/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.c: a socket with a protocol core. Input is received when the socket is
 * readable; output, fate and deadline are handled once, at the end of the
 * turn.
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
#include "net/turn.h"

#define RX_PIECES 64
#define TX_PIECES 512
/* If the peer has to send PATIENT_FROM bytes, do not wake for less than PATIENT_FOR. */
#define PATIENT_FROM (64u << 10)
#define PATIENT_FOR  (32 << 10)
/* limits of the wait for input that is only likely, and for input that the peer owes */
#define PATIENCE_MAX	  (2 * XTIME_MS)
#define PATIENCE_SURE_MAX (20 * XTIME_MS)
/* Then the answers are sent, and other connections get their turn. If a turn took a whole
 * queue of commands, the peer would wait for the last answer before it sends the next ones,
 * and one of the two ends would always be idle. */
#define RX_PER_TURN (256u << 10)
/* Then the other connections get their turn; this one goes on in the next turn. */
#define TX_PER_TURN (512u << 10)
/* limit of sending to a peer that does not read */
#define FLUSH_MAX (5 * XTIME_S)
/* longer than any frame of a network device */
#define LOOPBACK_MSS 16384
#define LINGER_MAX   (500 * XTIME_MS)

enum stream_state {
	NEW,
	RUNNING,
	/* all output and our FIN are sent; waits for the peer's FIN */
	LINGERING,
	CLOSED,
};

struct net_stream {
	struct io_loop *l;
	struct io_watch watch;
	struct io_timer timer, patience_timer;
	struct io_defer service;
	struct net_turn turn;
	struct stream_host host;
	/* the core */
	const struct stream_ops *ops;
	void *core;
	struct stream_status status; /* its last report: core_status */
	bool status_stale;	     /* the core may report another one now */
	void (*closed)(void *arg, int err);
	void *arg;
	/* state */
	enum stream_state state;
	bool rx_paused;	      /* the core takes no input at present */
	bool low_water;	      /* the low-water mark of the socket is set */
	bool patience_set;    /* patience_timer is set */
	bool patience_failed; /* the input did not arrive within the limit */
	bool tx_blocked;      /* the socket takes no output at present */
	bool ended;	      /* the input has ended: FIN or an error */
	bool gave_up;	      /* ended by the timer give_up, not by the peer */
	bool hold;	      /* net_stream_hold */
	int end_err;	      /* the reason; 0: FIN */
	int fate_err;	      /* LINGERING: the core's reason to close */
	xtime timer_at;	      /* XTIME_NEVER: not set */
	xtime give_up;	      /* time limit of flushing or lingering */
	/* the socket */
	struct net_send send;
	struct net_addr peer, local;
	struct net_stream_stats stats;
};

static void end_input(struct net_stream *s, int err)
{
	if (s->ended)
		return;
	s->ended = true;
	s->end_err = err;
}

/* err_of_errno maps an error of a socket to an error for the core. */
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

/* core_status: the status of the core. Every call that may change it sets
 * status_stale. */
static const struct stream_status *core_status(struct net_stream *s)
{
	if (s->status_stale)
		s->ops->status(s->core, &s->status);
	s->status_stale = false;
	return &s->status;
}

static bool wants_input(struct net_stream *s)
{
	return s->state == RUNNING && !s->ended && !s->rx_paused &&
	       !net_turn_waits(&s->turn) && core_status(s)->fate == STREAM_GO;
}

static bool is_spent(struct stream_host *host, bool control)
{
	return net_turn_count(
		&container_of(host, struct net_stream, host)->turn, control);
}

/* receive_once returns false if the socket has no more input for now. */
static bool receive_once(struct net_stream *s, size_t *budget)
{
	struct iovec iov[RX_PIECES];
	unsigned n = s->ops->rx_where(s->core, iov, RX_PIECES);
	ssize_t got;

	s->status_stale =
		true; /* the core may have gone on with earlier input */
	if (n == 0) {
		s->rx_paused = !s->turn.is_spent;
		return false;
	}
	got = receive(s, iov, n);
	if (got <= 0) {
		if (got != -EAGAIN)
			end_input(s, err_of_errno((int)got));
		return false;
	}
	s->stats.rx_bytes += (uint64_t)got;
	s->patience_failed = false;
	s->ops->rx_done(s->core, (size_t)got, io_now(s->l));
	s->status_stale = true;
	*budget -= MIN(*budget, (size_t)got);
	/* A short read has emptied the socket: skip the call that returns
	 * EAGAIN. */
	return (size_t)got == bufv_of(iov, n).len;
}

/* Sets the timer that ends the wait for much input. Leave one alone that is armed for an earlier
 * time: an early expiry costs less than re-arming it for every request. */
static bool set_patience(struct net_stream *s, xtime most)
{
	xtime at = io_now(s->l) + most;

	if (!s->patience_set || s->patience_timer.at > at)
		s->patience_set = !io_timer_set(s->l, &s->patience_timer, at);
	return s->patience_set;
}

/* The core expects the peer to send much: wait for many bytes at once. The wait has a
 * limit, since the peer may stop in the middle, and send requests before the rest. A loop
 * that polls does not sleep: it does not wait for what is only likely. */
static bool is_patient(struct net_stream *s)
{
	const struct stream_status *st = core_status(s);
	bool sure = st->sure >= PATIENT_FROM;

	if (s->state != RUNNING || s->patience_failed ||
	    (!sure && (st->likely < PATIENT_FROM || io_loop_spins(s->l))))
		return false;
	return set_patience(s, sure ? PATIENCE_SURE_MAX : PATIENCE_MAX);
}

/* While the peer has to send much, do not wake for a few bytes: siw sends a
 * response in pieces of a segment. A FIN or an error wakes in any case. A loop that
 * polls this socket does not sleep, so it has no wake-up to save. */
static void set_low_water(struct net_stream *s)
{
	bool patient = !io_watch_is_polled(s->l, &s->watch) && is_patient(s);
	int bytes = patient ? PATIENT_FOR : 1;

	if (patient != s->low_water &&
	    !setsockopt(s->watch.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes,
			sizeof(bytes)))
		s->low_water = patient;
}

static void take_input(struct net_stream *s)
{
	size_t budget = RX_PER_TURN;

	net_turn_begin(&s->turn);
	while (budget > 0 && !s->turn.is_spent && wants_input(s) &&
	       receive_once(s, &budget))
		;
	set_low_water(s);
}

static void go_on(struct net_turn *t)
{
	struct net_stream *s = container_of(t, struct net_stream, turn);

	if (wants_input(s))
		take_input(s);
	io_loop_defer(s->l, &s->service);
}

/* The input that has arrived is taken, however little. If the core takes none
 * at present, no later event would check this timer: so the wait ends here,
 * too. */
static void patience_ended(struct io_timer *t)
{
	struct net_stream *s =
		container_of(t, struct net_stream, patience_timer);
	uint64_t before = s->stats.rx_bytes;

	s->patience_set = false;
	if (!s->low_water)
		return;
	if (wants_input(s))
		take_input(s);
	if (s->stats.rx_bytes == before) {
		s->patience_failed = true;
		set_low_water(s);
	}
	io_loop_defer(s->l, &s->service);
}

/* drop_input discards input after our FIN. Unread input would turn the close
 * into a reset, and the peer might lose our last bytes. */
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

/* hung_up handles an error that neither a read nor a write returned. */
static void hung_up(struct net_stream *s)
{
	int err = socket_error(s);

	if (err || s->rx_paused || s->state == LINGERING)
		end_input(s, err ? err_of_errno(err) : ERR_RESET);
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

/* stream_attempt receives what there is. Attempts in vain do not count as
 * calls. */
static bool stream_attempt(struct io_watch *w)
{
	struct net_stream *s = container_of(w, struct net_stream, watch);
	struct net_stream_stats before = s->stats;

	if (s->low_water || !wants_input(s))
		return false;
	take_input(s);
	if (s->stats.rx_bytes == before.rx_bytes && !s->ended) {
		s->stats.rx_calls = before.rx_calls;
		return false;
	}
	io_loop_defer(s->l, &s->service);
	return true;
}

/* ---- output ---- */

/* send_once returns false if there is no more output for now, or no room. */
static bool send_once(struct net_stream *s)
{
	struct iovec iov[TX_PIECES];
	unsigned n = s->ops->tx_what(s->core, iov, TX_PIECES);
	int64_t sent;

	s->status_stale = true;
	if (n == 0)
		return false;
	sent = net_send_pieces(&s->send, iov, n);
	if (sent < 0) {
		end_input(s, err_of_errno((int)sent));
		return false;
	}
	s->stats.tx_bytes += (uint64_t)sent;
	s->tx_blocked = (size_t)sent < bufv_of(iov, n).len;
	if (sent > 0) {
		s->ops->tx_done(s->core, (size_t)sent, io_now(s->l));
		s->rx_paused = false; /* the core may have room again */
	}
	return !s->tx_blocked;
}

static bool is_lost(struct net_stream *s)
{
	return (s->ended && s->end_err) || core_status(s)->fate == STREAM_CLOSE;
}

/* A socket that takes more than a turn sends is waited for as one that takes no more. */
static void send_some(struct net_stream *s)
{
	uint64_t before = s->stats.tx_bytes;

	while (!s->tx_blocked && !is_lost(s) && send_once(s))
		s->tx_blocked = s->stats.tx_bytes - before >= TX_PER_TURN;
}

/* ---- the end ---- */

/* shut closes the socket. The callback closed may free s. */
static void shut(struct net_stream *s, int err)
{
	bool keep = s->hold && (!s->ended || s->gave_up);

	s->state = CLOSED;
	io_timer_clear(s->l, &s->timer);
	io_timer_clear(s->l, &s->patience_timer);
	io_watch_del(s->l, &s->watch);
	io_defer_cancel(&s->service);
	net_turn_cancel(&s->turn);
	if (!keep) {
		close(s->watch.fd);
		s->watch.fd = -1;
	}
	if (s->ops->closed)
		s->ops->closed(s->core, err, io_now_exact());
	s->closed(s->arg, err);
}

static void set_timer(struct net_stream *s)
{
	xtime at = s->give_up;

	if (s->state == RUNNING)
		at = MIN(at, core_status(s)->deadline);
	/* Leave an armed timer alone: an early expiry costs less than re-arming
	 * it for every request. */
	if (at >= s->timer_at)
		return;
	s->timer_at = at;
	if (io_timer_set(s->l, &s->timer, at))
		end_input(s, ERR_NOMEM);
}

static void timer_fired(struct io_timer *t)
{
	struct net_stream *s = container_of(t, struct net_stream, timer);
	xtime now = io_now(s->l);

	s->timer_at = XTIME_NEVER;
	s->status_stale = true;
	if (s->give_up <= now) {
		s->gave_up = !s->ended;
		end_input(s, ERR_TIMEOUT);
	} else if (s->state == RUNNING && core_status(s)->deadline <= now) {
		s->ops->expire(s->core, now);
		s->status_stale = true;
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

static unsigned wanted(struct net_stream *s)
{
	if (s->state == LINGERING)
		return IO_IN;
	return (wants_input(s) ? IO_IN : 0) | (s->tx_blocked ? IO_OUT : 0);
}

/* carry_out acts on the core's fate; true: the stream is shut. */
static bool carry_out(struct net_stream *s)
{
	enum stream_fate fate = core_status(s)->fate;
	int err = fate == STREAM_GO ? s->end_err : core_status(s)->err;

	if (fate == STREAM_CLOSE || s->ended) {
		shut(s, err);
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

/* serve_stream handles the end of a turn: output, then fate and deadline.
 * Responses made before the peer's FIN are still sent. */
static void serve_stream(struct io_defer *d)
{
	struct net_stream *s = container_of(d, struct net_stream, service);

	s->status_stale = true; /* commands may have completed in this turn */
	if (s->state == RUNNING) {
		send_some(s);
		if (carry_out(s))
			return;
	}
	if (s->state == RUNNING)
		net_turn_end(&s->turn);
	set_timer(s);
	if (s->state == LINGERING && s->ended) {
		shut(s, s->fate_err);
		return;
	}
	io_watch_want(s->l, &s->watch, wanted(s));
}

/* ---- public functions ---- */

static void kick(struct stream_host *host)
{
	struct net_stream *s = container_of(host, struct net_stream, host);

	if (s->state != RUNNING)
		return;
	s->rx_paused = false; /* rx_where decides whether it still is */
	s->status_stale = true;
	io_loop_defer(s->l, &s->service);
}

static void set_up_socket(int fd)
{
	int one = 1;

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* Fails on sockets that are not TCP, which do not need it. */
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
		.attempt = stream_attempt,
	};
	s->timer.fire = timer_fired;
	s->patience_timer.fire = patience_ended;
	s->timer_at = s->give_up = XTIME_NEVER;
	s->service.run = serve_stream;
	list_init(&s->service.link);
	net_turn_init(&s->turn, l, go_on);
	s->host.kick = kick;
	s->host.is_spent = is_spent;
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
	s->status_stale = true;
	s->closed = closed;
	s->arg = arg;
	s->state = RUNNING;
	io_loop_defer(s->l, &s->service); /* the core may have output at once */
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

void net_stream_drop(struct net_stream *s, int err)
{
	if (s->state != RUNNING && s->state != LINGERING)
		return;
	end_input(s, err);
	io_loop_defer(s->l, &s->service);
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
