/* SPDX-License-Identifier: BSD-2-Clause */
/* setters.h: setters (base/opt.h) of the fields that are more than one number,
 * word or text. into is a struct options. */
#ifndef DAEMON_CONFIG_SETTERS_H
#define DAEMON_CONFIG_SETTERS_H

#include "daemon/config/schema.h"

/* The parts of fields with colons, for their rows. */
extern const struct cfg_parts cfg_max_sessions, cfg_max_startups,
	cfg_max_discovery, cfg_penalty, cfg_address_block;
/* The words of --transport, for its row. */
extern const char *const cfg_transports[];

/* Each checks the value of the option of its name and stores it; OPT_BAD: why
 * has the reason. These three append to a list and borrow the text. */
opt_setter cfg_set_listen, cfg_set_verbs_listen, cfg_set_alua;
/* These store one value. */
opt_setter cfg_set_name, cfg_set_block_size, cfg_set_transport;
/* cfg_set_compat returns OPT_STOPPED for "help". */
opt_setter cfg_set_compat;
/* These store the parts of a value like "N:M"; a part that is left out keeps its
 * default, and is lowered to the whole. */
opt_setter cfg_set_max_sessions, cfg_set_max_startups, cfg_set_max_discovery;
opt_setter cfg_set_penalty, cfg_set_address_block;

#endif
