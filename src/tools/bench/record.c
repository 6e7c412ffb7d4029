/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.c: the files of iser bench that grow at each interval. --series is a CSV file,
 * --histogram a log of HdrHistogram (format 1.3, histograms in the encoding V2,
 * compressed). The steps of struct histogram are those of an HdrHistogram with two
 * significant digits, so its counts are copied.
 */
#include <errno.h>
#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/bench/bench.h"

#define COOKIE_V2	     0x1c849313u
#define COOKIE_V2_COMPRESSED 0x1c849314u
#define HEADER		     40 /* bytes of the encoding before the counts */
#define DIGITS		     2
#define HIGHEST		     3600000000000ull /* ns; more, if a value is longer */

/* ---- the encoding V2 ---- */

static void put_be64_double(uint8_t *p, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_be64(p, bits);
}

/* LEB128 of a signed number in zigzag form. */
static uint8_t *put_zigzag(uint8_t *p, int64_t v)
{
	uint64_t z = (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);

	for (; z >= 0x80; z >>= 7)
		*p++ = (uint8_t)(z | 0x80);
	*p++ = (uint8_t)z;
	return p;
}

/* Runs of zeros are one negative number; zeros at the end are left out. */
static uint8_t *put_counts(uint8_t *p, const struct histogram *h)
{
	int64_t zeros = 0;

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		if (!h->bucket[i]) {
			zeros++;
			continue;
		}
		if (zeros)
			p = put_zigzag(p, zeros == 1 ? 0 : -zeros);
		p = put_zigzag(p, (int64_t)h->bucket[i]);
		zeros = 0;
	}
	return p;
}

static size_t encode(uint8_t *out, const struct histogram *h)
{
	uint8_t *end = put_counts(out + HEADER, h);

	put_be32(out, COOKIE_V2);
	put_be32(out + 4, (uint32_t)(end - out - HEADER));
	put_be32(out + 8, 0); /* normalizing index offset */
	put_be32(out + 12, DIGITS);
	put_be64(out + 16, 1); /* lowest value */
	put_be64(out + 24, h->max > HIGHEST ? h->max : HIGHEST);
	put_be64_double(out + 32, 1.0);
	return (size_t)(end - out);
}

static char *base64(const uint8_t *in, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno"
				     "pqrstuvwxyz0123456789+/";
	char *text = malloc((n + 2) / 3 * 4 + 1), *p = text;

	for (size_t i = 0; text && i < n; i += 3) {
		uint32_t v = (uint32_t)in[i] << 16 |
			     (i + 1 < n ? (uint32_t)in[i + 1] << 8 : 0) |
			     (i + 2 < n ? in[i + 2] : 0);

		*p++ = digits[v >> 18];
		*p++ = digits[v >> 12 & 63];
		*p++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*p++ = i + 2 < n ? digits[v & 63] : '=';
	}
	if (text)
		*p = '\0';
	return text;
}

/* Compresses n bytes to the zlib form after the header of eight bytes. Returns the
 * length of both; 0: no memory. */
static size_t compress_into(uint8_t *out, size_t room, uint8_t *in, size_t n)
{
	struct isal_zstream *z = calloc(1, sizeof(*z));
	size_t made = 0;

	if (!z)
		return 0;
	isal_deflate_stateless_init(z);
	z->gzip_flag = IGZIP_ZLIB;
	z->end_of_stream = 1;
	z->next_in = in;
	z->avail_in = (uint32_t)n;
	z->next_out = out + 8;
	z->avail_out = (uint32_t)(room - 8);
	if (isal_deflate_stateless(z) == COMP_OK)
		made = 8 + z->total_out;
	put_be32(out, COOKIE_V2_COMPRESSED);
	put_be32(out + 4, z->total_out);
	free(z);
	return made;
}

char *bench_hdr_encode(const struct histogram *h)
{
	size_t most = HEADER + HIST_BUCKETS * 10, room = most + most / 8 + 512;
	uint8_t *plain = malloc(most), *packed = malloc(room);
	size_t n = plain && packed ? compress_into(packed, room, plain,
						   encode(plain, h))
				   : 0;
	char *text = n ? base64(packed, n) : NULL;

	free(plain);
	free(packed);
	return text;
}

/* ---- lines ---- */

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static void write_series(const struct bench *b, double at, double seconds)
{
	FILE *f = b->record.series;

	fprintf(f, "%.3f", at);
	for (int w = 0; w < 2; w++) {
		const struct histogram *h = &b->record.now->latency[w];

		fprintf(f, ",%.1f,%.0f,%.1f,%.1f,%.1f",
			(double)h->count / seconds,
			(double)b->record.now->bytes[w] / seconds,
			us(hist_percentile(h, 0.5)),
			us(hist_percentile(h, 0.99)), us(h->max));
	}
	fputc('\n', f);
	fflush(f);
}

static void write_histograms(const struct bench *b, double at, double seconds)
{
	static const char *const names[] = { "read", "write" };
	FILE *f = b->record.histogram;

	for (int w = 0; w < 2; w++) {
		const struct histogram *h = &b->record.now->latency[w];
		char *text = h->count ? bench_hdr_encode(h) : NULL;

		if (text)
			fprintf(f, "Tag=%s,%.3f,%.3f,%.3f,%s\n", names[w], at,
				seconds, (double)h->max / 1e6, text);
		free(text);
	}
	fflush(f);
}

/* Writes the interval that ends at `end`, and begins the next one there. */
static void end_interval(struct bench *b, uint64_t end)
{
	struct bench_record *r = &b->record;
	double at = (double)(r->from - b->measure_from) / 1e9;
	double seconds = (double)(end - r->from) / 1e9;

	if (r->series)
		write_series(b, at, seconds);
	if (r->histogram)
		write_histograms(b, at, seconds);
	memset(r->now, 0, sizeof(*r->now));
	r->from = end;
	r->until = end + (uint64_t)(b->o.interval * 1e9);
}

void bench_record_turn(struct bench *b, uint64_t now)
{
	if (b->record.now && now >= b->record.until)
		end_interval(b, now);
}

/* ---- files ---- */

static int say_file(const char *path)
{
	say("%s: cannot write the file: %s", path, strerror(errno));
	return EXIT_GENERIC;
}

static int open_file(const char *path, FILE **f)
{
	if (!path)
		return 0;
	*f = fopen(path, "we");
	return *f ? 0 : say_file(path);
}

int bench_record_open(struct bench *b)
{
	struct bench_record *r = &b->record;
	struct timespec t;
	int code = open_file(b->o.series, &r->series);

	if (!code)
		code = open_file(b->o.histogram, &r->histogram);
	if (code || (!r->series && !r->histogram))
		return code;
	r->now = calloc(1, sizeof(*r->now));
	if (!r->now)
		return say_no_memory();
	clock_gettime(CLOCK_REALTIME, &t);
	if (r->series)
		fputs("second,read_iops,read_bytes_per_second,read_p50_us,"
		      "read_p99_us,read_max_us,write_iops,"
		      "write_bytes_per_second,write_p50_us,write_p99_us,"
		      "write_max_us\n",
		      r->series);
	if (r->histogram)
		fprintf(r->histogram,
			"#[Histogram log format version 1.3]\n"
			"#[StartTime: %lld.%03ld (seconds since epoch)]\n"
			"\"StartTimestamp\",\"Interval_Length\","
			"\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
			(long long)t.tv_sec, t.tv_nsec / 1000000);
	return 0;
}

/* A file that could not be written is a failure, also at its last byte. */
static int close_file(const char *path, FILE *f)
{
	bool failed = f && ferror(f);

	if (f && fclose(f))
		failed = true;
	return failed ? say_file(path) : 0;
}

int bench_record_close(struct bench *b)
{
	struct bench_record *r = &b->record;
	uint64_t now = now_ns();
	int code, other;

	if (r->now && now > r->from &&
	    (r->now->latency[0].count || r->now->latency[1].count))
		end_interval(b, now);
	code = close_file(b->o.series, r->series);
	other = close_file(b->o.histogram, r->histogram);
	free(r->now);
	*r = (struct bench_record){ 0 };
	return code ? code : other;
}
