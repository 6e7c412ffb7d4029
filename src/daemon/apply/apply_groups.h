/* SPDX-License-Identifier: BSD-2-Clause */
/* apply_groups.h: the target port groups of a configuration that comes into force. */
#ifndef DAEMON_APPLY_APPLY_GROUPS_H
#define DAEMON_APPLY_APPLY_GROUPS_H

#include "daemon/config/model.h"

struct daemon;

struct apply_groups {
	bool differ; /* else the groups stay as they are */
	unsigned n;
	struct dev_group_wish wishes[DEV_MAX_GROUPS];
};

/* apply_groups_plan fills *g with what differs between the groups of the two
 * configurations. A group whose fields `state` and `preferred` are the same keeps those that
 * it has now. */
void apply_groups_plan(struct apply_groups *g, const struct cfg_model *from,
		       const struct cfg_model *to);
/* apply_groups_check returns whether the groups can be changed now; if not, e has the
 * reason. */
bool apply_groups_check(const struct daemon *d, const struct cfg_model *m,
			struct cfg_errors *e);

#endif
