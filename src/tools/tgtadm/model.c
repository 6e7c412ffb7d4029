/* SPDX-License-Identifier: BSD-2-Clause */
/* model.c: the configuration of iserd: read as JSON, edited, and brought into force
 * as a merge patch (RFC 7396), all or nothing. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "tools/tgtadm/tgtadm.h"

/* error codes of iserd (iserctl(1)) */
#define CHANGED -32001
#define BUSY	-32002

#define TRIES	 600 /* of a change, while iserd is busy or others change */
#define TRY_WAIT 100 /* milliseconds */

/* ---- looking things up ---- */

const char *tgtadm_text_of(const json_t *v)
{
	const char *text = json_string_value(v);

	return text ? text : "";
}

bool tgtadm_is_yes(const json_t *object, const char *key)
{
	const char *text = get_text(object, key);

	return !strcmp(text, "yes") || !strcmp(text, "true") ||
	       !strcmp(text, "on");
}

int tgtadm_tid_of(const json_t *target)
{
	return atoi(get_text(target, "tgt-id"));
}

json_t *tgtadm_target(const json_t *config, int tid, const char **name)
{
	json_t *targets = json_object_get(config, "targets"), *target;
	const char *key;

	json_object_foreach(targets, key, target)
	{
		if (tgtadm_tid_of(target) != tid)
			continue;
		if (name)
			*name = key;
		return target;
	}
	return NULL;
}

json_t *tgtadm_member(json_t *object, const char *key, json_t *(*make)(void))
{
	json_t *v = json_object_get(object, key);

	if (v)
		return v;
	v = make();
	json_object_set_new(object, key, v);
	return v;
}

json_t *tgtadm_section(struct tgtadm *t, const char *name)
{
	return tgtadm_member(t->config, name, json_object);
}

int tgtadm_list_find(const json_t *list, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *v = json_string_value(json_array_get(list, i));

		if (v && !strcasecmp(v, text))
			return (int)i;
	}
	return -1;
}

const char *tgtadm_backstore_of(const json_t *lun)
{
	const char *name = json_string_value(lun);

	return name ? name : get_text(lun, "backstore");
}

static unsigned uses_in(const json_t *luns, const char *backstore)
{
	const char *key;
	json_t *lun;
	unsigned n = 0;

	json_object_foreach((json_t *)luns, key, lun)
	{
		n += !strcmp(tgtadm_backstore_of(lun), backstore);
	}
	return n;
}

unsigned tgtadm_uses(const json_t *config, const char *backstore)
{
	json_t *target, *map;
	const char *key;
	unsigned n = 0;
	size_t i;

	json_object_foreach(json_object_get(config, "targets"), key, target)
	{
		n += uses_in(json_object_get(target, "luns"), backstore);
		json_array_foreach(json_object_get(target, "maps"), i, map)
		{
			n += uses_in(json_object_get(map, "luns"), backstore);
		}
	}
	return n;
}

void tgtadm_drop_backstore(struct tgtadm *t, const char *name)
{
	if (!strncmp(name, "tgt-", 4) && !tgtadm_uses(t->config, name))
		json_object_del(json_object_get(t->config, "backstores"), name);
}

/* ---- numbers ---- */

static int compare_numbers(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Sorts the numbers that the targets have; returns how many there are. */
static size_t list_numbers(const json_t *targets, int *taken)
{
	const char *key;
	json_t *target;
	size_t n = 0;

	json_object_foreach((json_t *)targets, key, target)
	{
		if (tgtadm_tid_of(target))
			taken[n++] = tgtadm_tid_of(target);
	}
	qsort(taken, n, sizeof(*taken), compare_numbers);
	return n;
}

bool tgtadm_number_targets(json_t *config)
{
	json_t *targets = json_object_get(config, "targets"), *target;
	int *taken = calloc(json_object_size(targets) + 1, sizeof(*taken));
	size_t used = taken ? list_numbers(targets, taken) : 0, at = 0;
	bool good = taken;
	char rules[TGTADM_NAME_SIZE];
	const char *key;
	int next = 0;

	json_object_foreach(targets, key, target)
	{
		if (!good || tgtadm_tid_of(target))
			continue;
		for (next++; at < used && taken[at] <= next; at++)
			next += taken[at] == next;
		good = !json_object_set_new(target, "tgt-id",
					    json_sprintf("%d", next));
		snprintf(rules, sizeof(rules), "tgt-%d", next);
		tgtadm_drop_rules(config, rules);
	}
	free(taken);
	return good;
}

/* ---- what differs ---- */

/* Adds a member to a patch. Returns -1 without memory. */
static int add_change(json_t *patch, const char *key, const json_t *from,
		      json_t *to)
{
	json_t *inner;

	if (!from || !json_is_object(from) || !json_is_object(to))
		return from && json_equal(from, to)
			       ? 0
			       : json_object_set(patch, key, to);
	inner = tgtadm_difference(from, to);
	if (inner && !json_object_size(inner)) {
		json_decref(inner);
		return 0;
	}
	return json_object_set_new(patch, key, inner);
}

json_t *tgtadm_difference(const json_t *from, const json_t *to)
{
	json_t *patch = json_object(), *v;
	const char *key;
	int err = patch ? 0 : -1;

	json_object_foreach((json_t *)to, key, v)
	{
		err |= add_change(patch, key, json_object_get(from, key), v);
	}
	json_object_foreach((json_t *)from, key, v)
	{
		if (!json_object_get(to, key))
			err |= json_object_set_new(patch, key, json_null());
	}
	if (!err)
		return patch;
	json_decref(patch);
	return NULL;
}

/* ---- changing ---- */

enum outcome {
	DONE,
	AGAIN, /* the configuration has changed */
	WAIT,  /* iserd is busy */
	FAILED,
};

/* Sends the change from `from` to `to`; version NULL: whatever is in force. */
static enum outcome send_change(struct tgtadm *t, const json_t *from,
				const json_t *to, const char *version)
{
	json_t *patch = tgtadm_difference(from, to), *params, *result;
	char *text = patch ? json_dumps(patch, JSON_COMPACT) : NULL;
	bool is_same = patch && !json_object_size(patch);

	params = json_pack("{s:s*, s:s*}", "patch", text, "version", version);
	json_decref(patch);
	free(text);
	if (is_same || !params) {
		json_decref(params);
		return is_same ? DONE : FAILED;
	}
	result = tgtadm_call(t, "patch", params);
	json_decref(result);
	return result		    ? DONE
	       : t->code == CHANGED ? AGAIN
	       : t->code == BUSY    ? WAIT
				    : FAILED;
}

static void rest(void)
{
	const struct timespec ts = { 0, TRY_WAIT * 1000000L };

	nanosleep(&ts, NULL);
}

/* ---- reading ---- */

static void drop_config(struct tgtadm *t)
{
	json_decref(t->before);
	json_decref(t->config);
	t->before = t->config = NULL;
}

/* Reads the configuration in force and numbers its targets. Returns the exit
 * status after a message. */
static int fetch(struct tgtadm *t)
{
	json_t *answer = tgtadm_call(t, "config", NULL);

	drop_config(t);
	if (!answer)
		return tgtadm_failed(t);
	snprintf(t->version, sizeof(t->version), "%s",
		 get_text(answer, "version"));
	t->before = json_incref(json_object_get(answer, "config"));
	t->config = json_deep_copy(t->before);
	json_decref(answer);
	if (json_is_object(t->config) && tgtadm_number_targets(t->config))
		return 0;
	return tgtadm_refuse("out of memory");
}

/* As send_change, but waits while iserd is busy. */
static enum outcome insist(struct tgtadm *t, const json_t *from,
			   const json_t *to, const char *version)
{
	enum outcome o = WAIT;

	for (unsigned i = 0; i < TRIES && o == WAIT; i++) {
		if (i)
			rest();
		o = send_change(t, from, to, version);
	}
	return o;
}

/* Returns the configuration without the backstore that is opened again. */
static json_t *without_reopened(const struct tgtadm *t)
{
	json_t *all = json_deep_copy(t->config), *target, *luns, *lun;
	const char *name, *key;
	void *next;

	json_object_del(json_object_get(all, "backstores"), t->reopened);
	json_object_foreach(json_object_get(all, "targets"), name, target)
	{
		luns = json_object_get(target, "luns");
		json_object_foreach_safe(luns, next, key, lun)
		{
			if (!strcmp(tgtadm_backstore_of(lun), t->reopened))
				json_object_del(luns, key);
		}
	}
	return all;
}

/* A field that a unit in use cannot change: removes the unit and adds it again. If
 * the new one cannot be opened, the old one is opened again. */
static enum outcome reopen(struct tgtadm *t)
{
	json_t *middle = without_reopened(t);
	enum outcome o;
	char why[TGTADM_WHY];

	if (!middle)
		return FAILED;
	o = insist(t, t->before, middle, t->version);
	if (o == DONE) {
		o = insist(t, middle, t->config, NULL);
		if (o != DONE) {
			memcpy(why, t->why, sizeof(why));
			if (insist(t, middle, t->before, NULL) != DONE)
				tgtadm_say("backstore %s: cannot be opened "
					   "again: %s",
					   t->reopened, t->why);
			memcpy(t->why, why, sizeof(why));
			t->code = t->code ? t->code : -1;
		}
	}
	json_decref(middle);
	return o;
}

int tgtadm_change(struct tgtadm *t, int (*edit)(struct tgtadm *t))
{
	enum outcome o = AGAIN;
	json_t *note;
	size_t n;
	int code;

	for (unsigned i = 0; i < TRIES && (o == AGAIN || o == WAIT); i++) {
		if (i && o == WAIT)
			rest();
		t->reopened[0] = '\0';
		json_array_clear(t->notes);
		code = fetch(t);
		if (!code)
			code = edit(t);
		if (code)
			return code;
		o = *t->reopened
			    ? reopen(t)
			    : send_change(t, t->before, t->config, t->version);
	}
	if (o != DONE)
		return tgtadm_failed(t);
	json_array_foreach(t->notes, n, note)
	{
		tgtadm_say("%s", json_string_value(note));
	}
	return 0;
}
