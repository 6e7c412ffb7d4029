/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handover.c: the persistent reservations of a unit pass from one process to the
 * next one, which serves the same backstore without a power loss in between: also
 * those without APTPL. Numbers are big-endian:
 *
 *    0  4  PRGENERATION
 *    4  1  1: APTPL
 *    5     the record of pr_save.c
 */
#include <stdlib.h>

#include "device/reserve/reserve.h"

#define HEAD_LEN 5

int dev_lu_hand_over(const struct dev_lu *lu, uint8_t **bytes, size_t *len)
{
	const struct rsv_state *s = lu->rsv[DEV_HOME];
	uint8_t *p;

	*bytes = NULL;
	*len = 0;
	if (s->lost || !lu->bs || lu->shared || (!s->n && !s->generation))
		return 0;
	p = malloc(HEAD_LEN + rsv_encoded_max(s));
	if (!p)
		return ERR_NOMEM;
	put_be32(p, s->generation);
	p[4] = s->aptpl;
	*len = HEAD_LEN + rsv_encode(s, lu->bs->uuid, p + HEAD_LEN);
	*bytes = p;
	return 0;
}

int dev_lu_take_over(struct dev_lu *lu, const uint8_t *bytes, size_t len)
{
	struct rsv_state *s;
	int err;

	if (len < HEAD_LEN)
		return ERR_TRUNCATED;
	if (bytes[4] > 1)
		return ERR_FORMAT;
	if (!lu->bs)
		return ERR_NOT_FOUND;
	err = rsv_decode(bytes + HEAD_LEN, len - HEAD_LEN, lu->bs->uuid, &s);
	if (err)
		return err;
	s->generation = get_be32(bytes);
	s->aptpl = bytes[4];
	rsv_set_first(lu, s);
	return 0;
}
