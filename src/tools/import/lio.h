/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lio.h: inside the importer of LIO. lio_storage.c makes backstores of storage
 * objects; lio_access.c makes an auth group and maps of the access rules of a
 * target portal group (TPG); lio_portals.c makes portal groups; lio.c is about
 * targets and the file.
 */
#ifndef TOOLS_IMPORT_LIO_H
#define TOOLS_IMPORT_LIO_H

#include <string.h>

#include "base/bytes.h"
#include "tools/import/settings.h"

struct lio_place;

struct lio {
	struct import_model *m;
	struct lio_place *places, *last_place;
	unsigned nplaces;
};

/* ---- texts of the tree ---- */

/* lio_is_on returns whether a text is a boolean that is set. */
bool lio_is_on(const char *text);
/* lio_flag returns a member that is true or false, or 1 or 0. otherwise: without
 * the member; narrow: for another value, after a note. */
bool lio_flag(struct lio *l, const struct tree *t, const char *key,
	      bool otherwise, bool narrow);
/* lio_text_or returns the text of a member, or another one if there is none. */
const char *lio_text_or(const struct tree *t, const char *key,
			const char *otherwise);
/* lio_children returns the first element of an array that is a member; NULL: there
 * is none. */
const struct tree *lio_children(const struct tree *t, const char *key);
/* lio_index reads a number from 0 to 65535. False after a note. */
bool lio_index(struct lio *l, const struct tree *t, const char *key,
	       unsigned long *v);

/* ---- the parts ---- */

/* lio_take_storages makes a backstore of each storage object of the file. */
void lio_take_storages(struct lio *l, const struct tree *file);
/* lio_unit_of returns the backstore of a LUN of a TPG, and whether its storage
 * object is read-only; NULL after a note. */
struct import_unit *lio_unit_of(struct lio *l, const struct tree *lun,
				unsigned long number, bool *read_only);
/* What the attributes of a TPG permit. */
struct lio_access {
	bool demo; /* initiators without an ACL may log in */
	bool chap; /* they must log in by CHAP; so must those of an ACL that
		    * does not say it */
	bool demo_read_only, mapped_read_only;
};

/* lio_access_of reads the attributes of a TPG, with the kernel's defaults. */
struct lio_access lio_access_of(struct lio *l, const struct tree *tpg);
/* lio_take_access gives a target the auth group and the maps of a TPG, after its
 * LUNs. */
void lio_take_access(struct lio *l, struct import_target *t,
		     const struct tree *tpg, struct lio_access access);
/* lio_take_discovery returns the auth group of discovery sessions; NULL: any. */
const struct import_auth *lio_take_discovery(struct lio *l,
					     const struct tree *file);
/* lio_take_portals lets a target listen at the portals of a TPG. */
void lio_take_portals(struct lio *l, struct import_target *t,
		      const struct tree *tpg);
/* lio_make_portals makes one portal group of the addresses that the same targets
 * use, once all targets are known. */
void lio_make_portals(struct lio *l, const struct import_auth *discovery);

#endif
