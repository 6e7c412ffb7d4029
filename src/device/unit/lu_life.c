/* SPDX-License-Identifier: BSD-2-Clause */
/* lu_life.c: how long a unit exists (lu_life.h). */
#include "device/unit/lu_life.h"

void dev_lu_hold(struct dev_lu *lu)
{
	__atomic_add_fetch(&lu->live.refs, 1, __ATOMIC_RELAXED);
}

void dev_lu_release(struct dev_lu *lu)
{
	struct dev_server *s = lu->server;

	if (__atomic_sub_fetch(&lu->live.refs, 1, __ATOMIC_ACQ_REL) == 0 &&
	    !s->is_ending)
		s->env.post(s->env.arg, 0, &lu->live.gone);
}

/* Two workers decide by two of these: each first stores its own, then loads the
 * other's. */
static bool load(const bool *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static void store(bool *p, bool on)
{
	__atomic_store_n(p, on, __ATOMIC_SEQ_CST);
}

bool dev_lu_is_there(const struct dev_lu *lu)
{
	return load(&lu->live.is_there);
}

void dev_lu_set_there(struct dev_lu *lu)
{
	store(&lu->live.is_there, true);
}

void dev_lu_set_leaving(struct dev_lu *lu)
{
	store(&lu->live.leaving, true);
	store(&lu->live.is_there, false);
}

bool dev_lu_is_leaving(const struct dev_lu *lu)
{
	return load(&lu->live.leaving);
}

void dev_server_opens(struct dev_server *s)
{
	store(&s->has_opened, true);
}

bool dev_server_has_opened(const struct dev_server *s)
{
	return load(&s->has_opened);
}

void dev_background_begin(struct dev_lu *lu)
{
	dev_lu_hold(lu);
	__atomic_fetch_add(&lu->server->nbackground, 1, __ATOMIC_RELAXED);
}

void dev_background_end(struct dev_lu *lu)
{
	__atomic_fetch_sub(&lu->server->nbackground, 1, __ATOMIC_RELEASE);
	dev_lu_release(lu);
}
