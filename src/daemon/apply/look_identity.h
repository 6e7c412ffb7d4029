/* SPDX-License-Identifier: BSD-2-Clause */
/* look_identity.h: whether the stores of a configuration keep the identities that they had.
 * Changes nothing. */
#ifndef DAEMON_APPLY_LOOK_IDENTITY_H
#define DAEMON_APPLY_LOOK_IDENTITY_H

#include <stdint.h>

#include "daemon/config/model.h"

struct identities;

struct identity_owners;

/* A backstore of a configuration: the arg of identity_look_owner. */
struct look_at {
	const struct cfg_model *m;
	struct identities *all;
	unsigned index;
	/* what the backstores of m have, from the first call of identity_look_owner on; NULL
	 * before */
	struct identity_owners **owners;
};

/* identity_look_owner is identity_query.owner: the name of another backstore of the
 * configuration, borrowed, whose field or store has the identity. */
const char *identity_look_owner(void *look_at, const uint8_t uuid[16]);
/* identity_owners_end frees *owners, which becomes NULL. */
void identity_owners_end(struct identity_owners **owners);
/* identity_look adds a warning for each backstore of m, of those that is_new has (NULL:
 * all), that would get another identity than it had, as unit_open prints it, and an error for
 * each whose identity would refuse it. `all` is not changed. On worker 0. */
void identity_look(const struct cfg_model *m, struct identities *all,
		   const bool *is_new, struct cfg_errors *errors,
		   struct cfg_errors *warnings);
/* identity_look_state does the same with the state directory of m, which may be in use or belong to
 * another user. */
void identity_look_state(const struct cfg_model *m, struct cfg_errors *errors,
			 struct cfg_errors *warnings);

#endif
