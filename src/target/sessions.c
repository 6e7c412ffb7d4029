/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessions.c: the sessions of a worker, in a list and in two hash tables of chains: by
 * TSIH, and by the initiator port (name and ISID). Each login looks for a free TSIH and
 * for a session to reinstate, which must not take longer with many sessions.
 */
#include <string.h>

#include "target/internal.h"

static struct tgt_session **tsih_chain(struct tgt_worker *w, uint16_t tsih)
{
	unsigned nth = tsih / w->tgt->cfg.env.nworkers;

	return &w->chains.tsih[nth % TGT_SESSION_CHAINS];
}

static unsigned port_chain(const struct iscsi_login_id *id)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (const char *c = id->initiator_name; *c; c++)
		h = (h ^ (uint8_t)*c) * 16777619u;
	for (unsigned i = 0; i < sizeof(id->isid); i++)
		h = (h ^ id->isid[i]) * 16777619u;
	return (h ^ h >> 16) % TGT_SESSION_CHAINS;
}

struct tgt_session *tgt_sessions_find(struct tgt_worker *w, uint16_t tsih)
{
	struct tgt_session *s = *tsih_chain(w, tsih);

	while (s && s->tsih != tsih)
		s = s->chains.same_tsih;
	return s;
}

struct tgt_session *tgt_sessions_of_port(const struct tgt_worker *w,
					 const struct iscsi_login_id *id)
{
	return w->chains.port[port_chain(id)];
}

void tgt_sessions_add(struct tgt_worker *w, struct tgt_session *s)
{
	struct tgt_session **tsih = tsih_chain(w, s->tsih), **port;

	s->chains.nth_port = port_chain(&s->id);
	port = &w->chains.port[s->chains.nth_port];
	s->chains.same_tsih = *tsih;
	*tsih = s;
	s->chains.same_port = *port;
	*port = s;
	list_push_back(&w->sessions, &s->link);
}

void tgt_sessions_remove(struct tgt_worker *w, struct tgt_session *s)
{
	struct tgt_session **p = tsih_chain(w, s->tsih);

	while (*p != s)
		p = &(*p)->chains.same_tsih;
	*p = s->chains.same_tsih;
	p = &w->chains.port[s->chains.nth_port];
	while (*p != s)
		p = &(*p)->chains.same_port;
	*p = s->chains.same_port;
	list_del(&s->link);
}
