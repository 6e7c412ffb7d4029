/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stray.c: Data-Outs at a target that belong to no open sequence (RFC 7143
 * §11.17.1, note 2).
 */
#include "base/err.h"
#include "datamover/impl.h"

static bool same_tags(const struct dm_data_tags *a, const struct iscsi_pdu *p)
{
	return a->valid && a->itt == p->itt && a->ttt == p->ttt;
}

static bool is_aborted(struct dm_strays *s, const struct iscsi_pdu *p)
{
	for (unsigned i = 0; i < DM_ABORTED_MAX; i++)
		if (same_tags(&s->aborted[i], p)) {
			s->aborted[i].valid = !p->final;
			return true;
		}
	return false;
}

void dm_stray_aborted(struct dm_strays *s, uint32_t itt, uint32_t ttt)
{
	struct dm_data_tags *at = &s->aborted[s->naborted++ % DM_ABORTED_MAX];

	s->forgot |= at->valid;
	*at = (struct dm_data_tags){ .itt = itt, .ttt = ttt, .valid = true };
}

/* [RFC 7143: 4.2.3.4 #8] */
int dm_stray_check(struct dm_strays *s, const struct iscsi_pdu *p)
{
	if (is_aborted(s, p) || s->forgot || same_tags(&s->rejected, p))
		return 0;
	s->rejected = (struct dm_data_tags){ .itt = p->itt,
					     .ttt = p->ttt,
					     .valid = true };
	return ERR_NOT_FOUND;
}
