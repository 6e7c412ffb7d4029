/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c: the names of a unit and their designators (SPC-4 §7.8.6). */
#include "device/unit/names.h"

#include <string.h>

#include "device/unit/settings.h"

void dev_lu_names(const struct dev_lu *lu, struct dev_names *out)
{
	*out = *dev_names_of(lu);
}

bool dev_lu_write_cache(const struct dev_lu *lu)
{
	return lu->bs && !lu->pass.device && dev_has_cache(lu) &&
	       !dev_writes_through(lu);
}

uint8_t *dev_put_designator(uint8_t *p, uint8_t code, uint8_t kind, size_t len)
{
	/* protocol identifier iSCSI (5) where the port or device is meant */
	p[0] = (uint8_t)((kind & PIV_ISCSI ? 0x50 : 0) | code);
	p[1] = kind;
	p[3] = (uint8_t)len;
	return p + 4 + len;
}

static uint8_t *put_id(const struct dev_id *id, uint8_t type, uint8_t *p)
{
	if (!id->len)
		return p;
	memcpy(p + 4, id->bytes, id->len);
	return dev_put_designator(p, CODE_BINARY, ASSOC_LU | type, id->len);
}

/* The T10 vendor ID with the serial number (SPC-4 §7.8.6.4). */
static uint8_t *put_t10(const struct dev_names *names, uint8_t *p)
{
	const char *vendor = *names->vendor ? names->vendor : "OPENISER";
	size_t n = strlen(names->serial);

	memset(p + 4, ' ', 8);
	memcpy(p + 4, vendor, MIN(strlen(vendor), (size_t)8));
	memcpy(p + 12, names->serial, n);
	return dev_put_designator(p, CODE_ASCII, ASSOC_LU | 0x1, 8 + n);
}

uint8_t *dev_put_names(const struct dev_lu *lu, uint8_t *p)
{
	const struct dev_names *names = dev_names_of(lu);

	p = put_id(&names->naa, 0x3, p);
	p = put_id(&names->eui, 0x2, p);
	return put_t10(names, p);
}

void dev_lu_put_name(const struct dev_lu *lu, uint8_t *p)
{
	put_id(&dev_names_of(lu)->naa, 0x3, p);
}

bool dev_lu_has_name(const struct dev_lu *lu, uint8_t code_set, uint8_t type,
		     const uint8_t *name, size_t len)
{
	uint8_t all[DEV_NAMES_MAX] = { 0 };
	const uint8_t *end = dev_put_names(lu, all);

	for (const uint8_t *p = all; p < end; p += 4 + p[3])
		if ((p[0] & 0xf) == code_set && (p[1] & 0xf) == type &&
		    p[3] == len && memcmp(p + 4, name, len) == 0)
			return true;
	return false;
}
