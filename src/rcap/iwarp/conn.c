/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: a software iWARP connection: the object, the calls of its driver, the
 * table of its provider. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sane.h"
#include "rcap/iwarp/internal.h"
#include "rcap/iwarp/tx.h"

void iwarp_config_default(struct iwarp_config *cfg, bool active)
{
	*cfg = (struct iwarp_config){
		.active = active,
		.wish = { .want_crc = true,
			  .ird = 32,
			  .ord = 32,
			  .rtr = MPA_RTR_WRITE | MPA_RTR_READ },
		.revision = 2,
		.lookahead = 64u << 10,
		.max_regions = 4096,
		.startup_timeout = 10 * XTIME_S,
	};
}

/* ---- the provider's table ---- */

static struct iwarp *iwarp_of(struct rcap_qp *qp)
{
	return container_of(qp, struct iwarp, qp);
}

static int accept_qp(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	return iwarp_startup_accept(iwarp_of(qp), cm);
}

static int reject_qp(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	return iwarp_startup_reject(iwarp_of(qp), cm);
}

static int reg_memory(struct rcap_qp *qp, const struct bufv *memory,
		      uint64_t base, unsigned rights, struct rcap_mr *mr)
{
	struct iwarp *c = iwarp_of(qp);
	unsigned r = (rights & RCAP_REMOTE_READ ? MR_REMOTE_READ : 0) |
		     (rights & RCAP_REMOTE_WRITE ? MR_REMOTE_WRITE : 0) |
		     (rights & RCAP_REMOTE_ATOMIC ? MR_REMOTE_ATOMIC : 0) |
		     (rights & RCAP_UNDEFINED ? MR_UNDEFINED : 0);

	*mr = (struct rcap_mr){ .base = base, .len = memory->len };
	return mr_register(c->mrs, c, memory, base, r, &mr->stag);
}

static void invalidate_region(struct rcap_qp *qp, struct rcap_mr *mr)
{
	struct iwarp *c = iwarp_of(qp);
	const struct bufv *memory = mr_memory(c->mrs, c, mr->stag);

	if (!memory)
		return; /* the peer has invalidated the region */
	if (iwarp_tx_detach(c, memory)) {
		/* the bytes of the region must not be sent any more */
		iwarp_tx_reset(c);
		iwarp_die(c, ERR_NOMEM, "no memory to take a region back");
	}
	mr_invalidate(c->mrs, mr->stag);
	if (!list_empty(&c->sq))
		iwarp_kick(c); /* a Read may wait for a free region */
}

/* Distinguishes a slow peer from one that makes no progress. */
static uint64_t octets_moved(const struct iwarp *c)
{
	return c->stats.tx_bytes + c->stats.rx_payload;
}

static void disconnect_qp(struct rcap_qp *qp, xtime grace)
{
	struct iwarp *c = iwarp_of(qp);

	if (qp->state != RCAP_ESTABLISHED) {
		iwarp_die(c, ERR_CLOSED, "closed during start-up");
		return;
	}
	qp->state = RCAP_CLOSING;
	c->closing.peer_first = grace > 0;
	c->deadline = c->now + (grace ? grace : IWARP_CLOSING_MAX);
	c->closing.mark = octets_moved(c);
	iwarp_kick(c);
}

static void terminate_qp(struct rcap_qp *qp, int err, const char *why)
{
	iwarp_terminate(iwarp_of(qp), err, why);
}

static void iwarp_rest(struct rcap_qp *qp)
{
	struct iwarp *c = container_of(qp, struct iwarp, qp);

	c->rx.ahead.rests =
		true; /* the driver may be receiving at this moment */
}

static const struct rcap_ops iwarp_qp_ops = {
	.accept = accept_qp,
	.reject = reject_qp,
	.post = iwarp_post,
	.post_recv = iwarp_post_recv,
	.reg = reg_memory,
	.invalidate = invalidate_region,
	.disconnect = disconnect_qp,
	.terminate = terminate_qp,
	.rest = iwarp_rest,
};

/* ---- the driver's calls ---- */

static void consume_octets(struct iwarp *c)
{
	iwarp_startup_input(c);
	if (iwarp_is_full(c))
		iwarp_rx_consume(c);
}

/* Replaces the buffers by new ones, of which most is not memory yet. */
static void renew_buffers(struct iwarp *c)
{
	uint8_t *buf;

	c->rx.ahead.rests = false;
	if (!iwarp_tx_idle(c) || c->rx.ahead.at != c->rx.ahead.end)
		return;
	free(c->tx.copies);
	c->tx.copies = NULL;
	buf = malloc(c->rx.ahead.cap + TX_ARENA);
	if (!buf)
		return;
	free(c->rx.ahead.buf);
	c->rx.ahead.buf = buf;
	c->rx.ahead.at = c->rx.ahead.end = 0;
	c->tx.arena = buf + c->rx.ahead.cap;
}

static unsigned rx_where(void *core, struct iovec *iov, unsigned max)
{
	struct iwarp *c = core;

	if (c->rx.is_spent) { /* in an earlier turn */
		c->rx.is_spent = false;
		consume_octets(c);
		if (c->rx.is_spent)
			return 0;
	}
	if (c->rx.ahead.rests)
		renew_buffers(c);
	return iwarp_rx_where(c, iov, max);
}

static void rx_done(void *core, size_t n, xtime now)
{
	struct iwarp *c = core;

	c->now = now;
	iwarp_rx_done(c, n);
	consume_octets(c);
	ASSERT_SANE(iwarp_is_sane(c));
}

static unsigned tx_what(void *core, struct iovec *iov, unsigned max)
{
	struct iwarp *c = core;
	unsigned n;

	if (c->rx.ahead.at < c->rx.ahead.end && !c->first_taken) {
		c->first_taken = true; /* the octets given to iwarp_new */
		consume_octets(c);
	}
	n = iwarp_startup_tx(c, iov);
	return n ? n : iwarp_tx_what(c, iov, max);
}

static void tx_done(void *core, size_t n, xtime now)
{
	struct iwarp *c = core;

	c->now = now;
	if (c->frame_sent < c->frame_len) {
		c->stats.tx_bytes += n;
		iwarp_startup_sent(c, n);
		/* octets that came early have waited in the look-ahead */
		consume_octets(c);
	} else {
		iwarp_tx_done(c, n);
	}
	ASSERT_SANE(iwarp_is_sane(c));
}

static const char *waited_for(const struct iwarp *c)
{
	switch (c->phase) {
	case PHASE_REQUEST_OUT:
		return "the MPA Request could not be sent in time";
	case PHASE_REPLY_WAIT:
		return "no MPA Reply came in time";
	case PHASE_REQUEST_WAIT:
		return "no MPA Request came in time";
	case PHASE_REPLY_OUT:
		return "the MPA Reply could not be sent in time";
	case PHASE_FIRST_WAIT:
		return "no FPDU came after the MPA Reply";
	default:
		return c->reads_n ? "the peer left Reads unanswered"
				  : "the peer takes no more octets";
	}
}

static void expire_deadline(void *core, xtime now)
{
	struct iwarp *c = core;

	c->now = now;
	if (now < c->deadline)
		return;
	if (c->phase == PHASE_FULL && c->closing.peer_first) {
		/* fate_of: now this end closes */
		c->closing.peer_first = false;
		c->deadline = now + IWARP_CLOSING_MAX;
		return;
	}
	if (c->phase == PHASE_FULL && c->closing.mark != octets_moved(c)) {
		c->closing.mark = octets_moved(c);
		c->deadline = now + IWARP_CLOSING_MAX;
		return;
	}
	c->deadline = XTIME_NEVER;
	iwarp_die(c, ERR_TIMEOUT, "%s", waited_for(c));
	iwarp_go(c, PHASE_DEAD); /* unsent octets are dropped */
}

/* All posted requests are done, and all requests of the peer are answered. */
static bool is_drained(const struct iwarp *c)
{
	return iwarp_tx_idle(c) && list_empty(&c->sq) &&
	       list_empty(&c->flight) && c->answers_n == 0;
}

static enum stream_fate fate_of(const struct iwarp *c)
{
	if (c->phase == PHASE_DEAD)
		return STREAM_CLOSE;
	if (c->phase == PHASE_OVER)
		return STREAM_FLUSH;
	if (c->qp.state != RCAP_CLOSING || c->closing.peer_first)
		return STREAM_GO;
	return is_drained(c) ? STREAM_FLUSH : STREAM_GO;
}

/* All but the last octets of one FPDU may have arrived: a response counts as missing
 * until its FPDU is complete. */
static size_t owed_at_least(const struct iwarp *c)
{
	size_t owed = iwarp_wq_owed(c);

	return owed - MIN(owed, (size_t)FPDU_MAX);
}

static void stream_status(const void *core, struct stream_status *st)
{
	const struct iwarp *c = core;
	bool full = c->phase == PHASE_FULL;

	st->fate = fate_of(c);
	st->err = c->err;
	st->deadline = c->deadline;
	st->sure = full ? owed_at_least(c) : 0;
	st->likely = full ? iwarp_rx_likely(c) : 0;
}

/* The message for a FIN that came too early; NULL: it did not. */
static const char *cut_off(const struct iwarp *c)
{
	const struct iwarp_rx *rx = &c->rx;

	if (c->qp.state < RCAP_ESTABLISHED)
		return "the peer closed during start-up";
	if (rx->stage != RX_HEAD || rx->head.have || rx->marker.have ||
	    rx->queues.send_begun)
		return "the peer closed in the middle of a message";
	if (!is_drained(c))
		return "the peer closed before all requests were done";
	return NULL;
}

static void stream_closed(void *core, int err, xtime now)
{
	struct iwarp *c = core;
	const char *why = err ? err_str(err) : cut_off(c);

	c->now = now;
	if (why && !c->why[0])
		iwarp_die(c, err ? err : ERR_CLOSED, "%s", why);
	c->qp.state = RCAP_CLOSED;
	iwarp_go(c, PHASE_DEAD);
	iwarp_tx_reset(c);
	mr_invalidate_stream(c->mrs, c);
	iwarp_wq_flush(c);
	c->qp.user->closed(c->qp.arg, c->err, c->why);
}

const struct stream_ops iwarp_stream_ops = {
	.rx_where = rx_where,
	.rx_done = rx_done,
	.tx_what = tx_what,
	.tx_done = tx_done,
	.expire = expire_deadline,
	.status = stream_status,
	.closed = stream_closed,
};

/* ---- the object ---- */

static bool set_up_iwarp(struct iwarp *c, const void *first, size_t first_len)
{
	c->rx.ahead.cap = MAX(c->cfg.lookahead, (size_t)1024);
	if (first_len > c->rx.ahead.cap ||
	    c->cfg.private_len > MPA_PRIVATE_MAX - MPA_ENHANCED_LEN)
		return false;
	c->rx.ahead.buf = malloc(c->rx.ahead.cap + TX_ARENA);
	c->mrs = mr_table_new(c->cfg.max_regions, c->cfg.seed);
	if (!c->rx.ahead.buf || !c->mrs)
		return false;
	c->tx.arena = c->rx.ahead.buf + c->rx.ahead.cap;
	if (first_len)
		memcpy(c->rx.ahead.buf, first, first_len);
	c->rx.ahead.end = first_len;
	if (c->cfg.private_len)
		memcpy(c->private_data, c->cfg.private_data,
		       c->cfg.private_len);
	return true;
}

struct iwarp *iwarp_new(const struct iwarp_config *cfg,
			struct stream_host *host, const void *first,
			size_t first_len, xtime now)
{
	struct iwarp *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->qp.ops = &iwarp_qp_ops;
	c->qp.state = RCAP_STARTING;
	c->qp.recv_inv = true;
	c->qp.few_recvs = true;
	c->cfg = *cfg;
	c->host = host;
	c->now = now;
	c->deadline = now + cfg->startup_timeout;
	for (unsigned q = 0; q < DDP_QN_COUNT; q++)
		c->rx.queues.msn[q] = c->tx.msn[q] = 1; /* RFC 5041 §5.3 */
	if (iwarp_wq_new(c) || !set_up_iwarp(c, first, first_len)) {
		iwarp_free(c);
		return NULL;
	}
	iwarp_startup_begin(c);
	return c;
}

void iwarp_free(struct iwarp *c)
{
	if (!c)
		return;
	iwarp_tx_reset(c);
	iwarp_wq_free(c);
	mr_table_free(c->mrs);
	free(c->rx.ahead.buf);
	free(c->tx.copies);
	free(c);
}

struct rcap_qp *iwarp_qp(struct iwarp *c)
{
	return &c->qp;
}

const struct iwarp_stats *iwarp_stats(const struct iwarp *c)
{
	return &c->stats;
}

const struct mpa_terms *iwarp_terms(const struct iwarp *c)
{
	return &c->terms;
}
