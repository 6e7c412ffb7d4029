/* SPDX-License-Identifier: BSD-2-Clause */
/* groups.c: target port groups (ALUA) as a person writes and reads them. */
#include "daemon/groups.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Those that a group can have. */
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

/* 1 to 65535; *text goes behind it. */
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

static bool is_offline(const struct dev_server *s, uint16_t port)
{
	uint16_t ports[DEV_MAX_OFFLINE];
	unsigned n = dev_offline_ports(s, ports);

	for (unsigned i = 0; i < n; i++)
		if (ports[i] == port)
			return true;
	return false;
}

json_t *groups_json(const struct dev_server *s)
{
	struct dev_group groups[DEV_MAX_GROUPS];
	unsigned n = dev_groups(s, groups);
	json_t *all = json_array();

	for (unsigned i = 0; i < n; i++) {
		json_t *ports = json_array(), *offline = json_array();

		for (unsigned p = 0; p < groups[i].nports; p++) {
			uint16_t port = groups[i].ports[p];

			json_array_append_new(ports, json_integer(port));
			if (is_offline(s, port))
				json_array_append_new(offline,
						      json_integer(port));
		}
		json_array_append_new(
			all, json_pack("{s:i, s:s, s:b, s:o, s:o}", "id",
				       (int)groups[i].id, "state",
				       names[groups[i].state], "preferred",
				       (int)groups[i].preferred, "ports", ports,
				       "offline", offline));
	}
	return all;
}
