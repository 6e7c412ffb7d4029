/* SPDX-License-Identifier: BSD-2-Clause */
/* image.h: checks of files that can be opened but may be wrong as LUNs. */
#ifndef DAEMON_LUNS_IMAGE_H
#define DAEMON_LUNS_IMAGE_H

#include <stdbool.h>

/* image_warn warns if path begins like a container of a virtual disk (qcow2,
 * VMDK, VHDX, ...), whose bytes would be served as they are. */
void image_warn(const char *path);
/* image_is_same returns whether both paths are one file or block device. */
bool image_is_same(const char *path, const char *other);

#endif
