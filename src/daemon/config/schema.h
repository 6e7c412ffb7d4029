/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schema.h: one row per configuration field of iserd, per kind of LUN and per
 * suffix of a LUN. From the rows come the command line with its checks, --help,
 * the headings of the lists in iserd(8), and completion ("iserd schema" prints
 * the rows for scripts/options). A configuration file sets the same fields by
 * the same rows.
 */
#ifndef DAEMON_CONFIG_SCHEMA_H
#define DAEMON_CONFIG_SCHEMA_H

#include "base/opt.h"

enum cfg_type {
	CFG_BOOL,
	CFG_NUMBER,   /* from opt.min to opt.max, in unit */
	CFG_DURATION, /* the same, in a unit of time */
	CFG_SIZE,     /* bytes, as opt_size reads them */
	CFG_STRING,
	CFG_ADDRESS, /* ADDR, PORT or ADDR:PORT */
	CFG_PATH,    /* of a file, directory or socket */
	CFG_ENUM,    /* one of opt.words */
	CFG_LIST,    /* some of opt.words, with commas between them */
	CFG_NUMBERS, /* parts, with colons between them */
	CFG_ACTION,  /* no field: the command line only, such as --help */
};

/* What a field belongs to. Today each field holds for all of its kind. */
enum cfg_scope {
	CFG_DAEMON,
	CFG_TARGET,
	CFG_PORTAL,
	CFG_LUN,
	CFG_CLUSTER,
};

enum cfg_apply {
	CFG_AT_START,  /* takes a restart */
	CFG_AT_RELOAD, /* read again at SIGHUP; sessions from then on have it */
	CFG_AT_ONCE,   /* can be changed by iserctl while iserd runs */
};

/* One number of a field like "N:M". */
struct cfg_part {
	const char *name;
	size_t at; /* offset of an unsigned in struct options */
	unsigned min, max;
};

#define CFG_PARTS 4

struct cfg_parts {
	unsigned need; /* the first ones, which can't be left out */
	struct cfg_part part[CFG_PARTS];
};

struct cfg_row {
	/* name, letter, repeats, help, range or words, default, setter; the
	 * member is one of struct options */
	struct opt_row opt;
	enum cfg_type type;
	enum cfg_scope scope;
	enum cfg_apply apply;
	bool is_secret; /* the value, or the file that it names, is a secret */
	const char *unit; /* of CFG_NUMBER, CFG_DURATION and CFG_SIZE, or NULL */
	/* the default, in words, where opt.initial does not say it */
	const char *otherwise;
	const struct cfg_parts *parts; /* CFG_NUMBERS */
	/* OPT_KIND_CALL: the setter keeps the value in the member at opt.at as
	 * this kind does; else get or parts is given */
	enum opt_kind kept;
	/* writes the value where the setter keeps it in a form of its own;
	 * empty: not given */
	void (*get)(const void *from, char *out, size_t size);
};

/* A kind of LUN: how its text begins. */
struct cfg_kind {
	const char *prefix; /* such as "ram:"; "": none */
	const char *arg;    /* the name of the operand in --help */
	const char *help;
};

/* A suffix of the text of a LUN, ",NAME=VALUE". */
struct cfg_suffix {
	struct cfg_row row; /* the member is one of struct lun_spec */
	/* Suffixes follow each other in the order of their places; those of
	 * one place exclude each other. 0: anywhere, once. */
	unsigned place;
	unsigned kinds;	     /* those that have it: 1 << LUN_... */
	const char *refusal; /* of other kinds: the reason, and what to do */
};

/* cfg_rows returns the rows, in the order of iserd(8), and how many there
 * are. */
const struct cfg_row *cfg_rows(size_t *n);
/* cfg_kinds returns LUN_KINDS rows, by enum lun_kind. */
const struct cfg_kind *cfg_kinds(void);
/* cfg_suffixes returns the suffixes of a LUN, in the order of iserd(8), and how
 * many there are. */
const struct cfg_suffix *cfg_suffixes(size_t *n);

/* cfg_type_name returns the name of a type that "iserd schema" prints. */
const char *cfg_type_name(enum cfg_type type);
/* cfg_scope_name returns the name of a scope that "iserd schema" prints. */
const char *cfg_scope_name(enum cfg_scope scope);
/* cfg_apply_name returns the word that "iserd schema" prints for the time of a
 * change. */
const char *cfg_apply_name(enum cfg_apply apply);

#endif
