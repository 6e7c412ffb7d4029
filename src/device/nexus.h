/* SPDX-License-Identifier: BSD-2-Clause */
/* nexus.h: the units that a nexus gets and loses. */
#ifndef DEVICE_NEXUS_H
#define DEVICE_NEXUS_H

#include "device/unit/itl.h"

/* dev_nexus_join gives n access to the unit by this LUN. False: no memory. */
bool dev_nexus_join(struct dev_nexus *n, uint16_t lun, struct dev_lu *lu,
		    bool read_only);
/* dev_nexus_enter sets up the state of i, which is in the table of its nexus, with
 * POWER ON. */
void dev_nexus_enter(struct dev_itl *i);
/* dev_nexus_lose ends the access of the nexus of i to the unit; dev_nexus_let_go, after
 * all such calls, releases what the nexus has reserved there. Then it calls
 * n->mapping.done, maybe from within. */
void dev_nexus_lose(struct dev_itl *i);
void dev_nexus_let_go(struct dev_nexus *n);

#endif
