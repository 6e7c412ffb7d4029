/* SPDX-License-Identifier: BSD-2-Clause */
/* logout_answer.c: Logout Responses (RFC 7143 §11.15). */
#include "target/internal.h"

/* [RFC 7143: 11.15.2 #1] */
int tgt_logout_respond(struct tgt_conn *c, uint32_t itt,
		       enum tgt_logout_response response, uint16_t time2retain)
{
	const struct iscsi_params *p = &c->session->params;
	struct dm_control ctl = {
		.pdu = {
			.op = ISCSI_LOGOUT_RESPONSE,
			.final = true,
			.itt = itt,
			.ttt = ISCSI_RESERVED_TAG,
		},
	};

	ctl.pdu.logout.response = (uint8_t)response;
	ctl.pdu.logout.time2wait = p->default_time2wait;
	ctl.pdu.logout.time2retain = time2retain;
	return tgt_conn_send(c, &ctl);
}

/* [RFC 7143: 11.15 #1] */
void tgt_logout_answer(struct tgt_logout *l, enum tgt_logout_response response,
		       uint16_t time2retain)
{
	if (tgt_conn_open(l->by))
		tgt_logout_respond(l->by, l->itt, response, time2retain);
	l->by = NULL;
}
