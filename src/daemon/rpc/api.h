/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api.h: the methods of the management socket and their parameters, a row each:
 * iserd checks requests by them, and iserctl --help, iserctl(1), completion and
 * "methods" are made of them. Knows base/ only, since iserctl has it, too.
 */
#ifndef DAEMON_RPC_API_H
#define DAEMON_RPC_API_H

#include "base/opt.h"

#define RPC_PARAMS 3  /* of one method */
#define RPC_NUMBER 24 /* bytes of a number as text */

/* The parameters of all methods; a method has those that its rows name. */
struct rpc_args {
	unsigned id;
	uint64_t size; /* bytes */
	/* borrowed from the request, or in numbers */
	const char *lun, *path, *peer, *patch, *version, *target;
	unsigned level; /* enum trace_level */
	unsigned state; /* of group_states or rpc_port_states */
	/* of rpc_no_yes: false or true */
	unsigned preferred, force, dry_run;
	unsigned off; /* of rpc_on_off */
	/* which were given, by the order of the method's rows */
	bool given[RPC_PARAMS];
	char numbers[RPC_PARAMS][RPC_NUMBER]; /* the texts of numbers */
};

/* The words of the parameters, in the order of their numbers in rpc_args; NULL
 * ends each list. */
extern const char *const rpc_no_yes[],
	*const rpc_on_off[], *const rpc_port_states[], *const rpc_levels[];

struct rpc_param {
	struct opt_row opt; /* of struct rpc_args; without letter */
	bool optional;
	bool bare; /* the first one: iserctl takes it without "KEY=", too */
};

struct rpc_method {
	const char *name, *help;
	struct rpc_param params[RPC_PARAMS]; /* those with a name */
};

#define RPC_VERBS 6 /* of one noun */

/* A noun, for which iserd has a method "NOUN.VERB" for each verb. The parameters
 * are "name", "fields" (an object) and "dry-run"; rpc_verb says which. */
struct rpc_noun {
	const char *name;
	const char *arg; /* the form of its name; NULL: it has none */
	const char *help;
	const char *verbs[RPC_VERBS]; /* of rpc_verb_of; NULL: no more */
};

struct rpc_verb {
	const char *name, *help;
	bool has_name, has_fields, changes;
	bool may_have_name; /* without one: all of the noun */
	/* has_fields: the one that may be given; NULL: those of the noun */
	const char *key;
};

/* rpc_nouns returns the rows, in the order of iserctl(1), and how many. */
const struct rpc_noun *rpc_nouns(size_t *n);
/* rpc_noun_of returns the noun of this name, or NULL. */
const struct rpc_noun *rpc_noun_of(const char *name);
/* rpc_verb_of returns the verb of this name, or NULL. */
const struct rpc_verb *rpc_verb_of(const char *name);
/* rpc_noun_has returns whether the noun has the verb. */
bool rpc_noun_has(const struct rpc_noun *n, const char *verb);
/* rpc_methods returns the rows, in the order of iserctl(1), and how many. */
const struct rpc_method *rpc_methods(size_t *n);
/* rpc_method_of returns the method of this name, or NULL. */
const struct rpc_method *rpc_method_of(const char *name);
/* rpc_usage writes "id=ID [force=yes|no]" to out: always ended, cut off if it
 * does not fit. */
void rpc_usage(const struct rpc_method *m, char *out, size_t size);

#define RPC_UNKNOWN 400 /* bytes */

/* rpc_unknown returns whether iserd of this version has no method of this name, or no
 * NOUN.VERB; then out says what is near to it. */
bool rpc_unknown(const char *method, char out[RPC_UNKNOWN]);

#endif
