/* SPDX-License-Identifier: BSD-2-Clause */
/* paths.h: relative paths in fields: those of a file begin in the directory of the file,
 * those of iserctl in its working directory. */
#ifndef DAEMON_CONFIG_PATHS_H
#define DAEMON_CONFIG_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/schema.h"

/* cfg_path_relative returns whether text, a value of the field, is a relative path; *at
 * is where the path begins. */
bool cfg_path_relative(const struct cfg_row *row, const char *text, size_t *at);
/* cfg_path_field returns the row of a field with this name, whose values are paths in each
 * noun that has it; NULL: there is none. */
const struct cfg_row *cfg_path_field(const char *name);

#endif
