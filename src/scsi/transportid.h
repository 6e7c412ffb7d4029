/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transportid.h: TransportIDs of iSCSI initiator ports (SPC-4 §7.6.4.6), as
 * PERSISTENT RESERVE IN and OUT and access controls have them.
 */
#ifndef SCSI_TRANSPORTID_H
#define SCSI_TRANSPORTID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A port's name: "iqn...,i,0x" and 12 digits of ISID. */
#define SCSI_PORT_NAME_MAX   (223 + 5 + 12)
#define SCSI_TRANSPORTID_MAX (4 + SCSI_PORT_NAME_MAX + 4)

/*
 * scsi_transportid_get reads the TransportID at p into name, the ISID in 12
 * lower-case digits; *used: its length. ERR_TRUNCATED: longer than len;
 * ERR_FORMAT: malformed; ERR_UNSUPPORTED: not iSCSI's, or one that names a
 * device and no port (TPID FORMAT 00b).
 */
int scsi_transportid_get(const uint8_t *p, size_t len,
			 char name[SCSI_PORT_NAME_MAX + 1], size_t *used);

/* scsi_transportid_get_device does the same for one that names a device (TPID
 * FORMAT 00b): all of its ports are meant. name: without any ISID. */
int scsi_transportid_get_device(const uint8_t *p, size_t len,
				char name[SCSI_PORT_NAME_MAX + 1],
				size_t *used);
/* Whether the port, by its name, is one of that device. */
bool scsi_port_is_of(const char *port, const char *device);
/* A device's name, not a port's. */
bool scsi_name_is_device(const char *name);

/* scsi_transportid_put writes name's; p has SCSI_TRANSPORTID_MAX bytes.
 * Returns the length, a multiple of 4. */
size_t scsi_transportid_put(const char *name, uint8_t *p);

#endif
