/* SPDX-License-Identifier: BSD-2-Clause */
/* state.c: the states of a session, and what a caller may ask about it. */
#include <assert.h>
#include <string.h>

#include "base/sane.h"
#include "lib/internal.h"

/* ---- states ---- */

static const uint8_t session_may_go[] = {
	[SESSION_CONNECTING] =
		BIT(SESSION_LOGIN) | BIT(SESSION_CLOSING) | BIT(SESSION_DOWN),
	/* CONNECTING: a redirection, or another transport of transport=auto */
	[SESSION_LOGIN] = BIT(SESSION_CONNECTING) | BIT(SESSION_UP) |
			  BIT(SESSION_CLOSING) | BIT(SESSION_DOWN),
	[SESSION_UP] =
		BIT(SESSION_AWAY) | BIT(SESSION_CLOSING) | BIT(SESSION_DOWN),
	/* AWAY: an attempt to log in again has failed, another one follows */
	[SESSION_AWAY] = BIT(SESSION_AWAY) | BIT(SESSION_UP) |
			 BIT(SESSION_CLOSING) | BIT(SESSION_DOWN),
	[SESSION_CLOSING] = BIT(SESSION_DOWN),
	[SESSION_DOWN] = BIT(SESSION_CLOSING),
};

bool lib_session_may_go(enum session_state from, enum session_state to)
{
	return session_may_go[from] & BIT(to);
}

bool lib_session_has_conn(const struct iser_session *s)
{
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++)
		if (s->conns[i].net)
			return true;
	return false;
}

bool lib_session_is_connecting(const struct iser_session *s)
{
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++)
		if (s->conns[i].connector)
			return true;
	return false;
}

/* Returns whether the members have the values that they must have when a
 * session enters its state. */
static bool session_is_sane(const struct iser_session *s)
{
	bool connected = lib_session_has_conn(s);

	if (lib_session_is_connecting(s))
		return false;
	switch (s->state) {
	case SESSION_CONNECTING:
	case SESSION_LOGIN: /* the connection is made next */
		return !connected && !s->ini;
	case SESSION_UP:
		return connected && s->ini && !s->err;
	case SESSION_AWAY:
		/* the role may have ended, which it reports after its tasks */
		return connected || !s->ini || !ini_is_up(s->ini);
	case SESSION_CLOSING:
		return true;
	case SESSION_DOWN:
		return !connected && !s->ini && s->err;
	}
	return false;
}

void lib_session_go(struct iser_session *s, enum session_state next)
{
	assert(lib_session_may_go(s->state, next));
	s->state = next;
	ASSERT_SANE(session_is_sane(s));
}

/* ---- queries ---- */

bool iser_is_connected(const struct iser_session *s)
{
	if (s->set)
		return s->set->ops->is_connected(s);
	return s->state == SESSION_AWAY || (s->state == SESSION_UP && s->ini);
}

struct iser_context *iser_session_context(const struct iser_session *s)
{
	return s->ctx;
}

/* The session of the path may end before that of the set, which has the texts. */
static void get_params_of_path(const struct iser_session *s,
			       struct iser_params *p)
{
	struct iser_session *path = s->set->ops->current(s);
	struct iser_session *set = (struct iser_session *)(uintptr_t)s;

	if (!path)
		return;
	iser_get_params(path, p);
	strcpy(set->login.rules, p->rules);
	p->rules = set->login.rules;
}

void iser_get_params(const struct iser_session *s, struct iser_params *p)
{
	const struct iscsi_params *k;

	memset(p, 0, sizeof(*p));
	p->tpgt = -1;
	p->transport = p->kind = "none";
	p->rules = "";
	if (s->set)
		get_params_of_path(s, p);
	if (!s->ini)
		return;
	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++) {
		if (s->conns[i].net && p->connections++ == 0)
			p->kind = net_conn_kind(s->conns[i].net);
	}
	k = ini_params(s->ini);
	p->transport = ini_transport(s->ini);
	p->rules = strcmp(p->transport, "iser") ? "" : s->login.rules;
	p->header_digest = k->header_digest;
	p->data_digest = k->data_digest;
	p->initial_r2t = k->initial_r2t;
	p->immediate_data = k->immediate_data;
	p->max_recv_data_segment_length = k->max_recv_dsl;
	p->max_send_data_segment_length = k->max_send_dsl;
	p->max_burst_length = k->max_burst_length;
	p->first_burst_length = k->first_burst_length;
	p->max_outstanding_r2t = k->max_outstanding_r2t;
	p->error_recovery_level = k->error_recovery_level;
	p->max_connections = k->max_connections;
	p->tpgt = ini_tpgt(s->ini);
}

bool lib_may_be_iser(const struct iser_session *s)
{
	if (s->set)
		return s->set->ops->may_be_iser(s);
	return s->ini && !strcmp(ini_transport(s->ini), "iser");
}

void lib_session_add_stats(struct net_conn_stats *sum, const struct net_conn *c)
{
	struct net_conn_stats st;

	net_conn_stats(c, &st);
	sum->net.rx_bytes += st.net.rx_bytes;
	sum->net.tx_bytes += st.net.tx_bytes;
	sum->net.rx_calls += st.net.rx_calls;
	sum->net.tx_calls += st.net.tx_calls;
	sum->copied += st.copied;
}

void iser_get_counters(const struct iser_session *s, struct iser_counters *c)
{
	struct net_conn_stats st = s->past_stats;

	for (unsigned i = 0; i < LIB_CONNECTIONS_MAX; i++)
		if (s->conns[i].net)
			lib_session_add_stats(&st, s->conns[i].net);
	*c = (struct iser_counters){ .rx_bytes = st.net.rx_bytes,
				     .tx_bytes = st.net.tx_bytes,
				     .rx_calls = st.net.rx_calls,
				     .tx_calls = st.net.tx_calls,
				     .copied_bytes = st.copied,
				     .reconnects = s->reconnect.count };
	if (s->set)
		s->set->ops->add_counters(s, c);
}
