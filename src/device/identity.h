/* SPDX-License-Identifier: BSD-2-Clause */
/* identity.h: the names by which initiators know a unit. */
#ifndef DEVICE_IDENTITY_H
#define DEVICE_IDENTITY_H

#include <stdint.h>

struct dev_lu;
struct dev_lu_config;

/* An NAA (SPC-4 §7.8.6.6) or an EUI-64 based identifier (§7.8.6.5). */
struct dev_id {
	uint8_t len; /* 8, 12 or 16; 0: none */
	uint8_t bytes[16];
};

#define DEV_SERIAL_SIZE 37 /* with its NUL */

/* What INQUIRY reports of a unit. */
struct dev_names {
	char vendor[9], product[17], revision[5]; /* empty: the default */
	char serial[DEV_SERIAL_SIZE];		  /* VPD 80h */
	struct dev_id naa, eui;			  /* 83h; eui may be none */
};

/*
 * dev_names_make sets *n to the names of a unit with these settings and this UUID. A
 * name that cfg gives is used as it is. Other names follow from one of cfg, so
 * that page 80h and page 83h of a unit change together: the serial number is the digits of
 * the NAA identifier, or of the EUI-64; the NAA identifier follows from the serial
 * number. Without any name in cfg both follow from the UUID.
 */
void dev_names_make(struct dev_names *n, const struct dev_lu_config *cfg,
		    const uint8_t uuid[16]);
/* dev_lu_names copies the names that the unit reports at present. On worker 0. */
void dev_lu_names(const struct dev_lu *lu, struct dev_names *out);

#endif
