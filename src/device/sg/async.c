/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * async.c: /dev/sgN (Documentation/scsi/scsi-generic.rst of Linux): write() sends
 * a command, poll() reports a descriptor readable when a command has ended, and
 * read() returns the result. The kernel reads and writes the data in the memory of
 * the request.
 */
#include <errno.h>
#include <unistd.h>

#include "device/sg/internal.h"

#define ASK_PAUSE (20 * XTIME_MS)

struct sg_port *sg_port_free(struct sg_lane *l)
{
	struct sg_port *best = NULL;

	for (unsigned i = 0; i < SG_FDS; i++) {
		struct sg_port *p = &l->ports[i];

		if (p->watch.fd >= 0 && p->inflight < SG_FD_QUEUE &&
		    (!best || p->inflight < best->inflight))
			best = p;
	}
	return best;
}

/* take_one completes one request that has ended; false: none has ended. */
static bool take_one(struct sg_port *port)
{
	struct sg_io_hdr h = { .interface_id = 'S' };
	struct sg_step *s;
	ssize_t n;

	do
		n = read(port->watch.fd, &h, sizeof(h));
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(h) || !h.usr_ptr)
		return false;
	s = h.usr_ptr;
	sg_ended(s, h.status, h.host_status, h.sb_len_wr, h.resid);
	return true;
}

static void take_all(struct sg_port *port)
{
	/* A completion does not free port: a close waits for all requests. */
	while (port->inflight && take_one(port))
		continue;
}

static void set_ask(struct sg_port *port)
{
	struct io_loop *loop = port->lane->loop;

	io_timer_set(loop, &port->ask, io_now(loop) + ASK_PAUSE);
}

static void ask_again(struct io_timer *t)
{
	struct sg_port *port = container_of(t, struct sg_port, ask);

	take_all(port);
	if (port->inflight)
		set_ask(port);
}

/* poll() reports a hang-up of a removed device without end, although the commands
 * in flight still end. So ready removes the watch, and a timer reads the results. */
static void ready(struct io_watch *w, unsigned events)
{
	struct sg_port *port = container_of(w, struct sg_port, watch);

	take_all(port);
	if (!(events & IO_ERR))
		return;
	port->hung_up = true;
	io_watch_del(port->lane->loop, w);
	if (port->inflight)
		set_ask(port);
}

/* The first sg_port_send adds the watch, because only the thread of a loop may use
 * that loop, and sg_open runs on another thread. */
static int watch(struct sg_port *port)
{
	if (port->watch.in_loop || port->hung_up)
		return 0;
	port->watch.want = IO_IN;
	port->watch.ready = ready;
	port->ask.fire = ask_again;
	return io_watch_add(port->lane->loop, &port->watch);
}

int sg_port_send(struct sg_port *port, struct sg_step *s)
{
	int err = watch(port);
	ssize_t n;

	if (err)
		return err;
	sg_fill_v3(s);
	do
		n = write(port->watch.fd, &s->io.v3, sizeof(s->io.v3));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (port->hung_up)
		set_ask(port);
	return 0;
}

void sg_ports_close(struct sg_lane *l)
{
	for (unsigned i = 0; i < SG_FDS; i++) {
		struct sg_port *p = &l->ports[i];

		if (p->watch.fd < 0)
			continue;
		io_watch_del(l->loop, &p->watch);
		io_timer_clear(l->loop, &p->ask);
		close(p->watch.fd);
	}
}
