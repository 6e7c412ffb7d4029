/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transcript.h: text that a test program writes, compared with a
 * file of tests/vectors. OUTCOMES=write in the environment writes the files.
 */
#ifndef TESTS_UNIT_TRANSCRIPT_H
#define TESTS_UNIT_TRANSCRIPT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

struct transcript {
	FILE *out; /* the test writes here */
	char *text;
	size_t len;
};

static const char *transcript_folder; /* transcript_args sets it */

/* transcript_args takes the folder of the transcripts, which is the only argument of
 * the program. False: it printed the usage. */
static inline bool transcript_args(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER (of tests/vectors)\n",
			argv[0]);
		return false;
	}
	transcript_folder = argv[1];
	return true;
}

static inline void transcript_begin(struct transcript *t)
{
	*t = (struct transcript){ 0 };
	t->out = open_memstream(&t->text, &t->len);
	assert_non_null(t->out);
}

/* The bytes that are printed of a line. */
static inline int transcript_part(const char *p)
{
	return (int)MIN(strcspn(p, "\n"), (size_t)160);
}

/* The first line in which the texts differ is printed, a long one from the word
 * that differs on, and the heading above it: the last line that is not
 * indented. */
static inline void transcript_difference(const char *path, const char *is,
					 const char *was)
{
	size_t line = 1, word = 1, begins = 0, heading = 0, from = 0;

	for (size_t i = 0; is[i] && is[i] == was[i]; i++) {
		if (is[i] == ' ' && is[i + 1] != ' ') {
			word++;
			from = i + 1;
		}
		if (is[i] != '\n')
			continue;
		line++;
		word = 1;
		begins = from = i + 1;
		if (is[begins] && is[begins] != ' ')
			heading = begins;
	}
	if (from < begins + 160)
		from = begins;
	fail_msg("%s:%zu, word %zu: %.*s\n is: %.*s\nwas: %.*s\n"
		 "OUTCOMES=write writes the file anew",
		 path, line, word, transcript_part(is + heading), is + heading,
		 transcript_part(is + from), is + from,
		 transcript_part(was + from), was + from);
}

static inline char *transcript_read(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t max = 8u << 20;
	char *text = calloc(1, max);

	assert_non_null(text);
	if (f && fread(text, 1, max - 1, f) == max - 1)
		fail_msg("%s is too long", path);
	if (f)
		fclose(f);
	return text;
}

/* transcript_compare ends the text and compares it with the file NAME.txt. */
static inline void transcript_compare(struct transcript *t, const char *name)
{
	const char *how = getenv("OUTCOMES");
	char path[512], *was;

	snprintf(path, sizeof(path), "%s/%s.txt", transcript_folder, name);
	fclose(t->out);
	if (how && strcmp(how, "write") == 0) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		assert_int_equal(fwrite(t->text, 1, t->len, f), t->len);
		fclose(f);
	}
	was = transcript_read(path);
	if (strcmp(t->text, was) != 0)
		transcript_difference(path, t->text, was);
	free(was);
	free(t->text);
}

#endif
