/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flips.h: the files of a fuzz corpus as a transcript: what a fuzz target does
 * that a peer can see, for each file as it is and with single bits of it
 * inverted. A file is a line of words: its name, a CRC32C of the bytes and one
 * of the numbers of the file as it is, one of the times of all runs, which are
 * in no other word, and 16 bits of bytes and numbers for each 16 bytes of the
 * file: word 5 for the first ones, a colon before each 256 bytes. A program
 * includes this header and the fuzz target, and calls see(), see_number() and
 * see_time() for what is to be in the words.
 */
#ifndef TESTS_UNIT_FLIPS_H
#define TESTS_UNIT_FLIPS_H

#include <dirent.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/stream.h"
#include "unit/transcript.h"

#define FLIPS_MAX   65536u
#define FLIPS_BLOCK 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	uint32_t bytes, numbers, times;
} flips_seen;

/* Bytes that a peer or a caller gets. */
static inline void see(const void *p, size_t n)
{
	flips_seen.bytes = crc32c_update(flips_seen.bytes, p, n);
}

static inline uint32_t flips_add(uint32_t crc, uint64_t v)
{
	uint8_t b[8];

	put_be64(b, v);
	return crc32c_update(crc, b, sizeof(b));
}

/* A result, a state, a length. */
static inline void see_number(uint64_t v)
{
	flips_seen.numbers = flips_add(flips_seen.numbers, v);
}

/* A deadline, or what only helps to be faster. */
static inline void see_time(uint64_t v)
{
	flips_seen.times = flips_add(flips_seen.times, v);
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
	see_time(st.sure);
	see_time(st.likely);
	flips_real->tx_done(core, n, now);
	flips_real->status(core, &st);
	see_time((uint64_t)st.deadline);
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

static inline void flips_begin(void)
{
	flips_seen.bytes = flips_seen.numbers = CRC32C_SEED;
}

/* Inverts single bits of a block; of a large file, one bit of each byte, another
 * one of each. Returns 16 bits of the bytes and the numbers. */
static inline unsigned flips_block(uint8_t *data, size_t n, size_t at)
{
	const unsigned step = n <= 256 ? 1 : n <= 1024 ? 3 : 8;
	const size_t end = MIN(n, at + FLIPS_BLOCK);
	uint32_t both;

	flips_begin();
	for (; at < end; at++) {
		for (unsigned bit = 0; bit < 8; bit += step) {
			uint8_t mask = (uint8_t)(1u << (bit + at) % 8);

			data[at] ^= mask;
			flips_run(data, n);
			data[at] ^= mask;
		}
	}
	both = flips_add(flips_seen.bytes, flips_seen.numbers);
	return (both ^ both >> 16) & 0xffff;
}

static inline void flips_file(FILE *out, uint8_t *data, size_t n)
{
	static uint16_t block[FLIPS_MAX / FLIPS_BLOCK];
	uint32_t bytes, numbers;

	flips_begin();
	flips_seen.times = CRC32C_SEED;
	flips_run(data, n);
	bytes = flips_seen.bytes;
	numbers = flips_seen.numbers;
	for (size_t at = 0; at < n; at += FLIPS_BLOCK)
		block[at / FLIPS_BLOCK] = (uint16_t)flips_block(data, n, at);
	fprintf(out, " %08x %08x %08x", bytes, numbers, flips_seen.times);
	for (size_t at = 0; at < n; at += FLIPS_BLOCK)
		fprintf(out, "%s%04x", at % 256 ? " " : ": ",
			block[at / FLIPS_BLOCK]);
	fputc('\n', out);
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
