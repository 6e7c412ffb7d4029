/* SPDX-License-Identifier: BSD-2-Clause */
/* standard.h: standard input, output and error of a tool. */
#ifndef TOOLS_STANDARD_H
#define TOOLS_STANDARD_H

/* standard_open opens /dev/null on each of the descriptors 0 to 2 that the
 * caller of the program has closed: without it a file that is opened later
 * would get what is printed. Such a descriptor can be neither read nor
 * written. Call it before any file is opened. */
void standard_open(void);
/* standard_end writes out what stdout still holds. Returns the exit status of
 * the program: code, or on_failure if code is 0 and some of the output could
 * not be written; the failure is printed. */
int standard_end(const char *program, int code, int on_failure);

#endif
