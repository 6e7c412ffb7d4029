/* SPDX-License-Identifier: BSD-2-Clause */
/* identity_record.c: see identity_record.h. */
#include "daemon/luns/identity_record.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "base/bytes.h"
#include "base/hex.h"
#include "daemon/config/setters.h"

#define VERSION "1"

/* The parts that are texts. */
static const struct part {
	const char *name;
	size_t at, size;
} parts[] = {
	{ "born", offsetof(struct identity_place, born), 32 },
	{ "fs", offsetof(struct identity_place, fs), PLACE_DIGITS },
	{ "volume", offsetof(struct identity_place, volume), PLACE_DIGITS },
	{ "machine", offsetof(struct identity_place, machine), PLACE_DIGITS },
};

static const char *text_of(const struct identity_place *p, size_t i)
{
	return (const char *)p + parts[i].at;
}

size_t identity_record_put(const struct identity_record *r,
			   char out[IDENTITY_TEXT_MAX])
{
	char uuid[37];
	size_t len;

	cfg_uuid_text(r->uuid, uuid);
	len = (size_t)snprintf(out, IDENTITY_TEXT_MAX, VERSION " %s", uuid);
	if (r->place.inode)
		len += (size_t)snprintf(out + len, IDENTITY_TEXT_MAX - len,
					" inode=%" PRIu64, r->place.inode);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (*text_of(&r->place, i))
			len += (size_t)snprintf(out + len,
						IDENTITY_TEXT_MAX - len,
						" %s=%s", parts[i].name,
						text_of(&r->place, i));
	return len;
}

static bool take_inode(struct identity_place *p, const char *value)
{
	char *end;

	if (p->inode || !isdigit((unsigned char)*value))
		return false;
	p->inode = strtoull(value, &end, 10);
	return !*end && p->inode && p->inode != UINT64_MAX;
}

/* Takes "NAME=VALUE". False: not of that form, given twice, or too long. */
static bool take_part(struct identity_place *p, char *text)
{
	char *value = strchr(text, '=');

	if (!value || value == text || !value[1])
		return false;
	*value++ = '\0';
	if (!strcmp(text, "inode"))
		return take_inode(p, value);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		char *to = (char *)p + parts[i].at;

		if (strcmp(text, parts[i].name) != 0)
			continue;
		if (*to || strlen(value) >= parts[i].size)
			return false;
		memcpy(to, value, strlen(value) + 1);
	}
	return true;
}

/* Ends the word at text and returns what follows it; NULL: the text ends with it. */
static char *next_word(char *text)
{
	char *end = strchr(text, ' ');

	if (end)
		*end++ = '\0';
	return end;
}

static enum identity_verdict take_all(struct identity_record *r, char *text)
{
	char *uuid = next_word(text), *part = uuid ? next_word(uuid) : NULL;
	bool is_number = *text >= '1' && *text <= '9' &&
			 !text[strspn(text, "0123456789")];

	if (is_number && strcmp(text, VERSION) != 0)
		return IDENTITY_NEWER;
	if (!is_number || !uuid || strlen(uuid) != 36 ||
	    !cfg_uuid_parse(uuid, r->uuid))
		return IDENTITY_DAMAGED;
	while (part) {
		char *next = next_word(part);

		if (!take_part(&r->place, part))
			return IDENTITY_DAMAGED;
		part = next;
	}
	return IDENTITY_GOOD;
}

enum identity_verdict identity_record_get(struct identity_record *r,
					  const char *text, size_t len)
{
	char copy[IDENTITY_TEXT_MAX];

	memset(r, 0, sizeof(*r));
	while (len && (!text[len - 1] || text[len - 1] == '\n'))
		len--;
	/* the version alone decides about a text that is too long for this one */
	memcpy(copy, text, MIN(len, sizeof(copy) - 1));
	copy[MIN(len, sizeof(copy) - 1)] = '\0';
	if (len < sizeof(copy))
		return strlen(copy) == len ? take_all(r, copy)
					   : IDENTITY_DAMAGED;
	return take_all(r, copy) == IDENTITY_NEWER ? IDENTITY_NEWER
						   : IDENTITY_DAMAGED;
}

bool identity_place_agrees(const struct identity_place *a,
			   const struct identity_place *b)
{
	if (a->inode && b->inode && a->inode != b->inode)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const char *x = text_of(a, i), *y = text_of(b, i);

		if (*x && *y && strcmp(x, y) != 0)
			return false;
	}
	return true;
}

bool identity_place_learn(struct identity_place *p,
			  const struct identity_place *more)
{
	bool learns = !p->inode && more->inode;

	if (learns)
		p->inode = more->inode;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (*text_of(p, i) || !*text_of(more, i))
			continue;
		memcpy((char *)p + parts[i].at, text_of(more, i),
		       parts[i].size);
		learns = true;
	}
	return learns;
}

bool identity_place_is_certain(const struct identity_place *p)
{
	return p->inode && (*p->born || *p->fs);
}

void identity_digest(char out[PLACE_DIGITS], const void *p, size_t len)
{
	uint8_t hash[16];

	bs_uuid_derive(hash, p, len);
	hex_put(out, hash + 8, 8);
}
