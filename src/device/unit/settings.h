/* SPDX-License-Identifier: BSD-2-Clause */
/* settings.h: what the administrator can change of a unit in use. */
#ifndef DEVICE_SETTINGS_H
#define DEVICE_SETTINGS_H

#include "device/unit/unit.h"

/* dev_settings_init puts the settings of lu->cfg in force for a new unit, whose UUID is
 * known. ERR_NOMEM. */
int dev_settings_init(struct dev_lu *lu);
/* dev_settings_fini frees them, when no worker uses the unit. */
void dev_settings_fini(struct dev_lu *lu);
/* dev_names_of returns the names of the unit, valid until the end of the turn. On any
 * worker. */
const struct dev_names *dev_names_of(const struct dev_lu *lu);

#endif
