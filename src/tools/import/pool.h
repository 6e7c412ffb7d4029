/* SPDX-License-Identifier: BSD-2-Clause */
/* pool.h: memory of an importer, which is released as a whole. */
#ifndef TOOLS_IMPORT_POOL_H
#define TOOLS_IMPORT_POOL_H

#include <stdarg.h>
#include <stddef.h>

struct pool_block;
struct pool_slot;

/* Zeroed before the first use. */
struct pool {
	struct pool_block *blocks;
	/* the entries of pool_put, by the hash of their keys */
	struct pool_slot *slots;
	size_t nslots, nused;
};

/* pool_no_memory ends the program. */
_Noreturn void pool_no_memory(void);
/* pool_alloc returns size bytes of zeros, which belong to the pool. It ends the
 * program if there is no memory. */
void *pool_alloc(struct pool *p, size_t size);
/* pool_copy returns a copy of len bytes with a final NUL. */
char *pool_copy(struct pool *p, const char *text, size_t len);
/* pool_format returns a string made as by printf. */
char *pool_format(struct pool *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* pool_vformat does the same with a list of arguments. */
char *pool_vformat(struct pool *p, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
/* pool_put stores a value under a key, which must last as long as the pool, and
 * replaces an earlier value. Keys of different scopes are different keys; a scope
 * is any address. */
void pool_put(struct pool *p, const void *scope, const char *key, void *value);
/* pool_get returns the value of a key, or NULL. */
void *pool_get(const struct pool *p, const void *scope, const char *key);
/* pool_free overwrites and frees everything that the pool has given out: the
 * text that is imported contains secrets. */
void pool_free(struct pool *p);

#endif
