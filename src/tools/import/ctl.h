/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl.h: inside the importer of ctld. ctl_portal.c is about portal groups,
 * ctl_lun.c about LUNs, ctl_target.c about targets; ctl.c about auth groups and the
 * file. */
#ifndef TOOLS_IMPORT_CTL_H
#define TOOLS_IMPORT_CTL_H

#include <string.h>

#include "base/bytes.h"
#include "tools/import/settings.h"

struct ctl {
	struct import_model *m;
	struct import_portal
		*nowhere; /* of targets without an address, or NULL */
};

/* The scopes of the portal groups and the LUNs that the file defines by name; a LUN
 * that was left out is none of them. */
extern const char ctl_of_portal, ctl_of_lun;

/* ---- statements ---- */

typedef void ctl_take_value(struct ctl *l, void *arg, const struct tree *value);

/* ctl_is_key returns whether a statement has this keyword. */
bool ctl_is_key(const struct tree *t, const char *key);
/* ctl_text_of returns the text of a scalar, else "". */
const char *ctl_text_of(const struct tree *t);
/* ctl_each_value calls f for the value of a statement, or for each of them if it has
 * an array. */
void ctl_each_value(struct ctl *l, const struct tree *t, ctl_take_value *f,
		    void *arg);
/* ctl_word_of returns the nth word of a statement that the classic syntax writes as
 * words and UCL as an object with keys. */
const char *ctl_word_of(const struct tree *t, unsigned n, const char *key);

/* ---- access ---- */

/* The rules of an auth group, or of a target that has its own. */
struct ctl_rules {
	struct import_auth *auth;
	const char *type; /* of auth-type */
	bool is_unclear;  /* the file says two things */
};

/* ctl_take_rule returns whether the statement is an access rule, which r gets. */
bool ctl_take_rule(struct ctl *l, struct ctl_rules *r, const struct tree *t);
/* ctl_end_rules returns what ctld makes of the rules. */
const struct import_auth *ctl_end_rules(struct ctl *l, struct ctl_rules *r,
					const struct tree *at);
/* ctl_find_group returns the auth group of this name; one that admits no initiator,
 * after a note, if there is none. */
const struct import_auth *ctl_find_group(struct ctl *l, const struct tree *at,
					 const char *name);

/* ---- portal groups ---- */

/* A portal group of ctld. iserd has the transports by portal group, so that one
 * with TCP and iSER at different addresses becomes two. */
struct ctl_group {
	struct import_portal *tcp, *iser; /* or NULL */
	const char *redirect;		  /* NULL: it serves its targets */
	const char *unusable; /* why no target is served there, or NULL */
};

/* ctl_address_of takes ADDRESS or ADDRESS:PORT and returns the second form; NULL: it
 * is not numeric. */
const char *ctl_address_of(struct ctl *l, const char *text);
/* ctl_take_portal takes the section of a portal group. */
void ctl_take_portal(struct ctl *l, const struct tree *section);
/* ctl_default_portal makes the portal group that exists without being defined. */
const struct ctl_group *ctl_default_portal(struct ctl *l,
					   const struct tree *at);

/* ---- LUNs and targets ---- */

/* A LUN of the file: its backstore, and whether it is read-only even where the
 * backstore, which another LUN has, too, is not. */
struct ctl_lun {
	struct import_unit *unit;
	bool read_only, write_through;
};

/* ctl_take_lun takes the section of a LUN. NULL after a note. */
struct ctl_lun *ctl_take_lun(struct ctl *l, const struct tree *section,
			     const char *name);
/* ctl_take_target takes the section of a target. */
void ctl_take_target(struct ctl *l, const struct tree *section);

#endif
