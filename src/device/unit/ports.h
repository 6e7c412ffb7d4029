/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ports.h: the target ports of the server. The ports of one target name are the
 * ports of one SCSI device; the nexuses of another target do not see them. Ports are
 * added by the home worker and never removed; every worker reads them.
 */
#ifndef DEVICE_PORTS_H
#define DEVICE_PORTS_H

#include "device/unit/unit.h"

#define DEV_PORT_NAME 256u

struct dev_port {
	struct dev_port *next; /* of the same SCSI device; atomic */
	uint16_t rtpi;
	char name[];
};

/* The ports of one SCSI device. */
struct dev_ports {
	struct dev_ports *next; /* atomic */
	struct dev_port *first; /* never NULL */
	uint32_t crc; /* of the name: most names differ at their ends */
	char name[];  /* of the target */
};

/* dev_ports_of returns the ports of the nexus's target; NULL: none was added. */
const struct dev_ports *dev_ports_of(const struct dev_nexus *n);
/* dev_port_next returns the port after `port`, or NULL. */
const struct dev_port *dev_port_next(const struct dev_port *port);
/* dev_ports_count returns the number of the ports, dev_ports_at the i-th port,
 * dev_ports_have whether one of them has this identifier. ports NULL: there is none. */
unsigned dev_ports_count(const struct dev_ports *ports);
const struct dev_port *dev_ports_at(const struct dev_ports *ports, unsigned i);
bool dev_ports_have(const struct dev_ports *ports, uint16_t rtpi);
/* dev_port_is_own returns whether the server has a port with this identifier. */
bool dev_port_is_own(const struct dev_server *s, uint16_t rtpi);
/* dev_ports_fini frees the ports, when no worker runs any more. */
void dev_ports_fini(struct dev_server *s);

#endif
