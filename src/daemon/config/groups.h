/* SPDX-License-Identifier: BSD-2-Clause */
/* groups.h: the text form of target port groups (ALUA). */
#ifndef DAEMON_CONFIG_GROUPS_H
#define DAEMON_CONFIG_GROUPS_H

#include "device/device.h"

/* group_parse reads "ID:STATE:PORT[,PORT...][:preferred]" into *g. False: text
 * is not of this form. */
bool group_parse(struct dev_group *g, const char *text);
/* group_state_parse reads the name of a state, such as "standby". False: there
 * is no such state. */
bool group_state_parse(enum dev_access *state, const char *text);
/* group_state_name returns the name that group_state_parse reads. */
const char *group_state_name(enum dev_access state);

#endif
