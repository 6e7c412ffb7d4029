/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity_fuzz.c: the extended attribute of a file, and the lines of the file
 * `identities`. A record that is read is written as a text that is read as the same
 * record.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/luns/identities.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const char *text, size_t size)
{
	char first[IDENTITY_TEXT_MAX], second[IDENTITY_TEXT_MAX];
	struct identity_record r, again;
	size_t len;

	if (identity_record_get(&r, text, size) != IDENTITY_GOOD)
		return;
	len = identity_record_put(&r, first);
	assert(len < IDENTITY_TEXT_MAX && len == strlen(first));
	assert(identity_record_get(&again, first, len) == IDENTITY_GOOD);
	assert(identity_place_agrees(&r.place, &again.place));
	assert(!identity_place_learn(&again.place, &r.place));
	identity_record_put(&again, second);
	assert(!strcmp(first, second));
}

static void check_lines(const char *text, size_t size)
{
	struct identities *all = identities_new(NULL);
	char *copy = malloc(size + 1);
	struct identity_place nowhere = { .inode = 1 };

	assert(all && copy);
	memcpy(copy, text, size);
	copy[size] = '\0';
	(void)identities_take_lines(all, copy);
	(void)identities_find(all, IDENTITY_OF_FILE, NULL, &nowhere, NULL);
	(void)identities_find(all, IDENTITY_AT_PATH, "/a", &nowhere, NULL);
	identities_free(all);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_record((const char *)data, size);
	check_lines((const char *)data, size);
	return 0;
}
