/* SPDX-License-Identifier: BSD-2-Clause */
/* identity.c: the fields of a backstore that give its identity: uuid, naa, eui. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"
#include "daemon/config/model.h"
#include "daemon/config/nouns.h"
#include "daemon/config/setters.h"

/* Reads the digits of text, where skip may stand between them, into out, which has room
 * for max bytes. Returns the bytes; 0: another form. */
static uint8_t read_digits(const char *text, char skip, uint8_t *out,
			   unsigned max)
{
	unsigned n = 0;

	memset(out, 0, max);
	for (; *text; text++) {
		int digit = hex_digit(*text);

		if (digit < 0 && *text == skip)
			continue;
		if (digit < 0 || n == 2 * max)
			return 0;
		out[n / 2] |= (uint8_t)(n & 1 ? digit : digit << 4);
		n++;
	}
	return n & 1 ? 0 : (uint8_t)(n / 2);
}

static bool is_zero(const uint8_t *p, size_t n)
{
	while (n)
		if (p[--n])
			return false;
	return true;
}

/* Returns the text after its prefix: administrators copy names with one. */
static const char *without(const char *text, const char *prefix)
{
	if (!strncasecmp(text, prefix, strlen(prefix)))
		return text + strlen(prefix);
	return !strncasecmp(text, "0x", 2) ? text + 2 : text;
}

/* RFC 9562 §4: groups of 8, 4, 4, 4 and 12 digits; the digits alone are accepted, too,
 * since the serial number has that form. */
static bool is_uuid_form(const char *text)
{
	size_t len = strlen(text);

	return len == 32 || (len == 36 && text[8] == '-' && text[13] == '-' &&
			     text[18] == '-' && text[23] == '-');
}

bool cfg_uuid_parse(const char *text, uint8_t uuid[16])
{
	text = without(text, "urn:uuid:");
	return is_uuid_form(text) && read_digits(text, '-', uuid, 16) == 16 &&
	       !is_zero(uuid, 16);
}

enum opt_end cfg_set_uuid(void *into, const char *arg, char why[OPT_WHY])
{
	struct cfg_backstore *b = into;
	uint8_t uuid[16];

	if (!cfg_uuid_parse(arg, uuid))
		return cfg_refuse(why,
				  "not a UUID; give one like "
				  "f81d4fae-7dec-41d0-a765-00a0c91e6bf6, for "
				  "example from uuidgen");
	memcpy(b->uuid, uuid, 16);
	return OPT_OK;
}

/* SPC-4 §7.8.6.6: the first digit says which of the forms it is. */
static bool is_naa(const struct dev_id *id)
{
	unsigned form = id->bytes[0] >> 4;

	return (id->len == 8 && (form == 2 || form == 3 || form == 5)) ||
	       (id->len == 16 && form == 6);
}

enum opt_end cfg_set_naa(void *into, const char *arg, char why[OPT_WHY])
{
	struct cfg_backstore *b = into;
	struct dev_id id;

	id.len = read_digits(without(arg, "naa."), ':', id.bytes, 16);
	if (!is_naa(&id))
		return cfg_refuse(
			why, "not an NAA identifier; give 16 hexadecimal "
			     "digits of which the first is 2, 3 or 5, or 32 "
			     "of which the first is 6");
	b->naa = id;
	return OPT_OK;
}

/* SPC-4 §7.8.6.5 */
enum opt_end cfg_set_eui(void *into, const char *arg, char why[OPT_WHY])
{
	struct cfg_backstore *b = into;
	struct dev_id id;

	id.len = read_digits(without(arg, "eui."), ':', id.bytes, 16);
	if ((id.len != 8 && id.len != 12 && id.len != 16) ||
	    is_zero(id.bytes, id.len))
		return cfg_refuse(
			why, "not an EUI-64; give 16, 24 or 32 hexadecimal "
			     "digits");
	b->eui = id;
	return OPT_OK;
}

void cfg_uuid_text(const uint8_t uuid[16], char out[37])
{
	static const uint8_t groups[] = { 4, 2, 2, 2, 6 };

	for (size_t i = 0; i < sizeof(groups); uuid += groups[i++]) {
		hex_put(out, uuid, groups[i]);
		out += 2 * groups[i];
		*out++ = i + 1 < sizeof(groups) ? '-' : '\0';
	}
}

void cfg_get_uuid(const void *from, char *out, size_t size)
{
	const struct cfg_backstore *b = from;
	char text[37];

	if (is_zero(b->uuid, 16))
		return;
	cfg_uuid_text(b->uuid, text);
	snprintf(out, size, "%s", text);
}

static void get_id(const struct dev_id *id, char *out, size_t size)
{
	char text[33];

	hex_put(text, id->bytes, id->len);
	snprintf(out, size, "%s", text);
}

void cfg_get_naa(const void *from, char *out, size_t size)
{
	get_id(&((const struct cfg_backstore *)from)->naa, out, size);
}

void cfg_get_eui(const void *from, char *out, size_t size)
{
	get_id(&((const struct cfg_backstore *)from)->eui, out, size);
}
