/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client.c: one client of the management socket: a JSON-RPC 2.0 request a line,
 * a response a line. What arrives is handed to control->call, line by line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/escape.h"
#include "daemon/rpc/internal.h"

/* The buffer of a client grows with its line up to LINE_MAX_BYTES: enough for a
 * configuration with 16,384 LUNs. */
#define LINE_BYTES     65536u
#define LINE_MAX_BYTES (32u << 20)
#define ERROR_SIZE     4000 /* bytes of the text of an error */

/* No request is taken from a client that has left so many bytes of responses
 * unread, or is owed so many responses. A client that has UNREAD_MAX bytes to
 * read and reads nothing for UNREAD_TIME is dropped. */
#define UNREAD_MAX  (256u << 10)
#define OWED_MAX    8
#define UNREAD_TIME (5 * XTIME_S)

/* ---- life ---- */

static void client_free(struct client *c)
{
	free(c->in);
	free(c->out);
	free(c);
}

int rpc_spare_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void client_close(struct client *c)
{
	if (c->gone)
		return;
	c->gone = true;
	rpc_events_leave(c);
	io_timer_clear(c->control->loop, &c->unread);
	list_del(&c->turn);
	io_watch_del(c->control->loop, &c->watch);
	close(c->watch.fd);
	if (c->control->spare < 0)
		c->control->spare = rpc_spare_open();
	list_del(&c->link);
	c->control->nclients--;
	if (!c->pending)
		client_free(c);
}

/* Drops one reference. False: the client has gone, and may be freed now. */
static bool client_put(struct client *c)
{
	c->pending--;
	if (!c->gone)
		return true;
	if (!c->pending)
		client_free(c);
	return false;
}

/* ---- responses ---- */

static bool is_behind(const struct client *c)
{
	return c->out_len >= UNREAD_MAX || c->owed >= OWED_MAX;
}

/* Sets the events and the timer of the client, after a change of its unread
 * bytes or of the responses that it is owed. progress: the client has read
 * something. */
static void client_watch(struct client *c, bool progress)
{
	struct io_loop *l = c->control->loop;
	bool behind = is_behind(c);

	if (!behind && c->has_input && !list_linked(&c->turn)) {
		list_push_back(&c->control->turns, &c->turn);
		pace_ask(&c->control->pace);
	}
	io_watch_want(l, &c->watch,
		      (behind || c->has_input ? 0 : IO_IN) |
			      (c->out_len ? IO_OUT : 0));
	if (c->out_len < UNREAD_MAX)
		io_timer_clear(l, &c->unread);
	else if (progress || !c->is_timed)
		io_timer_set(l, &c->unread, io_now(l) + UNREAD_TIME);
	c->is_timed = c->out_len >= UNREAD_MAX;
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

void client_send(struct client *c, const char *text, size_t len)
{
	char *out = c->gone ? NULL : realloc(c->out, c->out_len + len);

	if (!out)
		return;
	c->out = out;
	memcpy(out + c->out_len, text, len);
	c->out_len += len;
	client_write(c);
}

/* Sends response, which it takes over. NULL: a notification, or out of memory:
 * the client gets no response. */
static void client_respond(struct client *c, json_t *response)
{
	char *text = response ? json_dumps(response, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;

	json_decref(response);
	if (!text)
		return;
	text[len] = '\n'; /* in place of the NUL */
	client_send(c, text, len + 1);
	free(text);
}

void client_result(struct client *c, json_t *id, json_t *result)
{
	if (!id) {
		json_decref(result);
		return;
	}
	client_respond(c, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id",
				    id, "result", result));
}

bool client_error(struct client *c, json_t *id, enum rpc_error code,
		  const char *fmt, ...)
{
	char text[ERROR_SIZE], plain[TEXT_ESCAPED_SIZE(ERROR_SIZE)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_escape_str(plain, sizeof(plain), text);
	if (id)
		client_respond(c,
			       json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc",
					 "2.0", "id", id, "error", "code",
					 (int)code, "message", plain));
	return false;
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
	if (!client_put(o->client))
		return false;
	client_watch(o->client, false);
	return true;
}

/* ---- requests ---- */

static void take_line(struct client *c, const char *line, size_t len)
{
	json_error_t error;
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);

	list_del(&c->link);
	list_push_back(&c->control->clients, &c->link);
	if (root)
		c->control->call(c, root);
	else
		client_error(c, json_null(), RPC_PARSE, "%s", error.text);
	json_decref(root);
}

/* Changes the size of the input buffer. False: out of memory. */
static bool resize_input(struct client *c, size_t size)
{
	char *in = realloc(c->in, size);

	if (!in)
		return false;
	c->in = in;
	c->in_size = size;
	return true;
}

/* The buffer is full and has no whole line: enlarges it, or ends the client.
 * The client cannot read the error if it sends on without reading. */
static void take_long_line(struct client *c)
{
	if (c->in_size < LINE_MAX_BYTES && resize_input(c, 2 * c->in_size))
		return;
	client_error(c, json_null(), RPC_INVALID,
		     c->in_size < LINE_MAX_BYTES
			     ? "out of memory for the request"
			     : "the request is longer than 32 MiB; send a "
			       "shorter one");
	if (!c->gone)
		client_close(c);
}

/* No whole line is left: makes room for more. */
static void no_line(struct client *c)
{
	c->has_input = false;
	c->in_len -= c->in_at;
	memmove(c->in, c->in + c->in_at, c->in_len);
	c->in_at = 0;
	if (c->in_size > LINE_BYTES && c->in_len < LINE_BYTES)
		(void)resize_input(c, LINE_BYTES);
	if (c->in_len == c->in_size)
		take_long_line(c);
}

/* Takes one line of the input, if there is a whole one. */
static void take_input(struct client *c)
{
	const char *line = c->in + c->in_at;
	const char *end = memchr(line, '\n', c->in_len - c->in_at);

	if (!end) {
		no_line(c);
		return;
	}
	c->in_at += (size_t)(end + 1 - line);
	take_line(c, line, (size_t)(end - line));
}

void client_take_turn(struct pace *p)
{
	struct control *k = container_of(p, struct control, pace);
	struct list *n = list_pop_front(&k->turns);
	struct client *c = n ? list_entry(n, struct client, turn) : NULL;

	if (!list_empty(&k->turns))
		pace_ask(p);
	if (!c)
		return; /* the client that had asked is gone */
	c->pending++;	/* a reference: the calls may close c */
	if (!is_behind(c))
		take_input(c);
	if (!c->gone)
		client_watch(c, false);
	(void)client_put(c);
}

static void client_read(struct client *c)
{
	ssize_t n = recv(c->watch.fd, c->in + c->in_len, c->in_size - c->in_len,
			 MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(c);
		return;
	}
	c->in_len += (size_t)n;
	c->has_input = true;
	client_watch(c, false);
}

static void client_ready(struct io_watch *w, unsigned events)
{
	struct client *c = container_of(w, struct client, watch);

	c->pending++; /* a reference: the calls may close c */
	if (events & IO_OUT)
		client_write(c);
	if (!c->gone && (events & IO_ERR) && is_behind(c))
		client_close(c); /* it can't read its responses any more */
	if (!c->gone && (events & (IO_IN | IO_ERR)))
		client_read(c);
	(void)client_put(c);
}

struct client *client_new(struct control *k, int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->in = malloc(LINE_BYTES);
	c->in_size = LINE_BYTES;
	c->control = k;
	c->watch.fd = fd;
	c->watch.want = IO_IN;
	c->watch.ready = client_ready;
	c->unread.fire = client_unread;
	list_init(&c->turn);
	if (!c->in || io_watch_add(k->loop, &c->watch)) {
		client_free(c);
		return NULL;
	}
	list_push_back(&k->clients, &c->link);
	k->nclients++;
	return c;
}
