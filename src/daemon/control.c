/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c: the management socket: a Unix socket, one JSON-RPC 2.0 request a
 * line, one response a line. It lives on worker 0; what other workers know is
 * fetched by a message that goes from one to the next.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/daemon.h"
#include "daemon/groups.h"
#include "daemon/luns.h"
#include "daemon/status.h"

#define LINE_MAX_BYTES 65536
#define CLIENTS_MAX    16

/* A client with that many bytes of answers that it has not read, or so many
 * answers that are still to come, is asked for no more requests; one that reads
 * nothing then for so long goes. */
#define UNREAD_MAX  (256u << 10)
#define OWED_MAX    8
#define UNREAD_TIME (5 * XTIME_S)

/* JSON-RPC 2.0 §5.1 */
enum rpc_error {
	RPC_PARSE = -32700,
	RPC_INVALID = -32600,
	RPC_NO_METHOD = -32601,
	RPC_BAD_PARAMS = -32602,
	RPC_INTERNAL = -32603,
};

struct control {
	struct daemon *daemon;
	struct io_loop *loop;
	struct io_watch watch; /* the listening socket */
	struct list clients;
	struct list collects; /* on their way */
	unsigned nclients;
	char path[108];
};

struct client {
	struct control *control;
	struct list link;
	struct io_watch watch;
	struct io_timer unread; /* set while it is asked for no more */
	struct io_defer more;	/* requests that waited */
	char *in, *out;
	size_t in_len, out_len;
	unsigned pending; /* who still needs it: answers that are owed, a call */
	unsigned owed;
	bool is_timed, gone;
};

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

static void answer_result(struct client *c, json_t *id, json_t *result)
{
	answer(c, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id,
			    "result", result));
}

static void answer_error(struct client *c, json_t *id, enum rpc_error code,
			 const char *message)
{
	answer(c,
	       json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id,
			 "error", "code", (int)code, "message", message));
}

/* ---- methods ---- */

struct request {
	struct client *client;
	json_t *id, *params; /* params may be NULL; both borrowed */
};

/* An answer that comes later, behind settle. The id is the owner's. */
struct owed {
	struct client *client;
	json_t *id;
};

static struct owed owe(const struct request *r)
{
	r->client->pending++;
	r->client->owed++;
	return (struct owed){ r->client, json_incref(r->id) };
}

/* It is given now. False: there is nobody to give it to. */
static bool settle(const struct owed *o)
{
	o->client->owed--;
	if (!client_let_go(o->client))
		return false;
	client_watch(o->client, false);
	return true;
}

static void do_version(const struct request *r)
{
	answer_result(r->client, r->id,
		      json_pack("{s:s, s:s}", "name", "iserd", "version",
				OPENISER_VERSION));
}

static void do_luns(const struct request *r)
{
	answer_result(r->client, r->id,
		      status_luns(r->client->control->daemon));
}

static void do_reservations(const struct request *r)
{
	answer_result(r->client, r->id,
		      status_reservations(r->client->control->daemon));
}

static void do_log(const struct request *r)
{
	struct daemon *d = r->client->control->daemon;
	const char *level =
		json_string_value(json_object_get(r->params, "level"));

	for (int i = TRACE_LEVEL_ERROR; level && i <= TRACE_LEVEL_DEBUG; i++)
		if (!strcmp(level, trace_level_name((enum trace_level)i))) {
			d->log.trace.level = (enum trace_level)i;
			break;
		}
	level = trace_level_name(d->log.trace.level);
	answer_result(r->client, r->id, json_pack("{s:s}", "level", level));
}

static void do_shutdown(const struct request *r)
{
	answer_result(r->client, r->id, json_true());
	daemon_shutdown(r->client->control->daemon, "control socket");
}

/* A status on its way from worker to worker. */
struct collect {
	struct dev_msg msg;
	struct list link;
	struct owed owed;
	json_t *sessions;
	unsigned worker;
};

/* It is over; there: its client is, and was answered. */
static void collect_end(struct collect *k, bool there)
{
	if (!there)
		json_decref(k->sessions);
	json_decref(k->owed.id);
	list_del(&k->link);
	free(k);
}

static void collected(struct dev_msg *m)
{
	struct collect *k = container_of(m, struct collect, msg);
	struct client *c = k->owed.client;
	bool there = settle(&k->owed);

	if (there)
		answer_result(c, k->owed.id,
			      status_daemon(c->control->daemon, k->sessions));
	collect_end(k, there);
}

static void visit(struct dev_msg *m)
{
	struct collect *k = container_of(m, struct collect, msg);
	struct daemon *d = k->owed.client->control->daemon;
	unsigned next = k->worker + 1;

	status_sessions(&d->workers[k->worker], k->sessions);
	k->worker = next;
	if (next == d->nworkers)
		m->run = collected;
	worker_post(d, next == d->nworkers ? 0 : next, m);
}

static void do_status(const struct request *r)
{
	struct collect *k = calloc(1, sizeof(*k));

	if (!k) {
		answer_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		return;
	}
	k->owed = owe(r);
	k->sessions = json_array();
	k->msg.run = visit;
	list_push_back(&r->client->control->collects, &k->link);
	worker_post(r->client->control->daemon, 0, &k->msg);
}

/* ---- target port groups ---- */

static void do_groups(const struct request *r)
{
	answer_result(r->client, r->id,
		      groups_json(r->client->control->daemon->server));
}

static void regrouped(void *arg, int err)
{
	struct owed *g = arg;
	struct client *c = g->client;
	bool there = settle(g);

	if (there && err)
		answer_error(c, g->id, RPC_BAD_PARAMS,
			     err == ERR_NOT_FOUND
				     ? "no such group; \"groups\" lists them"
				     : err_str(err));
	else if (there)
		answer_result(c, g->id,
			      groups_json(c->control->daemon->server));
	json_decref(g->id);
	free(g);
}

/* For a change of a group that is on its way; NULL after an answer. */
static struct owed *regroup_new(const struct request *r)
{
	struct owed *g = malloc(sizeof(*g));

	if (!g) {
		answer_error(r->client, r->id, RPC_INTERNAL, "out of memory");
		return NULL;
	}
	*g = owe(r);
	return g;
}

/* A number, or its digits, as iserctl sends all it is given. */
static uint16_t id_param(const struct request *r)
{
	const json_t *v = json_object_get(r->params, "id");
	json_int_t n = json_integer_value(v);

	if (json_is_string(v))
		n = strtol(json_string_value(v), NULL, 10);
	return n > 0 && n <= UINT16_MAX ? (uint16_t)n : 0;
}

/* preferred may be left out; nothing may be wrong. */
static bool change_param(const struct request *r, struct dev_group_change *c)
{
	const char *state =
		json_string_value(json_object_get(r->params, "state"));
	const json_t *v = json_object_get(r->params, "preferred");
	const char *preferred = json_string_value(v);

	c->id = id_param(r);
	c->set_preferred = v != NULL;
	c->preferred =
		json_is_true(v) || (preferred && !strcmp(preferred, "yes"));
	return c->id && state && group_state_parse(&c->state, state) &&
	       (!v || c->preferred || json_is_false(v) ||
		(preferred && !strcmp(preferred, "no")));
}

static void do_group(const struct request *r)
{
	struct daemon *d = r->client->control->daemon;
	struct dev_group_change change = { 0 };
	struct owed *g;
	int err;

	if (!change_param(r, &change)) {
		answer_error(r->client, r->id, RPC_BAD_PARAMS,
			     "give id=ID, state=optimized, non-optimized, "
			     "standby, unavailable or transitioning, and "
			     "preferred=yes or no if you like");
		return;
	}
	g = regroup_new(r);
	if (!g)
		return;
	err = dev_group_set(d->server, &change, regrouped, g);
	if (err)
		regrouped(g, err);
}

static void do_port(const struct request *r)
{
	struct daemon *d = r->client->control->daemon;
	const char *state =
		json_string_value(json_object_get(r->params, "state"));
	bool offline = state && !strcmp(state, "offline");
	struct owed *g;
	int err;

	if (!id_param(r) || !state || (!offline && strcmp(state, "online"))) {
		answer_error(r->client, r->id, RPC_BAD_PARAMS,
			     "give id=PORT and state=offline or online");
		return;
	}
	g = regroup_new(r);
	if (!g)
		return;
	err = dev_port_set(d->server, id_param(r), offline, regrouped, g);
	if (err)
		regrouped(g, err);
}

/* ---- media of CD/DVD drives ---- */

/* A change of medium that is on its way. */
struct remedium {
	struct owed owed;
	const struct dev_lu *lu;
};

static void medium_changed(void *arg, int err)
{
	struct remedium *g = arg;
	struct client *c = g->owed.client;
	bool there = settle(&g->owed);

	if (there && err)
		answer_error(c, g->owed.id, RPC_INTERNAL, err_str(err));
	else if (there)
		answer_result(c, g->owed.id,
			      status_lun(c->control->daemon, g->lu));
	json_decref(g->owed.id);
	free(g);
}

static const char *medium_refusal(int err)
{
	switch (err) {
	case ERR_UNSUPPORTED:
		return "the LUN is no CD/DVD drive";
	case ERR_BUSY:
		return "an initiator has locked the drive, and was asked to let "
		       "go; try again, or give force=yes";
	case ERR_AGAIN:
		return "the medium is just being changed";
	default:
		return err_str(err);
	}
}

/* Takes over b, NULL to eject. */
static void change_medium(const struct request *r, struct dev_lu *lu,
			  struct bs *b)
{
	const char *force =
		json_string_value(json_object_get(r->params, "force"));
	struct remedium *g = calloc(1, sizeof(*g));
	int err = ERR_NOMEM;

	if (g) {
		g->owed = owe(r);
		g->lu = lu;
		err = dev_lu_change_medium(lu, b,
					   force && !strcmp(force, "yes"),
					   medium_changed, g);
		if (!err)
			return;
		(void)settle(&g->owed); /* its call needs it yet */
		json_decref(g->owed.id);
		free(g);
	}
	if (b)
		bs_close(b);
	answer_error(r->client, r->id, RPC_BAD_PARAMS, medium_refusal(err));
}

/* The unit that lun=N names; NULL: it was answered. */
static struct dev_lu *lun_param(const struct request *r)
{
	const json_t *v = json_object_get(r->params, "lun");
	const char *text = json_string_value(v);
	json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
	struct dev_lu *lu = NULL;
	char *end;

	if (text && *text) {
		n = strtol(text, &end, 10);
		if (*end)
			n = -1;
	}
	if (n >= 0 && n <= UINT16_MAX)
		lu = dev_lu_get(r->client->control->daemon->server,
				(uint16_t)n);
	if (!lu)
		answer_error(r->client, r->id, RPC_BAD_PARAMS,
			     "give lun=N; \"luns\" lists them");
	return lu;
}

static void do_eject(const struct request *r)
{
	struct dev_lu *lu = lun_param(r);

	if (lu)
		change_medium(r, lu, NULL);
}

static void do_insert(const struct request *r)
{
	const struct daemon *d = r->client->control->daemon;
	const char *path =
		json_string_value(json_object_get(r->params, "path"));
	struct dev_lu *lu = lun_param(r);
	char why[512] = "give path=IMAGE";
	struct bs *b = NULL;

	if (!lu)
		return;
	if (dev_lu_type(lu) != DEV_CD)
		snprintf(why, sizeof(why), "%s",
			 medium_refusal(ERR_UNSUPPORTED));
	else if (path)
		b = lun_open_cd(&d->options, path, d->loops, why, sizeof(why));
	if (b)
		change_medium(r, lu, b);
	else
		answer_error(r->client, r->id, RPC_BAD_PARAMS, why);
}

static void do_methods(const struct request *r);

static const struct {
	const char *name, *help;
	void (*run)(const struct request *r);
} methods[] = {
	{ "luns", "what is served", do_luns },
	{ "eject", "lun=N [force=yes] takes the medium out of a drive",
	  do_eject },
	{ "insert", "lun=N path=IMAGE [force=yes] puts one in", do_insert },
	{ "groups", "target port groups (ALUA)", do_groups },
	{ "group", "id=ID state=STATE [preferred=yes|no] sets one", do_group },
	{ "port", "id=PORT state=offline|online tells of another iserd's",
	  do_port },
	{ "log", "the log level; level=LEVEL sets it", do_log },
	{ "methods", "this list", do_methods },
	{ "reservations", "who has registered and reserved what",
	  do_reservations },
	{ "shutdown", "end in order, as SIGTERM", do_shutdown },
	{ "status", "listeners, sessions and their counters", do_status },
	{ "version", "name and version", do_version },
};

static void do_methods(const struct request *r)
{
	json_t *all = json_object();

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		json_object_set_new(all, methods[i].name,
				    json_string(methods[i].help));
	answer_result(r->client, r->id, all);
}

static void dispatch(struct client *c, json_t *root)
{
	json_t *id = json_object_get(root, "id");
	const char *name = json_string_value(json_object_get(root, "method"));
	const char *version =
		json_string_value(json_object_get(root, "jsonrpc"));
	struct request r = {
		.client = c,
		.id = id ? id : json_null(),
		.params = json_object_get(root, "params"),
	};

	if (!name || !version || strcmp(version, "2.0") != 0) {
		answer_error(c, r.id, RPC_INVALID, "no JSON-RPC 2.0 request");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (!strcmp(name, methods[i].name)) {
			methods[i].run(&r);
			return;
		}
	answer_error(c, r.id, RPC_NO_METHOD,
		     "unknown method; \"methods\" lists them");
}

/* ---- input ---- */

static void take_line(struct client *c, const char *line, size_t len)
{
	json_error_t error;
	json_t *root = json_loadb(line, len, 0, &error);

	if (root)
		dispatch(c, root);
	else
		answer_error(c, json_null(), RPC_PARSE, error.text);
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

/* Behind workers_stop: nobody visits any more, nor will. */
void control_close(struct control *k)
{
	while (!list_empty(&k->clients))
		client_close(list_entry(k->clients.next, struct client, link));
	while (!list_empty(&k->collects)) {
		struct collect *left =
			list_entry(k->collects.next, struct collect, link);

		collect_end(left, settle(&left->owed));
	}
	io_watch_del(k->loop, &k->watch);
	close(k->watch.fd);
	unlink(k->path);
	free(k);
}
