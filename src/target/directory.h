/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * directory.h: the directory of a target role: who may see and use what. It has
 * auth groups, portal groups and targets. A directory is built on worker 0 by
 * the functions below. It comes into force as a whole, by tgt_begin or
 * tgt_apply, which own it from then on, and is not changed any more.
 *
 * Groups and targets are named by the index that the function returned which
 * added them. Each function returns 0 or an index; or an error, whose text
 * tgt_directory_why returns: ERR_NOMEM, ERR_NOT_FOUND (no such index), and those
 * that its comment names. After an error the directory is unchanged.
 */
#ifndef TARGET_DIRECTORY_H
#define TARGET_DIRECTORY_H

#include "base/xtime.h"
#include "iscsi/login.h"

struct dev_map;
struct tgt;
struct tgt_directory;

/* tgt_directory_new returns a directory with the two auth groups below, or NULL:
 * out of memory. tgt_directory_free wipes its secrets and frees it, unless it has
 * come into force; NULL is ignored. */
struct tgt_directory *tgt_directory_new(void);
void tgt_directory_free(struct tgt_directory *d);

/* tgt_directory_why returns the reason of the last error, borrowed from d. */
const char *tgt_directory_why(const struct tgt_directory *d);

/* What belongs to the whole role; tgt_config has what is in force without it. Logins and
 * discovery sessions keep what they began with. */
struct tgt_settings {
	struct iscsi_params want;	 /* the limits of the negotiation */
	xtime discovery_time, slow_time; /* as of tgt_config */
};

/* tgt_directory_set makes a copy of the settings those of the directory. */
void tgt_directory_set(struct tgt_directory *d, const struct tgt_settings *s);

/* ---- auth groups ---- */

#define TGT_AUTH_ANY  0u /* admits every initiator, without CHAP */
#define TGT_AUTH_NONE 1u /* admits no initiator */

/* tgt_auth_group_add adds an auth group, which admits every initiator without
 * CHAP until the functions below restrict it. */
int tgt_auth_group_add(struct tgt_directory *d);
/* tgt_auth_group_account makes the group require CHAP, by a copy of this account
 * or by another one of the group. ERR_BUSY: it has an account of that name;
 * ERR_FORMAT: the name or the secret is empty. */
int tgt_auth_group_account(struct tgt_directory *d, unsigned group,
			   const struct iscsi_chap_secret *account);
/* tgt_auth_group_account_initiator binds the account that was added last to initiators
 * whose name matches this pattern or another one of the account. ERR_FORMAT: no
 * initiator has such a name; ERR_NOT_FOUND: the group has no account. */
int tgt_auth_group_account_initiator(struct tgt_directory *d, unsigned group,
				     const char *pattern);
/* tgt_auth_group_mutual sets the account (copied) by which the target proves
 * itself where the initiator requires that. ERR_BUSY: the group has one;
 * ERR_FORMAT: as above, or an account of the group has the same secret
 * (RFC 7143 §9.2.1). */
int tgt_auth_group_mutual(struct tgt_directory *d, unsigned group,
			  const struct iscsi_chap_secret *account);
/* tgt_auth_group_initiator makes the group admit only initiators whose name
 * matches this pattern or another one of the group (iscsi_pattern_prepare).
 * ERR_FORMAT: no initiator has such a name. */
int tgt_auth_group_initiator(struct tgt_directory *d, unsigned group,
			     const char *pattern);
/* tgt_auth_group_address makes the group admit only initiators whose address
 * begins with these bits, or those of another prefix of the group. An IPv4
 * address is given in its IPv6 form, ::ffff:a.b.c.d, with 96 more bits; a shorter
 * prefix admits IPv6 addresses only. ERR_RANGE: more than 128 bits. */
int tgt_auth_group_address(struct tgt_directory *d, unsigned group,
			   const uint8_t address[16], unsigned bits);
/* tgt_auth_group_algorithms restricts CHAP, both ways, to these algorithms: numbers
 * as in CHAP_A (RFC 7143 §12.1.3), "7,8"; copied. ERR_TOO_LONG. */
int tgt_auth_group_algorithms(struct tgt_directory *d, unsigned group,
			      const char *algorithms);

/* ---- portal groups ---- */

/* Which targets of the portal group SendTargets reports to an initiator. */
enum tgt_discovery {
	TGT_DISCOVERY_PERMITTED, /* those it may log in to */
	TGT_DISCOVERY_ALL,
	TGT_DISCOVERY_NONE,
};

struct tgt_portal_group_config {
	uint16_t tag; /* target portal group tag: names it (tgt_conn_info) */
	enum tgt_discovery discovery;
	unsigned discovery_auth; /* auth group of discovery sessions */
	bool announces; /* its addresses replace that of the connection: a
			 * router translates addresses */
};

/* tgt_portal_group_add: ERR_BUSY: another portal group has the tag. */
int tgt_portal_group_add(struct tgt_directory *d,
			 const struct tgt_portal_group_config *cfg);
/* tgt_portal_group_address adds an address ("10.0.0.1:3260") that SendTargets
 * reports besides that of the connection itself, or in its place. ERR_TOO_LONG. */
int tgt_portal_group_address(struct tgt_directory *d, unsigned group,
			     const char *address);

/* ---- targets ---- */

struct tgt_target_config {
	const char *name;  /* iqn., eui. or naa.; copied */
	const char *alias; /* copied; NULL: none */
	unsigned auth_group;
	bool prefer_digests; /* choose CRC32C if both are possible */
	bool strict_names;   /* of initiators; see iscsi_name_prepare */
	xtime data_time;     /* 0: as tgt_config.data_time */
	/* of a session; 0: as tgt_config.want */
	uint16_t max_connections;
	/* the LUN map of initiators for whom tgt_target_map gives no other,
	 * counted (dev_map_get); NULL: every unit, by its number */
	struct dev_map *map;
	/* admits no new session (0301h); its sessions go on, with logins that
	 * name their TSIH (RFC 7143 §6.3.5, §6.3.6) */
	bool drains;
};

/* tgt_target_add adds a target that no portal group has yet. ERR_FORMAT: not an
 * iSCSI name (RFC 7143 §4.2.7.2), or the alias is too long; ERR_BUSY: another
 * target has the name. */
int tgt_target_add(struct tgt_directory *d,
		   const struct tgt_target_config *cfg);
/* tgt_target_portal_group: the target can be reached through the portal group,
 * too. ERR_BUSY: it has been already. */
int tgt_target_portal_group(struct tgt_directory *d, unsigned target,
			    unsigned portal_group);

/* What certain initiators see of a target. */
struct tgt_map_config {
	/* patterns of their names (iscsi_pattern_prepare), 1 at least */
	const char *const *initiators;
	unsigned ninitiators;
	/* the account of CHAP by which they log in; NULL: any, or without CHAP */
	const char *account;
	struct dev_map *map; /* counted; NULL: every unit, by its number */
};

/* tgt_target_map gives certain initiators another LUN map. The first map of the target
 * that fits applies. *cfg is copied. ERR_FORMAT: no initiator has such a name. */
int tgt_target_map(struct tgt_directory *d, unsigned target,
		   const struct tgt_map_config *cfg);

/* Where initiators find a target instead of here (RFC 7143 §11.13.5). */
struct tgt_redirect_config {
	/* patterns of their names (iscsi_pattern_prepare); none: every one */
	const char *const *initiators;
	unsigned ninitiators;
	/* "HOST[:PORT]": values of TargetAddress, without a portal group tag
	 * (§13.8), 1 at least. Which of them an initiator gets depends on its name
	 * alone, so that it gets the same at each login. */
	const char *const *addresses;
	unsigned naddresses;
	bool permanent; /* 0102h, moved permanently; else 0101h */
};

/* tgt_target_redirect sends new logins of certain initiators, which the target
 * admits, to another address before they prove a secret. The first redirection of
 * the target that fits applies. *cfg is copied. ERR_FORMAT: no initiator has such a
 * name; ERR_TOO_LONG: an address. */
int tgt_target_redirect(struct tgt_directory *d, unsigned target,
			const struct tgt_redirect_config *cfg);

/* ---- in force ---- */

/*
 * tgt_begin brings a directory into force before the first connection; d belongs
 * to t afterwards. ERR_LIMIT: too many target ports; ERR_NOMEM. After an error d
 * is still the caller's. On worker 0.
 */
int tgt_begin(struct tgt *t, struct tgt_directory *d);

/*
 * Called on worker 0. done: the directory is in force on every worker, and the
 * previous one is freed. settled, later: no session or task uses what only earlier
 * directories had; sessions that the directory does not permit have ended. NULL:
 * not needed.
 */
struct tgt_apply_events {
	void (*done)(void *arg);
	void (*settled)(void *arg);
	void *arg;
};

/*
 * tgt_apply brings a directory into force while sessions exist; d belongs to t
 * afterwards. A session whose target it does not have, or which it does not permit
 * any more (auth group, portal group), is asked to log out (Async Message, RFC 7143
 * §11.9.1) and dropped after logout_time; others notice nothing. Secrets concern
 * new logins only. ERR_BUSY: the done of an earlier call is still to come;
 * ERR_LIMIT, ERR_NOMEM: after an error d is still the caller's, and nothing has
 * changed. On worker 0.
 */
int tgt_apply(struct tgt *t, struct tgt_directory *d,
	      const struct tgt_apply_events *events);

#endif
