/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path_unit.h: what a unit reports about itself and its paths: designators (VPD page
 * 83h, SPC-4 §7.8.6) and target port groups (SPC-4 §6.37). Functions of their
 * arguments alone; each length is checked against the bytes that came.
 */
#ifndef LIB_PATH_UNIT_H
#define LIB_PATH_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIB_IDENTITY_MAX 512

/* The designators of a logical unit, as they are in the page; other designators
 * are left out. */
struct lib_identity {
	size_t len;
	uint8_t list[LIB_IDENTITY_MAX];
};

/* Where a path ends. 0: not reported. */
struct lib_port {
	uint16_t group, port; /* target port group, relative target port */
};

/* lib_identity_read reads the first len bytes of VPD page 83h. Returns false if
 * they are not that page or have no designator of the logical unit. */
bool lib_identity_read(struct lib_identity *id, struct lib_port *port,
		       const uint8_t *page, size_t len);
/* lib_identity_same returns whether two lists name one unit: they share a
 * designator, and of the type of that designator (NAA, EUI-64, UUID, SCSI name
 * string, else T10 vendor ID) both have it. */
bool lib_identity_same(const struct lib_identity *a,
		       const struct lib_identity *b);
/* lib_identity_text writes the best designator to out (size bytes, always ended),
 * for example "naa.3000000000000001". */
void lib_identity_text(const struct lib_identity *id, char *out, size_t size);

/* lib_groups_find finds a target port group in the first len bytes of an answer
 * to REPORT TARGET PORT GROUPS with parameter data format 0. Returns false if it
 * is not there. */
bool lib_groups_find(const uint8_t *data, size_t len, uint16_t group,
		     uint8_t *access, bool *preferred);

#endif
