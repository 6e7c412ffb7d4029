/* SPDX-License-Identifier: BSD-2-Clause */
/* import.c: iserctl import: reads the file, recognizes its format, and prints
 * the configuration of iserd. */
#include "tools/import/import.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "base/opt.h"
#include "tools/import/match.h"
#include "tools/import/model.h"

#define FILE_MAX (16u << 20) /* bytes of one file */

enum format {
	FORMAT_AUTO,
	FORMAT_TGT,
	FORMAT_LIO,
	FORMAT_CTL
};

struct command {
	unsigned format;
	const char *secrets;
	const char *file;
};

static const char *const formats[] = { "auto", "tgt", "lio", "ctl", NULL };

static const struct opt_row rows[] = {
	{ .name = "format",
	  .letter = 'f',
	  .arg = "auto|tgt|lio|ctl",
	  .initial = "auto",
	  OPT_WORD(struct command, format, formats),
	  .help = "targets.conf of tgt, saveconfig.json of LIO, or ctl.conf of "
		  "FreeBSD" },
	{ .name = "secrets",
	  .letter = 's',
	  .arg = "DIR",
	  OPT_TEXT(struct command, secrets),
	  .help = "write the CHAP secrets to new files in this directory" },
	{ .name = "help", .letter = 'h', OPT_STOP, .help = "this text" },
};

/* ---- files ---- */

/* Reads at most FILE_MAX bytes of fd. Returns NULL or the reason. */
static const char *read_all(struct pool *p, int fd, char **text, size_t *len)
{
	size_t size = 65536, n = 0;
	char *buf = pool_alloc(p, size);

	for (;;) {
		ssize_t got;

		if (n + 1 == size) { /* a NUL ends the text */
			char *more = pool_alloc(p, 4 * size);

			memcpy(more, buf, n);
			buf = more;
			size *= 4;
		}
		got = read(fd, buf + n, size - n - 1);
		if (got < 0)
			return strerror(errno);
		if (!got)
			break;
		n += (size_t)got;
		if (n > FILE_MAX)
			return "longer than 16 MiB";
	}
	*text = buf;
	*len = n;
	return NULL;
}

/* Takes a byte order mark off a text. Returns NULL, or why the text is none that
 * the readers understand. */
static const char *skip_mark(char **text, size_t *len)
{
	const char *t = *text;

	if (*len >= 2 &&
	    (!memcmp(t, "\xff\xfe", 2) || !memcmp(t, "\xfe\xff", 2)))
		return "is UTF-16; convert it, for example by iconv -f utf-16 "
		       "-t utf-8";
	if (*len >= 2 && !memcmp(t, "\x1f\x8b", 2)) /* RFC 1952 section 2.3.1 */
		return "is compressed; unpack it by gunzip first";
	if (*len >= 3 && !memcmp(t, "\xef\xbb\xbf", 3)) {
		*text += 3;
		*len -= 3;
	}
	return NULL;
}

/* Reads a file; an included one must be a regular file. */
static const char *read_file(struct pool *p, const char *path, bool regular,
			     char **text, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK : 0));
	const char *why = NULL;
	struct stat st;

	if (fd < 0)
		return strerror(errno);
	if (fstat(fd, &st))
		why = strerror(errno);
	else if (S_ISDIR(st.st_mode))
		why = "is a directory";
	else if (regular && !S_ISREG(st.st_mode))
		why = "not a regular file";
	if (!why)
		why = read_all(p, fd, text, len);
	close(fd);
	return why ? why : skip_mark(text, len);
}

static const char *include_one(struct tree_include *i, const char *path)
{
	const char *why;
	char *text;
	size_t len;

	why = read_file(i->in->pool, path, true, &text, &len);
	if (!why)
		tree_include_text(i, path, text, len);
	return why;
}

/* Includes what a pattern of glob(7) matches, a directory's files included. */
static const char *include_glob(struct tree_include *i, const char *pattern)
{
	char **paths;
	size_t n;
	const char *why = import_match(i->in->pool, pattern, &paths, &n);

	for (size_t k = 0; k < n && !why && !i->in->error; k++) {
		struct stat st;

		if (!stat(paths[k], &st) && S_ISREG(st.st_mode))
			why = include_one(i, paths[k]);
	}
	return why;
}

static const char *include_files(struct tree_include *i, const char *pattern)
{
	struct stat st;

	if (strpbrk(pattern, "*?[{\\"))
		return include_glob(i, pattern);
	if (stat(pattern, &st))
		return strerror(errno);
	if (S_ISDIR(st.st_mode))
		return include_glob(i,
				    pool_format(i->in->pool, "%s/*", pattern));
	return include_one(i, pattern);
}

/* ---- the format ---- */

static bool is_word(const char *line, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(words[i]);

		if (!strncmp(line, words[i], len) &&
		    !isalnum((unsigned char)line[len]) && line[len] != '-' &&
		    line[len] != '_')
			return true;
	}
	return false;
}

/* The format of a line, by its first word. */
static enum format format_of_line(const char *line)
{
	static const char *const tgt[] = {
		"include",
		"default-driver",
		"ignore-errors",
		"control-port",
		"iSNS",
		"iSNSServerIP",
		"iSNSServerPort",
		"incomingdiscoveryuser",
		"iSNSAccessControl",
		"IncludeOptional",
		"outgoingdiscoveryuser",
	};
	static const char *const ctl[] = {
		"auth-group",  "portal-group", "target",
		"lun",	       "pidfile",      "debug",
		"maxproc",     "timeout",      "isns-server",
		"isns-period", "isns-timeout", "transport-group",
		"controller",
	};

	if (*line == '.')
		return FORMAT_CTL; /* a macro of UCL */
	if (*line == '<' || is_word(line, tgt, ARRAY_LEN(tgt)))
		return FORMAT_TGT;
	if (is_word(line, ctl, ARRAY_LEN(ctl)))
		return FORMAT_CTL;
	return FORMAT_AUTO;
}

/* Recognizes the format by the first line that is not a comment: an object is
 * JSON of LIO unless it has sections of ctl.conf, which UCL may put in braces. */
static enum format format_of(const char *text)
{
	while (*text) {
		const char *line = text + strspn(text, " \t\r\n");
		enum format f;

		if (*line == '{' && !strstr(line, "portal-group") &&
		    !strstr(line, "auth-group"))
			return FORMAT_LIO;
		if (*line == '{')
			return FORMAT_CTL;
		if (*line == '"')
			line++;
		f = format_of_line(line);
		if (f != FORMAT_AUTO)
			return f;
		if (*line && *line != '#')
			return FORMAT_AUTO;
		text = line + strcspn(line, "\n");
	}
	return FORMAT_AUTO;
}

/* ---- the command ---- */

/* Reads the file into m. Returns NULL or the error text. */
static const char *fill_model(struct import_model *m, const struct command *c,
			      const char *text, size_t len)
{
	struct tree_input in = { &m->pool, c->file, text, len, NULL };
	enum format f = c->format ? c->format : format_of(text);
	struct tree *t;

	m->format = formats[f];
	switch (f) {
	case FORMAT_TGT:
		t = tree_read_tgt(&in, include_files);
		if (t)
			import_tgt(m, t);
		break;
	case FORMAT_LIO:
		t = tree_read_lio(&in);
		if (t)
			import_lio(m, t);
		break;
	case FORMAT_CTL:
		t = tree_ctl_is_ucl(text, len)
			    ? tree_read_ucl(&in, include_files)
			    : tree_read_ctl(&in);
		if (t)
			import_ctl(m, t);
		break;
	default:
		return pool_format(&m->pool,
				   "%s: format not recognized; give --format "
				   "tgt, lio or ctl",
				   c->file);
	}
	return in.error;
}

/* Notes the files that are longer than what the other target serves of them: an
 * initiator would see the rest. */
static void check_sizes(struct import_model *m)
{
	unsigned missing = 0;
	const struct import_unit *first = NULL;

	for (const struct import_unit *u = m->units; u; u = u->next) {
		uint64_t size;
		struct stat st;

		if (*u->store != '/' || !u->size || !opt_size(u->size, &size) ||
		    !size)
			continue;
		if (stat(u->store, &st)) {
			first = missing++ ? first : u;
			continue;
		}
		if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > size)
			import_note(m, u->at,
				    "%s: has %llu bytes, of which the file "
				    "gives the LUN %llu; iserd serves all of "
				    "them: shorten a copy if the rest is not "
				    "for initiators",
				    u->store, (unsigned long long)st.st_size,
				    (unsigned long long)size);
	}
	if (missing)
		import_note(m, first->at,
			    "size %s of %s%s: not compared, as the file is not "
			    "here; a LUN of iserd has the size of its file: "
			    "check that they are the same",
			    first->size, first->store,
			    missing > 1 ? ", and sizes of further files" : "");
}

/* Where the secret files will be: an absolute path, for the file of iserd. */
static int find_secrets(struct import_model *m, const char *dir)
{
	char *path = dir ? realpath(dir, NULL) : NULL;
	struct stat st;

	m->secrets_dir = IMPORT_SECRETS_DIR;
	if (!dir)
		return 0;
	if (!path || stat(path, &st) || !S_ISDIR(st.st_mode)) {
		fprintf(stderr,
			"iserctl: import: --secrets %s: %s; make the directory "
			"first\n",
			dir, path ? "not a directory" : strerror(errno));
		free(path);
		return 1;
	}
	m->secrets_dir = pool_copy(&m->pool, path, strlen(path));
	free(path);
	return 0;
}

static int import_file(struct import_model *m, const struct command *c)
{
	char *text, shown[TEXT_ESCAPED_SIZE(1024)];
	const char *why;
	size_t len;

	if (find_secrets(m, c->secrets))
		return 1;
	why = read_file(&m->pool, c->file, false, &text, &len);
	if (why)
		why = pool_format(&m->pool, "%s: %s", c->file, why);
	else
		why = fill_model(m, c, text, len);
	if (why) {
		text_escape(shown, sizeof(shown), why, strlen(why));
		fprintf(stderr, "iserctl: import: %s\n", shown);
		return 1;
	}
	import_check_units(m);
	import_check_portals(m);
	check_sizes(m);
	import_name_secrets(m);
	if (c->secrets && import_write_secrets(m))
		return 1;
	import_print_yaml(m, stdout);
	import_print_notes(m, stderr);
	if (!c->secrets)
		import_print_missing(m, stderr);
	fprintf(stderr,
		"iserctl: import: %u targets, %u backstores, %u notes; check "
		"the result with iserctl check\n",
		m->ntargets, m->nunits, m->nnotes);
	return 0;
}

static void print_usage(FILE *f)
{
	static const struct opt_parser p = {
		.groups = { { rows, ARRAY_LEN(rows), NULL } },
	};
	char options[2048];

	opt_help(&p, 24, options, sizeof(options));
	fprintf(f,
		"usage: iserctl import [OPTION]... FILE\n"
		"\n"
		"Prints the configuration of another target as one of iserd, "
		"and on standard\n"
		"error FILE:LINE: and a note for each thing that could not be "
		"carried over.\n"
		"\n%s",
		options);
}

int import_main(int argc, char **argv)
{
	struct import_model m = { 0 };
	struct command c = { 0 };
	struct opt_parser p = {
		.command = "iserctl import",
		.groups = { { rows, ARRAY_LEN(rows), &c } },
	};
	char shown[TEXT_ESCAPED_SIZE(OPT_WHY)];
	int code;

	switch (opt_parse(&p, argc - 1, argv + 1)) {
	case OPT_BAD:
		fprintf(stderr, "iserctl: import: %s\n",
			text_escape_str(shown, sizeof(shown), p.why));
		return 2;
	case OPT_STOPPED:
		print_usage(stdout);
		return 0;
	default:
		break;
	}
	if (p.noperands != 1) {
		print_usage(stderr);
		return 2;
	}
	c.file = argv[1];
	code = import_file(&m, &c);
	pool_free(&m.pool);
	return code;
}
