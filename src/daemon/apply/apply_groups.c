/* SPDX-License-Identifier: BSD-2-Clause */
/* apply_groups.c: the target port groups of a configuration that comes into force. */
#include "daemon/apply/apply_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/daemon.h"

static const struct cfg_alua *find(const struct cfg_model *m, uint16_t id)
{
	for (unsigned i = 0; i < m->aluas.n; i++)
		if (m->aluas.v[i].group.id == id)
			return &m->aluas.v[i];
	return NULL;
}

void apply_groups_plan(struct apply_groups *g, const struct cfg_model *from,
		       const struct cfg_model *to)
{
	*g = (struct apply_groups){ .differ = from->aluas.n != to->aluas.n,
				    .n = to->aluas.n };
	for (unsigned i = 0; i < to->aluas.n; i++) {
		const struct dev_group *now = &to->aluas.v[i].group;
		const struct cfg_alua *a = find(from, now->id);
		const struct dev_group *was = a ? &a->group : NULL;
		struct dev_group_wish *w = &g->wishes[i];

		w->group = *now;
		w->set_state = was && was->state != now->state;
		w->set_preferred = was && was->preferred != now->preferred;
		g->differ |= !was || w->set_state || w->set_preferred ||
			     was->nports != now->nports ||
			     memcmp(was->ports, now->ports,
				    now->nports * sizeof(now->ports[0])) != 0;
	}
}

bool apply_groups_check(const struct daemon *d, const struct cfg_model *m,
			struct cfg_errors *e)
{
	struct apply_groups g;
	int err = 0;

	apply_groups_plan(&g, d->model, m);
	if (g.differ)
		err = dev_groups_check(d->server, g.wishes, g.n);
	if (err == ERR_BUSY)
		cfg_error(e, (struct cfg_place){ 0 },
			  "alua-groups: a port cannot lose its access: a "
			  "SANITIZE is in progress, which writes to its LUN; "
			  "wait for its end");
	else if (err)
		cfg_error(e, (struct cfg_place){ 0 }, "%s", err_str(err));
	return !err;
}
