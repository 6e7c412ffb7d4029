/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hello.c: the exchange of iSER Hello and HelloReply (RFC 7145 §5.1.3).
 */
#include "datamover/iser/internal.h"

/* [RFC 7145: 9.3 #1-4, 9.4 #1] */
static int send_hello(struct dmiser_conn *c, uint8_t opcode, uint16_t depth,
		      bool reject)
{
	const struct iser_header h = { .opcode = opcode,
				       .reject = reject,
				       .max_ver = ISER_PROTO_VERSION,
				       .min_ver = ISER_PROTO_VERSION,
				       .depth = depth };
	struct iser_msg *m = dmiser_msg_new(c, ISER_HEADER_LEN);
	struct rcap_wr *wr;

	if (!m)
		return ERR_NOMEM;
	iser_header_encode(&h, m->iov[0].iov_base);
	m->iov[0].iov_len = m->wr.data.len = ISER_HEADER_LEN;
	wr = &m->wr;
	if (rcap_post(c->qp, &wr, 1)) {
		dmiser_msg_free(c, m);
		return ERR_CLOSED;
	}
	return 0;
}

/* [RFC 7145: 5.1.1 #2, 5.1.3 #1] */
void dmiser_hello_begin(struct dmiser_conn *c)
{
	c->ird = MIN(c->qp->ird, c->cfg.ird);
	if (send_hello(c, ISER_HELLO, c->ird, false))
		dmiser_fail_conn(c, ERR_NOMEM, "iSER Hello");
}

/* [RFC 7145: 5.1.2 #9, 5.1.3 #5, 10.1.3.2 #1-2] */
static void take_hello(struct dmiser_conn *c, const struct iser_header *h)
{
	bool overlap = h->min_ver <= ISER_PROTO_VERSION &&
		       h->max_ver >= ISER_PROTO_VERSION;
	bool reject = !overlap || (h->depth > 0 && c->ord == 0);

	c->ord = MIN(c->ord, h->depth);
	c->hello = HELLO_DONE;
	if (send_hello(c, ISER_HELLO_REPLY, c->ord, reject)) {
		dmiser_fail_conn(c, ERR_NOMEM, "iSER HelloReply");
		return;
	}
	if (reject) /* the reply has to be sent first */
		dmiser_fail_conn_after_sent(
			c, ERR_NEGOTIATION,
			"iSER version or iSER-IRD in the Hello not "
			"supported (RFC 7145 §10.1.3.2)");
	dmiser_send_waiting(c);
}

static void take_hello_reply(struct dmiser_conn *c, const struct iser_header *h)
{
	if (h->reject || h->min_ver != ISER_PROTO_VERSION) {
		dmiser_fail_conn(c, ERR_NEGOTIATION,
				 "HelloReply rejects the connection (RFC 7145 "
				 "§10.1.3.2)");
		return;
	}
	if (h->depth > c->ird) {
		dmiser_fail_conn(
			c, ERR_FORMAT,
			"iSER-ORD in the HelloReply exceeds iSER-IRD (RFC "
			"7145 §5.1.3)");
		return;
	}
	c->hello = HELLO_DONE;
	dmiser_send_waiting(c);
}

/* Whether this message of the exchange is allowed: once, and before all others.
 * A target also takes a Hello of an initiator that did not declare the key (§5.1.3, last
 * paragraph). */
/* [RFC 7145: 5.1.2 #10, 5.1.3 #4 #6] */
static bool may_receive_hello(const struct dmiser_conn *c, uint8_t opcode)
{
	if (c->dm->role == ISCSI_INITIATOR)
		return opcode == ISER_HELLO_REPLY && c->hello == HELLO_AWAIT;
	/* §6.10: after iSERHelloRequired=No there MUST NOT be an exchange */
	if (iscsi_params_declared(&c->params, ISCSI_K_HELLO_REQUIRED) &&
	    !c->params.iser_hello_required)
		return false;
	return opcode == ISER_HELLO && c->hello != HELLO_DONE &&
	       !c->has_received && c->full_feature;
}

/* [RFC 7145: 10.1.3.4 #1-2] */
void dmiser_hello_received(struct dmiser_conn *c, const struct iser_header *h,
			   size_t len)
{
	if (!may_receive_hello(c, h->opcode))
		dmiser_fail_conn(
			c, ERR_PROTOCOL,
			h->opcode == ISER_CONTROL
				? "iSER Hello missing (RFC 7145 §10.1.3.4)"
				: "unexpected iSER Hello or HelloReply "
				  "(RFC 7145 §10.1.3.4)");
	else if (len != ISER_HEADER_LEN)
		dmiser_fail_conn(
			c, ERR_FORMAT,
			"data after an iSER Hello or HelloReply (RFC 7145 "
			"§10.1.3.3)");
	else if (h->opcode == ISER_HELLO)
		take_hello(c, h);
	else
		take_hello_reply(c, h);
}
