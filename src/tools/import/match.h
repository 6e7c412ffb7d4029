/* SPDX-License-Identifier: BSD-2-Clause */
/* match.h: the files that an include directive names by a pattern. */
#ifndef TOOLS_IMPORT_MATCH_H
#define TOOLS_IMPORT_MATCH_H

#include <stddef.h>

#include "tools/import/pool.h"

/* import_match finds the paths that a pattern of glob(7), with braces, matches; they
 * belong to the pool. Returns NULL, also if there is none, or why it gave up: a
 * pattern of a foreign file may match all files of a machine. */
const char *import_match(struct pool *p, const char *pattern, char ***paths,
			 size_t *n);

#endif
