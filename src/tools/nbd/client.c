/* SPDX-License-Identifier: BSD-2-Clause */
/* client.c: receives requests, begins them at the unit, sends replies. */
#include "tools/nbd/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH	 32 /* replies per sendmsg */
#define ROUNDS	 16 /* receive calls per turn, before the next client */
#define NEGO_TRY 64 /* the same, while it negotiates */
#define NEGO_NS	 10000000000u /* for the negotiation */
#define SIZE_NS	 3000000000u  /* for the capacity before it */

/* ---- endings ---- */

void nbd_client_drop(struct nbd_client *c)
{
	c->state = NBD_GONE;
}

/* Drops a client that breaks the protocol. */
static void drop_for_error(struct nbd_client *c, const char *what)
{
	say("NBD client %u: %s: connection closed", c->number, what);
	nbd_client_drop(c);
}

bool nbd_client_check_nego(struct nbd_client *c, uint64_t now)
{
	if (c->state != NBD_NEGOTIATING)
		return false;
	c->knows_size |= now - c->since >= SIZE_NS;
	if (now - c->since >= NEGO_NS)
		drop_for_error(c,
			       "no end of the negotiation within 10 seconds");
	return c->state == NBD_NEGOTIATING;
}

void nbd_client_leave(struct nbd_client *c)
{
	if (c->state == NBD_NEGOTIATING)
		c->state = NBD_GONE;
	else if (c->state == NBD_SERVING)
		c->state = NBD_LEAVING;
}

bool nbd_client_is_done(const struct nbd_client *c)
{
	return c->in_flight == 0 && (c->state == NBD_GONE ||
				     (c->state == NBD_LEAVING && !c->replies));
}

/* Drops the client after a failed socket call, unless the call has to be
 * repeated. what: the name of the call. */
static void check_socket_error(struct nbd_client *c, const char *what)
{
	if (errno == EAGAIN || errno == EINTR)
		return;
	say("NBD client %u: %s: %s: connection closed", c->number, what,
	    strerror(errno));
	nbd_client_drop(c);
}

/* ---- jobs ---- */

static struct nbd_job *take_job(struct nbd_client *c)
{
	struct nbd_job *j = c->free;

	c->free = j->next;
	c->taken++;
	return j;
}

static void free_job(struct nbd_client *c, struct nbd_job *j)
{
	c->taken--;
	c->bytes -= j->held;
	c->unit->held -= j->held;
	j->held = 0;
	nbd_job_release(j, true);
	j->next = c->free;
	c->free = j;
}

static bool has_room(const struct nbd_client *c)
{
	if (!c->taken) /* one request is always allowed */
		return true;
	return c->free && c->bytes < NBD_BYTES && c->unit->held < NBD_ALL_BYTES;
}

/* Makes memory for the data of a job, and charges it to the client. */
static enum nbd_error make_room(struct nbd_client *c, struct nbd_job *j)
{
	bool data = j->req.command == NBD_READ || j->req.command == NBD_WRITE;

	if (!nbd_job_room(j))
		return NBD_ENOMEM;
	j->held = data ? j->req.length : 0;
	c->bytes += j->held;
	c->unit->held += j->held;
	return NBD_OK;
}

/* ---- replies ---- */

static void queue_reply(struct nbd_client *c, struct nbd_job *j)
{
	if (j->extents && !j->err)
		j->head_len = nbd_status_put(&j->req, j->extents, j->head);
	else
		j->head_len = nbd_reply_put(&c->nego, &j->req, j->err, j->head);
	j->next = NULL;
	*c->replies_tail = j;
	c->replies_tail = &j->next;
}

static void job_done(struct nbd_job *j)
{
	struct nbd_client *c = j->owner;

	c->in_flight--;
	queue_reply(c, j);
}

static void start_job(struct nbd_client *c, struct nbd_job *j)
{
	c->in_flight++;
	nbd_job_start(j);
}

static void refuse_job(struct nbd_client *c, struct nbd_job *j,
		       enum nbd_error err)
{
	j->err = err;
	j->data_len = 0;
	j->extents = 0;
	queue_reply(c, j);
}

/* Removes n bytes that were sent from the head of the queue. */
static void remove_sent(struct nbd_client *c, size_t n)
{
	c->sent += n;
	while (c->replies) {
		struct nbd_job *j = c->replies;
		size_t len = j->head_len + j->data_len;

		if (c->sent < len)
			return;
		c->sent -= len;
		c->replies = j->next;
		if (!c->replies)
			c->replies_tail = &c->replies;
		free_job(c, j);
	}
}

/* Adds the part of p (len bytes) that was not sent; *skip: bytes that were sent.
 * Returns the number of elements of iov. */
static unsigned add_piece(struct iovec *iov, unsigned n, void *p, size_t len,
			  size_t *skip)
{
	size_t s = *skip < len ? *skip : len;

	*skip -= s;
	if (s == len)
		return n;
	iov[n] = (struct iovec){ (uint8_t *)p + s, len - s };
	return n + 1;
}

/* Calls sendmsg once. Returns whether the socket took all bytes. */
static bool send_batch(struct nbd_client *c)
{
	struct iovec iov[2 * BATCH];
	struct msghdr m = { .msg_iov = iov };
	size_t skip = c->sent, total = 0;
	unsigned n = 0;
	ssize_t sent;

	for (struct nbd_job *j = c->replies; j && n + 2 <= 2 * BATCH;
	     j = j->next) {
		n = add_piece(iov, n, j->head, j->head_len, &skip);
		n = add_piece(iov, n, j->data, j->data_len, &skip);
	}
	for (unsigned i = 0; i < n; i++)
		total += iov[i].iov_len;
	m.msg_iovlen = n;
	sent = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0) {
		check_socket_error(c, "send");
		return false;
	}
	remove_sent(c, (size_t)sent);
	return (size_t)sent == total;
}

static void send_nego(struct nbd_client *c)
{
	struct nbd_nego *n = &c->nego;
	ssize_t sent;

	while (c->nego_sent < n->out_len) {
		sent = send(c->fd, n->out + c->nego_sent,
			    n->out_len - c->nego_sent,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0) {
			check_socket_error(c, "send");
			return;
		}
		c->nego_sent += (size_t)sent;
	}
	n->out_len = c->nego_sent = 0;
	if (n->state == NBD_NEGO_OVER) {
		c->state = NBD_SERVING;
		c->served = true;
	} else if (n->state == NBD_NEGO_ENDED) {
		nbd_client_drop(c);
	} else if (n->state == NBD_NEGO_FAILED) {
		drop_for_error(c, n->why);
	}
}

void nbd_client_send(struct nbd_client *c)
{
	if (c->state == NBD_NEGOTIATING) {
		send_nego(c);
		return;
	}
	while (c->replies && c->state != NBD_GONE)
		if (!send_batch(c))
			return;
}

/* ---- requests ---- */

static void begin_write(struct nbd_client *c)
{
	struct nbd_job *j = c->filling;

	c->filling = NULL;
	if (c->discard)
		refuse_job(c, j, j->err);
	else
		start_job(c, j);
}

/* Receives the data of a WRITE next, also of one that is refused (err). */
static void expect_data(struct nbd_client *c, struct nbd_job *j,
			enum nbd_error err)
{
	c->filling = j;
	c->filled = 0;
	c->discard = err != NBD_OK;
	j->err = err;
}

static void begin_request(struct nbd_client *c, struct nbd_job *j)
{
	enum nbd_error err = nbd_request_check(&c->nego, &j->req);

	if (!err)
		err = make_room(c, j);
	if (j->req.command == NBD_WRITE && j->req.length)
		expect_data(c, j, err);
	else if (err)
		refuse_job(c, j, err);
	else
		start_job(c, j);
}

static void take_request(struct nbd_client *c)
{
	struct nbd_job *j = take_job(c);
	const uint8_t *b = c->ahead + c->ahead_at;

	c->ahead_at += NBD_REQUEST_SIZE;
	c->ahead_len -= NBD_REQUEST_SIZE;
	if (!nbd_request_get(&j->req, b)) {
		free_job(c, j);
		drop_for_error(c, "a request without its magic number");
	} else if (j->req.command == NBD_DISC) {
		free_job(c, j);
		c->asked_to_end = true;
		nbd_client_leave(c);
	} else {
		begin_request(c, j);
	}
}

/* Moves the data of the WRITE that were received ahead to its buffer. */
static void take_ahead(struct nbd_client *c)
{
	size_t n = c->filling->req.length - c->filled;

	if (n > c->ahead_len)
		n = c->ahead_len;
	if (!c->discard)
		memcpy(c->filling->buf + c->filled, c->ahead + c->ahead_at, n);
	c->filled += n;
	c->ahead_at += n;
	c->ahead_len -= n;
}

/* Begins the requests that were received ahead, while there is room. Returns
 * whether it began one. */
static bool begin_ahead(struct nbd_client *c)
{
	bool any = false;

	while (c->state == NBD_SERVING) {
		if (c->filling && c->filled == c->filling->req.length) {
			begin_write(c);
			any = true;
		} else if (c->filling && c->ahead_len) {
			take_ahead(c);
		} else if (!c->filling && c->ahead_len >= NBD_REQUEST_SIZE &&
			   has_room(c)) {
			take_request(c);
			any = true;
		} else {
			break;
		}
	}
	return any;
}

bool nbd_client_is_ready(const struct nbd_client *c)
{
	return c->state == NBD_SERVING && !c->filling &&
	       c->ahead_len >= NBD_REQUEST_SIZE && has_room(c);
}

/* ---- receiving ---- */

static void end_of_input(struct nbd_client *c)
{
	if (c->filling || c->ahead_len)
		drop_for_error(c, "disconnected in the middle of a request");
	else
		nbd_client_leave(c);
}

/* Describes where the next bytes go: data of the WRITE that is being received
 * to its buffer, the bytes after these data to the look-ahead. Returns the
 * number of elements of iov. */
static unsigned fill_iov(struct nbd_client *c, struct iovec iov[2],
			 uint8_t *scrap, size_t scrap_len)
{
	unsigned n = 0;

	if (c->filling) {
		size_t left = c->filling->req.length - c->filled;

		if (c->discard) /* data to drop, without the bytes after them */
			iov[n++] = (struct iovec){ scrap, left < scrap_len
								  ? left
								  : scrap_len };
		else
			iov[n++] = (struct iovec){ c->filling->buf + c->filled,
						   left };
		if (c->discard)
			return n;
	}
	memmove(c->ahead, c->ahead + c->ahead_at, c->ahead_len);
	c->ahead_at = 0;
	iov[n++] = (struct iovec){ c->ahead + c->ahead_len,
				   sizeof(c->ahead) - c->ahead_len };
	return n;
}

/* Calls recvmsg once. Returns whether bytes came. */
static bool receive_some(struct nbd_client *c)
{
	uint8_t scrap[65536];
	struct iovec iov[2];
	struct msghdr m = { .msg_iov = iov };
	size_t first = 0;
	ssize_t n;

	m.msg_iovlen = fill_iov(c, iov, scrap, sizeof(scrap));
	n = recvmsg(c->fd, &m, MSG_DONTWAIT);
	if (n < 0) {
		check_socket_error(c, "receive");
		return false;
	}
	if (n == 0) {
		end_of_input(c);
		return false;
	}
	if (c->filling)
		first = (size_t)n < iov[0].iov_len ? (size_t)n : iov[0].iov_len;
	c->filled += first;
	c->ahead_len += (size_t)n - first;
	return true;
}

static void negotiate(struct nbd_client *c)
{
	for (int i = 0; i < NEGO_TRY && c->state == NBD_NEGOTIATING; i++) {
		uint8_t *where;
		size_t want = nbd_nego_want(&c->nego, &where);
		ssize_t n;

		if (want == 0 || c->nego.out_len)
			return;
		n = recv(c->fd, where, want, MSG_DONTWAIT);
		if (n < 0) {
			check_socket_error(c, "receive");
			return;
		}
		if (n == 0) {
			nbd_client_drop(c);
			return;
		}
		nbd_nego_got(&c->nego, (size_t)n);
		send_nego(c);
	}
}

bool nbd_client_receive(struct nbd_client *c)
{
	bool any = false;

	if (c->state == NBD_NEGOTIATING) {
		negotiate(c);
		return false;
	}
	any = begin_ahead(c);
	for (int i = 0; i < ROUNDS && (nbd_client_wants(c) & POLLIN); i++) {
		if (!receive_some(c))
			break;
		any |= begin_ahead(c);
	}
	return any;
}

unsigned nbd_client_wants(const struct nbd_client *c)
{
	unsigned events = 0;

	switch (c->state) {
	case NBD_NEGOTIATING:
		if (!c->knows_size)
			return 0;
		return c->nego.out_len ? POLLOUT : POLLIN;
	case NBD_SERVING:
		if (c->filling || has_room(c))
			events = POLLIN;
		/* fall through */
	case NBD_LEAVING:
		return events | (c->replies ? POLLOUT : 0);
	case NBD_GONE:
		break;
	}
	return 0;
}

/* ---- life ---- */

struct nbd_client *nbd_client_new(int fd, unsigned number, struct nbd_unit *u,
				  const struct nbd_export *e)
{
	struct nbd_client *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return NULL;
	}
	c->fd = fd;
	c->number = number;
	c->unit = u;
	c->since = now_ns();
	c->replies_tail = &c->replies;
	for (unsigned i = 0; i < NBD_JOBS; i++) {
		c->jobs[i] = (struct nbd_job){
			.unit = u, .done = job_done, .owner = c, .next = c->free
		};
		c->free = &c->jobs[i];
	}
	nbd_nego_start(&c->nego, e);
	return c;
}

struct nbd_client *nbd_client_new_serving(int fd, unsigned number,
					  struct nbd_unit *u,
					  const struct nbd_export *e)
{
	struct nbd_client *c = nbd_client_new(fd, number, u, e);

	if (!c)
		return NULL;
	c->nego.out_len = 0;
	c->nego.state = NBD_NEGO_OVER;
	c->state = NBD_SERVING;
	c->served = true;
	return c;
}

void nbd_client_free(struct nbd_client *c)
{
	close(c->fd);
	c->unit->held -= c->bytes;
	for (unsigned i = 0; i < NBD_JOBS; i++)
		nbd_job_release(&c->jobs[i], false);
	free(c);
}
