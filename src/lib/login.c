/* SPDX-License-Identifier: BSD-2-Clause */
/* login.c: what the login of a session offers, and the reasons of its failures. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "datamover/iser/dmiser.h"
#include "iscsi/keys.h"
#include "lib/internal.h"

#define AUTO_TIME (2 * XTIME_S) /* transport=auto: for the MPA Reply */

static bool wants_iser(const struct iser_session *s)
{
	return s->login.way != LIB_ISCSI;
}

/* ---- failures ---- */

/* Returns whether err is how a connection ends if the peer does not understand
 * or allow its first bytes. */
static bool is_no(int err)
{
	return err == ERR_CLOSED || err == ERR_RESET || err == ERR_TIMEOUT ||
	       err == ERR_DENIED || err == ERR_FORMAT;
}

/* Returns what the administrator may change after a failure without a useful
 * reason. */
static const char *login_hint(const struct iser_session *s, uint16_t status,
			      int err)
{
	bool rdma = s->login.way == LIB_RDMA;

	if (status == ISCSI_LOGIN_AUTH_FAILURE && !s->url.user[0])
		return "; the target wants CHAP: put USER%PASSWORD@ before the "
		       "host in the URL, or LIBISCSI_CHAP_USERNAME and "
		       "LIBISCSI_CHAP_PASSWORD in the environment";
	/* LIO before Linux 3.15, for example in storage of that time */
	if (status && ini_failure(s->ini)->at_algorithms && !s->url.auth[0])
		return "; the target may know the algorithm MD5 alone: try "
		       "auth=md5";
	if (status ? status != ISCSI_LOGIN_INITIATOR_ERROR : !is_no(err))
		return "";
	/* silence does not mean that the target wants iSER */
	if (err == ERR_TIMEOUT && !wants_iser(s))
		return "";
	if (!status && rdma)
		return "; the target may not accept RDMA from the start: try "
		       "start=stream or transport=auto";
	if (!status && wants_iser(s))
		return "; the target may not support iSER after a login over "
		       "TCP: try start=rdma";
	return wants_iser(s) ? ""
			     : "; the target may require iSER: try "
			       "transport=iser";
}

int lib_login_failed(struct iser_session *s, int err)
{
	const struct iscsi_login_failure *f = ini_failure(s->ini);
	const char *what = f->text[0] ? f->text : err_str(err);
	int e = lib_error(err);

	s->login.answered = f->status != 0 || !is_no(err);
	if (f->status == ISCSI_LOGIN_AUTH_FAILURE)
		e = ISER_E_AUTH;
	else if (f->status == ISCSI_LOGIN_NOT_FOUND)
		e = ISER_E_NOT_FOUND;
	else if (f->status)
		e = ISER_E_LOGIN;
	return lib_fail(s->ctx, e, "login to %s at %s:%u failed: %s%s",
			s->url.target[0] ? s->url.target : "discovery",
			s->url.host, s->url.port, what,
			login_hint(s, f->status, err));
}

/* RFC 7145 §6.3: iSER-assisted mode MUST NOT be used if the target answers
 * RDMAExtensions=No. tgt does not answer the key, which is not No. */
static bool rdma_was_refused(const struct iser_session *s)
{
	const struct iscsi_params *p = ini_params(s->ini);

	return s->login.way == LIB_RDMA && s->url.target[0] &&
	       !p->rdma_extensions &&
	       iscsi_params_declared(p, ISCSI_K_RDMA_EXTENSIONS);
}

bool lib_login_check_transport(struct iser_session *s)
{
	if (rdma_was_refused(s)) {
		s->err =
			lib_fail(s->ctx, ISER_E_LOGIN,
				 "%s at %s:%u answers RDMAExtensions=No on a "
				 "connection in RDMA mode (RFC 7145 §6.3); use "
				 "transport=tcp",
				 s->url.target, s->url.host, s->url.port);
		return false;
	}
	if (strcmp(s->url.transport, "iser") != 0 || s->login.way == LIB_RDMA ||
	    ini_params(s->ini)->rdma_extensions || !s->url.target[0])
		return true;
	s->err = lib_fail(s->ctx, ISER_E_LOGIN,
			  "%s at %s:%u answers RDMAExtensions=No: no iSER "
			  "after a login over TCP; try start=rdma or "
			  "transport=auto",
			  s->url.target, s->url.host, s->url.port);
	return false;
}

bool lib_login_without_sha256(struct iser_session *s)
{
	struct lib_login *l = &s->login;

	if (!l->refused_sha256 || l->misreads_sha256 || s->url.auth[0] ||
	    (s->state != SESSION_LOGIN && s->state != SESSION_AWAY))
		return false;
	l->misreads_sha256 = true;
	s->err = 0;
	trace_emit(&s->ctx->trace, TRACE_LOGIN,
		   "%s at %s:%u refused a CHAP response by SHA-256 as an "
		   "initiator error; offering the other algorithms",
		   s->url.target[0] ? s->url.target : "discovery", s->url.host,
		   s->url.port);
	if (s->state == SESSION_LOGIN)
		lib_session_go(s, SESSION_CONNECTING);
	return true;
}

bool lib_login_fall_back(struct iser_session *s)
{
	struct lib_login *l = &s->login;

	if (strcmp(s->url.transport, "auto") != 0 ||
	    s->state != SESSION_LOGIN || l->answered || l->way == LIB_ISCSI)
		return false;
	if (l->way == LIB_STREAM && !l->rdma_failed)
		return false;
	l->way = l->way == LIB_RDMA ? LIB_STREAM : LIB_ISCSI;
	s->err = 0;
	lib_session_go(s, SESSION_CONNECTING);
	return true;
}

/* ---- offers ---- */

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
	/* the role has one order for both keys */
	l->prefer_digests = header[0] == 'c' || data[0] == 'c';
}

/* An ISID of type "random" (RFC 7143 §11.12.5, 10b), another one for each session
 * of a context. */
static void set_isid(struct iser_context *ctx, uint8_t isid[6])
{
	uint32_t n = ctx->next_isid++;

	isid[0] = 0x80;
	put_be24(isid + 1, (uint32_t)getpid() & 0xffffff);
	put_be16(isid + 4, (uint16_t)n);
	isid[0] |= (uint8_t)(n >> 16) & 0x3f;
}

void lib_login_init(struct iser_session *s)
{
	set_isid(s->ctx, s->login.isid);
	if (!strcmp(s->url.transport, "tcp"))
		s->login.way = LIB_ISCSI;
	else
		s->login.way =
			strcmp(s->url.start, "rdma") ? LIB_STREAM : LIB_RDMA;
}

/* What iSER asks for: solicited data by RDMA Read instead of R2T bursts, short
 * PDUs to this side, and PDUs to the target for which LIO has buffers. */
static void want_rdma(struct iscsi_params *want, unsigned rules, bool hello)
{
	want->rdma_extensions = true;
	want->initial_r2t = true;
	want->first_burst_length = 8192;
	want->target_recv_dsl = 8192;
	want->initiator_recv_dsl = 4096;
	want->tagged_buffer_for_solicited_data_only =
		rules & DMISER_SOLICITED_VA;
	want->iser_hello_required = hello;
}

/* §13.19: with an ErrorRecoveryLevel, MaxOutstandingR2T is 1 unless data sequences
 * may have any order. */
static void want_order(struct iscsi_params *want, const struct iser_url *u)
{
	want->data_pdu_in_order = !u->data_pdu_in_any_order;
	want->data_sequence_in_order = !u->data_sequence_in_any_order;
	if (u->max_outstanding_r2t)
		want->max_outstanding_r2t = (uint16_t)u->max_outstanding_r2t;
	if (want->error_recovery_level && want->data_sequence_in_order)
		want->max_outstanding_r2t = 1;
}

/* FirstBurstLength must not exceed MaxBurstLength (§13.14). */
static void want_data(struct iscsi_params *want, const struct iser_url *u)
{
	if (u->initial_r2t)
		want->initial_r2t = u->initial_r2t == ISER_YES;
	if (u->immediate_data)
		want->immediate_data = u->immediate_data == ISER_YES;
	if (u->max_burst_length)
		want->max_burst_length = u->max_burst_length;
	if (u->first_burst_length)
		want->first_burst_length = u->first_burst_length;
	want->first_burst_length =
		MIN(want->first_burst_length, want->max_burst_length);
	if (u->max_recv_data_segment_length)
		want->max_recv_dsl = u->max_recv_data_segment_length;
}

/* At ErrorRecoveryLevel 2 the target keeps the tasks of a lost connection for
 * DefaultTime2Retain; at 0 there is nothing to keep. */
static void want_recovery(struct iscsi_params *want, unsigned level)
{
	want->error_recovery_level = (uint8_t)level;
	if (level == 2)
		want->default_time2retain = 20; /* the standard's default */
}

/* Commands of several connections need the order of the Response Fence. */
static void want_reporting(struct iscsi_params *want, const struct iser_url *u)
{
	if (u->task_reporting)
		want->task_reporting = (uint8_t)(u->task_reporting - 1);
	else if (u->connections > 1)
		want->task_reporting = ISCSI_FAST_ABORT;
}

static void fill_chap(struct iser_session *s, struct iscsi_login_config *l)
{
	const struct iser_url *u = &s->url;

	if (u->user[0]) {
		copy_secret(&s->login.chap_out, u->user, u->password);
		l->chap_out = &s->login.chap_out;
	}
	if (u->target_user[0]) {
		copy_secret(&s->login.chap_in, u->target_user,
			    u->target_password);
		l->chap_in = &s->login.chap_in;
	}
	if (chap_list(u->auth, s->login.algorithms))
		l->chap_algorithms = s->login.algorithms;
	else if (s->login.misreads_sha256)
		l->chap_algorithms = CHAP_OFFER_NO_SHA256;
}

static void set_time(xtime *t, unsigned seconds)
{
	if (seconds)
		*t = seconds == ISER_NO_TIME ? XTIME_NEVER : seconds * XTIME_S;
}

static void fill_times(const struct iser_url *u, struct ini_config *cfg)
{
	set_time(&cfg->login_time, u->login_timeout);
	set_time(&cfg->logout_time, u->logout_timeout);
	set_time(&cfg->idle_time, u->noop_out_interval);
	set_time(&cfg->ping_time, u->noop_out_timeout);
}

/* [RFC 7143: 7.15 #1] */
void lib_login_fill(struct iser_session *s, struct ini_config *cfg,
		    const struct dm_conn *dm)
{
	const struct iser_url *u = &s->url;
	struct iscsi_login_config *l = &cfg->login;

	ini_config_default(cfg);
	fill_times(u, cfg);
	l->id.discovery = u->target[0] == '\0';
	snprintf(l->id.initiator_name, sizeof(l->id.initiator_name), "%s",
		 u->initiator[0] ? u->initiator : s->ctx->initiator);
	snprintf(l->id.target_name, sizeof(l->id.target_name), "%s", u->target);
	memcpy(l->id.isid, s->login.isid, sizeof(s->login.isid));
	set_digests(l, u->header_digest, u->data_digest);
	fill_chap(s, l);
	l->random = io_random;
	l->reinstates = s->login.reinstates || s->state == SESSION_AWAY;
	l->want.max_connections = (uint16_t)MAX(u->connections, 1u);
	want_recovery(&l->want, u->error_recovery_level);
	want_order(&l->want, u);
	want_data(&l->want, u);
	want_reporting(&l->want, u);
	/* the target chooses the shortest wait (§13.15) */
	if (lib_login_recovers(s))
		l->want.default_time2wait = 0;
	if (wants_iser(s))
		want_rdma(&l->want, s->login.iser_rules, s->url.iser_hello);
	if (dm->rdma == DM_RDMA_ALREADY) {
		/* RFC 7145 §6.1 */
		l->header_digest_crc_ok = false;
		l->data_digest_crc_ok = false;
		l->want.max_recv_dsl = 8192;
	}
	/* a path of several has others, which take its commands over */
	cfg->continues = s->url.reconnect && !s->member.ops;
	cfg->depth = s->commands.depth + 1; /* lib_io_ask */
	cfg->trace = &s->ctx->trace;
}

static void note_rules(struct lib_login *l, unsigned rules)
{
	l->iser_rules = rules;
	l->rules[0] = '\0';
	for (unsigned i = 0; dmiser_rule_name(i); i++)
		if (rules & 1u << i)
			snprintf(l->rules + strlen(l->rules),
				 sizeof(l->rules) - strlen(l->rules), "%s%s",
				 l->rules[0] ? " " : "", dmiser_rule_name(i));
}

void lib_login_fill_conn(struct iser_session *s, struct net_conn_config *cfg)
{
	const char *compat = s->url.compat;
	bool rdma = s->login.way == LIB_RDMA;

	net_conn_config_default(cfg, ISCSI_INITIATOR);
	cfg->start = rdma ? NET_START_RDMA : NET_START_STREAM;
	cfg->hold = lib_login_recovers(s);
	if (!strcmp(compat, "strict"))
		cfg->rules_rdma = DMISER_STRICT;
	if (!strcmp(compat, "linux"))
		cfg->rules_stream = DMISER_LINUX;
	note_rules(&s->login, rdma ? cfg->rules_rdma : cfg->rules_stream);
	if (!wants_iser(s))
		cfg->allow = NET_ALLOW_TCP;
	if (!strcmp(s->url.transport, "auto"))
		cfg->mpa_time = AUTO_TIME;
	cfg->crc = !s->url.no_mpa_crc;
	cfg->max_tasks = s->commands.depth + 16;
	io_random(NULL, (uint8_t *)&cfg->seed, sizeof(cfg->seed));
}
