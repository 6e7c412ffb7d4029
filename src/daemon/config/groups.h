/* SPDX-License-Identifier: BSD-2-Clause */
/* groups.h: the text form of target port groups (ALUA). */
#ifndef DAEMON_CONFIG_GROUPS_H
#define DAEMON_CONFIG_GROUPS_H

#include "device/device.h"

/* group_parse reads "ID:STATE:PORT[,PORT...][:preferred]" into *g. False: text
 * is not of this form. */
bool group_parse(struct dev_group *g, const char *text);
/* The names of the states that a group can have, such as "standby", for rows; ends
 * with NULL. */
extern const char *const group_states[];
/* group_state_at returns the state with the name group_states[i]. */
enum dev_access group_state_at(unsigned i);
/* group_state_name returns the name of a state. */
const char *group_state_name(enum dev_access state);

#endif
