/* SPDX-License-Identifier: BSD-2-Clause */
/* place.h: finds out the place of an open file, and by what this machine is known. */
#ifndef DAEMON_LUNS_PLACE_H
#define DAEMON_LUNS_PLACE_H

#include "daemon/luns/identity_record.h"

struct machine {
	char id[64]; /* the text of /etc/machine-id; not ended */
	size_t id_len;
	/* of the UUID that the firmware or hypervisor gave the machine, which root can
	 * read, and the service by tmpfiles.conf; empty: unknown */
	char product[PLACE_DIGITS];
};

/* identity_machine_read reads what the process may read; before iserd gives up root. */
void identity_machine_read(struct machine *m);
/* identity_place_read sets *p to the place of the open file. Parts that cannot be found out are
 * unknown; the inode is always known, unless fd is not valid. */
void identity_place_read(int fd, const struct machine *m,
			 struct identity_place *p);
/* identity_place_is_lower returns whether a change of the attributes of this file, open for
 * reading, would copy all of the file (overlayfs). */
bool identity_place_is_lower(int fd);

#endif
