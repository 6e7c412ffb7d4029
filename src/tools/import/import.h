/* SPDX-License-Identifier: BSD-2-Clause */
/* import.h: the configuration files of other targets as one of iserd. */
#ifndef TOOLS_IMPORT_IMPORT_H
#define TOOLS_IMPORT_IMPORT_H

/* import_main is "iserctl import": argv[0] is "import". It prints the
 * configuration file on standard output and what could not be carried over on
 * standard error. Returns the exit status: 0; 1 if a file is not valid or cannot
 * be read or written; 2 for a bad command line. */
int import_main(int argc, char **argv);

#endif
