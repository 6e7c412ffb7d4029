/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recv.c: the receives of a connection: their memory, and how many are posted
 * (RFC 7145 §8.1).
 */
#include <stdlib.h>

#include "datamover/iser/internal.h"

#define LOGIN_LEN (ISER_PDU_LEN + LOGIN_DSL)
/* For immediate requests and answers to pings, which the command window does
 * not count (§8.1.1), even if MaxOutstandingUnexpectedPDUs is 0. */
#define SPARE_RECVS 16
/* How many are posted at first where the provider needs no more (rcap_qp.few_recvs):
 * those that were never posted are not memory yet. */
#define FEW_RECVS 4

void dmiser_repost(struct dmiser_conn *c, struct rcap_recv *r)
{
	/* the receive of the login is too small for the full feature phase */
	if (!c->ended && !(r == &c->recv.login && c->recv.full))
		rcap_post_recv(c->qp, r);
}

/* One receive is enough, because each Login PDU is answered before the next one
 * (RFC 7143 §6.3). A second one would take the first PDU of the full feature
 * phase. dmiser_recv_prepare posts the receives of that phase before the last
 * Login PDU is sent. */
int dmiser_recv_login(struct dmiser_conn *c)
{
	c->recv.login_mem = malloc(LOGIN_LEN);
	if (!c->recv.login_mem)
		return ERR_NOMEM;
	c->recv.login.buf = c->recv.login_mem;
	c->recv.login.cap = LOGIN_LEN;
	c->recv.login.may_lend = true;
	rcap_post_recv(c->qp, &c->recv.login);
	return 0;
}

/* The most Sends of one task that may be received at once: its command and its
 * unsolicited Data-Outs, or its response (§8.1.1.2). */
/* [RFC 7145: 8.1.1.1 #1] */
static unsigned sends_per_task(const struct dmiser_conn *c)
{
	const struct iscsi_params *k = &c->params;

	if (c->dm->role == ISCSI_INITIATOR || k->initial_r2t)
		return 1;
	return 1 +
	       (k->first_burst_length + c->max_recv_dsl - 1) / c->max_recv_dsl;
}

/* [RFC 7145: 8.1.1.3 #2, 10.1.3.1 #1] */
int dmiser_recv_prepare(struct dmiser_conn *c, const struct dm_resources *r)
{
	size_t n = (size_t)r->max_tasks * sends_per_task(c) + SPARE_RECVS;
	size_t longest = c->max_recv_dsl, bytes;

	if (c->recv.full)
		return 0;
	/* an initiator may receive a Login Response into them first */
	if (c->dm->role == ISCSI_INITIATOR && !c->full_feature)
		longest = MAX(longest, (size_t)LOGIN_DSL);
	c->recv.len = round_up4(ISER_PDU_LEN + AHS_MAX + longest);
	if (!mul_ok(n, c->recv.len, &bytes) ||
	    n > UINT32_MAX / sizeof(c->recv.full[0]) ||
	    !add_ok(bytes, n * sizeof(c->recv.full[0]), &bytes))
		return ERR_NOMEM;
	/* one block, so that it is a mapping of its own, of which only what is used is
	 * memory */
	c->recv.full = malloc(bytes);
	if (!c->recv.full)
		return ERR_NOMEM;
	c->recv.mem = (uint8_t *)&c->recv.full[n];
	c->recv.n = (unsigned)n;
	n = c->qp->few_recvs ? MIN(n, (size_t)FEW_RECVS) : n;
	while (c->recv.fresh < n)
		dmiser_recv_more(c);
	return 0;
}

void dmiser_recv_more(struct dmiser_conn *c)
{
	unsigned i = c->recv.fresh;

	if (i == c->recv.n)
		return;
	c->recv.full[i] = (struct rcap_recv){
		.buf = c->recv.mem + i * c->recv.len,
		.cap = c->recv.len,
		.may_lend = true,
	};
	c->recv.fresh++;
	rcap_post_recv(c->qp, &c->recv.full[i]);
}

void dmiser_recv_free(struct dmiser_conn *c)
{
	free(c->recv.full);
	c->recv.full = NULL;
	c->recv.mem = NULL;
	c->recv.n = c->recv.fresh = 0;
}
