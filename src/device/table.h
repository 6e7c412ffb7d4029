/* SPDX-License-Identifier: BSD-2-Clause */
/* table.h: the rows of commands, by file. */
#ifndef DEVICE_TABLE_H
#define DEVICE_TABLE_H

#include "device/unit/command.h"

extern const struct dev_rows dev_rows_block;   /* rows_block.c */
extern const struct dev_rows dev_rows_alua;    /* rows_alua.c */
extern const struct dev_rows dev_rows_cd;      /* rows_cd.c */
extern const struct dev_rows dev_rows_reserve; /* rows_reserve.c */
extern const struct dev_rows dev_rows_protect; /* rows_protect.c */
/* table.c: all rows, NULL at the end */
extern const struct dev_rows *const dev_rows_all[];

#endif
