/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tmf_end.c: the response and the end of a task management function (RFC 7143 §11.6).
 */
#include <stdlib.h>
#include <string.h>

#include "target/tmf.h"

/* [RFC 7143: 11.5.1 #1, 11.6.2 #1] */
/* [RFC 7144: 6.3 #3] */
static struct tgt_conn *send_response(struct tgt_tmf *m)
{
	struct tgt_session *s = m->session;
	struct dm_control ctl = { .data = NULL };

	if (!s)
		return NULL;
	list_del(&m->link);
	s->ntmfs--;
	m->session = NULL;
	if (!m->conn || !tgt_conn_open(m->conn))
		return NULL;
	conn_trace(m->conn, TRACE_TMF, "%s of LUN %llx: response %u",
		   m->row->name, (unsigned long long)m->lun, m->response);
	ctl.pdu = (struct iscsi_pdu){
		.op = ISCSI_TMF_RESPONSE,
		.final = true,
		.itt = m->itt,
		.ttt = ISCSI_RESERVED_TAG,
	};
	ctl.pdu.tmf_response = m->response;
	memcpy(ctl.pdu.tmf_info, m->info, sizeof(m->info));
	tgt_conn_send(m->conn, &ctl);
	return m->conn;
}

void tgt_tmf_free(struct tgt_tmf *m)
{
	tgt_use_end(m->worker, &m->use);
	free(m->reset.units);
	free(m);
}

/* Sends the response, and then ends the function; m may be free afterwards. */
struct tgt_conn *tgt_tmf_respond(struct tgt_tmf *m)
{
	struct tgt_conn *c = send_response(m);

	if (m->last)
		m->last(m);
	else
		tgt_tmf_free(m);
	return c;
}

static struct tgt_conn *send_held(struct tgt_held *h)
{
	return tgt_tmf_respond(container_of(h, struct tgt_tmf, held));
}

/* The other functions on no unit are not ordered with statuses: TASK REASSIGN makes
 * those possible for which a fence waits, and I_T NEXUS RESET ends them. */
static bool is_ordered(const struct tgt_tmf *m)
{
	return m->row->on_lu || m->row->fenced;
}

struct tgt_tmf *tgt_tmf_follower(struct tgt_tmf *m)
{
	struct list *it = list_pop_front(&m->reset.turn.followers);

	return it ? list_entry(it, struct tgt_tmf, reset.turn.followers) : NULL;
}

/* [RFC 7143: 4.2.3.3 #8, 4.2.3.4 #12 #15] */
static void end_one(struct tgt_tmf *m, uint8_t response)
{
	m->response = response;
	m->started = true; /* even if it only failed */
	m->held.lu = m->row->on_lu ? m->lu : NULL;
	m->held.send = send_held;
	if (!m->conn || !m->session || !is_ordered(m) ||
	    !tgt_fence_holds(m->session, &m->held, m->row->fenced))
		tgt_tmf_respond(m);
}

void tgt_tmf_end(struct tgt_tmf *m, uint8_t response)
{
	struct tgt_tmf *f;

	while ((f = tgt_tmf_follower(m)))
		end_one(f, response);
	end_one(m, response);
}

/* The affected tasks have ended: the rest of the function, then the response. */
/* [RFC 7143: 4.2.3.3 #10] */
void tgt_tmf_tasks_ended(struct tgt_tmf *m)
{
	if (m->row->after)
		m->row->after(m);
	else
		tgt_tmf_end(m, ISCSI_TMF_COMPLETE);
}
