/* SPDX-License-Identifier: BSD-2-Clause */
/* server.c: logical units, nexuses, logical unit numbers. */
#include <stdlib.h>
#include <string.h>

#include "device/attention.h"
#include "device/cd.h"
#include "device/condition.h"
#include "device/copy.h"
#include "device/keep.h"
#include "device/range.h"
#include "device/table.h"
#include "device/taskset.h"

struct dev_server *dev_server_new(const struct dev_env *env,
				  uint32_t max_transfer)
{
	struct dev_server *s;

	if (env->nworkers == 0 || env->nworkers > DEV_MAX_WORKERS)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->env = *env;
	s->max_transfer = max_transfer;
	for (unsigned i = 0; i < DEV_MAX_WORKERS; i++) {
		list_init(&s->nexuses[i]);
		list_init(&s->closing[i]);
	}
	list_init(&s->rsv_waiting);
	list_init(&s->keep_waiting);
	list_init(&s->alua_waiting);
	s->first_port = 1;
	dev_command_index(s);
	return s;
}

void dev_server_free(struct dev_server *s)
{
	if (!s)
		return;
	dev_server_reservations_fini(s);
	dev_tokens_fini(s);
	for (unsigned i = 0; i < DEV_MAX_LUNS; i++) {
		if (!s->lus[i])
			continue;
		if (s->lus[i]->bs)
			bs_close(s->lus[i]->bs);
		if (s->lus[i]->pass)
			s->lus[i]->pass->ops->close(s->lus[i]->pass);
		for (unsigned w = 0; w < s->env.nworkers; w++)
			dev_priorities_forget(s->lus[i], w);
		dev_lanes_fini(s->lus[i]);
		free(s->lus[i]->kept);
		free(s->lus[i]);
	}
	dev_server_groups_fini(s);
	free(s->ports);
	free(s);
}

static bool has_uuid(const struct dev_lu_config *cfg)
{
	static const uint8_t none[16];

	return memcmp(cfg->uuid, none, sizeof(none)) != 0;
}

int dev_lu_add(struct dev_server *s, const struct dev_lu_config *cfg,
	       struct bs *b)
{
	struct dev_lu *lu;

	if (cfg->lun >= DEV_MAX_LUNS)
		return ERR_RANGE;
	if (s->lus[cfg->lun])
		return ERR_BUSY;
	lu = calloc(1, sizeof(*lu));
	if (!lu)
		return ERR_NOMEM;
	lu->server = s;
	lu->cfg = *cfg;
	if (dev_keep_init(lu) || dev_lanes_init(lu)) {
		free(lu->kept);
		free(lu);
		return ERR_NOMEM;
	}
	lu->bs = b;
	lu->block_size = b ? b->block_size : CD_BLOCK;
	lu->block_shift = (unsigned)__builtin_ctz(lu->block_size);
	lu->blocks = b ? b->size >> lu->block_shift : 0;
	dev_lu_hard_reset(lu);
	lu->read_only = cfg->read_only || !b || (b->caps & BS_CAP_READ_ONLY);
	lu->condition = b ? LU_READY : LU_EMPTY;
	memcpy(lu->uuid, has_uuid(cfg) || !b ? cfg->uuid : b->uuid, 16);
	lu->protection = b && b->protection ? b->protection->type : 0;
	dev_lu_reservations_init(lu);
	s->lus[cfg->lun] = lu;
	return 0;
}

/* It has the face of a store, for all that asks for a name and a UUID. What
 * waits for the unit as a whole waits for its only block (range.c). */
int dev_lu_add_pass(struct dev_server *s, const struct dev_lu_config *cfg,
		    struct pass *p)
{
	const struct dev_lu_config c = { .lun = cfg->lun,
					 .read_only = cfg->read_only,
					 .keeps = cfg->keeps };
	struct bs *face = bs_null_new(p->name, 0, 512);
	int err = ERR_NOMEM;

	if (face) {
		memcpy(face->uuid, p->uuid, sizeof(face->uuid));
		err = dev_lu_add(s, &c, face);
	}
	if (err) {
		if (face)
			bs_close(face);
		return err;
	}
	p->max_transfer = MIN(p->max_transfer, s->max_transfer);
	s->lus[cfg->lun]->pass = p;
	s->lus[cfg->lun]->blocks = 1;
	return 0;
}

struct dev_lu *dev_lu_get(struct dev_server *s, uint16_t lun)
{
	return lun < DEV_MAX_LUNS ? s->lus[lun] : NULL;
}

struct dev_lu *dev_nexus_lu(const struct dev_nexus *n, uint16_t lun)
{
	return dev_lu_get(n->server, lun);
}

enum dev_type dev_lu_type(const struct dev_lu *lu)
{
	return lu ? lu->cfg.type : DEV_DISK;
}

uint16_t dev_lu_lun(const struct dev_lu *lu)
{
	return lu->cfg.lun;
}

struct bs *dev_lu_backstore(const struct dev_lu *lu)
{
	return lu->bs;
}

/* ---- SAM-5 §4.7: one level, peripheral (00b) or flat (01b) ---- */

int dev_lun_decode(uint64_t wire, uint16_t *lun)
{
	uint16_t first = (uint16_t)(wire >> 48);

	if (wire & 0x0000ffffffffffffull)
		return ERR_NOT_FOUND;
	switch (first >> 14) {
	case 0: /* bus 0 only */
		if (first & 0x3f00)
			return ERR_NOT_FOUND;
		*lun = first & 0xff;
		return 0;
	case 1:
		*lun = first & 0x3fff;
		return 0;
	default:
		return ERR_NOT_FOUND;
	}
}

uint64_t dev_lun_encode(uint16_t lun)
{
	return (uint64_t)lun << 48;
}

/* ---- nexuses ---- */

struct dev_nexus *dev_nexus_open(struct dev_server *s,
				 const struct dev_nexus_config *cfg)
{
	struct dev_nexus *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->server = s;
	n->cfg = *cfg;
	list_init(&n->tasks);
	for (uint16_t lun = 0; lun < DEV_MAX_LUNS; lun++)
		if (s->lus[lun])
			dev_attention_set(n, lun, UA_POWER_ON);
	dev_nexus_reservations_init(n);
	dev_nexus_access_init(n);
	dev_nexus_aca_init(n);
	dev_nexus_priorities_init(n);
	list_push_back(&s->nexuses[cfg->worker], &n->link);
	return n;
}

int dev_port_add(struct dev_server *s, const char *name, uint16_t *rtpi)
{
	unsigned i = 0;
	void *more;

	if (strlen(name) >= sizeof(s->ports[0]))
		return ERR_TOO_LONG;
	while (i < s->nports && strcmp(s->ports[i], name) != 0)
		i++;
	*rtpi = (uint16_t)(s->first_port + i);
	if (i < s->nports)
		return 0;
	if (i == DEV_MAX_PORTS || s->first_port + i > UINT16_MAX)
		return ERR_LIMIT;
	more = realloc(s->ports, (i + 1) * sizeof(s->ports[0]));
	if (!more)
		return ERR_NOMEM;
	s->ports = more;
	memcpy(s->ports[i], name, strlen(name) + 1);
	s->nports++;
	return 0;
}

void dev_server_first_port(struct dev_server *s, uint16_t rtpi)
{
	s->first_port = rtpi;
}
