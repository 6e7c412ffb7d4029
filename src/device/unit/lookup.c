/* SPDX-License-Identifier: BSD-2-Clause */
/* lookup.c: finds units by their LUN, and properties of units. */
#include "device/unit/command.h"
#include "device/unit/range.h"

struct dev_lu *dev_lu_get(struct dev_server *s, uint16_t lun)
{
	return lun < DEV_MAX_LUNS ? lun_table_get(&s->lus, lun) : NULL;
}

struct dev_lu *dev_lu_from(struct dev_server *s, unsigned lun)
{
	return lun_table_from(&s->lus, lun);
}

struct dev_lu *dev_lu_after(const struct dev_lu *lu)
{
	return dev_lu_from(lu->server, lu->cfg.lun + 1u);
}

enum dev_type dev_lu_type(const struct dev_lu *lu)
{
	return lu ? lu->cfg.type : DEV_DISK;
}

uint16_t dev_lu_lun(const struct dev_lu *lu)
{
	return lu->cfg.lun;
}

const char *dev_lu_name(const struct dev_lu *lu)
{
	return lu->cfg.name;
}

struct bs *dev_lu_backstore(const struct dev_lu *lu)
{
	return lu->bs;
}

bool dev_is_cd(const struct dev_lu *lu)
{
	return lu->cfg.type == DEV_CD;
}

const char *dev_lu_store_name(const struct dev_lu *lu)
{
	return dev_is_cd(lu) ? NULL : lu->bs->name;
}

bool dev_has_groups(const struct dev_lu *lu)
{
	return lu->shared || dev_setting(&lu->server->has_groups);
}

bool dev_is_not_shared(const struct dev_lu *lu)
{
	return !lu->shared;
}

bool dev_has_type_2(const struct dev_lu *lu)
{
	return DEV_PROTECTION(lu) == 2;
}

bool dev_keeps(const struct dev_lu *lu)
{
	return lu->kept != NULL;
}

bool dev_denied_at(const struct dev_itl *i, unsigned columns)
{
	return (i->denied & columns & RSV_ALL) != 0;
}

/* ---- logical unit numbers, SAM-5 §4.7: one level, peripheral (00b) or flat (01b) ---- */

uint64_t dev_lun_encode(uint16_t lun)
{
	/* SAM-5 §4.7.7.3: flat space addressing for a LUN above 255 only */
	return (uint64_t)(lun < 256 ? lun : 0x4000 | lun) << 48;
}
