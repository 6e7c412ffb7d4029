/* SPDX-License-Identifier: BSD-2-Clause */
/* identity.c: which name of a unit follows from which (device/identity.h). */
#include <string.h>

#include "backstore/backstore.h"
#include "base/hex.h"
#include "device/unit/unit.h"

/* NAA 3h, locally assigned (SPC-4 §7.8.6.6.4), with 60 bits of p. */
static struct dev_id local_naa(const uint8_t p[8])
{
	struct dev_id id = { .len = 8 };

	memcpy(id.bytes, p, 8);
	id.bytes[0] = (uint8_t)(0x30 | (id.bytes[0] & 0x0f));
	return id;
}

static struct dev_id naa_of_hash(const void *p, size_t len)
{
	uint8_t hash[16];

	bs_uuid_derive(hash, p, len);
	return local_naa(hash);
}

/* The first bytes of a UUID with a time (RFC 9562 §5) are almost the same in those
 * that were made together. */
static struct dev_id naa_of_uuid(const uint8_t uuid[16])
{
	unsigned version = uuid[6] >> 4;

	return version == 4 || version == 5 || version == 8
		       ? local_naa(uuid)
		       : naa_of_hash(uuid, 16);
}

#define LIO_SERIAL_MIN 8 /* digits */

/* Returns whether LIO's rule keeps all of the serial number: the rule skips all
 * characters but digits, and fills short numbers with zeros, so "log1", "tmp1" and
 * "10" would get one name. */
static bool is_lio_serial(const char *serial)
{
	size_t digits = 0;

	for (; *serial; serial++) {
		if (hex_digit(*serial) >= 0)
			digits++;
		else if (*serial != '-')
			return false;
	}
	return digits >= LIO_SERIAL_MIN;
}

/* The NAA identifier that LIO makes of a serial number: IEEE Registered Extended
 * (SPC-4 §7.8.6.6.6) with the company 00-14-05h and the first 25 digits, so that a
 * unit that was imported from LIO keeps its name. */
static struct dev_id naa_of_lio(const char *serial)
{
	struct dev_id id = { .len = 16, .bytes = { 0x60, 0x01, 0x40, 0x50 } };
	unsigned at = 7; /* in digits */

	for (; *serial && at < 32; serial++) {
		int digit = hex_digit(*serial);

		if (digit < 0)
			continue;
		id.bytes[at / 2] |= (uint8_t)(at & 1 ? digit : digit << 4);
		at++;
	}
	return id;
}

static void put_serial(struct dev_names *n, const struct dev_lu_config *cfg,
		       const uint8_t uuid[16])
{
	const struct dev_id *id = cfg->naa.len ? &cfg->naa : &cfg->eui;

	if (cfg->serial[0])
		memcpy(n->serial, cfg->serial, sizeof(n->serial));
	else if (id->len)
		hex_put(n->serial, id->bytes, id->len);
	else
		hex_put(n->serial, uuid, 16);
}

void dev_names_make(struct dev_names *n, const struct dev_lu_config *cfg,
		    const uint8_t uuid[16])
{
	memset(n, 0, sizeof(*n)); /* names are compared as bytes */
	memcpy(n->vendor, cfg->vendor, sizeof(n->vendor));
	memcpy(n->product, cfg->product, sizeof(n->product));
	memcpy(n->revision, cfg->revision, sizeof(n->revision));
	put_serial(n, cfg, uuid);
	n->eui = cfg->eui;
	if (cfg->naa.len)
		n->naa = cfg->naa;
	else if (!cfg->serial[0] && !cfg->eui.len)
		n->naa = naa_of_uuid(uuid);
	else if (is_lio_serial(n->serial))
		n->naa = naa_of_lio(n->serial);
	else
		n->naa = naa_of_hash(n->serial, strlen(n->serial));
}
