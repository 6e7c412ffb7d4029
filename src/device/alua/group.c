/* SPDX-License-Identifier: BSD-2-Clause */
/* group.c: what the groups of the server and those of a shared unit have in common. */
#include "device/alua/alua.h"
#include "device/unit/command.h"

#define SUPPORTED 0xcf /* T_SUP O_SUP U_SUP S_SUP AN_SUP AO_SUP */
/* in the parameter list of SET TARGET PORT GROUPS */
#define FIRST_GROUP_AT 6

size_t dev_put_group(uint8_t *p, const struct dev_group_head *g,
		     const uint16_t *ports, unsigned n)
{
	size_t at = 8;

	p[0] = (uint8_t)((g->preferred ? 0x80 : 0) | g->state);
	p[1] = SUPPORTED;
	put_be16(p + 2, g->id);
	p[5] = g->status;
	p[7] = (uint8_t)n;
	for (unsigned i = 0; i < n; i++, at += 4)
		put_be16(p + at + 2, ports[i]);
	return at;
}

void dev_groups_set(struct dev_task *t, int err)
{
	if (!err)
		dev_good(t);
	else if (err == ERR_NOT_FOUND) /* no such group */
		dev_bad_parameter(t, FIRST_GROUP_AT);
	else if (err == ERR_NOMEM)
		dev_no_resources(t);
	else
		dev_check(t, SENSE_HARDWARE_ERROR, ASC_SET_GROUPS_FAILED);
}
