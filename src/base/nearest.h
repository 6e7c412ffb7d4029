/* SPDX-License-Identifier: BSD-2-Clause */
/* nearest.h: the candidate that is most like a word, for "did you mean". */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *word, *best; /* best NULL: no candidate is like the word */
	unsigned distance;
};

/* nearest_begin prepares the search for candidates that are like word. */
void nearest_begin(struct nearest *n, const char *word);
/* nearest_try makes candidate the best if it is more like the word. */
void nearest_try(struct nearest *n, const char *candidate);
/* nearest_list adds candidate to a list with commas in out (size bytes), for "give one of". */
void nearest_list(char *out, size_t size, const char *candidate);

#endif
