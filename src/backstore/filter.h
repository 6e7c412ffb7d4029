/* SPDX-License-Identifier: BSD-2-Clause */
/* filter.h: the common part of the filters. Private to this room. */
#ifndef BACKSTORE_FILTER_H
#define BACKSTORE_FILTER_H

#include "backstore/backstore.h"
#include "base/err.h"

/* bs_filter_init makes f a copy of next with its own operations. */
static inline void bs_filter_init(struct bs *f, const struct bs_ops *ops,
				  const struct bs *next)
{
	*f = *next;
	f->ops = ops;
	f->caps &= ~BS_CAP_LEND;
}

/* bs_filter_lend: no filter lends. */
static inline int bs_filter_lend(struct bs *f, uint64_t off, size_t len,
				 struct iovec *iov)
{
	(void)f;
	(void)off;
	(void)len;
	(void)iov;
	return ERR_UNSUPPORTED;
}

#endif
