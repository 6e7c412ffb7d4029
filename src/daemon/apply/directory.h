/* SPDX-License-Identifier: BSD-2-Clause */
/* directory.h: from a configuration to the directory of the target role. */
#ifndef DAEMON_APPLY_DIRECTORY_H
#define DAEMON_APPLY_DIRECTORY_H

#include "daemon/config/model.h"
#include "target/directory.h"

struct daemon;
struct portal;
struct unit;

/* directory_new makes the directory of a configuration, with the secrets that it
 * reads; units[i] is that of backstore i, and portals[i] of portal group i. NULL: e
 * has the reason. */
struct tgt_directory *directory_new(const struct daemon *d,
				    const struct cfg_model *m,
				    struct unit *const *units,
				    struct portal *const *portals,
				    struct cfg_errors *e);

#endif
