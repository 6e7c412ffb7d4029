/* SPDX-License-Identifier: BSD-2-Clause */
/* session.c: connecting, logging in, closing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datamover/iser/dmiser.h"
#include "lib/internal.h"
#include "net/verbs.h"

/* transport=auto: how long an MPA Reply may take before iSCSI is tried. */
#define AUTO_TIME (2 * XTIME_S)

/* ---- the end of connecting ---- */

static void connected(struct iser_session *s, int err)
{
	void (*fn)(void *, struct iser_session *, int) = s->connected;

	s->connected = NULL;
	if (fn)
		fn(s->connected_arg, s, err);
}

static bool wants_iser(const struct iser_session *s)
{
	return strcmp(s->url.transport, "iscsi") != 0 && !s->plain;
}

/* Whether that is how a peer ends what it does not understand, or forbids. */
static bool is_no(int err)
{
	return err == ERR_CLOSED || err == ERR_RESET || err == ERR_TIMEOUT ||
	       err == ERR_DENIED || err == ERR_FORMAT;
}

/* What may help where a peer went without an answer, or said only no. */
static const char *hint(const struct iser_session *s, uint16_t status, int err)
{
	if (status ? status != ISCSI_LOGIN_INITIATOR_ERROR : !is_no(err))
		return "";
	if (!status && s->rdma)
		return "; it may have no iSER from the start: try start=stream "
		       "or transport=auto";
	if (!status && wants_iser(s))
		return "; it may have no iSER behind a login over TCP: try "
		       "start=rdma";
	return wants_iser(s) ? "" : "; it may want iSER: try transport=iser";
}

static int login_error(const struct iser_session *s, int err)
{
	const struct iscsi_login_failure *f = ini_failure(s->ini);
	const char *what = f->text[0] ? f->text : err_str(err);
	int e = lib_error(err);

	if (f->status == ISCSI_LOGIN_AUTH_FAILURE)
		e = ISER_E_AUTH;
	else if (f->status == ISCSI_LOGIN_NOT_FOUND)
		e = ISER_E_NOT_FOUND;
	else if (f->status)
		e = ISER_E_LOGIN;
	return lib_fail(s->ctx, e, "login to %s at %s:%u failed: %s%s%s%s",
			s->url.target[0] ? s->url.target : "discovery",
			s->url.host, s->url.port, what,
			f->redirect[0] ? "; it moved to " : "", f->redirect,
			hint(s, f->status, err));
}

/* ---- up-calls of the initiator role ---- */

/* iSER was asked for, and nothing else will do. */
static bool transport_ok(struct iser_session *s)
{
	if (strcmp(s->url.transport, "iser") != 0 || s->rdma ||
	    ini_params(s->ini)->rdma_extensions || !s->url.target[0])
		return true;
	s->err = lib_fail(s->ctx, ISER_E_LOGIN,
			  "%s at %s:%u answers RDMAExtensions=No: it has no "
			  "iSER behind a login over TCP; try start=rdma or "
			  "transport=auto",
			  s->url.target, s->url.host, s->url.port);
	ini_kill(s->ini, ERR_NEGOTIATION);
	return false;
}

static void session_up(struct iser_session *s)
{
	lib_back_logged_in(s);
	connected(s, 0);
}

static void rdma_answered(struct ini_request *r, int err,
			  const struct dm_control *rsp)
{
	struct iser_session *s = container_of(r, struct iser_session, probe);

	(void)rsp;
	if (!err) {
		session_up(s);
		return;
	}
	s->err =
		lib_fail(s->ctx, lib_error(err),
			 "%s at %s:%u answers RDMAExtensions=Yes and then does "
			 "not go to RDMA mode: %s; try start=rdma or "
			 "transport=tcp",
			 s->url.target, s->url.host, s->url.port, err_str(err));
	s->rdma_failed = true;
	ini_kill(s->ini, err);
}

/* There are targets (tgt) that say RDMAExtensions=Yes and know nothing of RFC
 * 7145 §5.1.2: only what was answered in RDMA mode shows that it is one. */
static void probe_rdma(struct iser_session *s)
{
	xtime deadline = io_now(s->ctx->loop) + CONNECT_TIME;

	s->probe = (struct ini_request){ .done = rdma_answered };
	if (ini_ping(s->ini, &s->probe, NULL, 0, deadline))
		ini_kill(s->ini, ERR_NOMEM);
}

static void on_logged_in(void *arg, int err)
{
	struct iser_session *s = arg;

	if (!err && !transport_ok(s))
		return;
	if (!err && !s->rdma && ini_params(s->ini)->rdma_extensions) {
		probe_rdma(s);
		return;
	}
	if (!err) {
		session_up(s);
		return;
	}
	s->login_answered = ini_failure(s->ini)->status != 0;
	s->err = login_error(s, err); /* closed follows */
}

static void on_closed(void *arg, int err)
{
	struct iser_session *s = arg;

	if (!s->err)
		s->err = err ? lib_error(err) : ISER_E_CLOSED;
}

static void on_async(void *arg, const struct iscsi_async *a)
{
	lib_back_async(arg, a);
}

static void set_timer(struct io_defer *d)
{
	struct iser_session *s = container_of(d, struct iser_session, rearm);

	if (s->ini)
		io_timer_set(s->ctx->loop, &s->timer, ini_deadline(s->ini));
}

static void on_rearm(void *arg)
{
	struct iser_session *s = arg;

	io_loop_defer(s->ctx->loop, &s->rearm);
}

static void on_timer(struct io_timer *t)
{
	struct iser_session *s = container_of(t, struct iser_session, timer);

	ini_expire(s->ini, io_now(s->ctx->loop));
	io_loop_defer(s->ctx->loop, &s->rearm);
}

/* ---- the connection goes ---- */

/* Frees whatever of the connection was made. */
static void unmake(struct iser_session *s)
{
	ini_free(s->ini);
	net_conn_free(s->net);
	s->ini = NULL;
	s->net = NULL;
	s->typed.is_known = false; /* it may come back as another one */
}

static void on_connected(void *arg, int fd, const char *why);

int lib_session_connect(struct iser_session *s)
{
	if (s->rdma && !strcmp(s->url.rcap, "verbs"))
		return lib_verbs_connect(s);
	s->connector =
		net_connect(s->ctx->loop, s->url.host, s->url.port,
			    io_now_exact() + CONNECT_TIME, on_connected, s);
	if (!s->connector)
		s->err = lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	return s->connector ? 0 : s->err;
}

/* transport=auto: what does not understand an MPA Request may speak iSCSI, and
 * what does not understand it behind a login may stay with that. */
static bool fall_back(struct iser_session *s)
{
	if (strcmp(s->url.transport, "auto") != 0 ||
	    s->state != SESSION_LOGIN || s->login_answered || s->plain)
		return false;
	if (!s->rdma && !s->rdma_failed)
		return false;
	s->plain = !s->rdma;
	s->rdma = false;
	s->err = 0;
	s->state = SESSION_CONNECTING;
	return !lib_session_connect(s);
}

static void connection_over(struct iser_session *s)
{
	if (!lib_back_next(s))
		connected(s, s->err);
}

static void add_stats(struct net_conn_stats *sum, const struct net_conn *c)
{
	struct net_conn_stats st;

	net_conn_stats(c, &st);
	sum->net.rx_bytes += st.net.rx_bytes;
	sum->net.tx_bytes += st.net.tx_bytes;
	sum->net.rx_calls += st.net.rx_calls;
	sum->net.tx_calls += st.net.tx_calls;
	sum->copied += st.copied;
}

static void on_stream_closed(void *arg, int err)
{
	struct iser_session *s = arg;

	(void)err; /* the role was told, and told us */
	add_stats(&s->past_stats, s->net);
	lib_back_lost(s);
	io_timer_clear(s->ctx->loop, &s->timer);
	io_defer_cancel(&s->rearm);
	unmake(s);
	if (!fall_back(s))
		connection_over(s);
}

void lib_session_drop(struct iser_session *s, int err)
{
	if (s->ini)
		ini_kill(s->ini, err);
}

/* ---- the connection comes ---- */

static void copy_secret(struct iscsi_chap_secret *to, const char *name,
			const char *secret)
{
	snprintf(to->name, sizeof(to->name), "%s", name);
	to->secret_len = MIN(strlen(secret), sizeof(to->secret));
	memcpy(to->secret, secret, to->secret_len);
}

static void set_digests(struct iscsi_login_config *l, const char *header,
			const char *data)
{
	l->header_digest_none_ok = strstr(header, "none") != NULL;
	l->header_digest_crc_ok = strstr(header, "crc32c") != NULL;
	l->data_digest_none_ok = strstr(data, "none") != NULL;
	l->data_digest_crc_ok = strstr(data, "crc32c") != NULL;
	/* the order of one key stands for both: they are seldom mixed */
	l->prefer_digests = header[0] == 'c' || data[0] == 'c';
}

/* ISID of type "random" (§11.12.5, 10b), one per session of this context. */
static void set_isid(struct iser_context *ctx, uint8_t isid[6])
{
	uint32_t n = ctx->next_isid++;

	isid[0] = 0x80;
	put_be24(isid + 1, (uint32_t)getpid() & 0xffffff);
	put_be16(isid + 4, (uint16_t)n);
	isid[0] |= (uint8_t)(n >> 16) & 0x3f;
}

static void fill_config(struct iser_session *s, struct ini_config *cfg)
{
	const struct iser_url *u = &s->url;
	struct iscsi_login_config *l = &cfg->login;

	ini_config_default(cfg);
	l->id.discovery = u->target[0] == '\0';
	snprintf(l->id.initiator_name, sizeof(l->id.initiator_name), "%s",
		 u->initiator[0] ? u->initiator : s->ctx->initiator);
	snprintf(l->id.target_name, sizeof(l->id.target_name), "%s", u->target);
	memcpy(l->id.isid, s->isid, sizeof(s->isid));
	set_digests(l, u->header_digest, u->data_digest);
	if (u->user[0]) {
		copy_secret(&s->chap_out, u->user, u->password);
		l->chap_out = &s->chap_out;
	}
	if (u->target_user[0]) {
		copy_secret(&s->chap_in, u->target_user, u->target_password);
		l->chap_in = &s->chap_in;
	}
	l->random = io_random;
	if (u->reconnect) /* as soon as the target lets us (§13.15) */
		l->want.default_time2wait = 0;
	cfg->depth = s->depth;
	cfg->trace = &s->ctx->trace;
	cfg->logged_in = on_logged_in;
	cfg->closed = on_closed;
	cfg->async = on_async;
	cfg->rearm = on_rearm;
	cfg->arg = s;
}

/* What iSER wants to agree on: solicited data by RDMA Read, not by bursts;
 * few bytes in a PDU to us, and what LIO has buffers for in one to it. */
static void wish_rdma(struct iscsi_params *want)
{
	want->rdma_extensions = true;
	want->initial_r2t = true;
	want->first_burst_length = 8192;
	want->target_recv_dsl = 8192;
	want->initiator_recv_dsl = 4096;
}

static int on_opened(void *arg, struct dm_conn *dm)
{
	struct iser_session *s = arg;
	struct ini_config cfg;

	fill_config(s, &cfg);
	if (wants_iser(s))
		wish_rdma(&cfg.login.want);
	if (dm->rdma == DM_RDMA_ALREADY) {
		/* RFC 7145 §6.1 */
		cfg.login.header_digest_crc_ok = false;
		cfg.login.data_digest_crc_ok = false;
		cfg.login.want.max_recv_dsl = 8192;
	}
	s->ini = ini_new(&cfg, dm);
	return s->ini ? 0 : ERR_NOMEM;
}

static const struct net_conn_ops conn_ops = {
	.opened = on_opened,
	.closed = on_stream_closed,
};

static void note_rules(struct iser_session *s, unsigned rules)
{
	s->rules[0] = '\0';
	for (unsigned i = 0; dmiser_rule_name(i); i++)
		if (rules & 1u << i)
			snprintf(s->rules + strlen(s->rules),
				 sizeof(s->rules) - strlen(s->rules), "%s%s",
				 s->rules[0] ? " " : "", dmiser_rule_name(i));
}

static void fill_conn_config(struct iser_session *s,
			     struct net_conn_config *cfg)
{
	const char *compat = s->url.compat;

	net_conn_config_default(cfg, ISCSI_INITIATOR);
	cfg->start = s->rdma ? NET_START_RDMA : NET_START_STREAM;
	cfg->hold = s->url.reconnect;
	if (!strcmp(compat, "strict"))
		cfg->rules_rdma = DMISER_STRICT;
	if (!strcmp(compat, "linux"))
		cfg->rules_stream = DMISER_LINUX;
	note_rules(s, s->rdma ? cfg->rules_rdma : cfg->rules_stream);
	if (!wants_iser(s))
		cfg->allow = NET_ALLOW_TCP;
	if (!strcmp(s->url.transport, "auto"))
		cfg->mpa_time = AUTO_TIME;
	cfg->max_tasks = s->depth + 16;
	io_random(NULL, (uint8_t *)&cfg->seed, sizeof(cfg->seed));
}

static int make(struct iser_session *s, int fd)
{
	struct net_conn_config cfg;

	fill_conn_config(s, &cfg);
	s->login_answered = s->rdma_failed = false;
	s->net = net_conn_new(s->ctx->loop, fd, &cfg);
	if (!s->net)
		return ISER_E_NOMEM;
	if (net_conn_start(s->net, &conn_ops, s))
		return ISER_E_SYSTEM;
	return 0;
}

int lib_session_adopt(struct iser_session *s, struct verbs_conn *vc)
{
	struct net_conn_config cfg;

	if (s->state != SESSION_AWAY)
		s->state = SESSION_LOGIN;
	fill_conn_config(s, &cfg);
	s->login_answered = false;
	s->net = net_conn_new_verbs(s->ctx->loop, s->ctx->verbs, vc, &cfg);
	if (!s->net) {
		net_verbs_module(s->ctx->verbs)->free(vc);
		return ISER_E_NOMEM;
	}
	if (net_conn_start(s->net, &conn_ops, s)) {
		unmake(s);
		return ISER_E_NOMEM;
	}
	ini_start(s->ini, io_now(s->ctx->loop));
	return 0;
}

static void on_connected(void *arg, int fd, const char *why)
{
	struct iser_session *s = arg;
	int err;

	s->connector = NULL;
	if (fd < 0) {
		s->err = lib_fail(s->ctx, ISER_E_CONNECT, "%s", why);
		connection_over(s);
		return;
	}
	if (s->state != SESSION_AWAY)
		s->state = SESSION_LOGIN;
	lib_back_let_go(s);
	err = make(s, fd);
	if (err) {
		unmake(s);
		s->err = lib_fail(s->ctx, err, "connection to %s:%u: %s",
				  s->url.host, s->url.port, iser_strerror(err));
		connection_over(s);
		return;
	}
	ini_start(s->ini, io_now(s->ctx->loop));
}

static struct iser_session *session_new(struct iser_context *ctx,
					const struct iser_url *url)
{
	struct iser_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->url = *url;
	s->depth = url->depth ? url->depth : DEFAULT_DEPTH;
	s->timer.fire = on_timer;
	s->rearm.run = set_timer;
	list_init(&s->rearm.link);
	set_isid(ctx, s->isid);
	lib_back_init(s);
	if (lib_io_init(s)) {
		free(s);
		return NULL;
	}
	list_push_back(&ctx->sessions, &s->link);
	return s;
}

struct iser_session *
iser_connect_start(struct iser_context *ctx, const struct iser_url *url,
		   void (*done)(void *arg, struct iser_session *s, int err),
		   void *arg, int *err)
{
	struct iser_session *s = session_new(ctx, url);

	*err = 0;
	if (s) {
		s->connected = done;
		s->connected_arg = arg;
		s->rdma = strcmp(url->transport, "iscsi") != 0 &&
			  !strcmp(url->start, "rdma");
	}
	if (s && !lib_session_connect(s))
		return s;
	*err = s ? s->err : lib_fail(ctx, ISER_E_NOMEM, "out of memory");
	if (s) {
		s->state = SESSION_DOWN;
		iser_disconnect(s);
	}
	return NULL;
}

struct wait {
	bool over;
	int err;
};

static void wake(void *arg, struct iser_session *s, int err)
{
	struct wait *w = arg;

	(void)s;
	w->over = true;
	w->err = err;
}

struct iser_session *iser_connect(struct iser_context *ctx,
				  const struct iser_url *url, int *err)
{
	struct wait w = { 0 };
	struct iser_session *s = iser_connect_start(ctx, url, wake, &w, err);

	if (!s)
		return NULL;
	*err = lib_wait(ctx, &w.over);
	if (!*err)
		*err = w.err;
	if (!*err)
		return s;
	s->connected = NULL;
	iser_disconnect(s);
	return NULL;
}

void iser_disconnect(struct iser_session *s)
{
	if (!s)
		return;
	s->connected = NULL;
	if (s->connector)
		net_connect_cancel(s->connector);
	s->state = SESSION_CLOSING;
	if (s->ini)
		ini_logout(s->ini, io_now_exact());
	/* bounded: the role's logout and login times see to it */
	while (s->net && !iser_service(s->ctx, -1))
		;
	lib_back_fini(s);
	lib_io_fini(s);
	list_del(&s->link);
	free(s);
}

bool iser_is_connected(const struct iser_session *s)
{
	return s->state == SESSION_AWAY || (s->state == SESSION_UP && s->ini);
}

struct iser_context *iser_session_context(const struct iser_session *s)
{
	return s->ctx;
}

void iser_get_params(const struct iser_session *s, struct iser_params *p)
{
	const struct iscsi_params *k;

	memset(p, 0, sizeof(*p));
	p->tpgt = -1;
	p->transport = p->kind = "none";
	p->rules = "";
	if (!s->ini)
		return;
	k = ini_params(s->ini);
	p->transport = ini_transport(s->ini);
	p->kind = net_conn_kind(s->net);
	p->rules = strcmp(p->transport, "iser") ? "" : s->rules;
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
	p->tpgt = ini_tpgt(s->ini);
}

void iser_get_counters(const struct iser_session *s, struct iser_counters *c)
{
	struct net_conn_stats st = s->past_stats;

	if (s->net)
		add_stats(&st, s->net);
	*c = (struct iser_counters){ .rx_bytes = st.net.rx_bytes,
				     .tx_bytes = st.net.tx_bytes,
				     .rx_calls = st.net.rx_calls,
				     .tx_calls = st.net.tx_calls,
				     .copied_bytes = st.copied,
				     .reconnects = s->back.count };
}
