/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.h: the common part of ram.c and null.c. Private to this room. */
#ifndef BACKSTORE_MEMORY_H
#define BACKSTORE_MEMORY_H

#include "backstore/backstore.h"

/* bs_memory_init fills the common part of a store without a write cache whose
 * requests complete within submit; its UUID is derived from name and size. */
void bs_memory_init(struct bs *b, const struct bs_ops *ops, const char *name,
		    uint64_t size, uint32_t block_size);

#endif
