/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity.h: who a unit is: its designators (VPD page 83h, SPC-4 §7.8.6), its serial
 * number (page 80h, §7.8.13), and its size; and whether two answers are of one unit.
 * Functions of their arguments alone; each length is checked against the bytes that
 * came.
 *
 * A designator is *strong* if its form makes it unique and its value is not a default:
 * NAA (types 2, 5, 6, with a company_id; a locally assigned one, type 3, only if at most
 * two of its octets are 0, since targets make such numbers from the number of the target
 * and the LUN), EUI-64, UUID, a SCSI name string of one of these. Vendor, product and serial number
 * together are strong if the serial number is (lib_serial_is_strong). All else is weak.
 */
#ifndef LIB_IDENTITY_H
#define LIB_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iser/iser.h"

#define LIB_IDENTITY_MAX 512
#define LIB_SERIAL_MAX	 252
#define LIB_WHY_MAX	 440 /* for lib_who_check */

/* The designators of a logical unit, as they are in the page; other designators
 * are left out. */
struct lib_identity {
	size_t len;
	uint8_t list[LIB_IDENTITY_MAX];
	uint8_t product[24]; /* T10 vendor ID and product ID of INQUIRY data */
	uint8_t serial_len;
	char serial[LIB_SERIAL_MAX + 1]; /* without padding */
};

/* Where a path ends. 0: not reported. */
struct lib_port {
	uint16_t group, port; /* target port group, relative target port */
};

/* What a unit reports about itself. */
struct lib_who {
	uint8_t inquiry[36];
	uint8_t inquiry_len;
	struct lib_identity identity;
	struct lib_port port;
	bool has_capacity;
	struct iser_capacity capacity;
};

/* lib_identity_read reads the first len bytes of VPD page 83h. Returns false if
 * they are not that page or have no designator of the logical unit. */
bool lib_identity_read(struct lib_identity *id, struct lib_port *port,
		       const uint8_t *page, size_t len);
/* lib_identity_serial reads the first len bytes of VPD page 80h. */
void lib_identity_serial(struct lib_identity *id, const uint8_t *page,
			 size_t len);
/* lib_serial_is_strong returns whether a serial number is not a default: at least 8
 * characters, four of them different, no counter, and not tgt's default. */
bool lib_serial_is_strong(const char *serial);

enum lib_same {
	LIB_SAME,   /* of the best strong type that both have, they share one */
	LIB_OTHER,  /* ... they share none */
	LIB_UNSURE, /* no strong type is common */
};

/* lib_identity_is_strong returns whether a strong designator is among these. */
bool lib_identity_is_strong(const struct lib_identity *id);
/* lib_identity_compare compares strong designators: NAA, EUI-64, UUID, SCSI name string,
 * serial number, in this order. */
enum lib_same lib_identity_compare(const struct lib_identity *a,
				   const struct lib_identity *b);
/* lib_identity_text writes the best designator to out (size bytes, always ended),
 * for example "naa.3000000000000001". */
void lib_identity_text(const struct lib_identity *id, char *out, size_t size);

/* What lib_who_check accepts besides equality. */
enum lib_accept {
	LIB_EQUAL = 0,
	LIB_WEAK = 1, /* weak identities that are equal, octet by octet */
	LIB_GROWTH =
		2, /* more blocks than before, of a unit with a strong identity */
	LIB_SIZE = 4, /* any size: the medium was changed */
};

/*
 * lib_who_check returns 0 if `now` is the unit `was`: the same identity, block size and
 * number of blocks, as far as both reported them. ISER_E_CHANGED: another unit or size;
 * ISER_E_UNSUPPORTED: the identities are too weak for an answer. why (size bytes) gets
 * the reason.
 */
int lib_who_check(const struct lib_who *was, const struct lib_who *now,
		  unsigned accept, char *why, size_t size);

#endif
