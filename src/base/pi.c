/* SPDX-License-Identifier: BSD-2-Clause */
/* pi.c: protection information; ISA-L computes the CRC. */
#include "base/pi.h"

#include <isa-l/crc.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

uint16_t pi_guard(const void *block, size_t len)
{
	return crc16_t10dif(0, block, len);
}

void pi_put(uint8_t pi[PI_LEN], uint16_t guard, uint16_t app, uint32_t ref)
{
	put_be16(pi, guard);
	put_be16(pi + 2, app);
	put_be32(pi + 4, ref);
}

void pi_none(uint8_t *pi, size_t n)
{
	memset(pi, 0xff, n * PI_LEN);
}

bool pi_is_off(uint8_t type, const uint8_t pi[PI_LEN])
{
	return get_be16(pi + 2) == 0xffff &&
	       (type != 3 || get_be32(pi + 4) == 0xffffffff);
}

/*
 * Type 2: the unit stores a reference tag of all ones for a WRITE command
 * without an expected tag, so such a tag cannot be checked. Type 3: the
 * reference tag belongs to the application (§4.22.2.5).
 */
static bool is_ref_wrong(const struct pi_rule *r, uint32_t ref, uint64_t i)
{
	if (r->type == 3 || (r->type == 2 && ref == 0xffffffff))
		return false;
	return ref != r->ref_want + (uint32_t)i;
}

int pi_check(const struct pi_rule *r, const void *block, size_t len,
	     const uint8_t pi[PI_LEN], uint64_t i)
{
	if (pi_is_off(r->type, pi))
		return 0;
	if (r->guard && get_be16(pi) != pi_guard(block, len))
		return ERR_PI_GUARD;
	if (r->app && (get_be16(pi + 2) ^ r->app_want) & r->app_mask)
		return ERR_PI_APP_TAG;
	if (r->ref && is_ref_wrong(r, get_be32(pi + 4), i))
		return ERR_PI_REF_TAG;
	return 0;
}
