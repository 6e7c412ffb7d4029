/* SPDX-License-Identifier: BSD-2-Clause */
/* prometheus.c: the metrics by name. Those of units and sessions are bounded
 * (snapshot.h). */
#include "daemon/metrics/prometheus.h"

#include <math.h>
#include <stdio.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "daemon/apply/units.h"
#include "daemon/cluster/gateway.h"
#include "daemon/config/luns.h"
#include "daemon/metrics/process.h"
#include "daemon/rpc/cluster.h"
#include "daemon/rpc/status.h"
#include "iscsi/login.h"

#define NS 1e9

static void family(struct expo *t, const char *name, enum expo_type type,
		   const char *help)
{
	expo_family(t, name, type, help);
}

static void gauge(struct expo *t, const char *name, double value,
		  const char *help)
{
	expo_family(t, name, EXPO_GAUGE, help);
	expo_number(t, value);
}

static void counter(struct expo *t, const char *name, uint64_t value,
		    const char *help)
{
	expo_family(t, name, EXPO_COUNTER, help);
	expo_count(t, value);
}

/* ---- the process ---- */

static void write_process(struct expo *t, const struct snapshot *s)
{
	struct process p;
	char host[256];

	process_read(&p);
	family(t, "iserd_build_info", EXPO_GAUGE,
	       "The version of iserd, and its machine.");
	net_host_name(host, sizeof(host));
	EXPO_LABELS(t, "version", OPENISER_VERSION, "host", host);
	expo_count(t, 1);
	gauge(t, "iserd_ready", daemon_is_ready(s->daemon),
	      "1 if iserd admits new sessions.");
	gauge(t, "iserd_draining", s->daemon->changes.drain.all,
	      "1 if no target admits new sessions (iserctl drain).");
	gauge(t, "iserd_workers", s->daemon->nworkers,
	      "Threads that serve connections.");
	gauge(t, "process_start_time_seconds", p.start,
	      "When the process began, in seconds since 1970.");
	family(t, "process_cpu_seconds", EXPO_COUNTER,
	       "User and system time of all threads.");
	expo_number(t, p.cpu);
	gauge(t, "process_resident_memory_bytes", (double)p.resident,
	      "Resident memory.");
	gauge(t, "process_virtual_memory_bytes", (double)p.size,
	      "Virtual memory.");
	gauge(t, "process_open_fds", p.fds, "Open descriptors.");
	gauge(t, "process_max_fds", p.max_fds, "The limit of descriptors.");
	family(t, "iserd_buffer_bytes", EXPO_GAUGE,
	       "Memory of data buffers, in use or kept for later.");
	EXPO_LABELS(t, "state", "used");
	expo_count(t, s->buffers_used);
	EXPO_LABELS(t, "state", "kept");
	expo_count(t, s->buffers_cached);
}

/* ---- connections and logins ---- */

static void write_admission(struct expo *t, struct gate *g)
{
	struct admission_counts c;

	gate_counts(g, &c);
	gauge(t, "iserd_half_open_connections", c.starting,
	      "Connections that have not logged in.");
	counter(t, "iserd_connections", c.arrived, "Accepted connections.");
	counter(t, "iserd_logins", c.logins, "Completed logins.");
	counter(t, "iserd_chap_failures", c.auth_failures,
		"Logins with a wrong name or secret.");
	family(t, "iserd_connections_refused", EXPO_COUNTER,
	       "Connections that were refused before their login, by reason.");
	for (unsigned i = 0; i < ADMISSION_VERDICTS; i++) {
		const char *name = status_refusal((enum admission_verdict)i);

		if (!name)
			continue;
		EXPO_LABELS(t, "reason", name);
		expo_count(t, c.refused[i]);
	}
	family(t, "iserd_connections_displaced", EXPO_COUNTER,
	       "Connections that were dropped to make room for others.");
	EXPO_LABELS(t, "state", "half_open");
	expo_count(t, c.dropped_starting);
	EXPO_LABELS(t, "state", "discovery");
	expo_count(t, c.dropped_discovery);
}

static void write_refusals(struct expo *t, const struct tgt_worker_stats *w)
{
	family(t, "iserd_logins_refused", EXPO_COUNTER,
	       "Logins that were refused, by status (RFC 7143, section "
	       "11.13.5).");
	for (unsigned i = 0; i < TGT_LOGIN_STATUSES; i++) {
		uint16_t status = (uint16_t)((2 + i / 16) << 8 | i % 16);
		char number[8];

		/* the usual ones always, so that their rate is known */
		if (!w->refused[i] && status != ISCSI_LOGIN_AUTH_FAILURE &&
		    status != ISCSI_LOGIN_NOT_FOUND)
			continue;
		snprintf(number, sizeof(number), "%04x", status);
		EXPO_LABELS(t, "status", number, "reason",
			    iscsi_login_status_str(status));
		expo_count(t, w->refused[i]);
	}
}

static void write_workers(struct expo *t, const struct snapshot *s)
{
	const struct tgt_worker_stats *w = &s->workers;
	const struct {
		const char *state;
		unsigned n;
	} tasks[] = {
		{ "data", w->data },   { "memory", w->memory },
		{ "turn", w->turn },   { "device", w->device },
		{ "abort", w->abort }, { "transport", w->transport },
	};

	write_refusals(t, w);
	counter(t, "iserd_connections_failed", w->dropped,
		"Connections that ended with an error.");
	counter(t, "iserd_sessions_reinstated", w->reinstated,
		"Sessions that a new login of their initiator replaced.");
	counter(t, "iserd_rejects", w->rejects, "Rejected PDUs.");
	counter(t, "iserd_task_management_functions", w->functions,
		"Task management functions.");
	counter(t, "iserd_slow_commands", w->slow,
		"Commands that took longer than --slow-command.");
	family(t, "iserd_tasks", EXPO_GAUGE,
	       "Commands in progress, by what they wait for.");
	for (unsigned i = 0; i < ARRAY_LEN(tasks); i++) {
		EXPO_LABELS(t, "waits_for", tasks[i].state);
		expo_count(t, tasks[i].n);
	}
}

/* ---- transports ---- */

/* A member of struct net_conn_stats. */
struct moved {
	const char *name, *help;
	size_t offset;
};

#define MOVED(name, member, help)                     \
 {                                                    \
  name, help, offsetof(struct net_conn_stats, member) \
 }

static const struct moved moved[] = {
	MOVED("iserd_transport_received_bytes", net.rx_bytes,
	      "Bytes that were received on sockets."),
	MOVED("iserd_transport_sent_bytes", net.tx_bytes,
	      "Bytes that were sent on sockets."),
	MOVED("iserd_transport_receive_calls", net.rx_calls,
	      "System calls that received from sockets."),
	MOVED("iserd_transport_send_calls", net.tx_calls,
	      "System calls that sent to sockets."),
	MOVED("iserd_transport_copied_bytes", copied,
	      "Payload that was copied in user space."),
	MOVED("iserd_transport_received_pdus", rx_pdus, "Received PDUs."),
	MOVED("iserd_transport_sent_pdus", tx_pdus, "Sent PDUs."),
	MOVED("iserd_transport_r2ts", r2ts, "R2Ts that were sent."),
	MOVED("iserd_transport_digest_errors", digest_errors,
	      "Wrong header digests, data digests and CRCs of MPA."),
	MOVED("iserd_rdma_writes", rdma.writes, "RDMA Writes."),
	MOVED("iserd_rdma_reads", rdma.reads, "RDMA Reads."),
	MOVED("iserd_rdma_acknowledgements", rdma.acks,
	      "RDMA Reads without data that had read data acknowledged."),
	MOVED("iserd_rdma_written_bytes", rdma.write_bytes,
	      "Payload of RDMA Writes."),
	MOVED("iserd_rdma_read_bytes", rdma.read_bytes,
	      "Payload of RDMA Reads."),
	MOVED("iserd_rdma_invalidations", rdma.invalidated,
	      "STags that were invalidated."),
};

static void write_transports(struct expo *t, const struct traffic *all)
{
	family(t, "iserd_transport_connections", EXPO_GAUGE,
	       "Connections, by kind.");
	for (unsigned k = 0; k < TRAFFIC_KINDS; k++) {
		if (!all->kinds[k].kind)
			continue;
		EXPO_LABELS(t, "kind", all->kinds[k].kind);
		expo_count(t, all->kinds[k].open);
	}
	for (unsigned i = 0; i < ARRAY_LEN(moved); i++) {
		family(t, moved[i].name, EXPO_COUNTER, moved[i].help);
		for (unsigned k = 0; k < TRAFFIC_KINDS; k++) {
			const char *base = (const char *)&all->kinds[k].moved;

			if (!all->kinds[k].kind)
				continue;
			EXPO_LABELS(t, "kind", all->kinds[k].kind);
			expo_count(t,
				   *(const uint64_t *)(base + moved[i].offset));
		}
	}
}

/* ---- targets ---- */

static const struct {
	const char *name, *help;
	size_t offset;
} counted[] = {
	{ "iserd_target_commands", "SCSI Commands.",
	  offsetof(struct tgt_counters, commands) },
	{ "iserd_target_read_bytes", "Data that initiators read.",
	  offsetof(struct tgt_counters, bytes_read) },
	{ "iserd_target_written_bytes", "Data that initiators wrote.",
	  offsetof(struct tgt_counters, bytes_written) },
	{ "iserd_target_errors", "Commands that did not end with GOOD.",
	  offsetof(struct tgt_counters, errors) },
	{ "iserd_target_solicited_writes",
	  "WRITEs that waited for data that an R2T or RDMA Read asked for.",
	  offsetof(struct tgt_counters, solicited) },
	{ "iserd_target_memory_waits",
	  "Commands that waited for buffer memory.",
	  offsetof(struct tgt_counters, waits) },
};

static void label_target(struct expo *t, const struct snapshot_target *g)
{
	EXPO_LABELS(t, "target", g->name[0] ? g->name : "(discovery)",
		    "transport", g->transport);
}

/* Targets that drain are few, so others have no sample. */
static void write_drain(struct expo *t, const struct drain *s)
{
	family(t, "iserd_target_draining", EXPO_GAUGE,
	       "1 if the target admits no new sessions (iserctl drain).");
	for (unsigned i = 0; i < s->n; i++) {
		EXPO_LABELS(t, "target", s->targets[i]);
		expo_count(t, 1);
	}
}

static void write_targets(struct expo *t, const struct snapshot *s)
{
	write_drain(t, &s->daemon->changes.drain);
	family(t, "iserd_target_sessions", EXPO_GAUGE, "Sessions.");
	list_for_each(it, &s->targets) {
		const struct snapshot_target *g =
			list_entry(it, struct snapshot_target, link);

		label_target(t, g);
		expo_count(t, g->sessions);
	}
	for (unsigned i = 0; i < ARRAY_LEN(counted); i++) {
		family(t, counted[i].name, EXPO_COUNTER, counted[i].help);
		list_for_each(it, &s->targets) {
			const struct snapshot_target *g =
				list_entry(it, struct snapshot_target, link);
			const char *base = (const char *)&g->count;

			label_target(t, g);
			expo_count(t, *(const uint64_t *)(base +
							  counted[i].offset));
		}
	}
}

/* ---- units ---- */

/* Sets the label of unit i, and one more label if name is not NULL. */
static void label_unit(struct expo *t, const struct snapshot *s, unsigned i,
		       const char *name, const char *value)
{
	EXPO_LABELS(t, "backstore", dev_lu_name(s->units[i]), name, value);
}

struct lun_labels {
	struct expo *t;
	unsigned n; /* LUNs so far */
};

static void write_lun_map(void *arg, const struct cfg_reach *r)
{
	struct lun_labels *l = arg;
	char lun[8], map[16] = "";

	if (l->n++ >= SNAPSHOT_LUNS)
		return;
	snprintf(lun, sizeof(lun), "%u", r->lun);
	if (r->map)
		snprintf(map, sizeof(map), "%u", r->map);
	EXPO_LABELS(l->t, "backstore", r->backstore, "target", r->target, "map",
		    map, "lun", lun);
	expo_count(l->t, 1);
}

static void write_lun_maps(struct expo *t, const struct snapshot *s)
{
	struct lun_labels l = { .t = t };

	family(t, "iserd_lun_map_info", EXPO_GAUGE,
	       "The backstore that initiators reach by a target and a LUN; map: "
	       "the number of a map of the target.");
	cfg_luns_each(s->daemon->model, write_lun_map, &l);
	gauge(t, "iserd_lun_maps_left_out",
	      l.n > SNAPSHOT_LUNS ? l.n - SNAPSHOT_LUNS : 0,
	      "LUNs that have no iserd_lun_map_info because there are too many.");
}

/* Writes a member of struct unit, a uint64_t, of the units whose space is known. */
static void write_space(struct expo *t, const struct snapshot *s,
			const char *name, const char *help, size_t offset)
{
	family(t, name, EXPO_GAUGE, help);
	for (unsigned i = 0; i < s->nunits; i++) {
		const struct unit *u = unit_of(s->daemon, s->units[i]);

		if (!u->space.is_known)
			continue;
		label_unit(t, s, i, NULL, NULL);
		expo_count(t, *(const uint64_t *)((const char *)u + offset));
	}
}

static void write_unit_info(struct expo *t, const struct snapshot *s)
{
	family(t, "iserd_lun_info", EXPO_GAUGE, "The store of a backstore.");
	for (unsigned i = 0; i < s->nunits; i++) {
		const struct bs *b = dev_lu_backstore(s->units[i]);

		label_unit(t, s, i, "store", b ? b->name : "");
		expo_count(t, 1);
	}
	write_lun_maps(t, s);
	family(t, "iserd_lun_size_bytes", EXPO_GAUGE, "The capacity of a LUN.");
	for (unsigned i = 0; i < s->nunits; i++) {
		const struct bs *b = dev_lu_backstore(s->units[i]);

		label_unit(t, s, i, NULL, NULL);
		expo_count(t, b ? b->size : 0);
	}
	write_space(t, s, "iserd_lun_used_bytes",
		    "Space that the file of a LUN takes.",
		    offsetof(struct unit, space.used));
	write_space(t, s, "iserd_lun_space_left_bytes",
		    "Space that the file of a LUN can still take, up to its "
		    "size, as far as its file system has room.",
		    offsetof(struct unit, space.left));
	family(t, "iserd_lun_trouble", EXPO_GAUGE,
	       "1 if the file of a LUN is gone or a flush failed.");
	for (unsigned i = 0; i < s->nunits; i++) {
		const struct unit *u = unit_of(s->daemon, s->units[i]);

		label_unit(t, s, i, NULL, NULL);
		expo_count(t, u->trouble != BS_SOUND ||
				      dev_lu_flush_failed(u->lu));
	}
	gauge(t, "iserd_luns_left_out", s->left_out,
	      "LUNs that have no metrics because there are too many.");
}

static void write_latency(struct expo *t, const struct tgt_latency *l)
{
	uint64_t sum = 0, all = tgt_latency_total(l);

	/* one bucket for each power of two from 8 microseconds on */
	for (unsigned b = 0; b < TGT_LATENCY_BUCKETS - 1; b++) {
		xtime limit = tgt_latency_limit(b);

		sum += l->count[b];
		if (limit >= 1 << 13 && !(limit & (limit - 1)))
			expo_bucket(t, (double)limit / NS, sum);
	}
	expo_bucket(t, HUGE_VAL, all);
	expo_histogram(t, (double)l->sum / NS, all);
}

static void write_latencies(struct expo *t, const struct snapshot *s)
{
	family(t, "iserd_lun_latency_seconds", EXPO_HISTOGRAM,
	       "Time from the arrival of a command to its response.");
	for (unsigned i = 0; i < s->nunits; i++) {
		const struct tgt_unit_stats *u = s->stats[i];

		for (unsigned o = 0; u && o < TGT_OPS; o++) {
			const struct tgt_latency *l = &u->op[o].latency;

			if (o == TGT_OP_OTHER && !tgt_latency_total(l))
				continue;
			label_unit(t, s, i, "op", tgt_op_name((enum tgt_op)o));
			write_latency(t, l);
		}
	}
}

static const char *const timed_names[BS_TIMED] = {
	[BS_TIMED_READ] = "read",
	[BS_TIMED_WRITE] = "write",
	[BS_TIMED_FLUSH] = "flush",
	[BS_TIMED_DISCARD] = "discard",
};

static void write_store_latency(struct expo *t, const struct bs *b,
				enum bs_timed kind)
{
	struct bs_latency l;
	uint64_t sum = 0;

	bs_latency_sum(b, kind, &l);
	for (unsigned i = 0; i < BS_LATENCY_BUCKETS; i++) {
		sum += l.count[i];
		expo_bucket(t,
			    i < BS_LATENCY_BUCKETS - 1
				    ? (double)bs_latency_limit(i) / NS
				    : HUGE_VAL,
			    sum);
	}
	expo_histogram(t, (double)l.sum / NS, sum);
}

static void write_store_latencies(struct expo *t, const struct snapshot *s)
{
	family(t, "iserd_store_latency_seconds", EXPO_HISTOGRAM,
	       "Time that the cluster of an image took for a request of iserd.");
	for (unsigned i = 0; i < s->nunits; i++) {
		const struct bs *b = dev_lu_backstore(s->units[i]);

		for (unsigned k = 0; b && b->latencies && k < BS_TIMED; k++) {
			label_unit(t, s, i, "op", timed_names[k]);
			write_store_latency(t, b, (enum bs_timed)k);
		}
	}
}

static void write_units(struct expo *t, const struct snapshot *s)
{
	write_unit_info(t, s);
	family(t, "iserd_lun_queue_depth", EXPO_GAUGE,
	       "Commands in progress at a LUN.");
	for (unsigned i = 0; i < s->nunits; i++) {
		label_unit(t, s, i, NULL, NULL);
		expo_count(t, s->stats[i] ? s->stats[i]->depth : 0);
	}
	family(t, "iserd_lun_bytes", EXPO_COUNTER, "Data of commands.");
	for (unsigned i = 0; i < s->nunits; i++) {
		for (unsigned o = 0; o < TGT_OPS; o++) {
			label_unit(t, s, i, "op", tgt_op_name((enum tgt_op)o));
			expo_count(t,
				   s->stats[i] ? s->stats[i]->op[o].bytes : 0);
		}
	}
	family(t, "iserd_lun_errors", EXPO_COUNTER,
	       "Commands that did not end with GOOD, by reason.");
	for (unsigned i = 0; i < s->nunits; i++) {
		for (unsigned e = 0; e < TGT_ERRORS; e++) {
			label_unit(t, s, i, "reason",
				   tgt_error_name((enum tgt_error)e));
			expo_count(t, s->stats[i] ? s->stats[i]->errors[e] : 0);
		}
	}
	write_latencies(t, s);
	write_store_latencies(t, s);
}

/* ---- sessions ---- */

static uint64_t member(const json_t *o, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(o, name));
}

static const char *member_text(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? text : "";
}

static void write_session_family(struct expo *t, const struct snapshot *s,
				 const char *key)
{
	json_t *o;
	size_t i;

	json_array_foreach(s->sessions, i, o)
	{
		char tsih[8];

		snprintf(tsih, sizeof(tsih), "%u", (unsigned)member(o, "tsih"));
		EXPO_LABELS(t, "initiator", member_text(o, "initiator"),
			    "target", member_text(o, "target"), "peer",
			    member_text(o, "peer"), "tsih", tsih);
		expo_count(t, member(o, key));
	}
}

static void write_sessions(struct expo *t, const struct snapshot *s)
{
	static const struct {
		const char *key, *name;
		enum expo_type type;
		const char *help;
	} rows[] = {
		{ "commands", "iserd_session_commands", EXPO_COUNTER,
		  "SCSI Commands." },
		{ "bytes_read", "iserd_session_read_bytes", EXPO_COUNTER,
		  "Data that the initiator read." },
		{ "bytes_written", "iserd_session_written_bytes", EXPO_COUNTER,
		  "Data that the initiator wrote." },
		{ "errors", "iserd_session_errors", EXPO_COUNTER,
		  "Commands that did not end with GOOD." },
		{ "in_flight", "iserd_session_queue_depth", EXPO_GAUGE,
		  "Commands in progress." },
	};
	size_t shown = json_array_size(s->sessions);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		family(t, rows[i].name, rows[i].type, rows[i].help);
		write_session_family(t, s, rows[i].key);
	}
	gauge(t, "iserd_sessions_left_out",
	      s->nsessions > shown ? (double)(s->nsessions - shown) : 0,
	      "Sessions that have no metrics because there are too many.");
}

/* ---- units of several gateways ---- */

struct cluster_value {
	const char *name;
	enum expo_type type;
	double (*of)(const struct cluster_status *st);
	const char *help;
};

static double generation(const struct cluster_status *st)
{
	return st->record ? (double)st->record->generation : 0;
}

static double takes(const struct cluster_status *st)
{
	return (double)st->takes;
}

static double yields(const struct cluster_status *st)
{
	return (double)st->yields;
}

static double fences(const struct cluster_status *st)
{
	return (double)st->fences;
}

static double fenced(const struct cluster_status *st)
{
	return (double)st->fenced;
}

static double swaps(const struct cluster_status *st)
{
	return (double)st->swaps;
}

static double conflicts(const struct cluster_status *st)
{
	return (double)st->conflicts;
}

static double last_hand_over(const struct cluster_status *st)
{
	return (double)st->last_hand_over / NS;
}

struct cluster_family {
	struct expo *t;
	const struct cluster_value *value;
};

static void write_member_value(void *arg, struct member *m)
{
	const struct cluster_family *f = arg;
	struct cluster_status st;
	double v;

	member_status(m, &st);
	v = f->value->of(&st);
	EXPO_LABELS(f->t, "backstore", member_unit(m)->name);
	if (f->value->type == EXPO_COUNTER)
		expo_count(f->t, (uint64_t)v);
	else
		expo_number(f->t, v);
}

static void write_member_roles(void *arg, struct member *m)
{
	struct expo *t = arg;
	struct cluster_status st;

	member_status(m, &st);
	for (unsigned i = 0; i <= CLUSTER_LEAVING; i++) {
		enum cluster_role role = (enum cluster_role)i;

		EXPO_LABELS(t, "backstore", member_unit(m)->name, "role",
			    gateway_role_name(role));
		expo_count(t, st.role == role);
	}
}

static void write_cluster(struct expo *t, const struct gateway *c)
{
	static const struct cluster_value rows[] = {
		{ "iserd_cluster_generation", EXPO_GAUGE, generation,
		  "Changes of the owner of the unit." },
		{ "iserd_cluster_takes", EXPO_COUNTER, takes,
		  "How often this gateway became the owner." },
		{ "iserd_cluster_yields", EXPO_COUNTER, yields,
		  "How often this gateway gave the unit away." },
		{ "iserd_cluster_fences", EXPO_COUNTER, fences,
		  "How often this gateway fenced another one." },
		{ "iserd_cluster_fenced", EXPO_COUNTER, fenced,
		  "How often another gateway fenced this one." },
		{ "iserd_cluster_swaps", EXPO_COUNTER, swaps,
		  "Changes of the record by this gateway." },
		{ "iserd_cluster_conflicts", EXPO_COUNTER, conflicts,
		  "Changes for which another gateway was faster." },
		{ "iserd_cluster_last_hand_over_seconds", EXPO_GAUGE,
		  last_hand_over, "How long the last hand-over took." },
	};

	family(t, "iserd_cluster_role", EXPO_GAUGE,
	       "1 for the role that this gateway has at the unit.");
	gateway_each(c, write_member_roles, t);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cluster_family f = { t, &rows[i] };

		family(t, rows[i].name, rows[i].type, rows[i].help);
		gateway_each(c, write_member_value, &f);
	}
}

void prometheus_write(struct expo *t, const struct snapshot *s)
{
	write_process(t, s);
	write_admission(t, &s->daemon->gate);
	write_workers(t, s);
	write_transports(t, &s->traffic);
	write_targets(t, s);
	write_units(t, s);
	write_sessions(t, s);
	if (s->daemon->gateway)
		write_cluster(t, s->daemon->gateway);
}
