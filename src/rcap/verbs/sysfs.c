/* SPDX-License-Identifier: BSD-2-Clause */
/* sysfs.c: whether the kernel part of RDMA is loaded. Checked every few seconds
 * before libibverbs is called, which would make the kernel load modules. */
#include <unistd.h>

#include "rcap/verbs/internal.h"

bool verbs_class_exists(void)
{
	return access("/sys/class/infiniband_verbs", F_OK) == 0;
}
