/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c: the management socket: a Unix socket, one JSON-RPC 2.0 request a
 * line, one response a line; methods.c has what can be asked for. It lives on
 * worker 0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control_internal.h"

#define LINE_MAX_BYTES 65536
#define CLIENTS_MAX    16

/* A client with that many bytes of answers that it has not read, or so many
 * answers that are still to come, is asked for no more requests; one that reads
 * nothing then for so long goes. */
#define UNREAD_MAX  (256u << 10)
#define OWED_MAX    8
#define UNREAD_TIME (5 * XTIME_S)

/* ---- answers ---- */

static void client_free(struct client *c)
{
	free(c->in);
	free(c->out);
	free(c);
}

static void client_close(struct client *c)
{
	if (c->gone)
		return;
	c->gone = true;
	io_timer_clear(c->control->loop, &c->unread);
	io_defer_cancel(&c->more);
	io_watch_del(c->control->loop, &c->watch);
	close(c->watch.fd);
	list_del(&c->link);
	c->control->nclients--;
	if (!c->pending)
		client_free(c);
}

/* One less needs it. False: it has gone, and may be freed now. */
static bool client_let_go(struct client *c)
{
	c->pending--;
	if (!c->gone)
		return true;
	if (!c->pending)
		client_free(c);
	return false;
}

static bool is_behind(const struct client *c)
{
	return c->out_len >= UNREAD_MAX || c->owed >= OWED_MAX;
}

/* After whatever may have changed how far behind it is. */
static void client_watch(struct client *c, bool progress)
{
	struct io_loop *l = c->control->loop;
	bool behind = is_behind(c), was_behind = !(c->watch.want & IO_IN);

	io_watch_want(l, &c->watch,
		      (behind ? 0 : IO_IN) | (c->out_len ? IO_OUT : 0));
	if (c->out_len < UNREAD_MAX)
		io_timer_clear(l, &c->unread);
	else if (progress || !c->is_timed)
		io_timer_set(l, &c->unread, io_now(l) + UNREAD_TIME);
	c->is_timed = c->out_len >= UNREAD_MAX;
	if (was_behind && !behind)
		io_loop_defer(l, &c->more);
}

static void client_write(struct client *c)
{
	ssize_t n = send(c->watch.fd, c->out, c->out_len,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		client_close(c);
		return;
	}
	if (n > 0) {
		c->out_len -= (size_t)n;
		memmove(c->out, c->out + n, c->out_len);
	}
	client_watch(c, n > 0);
}

static void client_unread(struct io_timer *t)
{
	struct client *c = container_of(t, struct client, unread);

	trace_emit(&c->control->daemon->log.trace, TRACE_CONN_LIMIT,
		   "control socket: dropped a client that does not read its "
		   "answers");
	client_close(c);
}

/* Takes over response. */
static void answer(struct client *c, json_t *response)
{
	char *text = response ? json_dumps(response, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;
	char *out;

	json_decref(response);
	if (!text || c->gone)
		goto out_text;
	out = realloc(c->out, c->out_len + len + 1);
	if (!out)
		goto out_text;
	c->out = out;
	memcpy(out + c->out_len, text, len);
	out[c->out_len + len] = '\n';
	c->out_len += len + 1;
	client_write(c);
out_text:
	free(text);
}

void client_result(struct client *c, json_t *id, json_t *result)
{
	answer(c, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id,
			    "result", result));
}

void client_error(struct client *c, json_t *id, enum rpc_error code,
		  const char *message)
{
	answer(c,
	       json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id,
			 "error", "code", (int)code, "message", message));
}

struct owed client_owe(const struct request *r)
{
	r->client->pending++;
	r->client->owed++;
	return (struct owed){ r->client, json_incref(r->id) };
}

bool client_settle(const struct owed *o)
{
	o->client->owed--;
	if (!client_let_go(o->client))
		return false;
	client_watch(o->client, false);
	return true;
}

/* ---- input ---- */

static void take_line(struct client *c, const char *line, size_t len)
{
	json_error_t error;
	json_t *root = json_loadb(line, len, 0, &error);

	if (root)
		methods_call(c, root);
	else
		client_error(c, json_null(), RPC_PARSE, error.text);
	json_decref(root);
}

/* One whole line of what came, if there is one. */
static bool take_input(struct client *c)
{
	char *end = memchr(c->in, '\n', c->in_len);
	size_t len = end ? (size_t)(end - c->in) : 0;

	if (!end)
		return false;
	take_line(c, c->in, len);
	if (c->gone)
		return false;
	c->in_len -= len + 1;
	memmove(c->in, end + 1, c->in_len);
	return true;
}

/* What came, as long as it reads what it is told. */
static void client_take(struct client *c)
{
	while (!is_behind(c) && take_input(c))
		;
	if (c->gone)
		return;
	client_watch(c, false);
	if (!is_behind(c) && c->in_len == LINE_MAX_BYTES)
		client_close(c); /* a line without an end */
}

static void client_more(struct io_defer *d)
{
	struct client *c = container_of(d, struct client, more);

	c->pending++; /* keeps c, whatever closes it */
	client_take(c);
	(void)client_let_go(c);
}

static void client_read(struct client *c)
{
	ssize_t n = recv(c->watch.fd, c->in + c->in_len,
			 LINE_MAX_BYTES - c->in_len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(c);
		return;
	}
	c->in_len += (size_t)n;
	client_take(c);
}

static void client_ready(struct io_watch *w, unsigned events)
{
	struct client *c = container_of(w, struct client, watch);

	c->pending++; /* keeps c, whatever closes it */
	if (events & IO_OUT)
		client_write(c);
	if (!c->gone && (events & IO_ERR) && is_behind(c))
		client_close(c); /* it is not there to read them */
	if (!c->gone && (events & (IO_IN | IO_ERR)))
		client_read(c);
	(void)client_let_go(c);
}

static struct client *client_make(struct control *k, int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->in = malloc(LINE_MAX_BYTES);
	c->control = k;
	c->watch.fd = fd;
	c->watch.want = IO_IN;
	c->watch.ready = client_ready;
	c->unread.fire = client_unread;
	c->more.run = client_more;
	list_init(&c->more.link);
	if (c->in && !io_watch_add(k->loop, &c->watch))
		return c;
	client_free(c);
	return NULL;
}

static void client_new(struct control *k, int fd)
{
	static const char no[] =
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"
		"\"message\":\"too many clients of the control socket\"}}\n";
	struct client *c = NULL;

	if (k->nclients < CLIENTS_MAX)
		c = client_make(k, fd);
	else
		(void)send(fd, no, sizeof(no) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (!c) {
		close(fd);
		return;
	}
	list_push_back(&k->clients, &c->link);
	k->nclients++;
}

static void control_ready(struct io_watch *w, unsigned events)
{
	struct control *k = container_of(w, struct control, watch);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd >= 0)
		client_new(k, fd);
}

/* ---- open, close ---- */

/* A socket that nobody answers on is left over from a crash: it may go. */
static bool remove_stale(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;
	bool stale;

	if (fd < 0)
		return false;
	stale = !lstat(sa->sun_path, &st) && S_ISSOCK(st.st_mode) &&
		connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0 &&
		errno == ECONNREFUSED;
	close(fd);
	return stale && !unlink(sa->sun_path);
}

static int bind_socket(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177); /* 0600 from the first moment */
	int err;

	memcpy(sa.sun_path, path, strlen(path) + 1);
	err = fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	if (err && fd >= 0 && errno == EADDRINUSE && remove_stale(&sa))
		err = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	umask(mask);
	if (!err && !listen(fd, 8))
		return fd;
	say("--control %s: %s%s", path, strerror(errno),
	    errno == EADDRINUSE ? "; another iserd has it" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

struct control *control_open(struct daemon *d, const char *path)
{
	struct control *k = calloc(1, sizeof(*k));

	if (!k || strlen(path) >= sizeof(k->path)) {
		say("--control %s: %s", path,
		    k ? "path too long" : "out of memory");
		free(k);
		return NULL;
	}
	k->daemon = d;
	k->loop = d->loops[0];
	list_init(&k->clients);
	list_init(&k->collects);
	memcpy(k->path, path, strlen(path) + 1);
	k->watch.fd = bind_socket(path);
	k->watch.want = IO_IN;
	k->watch.ready = control_ready;
	if (k->watch.fd < 0 || io_watch_add(k->loop, &k->watch)) {
		if (k->watch.fd >= 0)
			close(k->watch.fd);
		free(k);
		return NULL;
	}
	return k;
}

void control_close(struct control *k)
{
	while (!list_empty(&k->clients))
		client_close(list_entry(k->clients.next, struct client, link));
	methods_end(k);
	io_watch_del(k->loop, &k->watch);
	close(k->watch.fd);
	unlink(k->path);
	free(k);
}
