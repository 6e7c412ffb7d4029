/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * negotiate.c: a negotiation in the full feature phase that the target asks for by
 * an Asynchronous Message (RFC 7143 §11.9.1). The initiator sends an empty Text
 * Request, and answers the keys of each Text Response (§6.4).
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "initiator/internal.h"
#include "iscsi/keys.h"
#include "iscsi/text.h"

#define ROUNDS_MAX  16
#define PARTS_MAX   8192 /* §6.1: no more has to be accepted */
#define ANSWER_TIME (30 * XTIME_S)

static void answered(struct ini_request *r, int err,
		     const struct dm_control *rsp);

static int send_text(struct ini_conn *c, const char *text, size_t len,
		     const struct iscsi_pdu *last)
{
	c->negotiation.done = answered;
	return ini_conn_text(c, &c->negotiation, text, len, last,
			     c->session->now + ANSWER_TIME);
}

/* ---- a response in several PDUs (§6.2) ---- */

/* Appends the text of a PDU to those before it. */
static int add_part(struct ini_conn *c, const struct dm_control *rsp)
{
	struct ini_text_parts *p = &c->parts;

	if (rsp->pdu.final && rsp->pdu.cont)
		return ERR_FORMAT; /* §11.11.2 */
	if (rsp->pdu.dsl > PARTS_MAX - p->len)
		return ERR_TOO_LONG;
	if (!p->text)
		p->text = malloc(PARTS_MAX);
	if (!p->text)
		return ERR_NOMEM;
	if (rsp->pdu.dsl)
		memcpy(p->text + p->len, rsp->data, rsp->pdu.dsl);
	p->len += rsp->pdu.dsl;
	return 0;
}

static void free_parts(struct ini_conn *c)
{
	free(c->parts.text);
	c->parts = (struct ini_text_parts){ 0 };
}

/* ---- keys ---- */

/* §6.2: the keys of one response take effect together, or none does. */
/* [RFC 7143: 7.12 #3-5] */
static int take_keys(struct ini_conn *c, struct iscsi_text_out *out)
{
	struct iscsi_text_iter it =
		iscsi_text_iter(c->parts.text, c->parts.len);
	char key[ISCSI_KEY_NAME_MAX + 1];
	struct iscsi_negotiation n;
	const char *value;
	int r;

	iscsi_negotiation_init(&n, ISCSI_INITIATOR, &c->params);
	n.result = c->params;
	while ((r = iscsi_text_next(&it, key, &value)) > 0) {
		int err = iscsi_negotiation_key(&n, ISCSI_KEY_FFP, key, value,
						out);

		if (err)
			return err;
	}
	if (r || out->overflow)
		return ERR_FORMAT;
	if (n.result.max_send_dsl != c->params.max_send_dsl) {
		c->params.max_send_dsl = n.result.max_send_dsl;
		dm_notice_key_values(c->dm, &c->params);
	}
	return 0;
}

/* §6.4: the initiator ends a negotiation that fails; the values stay as they were
 * (§7.12). The next request of the target begins a new one. */
/* [RFC 7143: 6.4 #5] */
static void answered(struct ini_request *r, int err,
		     const struct dm_control *rsp)
{
	struct ini_conn *c = container_of(r, struct ini_conn, negotiation);
	char text[1024];
	struct iscsi_text_out out = { .buf = text, .max = sizeof(text) };
	bool goes_on;

	if (!err)
		err = add_part(c, rsp);
	if (!err && !rsp->pdu.cont)
		err = take_keys(c, &out);
	goes_on = !err && !rsp->pdu.final && ++c->rounds < ROUNDS_MAX;
	if (goes_on)
		err = send_text(c, text, out.len, &rsp->pdu);
	if (err || !goes_on || !rsp->pdu.cont)
		free_parts(c);
	if (err)
		trace_emit(c->session->cfg.trace, TRACE_PROTOCOL,
			   "the negotiation that the target asked for failed: "
			   "%s",
			   err_str(err));
}

/* [RFC 7143: 11.9.1 #4] */
void ini_negotiate(struct ini_conn *c)
{
	if (ini_text_is_pending(c))
		return;
	c->rounds = 0;
	/* an error: the target may ask again, or a logout is on its way */
	(void)send_text(c, NULL, 0, NULL);
}
