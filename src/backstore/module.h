/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module.h: stores that need large libraries are modules, which iserd loads
 * when a LUN uses such a store. A module exports one symbol, BS_MODULE_SYMBOL,
 * a struct bs_module.
 */
#ifndef BACKSTORE_MODULE_H
#define BACKSTORE_MODULE_H

#include "backstore/backstore.h"

#define BS_MODULE_ABI	 3
#define BS_MODULE_SYMBOL "openiser_store"

struct io_loop;
struct cluster_store;
struct cluster_store_events;

struct bs_module_config {
	const char *name;    /* the store as configured: "rbd:pool/image" */
	const char *operand; /* the name without its prefix */
	bool read_only;
	/* other processes may have the store open, too */
	bool shared;
	/* Several gateways share the store: `cluster` is called next, and its lock
	 * decides which gateway writes. Without the lock a write ends with
	 * ERR_TERMINATED, and so does every request after a fence. */
	bool clustered;
	/* Opening may wait, up to a minute, for the lock of a client that is
	 * gone. */
	bool may_wait;
	uint32_t block_size; /* bytes; bs_block_size_ok */
	/* Gets a sentence about the store, at any time until the store is
	 * closed, on any thread. */
	void (*say)(const char *sentence);
	/* loops[i] belongs to worker i; borrowed until the store is closed */
	struct io_loop *const *loops;
	unsigned nloops;
};

struct bs_module {
	uint32_t abi; /* BS_MODULE_ABI */
	/*
	 * Opens a store, which may take seconds. On failure it returns NULL,
	 * *err is -Exxx, and why (size bytes) gets a sentence: which store,
	 * what is wrong, what to do.
	 */
	struct bs *(*open)(const struct bs_module_config *cfg, int *err,
			   char *why, size_t size);
	/*
	 * Opens the record of an open, clustered store for the gateway `id`
	 * (cluster/store.h), which is closed before the store is. ev: NULL, or
	 * copied. Call-backs run on worker 0. Errors as those of open. NULL: this
	 * kind of store has no record.
	 */
	struct cluster_store *(*cluster)(struct bs *b, const char *id,
					 const struct cluster_store_events *ev,
					 int *err, char *why, size_t size);
};

#endif
