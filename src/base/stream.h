/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.h: the interface between a protocol core on a byte stream (iSCSI over
 * TCP, MPA/DDP/RDMAP) and the driver that moves the bytes of the stream. The
 * core names the memory for the next received bytes and the bytes to send
 * next. A core neither blocks nor reads a clock, and owns no descriptor.
 *
 * One turn of the driver: rx_where, recvmsg, rx_done while the socket has
 * bytes; then tx_what, sendmsg, tx_done while tx_what returns entries; then
 * fate and deadline.
 */
#ifndef BASE_STREAM_H
#define BASE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/xtime.h"

/* What the driver does with the connection. */
enum stream_fate {
	STREAM_GO,    /* continue */
	STREAM_FLUSH, /* send what tx_what still returns, then close; no rx */
	STREAM_CLOSE, /* close now */
};

/* What a core reports to its driver, which asks after each change. */
struct stream_status {
	enum stream_fate fate;
	int err;	/* unless STREAM_GO: the reason; 0: orderly close */
	xtime deadline; /* when the driver has to call expire; or XTIME_NEVER */
	/* how many bytes the peer has to send at least, such as the rest of a PDU
	 * or answers to RDMA Reads, and how many it will probably send: the driver
	 * waits for many of them, for a bounded time, which is shorter if they are
	 * only likely */
	size_t sure, likely;
};

/* What the driver asks of a core. */
struct stream_ops {
	/* rx_where fills at most max entries with the memory for the next
	 * bytes and returns their number; 0: the core takes no input until it
	 * calls kick, or is_spent has returned true. The entries are valid until rx_done. */
	unsigned (*rx_where)(void *core, struct iovec *iov, unsigned max);
	/* rx_done: the driver received n > 0 bytes into these entries. */
	void (*rx_done)(void *core, size_t n, xtime now);
	/* tx_what fills at most max entries with the next bytes to send and
	 * returns their number; 0: no output. The bytes stay at their address
	 * and unchanged until tx_done has counted them. */
	unsigned (*tx_what)(void *core, struct iovec *iov, unsigned max);
	/* tx_done: the transport took the first n of these bytes. NULL: the
	 * core never has output. */
	void (*tx_done)(void *core, size_t n, xtime now);
	/* expire: the deadline of the status has passed. */
	void (*expire)(void *core, xtime now);
	/* status fills all members of *st. It changes nothing in the core. */
	void (*status)(const void *core, struct stream_status *st);
	/* closed: either end closed the transport; err 0: orderly (FIN). This
	 * is the last call: the core releases every buffer and informs its
	 * user, and the driver does not access the core afterwards. NULL: the
	 * core has neither buffers nor a user. */
	void (*closed)(void *core, int err, xtime now);
};

/*
 * What a core asks of its driver. A core calls kick outside of a call from the
 * driver, when it has output, or when its fate, its deadline or its readiness
 * for input changed. kick only marks the connection and calls no function of
 * the core.
 *
 * A core asks is_spent while it processes input: whether the connection has used up its time of
 * this turn; control: what it has processed was not I/O but control, such as a ping, which a
 * peer can send much faster than the core processes it. If so, the core leaves the rest of
 * the input where it is, and goes on with it in the next call of rx_where, which the driver
 * makes in a later turn. NULL: the driver gives all the time that there is.
 */
struct stream_host {
	void (*kick)(struct stream_host *host);
	bool (*is_spent)(struct stream_host *host, bool control);
};

static inline bool stream_is_spent(struct stream_host *host, bool control)
{
	return host->is_spent && host->is_spent(host, control);
}

/* stream_fate_of and stream_deadline_of give one part of the status. */
static inline enum stream_fate stream_fate_of(const struct stream_ops *ops,
					      const void *core, int *err)
{
	struct stream_status st;

	ops->status(core, &st);
	*err = st.err;
	return st.fate;
}

static inline xtime stream_deadline_of(const struct stream_ops *ops,
				       const void *core)
{
	struct stream_status st;

	ops->status(core, &st);
	return st.deadline;
}

#endif
