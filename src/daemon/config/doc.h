/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doc.h: a configuration as a JSON document, whose scalars are texts. A file and a
 * command line are read as documents (yaml.c, from_options.c), and verbs and patches
 * edit them; model_read.c makes a model and the canonical document of one. Also the
 * memory of models.
 */
#ifndef DAEMON_CONFIG_DOC_H
#define DAEMON_CONFIG_DOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/errors.h"

/* Memory that is freed as a whole. All zero: empty. */
struct cfg_arena {
	struct cfg_chunk *chunks;
	size_t left; /* bytes of the newest chunk that are not in use */
};

/* cfg_arena_alloc returns size bytes of zeros, which live until cfg_arena_free.
 * NULL: no memory. */
void *cfg_arena_alloc(struct cfg_arena *a, size_t size);
/* cfg_arena_text returns a copy of len bytes with a final NUL. NULL: no
 * memory. */
char *cfg_arena_text(struct cfg_arena *a, const char *text, size_t len);
/* cfg_arena_free frees all memory of the arena, which is empty then. */
void cfg_arena_free(struct cfg_arena *a);

/* A value that was left out, or is null or ~, stands in a document as a number: unlike
 * json_null(), each has an address, and so a place. */
#define CFG_DOC_NULL() json_integer(0)

static inline bool cfg_doc_is_null(const json_t *v)
{
	return json_is_integer(v);
}

/* Where a value of a file is; zeros: the program made the value. */
struct cfg_spot {
	const json_t *value;
	struct cfg_place key, at; /* key: of its name, in a mapping */
};

/* The places of the values of one document, which lives longer. All zero: none. The owner
 * frees v. */
struct cfg_places {
	struct cfg_spot *v;
	size_t n, room;
};

/* cfg_places_add adds a spot. False: no memory. */
bool cfg_places_add(struct cfg_places *p, const struct cfg_spot *s);
/* cfg_places_sort makes the spots known to cfg_spot_of. */
void cfg_places_sort(struct cfg_places *p);
/* cfg_spot_of returns the spot of a value, one of zeros if there is none. */
const struct cfg_spot *cfg_spot_of(const struct cfg_places *p, const json_t *v);

/* cfg_doc_split returns the texts between commas as a list. NULL: no memory. */
json_t *cfg_doc_split(const char *text);
/* cfg_doc_utf8 returns a copy for a client, in which a text that is not UTF-8 is null,
 * unless all must be there (whole). NULL: no memory, or one is not. */
json_t *cfg_doc_utf8(json_t *doc, bool whole);

#define CFG_VERSION_SIZE 17 /* bytes of a version with its NUL */

/* cfg_doc_version writes a hash of the document (FNV-1a of 64 bits) in hexadecimal:
 * two documents have the same one by accident only, once in 2^64 pairs, or because an
 * administrator made them so. */
void cfg_doc_version(json_t *doc, char out[CFG_VERSION_SIZE]);
/* cfg_doc_merge changes the document by the patch as RFC 7396 §2 says: null removes,
 * objects are merged, all else replaces; booleans and integers become texts. Returns
 * NULL, or what is wrong with the patch; then the document is partly changed. */
const char *cfg_doc_merge(json_t *doc, json_t *patch);

#endif
