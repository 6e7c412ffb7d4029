/* SPDX-License-Identifier: BSD-2-Clause */
/* control.h: the targets of a running iserd, from its management socket. */
#ifndef TOOLS_ISNS_CONTROL_H
#define TOOLS_ISNS_CONTROL_H

#include "tools/isns/view.h"

/* control_view asks the iserd at the socket for its targets and makes a view of
 * them. Blocks for at most 10 seconds. Returns NULL, or what went wrong, which
 * stays valid until the next call; *v is empty then. */
const char *control_view(const char *path, struct isns_view *v);

#endif
