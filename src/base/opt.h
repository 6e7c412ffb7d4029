/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opt.h: the options of a program, one row each. A row names the option, the
 * member of the caller's struct that holds its value, the values that are
 * allowed, the default and the text for --help. opt_parse reads a command line
 * by these rows, opt_help renders them.
 *
 * The rules of a command line are those of GNU getopt_long: options and
 * operands in any order, "--name value", "--name=value", "-n value", "-nvalue",
 * "-ab" for two letters, and "--" in front of operands that begin with "-"; but
 * a long name is given in full.
 *
 * Nothing here prints, allocates or reads the environment. Error texts quote
 * the command line as it is: escape them (escape.h) before they are shown.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPT_GROUPS   4	 /* tables of rows in one parser */
#define OPT_ROWS     128 /* rows of all these tables */
#define OPT_WHY	     512 /* bytes of an error text */
#define OPT_SIZE_MAX ((uint64_t)INT64_MAX)
#define OPT_MS_MAX   1000000000000u /* 31 years */

enum opt_end {
	OPT_OK,
	OPT_BAD,     /* the error text says why */
	OPT_STOPPED, /* an OPT_STOP row, or a setter, ended the parsing */
};

enum opt_kind {
	OPT_KIND_FLAG,	  /* bool: set to true */
	OPT_KIND_COUNT,	  /* unsigned: one more each time; may be repeated */
	OPT_KIND_TEXT,	  /* const char *: points into argv */
	OPT_KIND_NUMBER,  /* unsigned: decimal, min to max */
	OPT_KIND_COUNTER, /* uint64_t: decimal, min to max */
	OPT_KIND_SIZE, /* uint64_t: bytes, as opt_size reads them, min to max */
	OPT_KIND_SECONDS, /* double: with a decimal fraction; limits in ms */
	OPT_KIND_WORD,	  /* unsigned or enum: the index in words */
	OPT_KIND_CALL,	  /* whatever set does */
	OPT_KIND_STOP,	  /* no member: opt_parse ends with OPT_STOPPED */
};

/*
 * A setter of the caller for one row. into is the caller's struct; arg is the
 * value, NULL for a row without one. On OPT_BAD it has written to why what is
 * wrong and what to do, without the name of the option and the value, which
 * opt_set puts in front. OPT_STOPPED ends the parsing.
 */
typedef enum opt_end opt_setter(void *into, const char *arg, char why[OPT_WHY]);

struct opt_row {
	const char *name; /* the long name without its dashes */
	char letter;	  /* the short form; 0: none */
	bool repeats;	  /* may be given more than once */
	const char *arg;  /* the name of the value in --help; NULL: no value */
	const char *help; /* for --help: a phrase in lower case, no full stop */
	const char *initial; /* the default, as on a command line; NULL: none */
	/* the value: filled in by the macros below */
	enum opt_kind kind;
	size_t at; /* offset of the member */
	uint64_t min, max;
	const char *const *words; /* ends with NULL */
	opt_setter *set;
};

/* The offset of member m of struct type s; refused by the compiler where the
 * member is not of the given type. */
#define OPT_AT(s, m, type)                                                    \
 (offsetof(s, m) +                                                            \
  0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((s *)0)->m), type) \
			  ? 1                                                 \
			  : -1]))

/* What a row does with its value: one of these in each row. */
#define OPT_FLAG(s, m)	.kind = OPT_KIND_FLAG, .at = OPT_AT(s, m, bool)
#define OPT_COUNT(s, m) .kind = OPT_KIND_COUNT, .at = OPT_AT(s, m, unsigned)
#define OPT_TEXT(s, m)	.kind = OPT_KIND_TEXT, .at = OPT_AT(s, m, const char *)
#define OPT_NUMBER(s, m, lo, hi) \
 .kind = OPT_KIND_NUMBER, .at = OPT_AT(s, m, unsigned), .min = (lo), .max = (hi)
#define OPT_COUNTER(s, m, lo, hi)                                     \
 .kind = OPT_KIND_COUNTER, .at = OPT_AT(s, m, uint64_t), .min = (lo), \
 .max = (hi)
#define OPT_SIZE(s, m, lo, hi) \
 .kind = OPT_KIND_SIZE, .at = OPT_AT(s, m, uint64_t), .min = (lo), .max = (hi)
/* lo_ms and hi_ms are milliseconds, the member and the value are seconds. */
#define OPT_SECONDS(s, m, lo_ms, hi_ms)                                \
 .kind = OPT_KIND_SECONDS, .at = OPT_AT(s, m, double), .min = (lo_ms), \
 .max = (hi_ms)
/* The member is an unsigned or an enum (never negative, so of four bytes). */
#define OPT_WORD(s, m, list)                                               \
 .kind = OPT_KIND_WORD,                                                    \
 .at = offsetof(s, m) +                                                    \
       0 * sizeof(char[sizeof(((s *)0)->m) == sizeof(unsigned) ? 1 : -1]), \
 .words = (list)
#define OPT_CALL(setter) .kind = OPT_KIND_CALL, .set = (setter)
#define OPT_STOP	 .kind = OPT_KIND_STOP

/* A table of rows and the struct that their values go to. */
struct opt_group {
	const struct opt_row *rows;
	size_t nrows;
	void *into; /* NULL only where no value is set: for opt_help */
};

/* What to give in place of an option that the program does not have, but that
 * administrators expect. */
struct opt_hint {
	const char *name; /* NULL: the end of the table */
	const char *text; /* "give --listen ADDR:PORT" */
};

struct opt_parser {
	/* set by the caller */
	const char *command; /* as an administrator types it: "iser copy" */
	const struct opt_hint *hints;	     /* NULL: none */
	struct opt_group groups[OPT_GROUPS]; /* those with rows are used */
	/* set by opt_parse */
	int noperands;
	const struct opt_row *stopped; /* OPT_STOPPED: the row that ended it */
	char why[OPT_WHY];	       /* OPT_BAD: "--NAME VALUE: reason" */
	bool seen[OPT_ROWS];	       /* by row, counted through all groups */
};

/*
 * opt_parse sets the defaults of all rows and then reads argc words at argv,
 * which do not begin with the name of the program. Returns OPT_OK, and the
 * operands are the first p->noperands words of argv, in their order (the other
 * words of argv are no longer valid); OPT_BAD, and p->why has the reason; or
 * OPT_STOPPED at the first option that asks for it. Values of OPT_KIND_TEXT are
 * pointers that argv held, or the row's default.
 */
enum opt_end opt_parse(struct opt_parser *p, int argc, char **argv);

/*
 * opt_set checks one value by its row and stores it in the struct at into. arg
 * is NULL for a row without a value. Returns OPT_OK, OPT_STOPPED, or OPT_BAD
 * with "NAME VALUE: reason" in why, where NAME is how the caller calls the row:
 * "--depth" on a command line.
 */
enum opt_end opt_set(const struct opt_row *row, void *into, const char *name,
		     const char *arg, char why[OPT_WHY]);

/*
 * opt_help writes the rows of all groups as the lines of --help to out (size
 * bytes, always ended): names, and the text from column `column` on, wrapped at
 * 80 characters. Returns the length that the whole text has, as snprintf does.
 */
size_t opt_help(const struct opt_parser *p, unsigned column, char *out,
		size_t size);

/*
 * opt_size reads "512", "64M", "64MB", "64Mi", "1.5GiB": bytes, with binary suffixes K, M,
 * G, T or P of either case, and a decimal fraction in front of a suffix. False: not of this form,
 * or beyond 2^63 - 1; *size is unchanged then.
 */
bool opt_size(const char *text, uint64_t *size);

#endif
