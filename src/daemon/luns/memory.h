/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.h: whether memory can be a store. */
#ifndef DAEMON_LUNS_MEMORY_H
#define DAEMON_LUNS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* lun_memory_fits returns whether this machine has so many bytes of memory; if not, why
 * has the reason and what to do. */
bool lun_memory_fits(uint64_t bytes, char *why, size_t size);

#endif
