/* SPDX-License-Identifier: BSD-2-Clause */
/* paths.h: relative paths in fields: those of a file begin in the directory of the file,
 * those of iserctl in its working directory. */
#ifndef DAEMON_CONFIG_PATHS_H
#define DAEMON_CONFIG_PATHS_H

#include <stddef.h>

#include "daemon/config/schema.h"

/* cfg_path_absolute writes text, a value of the field, with its relative path in this directory
 * to out (size bytes), as snprintf does. Returns the length that is needed; 0: the value has no
 * relative path. */
size_t cfg_path_absolute(const struct cfg_row *row, const char *text,
			 const char *folder, char *out, size_t size);
/* cfg_path_field returns the row of a field with this name, whose values are paths in each
 * noun that has it; NULL: there is none. */
const struct cfg_row *cfg_path_field(const char *name);

#endif
