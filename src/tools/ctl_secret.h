/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_secret.h: iserctl secret. */
#ifndef TOOLS_CTL_SECRET_H
#define TOOLS_CTL_SECRET_H

/* ctl_secret prints a random CHAP secret. argv: n operands, "bits=N" or none. Returns the
 * exit status: not EXIT_OK after a message. */
int ctl_secret(int n, char **argv);

#endif
