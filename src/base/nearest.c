/* SPDX-License-Identifier: BSD-2-Clause */
/* nearest.c: the candidate that is most like a word. */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define WORD_MAX 64

/* The number of insertions, removals, replacements and exchanges of neighbours
 * that make b of a (Damerau and Levenshtein). */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned rows[3][WORD_MAX + 1];
	unsigned *two = rows[0], *one = rows[1], *now = rows[2];

	for (size_t j = 0; j <= nb; j++)
		one[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *old = two;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			bool same = a[i - 1] == b[j - 1];
			unsigned d = MIN(one[j], now[j - 1]) + 1;

			now[j] = MIN(d, one[j - 1] + !same);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				now[j] = MIN(now[j], two[j - 2] + 1);
		}
		two = one;
		one = now;
		now = old;
	}
	return one[nb];
}

void nearest_begin(struct nearest *n, const char *word)
{
	size_t len = strlen(word);

	/* two slips, or one in three letters */
	*n = (struct nearest){ .word = word,
			       .distance = (unsigned)MAX(2u, len / 3) + 1 };
	if (len < 3)
		n->distance = 2;
}

void nearest_try(struct nearest *n, const char *candidate)
{
	size_t na = strlen(n->word), nb = strlen(candidate);
	unsigned d;

	if (na == 0 || na > WORD_MAX || nb > WORD_MAX)
		return;
	d = distance(n->word, na, candidate, nb);
	if (na > 3 && n->word[na - 1] == 's' && nb > na)
		na--; /* a plural */
	if (na >= 3 && nb > na && !memcmp(n->word, candidate, na))
		d = MIN(d, 1u); /* the beginning of the candidate */
	if (d < n->distance && d < MAX(na, nb)) {
		n->distance = d;
		n->best = candidate;
	}
}

void nearest_list(char *out, size_t size, const char *candidate)
{
	size_t len = strlen(out);

	snprintf(out + len, size - len, "%s%s", len ? ", " : "", candidate);
}
