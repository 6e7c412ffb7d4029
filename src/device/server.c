/* SPDX-License-Identifier: BSD-2-Clause */
/* server.c: creates and frees the device, its logical units and its target
 * ports. */
#include <stdlib.h>
#include <string.h>

#include "device/alua/alua.h"
#include "device/cd/cd.h"
#include "device/copy/copy.h"
#include "device/keep/keep.h"
#include "device/order/taskset.h"
#include "device/pass/pass_unit.h"
#include "device/primary/mode.h"
#include "device/reserve/reserve.h"
#include "device/table.h"
#include "device/unit/attention.h"
#include "device/unit/command.h"
#include "device/unit/condition.h"
#include "device/unit/range.h"

struct dev_server *dev_server_new(const struct dev_env *env,
				  uint32_t max_transfer)
{
	struct dev_server *s;

	if (env->nworkers == 0 || env->nworkers > DEV_MAX_WORKERS)
		return NULL;
	s = aligned_alloc(_Alignof(struct dev_server), sizeof(*s));
	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->env = *env;
	s->max_transfer = max_transfer;
	for (unsigned i = 0; i < DEV_MAX_WORKERS; i++) {
		share_init(&s->memory[i].share, env->buf_common,
			   env->buf_reserve, env->buf_burst);
		list_init(&s->nexuses[i]);
		list_init(&s->closing[i]);
	}
	dev_changes_init(&s->lu_changes);
	dev_changes_init(&s->keep_changes);
	dev_changes_init(&s->alua_changes);
	s->first_port = 1;
	dev_command_index(s, dev_rows_all);
	return s;
}

/* Frees the nexuses whose end was in progress when the threads ended. */
static void free_closing(struct dev_server *s)
{
	struct list *it;

	for (unsigned w = 0; w < s->env.nworkers; w++)
		while ((it = s->closing[w].next) != &s->closing[w])
			dev_nexus_free(list_entry(it, struct dev_nexus, link));
}

void dev_server_free(struct dev_server *s)
{
	if (!s)
		return;
	dev_changes_forget(&s->lu_changes);
	free_closing(s);
	dev_tokens_fini(s);
	for (unsigned i = 0; i < DEV_MAX_LUNS; i++) {
		if (!s->lus[i])
			continue;
		dev_lu_reservations_fini(s->lus[i]);
		if (s->lus[i]->bs)
			bs_close(s->lus[i]->bs);
		if (s->lus[i]->pass.device)
			s->lus[i]->pass.device->ops->close(
				s->lus[i]->pass.device);
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
	s->units[s->nunits++] = lu;
	return 0;
}

/* The unit has an empty backstore with the name and the UUID of the real
 * device. The unit counts as one block, so that a range covers the whole
 * unit (range.c). */
int dev_lu_add_pass(struct dev_server *s, const struct dev_lu_config *cfg,
		    struct pass *p)
{
	const struct dev_lu_config c = { .lun = cfg->lun,
					 .read_only = cfg->read_only,
					 .keeps = cfg->keeps };
	struct bs *empty = bs_null_new(p->name, 0, 512);
	int err = ERR_NOMEM;

	if (empty) {
		memcpy(empty->uuid, p->uuid, sizeof(empty->uuid));
		err = dev_lu_add(s, &c, empty);
	}
	if (err) {
		if (empty)
			bs_close(empty);
		return err;
	}
	p->max_transfer = MIN(p->max_transfer, s->max_transfer);
	s->lus[cfg->lun]->pass.device = p;
	s->lus[cfg->lun]->pass.owns = dev_pass_owns;
	s->lus[cfg->lun]->blocks = 1;
	return 0;
}

int dev_lu_restore(struct dev_lu *lu, enum dev_kept kind, const uint8_t *data,
		   size_t len)
{
	int err;

	if (kind == DEV_KEPT_RESERVATIONS)
		return rsv_restore(lu, data, len);
	err = keep_decode(lu, data, len, lu->kept);
	if (!err)
		err = dev_mode_restore(lu);
	if (!err)
		dev_keep_restored(lu);
	return err;
}

/* ---- target ports ---- */

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
