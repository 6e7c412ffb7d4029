/* SPDX-License-Identifier: BSD-2-Clause */
/* conn.c: a software iWARP connection: its life, what its driver calls, and
 * how it ends. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcap/iwarp/internal.h"

#define CLOSING_MAX (5 * XTIME_S) /* for Reads that nobody answers */

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

/* ---- the end ---- */

bool iwarp_is_full(const struct iwarp *c)
{
	return c->phase == PHASE_FULL || c->phase == PHASE_FIRST_WAIT;
}

static void set_reason(struct iwarp *c, int err, const char *fmt, va_list ap)
{
	if (c->why[0])
		return; /* the first reason is the cause */
	c->err = err;
	vsnprintf(c->why, sizeof(c->why), fmt, ap);
}

void iwarp_die(struct iwarp *c, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_reason(c, err, fmt, ap);
	va_end(ap);
	if (c->phase == PHASE_OVER || c->phase == PHASE_DEAD)
		return;
	/* a reject still has to go out */
	c->phase = c->frame_sent < c->frame_len ? PHASE_OVER : PHASE_DEAD;
	c->qp.state = MAX(c->qp.state, RCAP_CLOSING);
	iwarp_kick(c);
}

/* RFC 5040 §4.8 figure 10: which headers of the segment at fault go with it:
 * have octets at head, of a segment of len. */
static void keep_headers(struct iwarp *c, uint16_t reason, const uint8_t *head,
			 size_t have, size_t len)
{
	bool tagged = have > 0 && (head[0] & 0x80);
	size_t ddp = tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	bool is_read = !tagged && have == ddp + RDMAP_READ_LEN;

	if (reason >> 12 == 2 || reason >> 8 == 0 || have < ddp)
		return;
	/* RDMAP's own only where an access was refused */
	c->tx.term_head_len = reason >> 8 == 1 && is_read ? have : ddp;
	memcpy(c->tx.term_head, head, c->tx.term_head_len);
	c->tx.term_segment_len = (uint16_t)len;
}

/* The last thing to be said. */
static void send_terminate(struct iwarp *c, uint16_t reason)
{
	c->phase = PHASE_OVER;
	c->deadline = c->now + CLOSING_MAX;
	c->tx.term_wanted = true;
	c->tx.term = reason;
}

static void fail(struct iwarp *c, uint16_t reason, int err, const uint8_t *head,
		 size_t have, size_t len)
{
	bool may_speak = c->phase == PHASE_FULL;

	if (!iwarp_is_full(c))
		return;
	iwarp_die(c, err, "%s%s (0x%04x)",
		  may_speak ? "sent a Terminate: " : "", rdmap_term_str(reason),
		  reason);
	trace_emit(c->qp.trace, TRACE_TERMINATE, "%s", c->why);
	if (!may_speak)
		return;
	send_terminate(c, reason);
	keep_headers(c, reason, head, have, len);
}

void iwarp_fail(struct iwarp *c, uint16_t reason, int err)
{
	struct iwarp_rx *rx = &c->rx;
	size_t have = rx->head_have > MPA_LENGTH_LEN
			      ? rx->head_have - MPA_LENGTH_LEN
			      : 0;

	fail(c, reason, err, rx->head + MPA_LENGTH_LEN, have, rx->ulpdu_len);
}

void iwarp_fail_answer(struct iwarp *c, uint16_t reason,
		       const struct iwarp_read *a)
{
	/* the request, as far as it is not answered yet */
	struct rdmap_header h = a->h;
	uint8_t head[DDP_HEADER_MAX];
	size_t n;

	h.sink_to += a->sent;
	h.read_size -= a->sent;
	h.source_to += a->sent;
	n = rdmap_encode(&h, head);
	fail(c, reason, ERR_ACCESS, head, n, n);
}

/* ---- the provider's table ---- */

static struct iwarp *of(struct rcap_qp *qp)
{
	return container_of(qp, struct iwarp, qp);
}

static int accept_qp(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	return iwarp_startup_accept(of(qp), cm);
}

static int reject_qp(struct rcap_qp *qp, const struct rcap_cm *cm)
{
	return iwarp_startup_reject(of(qp), cm);
}

static int reg(struct rcap_qp *qp, const struct bufv *memory, uint64_t base,
	       unsigned rights, struct rcap_mr *mr)
{
	struct iwarp *c = of(qp);
	unsigned r = (rights & RCAP_REMOTE_READ ? MR_REMOTE_READ : 0) |
		     (rights & RCAP_REMOTE_WRITE ? MR_REMOTE_WRITE : 0) |
		     (rights & RCAP_REMOTE_ATOMIC ? MR_REMOTE_ATOMIC : 0) |
		     (rights & RCAP_UNDEFINED ? MR_UNDEFINED : 0);

	*mr = (struct rcap_mr){ .base = base, .len = memory->len };
	return mr_register(c->mrs, c, memory, base, r, &mr->stag);
}

static void invalidate(struct rcap_qp *qp, struct rcap_mr *mr)
{
	struct iwarp *c = of(qp);
	const struct bufv *memory = mr_memory(c->mrs, c, mr->stag);

	if (!memory)
		return; /* the peer did it */
	if (iwarp_tx_detach(c, memory)) {
		iwarp_tx_reset(c); /* its bytes must not go out any more */
		iwarp_die(c, ERR_NOMEM, "no memory to take a region back");
	}
	mr_invalidate(c->mrs, mr->stag);
	if (!list_empty(&c->sq))
		iwarp_kick(c); /* a Read may wait for a place in the table */
}

/* What tells a slow peer from one that does nothing any more. */
static uint64_t moved(const struct iwarp *c)
{
	return c->stats.tx_bytes + c->stats.rx_payload;
}

static void disconnect(struct rcap_qp *qp)
{
	struct iwarp *c = of(qp);

	if (qp->state != RCAP_ESTABLISHED) {
		iwarp_die(c, ERR_CLOSED, "closed during start-up");
		return;
	}
	qp->state = RCAP_CLOSING;
	c->deadline = c->now + CLOSING_MAX;
	c->closing_mark = moved(c);
	iwarp_kick(c);
}

static void terminate(struct rcap_qp *qp, int err, const char *why)
{
	struct iwarp *c = of(qp);
	bool may_speak = c->phase == PHASE_FULL;

	iwarp_die(c, err, "%s", why);
	if (!may_speak)
		return;
	/* RFC 5040 §7.2: the ULP's own errors have no code of theirs */
	send_terminate(c, TERM_LOCAL_CATASTROPHIC);
}

static const struct rcap_ops ops = {
	.accept = accept_qp,
	.reject = reject_qp,
	.post = iwarp_post,
	.post_recv = iwarp_post_recv,
	.reg = reg,
	.invalidate = invalidate,
	.disconnect = disconnect,
	.terminate = terminate,
};

/* ---- the driver's calls ---- */

static void consume(struct iwarp *c)
{
	iwarp_startup_input(c);
	if (iwarp_is_full(c))
		iwarp_rx_consume(c);
}

static unsigned rx_where(void *core, struct iovec *iov, unsigned max)
{
	return iwarp_rx_where(core, iov, max);
}

static void rx_done(void *core, size_t n, xtime now)
{
	struct iwarp *c = core;

	c->now = now;
	iwarp_rx_done(c, n);
	consume(c);
}

static unsigned tx_what(void *core, struct iovec *iov, unsigned max)
{
	struct iwarp *c = core;
	unsigned n;

	if (c->rx.at < c->rx.end && !c->woken) {
		c->woken = true; /* octets that were handed in at the start */
		consume(c);
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
		consume(c); /* what came early waited in the look-ahead */
		return;
	}
	iwarp_tx_done(c, n);
}

static xtime deadline(const void *core)
{
	const struct iwarp *c = core;

	return c->deadline;
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

static void expire(void *core, xtime now)
{
	struct iwarp *c = core;

	c->now = now;
	if (now < c->deadline)
		return;
	if (c->phase == PHASE_FULL && c->closing_mark != moved(c)) {
		c->closing_mark = moved(c);
		c->deadline = now + CLOSING_MAX;
		return;
	}
	c->deadline = XTIME_NEVER;
	iwarp_die(c, ERR_TIMEOUT, "%s", waited_for(c));
	c->phase = PHASE_DEAD; /* what is unsent stays unsent */
}

/* Everything that was posted is done, and so are the answers. */
static bool drained(const struct iwarp *c)
{
	return iwarp_tx_idle(c) && list_empty(&c->sq) &&
	       list_empty(&c->flight) && c->answers_n == 0;
}

static enum stream_fate fate(const void *core, int *err)
{
	const struct iwarp *c = core;

	*err = c->err;
	if (c->phase == PHASE_DEAD)
		return STREAM_CLOSE;
	if (c->phase == PHASE_OVER)
		return STREAM_FLUSH;
	if (c->qp.state != RCAP_CLOSING)
		return STREAM_GO;
	return drained(c) ? STREAM_FLUSH : STREAM_GO;
}

/* What a FIN cut off; NULL: nothing. */
static const char *cut_off(const struct iwarp *c)
{
	const struct iwarp_rx *rx = &c->rx;

	if (c->qp.state < RCAP_ESTABLISHED)
		return "the peer closed during start-up";
	if (rx->stage != RX_HEAD || rx->head_have || rx->marker_have ||
	    rx->send_begun)
		return "the peer closed in the middle of a message";
	if (!drained(c))
		return "the peer closed before all requests were done";
	return NULL;
}

static void closed(void *core, int err, xtime now)
{
	struct iwarp *c = core;
	const char *why = err ? err_str(err) : cut_off(c);

	c->now = now;
	if (why && !c->why[0])
		iwarp_die(c, err ? err : ERR_CLOSED, "%s", why);
	c->phase = PHASE_DEAD;
	c->qp.state = RCAP_CLOSED;
	iwarp_tx_reset(c);
	mr_invalidate_stream(c->mrs, c);
	iwarp_wq_flush(c);
	c->qp.user->closed(c->qp.arg, c->err, c->why);
}

/* What is missing of the Reads that are out. */
static size_t rx_sure(const void *core)
{
	const struct iwarp *c = core;

	return c->phase == PHASE_FULL ? iwarp_wq_owed(c) : 0;
}

static size_t rx_likely(const void *core)
{
	const struct iwarp *c = core;

	return c->phase == PHASE_FULL ? iwarp_rx_likely(c) : 0;
}

const struct stream_ops iwarp_stream_ops = {
	.rx_where = rx_where,
	.rx_done = rx_done,
	.rx_sure = rx_sure,
	.rx_likely = rx_likely,
	.tx_what = tx_what,
	.tx_done = tx_done,
	.deadline = deadline,
	.expire = expire,
	.fate = fate,
	.closed = closed,
};

/* ---- the object ---- */

static bool set_up(struct iwarp *c, const void *first, size_t first_len)
{
	c->rx.cap = MAX(c->cfg.lookahead, (size_t)1024);
	if (first_len > c->rx.cap ||
	    c->cfg.private_len > MPA_PRIVATE_MAX - MPA_ENHANCED_LEN)
		return false;
	c->rx.buf = malloc(c->rx.cap);
	c->tx.arena = malloc(TX_ARENA);
	c->mrs = mr_table_new(c->cfg.max_regions, c->cfg.seed);
	if (!c->rx.buf || !c->tx.arena || !c->mrs)
		return false;
	if (first_len)
		memcpy(c->rx.buf, first, first_len);
	c->rx.end = first_len;
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
	c->qp.ops = &ops;
	c->qp.state = RCAP_STARTING;
	c->qp.recv_inv = true;
	c->cfg = *cfg;
	c->host = host;
	c->now = now;
	c->deadline = now + cfg->startup_timeout;
	for (unsigned q = 0; q < DDP_QN_COUNT; q++)
		c->rx.msn[q] = c->tx.msn[q] = 1; /* RFC 5041 §5.3 */
	if (iwarp_wq_new(c) || !set_up(c, first, first_len)) {
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
	free(c->rx.buf);
	free(c->tx.arena);
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
