/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_print.h: the answers of iserd as text. Their texts are escaped already
 * (ctl_make_plain). */
#ifndef TOOLS_CTL_PRINT_H
#define TOOLS_CTL_PRINT_H

#include <jansson.h>

/* ctl_print prints a value: a line for each member of an object, a block for each
 * entry of an array. */
void ctl_print(const json_t *v);
/* ctl_print_table prints an array of objects as a table, with a column for each
 * member that one of them has. */
void ctl_print_table(const json_t *rows);
/* ctl_line returns the entries of an array as one text, with commas between them; "-":
 * there are none. The caller releases it. */
json_t *ctl_line(const json_t *array);
/* ctl_print_status prints the answer of "status": a line for each unit. */
void ctl_print_status(const json_t *status);

#endif
