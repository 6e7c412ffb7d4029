/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.c: the events of iserd (base/trace.h) for clients that follow them: logins,
 * their ends and refusals, changes, failed media. Any worker puts an event into a
 * ring, from which worker 0 sends it, as a notification of JSON-RPC.
 *
 * The ring has RING events; while it is full, events are counted instead and reported
 * as LOST. A client that has UNREAD_MAX bytes of events to read is dropped, and at
 * most FOLLOWERS clients follow, so that the memory is bounded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rpc/internal.h"

#define RING	   256u
#define FOLLOWERS  8u
#define UNREAD_MAX (256u << 10)

struct events {
	struct control *control;
	struct dev_msg msg;
	/* with the lock of the log */
	char *ring[RING];
	unsigned n;
	unsigned lost;
	bool posted;
	/* worker 0 */
	unsigned nfollowers;
};

static void send_all(struct dev_msg *m);

/* On any thread, with the lock of the log. */
static void take_event(void *arg, const char *line, size_t len)
{
	struct events *e = arg;
	char *copy = e->n < RING ? strndup(line, len) : NULL;

	if (!copy) {
		e->lost++;
		return;
	}
	copy[strcspn(copy, "\n")] = '\0';
	e->ring[e->n++] = copy;
	if (e->posted)
		return;
	e->posted = true;
	e->msg.run = send_all;
	worker_post(e->control->daemon, 0, &e->msg);
}

/* Sends one event to all clients that follow. One that does not read is dropped. */
static void send_line(struct events *e, const char *line)
{
	struct control *k = e->control;
	char *text;
	int len = asprintf(&text,
			   "{\"jsonrpc\":\"2.0\",\"method\":\"event\","
			   "\"params\":%s}\n",
			   line);

	if (len < 0)
		return;
	list_for_each_safe(it, &k->clients) {
		struct client *c = list_entry(it, struct client, link);

		if (!c->follows)
			continue;
		if (c->out_len + (size_t)len <= UNREAD_MAX) {
			client_send(c, text, (size_t)len);
			continue;
		}
		trace_emit(&k->daemon->log.trace, TRACE_CONN_LIMIT,
			   "control socket: dropped a client that does not "
			   "read its events");
		client_close(c);
	}
	free(text);
}

static void send_lost(struct events *e, unsigned lost)
{
	char line[128];

	snprintf(
		line, sizeof(line),
		"{\"level\":\"warning\",\"event\":\"LOST\",\"text\":\"%u events "
		"were lost\"}",
		lost);
	send_line(e, line);
}

static void send_all(struct dev_msg *m)
{
	struct events *e = container_of(m, struct events, msg);
	struct log *l = &e->control->daemon->log;
	char *all[RING];
	unsigned n, lost;

	pthread_mutex_lock(&l->lock);
	n = e->n;
	lost = e->lost;
	memcpy(all, e->ring, n * sizeof(all[0]));
	e->n = 0;
	e->lost = 0;
	e->posted = false;
	pthread_mutex_unlock(&l->lock);
	for (unsigned i = 0; i < n; i++) {
		send_line(e, all[i]);
		free(all[i]);
	}
	if (lost)
		send_lost(e, lost);
}

void method_events(const struct request *r)
{
	struct client *c = r->client;
	struct control *k = c->control;
	struct events *e = k->events;

	if (!e) {
		e = calloc(1, sizeof(*e));
		k->events = e;
	}
	if (!e) {
		client_error(c, r->id, RPC_INTERNAL, "out of memory");
		return;
	}
	if (!c->follows && e->nfollowers == FOLLOWERS) {
		client_error(c, r->id, RPC_INTERNAL,
			     "too many clients follow the events; end one of "
			     "them");
		return;
	}
	e->control = k;
	if (!c->follows)
		e->nfollowers++;
	c->follows = true;
	if (e->nfollowers == 1)
		log_set_tap(&k->daemon->log, take_event, e);
	client_result(c, r->id, json_true());
}

void rpc_events_leave(struct client *c)
{
	struct events *e = c->control->events;

	if (!c->follows)
		return;
	c->follows = false;
	if (--e->nfollowers == 0)
		log_set_tap(&c->control->daemon->log, NULL, NULL);
}

void rpc_events_end(struct control *k)
{
	struct events *e = k->events;

	if (!e)
		return;
	log_set_tap(&k->daemon->log, NULL, NULL);
	for (unsigned i = 0; i < e->n; i++)
		free(e->ring[i]);
	free(e);
	k->events = NULL;
}
