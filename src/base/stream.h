/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.h: the seam between a protocol core that speaks over a byte stream
 * (iSCSI over TCP, MPA/DDP/RDMAP) and the driver that moves its bytes. The
 * core says where the next bytes go and which bytes are next; the driver
 * moves them. No core blocks, reads a clock or owns an fd.
 *
 * One turn of the driver: while the socket has bytes: rx_where, recvmsg,
 * rx_done. Then, once all of the turn's input is in: while tx_what gives
 * something: sendmsg, tx_done. Then fate and deadline.
 */
#ifndef BASE_STREAM_H
#define BASE_STREAM_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/xtime.h"

/* What is to become of the connection. */
enum stream_fate {
	STREAM_GO,    /* go on */
	STREAM_FLUSH, /* send what tx_what still has, then close; no rx */
	STREAM_CLOSE, /* close now */
};

struct stream_ops {
	/* rx_where fills at most max entries with where the next bytes go;
	 * returns their number, 0 = the core takes no input now (it will
	 * kick when it does again). Stays valid until rx_done. */
	unsigned (*rx_where)(void *core, struct iovec *iov, unsigned max);
	/* rx_done: n > 0 bytes were put there. */
	void (*rx_done)(void *core, size_t n, xtime now);
	/* rx_sure: of what the transport still has or will get, how many bytes
	 * the peer owes: the driver need not wake for each few of them. */
	size_t (*rx_sure)(const void *core);
	/* rx_likely: the same of what the peer will send unless it thinks
	 * better of it; that wakes the driver in a moment, however little. */
	size_t (*rx_likely)(const void *core);
	/* tx_what fills at most max entries with the next bytes to send;
	 * returns their number, 0 = nothing now. The bytes stay put and
	 * unchanged until tx_done took them. */
	unsigned (*tx_what)(void *core, struct iovec *iov, unsigned max);
	/* tx_done: the first n bytes were taken by the transport. */
	void (*tx_done)(void *core, size_t n, xtime now);
	/* deadline: expire wants to be called then; XTIME_NEVER if not. */
	xtime (*deadline)(const void *core);
	void (*expire)(void *core, xtime now);
	/* fate; *err gets the reason (0: orderly) when it is not GO. */
	enum stream_fate (*fate)(const void *core, int *err);
	/* closed: the transport is gone, from either side; err 0 = orderly
	 * (FIN). Last call; the core lets go of every buffer and tells its
	 * user. The driver never touches the core again. */
	void (*closed)(void *core, int err, xtime now);
};

/*
 * What a core may ask of its driver. kick: there is output, or the fate, the
 * deadline or the wish for input changed, outside of a call from the driver.
 * It only marks; nothing is called back from within.
 */
struct stream_host {
	void (*kick)(struct stream_host *host);
};

#endif
