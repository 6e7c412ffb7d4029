/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entries.h: the entries of a directory (directory.h), as directory.c builds them
 * and access.c reads them. Constant once the directory is in force.
 */
#ifndef TARGET_ENTRIES_H
#define TARGET_ENTRIES_H

#include "base/list.h"
#include "device/env.h"
#include "iscsi/chap.h"
#include "target/directory.h"

struct tgt_node;

/* ---- a hash table of names ---- */

struct tgt_named {
	struct tgt_named *next;
	const char *name; /* owned by the entry that embeds this */
};

struct tgt_names {
	struct tgt_named **chains;
	unsigned nchains, n;
};

/* tgt_names_find returns the entry with that name, or NULL. */
struct tgt_named *tgt_names_find(const struct tgt_names *t, const char *name);
/* tgt_names_add adds an entry whose name the table does not have; it must not
 * move. ERR_NOMEM. */
int tgt_names_add(struct tgt_names *t, struct tgt_named *e);
/* tgt_names_fini frees the table, not its entries. */
void tgt_names_fini(struct tgt_names *t);

/* ---- entries ---- */

/* A list of patterns, which it owns. */
struct tgt_patterns {
	char **list;
	unsigned n;
};

struct tgt_account {
	struct list link; /* tgt_auth_group.accounts */
	struct iscsi_chap_secret secret;
	struct tgt_patterns initiators; /* none: every name */
};

struct tgt_prefix {
	uint8_t address[16];
	unsigned bits;
};

struct tgt_auth_group {
	bool admits_none;		/* TGT_AUTH_NONE */
	struct list accounts;		/* empty: no CHAP */
	struct tgt_account *mutual;	/* or NULL */
	char algorithms[CHAP_LIST_MAX]; /* of CHAP, as in CHAP_A; "": all */
	struct tgt_patterns initiators; /* none: every name */
	struct tgt_prefix *addresses;	/* none: every address */
	unsigned naddresses;
};

struct tgt_portal_group {
	struct tgt_portal_group_config cfg;
	char **addresses;
	unsigned naddresses;
};

/* A target port: a target in a portal group. */
struct tgt_port {
	unsigned portal_group; /* index */
	uint16_t rtpi;	       /* set when the directory comes into force */
};

/* The LUN map of some initiators. */
struct tgt_mask {
	struct tgt_patterns initiators;
	char *account;	     /* of CHAP; NULL: any, or none */
	struct dev_map *map; /* counted */
};

/* A redirection of some initiators. */
struct tgt_redirect {
	struct tgt_patterns initiators; /* none: every one */
	char **addresses;
	unsigned naddresses;
	bool permanent;
};

struct tgt_target {
	struct tgt_named named;
	struct tgt_target_config cfg; /* name and alias: its own copies */
	struct tgt_mask *masks;
	unsigned nmasks;
	struct tgt_redirect *redirects;
	unsigned nredirects;
	struct tgt_port *ports;
	unsigned nports;
	struct tgt_node *node; /* set when the directory comes into force */
};

struct tgt_directory {
	struct tgt_auth_group **auth_groups;
	unsigned nauth_groups;
	struct tgt_portal_group **portal_groups;
	unsigned nportal_groups;
	struct tgt_target **targets;
	unsigned ntargets;
	struct tgt_names names; /* of the targets */
	bool has_settings;
	struct tgt_settings settings;
	char why[200];
};

/* tgt_directory_target returns the target with that name, in the form of
 * iscsi_name_prepare, or NULL. */
const struct tgt_target *tgt_directory_target(const struct tgt_directory *d,
					      const char *name);
/* tgt_directory_portal_group returns the portal group with that tag, or NULL. */
const struct tgt_portal_group *
tgt_directory_portal_group(const struct tgt_directory *d, unsigned tag);
/* tgt_target_port returns the port of the target in the portal group with that
 * tag, or NULL. */
const struct tgt_port *tgt_target_port(const struct tgt_directory *d,
				       const struct tgt_target *t,
				       unsigned tag);

#endif
