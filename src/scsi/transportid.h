/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * transportid.h: TransportIDs of iSCSI initiator ports (SPC-4 §7.6.4.6), which
 * PERSISTENT RESERVE IN, PERSISTENT RESERVE OUT and EXTENDED COPY use.
 */
#ifndef SCSI_TRANSPORTID_H
#define SCSI_TRANSPORTID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name of a port is the name of its device, ",i,0x" and the 12 hexadecimal
 * digits of the ISID. */
#define SCSI_DEVICE_NAME_MAX 223
#define SCSI_PORT_NAME_MAX   (SCSI_DEVICE_NAME_MAX + 5 + 12)
#define SCSI_TRANSPORTID_MAX (4 + SCSI_PORT_NAME_MAX + 4)

/*
 * scsi_transportid_get decodes the TransportID at p to the name of a port, in
 * lower case, and stores the length of the TransportID in *used. Returns
 * ERR_TRUNCATED if the TransportID is longer than len, ERR_FORMAT if it is
 * malformed, and ERR_UNSUPPORTED if it is of another protocol or names a
 * device (TPID FORMAT 00b).
 */
int scsi_transportid_get(const uint8_t *p, size_t len,
			 char name[SCSI_PORT_NAME_MAX + 1], size_t *used);

/* scsi_transportid_get_device does the same to a TransportID that names a
 * device (TPID FORMAT 00b), which stands for all ports of the device. */
int scsi_transportid_get_device(const uint8_t *p, size_t len,
				char name[SCSI_PORT_NAME_MAX + 1],
				size_t *used);
/* scsi_port_is_of returns whether port names a port of the device. */
bool scsi_port_is_of(const char *port, const char *device);
/* scsi_port_device copies the device's part of a port name. */
void scsi_port_device(const char *port, char device[SCSI_DEVICE_NAME_MAX + 1]);
/* scsi_name_is_device returns whether name names a device, not a port. */
bool scsi_name_is_device(const char *name);

/* scsi_transportid_put writes the TransportID of the port name to p, which has
 * SCSI_TRANSPORTID_MAX bytes. Returns the length, a multiple of 4. */
size_t scsi_transportid_put(const char *name, uint8_t *p);

#endif
