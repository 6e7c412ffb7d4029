/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h: the parts of iser bench. command.c reads the command line, run.c
 * submits the operations, place.c chooses their places and sizes, verify.c checks
 * data, report.c prints results, record.c writes series and histograms. One thread,
 * one loop: the figures are those of one core of initiator.
 */
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include "tools/iser.h"

#define BENCH_CONNECTIONS 64
#define BENCH_DEPTH	  1024
#define BENCH_SIZES	  16
#define BENCH_SIZE_MAX	  (64u << 20)
/* the longest block that --verify knows */
#define BENCH_VERIFY_BLOCK 4096

enum bench_arrivals {
	BENCH_STEADY, /* equal distances */
	BENCH_RANDOM, /* exponential distances: a Poisson process */
};

/* The command line. */
struct bench_options {
	const struct common *common;
	const char *url_text;
	bool random, may_write, verify;
	unsigned write_percent, depth, connections;
	/* bytes of an operation, and of each 100 how many have them */
	struct {
		uint64_t bytes;
		unsigned percent;
	} size[BENCH_SIZES];
	unsigned nsizes;
	uint64_t amount;      /* bytes in all; 0: the time decides */
	double seconds, ramp; /* ramp: not measured, at the start */
	uint64_t seed;
	uint64_t rate; /* operations per second in all; 0: as many as possible */
	enum bench_arrivals arrivals;
	unsigned spin;			/* microseconds */
	const char *series, *histogram; /* files, or NULL */
	double interval;		/* seconds of a line in these files */
};

/* Places and sizes (place.c). */
struct bench_places {
	uint64_t blocks,
		next;	     /* blocks of the unit; the next one in sequence */
	uint64_t random;     /* state of the generator */
	uint32_t max_blocks; /* of the longest operation */
	/* With --verify, of each block: how often it was written, and BUSY while
	 * an operation is in progress. NULL without. */
	uint32_t *written;
};

/* The measured operations, in all and in the current interval. */
struct bench_figures {
	struct histogram latency[2]; /* read, write */
	uint64_t bytes[2];
};

/* Open loop: operations begin when they are due, whatever is in progress. */
struct bench_pace {
	double gap;		/* ns between two operations; 0: closed loop */
	double due;		/* when the next one is due */
	struct bench_job *idle; /* jobs without an operation */
	uint64_t late;		/* operations that were due but did not begin */
};

struct bench_verify {
	uint64_t checked, unknown; /* bytes; unknown: not written by this run */
	uint64_t mismatches;	   /* operations */
};

/* Files that grow at each interval (record.c). */
struct bench_record {
	FILE *series, *histogram;
	struct bench_figures *now; /* of the current interval; NULL: no file */
	uint64_t from, until;	   /* of the current interval */
};

struct bench {
	struct bench_options o;
	struct iser_context *ctx;
	struct iser_session *session[BENCH_CONNECTIONS];
	struct iser_url url;
	struct iser_capacity cap;
	struct bench_places places;
	struct bench_pace pace;
	struct bench_verify verify;
	struct bench_record record;
	struct bench_figures *all;
	uint64_t begun; /* bytes of all operations so far */
	uint64_t start, measure_from, stop_at; /* ns */
	bool stopping;			       /* submit no more */
	bool given_up;	      /* operations that end now are not counted */
	bool interrupted;     /* by a signal */
	uint64_t last;	      /* when the last operation succeeded */
	unsigned in_progress; /* operations */
	int code;	      /* exit code of the first failure */
	uint64_t ended;	      /* operations, with those of the ramp */
};

/* One operation at a time, on the memory of its own. */
struct bench_job {
	struct bench *b;
	struct iser_session *s;
	struct iser_io io;
	struct iovec iov;
	uint8_t *memory;
	uint64_t start; /* ns; of a paced operation: when it was due */
	uint64_t lba;
	uint32_t blocks;
	bool write;
	struct bench_job *next; /* in bench_pace.idle */
};

/* What a run has measured besides bench.all. */
struct bench_result {
	double seconds, user, system;
	struct iser_counters calls; /* of all operations, in the ramp too */
	struct iser_params params;
};

/* ---- place.c ---- */

/* bench_random returns the next number of the generator. */
uint64_t bench_random(struct bench *b);
/* bench_places_init checks the sizes against the unit, whose capacity is known.
 * Returns an exit code; failures are printed. */
int bench_places_init(struct bench *b);
/* bench_place chooses direction, place and size of the next operation of j. With
 * --verify it marks the blocks busy; false: operations in progress cover all places
 * that it tried. */
bool bench_place(struct bench_job *j);
/* bench_place_done ends the use of the blocks of j. */
void bench_place_done(struct bench_job *j);

/* ---- verify.c ---- */

/* bench_fill writes the pattern of each block of a write to its memory. The pattern
 * has the seed, the byte offset and the number of the write. */
void bench_fill(struct bench_job *j);
/* bench_check compares the memory of a read with the pattern. False: the data differ;
 * of the first such reads the byte offset and the difference are printed. */
bool bench_check(struct bench_job *j);
/* bench_pattern writes the pattern of one block: write `number` of the block of n bytes,
 * n a multiple of 8, at a byte offset. */
void bench_pattern(uint8_t *out, size_t n, uint64_t seed, uint64_t offset,
		   uint64_t number);

/* ---- run.c ---- */

/* bench_run logs in, measures and prints. Returns an exit code. */
int bench_run(struct bench *b);

/* ---- report.c ---- */

/* bench_report prints the result, as text or JSON. */
void bench_report(const struct bench *b, const struct bench_result *r);

/* ---- record.c ---- */

/* bench_record_open creates the files of --series and --histogram. Returns an exit code;
 * failures are printed. */
int bench_record_open(struct bench *b);
/* bench_record_turn ends the current interval if its time is over. */
void bench_record_turn(struct bench *b, uint64_t now);
/* bench_record_close writes the last interval and closes the files. Returns an exit
 * code; failures are printed. */
int bench_record_close(struct bench *b);
/* bench_hdr_encode returns h in the form V2 of HdrHistogram, compressed, in base64, as
 * a line of its logs has it; the caller frees it. NULL: out of memory. */
char *bench_hdr_encode(const struct histogram *h);

#endif
