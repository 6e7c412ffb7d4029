/* SPDX-License-Identifier: BSD-2-Clause */
/* names.h: the names of a unit, which VPD pages 80h and 83h report and by which
 * EXTENDED COPY and ROD tokens name units. */
#ifndef DEVICE_NAMES_H
#define DEVICE_NAMES_H

#include "device/unit/unit.h"

#define CODE_BINARY  0x1
#define CODE_ASCII   0x2
#define CODE_UTF8    0x3
#define PIV_ISCSI    0x80
#define ASSOC_LU     0x00
#define ASSOC_PORT   0x10
#define ASSOC_DEVICE 0x20

/* dev_put_designator fills in the header of a designator of len bytes at p + 4;
 * returns its end. */
uint8_t *dev_put_designator(uint8_t *p, uint8_t code, uint8_t kind, size_t len);
/* dev_put_names writes the designators of the unit, at most DEV_NAMES_MAX bytes: the NAA
 * identifier, the EUI-64 if there is one, the T10 vendor ID with the serial number. It
 * returns their end. */
#define DEV_NAMES_MAX (20 + 20 + 12 + DEV_SERIAL_SIZE)
uint8_t *dev_put_names(const struct dev_lu *lu, uint8_t *p);
/* dev_lu_put_name writes the NAA designator, at most 20 bytes. dev_lu_has_name returns
 * whether the name is a name of the unit. */
void dev_lu_put_name(const struct dev_lu *lu, uint8_t *p);
bool dev_lu_has_name(const struct dev_lu *lu, uint8_t code_set, uint8_t type,
		     const uint8_t *name, size_t len);

#endif
