/* SPDX-License-Identifier: BSD-2-Clause */
/* fields.h: what a configuration file can say, for tools that write about it. */
#ifndef DAEMON_CONFIG_FIELDS_H
#define DAEMON_CONFIG_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

/* cfg_field_text writes "field NAME of a NOUN (HELP)" to out. name: the name of a
 * field, or that name in another spelling, as of letters without dashes; noun: the
 * noun that has the field, such as "target"; NULL: any. False: there is no such
 * field. */
bool cfg_field_text(const char *noun, const char *name, char *out, size_t size);
/* cfg_field_max returns the largest number that a field takes; 0: there is no such
 * field. */
unsigned long cfg_field_max(const char *noun, const char *name);
/* cfg_store_prefix returns the prefix of a kind of store, such as "rbd:" for "rbd";
 * NULL: there is no such kind. */
const char *cfg_store_prefix(const char *kind);
/* cfg_is_path returns whether a store is the path of a file or block device. */
bool cfg_is_path(const char *store);
/* cfg_store_suffix returns the name of the suffix of a LUN on a command line that a
 * store has, for example "key"; NULL: it has none. */
const char *cfg_store_suffix(const char *store);

#endif
