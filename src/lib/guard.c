/* SPDX-License-Identifier: BSD-2-Clause */
/* guard.c: which LUNs of a session are known to lead to the unit that the caller means. */
#include <stdlib.h>
#include <string.h>

#include "lib/internal.h"
#include "scsi/cdb.h"

/* ---- functions of their arguments alone ---- */

bool lib_guard_is_doubt(uint16_t asc)
{
	return asc >> 8 == ASC_POWER_ON >> 8 || asc == ASC_CAPACITY_CHANGED ||
	       asc == ASC_INQUIRY_CHANGED ||
	       asc == ASC_DEVICE_IDENTIFIER_CHANGED ||
	       asc == ASC_REPORTED_LUNS_CHANGED;
}

/* Block commands (SBC-3 table 13), and copies between units. */
static const uint8_t covered[] = {
	0x04, 0x07, 0x08, 0x0a, 0x28, 0x2a, 0x2e, 0x2f, 0x35, 0x3e,
	0x3f, 0x41, 0x42, 0x48, 0x50, 0x51, 0x52, 0x53, 0x7f, 0x80,
	0x81, 0x82, 0x83, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8e,
	0x8f, 0x91, 0x93, 0x9c, 0x9f, 0xa8, 0xaa, 0xae, 0xaf,
};

/* The only ones with this opcode that ask the unit about itself. */
static bool is_capacity_query(const uint8_t *cdb)
{
	return cdb[0] == SCSI_SERVICE_ACTION_IN_16 &&
	       scsi_cdb_sa(cdb) == SCSI_SAI_READ_CAPACITY_16;
}

bool lib_guard_covers(const struct iser_io *io)
{
	return !io->no_retry && (memchr(covered, io->cdb[0], sizeof(covered)) ||
				 (io->cdb[0] == SCSI_SERVICE_ACTION_IN_16 &&
				  !is_capacity_query(io->cdb)));
}

/* ---- the LUNs ---- */

struct lib_guarded *lib_guard_find(const struct iser_session *s, int lun)
{
	struct lib_guarded *g = s->guard.luns;

	while (g && g->lun != lun)
		g = g->next;
	return g;
}

struct lib_guarded *lib_guard_get(struct iser_session *s, int lun)
{
	struct lib_guarded *g = lib_guard_find(s, lun);

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->lun = lun;
	g->held.tail = &g->held.first;
	g->ended.tail = &g->ended.first;
	g->next = s->guard.luns;
	s->guard.luns = g;
	return g;
}

void lib_guard_fini(struct iser_session *s)
{
	while (s->guard.luns) {
		struct lib_guarded *g = s->guard.luns;

		s->guard.luns = g->next;
		free(g);
	}
	free(s->guard.query);
	s->guard.query = NULL;
}

void lib_guard_go(struct iser_session *s, struct lib_guarded *g,
		  enum lib_guard_state state)
{
	g->state = state;
	s->guard.open = 0;
}

void lib_guard_ask(struct iser_session *s, struct lib_guarded *g)
{
	lib_guard_go(s, g, GUARD_UNSURE);
	s->guard.ask(s, g);
}

/* ---- commands ---- */

int lib_guard_refusal(struct iser_session *s, const struct lib_guarded *g)
{
	return lib_fail(s->ctx, ISER_E_CHANGED,
			"LUN %d of %s at %s:%u: the unit %s; no command is "
			"sent to it; connect again to use it",
			g->lun, s->url.target, s->url.host, s->url.port,
			g->why);
}

bool lib_guard_waits(struct iser_session *s, const struct iser_io *io)
{
	struct lib_guarded *g;

	if (!lib_guard_covers(io))
		return false;
	g = lib_guard_get(s, io->lun);
	if (g && g->state == GUARD_OPEN) {
		s->guard.open = 1 + io->lun;
		return false;
	}
	if (g && g->state == GUARD_NEW)
		lib_guard_ask(s, g);
	else if (!g || g->state == GUARD_REFUSED)
		s->guard.ask(s, g);
	return true;
}

/* ---- what the caller knows ---- */

void lib_guard_note(struct iser_session *s, int lun,
		    const struct iser_capacity *c)
{
	struct lib_guarded *g = s->set ? NULL : lib_guard_get(s, lun);

	if (!g || g->has_who)
		return;
	g->who.has_capacity = true;
	g->who.capacity = *c;
}

static int fail_learn(struct iser_session *s, int lun, int err, const char *why)
{
	return lib_fail(s->ctx, err, "LUN %d of %s: the unit %s", lun,
			s->url.target, why);
}

int lib_guard_learn(struct iser_session *s, int lun, const struct lib_who *who)
{
	const struct lib_who *known = s->set ? s->set->ops->who(s) : NULL;
	struct lib_guarded *g = s->set ? NULL : lib_guard_get(s, lun);
	unsigned accept = LIB_WEAK | LIB_GROWTH;
	char why[LIB_WHY_MAX];
	int err = 0;

	if (!s->set && !g)
		return lib_fail(s->ctx, ISER_E_NOMEM, "out of memory");
	if (g && g->has_who)
		known = &g->who;
	if (g && g->is_new_medium)
		accept |= LIB_SIZE;
	if (known)
		err = lib_who_check(known, who, accept, why, sizeof(why));
	if (err)
		return fail_learn(s, lun, err, why);
	if (!g)
		return 0;
	if (g->state == GUARD_NEW && !g->has_who)
		lib_guard_go(s, g, GUARD_OPEN);
	g->who = *who;
	g->has_who = true;
	return 0;
}
