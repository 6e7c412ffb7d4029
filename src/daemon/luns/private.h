/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * private.h: files that only iserd may read: CHAP secrets, keys of encrypted
 * stores, and the files in the state directory.
 */
#ifndef DAEMON_LUNS_PRIVATE_H
#define DAEMON_LUNS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* private_user: files of this user are accepted, too: iserd becomes that user
 * once everything is open (--user). Before the first private_open. */
void private_user(uid_t uid);
/* private_open opens name, relative to the directory dir, as openat does;
 * symbolic links are refused, and a pipe does not block. Returns a descriptor or -Exxx. */
int private_open(int dir, const char *name, int flags, mode_t mode);
/* private_open_secret opens a secret for reading. "credential:NAME" is the file NAME in
 * $CREDENTIALS_DIRECTORY. If the file is a symbolic link (Kubernetes mounts secrets so),
 * it is followed as long as no other user could have placed the link or what it
 * leads to. private_complaint checks the file that was opened. Returns a descriptor or
 * -Exxx; -ENOTDIR: there is no such directory; -EPERM: another user could have. */
int private_open_secret(const char *name);
/* private_replace makes a new file of the len bytes at data, with mode 0600, and renames
 * it from temp to name, both in the directory dir. The data are on the medium then; the
 * new name is once the caller has synced dir. Returns 0 or -Exxx: name is as before, and
 * temp does not exist. Blocks. */
int private_replace(int dir, const char *temp, const char *name,
		    const void *data, size_t len);
/* private_refusal returns the reason of an error of private_open, in words. */
const char *private_refusal(int err);
/* private_complaint returns why other users can read or change the file, and
 * what to do; NULL if they cannot. */
const char *private_complaint(const struct stat *st);
/* private_owner_ok returns whether the file or directory belongs to root, the
 * user that iserd runs as, or that of --user. */
bool private_owner_ok(const struct stat *st);
/* private_no_core: from now on the process leaves no core dump, neither as a
 * file nor through a pipe, because it has secrets in its memory. */
void private_no_core(void);

#endif
