/* SPDX-License-Identifier: BSD-2-Clause */
/* portal.c: portals, which are addresses of the portal groups of iserd. */
#include <stdlib.h>
#include <string.h>

#include "tools/tgtadm/tgtadm.h"

#define OWN_GROUP "tgt" /* the name of the portal group that is made here */

void tgtadm_portal_name(const char *listen, char out[TGTADM_PORTAL_SIZE])
{
	const char *colon = strrchr(listen, ':');
	bool is_v6 = colon && strchr(listen, ':') != colon;
	const char *end = strchr(listen, ']');

	if (*listen == '[' && end)
		snprintf(out, TGTADM_PORTAL_SIZE, "%s%s", listen,
			 end[1] == ':' ? "" : ":3260");
	else if (is_v6)
		snprintf(out, TGTADM_PORTAL_SIZE, "[%s]:3260", listen);
	else if (colon == listen)
		snprintf(out, TGTADM_PORTAL_SIZE, "127.0.0.1%s", listen);
	else if (colon)
		snprintf(out, TGTADM_PORTAL_SIZE, "%s", listen);
	else if (strspn(listen, "0123456789") == strlen(listen))
		snprintf(out, TGTADM_PORTAL_SIZE, "127.0.0.1:%s", listen);
	else
		snprintf(out, TGTADM_PORTAL_SIZE, "%s:3260", listen);
}

/* Reads "portal=ADDRESS[:PORT]" of --params. Returns the exit status after a
 * message. */
static int take_portal(const struct tgtadm *t, char out[TGTADM_PORTAL_SIZE])
{
	const char *text = t->r->params;

	if (strncmp(text, "portal=", 7) != 0 || !text[7] ||
	    strlen(text) > TGTADM_PORTAL_SIZE - 16)
		return tgtadm_refuse("%s: %.200s: give portal=ADDRESS[:PORT]",
				     tgtadm_invalid, text);
	tgtadm_portal_name(text + 7, out);
	return 0;
}

/* Returns the portal group with this portal and the index of its address. NULL:
 * there is none. */
static json_t *find_portal(const struct tgtadm *t, const char *portal,
			   size_t *index)
{
	json_t *groups = json_object_get(t->config, "portal-groups"), *group;
	char name[TGTADM_PORTAL_SIZE];
	const char *key;
	json_t *list, *v;
	size_t i;

	json_object_foreach(groups, key, group)
	{
		list = json_object_get(group, "listen");
		json_array_foreach(list, i, v)
		{
			tgtadm_portal_name(tgtadm_text_of(v), name);
			if (strcmp(name, portal) != 0)
				continue;
			*index = i;
			return group;
		}
	}
	return NULL;
}

/* Adds the portal group that all targets get, to a configuration without one. */
static json_t *make_group(struct tgtadm *t, json_t *groups)
{
	json_t *group = json_pack("{s:[]}", "listen"), *target;
	const char *key;

	json_object_set_new(groups, OWN_GROUP, group);
	json_object_foreach(json_object_get(t->config, "targets"), key, target)
	{
		json_object_set_new(target, "portal-groups",
				    json_pack("[s]", OWN_GROUP));
	}
	return group;
}

/* tgt has one portal group: the first one of iserd gets the portal. */
int tgtadm_portal_new(struct tgtadm *t)
{
	json_t *groups = tgtadm_section(t, "portal-groups"), *group, *list;
	char portal[TGTADM_PORTAL_SIZE];
	size_t index;

	if (take_portal(t, portal))
		return TGTADM_REFUSED;
	if (find_portal(t, portal, &index))
		return tgtadm_refuse("%s: %s is a portal already",
				     tgtadm_invalid, portal);
	group = json_object_iter_value(json_object_iter(groups));
	if (!group)
		group = make_group(t, groups);
	list = json_object_get(group, "listen");
	if (!list) { /* the default address, which the list replaces */
		list = json_pack("[s]", "127.0.0.1:3260");
		json_object_set_new(group, "listen", list);
	}
	if (json_array_append_new(list, json_string(portal)))
		return tgtadm_refuse("%s: not UTF-8", tgtadm_invalid);
	return 0;
}

int tgtadm_portal_delete(struct tgtadm *t)
{
	char portal[TGTADM_PORTAL_SIZE];
	json_t *group, *list;
	size_t index;

	if (take_portal(t, portal))
		return TGTADM_REFUSED;
	group = find_portal(t, portal, &index);
	list = json_object_get(group, "listen");
	if (!group)
		return tgtadm_refuse("%s: %s is not a portal", tgtadm_invalid,
				     portal);
	if (json_array_size(list) == 1)
		return tgtadm_refuse("%s: %s is the last portal of its portal "
				     "group; remove the group by iserctl",
				     tgtadm_invalid, portal);
	json_array_remove(list, index);
	return 0;
}
