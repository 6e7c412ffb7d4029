/* SPDX-License-Identifier: BSD-2-Clause */
/* server.c: creates and frees the device and its logical units. */
#include <stdlib.h>
#include <string.h>

#include "device/alua/alua.h"
#include "device/cd/cd.h"
#include "device/copy/copy.h"
#include "device/keep/keep.h"
#include "device/live.h"
#include "device/order/taskset.h"
#include "device/pass/pass_unit.h"
#include "device/primary/mode.h"
#include "device/reserve/reserve.h"
#include "device/table.h"
#include "device/unit/attention.h"
#include "device/unit/command.h"
#include "device/unit/condition.h"
#include "device/unit/ports.h"
#include "device/unit/range.h"
#include "device/unit/settings.h"
#include "device/unit/shared.h"

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
	list_init(&s->leaving);
	dev_changes_init(&s->lu_changes);
	dev_changes_init(&s->keep_changes);
	dev_changes_init(&s->alua_changes);
	s->next_port = 1;
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

static void end_lu(struct dev_lu *lu)
{
	dev_tokens_fini(lu);
	dev_lu_free(lu);
}

void dev_server_free(struct dev_server *s)
{
	struct dev_lu *lu;
	struct list *it;

	if (!s)
		return;
	s->is_ending = true;
	dev_changes_forget(&s->lu_changes);
	dev_changes_forget(&s->keep_changes);
	free_closing(s);
	while ((lu = dev_lu_from(s, 0)))
		end_lu(lu);
	while ((it = list_pop_front(&s->leaving)))
		end_lu(list_entry(it, struct dev_lu, live.link));
	lun_table_fini(&s->lus);
	dev_server_groups_fini(s);
	dev_ports_fini(s);
	free(s);
}

static bool has_uuid(const struct dev_lu_config *cfg)
{
	static const uint8_t none[16];

	return memcmp(cfg->uuid, none, sizeof(none)) != 0;
}

/* The caller of dev_lu_add still owns the backstore. */
static void drop_new(struct dev_lu *lu)
{
	dev_lanes_fini(lu);
	dev_shared_fini(lu);
	dev_settings_fini(lu);
	free(lu->kept);
	free(lu);
}

static bool can_be_shared(const struct dev_server *s,
			  const struct dev_lu_config *cfg, const struct bs *b)
{
	return cfg->type == DEV_DISK && b && !b->protection && s->env.save &&
	       s->env.refresh && s->env.regroup && s->env.fenced;
}

int dev_lu_add(struct dev_server *s, const struct dev_lu_config *cfg,
	       struct bs *b)
{
	struct dev_lu *lu;

	if (cfg->lun >= DEV_MAX_LUNS)
		return ERR_RANGE;
	if (dev_lu_get(s, cfg->lun))
		return ERR_BUSY;
	if (cfg->clustered && !can_be_shared(s, cfg, b))
		return ERR_UNSUPPORTED;
	lu = calloc(1, sizeof(*lu));
	if (!lu)
		return ERR_NOMEM;
	lu->server = s;
	lu->cfg = *cfg;
	lu->live.refs = 1;
	lu->ctl = lu->saved = dev_mode_defaults;
	list_init(&lu->live.link);
	lu->bs = b;
	memcpy(lu->uuid, has_uuid(cfg) || !b ? cfg->uuid : b->uuid, 16);
	if ((cfg->clustered && dev_shared_new(lu)) || dev_keep_init(lu) ||
	    dev_settings_init(lu) || dev_lanes_init(lu)) {
		drop_new(lu);
		return ERR_NOMEM;
	}
	lu->block_size = b ? b->block_size : CD_BLOCK;
	lu->block_shift = (unsigned)__builtin_ctz(lu->block_size);
	lu->blocks = b ? b->size >> lu->block_shift : 0;
	dev_lu_hard_reset(lu);
	lu->condition = b ? LU_READY : LU_EMPTY;
	lu->protection = b && b->protection ? b->protection->type : 0;
	dev_lu_reservations_init(lu);
	if (lun_table_set(&s->lus, cfg->lun, lu)) {
		drop_new(lu);
		return ERR_NOMEM;
	}
	dev_lu_arrive(lu);
	return 0;
}

/* The unit has an empty backstore with the name and the UUID of the real
 * device. The unit counts as one block, so that a range covers the whole
 * unit (range.c). */
int dev_lu_add_pass(struct dev_server *s, const struct dev_lu_config *cfg,
		    struct pass *p)
{
	struct dev_lu_config c = { .lun = cfg->lun,
				   .read_only = cfg->read_only,
				   .keeps = cfg->keeps,
				   .limits = cfg->limits };
	struct bs *empty = bs_null_new(p->name, 0, 512);
	struct dev_lu *lu;
	int err = ERR_NOMEM;

	memcpy(c.name, cfg->name, sizeof(c.name));
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
	lu = dev_lu_get(s, cfg->lun);
	lu->pass.device = p;
	lu->pass.owns = dev_pass_owns;
	lu->blocks = 1;
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
