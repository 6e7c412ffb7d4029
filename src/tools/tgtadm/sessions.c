/* SPDX-License-Identifier: BSD-2-Clause */
/* sessions.c: the sessions of iserd. */
#include <string.h>
#include <strings.h>

#include "tools/tgtadm/tgtadm.h"

json_t *tgtadm_sessions(struct tgtadm *t, const char *target)
{
	json_t *status = tgtadm_call(t, "status", NULL), *all, *s;
	size_t i;

	if (!status)
		return NULL;
	all = json_array();
	json_array_foreach(json_object_get(status, "sessions"), i, s)
	{
		const char *of = get_text(s, "target");

		if (json_integer_value(json_object_get(s, "tsih")) &&
		    strcmp(of, "(discovery)") != 0 &&
		    (!target || !strcasecmp(of, target)))
			json_array_append(all, s);
	}
	json_decref(status);
	return all;
}

void tgtadm_address(const json_t *session, char *out, size_t size)
{
	const char *peer = get_text(session, "peer");
	const char *colon = strrchr(peer, ':');
	size_t len = colon ? (size_t)(colon - peer) : strlen(peer);

	if (*peer == '[' && len > 2 && peer[len - 1] == ']') {
		peer++;
		len -= 2;
	}
	snprintf(out, size, "%.*s", (int)len, peer);
}
