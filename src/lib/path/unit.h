/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h: what a unit reports about its paths: target port groups (SPC-4 §6.37).
 * Functions of their arguments alone; each length is checked against the bytes that
 * came.
 */
#ifndef LIB_PATH_UNIT_H
#define LIB_PATH_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* lib_groups_find finds a target port group in the first len bytes of an answer
 * to REPORT TARGET PORT GROUPS with parameter data format 0. Returns false if it
 * is not there. */
bool lib_groups_find(const uint8_t *data, size_t len, uint16_t group,
		     uint8_t *access, bool *preferred);

#endif
