/* SPDX-License-Identifier: BSD-2-Clause */
/* match.c: glob(3) with a limit. */
#include "tools/import/match.h"

#include <dirent.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#define ENTRIES_MAX 65536 /* of directories that a pattern makes glob read */
#define BRACES_MAX  4	  /* each multiplies the patterns */
#define COMMAS_MAX  32	  /* in all braces */

/* What glob may still read: its functions have no argument of their own. */
static unsigned entries_left;

static struct dirent *read_entry(void *dir)
{
	if (!entries_left)
		return NULL;
	entries_left--;
	return readdir(dir);
}

static void close_dir(void *dir)
{
	closedir(dir);
}

static void *open_dir(const char *path)
{
	return opendir(path);
}

static unsigned count_of(const char *text, char c)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == c;
	return n;
}

const char *import_match(struct pool *p, const char *pattern, char ***paths,
			 size_t *n)
{
	glob_t g = { .gl_closedir = close_dir,
		     .gl_readdir = (struct dirent * (*)(void *)) read_entry,
		     .gl_opendir = open_dir,
		     .gl_lstat = lstat,
		     .gl_stat = stat };
	int err;

	*paths = NULL;
	*n = 0;
	if (count_of(pattern, '{') > BRACES_MAX ||
	    count_of(pattern, ',') > COMMAS_MAX)
		return "too many braces in the pattern; write several lines";
	entries_left = ENTRIES_MAX;
	err = glob(pattern, GLOB_BRACE | GLOB_ALTDIRFUNC, NULL, &g);
	if (!entries_left) {
		globfree(&g);
		return "the pattern looks at too many files; give a narrower "
		       "one";
	}
	if (err && err != GLOB_NOMATCH) {
		globfree(&g);
		return "cannot read the directory";
	}
	*paths = pool_alloc(p, (g.gl_pathc + 1) * sizeof(**paths));
	for (; *n < g.gl_pathc; (*n)++)
		(*paths)[*n] =
			pool_copy(p, g.gl_pathv[*n], strlen(g.gl_pathv[*n]));
	globfree(&g);
	return NULL;
}
