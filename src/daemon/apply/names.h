/* SPDX-License-Identifier: BSD-2-Clause */
/* names.h: whether the backstores of a configuration have different names. */
#ifndef DAEMON_APPLY_NAMES_H
#define DAEMON_APPLY_NAMES_H

#include "daemon/config/model.h"

struct dev_lu_config;
struct unit;

/*
 * unit_names_check adds an error for each backstore of m that has the identity or a name (serial
 * number, NAA identifier, EUI-64) of another one, which is another store: initiators
 * would take both for one disk. units[i], or NULL, is the unit of backstore i; units NULL:
 * there are none. Without its unit a backstore has the names that follow from its fields.
 * On worker 0, if there are units.
 */
void unit_names_check(const struct cfg_model *m, struct unit *const *units,
		      struct cfg_errors *e);

/* unit_config returns what b says of a unit; without its number and type. */
struct dev_lu_config unit_config(const struct cfg_backstore *b);

#endif
