/* SPDX-License-Identifier: BSD-2-Clause */
/* startup.c: MPA Request and Reply (RFC 5044 §7.1, RFC 6581), and the rules for
 * the first FPDU. */
#include <string.h>

#include "rcap/iwarp/internal.h"

static void await_peer(struct iwarp *c, enum iwarp_phase phase)
{
	c->deadline = c->now + c->cfg.startup_timeout;
	iwarp_go(c, phase);
}

static void encode_frame(struct iwarp *c, const struct mpa_frame *f)
{
	/* never fails: callers have checked the length of private data */
	c->frame_len = (size_t)mpa_frame_encode(f, c->frame);
	c->frame_sent = 0;
	iwarp_kick(c);
}

void iwarp_startup_begin(struct iwarp *c)
{
	c->qp.send_inv = true; /* the user's private data may announce it */
	const struct mpa_wish *w = &c->cfg.wish;

	if (!c->cfg.active) {
		iwarp_go(c, PHASE_REQUEST_WAIT);
		return;
	}
	c->request = (struct mpa_frame){
		.markers = w->want_markers,
		.crc = w->want_crc,
		.revision = c->cfg.revision,
		.enhanced = c->cfg.revision >= 2,
		.peer_to_peer = c->cfg.revision >= 2 && c->cfg.peer_to_peer,
		.rtr = c->cfg.peer_to_peer ? w->rtr : 0,
		.ird = w->ird,
		.ord = w->ord,
		.private_data = c->private_data,
		.private_len = c->cfg.private_len,
	};
	encode_frame(c, &c->request);
	iwarp_go(c, PHASE_REQUEST_OUT);
}

/* ---- the result ---- */

static void apply_terms(struct iwarp *c)
{
	c->rx.s = (struct mpa_stream){ .markers = c->terms.markers_in,
				       .crc = c->terms.crc };
	c->tx.s = (struct mpa_stream){ .markers = c->terms.markers_out,
				       .crc = c->terms.crc };
	c->qp.ird = c->terms.ird;
	c->qp.ord = c->terms.ord;
	c->qp.extended = c->cfg.extended;
}

static void establish(struct iwarp *c, const struct mpa_frame *f)
{
	const struct rcap_cm peer = { .ird = c->terms.ird,
				      .ord = c->terms.ord,
				      .private_data = f->private_data,
				      .private_len = f->private_len };

	c->deadline = XTIME_NEVER;
	c->qp.state = RCAP_ESTABLISHED;
	iwarp_go(c, PHASE_FULL);
	c->qp.user->established(c->qp.arg, &peer);
	iwarp_kick(c);
}

/* ---- passive ---- */

static void take_request(struct iwarp *c, const struct mpa_frame *f)
{
	struct mpa_frame reply;
	struct rcap_cm peer;

	if (f->is_reply) {
		iwarp_die(c, ERR_PROTOCOL,
			  "MPA Reply where a Request is due "
			  "(RFC 5044 §7.1.1)");
		return;
	}
	/* except its private data, which are valid in this call only */
	c->request = *f;
	mpa_answer(f, &c->cfg.wish, &reply, &c->terms);
	peer = (struct rcap_cm){ .ird = c->terms.ird,
				 .ord = c->terms.ord,
				 .private_data = f->private_data,
				 .private_len = f->private_len };
	c->deadline = XTIME_NEVER;
	c->qp.state = RCAP_REQUESTED;
	iwarp_go(c, PHASE_ULP);
	c->qp.user->connect_request(c->qp.arg, &peer);
}

static void send_reply(struct iwarp *c, const struct rcap_cm *cm, bool reject)
{
	struct mpa_wish wish = c->cfg.wish;
	struct mpa_frame reply;

	wish.ird = MIN(wish.ird, cm->ird);
	wish.ord = MIN(wish.ord, cm->ord);
	mpa_answer(&c->request, &wish, &reply, &c->terms);
	reply.reject |= reject;
	reply.private_data = cm->private_data;
	reply.private_len = cm->private_len;
	encode_frame(c, &reply);
	await_peer(c, PHASE_REPLY_OUT);
	if (reply.reject)
		iwarp_die(c, ERR_DENIED,
			  reject ? "rejected the connection"
				 : "no common Ready To Receive (RFC 6581 §9)");
}

int iwarp_startup_accept(struct iwarp *c, const struct rcap_cm *cm)
{
	if (c->phase != PHASE_ULP)
		return ERR_WRONG_STATE; /* already answered */
	send_reply(c, cm, false);
	apply_terms(c);
	return 0;
}

int iwarp_startup_reject(struct iwarp *c, const struct rcap_cm *cm)
{
	if (c->phase != PHASE_ULP)
		return ERR_WRONG_STATE;
	send_reply(c, cm, true);
	return 0;
}

void iwarp_startup_first(struct iwarp *c)
{
	const struct mpa_frame none = { 0 };

	if (c->phase == PHASE_FIRST_WAIT)
		establish(c, &none);
}

/* ---- active ---- */

/* RFC 5044 §7.1.2 (6), RFC 6581 §9.1: the user gets the private data of a
 * rejection. */
static void keep_rejection(struct iwarp *c, const struct mpa_frame *f)
{
	if (f->private_len)
		memcpy(c->private_data, f->private_data, f->private_len);
	c->rejection = (struct rcap_cm){ .ird = f->ird,
					 .ord = f->ord,
					 .private_data = c->private_data,
					 .private_len = f->private_len };
	c->qp.rejection = &c->rejection;
}

static void take_reply(struct iwarp *c, const struct mpa_frame *f)
{
	int err = mpa_accept(&c->request, f, &c->terms);

	if (err == ERR_DENIED) {
		keep_rejection(c, f);
		iwarp_die(c, err, "the peer rejected the RDMA connection");
		return;
	}
	if (err == ERR_LIMIT || err == ERR_UNSUPPORTED) {
		/* RFC 6581 §§9.1, 9.2: a Terminate names the reason */
		apply_terms(c);
		iwarp_refuse(c, err == ERR_LIMIT ? TERM_MPA_IRD : TERM_MPA_RTR,
			     err);
		return;
	}
	if (err) {
		iwarp_die(c, err, "unusable MPA Reply: %s (RFC 6581 §9)",
			  err_str(err));
		return;
	}
	apply_terms(c);
	c->tx.rtr_wanted = c->terms.peer_to_peer && c->terms.rtr;
	establish(c, f);
}

/* ---- octets ---- */

void iwarp_startup_input(struct iwarp *c)
{
	struct iwarp_rx *rx = &c->rx;
	struct mpa_frame f;
	int n;

	if (c->phase != PHASE_REQUEST_WAIT && c->phase != PHASE_REPLY_WAIT)
		return;
	n = mpa_frame_decode(&f, rx->ahead.buf + rx->ahead.at,
			     rx->ahead.end - rx->ahead.at);
	if (n == 0)
		return;
	if (n < 0) {
		iwarp_die(c, n, "not a usable MPA frame: %s (RFC 5044 §7.1.1)",
			  err_str(n));
		return;
	}
	rx->ahead.at += (size_t)n;
	if (c->cfg.active)
		take_reply(c, &f);
	else
		take_request(c, &f);
}

unsigned iwarp_startup_tx(struct iwarp *c, struct iovec *iov)
{
	if (c->frame_sent == c->frame_len)
		return 0;
	iov->iov_base = c->frame + c->frame_sent;
	iov->iov_len = c->frame_len - c->frame_sent;
	return 1;
}

void iwarp_startup_sent(struct iwarp *c, size_t n)
{
	c->frame_sent += n;
	if (c->frame_sent < c->frame_len)
		return;
	if (c->phase == PHASE_REQUEST_OUT)
		await_peer(c, PHASE_REPLY_WAIT);
	else if (c->phase == PHASE_REPLY_OUT)
		await_peer(c, PHASE_FIRST_WAIT);
}
