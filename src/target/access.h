/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * access.h: who may see and use what: the decisions, from a directory and what
 * is known of an initiator. No other file decides.
 */
#ifndef TARGET_ACCESS_H
#define TARGET_ACCESS_H

#include "target/entries.h"

/* An initiator, as the target knows it. */
struct tgt_visitor {
	const char *initiator; /* its name, from iscsi_name_prepare */
	/* the account of CHAP that it has proven; "": none, or not yet */
	const char *account;
	const uint8_t *address; /* 16 bytes; IPv4: ::ffff:a.b.c.d */
	unsigned portal_group;	/* tag: through which its connection came */
};

/* What a directory says of an initiator and a target, or of discovery. */
struct tgt_ruling {
	uint16_t status; /* enum iscsi_login_status */
	const char *why; /* NULL if status is ISCSI_LOGIN_SUCCESS; else the other
			  * members may be NULL */
	const struct tgt_target *target; /* NULL: discovery */
	const struct tgt_port *port;	 /* of the target */
	const struct tgt_auth_group *auth;
	/* the LUN map; NULL: every unit, by its number; or discovery */
	struct dev_map *map;
	/* the address at which the initiator has to log in instead, or NULL */
	const char *redirect;
	bool permanent; /* of the redirection */
};

/* tgt_access_ask decides on a login of v to the target with this name, or on a
 * discovery session (NULL). What it points to is borrowed from d. */
struct tgt_ruling tgt_access_ask(const struct tgt_directory *d,
				 const struct tgt_visitor *v,
				 const char *target);
/* tgt_access_login decides whether the initiator may log in to the target, which
 * is NULL if no target has the name. Returns enum iscsi_login_status and, unless
 * that is ISCSI_LOGIN_SUCCESS, the reason in *why. */
uint16_t tgt_access_login(const struct tgt_directory *d,
			  const struct tgt_visitor *v,
			  const struct tgt_target *t, const char **why);
/* tgt_access_discovery decides on a discovery session, likewise. */
uint16_t tgt_access_discovery(const struct tgt_directory *d,
			      const struct tgt_visitor *v, const char **why);
/* tgt_access_shows decides whether SendTargets in a discovery session reports the
 * target. */
bool tgt_access_shows(const struct tgt_directory *d,
		      const struct tgt_visitor *v, const struct tgt_target *t);
/* tgt_access_auth returns the auth group of a target or, with t NULL, that of
 * discovery sessions through v's portal group, which exists. */
const struct tgt_auth_group *tgt_access_auth(const struct tgt_directory *d,
					     const struct tgt_visitor *v,
					     const struct tgt_target *t);
/* tgt_access_needs_chap returns whether the group has accounts. */
bool tgt_access_needs_chap(const struct tgt_auth_group *g);
/* tgt_access_account returns the secret of the account with this name, if this initiator
 * may use it, or NULL. The time does not depend on which of the accounts it is. */
const struct iscsi_chap_secret *
tgt_access_account(const struct tgt_auth_group *g, const char *name,
		   const char *initiator);
/* tgt_access_proven returns whether the group permits a session of v, by its account or
 * without CHAP. */
bool tgt_access_proven(const struct tgt_auth_group *g,
		       const struct tgt_visitor *v);

#endif
