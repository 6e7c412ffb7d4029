/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lu_life.h: how long a unit exists. The server, each I_T_L nexus, fence and round of
 * attentions, each token in the lanes and each operation in the background holds the
 * unit; dev_lu_remove releases the server's hold, and the last release frees the unit.
 */
#ifndef DEVICE_LU_LIFE_H
#define DEVICE_LU_LIFE_H

#include "device/unit/unit.h"

/* dev_lu_hold keeps the unit from being freed; the caller holds it already, or found it
 * in the current turn. On any worker. */
void dev_lu_hold(struct dev_lu *lu);
/* dev_lu_release ends one hold. With the last one a message to worker 0 frees the unit:
 * the caller may use it until the end of its turn if it is on worker 0 only. */
void dev_lu_release(struct dev_lu *lu);
/* dev_lu_is_there returns whether new nexuses without a map get the unit. */
bool dev_lu_is_there(const struct dev_lu *lu);
/* dev_lu_set_there and dev_lu_set_leaving change that; on worker 0. */
void dev_lu_set_there(struct dev_lu *lu);
void dev_lu_set_leaving(struct dev_lu *lu);
/* dev_server_opens: call it before each new nexus finds its units; dev_server_has_opened
 * returns whether that happened. */
void dev_server_opens(struct dev_server *s);
bool dev_server_has_opened(const struct dev_server *s);
/* dev_lu_is_leaving returns whether the unit is being removed: no I_T_L nexus, token or
 * operation in the background may begin there. On any worker. */
bool dev_lu_is_leaving(const struct dev_lu *lu);

/* dev_background_begin and dev_background_end count an operation of the server in the
 * background, which holds the unit. */
void dev_background_begin(struct dev_lu *lu);
void dev_background_end(struct dev_lu *lu);

#endif
