/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keyfile.h: the file with the key of an encrypted store: 64 bytes that only
 * iserd may read. A new key replaces the old file in one step, so that after a
 * power cut the file has the old key or the new key; the bytes of the old file
 * are overwritten afterwards, or at the next start.
 */
#ifndef DAEMON_LUNS_KEYFILE_H
#define DAEMON_LUNS_KEYFILE_H

#include "backstore/backstore.h"
#include "io/io.h"

struct keyfile;

enum keyfile_wish {
	KEY_MUST_EXIST,
	KEY_IF_MISSING, /* make one */
	KEY_NEW,	/* must not exist */
};

struct keyfile_config {
	const char *path; /* borrowed until keyfile_close */
	enum keyfile_wish wish;
	bool read_only; /* the store is: the key is never replaced */
	/* loops[i] is worker i's; borrowed until keyfile_close */
	struct io_loop *const *loops;
};

/* keyfile_open reads or makes the key, and locks the file against other units
 * and processes. The caller wipes key. NULL after a message. */
struct keyfile *keyfile_open(const struct keyfile_config *cfg,
			     uint8_t key[BS_CRYPT_KEY]);
/* Why a file that exists is not made as a new key. */
extern const char keyfile_not_new[];
/* keyfile_exists returns whether a file of any kind has that name. */
bool keyfile_exists(const char *path);
/* keyfile_usable returns whether the user that iserd runs as may replace the
 * file; false after a message. */
bool keyfile_usable(const char *path);

/* The next three are functions of bs_crypt_config, where arg is the struct
 * keyfile. */
/* keyfile_random writes n random bytes to p, for a new key. False: the kernel
 * gives none. */
bool keyfile_random(void *arg, uint8_t *p, size_t n);
/* keyfile_keep replaces the key in the file by the one of c, on a helper thread.
 * c is borrowed until its done is called, on the worker that asked. */
void keyfile_keep(void *arg, struct bs_key_change *c);
/* keyfile_close unlocks the file and frees arg; no change is in progress. */
void keyfile_close(void *arg);

#endif
