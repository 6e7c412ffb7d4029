/* SPDX-License-Identifier: BSD-2-Clause */
/* check.h: configuration files without a running iserd: whether a file is valid,
 * and how two files differ. iserctl has this, too. */
#ifndef DAEMON_APPLY_CHECK_H
#define DAEMON_APPLY_CHECK_H

#include <stdbool.h>

/* cfg_file_check reads the configuration file at path, with the secrets that it
 * names, looks whether what it names is there (look.h), and prints all errors and
 * warnings on standard error, or a line on standard output that the file is valid.
 * Returns whether there are no errors. */
bool cfg_file_check(const char *path);
/* cfg_file_diff prints how the file `to` differs from the file `from` on standard
 * output, a line for each field. False after a message: a file is not valid. */
bool cfg_file_diff(const char *from, const char *to);

/* cfg_field_absolute returns the value of a field with its relative path in this directory,
 * which the caller frees. NULL: it has none, or there is no memory. */
char *cfg_field_absolute(const char *field, const char *value,
			 const char *folder);

#endif
