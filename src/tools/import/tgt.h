/* SPDX-License-Identifier: BSD-2-Clause */
/* tgt.h: inside the importer of tgt. tgt_store.c makes backstores and LUNs of the
 * stores of a target; tgt.c is about targets, access and the file. */
#ifndef TOOLS_IMPORT_TGT_H
#define TOOLS_IMPORT_TGT_H

#include <string.h>

#include "base/bytes.h"
#include "tools/import/settings.h"

/* tgt_is_key returns whether a directive has this name. */
bool tgt_is_key(const struct tree *t, const char *key);
/* tgt_is_store returns whether a directive is a store. */
bool tgt_is_store(const struct tree *t);
/* tgt_take_stores gives a target the LUNs of its block. */
void tgt_take_stores(struct import_model *m, struct import_target *t,
		     const struct tree *block);

#endif
