/* SPDX-License-Identifier: BSD-2-Clause */
/* merge.h: the tree of a configuration as JSON, and JSON merge patches (RFC 7396)
 * for it. */
#ifndef DAEMON_RPC_MERGE_H
#define DAEMON_RPC_MERGE_H

#include <jansson.h>

#include "daemon/config/node.h"

#define RPC_VERSION_SIZE 17 /* bytes of a version with its NUL */

/* rpc_tree_json returns the tree with all scalars as strings, which the caller
 * releases. A scalar that is null or not UTF-8 is null, unless all must be there
 * (whole). NULL: no memory, or one is not. */
json_t *rpc_tree_json(const struct cfg_node *n, bool whole);
/* rpc_tree_version writes a hash of the tree (FNV-1a of 64 bits) in hexadecimal:
 * two trees have the same one by accident only, once in 2^64 pairs, or because an
 * administrator made them so. */
void rpc_tree_version(const struct cfg_node *n, char out[RPC_VERSION_SIZE]);
/* rpc_tree_merge changes the mapping n, whose memory is in a, by the patch as
 * RFC 7396 §2 says: null removes, objects are merged, all else replaces. Returns
 * NULL, or what is wrong with the patch; then n is partly changed. */
const char *rpc_tree_merge(struct cfg_arena *a, struct cfg_node *n,
			   const json_t *patch);

#endif
