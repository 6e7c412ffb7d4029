/* SPDX-License-Identifier: BSD-2-Clause */
/* look.h: whether what a configuration names is there: files, directories, the user
 * and addresses. Changes nothing. */
#ifndef DAEMON_APPLY_LOOK_H
#define DAEMON_APPLY_LOOK_H

#include "daemon/config/model.h"

/*
 * cfg_look adds an error for all that iserd would not start with, and a warning for what
 * it would fail with later, as the user of --user. An address or a device that is missing
 * is a warning, too: it may belong to another machine or come later. Needs
 * one thread, since it becomes that user for a moment.
 */
void cfg_look(const struct cfg_model *m, struct cfg_errors *errors,
	      struct cfg_errors *warnings);
/* cfg_look_change does the same for a change of a running iserd: only for the backstores
 * of m that is_new has, and the addresses that `now` does not have. All are errors. */
void cfg_look_change(const struct cfg_model *now, const struct cfg_model *m,
		     const bool *is_new, struct cfg_errors *errors);

#endif
