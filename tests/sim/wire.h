/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.h: a virtual byte stream between two protocol cores, on a virtual
 * clock: random splits, delays, and a cut after any byte. The counterpart of
 * net/stream.c, without sockets and without sleeping.
 */
#ifndef TESTS_SIM_WIRE_H
#define TESTS_SIM_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stream.h"

#define WIRE_NO_CUT UINT64_MAX
/* The most bytes that wire_config.filter keeps back. */
#define WIRE_FILTER_ROOM 48u

struct wire_config {
	uint32_t seed;
	size_t max_chunk; /* bytes moved at once, 1 to this number; 0: no limit */
	xtime max_delay; /* of each chunk */
	/* Most bytes in flight to one end, like the limit of socket buffers;
	 * 0: no limit. */
	size_t window;
	/* After this many bytes from end i the connection is reset. */
	uint64_t cut[2];
	/* Sees every byte that end `from` sent, in order. May be NULL. */
	void (*tap)(void *arg, unsigned from, const uint8_t *p, size_t n);
	/* May change those bytes before they arrive. May be NULL. */
	void (*damage)(void *arg, unsigned from, uint8_t *p, size_t n);
	/* In place of damage: puts what arrives of the n bytes at `in` to `out`, which
	 * is WIRE_FILTER_ROOM bytes before `in`, and returns the number of bytes. It may
	 * keep bytes back until a later call. May be NULL. */
	size_t (*filter)(void *arg, unsigned from, uint8_t *out,
			 const uint8_t *in, size_t n);
	void *arg;
};

struct wire_chunk {
	struct wire_chunk *next;
	xtime at; /* time of arrival */
	size_t len, taken;
	uint8_t bytes[];
};

struct wire_end {
	struct stream_host host;
	const struct stream_ops *ops;
	void *core;
	bool kicked, open;
	bool is_spent;	 /* the core gives way */
	uint32_t spends; /* the seed of that */
	bool deaf;	 /* set by the test: reads nothing from now on */
	/* in flight to this end */
	struct wire_chunk *first, **last;
	size_t queued; /* bytes of these */
	xtime newest;
	bool fin; /* the other end closed; with err */
	int fin_err;
	uint64_t sent; /* bytes from this end */
};

struct wire {
	struct wire_config cfg;
	struct wire_end end[2];
	xtime now;
	uint32_t seed;
};

void wire_init(struct wire *w, const struct wire_config *cfg);
void wire_fini(struct wire *w);
struct stream_host *wire_host(struct wire *w, unsigned end);
void wire_attach(struct wire *w, unsigned end, const struct stream_ops *ops,
		 void *core);

/* wire_run runs events and advances the clock until no byte is in flight or
 * `until` is reached. Deadlines after `until` do not expire. */
void wire_run(struct wire *w, xtime until);
/* wire_idle does the same without waiting for deadlines. */
void wire_idle(struct wire *w);
bool wire_is_open(const struct wire *w, unsigned end);
/* wire_next returns when wire_run has something to do again: `now` of the wire if
 * that is at once, XTIME_NEVER if nothing is to come. For several wires on one
 * clock. */
xtime wire_next(const struct wire *w);

/* Returns a random number below n from the wire's seed. */
uint32_t wire_random(struct wire *w, uint32_t n);

#endif
