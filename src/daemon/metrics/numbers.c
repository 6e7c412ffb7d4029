/* SPDX-License-Identifier: BSD-2-Clause */
/* numbers.c: a snapshot as JSON. */
#include "daemon/metrics/numbers.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/metrics/process.h"
#include "daemon/rpc/status.h"
#include "iscsi/login.h"

static json_t *count_json(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* Returns the latency in microseconds that so many percent do not exceed: the
 * upper limit of its bucket. */
static double percentile(const struct tgt_latency *l, double percent)
{
	uint64_t all = tgt_latency_total(l), sum = 0;

	for (unsigned b = 0; all && b < TGT_LATENCY_BUCKETS - 1; b++) {
		sum += l->count[b];
		if ((double)sum >= (double)all * percent / 100)
			return (double)tgt_latency_limit(b) / XTIME_US;
	}
	return all ? (double)(1ll << TGT_LATENCY_LAST) / XTIME_US : 0;
}

/* Returns the buckets that are not empty: "17:4 18:90" is 4 commands in bucket
 * 17 and 90 in bucket 18. */
static json_t *buckets_json(const struct tgt_latency *l)
{
	char text[TGT_LATENCY_BUCKETS * 24] = "";
	size_t n = 0;

	for (unsigned b = 0; b < TGT_LATENCY_BUCKETS; b++)
		if (l->count[b])
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "%s%u:%llu", n ? " " : "", b,
					      (unsigned long long)l->count[b]);
	return json_string(text);
}

static json_t *op_json(const struct tgt_op_stats *o)
{
	uint64_t n = tgt_latency_total(&o->latency);

	return json_pack("{s:o, s:o, s:f, s:f, s:f, s:o, s:o}", "commands",
			 count_json(n), "bytes", count_json(o->bytes),
			 "mean_us",
			 n ? (double)o->latency.sum / (double)n / XTIME_US : 0,
			 "p50_us", percentile(&o->latency, 50), "p99_us",
			 percentile(&o->latency, 99), "sum_ns",
			 count_json(o->latency.sum), "buckets",
			 buckets_json(&o->latency));
}

static json_t *unit_json(const struct snapshot *s, unsigned i,
			 const json_t *places)
{
	static const struct tgt_unit_stats none = { .lu = NULL };
	const struct tgt_unit_stats *u = s->stats[i] ? s->stats[i] : &none;
	json_t *j = status_lun(s->daemon, s->units[i], places);
	json_t *errors = json_object();

	json_object_set_new(j, "depth", count_json(u->depth));
	for (unsigned o = 0; o < TGT_OPS; o++)
		json_object_set_new(j, tgt_op_name((enum tgt_op)o),
				    op_json(&u->op[o]));
	for (unsigned e = 0; e < TGT_ERRORS; e++)
		json_object_set_new(errors, tgt_error_name((enum tgt_error)e),
				    count_json(u->errors[e]));
	json_object_set_new(j, "errors", errors);
	return j;
}

static json_t *units_json(const struct snapshot *s)
{
	json_t *all = json_array(), *places = status_places(s->daemon);

	for (unsigned i = 0; i < s->nunits; i++)
		json_array_append_new(all, unit_json(s, i, places));
	json_decref(places);
	return all;
}

static json_t *targets_json(const struct snapshot *s)
{
	json_t *all = json_array();

	list_for_each(it, &s->targets) {
		const struct snapshot_target *t =
			list_entry(it, struct snapshot_target, link);
		const struct tgt_counters *c = &t->count;

		json_array_append_new(
			all,
			json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, "
				  "s:o}",
				  "target",
				  t->name[0] ? t->name : "(discovery)",
				  "transport", t->transport, "sessions",
				  (int)t->sessions, "commands",
				  count_json(c->commands), "bytes_read",
				  count_json(c->bytes_read), "bytes_written",
				  count_json(c->bytes_written), "errors",
				  count_json(c->errors), "solicited",
				  count_json(c->solicited), "waits",
				  count_json(c->waits)));
	}
	return all;
}

static json_t *transports_json(const struct traffic *t)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < TRAFFIC_KINDS; i++) {
		const struct traffic_kind *k = &t->kinds[i];
		const struct net_conn_stats *m = &k->moved;

		if (!k->kind)
			continue;
		json_array_append_new(
			all,
			json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o}",
				  "kind", k->kind, "connections", (int)k->open,
				  "bytes_in", count_json(m->net.rx_bytes),
				  "bytes_out", count_json(m->net.tx_bytes),
				  "digest_errors", count_json(m->digest_errors),
				  "rdma_writes", count_json(m->rdma.writes),
				  "rdma_reads", count_json(m->rdma.reads),
				  "rdma_acks", count_json(m->rdma.acks)));
	}
	return all;
}

static json_t *refused_json(const struct tgt_worker_stats *w)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < TGT_LOGIN_STATUSES; i++) {
		uint16_t status = (uint16_t)((2 + i / 16) << 8 | i % 16);
		char key[80];

		if (!w->refused[i])
			continue;
		snprintf(key, sizeof(key), "%04x %s", status,
			 iscsi_login_status_str(status));
		json_object_set_new(all, key, count_json(w->refused[i]));
	}
	return all;
}

static json_t *tasks_json(const struct tgt_worker_stats *w)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "data", (int)w->data,
			 "memory", (int)w->memory, "turn", (int)w->turn,
			 "device", (int)w->device, "transport",
			 (int)w->transport, "abort", (int)w->abort);
}

static json_t *process_json(const struct snapshot *s)
{
	struct process p;

	process_read(&p);
	return json_pack("{s:f, s:f, s:I, s:i, s:i, s:I, s:I}", "start",
			 p.start, "cpu_seconds", p.cpu, "memory",
			 (json_int_t)p.resident, "descriptors", (int)p.fds,
			 "descriptors_limit", (int)p.max_fds, "buffers_used",
			 (json_int_t)s->buffers_used, "buffers_kept",
			 (json_int_t)s->buffers_cached);
}

json_t *numbers_json(const struct snapshot *s)
{
	const struct daemon *d = s->daemon;
	const struct tgt_worker_stats *w = &s->workers;
	char host[256];

	net_host_name(host, sizeof(host));

	return json_pack(
		"{s:s, s:o, s:o, s:f, s:b, s:b, s:i, s:o, s:o, s:i, s:o, s:o, s:O, s:i, s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:o}",
		"version", OPENISER_VERSION, "host", status_shown(host),
		"listen", status_listen(d), "time",
		(double)io_now(d->loops[0]) / XTIME_S, "ready",
		(int)daemon_is_ready(d), "draining", (int)d->changes.drain.all,
		"workers", (int)d->nworkers, "process", process_json(s), "luns",
		units_json(s), "luns_left_out", (int)s->left_out, "targets",
		targets_json(s), "transports", transports_json(&s->traffic),
		"sessions", s->sessions, "sessions_total", (int)s->nsessions,
		"admission", status_admission(&s->daemon->gate),
		"logins_refused", refused_json(w), "tasks", tasks_json(w),
		"rejects", count_json(w->rejects), "task_management",
		count_json(w->functions), "sessions_reinstated",
		count_json(w->reinstated), "slow_commands",
		count_json(w->slow));
}
