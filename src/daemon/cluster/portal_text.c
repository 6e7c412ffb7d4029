/* SPDX-License-Identifier: BSD-2-Clause */
/* portal_text.c: a portal of a gateway as a record has it. */
#include "daemon/cluster/portal_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

uint32_t portal_hash(const char *target)
{
	return crc32c_wire(crc32c_update(CRC32C_SEED, target, strlen(target)));
}

bool portal_write(char out[CLUSTER_PORTAL_MAX], const char *address,
		  unsigned tag, const char *target)
{
	int n = snprintf(out, CLUSTER_PORTAL_MAX, "%s,%u;%08x", address, tag,
			 portal_hash(target));

	return n > 0 && n < (int)CLUSTER_PORTAL_MAX;
}

/* An address goes into the answer of SendTargets as it is: numeric, with a port. */
static bool is_address(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon != text && isdigit((unsigned char)colon[1]) &&
	       !text[strspn(text, "0123456789abcdef.:[]")];
}

/* Reads a number of the given base, which ends at `stop`. */
static bool read_number(const char **text, int base, char stop, uint32_t max,
			uint32_t *v)
{
	unsigned long n;
	char *end;

	if (!isxdigit((unsigned char)**text))
		return false;
	n = strtoul(*text, &end, base);
	if (*end != stop || n > max)
		return false;
	*v = (uint32_t)n;
	*text = end + 1;
	return true;
}

bool portal_read(const char *text, struct remote_portal *p)
{
	const char *comma = strchr(text, ',');
	size_t len = comma ? (size_t)(comma - text) : 0;
	uint32_t tag;

	if (!len || len >= sizeof(p->address))
		return false;
	memcpy(p->address, text, len);
	p->address[len] = '\0';
	text = comma + 1;
	if (!is_address(p->address) ||
	    !read_number(&text, 10, ';', UINT16_MAX, &tag) || !tag ||
	    !read_number(&text, 16, '\0', UINT32_MAX, &p->target))
		return false;
	p->tag = tag;
	return true;
}
