/* SPDX-License-Identifier: BSD-2-Clause */
/* start.c: the defaults, the begin and the memory of a session. */
#include <stdlib.h>
#include <string.h>

#include "initiator/internal.h"

void ini_config_default(struct ini_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->login.role = ISCSI_INITIATOR;
	iscsi_params_defaults(&cfg->login.want);
	cfg->login.want.max_recv_dsl = 256u << 10;
	cfg->login.want.initial_r2t = false;
	cfg->login.want.first_burst_length = 256u << 10;
	cfg->login.want.max_burst_length = 1u << 20;
	cfg->login.want.max_outstanding_r2t = 4;
	cfg->login.want.default_time2retain = 0;
	cfg->login.want.protocol_level = 2;
	cfg->login.header_digest_none_ok = cfg->login.data_digest_none_ok =
		true;
	cfg->login.header_digest_crc_ok = cfg->login.data_digest_crc_ok = true;
	cfg->depth = 128;
	cfg->login_time = 15 * XTIME_S;
	cfg->idle_time = 5 * XTIME_S;
	cfg->ping_time = 10 * XTIME_S;
	cfg->logout_time = 5 * XTIME_S;
	cfg->query_time = 5 * XTIME_S;
}

static bool alloc_slots(struct ini_session *s)
{
	/* 16 more than commands: for pings, aborts and a logout */
	s->nslots = s->cfg.depth + 16;
	s->slots = calloc(s->nslots, sizeof(*s->slots));
	if (!s->slots)
		return false;
	for (uint32_t i = 0; i < s->nslots; i++) {
		s->slots[i].itt = i;
		s->slots[i].next_free = i + 1;
	}
	return true;
}

struct ini_session *ini_new(const struct ini_config *cfg, struct dm_conn *dm)
{
	struct ini_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cfg = *cfg;
	s->cfg.depth = MIN(MAX(cfg->depth, 1u), 4096u);
	s->tpgt = -1;
	s->logout_deadline = s->stall.deadline = XTIME_NEVER;
	list_init(&s->conns);
	list_init(&s->lost);
	list_init(&s->waiting);
	list_init(&s->sent);
	list_init(&s->requests);
	iscsi_initiator_window_init(&s->window, 1);
	if (!alloc_slots(s) || !ini_conn_make(s, dm, 0, s->cfg.login.id.cid)) {
		ini_free(s);
		return NULL;
	}
	return s;
}

void ini_free(struct ini_session *s)
{
	if (!s)
		return;
	while (!list_empty(&s->conns)) /* before ini_start */
		ini_conn_free(list_entry(s->conns.next, struct ini_conn, link));
	free(s->slots);
	free(s);
}

/* [RFC 7143: 4.2.4 #2, 11.12 #1] */
void ini_start(struct ini_session *s, xtime now)
{
	ini_conn_start(list_entry(s->conns.next, struct ini_conn, link), now);
}
