/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keyfile.h: the file with the key of a store that is encrypted: 64 bytes that
 * nobody else may read. Another key takes its place in one step, so that a
 * power cut leaves the old one or the new one; the old one's bytes are
 * overwritten afterwards (or at the next start).
 */
#ifndef DAEMON_KEYFILE_H
#define DAEMON_KEYFILE_H

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
	bool read_only; /* the store is: no other key will be asked for */
	/* loops[i] is worker i's; borrowed until keyfile_close */
	struct io_loop *const *loops;
};

/* keyfile_open gives the key, and keeps others from using the file. NULL after
 * a message. */
struct keyfile *keyfile_open(const struct keyfile_config *cfg,
			     uint8_t key[BS_CRYPT_KEY]);
/* keyfile_exists: whether there is anything by that name. */
bool keyfile_exists(const char *path);
/* keyfile_usable: the user that iserd runs as may put another file in its
 * place; else false after a message. */
bool keyfile_usable(const char *path);

/* Of bs_crypt_config; arg is a struct keyfile. */
bool keyfile_random(void *arg, uint8_t *p, size_t n);
void keyfile_keep(void *arg, struct bs_key_change *c);
void keyfile_close(void *arg);

#endif
