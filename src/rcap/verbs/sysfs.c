/* SPDX-License-Identifier: BSD-2-Clause */
/* sysfs.c: whether the kernel's part is loaded. Asked before libibverbs is,
 * every few seconds: that one would have the kernel load modules. */
#include <unistd.h>

#include "rcap/verbs/internal.h"

bool verbs_class_exists(void)
{
	return access("/sys/class/infiniband_verbs", F_OK) == 0;
}
