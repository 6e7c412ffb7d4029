/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait.c: requests that change the configuration while an earlier change is in
 * progress. They wait in the order in which they came, at most WAIT_TIME: sessions
 * that the earlier change ends have less time for their logout. A request whose
 * client has gone is forgotten. A client has at most OWED_MAX (client.c)
 * of them.
 */
#include <stdlib.h>

#include "daemon/rpc/internal.h"

#define WAIT_TIME (30 * XTIME_S)
#define LOOK_TIME (20 * XTIME_MS)

struct waiting {
	struct list link; /* of control.wait.all */
	struct owed owed;
	json_t *root;
	xtime until;
};

static void waiting_free(struct waiting *w)
{
	list_del(&w->link);
	(void)client_settle(&w->owed);
	json_decref(w->owed.id);
	json_decref(w->root);
	free(w);
}

/* Executes the request again. */
static void run(struct control *k, struct waiting *w)
{
	if (!w->owed.client->gone) {
		k->wait.is_over = true;
		k->call(w->owed.client, w->root);
		k->wait.is_over = false;
	}
	waiting_free(w);
}

static void look(struct io_timer *t)
{
	struct control *k = container_of(t, struct control, wait.timer);
	xtime now = io_now(k->loop);

	while (!list_empty(&k->wait.all)) {
		struct waiting *w =
			list_entry(k->wait.all.next, struct waiting, link);

		if (k->daemon->changes.now && now < w->until &&
		    !w->owed.client->gone)
			break;
		run(k, w);
	}
	if (!list_empty(&k->wait.all))
		(void)io_timer_set(k->loop, t, now + LOOK_TIME);
}

bool rpc_wait(const struct request *r)
{
	struct control *k = r->client->control;
	bool is_first = list_empty(&k->wait.all);
	struct waiting *w;

	if (k->wait.is_over || (is_first && !k->daemon->changes.now))
		return false;
	w = calloc(1, sizeof(*w));
	if (!w)
		return false; /* the change refuses it */
	if (is_first && io_timer_set(k->loop, &k->wait.timer,
				     io_now(k->loop) + LOOK_TIME)) {
		free(w);
		return false;
	}
	w->owed = client_owe(r);
	w->root = json_incref(r->root);
	w->until = io_now(k->loop) + WAIT_TIME;
	list_push_back(&k->wait.all, &w->link);
	return true;
}

void rpc_wait_open(struct control *k)
{
	list_init(&k->wait.all);
	k->wait.timer.fire = look;
}

void rpc_wait_close(struct control *k)
{
	io_timer_clear(k->loop, &k->wait.timer);
	while (!list_empty(&k->wait.all))
		waiting_free(
			list_entry(k->wait.all.next, struct waiting, link));
}
