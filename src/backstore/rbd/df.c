/* SPDX-License-Identifier: BSD-2-Clause */
/* df.c: what the command "df" of a monitor says about a pool. */
#include "backstore/rbd/df.h"

#include <jansson.h>

static const json_t *find_pool(const json_t *pools, int64_t id)
{
	size_t i;
	json_t *p;

	json_array_foreach(pools, i, p)
	{
		const json_t *n = json_object_get(p, "id");

		if (json_is_integer(n) && json_integer_value(n) == id)
			return p;
	}
	return NULL;
}

static const json_t *member_of(const json_t *object, const char *name)
{
	return json_object_get(json_object_get(object, "stats"), name);
}

bool bsrbd_df_room(const char *text, size_t len, int64_t pool, uint64_t *room)
{
	json_t *df = json_loadb(text, len, 0, NULL);
	const json_t *most = member_of(
		find_pool(json_object_get(df, "pools"), pool), "max_avail");
	/* zero as long as no manager has counted */
	bool ok = json_integer_value(member_of(df, "total_bytes")) > 0 &&
		  json_is_integer(most) && json_integer_value(most) >= 0;

	if (ok)
		*room = (uint64_t)json_integer_value(most);
	json_decref(df);
	return ok;
}
