/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp_fuzz.c: MPA frames, FPDUs with and without markers, DDP and RDMAP
 * headers, Terminate: any bytes. First byte: settings and stream position. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rcap/iwarp/mpa.h"
#include "rcap/iwarp/rdmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void frame(const uint8_t *p, size_t n)
{
	uint8_t out[MPA_FRAME_LEN + MPA_PRIVATE_MAX];
	struct mpa_frame f, again;
	int len = mpa_frame_decode(&f, p, n);

	if (len <= 0)
		return;
	if ((size_t)len > n || mpa_frame_encode(&f, out) != len ||
	    mpa_frame_decode(&again, out, (size_t)len) != len ||
	    again.ird != f.ird || again.rtr != f.rtr)
		abort();
}

static void headers(const uint8_t *p, size_t n, bool extended)
{
	struct rdmap_terminate t;
	struct rdmap_header h;
	uint8_t out[DDP_HEADER_MAX];
	int len = rdmap_decode(&h, p, n, extended);

	if (len > 0 &&
	    ((size_t)len > n || rdmap_encode(&h, out) != (size_t)len))
		abort();
	if (!rdmap_terminate_decode(&t, p, n) && t.headers_len > n)
		abort();
}

static void stream(const uint8_t *p, size_t n, uint8_t how)
{
	struct mpa_stream s = { .markers = how & 1,
				.crc = how & 2,
				.pos = (how >> 2) * 4u + 256 };

	for (;;) {
		struct iovec iov[200];
		size_t total, ulpdu;
		int k;

		mpa_fpdu_peek(&s, p, n, &total);
		if (total == 0 || total > n)
			return;
		k = mpa_fpdu_open(&s, p, total, iov, 200, &ulpdu);
		if (k < 0)
			return;
		if (k > 0)
			headers(iov[0].iov_base, iov[0].iov_len, how & 4);
		p += total;
		n -= total;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	frame(data + 1, size - 1);
	headers(data + 1, size - 1, false);
	headers(data + 1, size - 1, true);
	stream(data + 1, size - 1, data[0]);
	return 0;
}
