/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flips.h: the files of a fuzz corpus as a transcript: what a fuzz target does
 * that a peer can see, as a CRC32C, for each file as it is and with single bits
 * of it inverted: one value for each 16 bytes. A program includes this header
 * and the fuzz target, and calls see() for what is to be in the value.
 */
#ifndef TESTS_UNIT_FLIPS_H
#define TESTS_UNIT_FLIPS_H

#include <dirent.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/stream.h"
#include "unit/transcript.h"

#define FLIPS_MAX  65536u
#define FLIPS_LINE 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t flips_seen;

static inline void see(const void *p, size_t n)
{
	flips_seen = crc32c_update(flips_seen, p, n);
}

static inline void see_number(uint64_t v)
{
	uint8_t b[8];

	put_be64(b, v);
	see(b, sizeof(b));
}

/* ---- a stream: what the core sends, and what becomes of it ---- */

static const struct stream_ops *flips_real;
static struct iovec flips_iov[64];
static unsigned flips_n;

static inline unsigned flips_tx_what(void *core, struct iovec *iov,
				     unsigned max)
{
	flips_n = flips_real->tx_what(core, iov, MIN(max, 64u));
	memcpy(flips_iov, iov, flips_n * sizeof(*iov));
	return flips_n;
}

static inline void flips_tx_done(void *core, size_t n, xtime now)
{
	struct stream_status st;
	size_t left = n;

	for (unsigned i = 0; i < flips_n && left; i++) {
		size_t k = MIN(left, flips_iov[i].iov_len);

		see(flips_iov[i].iov_base, k);
		left -= k;
	}
	flips_real->status(core, &st);
	see_number(st.sure);
	see_number(st.likely);
	flips_real->tx_done(core, n, now);
	flips_real->status(core, &st);
	see_number((uint64_t)st.deadline);
}

static inline void flips_closed(void *core, int err, xtime now)
{
	struct stream_status st;

	flips_real->status(core, &st);
	see_number(st.fate);
	see_number((uint64_t)(int64_t)st.err);
	flips_real->closed(core, err, now);
}

/* flips_stream makes of a core's calls others that show what they do. */
static inline struct stream_ops flips_stream(const struct stream_ops *real)
{
	struct stream_ops ops = *real;

	flips_real = real;
	ops.tx_what = flips_tx_what;
	ops.tx_done = flips_tx_done;
	ops.closed = flips_closed;
	return ops;
}

/* ---- the files ---- */

static inline void flips_run(const uint8_t *data, size_t n)
{
	uint8_t *exact = malloc(n ? n : 1); /* for the sanitizer */

	assert_non_null(exact);
	memcpy(exact, data, n);
	LLVMFuzzerTestOneInput(exact, n);
	free(exact);
}

/* Of a large file, one bit of each byte is inverted, another one of each. */
static inline void flips_file(FILE *out, uint8_t *data, size_t n)
{
	unsigned step = n <= 256 ? 1 : n <= 1024 ? 3 : 8;

	flips_seen = CRC32C_SEED;
	flips_run(data, n);
	fprintf(out, " %08x\n", flips_seen);
	for (size_t at = 0; at < n; at++) {
		if (at % FLIPS_LINE == 0)
			flips_seen = CRC32C_SEED;
		for (unsigned bit = 0; bit < 8; bit += step) {
			uint8_t mask = (uint8_t)(1u << (bit + at) % 8);

			data[at] ^= mask;
			flips_run(data, n);
			data[at] ^= mask;
		}
		if (at % FLIPS_LINE == FLIPS_LINE - 1 || at + 1 == n)
			fprintf(out, "  %04zx %08x\n", at & ~(size_t)15,
				flips_seen);
	}
}

static inline int flips_is_file(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* flips_folder compares each file of a corpus with the transcript NAME. */
static inline void flips_folder(const char *folder, const char *name)
{
	static uint8_t data[FLIPS_MAX];
	struct dirent **list;
	struct transcript t;
	int n = scandir(folder, &list, flips_is_file, alphasort);

	assert_true(n > 0);
	transcript_begin(&t);
	for (int i = 0; i < n; i++) {
		char path[512];
		size_t len;
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", folder, list[i]->d_name);
		f = fopen(path, "rb");
		assert_non_null(f);
		len = fread(data, 1, sizeof(data), f);
		fclose(f);
		fprintf(t.out, "%s", list[i]->d_name);
		flips_file(t.out, data, len);
		free(list[i]);
	}
	free(list);
	transcript_compare(&t, name);
}

/* ---- the program ---- */

static const char *flips_corpus, *flips_name;

static inline void test_corpus_with_single_bits_inverted(void **state)
{
	(void)state;
	flips_folder(flips_corpus, flips_name);
}

static inline int flips_main(int argc, char **argv, const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus_with_single_bits_inverted),
	};

	if (argc != 3) {
		fprintf(stderr, "usage: %s tests/vectors/replay CORPUS\n",
			argv[0]);
		return 2;
	}
	transcript_folder = argv[1];
	flips_corpus = argv[2];
	flips_name = name;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
