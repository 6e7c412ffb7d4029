/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl.h: requests to the management socket of iserd (JSON-RPC 2.0, a line each),
 * and the exit statuses of iserctl. */
#ifndef TOOLS_CTL_H
#define TOOLS_CTL_H

#include <jansson.h>
#include <stdio.h>

enum {
	EXIT_OK = 0,
	EXIT_REFUSED = 1, /* the answer is an error, or not valid */
	EXIT_USAGE = 2,
	EXIT_NO_DAEMON = 3, /* no process listens on the socket, or answers */
	EXIT_PERMISSION = 4,
};

/* ctl_limit_time ends the program with a message if alarm(0) is not called within
 * the time. expired, or NULL, is called before that, from a signal handler. */
void ctl_limit_time(const char *path, unsigned seconds, void (*expired)(void));
/* ctl_connect returns a connected socket. -1 after a message: *code is the exit
 * status. */
int ctl_connect(const char *path, int *code);
/* ctl_request returns the text of a request, which the caller frees, with room
 * for one more byte. NULL after a message. */
char *ctl_request(const char *method, json_t *params);
/* ctl_send sends text, whose final NUL it replaces. */
void ctl_send(int fd, char *text);
/* ctl_read returns the next answer, which the caller releases; NULL: iserd has
 * closed the connection, or it is not JSON. */
json_t *ctl_read(FILE *f);
/* ctl_make_plain escapes every string in v: initiators choose their names. */
void ctl_make_plain(json_t *v);

#endif
