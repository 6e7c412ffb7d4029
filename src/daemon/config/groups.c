/* SPDX-License-Identifier: BSD-2-Clause */
/* groups.c: the text form of target port groups (ALUA). */
#include "daemon/config/groups.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *const group_states[] = { "optimized",   "non-optimized", "standby",
				     "unavailable", "transitioning", NULL };

/* By the index in group_states. */
static const enum dev_access states[] = {
	DEV_ACCESS_OPTIMIZED, DEV_ACCESS_NON_OPTIMIZED, DEV_ACCESS_STANDBY,
	DEV_ACCESS_UNAVAILABLE, DEV_ACCESS_TRANSITIONING
};

enum dev_access group_state_at(unsigned i)
{
	return states[i];
}

const char *group_state_name(enum dev_access state)
{
	unsigned i = 0;

	while (group_states[i] && states[i] != state)
		i++;
	return group_states[i];
}

static bool state_parse(enum dev_access *state, const char *text, size_t len)
{
	for (unsigned i = 0; group_states[i]; i++)
		if (strlen(group_states[i]) == len &&
		    !memcmp(group_states[i], text, len)) {
			*state = states[i];
			return true;
		}
	return false;
}

/* Reads a number from 1 to 65535 and moves *text to what follows. */
static bool take_number(const char **text, uint16_t *n)
{
	unsigned long v;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	v = strtoul(*text, &end, 10);
	*text = end;
	*n = (uint16_t)v;
	return v > 0 && v <= UINT16_MAX;
}

static bool take_ports(struct dev_group *g, const char **text)
{
	do {
		if (g->nports == DEV_GROUP_PORTS ||
		    !take_number(text, &g->ports[g->nports++]))
			return false;
	} while (**text == ',' && (*text)++);
	return true;
}

bool group_parse(struct dev_group *g, const char *text)
{
	const char *colon;

	memset(g, 0, sizeof(*g));
	if (!take_number(&text, &g->id) || *text++ != ':')
		return false;
	colon = strchr(text, ':');
	if (!colon || !state_parse(&g->state, text, (size_t)(colon - text)))
		return false;
	text = colon + 1;
	if (!take_ports(g, &text))
		return false;
	g->preferred = !strcmp(text, ":preferred");
	return g->preferred || !*text;
}
