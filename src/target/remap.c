/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remap.c: gives a session another LUN map. First the tasks at the units that the
 * session loses are aborted, with TASK ABORTED, so that the initiator does not
 * wait for their responses. Meanwhile new commands to these units end with BUSY;
 * commands to other units notice nothing. Then the device takes the map.
 */
#include "target/internal.h"

static void map_set(void *arg)
{
	struct tgt_session *s = arg;
	struct tgt_luns *l = &s->luns;
	void (*then)(struct tgt_session * s) = l->then;

	l->step = TGT_REMAP_NONE;
	dev_map_put(l->map);
	l->map = l->next;
	l->next = NULL;
	l->then = NULL;
	if (then)
		then(s); /* s may be free */
	else
		l->done(s);
}

static void tasks_aborted(struct tgt_abort *a)
{
	struct tgt_session *s = container_of(a, struct tgt_session, luns.abort);

	s->luns.step = TGT_REMAP_SETTING;
	dev_nexus_set_map(s->nexus, s->luns.next, map_set, s);
}

void tgt_remap_start(struct tgt_session *s, struct dev_map *map,
		     void (*done)(struct tgt_session *s))
{
	const struct tgt_scope scope = { .session = s, .lost = true };

	s->luns.step = TGT_REMAP_ABORTING;
	s->luns.next = dev_map_get(map);
	s->luns.done = done;
	tgt_abort_start(s->worker, &s->luns.abort, &scope, tasks_aborted);
}

bool tgt_remap_end(struct tgt_session *s, void (*then)(struct tgt_session *s))
{
	struct tgt_luns *l = &s->luns;

	if (l->step == TGT_REMAP_ABORTING) {
		tgt_abort_cancel(&l->abort);
		dev_map_put(l->next);
		l->next = NULL;
		l->step = TGT_REMAP_NONE;
	}
	if (l->step == TGT_REMAP_NONE)
		return true;
	l->then = then;
	return false;
}
