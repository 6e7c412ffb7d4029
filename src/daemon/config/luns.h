/* SPDX-License-Identifier: BSD-2-Clause */
/* luns.h: the LUNs of a configuration: which backstore initiators reach by which
 * target and LUN. */
#ifndef DAEMON_CONFIG_LUNS_H
#define DAEMON_CONFIG_LUNS_H

#include "daemon/config/model.h"

/* A LUN: TARGET/N, or TARGET/MAP/N. Texts are borrowed for the call. */
struct cfg_reach {
	const char *target, *backstore;
	unsigned map; /* from 1; 0: of the target itself */
	unsigned lun;
	bool read_only;
};

/* cfg_luns_each calls fn for each LUN of m in the order of the targets: those of a
 * target before those of its maps. */
void cfg_luns_each(const struct cfg_model *m,
		   void (*fn)(void *arg, const struct cfg_reach *r), void *arg);
/*
 * cfg_lun_backstore returns the name of the backstore that text names: its own name,
 * or TARGET/N or TARGET/MAP/N. NULL: e has the error, without a place. The name is m's.
 */
const char *cfg_lun_backstore(const struct cfg_model *m, const char *text,
			      struct cfg_errors *e);

#endif
