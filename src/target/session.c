/* SPDX-License-Identifier: BSD-2-Clause */
/* session.c: begin and end of a session (RFC 7143 §8.2): TSIH, nexus, last task. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "target/internal.h"

/* ---- begin ---- */

unsigned tgt_tsih_worker(const struct tgt *t, uint16_t tsih)
{
	return tsih % t->cfg.env.nworkers;
}

/* Makes a TSIH that names its worker too (tgt_tsih_worker). Zero is reserved.
 * ERR_LIMIT: none is free. */
/* [RFC 7143: 4.4.3 #1, 11.13.3 #1] */
static int tsih_new(struct tgt_worker *w, uint16_t *tsih)
{
	unsigned n = w->tgt->cfg.env.nworkers;
	unsigned span = 65535 / n; /* multiples 1 .. span-1 are safe */

	for (unsigned tries = 1; tries < span; tries++) {
		unsigned v = w->next_tsih * n + w->index;

		w->next_tsih =
			(uint16_t)(w->next_tsih + 1u < span ? w->next_tsih + 1u
							    : 1u);
		if (!tgt_sessions_find(w, (uint16_t)v)) {
			*tsih = (uint16_t)v;
			return 0;
		}
	}
	return ERR_LIMIT;
}

static void session_free(struct tgt_session *s)
{
	tgt_tasks_free(s);
	dev_map_put(s->luns.map);
	free(s);
}

/* [RFC 7143: 4.2.1 #1] */
struct tgt_session *tgt_session_new(struct tgt_conn *c,
				    const struct iscsi_login_id *id,
				    const struct iscsi_params *params,
				    struct tgt_node *node,
				    const struct tgt_session_ops *ops)
{
	struct tgt_worker *w = c->worker;
	struct tgt_session *s = calloc(1, sizeof(*s));
	uint32_t depth = node ? w->tgt->cfg.depth : 1;

	if (!s)
		return NULL;
	s->worker = w;
	list_init(&s->conns.list);
	list_init(&s->conns.joins);
	list_init(&s->conns.lost);
	list_init(&s->logout.abort.link);
	s->ops = ops;
	s->node = node;
	s->id = *id;
	s->params = *params;
	s->port.tag = c->info.portal_group;
	list_init(&s->use.link);
	s->data_time = w->tgt->cfg.data_time;
	list_init(&s->tasks.active);
	list_init(&s->tasks.spare);
	list_init(&s->tmfs);
	list_init(&s->fences.held);
	s->fences.on = params->task_reporting && params->max_connections > 1;
	list_init(&s->waiters);
	list_init(&s->link);
	s->window.depth = depth;
	if (tgt_tasks_alloc(s, depth) || tsih_new(w, &s->tsih)) {
		session_free(s);
		return NULL;
	}
	iscsi_session_go(ISCSI_TARGET, &s->state, ISCSI_Q2_ACTIVE); /* N1 */
	tgt_sessions_add(w, s);
	s->conns.rdma = c->dm->rdma == DM_RDMA_ALREADY;
	tgt_session_add(s, c);
	return s;
}

void tgt_session_add(struct tgt_session *s, struct tgt_conn *c)
{
	c->session = s;
	list_push_back(&s->conns.list, &c->session_link);
	if (s->state == ISCSI_Q5_CONTINUE)
		iscsi_session_go(ISCSI_TARGET, &s->state,
				 ISCSI_Q3_LOGGED_IN); /* N10 */
}

bool tgt_session_drop(struct tgt_session *s, enum dm_terminate how, int err)
{
	bool any = !s->conns.dropped && !list_empty(&s->conns.lost);

	s->conns.dropped = true;
	tgt_recover_end_all(s);
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		any |= tgt_conn_open(c);
		if (tgt_conn_open(c))
			tgt_conn_end(c, how, err);
	}
	list_for_each(it, &s->conns.joins)
		tgt_conn_end(list_entry(it, struct tgt_join, link)->conn, how,
			     err);
	return any;
}

struct tgt_conn *tgt_session_conn(const struct tgt_session *s)
{
	list_for_each(it, &s->conns.list) {
		struct tgt_conn *c =
			list_entry(it, struct tgt_conn, session_link);

		if (tgt_conn_open(c))
			return c;
	}
	return NULL;
}

/* ---- PREEMPT AND ABORT by another initiator (SPC-4 §5.13.11.2.6) ---- */

static void preempted_tasks_ended(struct tgt_abort *a)
{
	struct tgt_session *s = container_of(a, struct tgt_session, preempted);

	s->preempting = false;
	dev_nexus_tasks_gone(s->nexus);
}

static void abort_preempted(void *arg, const struct dev_lu *lu,
			    const struct dev_task *except)
{
	struct tgt_session *s = arg;
	const struct tgt_scope scope = {
		.session = s,
		.lu = lu,
		.except = except,
		.report_abort = true,
		.issuer = except ? s : NULL,
	};

	if (!except)
		tgt_abort_attention(s, &scope);
	s->preempting = true;
	tgt_abort_start(s->worker, &s->preempted, &scope,
			preempted_tasks_ended);
}

/* SAM names of the two ports (RFC 7143 §2.2 "SCSI Port Name"). */
/* [RFC 7143: 4.4.2 #1 #3] */
static struct dev_nexus *open_nexus(struct tgt_session *s)
{
	const struct iscsi_login_id *id = &s->id;
	struct dev_nexus_config cfg = {
		.worker = s->worker->index,
		.relative_target_port = s->port.rtpi,
		.map = s->luns.map,
		.abort_tasks = abort_preempted,
		.arg = s,
	};

	snprintf(cfg.initiator_port, sizeof(cfg.initiator_port),
		 "%s,i,0x%02x%02x%02x%02x%02x%02x", id->initiator_name,
		 id->isid[0], id->isid[1], id->isid[2], id->isid[3],
		 id->isid[4], id->isid[5]);
	tgt_port_name(s->node, s->port.tag, cfg.target_port);
	snprintf(cfg.target_name, sizeof(cfg.target_name), "%s", s->node->name);
	return dev_nexus_open(s->worker->tgt->cfg.server, &cfg);
}

int tgt_session_start(struct tgt_session *s, uint32_t cmdsn)
{
	if (s->node) {
		s->nexus = open_nexus(s);
		if (!s->nexus)
			return ERR_NOMEM;
	}
	iscsi_target_window_init(&s->window, cmdsn, s->window.depth);
	tgt_session_window(s);
	iscsi_session_go(ISCSI_TARGET, &s->state, ISCSI_Q3_LOGGED_IN); /* N2 */
	return 0;
}

/* ---- end ---- */

/* The last task has ended: the I_T nexus is lost (§6.3.5.1). */
/* [RFC 7144: 6.3 #11] */
static void end_session(struct tgt_session *s)
{
	struct tgt_worker *w = s->worker;

	if (!tgt_remap_end(s, end_session))
		return;
	if (s->preempting)
		tgt_abort_cancel(&s->preempted);
	if (s->nexus)
		dev_nexus_close(s->nexus);
	iscsi_session_go(ISCSI_TARGET, &s->state,
			 ISCSI_Q1_FREE); /* N3 N6 N9 N11 */
	tgt_sessions_remove(w, s);
	s->ops->ended(s);
	tgt_use_end(w, &s->use);
	session_free(s);
}

static void tasks_ended(struct tgt_abort *a)
{
	end_session(container_of(a, struct tgt_session, closing));
}

/* No connection is left; the datamovers have let go of every task. */
void tgt_session_close(struct tgt_session *s)
{
	const struct tgt_scope scope = { .session = s };

	tgt_abort_cancel(&s->logout.abort);
	tgt_abort_start(s->worker, &s->closing, &scope, tasks_ended);
}
