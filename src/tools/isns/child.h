/* SPDX-License-Identifier: BSD-2-Clause */
/* child.h: a request to the iSNS server in a process of its own. */
#ifndef TOOLS_ISNS_CHILD_H
#define TOOLS_ISNS_CHILD_H

#define ISNS_WHY 256 /* bytes of a reason, with its NUL */

/* A request; returns NULL or the reason of its failure. */
typedef const char *isns_request(void *arg);

/*
 * isns_child_run calls request(arg) in a child process and waits for its end:
 * libisns does not free all objects of a registration, and ends the process when
 * it has no memory. Returns NULL, or the reason of the failure, in why.
 */
const char *isns_child_run(isns_request *request, void *arg,
			   char why[ISNS_WHY]);

#endif
