/* SPDX-License-Identifier: BSD-2-Clause */
/* df.h: the answer of a monitor to the command "df". */
#ifndef BACKSTORE_RBD_DF_H
#define BACKSTORE_RBD_DF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bsrbd_df_room finds how many bytes can still be written to the pool with this
 * number, copies not counted. text: JSON, len bytes. false: it does not say. */
bool bsrbd_df_room(const char *text, size_t len, int64_t pool, uint64_t *room);

#endif
