/* SPDX-License-Identifier: BSD-2-Clause */
/* status.c: the daemon's state as JSON. */
#include "daemon/rpc/status.h"

#include <stdio.h>
#include <time.h>

#include "base/escape.h"
#include "daemon/config/groups.h"
#include "daemon/config/model.h"
#include "daemon/serve/portals.h"
#include "datamover/iser/dmiser.h"
#include "net/conn.h"

json_t *status_shown(const char *text)
{
	char buf[2048];

	return text ? json_string(text_escape_str(buf, sizeof(buf), text))
		    : json_null();
}

static json_t *yes_no(bool b)
{
	return json_string(b ? "Yes" : "No");
}

/* Adds the keys of RFC 7145 §6. */
static void add_rdma_keys(json_t *k, const struct iscsi_params *p)
{
	json_object_set_new(k, "RDMAExtensions", yes_no(p->rdma_extensions));
	json_object_set_new(k, "TargetRecvDataSegmentLength",
			    json_integer(p->target_recv_dsl));
	json_object_set_new(k, "InitiatorRecvDataSegmentLength",
			    json_integer(p->initiator_recv_dsl));
	json_object_set_new(k, "MaxOutstandingUnexpectedPDUs",
			    json_integer(p->max_outstanding_unexpected_pdus));
	json_object_set_new(k, "TaggedBufferForSolicitedDataOnly",
			    yes_no(p->tagged_buffer_for_solicited_data_only));
	json_object_set_new(k, "iSERHelloRequired",
			    yes_no(p->iser_hello_required));
}

/* The negotiated keys by their names in RFC 7143 §13. */
static json_t *keys_json(const struct iscsi_params *p)
{
	json_t *k = json_object();

	json_object_set_new(k, "HeaderDigest",
			    json_string(p->header_digest ? "CRC32C" : "None"));
	json_object_set_new(k, "DataDigest",
			    json_string(p->data_digest ? "CRC32C" : "None"));
	json_object_set_new(k, "MaxRecvDataSegmentLength.target",
			    json_integer(p->max_recv_dsl));
	json_object_set_new(k, "MaxRecvDataSegmentLength.initiator",
			    json_integer(p->max_send_dsl));
	json_object_set_new(k, "InitialR2T", yes_no(p->initial_r2t));
	json_object_set_new(k, "ImmediateData", yes_no(p->immediate_data));
	json_object_set_new(k, "MaxBurstLength",
			    json_integer(p->max_burst_length));
	json_object_set_new(k, "FirstBurstLength",
			    json_integer(p->first_burst_length));
	json_object_set_new(k, "MaxOutstandingR2T",
			    json_integer(p->max_outstanding_r2t));
	json_object_set_new(k, "MaxConnections",
			    json_integer(p->max_connections));
	json_object_set_new(k, "ErrorRecoveryLevel",
			    json_integer(p->error_recovery_level));
	json_object_set_new(k, "DataPDUInOrder", yes_no(p->data_pdu_in_order));
	json_object_set_new(k, "DataSequenceInOrder",
			    yes_no(p->data_sequence_in_order));
	json_object_set_new(k, "DefaultTime2Wait",
			    json_integer(p->default_time2wait));
	json_object_set_new(k, "DefaultTime2Retain",
			    json_integer(p->default_time2retain));
	json_object_set_new(k, "iSCSIProtocolLevel",
			    json_integer(p->protocol_level));
	if (p->rdma_extensions)
		add_rdma_keys(k, p);
	return k;
}

static json_t *rule_names(unsigned rules)
{
	json_t *names = json_array();

	for (unsigned i = 0; dmiser_rule_name(i); i++)
		if (rules & 1u << i)
			json_array_append_new(names,
					      json_string(dmiser_rule_name(i)));
	return names;
}

/* Adds what moves the bytes of the connection, and its counters. */
static void add_transport(json_t *s, const struct net_conn *c)
{
	struct net_conn_stats st;

	net_conn_stats(c, &st);
	json_object_set_new(s, "kind", json_string(net_conn_kind(c)));
	if (net_conn_is_iser(c))
		json_object_set_new(s, "rules", rule_names(net_conn_rules(c)));
	json_object_set_new(s, "traffic",
			    json_pack("{s:I, s:I, s:I, s:I, s:I}", "bytes_in",
				      (json_int_t)st.net.rx_bytes, "bytes_out",
				      (json_int_t)st.net.tx_bytes, "calls_in",
				      (json_int_t)st.net.rx_calls, "calls_out",
				      (json_int_t)st.net.tx_calls,
				      "bytes_copied", (json_int_t)st.copied));
}

struct sessions {
	json_t *array;
	size_t most;
	xtime now;
};

static json_t *count_json(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static void add_counters(json_t *s, const struct tgt_counters *c)
{
	static const struct tgt_counters none = { 0 };

	c = c ? c : &none;
	json_object_set_new(s, "commands", count_json(c->commands));
	json_object_set_new(s, "bytes_read", count_json(c->bytes_read));
	json_object_set_new(s, "bytes_written", count_json(c->bytes_written));
	json_object_set_new(s, "errors", count_json(c->errors));
	json_object_set_new(s, "solicited", count_json(c->solicited));
	json_object_set_new(s, "waits", count_json(c->waits));
}

/* Adds by whom the session was begun, and when. */
static void add_login(json_t *s, const struct tgt_conn_status *st, xtime now)
{
	int64_t age = (now - st->since) / XTIME_S;
	time_t since = time(NULL) - (time_t)age;
	char text[32] = "";
	struct tm tm;

	if (!st->account)
		return;
	if (gmtime_r(&since, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(s, "account",
			    status_shown(*st->account ? st->account : NULL));
	json_object_set_new(s, "algorithm",
			    *st->algorithm ? json_string(st->algorithm)
					   : json_null());
	json_object_set_new(s, "since", json_string(text));
	json_object_set_new(s, "age", json_integer(age));
}

static void add_session(void *arg, const struct tgt_conn_status *st)
{
	struct sessions *all = arg;
	json_t *s;
	char isid[13] = "";

	if (json_array_size(all->array) >= all->most)
		return;
	s = json_object();
	for (int i = 0; st->isid && i < 6; i++)
		snprintf(isid + 2 * i, 3, "%02x", st->isid[i]);
	json_object_set_new(s, "peer", json_string(st->info->peer));
	json_object_set_new(s, "local", json_string(st->info->local));
	json_object_set_new(s, "transport", json_string(st->transport));
	if (st->lost)
		json_object_set_new(s, "kind", json_string("lost"));
	else
		add_transport(s, conns_net(st->info->owner));
	json_object_set_new(s, "state", json_string(st->state));
	json_object_set_new(s, "initiator", status_shown(st->initiator));
	json_object_set_new(s, "target",
			    status_shown(st->discovery ? "(discovery)"
						       : st->target));
	json_object_set_new(s, "tsih", json_integer(st->tsih));
	json_object_set_new(s, "cid", json_integer(st->cid));
	json_object_set_new(s, "isid", json_string(isid));
	add_login(s, st, all->now);
	json_object_set_new(s, "in_flight", json_integer(st->in_flight));
	add_counters(s, st->count);
	json_object_set_new(s, "rejects",
			    json_integer((json_int_t)st->rejects));
	if (st->params)
		json_object_set_new(s, "keys", keys_json(st->params));
	json_array_append_new(all->array, s);
}

void status_sessions(const struct worker *w, json_t *sessions, size_t most)
{
	struct sessions all = { sessions, most, io_now(w->loop) };
	size_t i = json_array_size(sessions);

	tgt_worker_each(w->target, add_session, &all);
	for (; i < json_array_size(sessions); i++)
		json_object_set_new(json_array_get(sessions, i), "worker",
				    json_integer(w->index));
}

static json_t *listener_json(const struct net_listener *n)
{
	char name[NET_ADDR_STR];
	struct net_addr a;

	net_listener_addr(n, &a);
	net_addr_str(&a, name);
	return json_string(name);
}

json_t *status_listeners(const struct portal *p)
{
	json_t *all = json_array();

	for (unsigned k = 0; k < p->nlisteners; k++)
		json_array_append_new(all, listener_json(p->listeners[k]));
	return all;
}

json_t *status_listen(const struct daemon *d)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < d->portals.n; i++) {
		json_t *own = status_listeners(d->portals.all[i]);

		json_array_extend(all, own);
		json_decref(own);
	}
	return all;
}

/* The portals of a target that discovery shows. */
static json_t *target_portals(const struct daemon *d,
			      const struct cfg_target *t)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < t->portal_groups.n; i++) {
		const struct cfg_portal *c =
			&d->model->portals.v[t->portals[i]];
		const struct portal *p = d->portals.all[t->portals[i]];
		char name[NET_ADDR_STR];

		if (c->discovery == CFG_DISCOVERY_NONE)
			continue;
		for (unsigned k = 0; portal_address(c, p, k, name); k++)
			json_array_append_new(
				all, json_pack("{s:s, s:i}", "address", name,
					       "tag", (int)p->tag));
	}
	return all;
}

json_t *status_targets(const struct daemon *d)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < d->model->targets.n; i++) {
		const struct cfg_target *t = &d->model->targets.v[i];

		json_array_append_new(
			all, json_pack("{s:s, s:o, s:o}", "name", t->name,
				       "alias", status_shown(t->alias),
				       "portals", target_portals(d, t)));
	}
	return all;
}

static bool is_offline(const struct dev_server *s, uint16_t port)
{
	uint16_t ports[DEV_MAX_OFFLINE];
	unsigned n = dev_offline_ports(s, ports);

	for (unsigned i = 0; i < n; i++)
		if (ports[i] == port)
			return true;
	return false;
}

json_t *status_groups(const struct daemon *d)
{
	const struct dev_server *s = d->server;
	struct dev_group groups[DEV_MAX_GROUPS];
	unsigned n = dev_groups(s, groups);
	json_t *all = json_array();

	for (unsigned i = 0; i < n; i++) {
		json_t *ports = json_array(), *offline = json_array();

		for (unsigned p = 0; p < groups[i].nports; p++) {
			uint16_t port = groups[i].ports[p];

			json_array_append_new(ports, json_integer(port));
			if (is_offline(s, port))
				json_array_append_new(offline,
						      json_integer(port));
		}
		json_array_append_new(
			all, json_pack("{s:i, s:s, s:b, s:o, s:o}", "id",
				       (int)groups[i].id, "state",
				       group_state_name(groups[i].state),
				       "preferred", (int)groups[i].preferred,
				       "ports", ports, "offline", offline));
	}
	return all;
}

static json_t *limits_json(const struct admission_limits *l)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}",
			 "sessions", (int)l->sessions, "sessions_per_address",
			 (int)l->source_sessions, "startups_start",
			 (int)l->start, "startups_full", (int)l->full,
			 "startups_per_address", (int)l->source_startups,
			 "discovery", (int)l->discovery,
			 "discovery_per_address", (int)l->source_discovery,
			 "login_rate", (int)l->per_second, "penalty_max",
			 (int)l->penalty_max);
}

const char *status_refusal(enum admission_verdict v)
{
	static const char *const refusals[ADMISSION_VERDICTS] = {
		[ADMISSION_TOO_FAST] = "rate",
		[ADMISSION_PENALTY] = "penalty",
		[ADMISSION_CROWDED] = "crowded",
		[ADMISSION_FULL] = "full",
		[ADMISSION_SHARE] = "share",
		[ADMISSION_NO_MEMORY] = "memory",
	};

	return refusals[v];
}

json_t *status_admission(struct gate *g)
{
	json_t *refused = json_object();
	struct admission_counts c;

	gate_counts(g, &c);
	for (unsigned i = 0; i < ADMISSION_VERDICTS; i++)
		if (status_refusal((enum admission_verdict)i))
			json_object_set_new(
				refused,
				status_refusal((enum admission_verdict)i),
				count_json(c.refused[i]));
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:o}",
			 "startups", (int)c.starting, "discovery",
			 (int)c.discovery, "sessions", (int)c.sessions,
			 "addresses", (int)c.sources, "addresses_failed_chap",
			 (int)c.penalized, "connections", count_json(c.arrived),
			 "logins", count_json(c.logins), "chap_failures",
			 count_json(c.auth_failures), "refused", refused,
			 "dropped_startups", count_json(c.dropped_starting),
			 "dropped_discovery", count_json(c.dropped_discovery),
			 "limits", limits_json(&g->admission.limits));
}

static json_t *target_names(const struct daemon *d)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < d->model->targets.n; i++)
		json_array_append_new(all,
				      json_string(d->model->targets.v[i].name));
	return all;
}

/* The limits of the negotiation: each target has the same ones. */
static json_t *offers_json(void)
{
	struct tgt_config cfg;

	tgt_config_default(&cfg);
	return keys_json(&cfg.want);
}

json_t *status_drain(const struct daemon *d)
{
	const struct drain *s = &d->changes.drain;
	json_t *targets = json_array();

	for (unsigned i = 0; i < s->n; i++)
		json_array_append_new(targets, json_string(s->targets[i]));
	return json_pack("{s:b, s:o}", "all", (int)s->all, "targets", targets);
}

json_t *status_daemon(struct daemon *d, json_t *sessions)
{
	return json_pack("{s:s, s:o, s:o, s:s, s:i, s:s, s:o, s:o, s:o, s:o, "
			 "s:O}",
			 "version", OPENISER_VERSION, "targets",
			 target_names(d), "drain", status_drain(d), "io",
			 io_backend_name(io_loop_backend(d->loops[0])),
			 "workers", (int)d->nworkers, "log",
			 trace_level_name(d->log.trace.level), "listen",
			 status_listen(d), "luns", status_luns(d), "admission",
			 status_admission(&d->gate), "offers", offers_json(),
			 "sessions", sessions);
}
