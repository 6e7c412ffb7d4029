/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.h: iSCSI names (RFC 7143 §4.2.7, RFC 3980) and the string profile of
 * RFC 3722.
 */
#ifndef ISCSI_NAMES_H
#define ISCSI_NAMES_H

#include <stdbool.h>

#include "iscsi/params.h"

#define ISCSI_NAME_WHY 120 /* bytes of the buffer for a reason */

/*
 * iscsi_name_prepare checks a name and writes it to out in a form that can be
 * compared byte by byte. Returns 0, or ERR_FORMAT with the reason and its
 * clause in why.
 *
 * It checks for 1 to 223 bytes of valid UTF-8; for "iqn." with a date (yyyy-mm),
 * a dot and a naming authority, "eui." with 16 hexadecimal digits, or "naa."
 * with 16 or 32; and for characters that RFC 3722 §6 prohibits, that table B.1
 * of RFC 3454 maps to nothing, or that are read from right to left (RFC 3454
 * §6: a name begins with letters that are read from left to right).
 *
 * It maps ASCII, Latin-1, Greek and Cyrillic letters to lower case. It does not
 * apply the rest of table B.2, nor normalization form KC, which the node that
 * chooses a name applies; two forms are two names.
 *
 * strict: prohibit the underscore, too (RFC 3722 §6.2). QEMU and other software
 * derive names with underscores from the name of a machine.
 */
int iscsi_name_prepare(char out[ISCSI_NAME_MAX + 1], const char *name,
		       bool strict, char why[ISCSI_NAME_WHY]);

/*
 * iscsi_pattern_prepare checks a pattern of names and writes it to out, likewise:
 * '*' stands for any number of characters, '?' for one; no name has either. A
 * pattern without them is a name. ERR_FORMAT: no name matches.
 */
int iscsi_pattern_prepare(char out[ISCSI_NAME_MAX + 1], const char *pattern,
			  char why[ISCSI_NAME_WHY]);
/* iscsi_name_equal returns whether two names or patterns are the same one (RFC 7143
 * §4.2.7.2: they are compared after preparation). Texts that are neither are compared
 * byte by byte. */
bool iscsi_name_equal(const char *a, const char *b);
/* iscsi_pattern_matches: both are in the form of the functions above. */
bool iscsi_pattern_matches(const char *pattern, const char *name);

#endif
