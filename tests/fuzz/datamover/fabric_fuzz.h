/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric_fuzz.h: the fuzzer as the peer of a fake queue pair, and as the fabric
 * in between: a sequence of steps, each of one byte for the operation
 * (fuzz_step) and its arguments.
 */
#ifndef TESTS_FUZZ_FABRIC_FUZZ_H
#define TESTS_FUZZ_FABRIC_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "datamover/iser/dmiser.h"
#include "datamover/iser/header.h"
#include "sim/fake_rcap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The steps of every end; each end adds its own steps from FUZZ_OWN on. */
enum fuzz_step {
	FUZZ_RAW,      /* len16, that many bytes: a Send */
	FUZZ_PDU,      /* header's first byte, BHS, len8 words of data */
	FUZZ_COMPLETE, /* n: so many requests are completed */
	FUZZ_UP,       /* the queue pair is established */
	FUZZ_CLOSE,
	FUZZ_INVALIDATE, /* n, then as FUZZ_PDU: Send with Invalidate */
	FUZZ_OWN,
};

#define FUZZ_READ_STAG	1u
#define FUZZ_WRITE_STAG 2u
#define FUZZ_BASE	0x1000u

struct fuzz_fabric {
	struct fake_rcap f;
	bool passive, up;
	uint8_t cm; /* the first byte of the peer's private data */
	const uint8_t *p;
	size_t n;
};

static inline uint8_t fuzz_u8(struct fuzz_fabric *e)
{
	if (e->n == 0)
		return 0;
	e->n--;
	return *e->p++;
}

static inline const uint8_t *fuzz_take(struct fuzz_fabric *e, size_t *n)
{
	const uint8_t *p = e->p;

	*n = MIN(*n, e->n);
	e->p += *n;
	e->n -= *n;
	return p;
}

static inline void fuzz_up(struct fuzz_fabric *e)
{
	uint8_t cm[4] = { e->cm };

	if (e->up || e->f.qp.state == RCAP_CLOSED)
		return;
	e->up = true;
	if (e->passive)
		fake_rcap_request(&e->f, cm, sizeof(cm));
	fake_rcap_establish(&e->f, cm, sizeof(cm));
}

/* Delivers a message, mostly with consistent lengths. */
static inline void fuzz_pdu(struct fuzz_fabric *e, uint32_t stag)
{
	uint8_t bytes[ISER_HEADER_LEN + ISCSI_BHS_LEN + 4 * 255] = { 0 };
	size_t n = ISCSI_BHS_LEN;
	const uint8_t *p;

	bytes[0] = fuzz_u8(e);
	put_be32(bytes + 4, FUZZ_WRITE_STAG);
	put_be64(bytes + 8, FUZZ_BASE);
	put_be32(bytes + 16, FUZZ_READ_STAG);
	put_be64(bytes + 20, FUZZ_BASE);
	p = fuzz_take(e, &n);
	memcpy(bytes + ISER_HEADER_LEN, p, n);
	n = 4u * fuzz_u8(e);
	/* without AHS, and with the length of the data that follow */
	bytes[ISER_HEADER_LEN + 4] = 0;
	put_be24(bytes + ISER_HEADER_LEN + 5, (uint32_t)n);
	fake_rcap_deliver(&e->f, bytes, ISER_HEADER_LEN + ISCSI_BHS_LEN + n,
			  stag);
}

static inline void fuzz_raw(struct fuzz_fabric *e)
{
	size_t n = fuzz_u8(e);
	const uint8_t *p;

	n = n << 8 | fuzz_u8(e);
	p = fuzz_take(e, &n);
	fake_rcap_deliver(&e->f, p, n, 0);
}

/* Returns the n-th valid STag of the end, or 0 if there is none. */
static inline uint32_t fuzz_stag(const struct fuzz_fabric *e, unsigned n)
{
	for (unsigned i = 0; i < FAKE_REGIONS; i++)
		if (e->f.local[i].valid && n-- == 0)
			return e->f.local[i].stag;
	return 0;
}

/* fuzz_step executes a common step, and returns FUZZ_OWN; or returns a step of
 * the end itself. */
static inline unsigned fuzz_step(struct fuzz_fabric *e)
{
	uint8_t step = fuzz_u8(e);

	switch (step) {
	case FUZZ_RAW:
		fuzz_raw(e);
		break;
	case FUZZ_PDU:
		fuzz_pdu(e, 0);
		break;
	case FUZZ_COMPLETE:
		fake_rcap_complete(&e->f, fuzz_u8(e));
		break;
	case FUZZ_UP:
		fuzz_up(e);
		break;
	case FUZZ_CLOSE:
		fake_rcap_close(&e->f, ERR_RESET, "cut");
		break;
	case FUZZ_INVALIDATE:
		fuzz_pdu(e, fuzz_stag(e, fuzz_u8(e)));
		break;
	default:
		return step;
	}
	return FUZZ_OWN;
}

static inline bool fuzz_goes_on(const struct fuzz_fabric *e)
{
	return e->n > 0 && e->f.qp.state != RCAP_CLOSED;
}

static inline void fuzz_fabric_init(struct fuzz_fabric *e, bool passive,
				    uint16_t depth, const uint8_t *data,
				    size_t size)
{
	static uint8_t peer[2][65536];

	memset(e, 0, sizeof(*e));
	e->passive = passive;
	e->cm = 0x80;
	e->p = data;
	e->n = size;
	fake_rcap_init(&e->f, passive ? 0 : depth, passive ? depth : 0);
	e->f.lax = true;
	fake_rcap_remote(&e->f, FUZZ_READ_STAG, FUZZ_BASE, peer[0], 65536);
	fake_rcap_remote(&e->f, FUZZ_WRITE_STAG, FUZZ_BASE, peer[1], 65536);
}

#endif
