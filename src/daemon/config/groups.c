/* SPDX-License-Identifier: BSD-2-Clause */
/* groups.c: the text form of target port groups (ALUA). */
#include "daemon/config/groups.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* The states that a group can have. */
static const char *const names[] = {
	[DEV_ACCESS_OPTIMIZED] = "optimized",
	[DEV_ACCESS_NON_OPTIMIZED] = "non-optimized",
	[DEV_ACCESS_STANDBY] = "standby",
	[DEV_ACCESS_UNAVAILABLE] = "unavailable",
	[DEV_ACCESS_TRANSITIONING] = "transitioning",
};

const char *group_state_name(enum dev_access state)
{
	return names[state];
}

static bool state_parse(enum dev_access *state, const char *text, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i] && strlen(names[i]) == len &&
		    !memcmp(names[i], text, len)) {
			*state = (enum dev_access)i;
			return true;
		}
	return false;
}

bool group_state_parse(enum dev_access *state, const char *text)
{
	return state_parse(state, text, strlen(text));
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
