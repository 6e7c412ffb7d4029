/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.c: see memory.h. */
#include "daemon/luns/memory.h"

#include <stdio.h>
#include <sys/sysinfo.h>

bool lun_memory_fits(uint64_t bytes, char *why, size_t size)
{
	struct sysinfo si;
	uint64_t total;

	if (sysinfo(&si))
		return true;
	total = ((uint64_t)si.totalram + si.totalswap) * si.mem_unit;
	if (bytes <= total)
		return true;
	snprintf(why, size,
		 "larger than the memory of this machine (%llu MiB); give a "
		 "smaller size",
		 (unsigned long long)(total >> 20));
	return false;
}
