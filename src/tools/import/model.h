/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model.h: a configuration of iserd as an importer makes it, and the notes on
 * what could not be carried over. All members belong to the pool of the model.
 */
#ifndef TOOLS_IMPORT_MODEL_H
#define TOOLS_IMPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/import/pool.h"
#include "tools/import/tree.h"

#define IMPORT_LUN_MAX	   16383u
#define IMPORT_TARGETS_MAX 4096u
#define IMPORT_UNITS_MAX   16384u
#define IMPORT_NOTES_MAX   10000u
#define IMPORT_SECRET_MIN  12u /* bytes that iserd takes as a CHAP secret */
#define IMPORT_SECRET_MAX  128u
#define IMPORT_SECRETS_DIR "/etc/iserd/secrets"

enum import_cache {
	CACHE_DEFAULT,
	CACHE_WRITE_THROUGH
};
enum import_bool {
	BOOL_DEFAULT,
	BOOL_NO,
	BOOL_YES
};

struct import_text {
	struct import_text *next;
	const char *text;
};

/* A list of texts in their order. */
struct import_texts {
	struct import_text *first, *last;
	unsigned n;
};

/* A backstore with its unit. */
struct import_unit {
	struct import_unit *next;
	const struct tree *at; /* where the file defines it */
	const char *name;
	const char *store; /* as in "store:": a path, ram:SIZE ... */
	bool read_only, removable;
	unsigned block_size;				  /* 0: the default */
	const char *serial, *vendor, *product, *revision; /* or NULL */
	const char *naa, *eui; /* hexadecimal digits, or NULL */
	enum import_bool rotational;
	enum import_cache cache;
	const char *size; /* that the file gives; NULL: it does not */
};

/* A name and a secret of CHAP. */
struct import_account {
	struct import_account *next;
	const struct tree *at;
	const char *user, *secret;
	struct import_texts initiators; /* that may use it; none: all */
	unsigned number;		/* in its group, from 1 on */
	/* set by import_name_secrets */
	const char *file;
	bool is_unusable; /* iserd would refuse the secret */
};

struct import_auth {
	struct import_auth *next, *prev;
	const char *name; /* "any" and "none" are built in */
	struct import_account *accounts, *last_account, *mutual;
	struct import_texts initiators, addresses;
	/* the file restricts access so, even if the lists are empty because
	 * their entries cannot be carried over: the group then admits no
	 * initiator */
	bool by_account, by_name, by_address;
};

struct import_portal {
	struct import_portal *next;
	const struct tree *at;
	const char *name;
	unsigned tag;
	struct import_texts listen;
	const char *transport; /* words, or NULL: the default */
	const char *discovery; /* a word, or NULL: the default */
	const struct import_auth *discovery_auth; /* NULL: any */
};

struct import_lun {
	struct import_lun *next;
	unsigned number;
	const struct import_unit *unit;
	bool read_only;
	bool is_fixed; /* read-only for each initiator, whatever its map says */
};

/* A map of LUNs, in the order of their numbers. */
struct import_luns {
	struct import_lun *first, *last;
	unsigned n;
};

/* What some initiators see instead of the LUNs of the target. */
struct import_map {
	struct import_map *next;
	struct import_texts initiators;
	const char *account; /* with which they must log in, or NULL */
	struct import_luns luns;
};

struct import_target {
	struct import_target *next, *prev;
	const struct tree *at;
	const char *name, *alias;
	const struct import_auth *auth;
	struct import_texts portals; /* names of portal groups */
	struct import_luns luns;
	struct import_map *maps, *last_map;
	bool prefers_digests;
	unsigned max_connections;      /* 0: the default */
	unsigned long number;	       /* for iser-tgtadm; 0: the default */
	struct import_texts redirects; /* addresses */
};

struct import_note {
	struct import_note *next;
	const char *file;
	unsigned line;
	const char *text;
};

struct import_model {
	struct pool pool;
	const char *format;	 /* "tgt", "lio" or "ctl" */
	const char *secrets_dir; /* where the secret files are, or will be */
	struct import_unit *units, *last_unit;
	struct import_auth *auths, *last_auth;
	struct import_portal *portals, *last_portal;
	struct import_target *targets, *last_target;
	unsigned nunits, ntargets, last_tag;
	unsigned recovery_level; /* ErrorRecoveryLevel of all targets */
	struct import_note *notes, *last_note;
	unsigned nnotes; /* also those after IMPORT_NOTES_MAX, which are lost */
};

/* import_any and import_none are the built-in auth groups. */
extern const struct import_auth import_any, import_none;

/* import_note records that something at a place of the file was not carried
 * over. The text is "WHAT: why; what to do". A note with the same text and line
 * as an earlier one is not recorded again. */
void import_note(struct import_model *m, const struct tree *at,
		 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* import_texts_add appends a text, which must last as long as the model;
 * import_texts_have returns whether an equal text is in the list. */
void import_texts_add(struct import_model *m, struct import_texts *list,
		      const char *text);
bool import_texts_have(const struct import_model *m,
		       const struct import_texts *list, const char *text);

/* import_unit_new returns a new backstore, with a name made from the given one
 * so that it is valid and unique; NULL, after a note, if there are too many. */
struct import_unit *import_unit_new(struct import_model *m,
				    const struct tree *at, const char *name,
				    const char *store);
/* import_unit_of returns the backstore of a store, or NULL. */
struct import_unit *import_unit_of(const struct import_model *m,
				   const char *store);
/* import_auth_new returns a new auth group, named after the given name. */
struct import_auth *import_auth_new(struct import_model *m, const char *name);
/* import_auth_done returns what a target with this group gets: a is still
 * without a restriction: import_any; all entries of a restriction could not be
 * carried over: import_none, after a note; else a. */
const struct import_auth *import_auth_done(struct import_model *m,
					   const struct tree *at,
					   struct import_auth *a);
/* import_auth_drop takes a group that no target needs off the list. */
void import_auth_drop(struct import_model *m, struct import_auth *a);
/* import_auth_account adds an account for an initiator, a name of import_initiator;
 * NULL: for all. Returns the account, or NULL, after a note, if the user is known with
 * another secret. import_auth_mutual sets the account by which the target proves
 * itself, or notes that it has another one. */
const struct import_account *
import_auth_account(struct import_model *m, struct import_auth *a,
		    const struct tree *at, const char *user, const char *secret,
		    const char *initiator);
void import_auth_mutual(struct import_model *m, struct import_auth *a,
			const struct tree *at, const char *user,
			const char *secret);
/* import_initiator returns the name of an initiator as iserd compares it, or NULL
 * after a note. */
const char *import_initiator(struct import_model *m, const struct tree *at,
			     const char *name);
/* import_auth_name adds the name of an initiator, import_auth_address an
 * address with or without a prefix length. An invalid name or address is left
 * out, with a note. */
void import_auth_name(struct import_model *m, struct import_auth *a,
		      const struct tree *at, const char *name);
void import_auth_address(struct import_model *m, struct import_auth *a,
			 const struct tree *at, const char *address);
/* import_listen returns ADDR:PORT for "listen:", or NULL if it is not a numeric
 * address and a port. */
const char *import_listen(struct import_model *m, const char *address,
			  const char *port);
/* import_portal_of returns the portal group that listens at an address, or NULL;
 * import_portal_listen adds an address to a group. */
const struct import_portal *import_portal_of(const struct import_model *m,
					     const char *address);
void import_portal_listen(struct import_model *m, struct import_portal *p,
			  const char *address);
/* import_portal_tag gives a portal group a tag. False: another group has it. */
bool import_portal_tag(struct import_model *m, struct import_portal *p,
		       unsigned tag);
/* import_portal_new returns a new portal group with the next free tag. */
struct import_portal *import_portal_new(struct import_model *m,
					const struct tree *at,
					const char *name);
/* import_check_portals leaves out all addresses ("0.0.0.0" or "[::]") of a portal
 * group where another group has one of them with the same port, because a machine
 * with Linux has one listener then; a group without an address gets one that no
 * other machine reaches. */
void import_check_portals(struct import_model *m);
/* import_target_new returns a new target; NULL, after a note, if the name is
 * not one of iSCSI, is known already, or if there are too many. */
struct import_target *import_target_new(struct import_model *m,
					const struct tree *at,
					const char *name);
/* import_target_drop takes a target that cannot be served off the list. */
void import_target_drop(struct import_model *m, struct import_target *t);
/* import_lun_add adds a LUN to a map, and returns it. NULL, after a note: the
 * number or the unit is in the map already or the number is too large. */
struct import_lun *import_lun_add(struct import_model *m,
				  struct import_luns *luns,
				  const struct tree *at, unsigned long number,
				  const struct import_unit *unit,
				  bool read_only);
/* import_lun_find returns the LUN of a map, or NULL. The map must be at the place
 * where import_lun_add found it. */
const struct import_lun *import_lun_find(const struct import_model *m,
					 const struct import_luns *luns,
					 unsigned long number);
/* import_map_add returns a new map of the target for one initiator. */
struct import_map *import_map_add(struct import_model *m,
				  struct import_target *t,
				  const char *initiator);

/* import_number reads a decimal or, after 0x, hexadecimal number. */
bool import_number(const char *text, unsigned long max, unsigned long *v);
/* import_memory returns "store:" for memory of a size, KIND:SIZE, or NULL after a
 * note. */
const char *import_memory(struct import_model *m, const struct tree *at,
			  const char *kind, const char *size);
/* import_block_size sets the block size of a unit, or notes that iserd does
 * not have this size. */
void import_block_size(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *text);

/* import_path returns "store:" for a path after a prefix, or NULL after a note: there
 * is no path, or iserd would take it for something else. */
const char *import_path(struct import_model *m, const struct tree *at,
			const char *prefix, const char *path);
/* import_rbd returns "store:" for an image of Ceph, "POOL/IMAGE;conf=FILE;id=NAME"
 * with any number of options, or NULL after a note. */
const char *import_rbd(struct import_model *m, const struct tree *at,
		       const char *image);
/* import_alias sets the alias of a target, or notes that iserd would refuse it. */
void import_alias(struct import_model *m, struct import_target *t,
		  const struct tree *at, const char *alias);
/* The next three take a key of negotiation (RFC 7143 §13); at NULL: the file does
 * not have it.
 * import_max_connections sets MaxConnections of a target, if it is less than
 * before; import_recovery_level raises ErrorRecoveryLevel, which is one for all
 * targets; import_demand_digests is for a target that accepts CRC32C only. */
void import_max_connections(struct import_model *m, struct import_target *t,
			    const struct tree *at);
void import_recovery_level(struct import_model *m, struct import_target *t,
			   const struct tree *at);
void import_demand_digests(struct import_model *m, struct import_target *t,
			   const struct tree *at);
/* import_set_naa gives a unit an NAA identifier, unless it is not valid or another
 * unit has it. */
void import_set_naa(struct import_model *m, struct import_unit *u,
		    const struct tree *at, const char *digits);
/* import_naa_of_lio gives a unit the NAA identifier that LIO makes of a serial
 * number: IEEE Registered Extended (SPC-4 §7.8.6.6.6) with a company id, NULL: that
 * of LIO, and the first 25 hexadecimal digits. Of a number with few digits, it notes
 * the identifier, which other disks may have. */
void import_naa_of_lio(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *company,
		       const char *serial);
/* import_naa_of_tgt does so with the NAA identifier that tgt makes of scsi_id. */
void import_naa_of_tgt(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *scsi_id);
/* import_note_names notes once that units whose file has no identifier (without) get
 * new names; how: what keeps the old ones. */
void import_note_names(struct import_model *m, const char *without,
		       const char *how);
extern const char import_give_naa[];
/* import_naa_of_ctl and import_eui_of_ctl give a unit the identifier of an option of
 * CTL: hexadecimal digits after 0x. */
void import_naa_of_ctl(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *text);
void import_eui_of_ctl(struct import_model *m, struct import_unit *u,
		       const struct tree *at, const char *text);
/* import_check_units cuts the identities that are longer than the fields of
 * INQUIRY, and removes those that a SCSI device has itself, with a note. */
void import_check_units(struct import_model *m);

/* The importers. Each fills m from a tree that tree.h describes. */
void import_tgt(struct import_model *m, const struct tree *file);
void import_lio(struct import_model *m, const struct tree *file);
void import_ctl(struct import_model *m, const struct tree *file);

/* import_name_secrets chooses the file of each secret in m->secrets_dir, and
 * notes which secrets cannot be used. */
void import_name_secrets(struct import_model *m);
/* import_write_secrets writes each usable secret to its file, which must not
 * exist. Returns 0, or an exit status after a message; the files that it has
 * made are then removed. */
int import_write_secrets(struct import_model *m);
/* import_print_missing prints each secret file that the administrator has to
 * make. */
void import_print_missing(const struct import_model *m, FILE *out);

/* import_print_yaml prints the configuration file of iserd. */
void import_print_yaml(const struct import_model *m, FILE *out);
/* import_print_notes prints FILE:LINE: NOTE for each note. */
void import_print_notes(const struct import_model *m, FILE *out);

#endif
