/* SPDX-License-Identifier: BSD-2-Clause */
/* json_get.h: members of the answers of iserd. An object that lacks the member, or has another type
 * of it, has "", 0 or false. */
#ifndef TOOLS_JSON_GET_H
#define TOOLS_JSON_GET_H

#include <jansson.h>
#include <stdbool.h>

static inline const char *get_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static inline long long get_number(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static inline bool get_flag(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

#endif
