/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dir_notes.c: notifications between the gateways of a directory store: datagrams to
 * the sockets in the folder. A gateway whose socket is full, because it is stopped or
 * busy, is tried again until the time of the notification is over; numbers let a gateway
 * notice what it has missed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "cluster/blob.h"
#include "daemon/cluster/dir_internal.h"

#define MAGIC	    "OISRCLN1"
#define HEAD	    96u
#define NOTE	    1u
#define ACK	    2u
#define READ_BURST  64u
#define RETRY	    (5 * XTIME_MS)
#define ANSWER_TIME (5 * XTIME_S)
#define SOCKET_TEXT "g."

/* A message: MAGIC, kind (4 bytes), length of the data (4), incarnation (8) and number
 * (8) of the notification, the name of the sender (64), the data. */
struct message {
	uint32_t kind;
	uint64_t incarnation, number;
	char from[CLUSTER_ID_SIZE];
	const uint8_t *data;
	size_t len;
};

struct peer {
	char id[CLUSTER_ID_SIZE];
	bool unsent; /* its socket was full */
	bool acked, gone;
};

struct dir_sent {
	struct dir_store *s;
	struct cluster_note *n;
	uint64_t number;
	xtime end;
	struct list link;
	unsigned npeers;
	struct peer peers[CLUSTER_GATEWAYS];
};

/* ---- the codec ---- */

static size_t encode(const struct message *m, uint8_t *out)
{
	memcpy(out, MAGIC, 8);
	put_be32(out + 8, m->kind);
	put_be32(out + 12, (uint32_t)m->len);
	put_be64(out + 16, m->incarnation);
	put_be64(out + 24, m->number);
	memset(out + 32, 0, CLUSTER_ID_SIZE);
	memcpy(out + 32, m->from, strlen(m->from));
	if (m->len)
		memcpy(out + HEAD, m->data, m->len);
	return HEAD + m->len;
}

static bool decode(struct message *m, const uint8_t *p, size_t len)
{
	if (len < HEAD || memcmp(p, MAGIC, 8) != 0 ||
	    get_be32(p + 12) != len - HEAD || len - HEAD > CLUSTER_NOTE_MAX ||
	    !cluster_id_ok((const char *)p + 32, CLUSTER_ID_SIZE))
		return false;
	*m = (struct message){
		.kind = get_be32(p + 8),
		.incarnation = get_be64(p + 16),
		.number = get_be64(p + 24),
		.data = p + HEAD,
		.len = len - HEAD,
	};
	memcpy(m->from, p + 32, sizeof(m->from));
	return m->kind == NOTE || m->kind == ACK;
}

/* The path of a file of the folder: the folder's own may be too long for a socket. */
static void address_of(const struct dir_store *s, const char *id,
		       struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof(a->sun_path),
		 "/proc/self/fd/%d/" SOCKET_TEXT "%.63s", s->dir, id);
}

/* Returns 0, or a value of errno. */
static int send_message(const struct dir_store *s, const char *to,
			const struct message *m)
{
	uint8_t bytes[HEAD + CLUSTER_NOTE_MAX];
	size_t len = encode(m, bytes);
	struct sockaddr_un a;

	address_of(s, to, &a);
	return sendto(s->socket.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&a, sizeof(a)) < 0
		       ? errno
		       : 0;
}

/* ---- the ends of notifications ---- */

static void report_finished(struct io_post *p)
{
	struct dir_store *s = container_of(p, struct dir_store, report);
	struct list *n;

	s->reporting = false;
	while (!s->closed && (n = list_pop_front(&s->finished))) {
		struct cluster_note *note =
			list_entry(n, struct cluster_note, link);

		note->done(note);
	}
	dir_leave(s);
}

static void finish_note(struct dir_store *s, struct cluster_note *n, int result)
{
	n->result = result;
	list_push_back(&s->finished, &n->link);
	if (s->reporting)
		return;
	s->reporting = true;
	dir_enter(s);
	s->report.run = report_finished;
	io_loop_post(s->loop, &s->report);
}

static void free_sent(struct dir_sent *t)
{
	list_del(&t->link);
	free(t);
}

static void end_sent(struct dir_sent *t)
{
	struct cluster_note *n = t->n;
	struct dir_store *s = t->s;

	n->nacks = 0;
	for (unsigned i = 0; i < t->npeers; i++)
		if (t->peers[i].acked)
			memcpy(n->acks[n->nacks++], t->peers[i].id,
			       CLUSTER_ID_SIZE);
	free_sent(t);
	finish_note(s, n, 0);
}

/* ---- sending ---- */

/* A notification waits for the earlier ones to the same gateway: numbers that arrive
 * out of order look like old ones. */
static bool is_behind(const struct dir_sent *t, const char *id)
{
	list_for_each(at, &t->s->sent) {
		const struct dir_sent *e =
			list_entry(at, struct dir_sent, link);

		if (e == t)
			return false;
		for (unsigned i = 0; i < e->npeers; i++)
			if (e->peers[i].unsent &&
			    strcmp(e->peers[i].id, id) == 0)
				return true;
	}
	return false;
}

static bool is_full(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == EINTR;
}

static void send_to_peers(struct dir_sent *t)
{
	struct message m = {
		.kind = NOTE,
		.incarnation = t->s->incarnation,
		.number = t->number,
		.data = t->n->data,
		.len = t->n->len,
	};

	memcpy(m.from, t->s->store.id, sizeof(m.from));
	for (unsigned i = 0; i < t->npeers; i++) {
		struct peer *p = &t->peers[i];
		int err;

		if (!p->unsent || is_behind(t, p->id))
			continue;
		err = send_message(t->s, p->id, &m);
		p->unsent = is_full(err);
		p->gone = err && !p->unsent;
	}
}

/* Returns whether t has ended. */
static bool advance(struct dir_sent *t, xtime now, bool *unsent)
{
	bool waits = false;

	send_to_peers(t);
	for (unsigned i = 0; i < t->npeers; i++) {
		waits |= !t->peers[i].acked && !t->peers[i].gone;
		*unsent |= t->peers[i].unsent;
	}
	if (waits && now < t->end)
		return false;
	end_sent(t);
	return true;
}

/* Sends the answers that did not fit in the socket of their receiver. An answer that
 * does not fit for long counts as none. */
static void send_answers(struct dir_store *s, xtime now, bool *unsent)
{
	struct message m = { .kind = ACK };

	memcpy(m.from, s->store.id, sizeof(m.from));
	for (unsigned i = 0; i < DIR_NOTED; i++) {
		struct dir_noted *e = &s->noted[i];

		if (!e->answered)
			continue;
		m.incarnation = e->incarnation;
		m.number = e->number;
		if (is_full(send_message(s, e->from, &m)) && now < e->end)
			*unsent = true;
		else
			e->answered = false;
	}
}

/* Does what can be done now, and sets the timer for the rest. */
static void pump(struct dir_store *s)
{
	xtime now = io_now_exact(), at = XTIME_NEVER;
	bool unsent = false;

	send_answers(s, now, &unsent);
	list_for_each_safe(n, &s->sent) {
		struct dir_sent *t = list_entry(n, struct dir_sent, link);
		xtime end = t->end;

		if (!advance(t, now, &unsent))
			at = MIN(at, end);
	}
	if (unsent)
		at = MIN(at, now + RETRY);
	/* without memory the next event comes instead */
	(void)io_timer_set(s->loop, &s->timer, at);
}

static void on_time(struct io_timer *timer)
{
	pump(container_of(timer, struct dir_store, timer));
}

/* Finds the sockets of the other gateways. */
static void find_peers(struct dir_sent *t)
{
	const struct dir_store *s = t->s;
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const size_t skip = strlen(SOCKET_TEXT);
	const struct dirent *e;

	if (!d && fd >= 0)
		close(fd);
	while (d && t->npeers < CLUSTER_GATEWAYS && (e = readdir(d))) {
		const char *id = e->d_name + skip;

		if (strncmp(e->d_name, SOCKET_TEXT, skip) != 0 ||
		    !cluster_id_ok(id, strlen(id) + 1) ||
		    strcmp(id, s->store.id) == 0)
			continue;
		snprintf(t->peers[t->npeers].id, CLUSTER_ID_SIZE, "%s", id);
		t->peers[t->npeers++].unsent = true;
	}
	if (d)
		closedir(d);
}

void dir_notify(struct cluster_store *store, struct cluster_note *n)
{
	struct dir_store *s = dir_store_of(store);
	struct dir_sent *t;

	n->nacks = 0;
	if (n->len > CLUSTER_NOTE_MAX) {
		finish_note(s, n, ERR_LIMIT);
		return;
	}
	t = calloc(1, sizeof(*t));
	if (!t) {
		finish_note(s, n, ERR_NOMEM);
		return;
	}
	t->s = s;
	t->n = n;
	t->number = ++s->number;
	t->end = io_now_exact() + n->ms * XTIME_MS;
	list_push_back(&s->sent, &t->link);
	find_peers(t);
	pump(s);
}

void dir_ack(struct cluster_store *store, uint64_t cookie)
{
	struct dir_store *s = dir_store_of(store);

	for (unsigned i = 0; i < DIR_NOTED; i++) {
		struct dir_noted *e = &s->noted[i];

		if (!cookie || e->cookie != cookie)
			continue;
		e->cookie = 0;
		e->answered = true;
		e->end = io_now_exact() + ANSWER_TIME;
		pump(s);
		return;
	}
}

/* ---- receiving ---- */

/* is_news keeps the number of the notification; *missed: there was another one
 * before it. False: it came before. */
static bool is_news(struct dir_store *s, const struct message *m, bool *missed)
{
	struct dir_sender *e = NULL;
	uint64_t expected = 1;

	for (unsigned i = 0; i < DIR_SENDERS && !e; i++)
		if (strcmp(s->senders[i].id, m->from) == 0)
			e = &s->senders[i];
	if (e && e->incarnation == m->incarnation) {
		if (m->number <= e->number)
			return false;
		expected = e->number + 1;
	}
	if (!e)
		e = &s->senders[s->next_sender++ % DIR_SENDERS];
	*missed = m->number != expected;
	memcpy(e->id, m->from, sizeof(e->id));
	e->incarnation = m->incarnation;
	e->number = m->number;
	return true;
}

static void take_note(struct dir_store *s, const struct message *m)
{
	const struct cluster_store_events *events = &s->store.events;
	struct dir_noted *e;
	bool missed = false;

	if (!events->noted || !is_news(s, m, &missed))
		return;
	if (missed && events->missed)
		events->missed(events->arg);
	if (s->closed)
		return;
	e = &s->noted[s->next_noted++ % DIR_NOTED];
	*e = (struct dir_noted){
		.cookie = ++s->cookie,
		.incarnation = m->incarnation,
		.number = m->number,
	};
	memcpy(e->from, m->from, sizeof(e->from));
	events->noted(events->arg, m->from, e->cookie, m->data, m->len);
}

static void take_ack(struct dir_store *s, const struct message *m)
{
	if (m->incarnation != s->incarnation)
		return;
	list_for_each(at, &s->sent) {
		struct dir_sent *t = list_entry(at, struct dir_sent, link);

		if (t->number != m->number)
			continue;
		for (unsigned i = 0; i < t->npeers; i++)
			if (strcmp(t->peers[i].id, m->from) == 0)
				t->peers[i].acked = true;
		pump(s);
		return;
	}
}

/* The kernel names the user of the sender: another one cannot open the folder, but
 * may have been given a socket. */
static bool is_trusted(struct msghdr *h)
{
	struct ucred who;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == SOL_SOCKET &&
		    c->cmsg_type == SCM_CREDENTIALS &&
		    c->cmsg_len == CMSG_LEN(sizeof(who))) {
			memcpy(&who, CMSG_DATA(c), sizeof(who));
			return who.uid == 0 || who.uid == geteuid();
		}
	return false;
}

/* receive_one returns whether there was a message. */
static bool receive_one(struct dir_store *s)
{
	uint8_t bytes[HEAD + CLUSTER_NOTE_MAX];
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr h = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct message m;
	ssize_t n = recvmsg(s->socket.fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EINTR;
	if (h.msg_flags & MSG_TRUNC || !is_trusted(&h) ||
	    !decode(&m, bytes, (size_t)n) || strcmp(m.from, s->store.id) == 0)
		return true;
	if (m.kind == NOTE)
		take_note(s, &m);
	else
		take_ack(s, &m);
	return true;
}

static void on_ready(struct io_watch *w, unsigned events)
{
	struct dir_store *s = container_of(w, struct dir_store, socket);

	(void)events;
	dir_enter(s);
	for (unsigned i = 0; i < READ_BURST && !s->closed; i++)
		if (!receive_one(s))
			break;
	dir_leave(s);
}

/* ---- open, close ---- */

int dir_notes_open(struct dir_store *s)
{
	const char *const text = SOCKET_TEXT;
	char name[CLUSTER_ID_SIZE + 4];
	struct sockaddr_un a;
	int on = 1, err = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	io_random(NULL, (uint8_t *)&s->incarnation, sizeof(s->incarnation));
	if (fd < 0)
		return -errno;
	/* The name is this process's (claim_name): the socket is left over. */
	snprintf(name, sizeof(name), "%s%s", text, s->store.id);
	if (unlinkat(s->dir, name, 0) && errno != ENOENT)
		err = -errno;
	address_of(s, s->store.id, &a);
	if (!err && (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ||
		     bind(fd, (const struct sockaddr *)&a, sizeof(a)) ||
		     fchmodat(s->dir, name, 0600, 0)))
		err = -errno;
	s->timer.fire = on_time;
	s->socket.fd = fd;
	s->socket.want = IO_IN;
	s->socket.ready = on_ready;
	if (!err)
		err = io_watch_add(s->loop, &s->socket);
	if (err) {
		close(fd);
		s->socket.fd = -1;
	}
	return err;
}

static void abort_note(struct cluster_note *n)
{
	n->nacks = 0;
	n->result = ERR_ABORTED;
	n->done(n);
}

void dir_notes_close(struct dir_store *s)
{
	char name[CLUSTER_ID_SIZE + 4];
	struct list *at;

	io_timer_clear(s->loop, &s->timer);
	io_watch_del(s->loop, &s->socket);
	close(s->socket.fd);
	snprintf(name, sizeof(name), SOCKET_TEXT "%s", s->store.id);
	unlinkat(s->dir, name, 0);
	while (!list_empty(&s->sent)) {
		struct dir_sent *t =
			list_entry(s->sent.next, struct dir_sent, link);
		struct cluster_note *n = t->n;

		free_sent(t);
		abort_note(n);
	}
	while ((at = list_pop_front(&s->finished)))
		abort_note(list_entry(at, struct cluster_note, link));
}
