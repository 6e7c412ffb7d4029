/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c: the names of a unit and their designators (SPC-4 §7.8.6). */
#include "device/unit/names.h"

#include <string.h>

#include "device/unit/settings.h"

static const char hex[] = "0123456789abcdef";

size_t dev_serial(const struct dev_lu *lu, char out[37])
{
	const char *serial = dev_names_of(lu)->serial;
	size_t n = strlen(serial);

	if (n) {
		memcpy(out, serial, n);
		return n;
	}
	for (n = 0; n < 16; n++) {
		out[2 * n] = hex[lu->uuid[n] >> 4];
		out[2 * n + 1] = hex[lu->uuid[n] & 15];
	}
	return 32;
}

bool dev_lu_write_cache(const struct dev_lu *lu)
{
	return lu->bs && !lu->pass.device && dev_has_cache(lu) &&
	       !dev_writes_through(lu);
}

void dev_lu_serial(const struct dev_lu *lu, char out[DEV_SERIAL_SIZE])
{
	out[dev_serial(lu, out)] = '\0';
}

uint8_t *dev_put_designator(uint8_t *p, uint8_t code, uint8_t kind, size_t len)
{
	/* protocol identifier iSCSI (5) where the port or device is meant */
	p[0] = (uint8_t)((kind & PIV_ISCSI ? 0x50 : 0) | code);
	p[1] = kind;
	p[3] = (uint8_t)len;
	return p + 4 + len;
}

uint8_t *dev_put_naa(const struct dev_lu *lu, uint8_t *p)
{
	memcpy(p + 4, lu->uuid, 8);
	p[4] = (uint8_t)(0x30 | (p[4] & 0x0f));
	return dev_put_designator(p, CODE_BINARY, ASSOC_LU | 0x3, 8);
}

uint8_t *dev_put_t10(const struct dev_lu *lu, uint8_t *p)
{
	const char *vendor = dev_names_of(lu)->vendor;
	size_t n;

	if (!*vendor)
		vendor = "OPENISER";
	memset(p + 4, ' ', 8);
	memcpy(p + 4, vendor, MIN(strlen(vendor), (size_t)8));
	n = dev_serial(lu, (char *)p + 12);
	return dev_put_designator(p, CODE_ASCII, ASSOC_LU | 0x1, 8 + n);
}

void dev_lu_put_name(const struct dev_lu *lu, uint8_t *p)
{
	dev_put_naa(lu, p);
}

bool dev_lu_has_name(const struct dev_lu *lu, uint8_t code_set, uint8_t type,
		     const uint8_t *name, size_t len)
{
	uint8_t all[128] = { 0 };
	const uint8_t *end = dev_put_t10(lu, dev_put_naa(lu, all));

	for (const uint8_t *p = all; p < end; p += 4 + p[3])
		if ((p[0] & 0xf) == code_set && (p[1] & 0xf) == type &&
		    p[3] == len && memcmp(p + 4, name, len) == 0)
			return true;
	return false;
}
