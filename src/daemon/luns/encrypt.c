/* SPDX-License-Identifier: BSD-2-Clause */
/* encrypt.c: encrypted LUNs: which key they have, and whether a new key may be
 * made. */
#include "daemon/luns/encrypt.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bytes.h"
#include "daemon/log/say.h"
#include "daemon/luns/keyfile.h"
#include "daemon/luns/module.h"

#define LOOK_AT \
 ((off_t)64 << 20) /* bytes read to see whether an image is new */
#define PIECE ((size_t)1 << 20)
#define MARK  "user.openiser.encrypted"

const char *lun_lacks_key(enum lun_kind kind, const char *path, bool has_key,
			  bool read_only)
{
	if (kind != LUN_FILE || has_key || read_only ||
	    getxattr(path, MARK, NULL, 0) < 0)
		return NULL;
	return "the file is encrypted (attribute user.openiser.encrypted); give its key with key=, or serve it "
	       "read-only; setfattr -x removes the attribute of a file that is to be plain";
}

/* Where a file has no attributes, nothing reminds of the key. */
static void mark_encrypted(const struct lun_spec *s, const struct bs *b)
{
	if (s->kind == LUN_FILE && !(b->caps & BS_CAP_READ_ONLY))
		(void)setxattr(s->store, MARK, "1", 1, XATTR_CREATE);
}

/* ---- is the image new? ---- */

static bool is_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (!p[0] && !memcmp(p, p + 1, n - 1));
}

/* Returns whether the image has only holes and zeros, as far as LOOK_AT bytes
 * of its data show. */
static bool is_blank(int fd, uint8_t *buf)
{
	off_t at = 0, looked_at = 0;
	ssize_t n;

	while (looked_at < LOOK_AT) {
		off_t data = lseek(fd, at, SEEK_DATA);

		if (data < 0)
			return errno == ENXIO; /* holes up to the end */
		n = pread(fd, buf, PIECE, data);
		if (n <= 0)
			return n == 0;
		if (!is_zero(buf, (size_t)n))
			return false;
		at = data + n;
		looked_at += n;
	}
	return false;
}

static bool is_blank_image(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	uint8_t *buf = malloc(PIECE);
	bool blank = fd >= 0 && buf && is_blank(fd, buf);

	if (fd >= 0)
		close(fd);
	free(buf);
	return blank;
}

/* ---- the key ---- */

static const char *key_path(const struct lun_spec *s)
{
	return s->new_key ? s->new_key : s->key;
}

static bool refuse_key(const struct lun_spec *s, const char *why)
{
	say("%s,%skey=%s: %s", s->store, s->new_key ? "new-" : "", key_path(s),
	    why);
	return false;
}

static bool may_be_encrypted(const struct lun_spec *s, const struct options *o)
{
	if (o->lun.shared) /* CRYPTO ERASE changes the key of this iserd only */
		return refuse_key(
			s,
			"an encrypted LUN cannot be shared; leave out --shared");
	if (s->new_key && o->lun.read_only)
		return refuse_key(
			s, "a read-only LUN cannot get a new key; give key=");
	return true;
}

/* Decides whether a key may be made. False after a message: encrypting existing
 * data under a new key would make them unreadable. */
static bool choose_key(const struct lun_spec *s, const struct bs *b,
		       enum keyfile_wish *wish)
{
	*wish = s->new_key ? KEY_NEW : KEY_MUST_EXIST;
	if (s->new_key || (b->caps & BS_CAP_READ_ONLY) ||
	    keyfile_exists(key_path(s)))
		return true;
	if (lun_is_module(s->kind))
		return refuse_key(
			s, "the key file does not exist; restore the file, or "
			   "give new-key= for a new key, which makes data of "
			   "the store unreadable");
	if (s->kind != LUN_RAM && !is_blank_image(s->store))
		return refuse_key(
			s, "the key file does not exist, and the image has "
			   "data; restore the file, or give new-key= for "
			   "a new key, which makes the data unreadable");
	*wish = KEY_IF_MISSING;
	return true;
}

static struct bs *open_filter(struct bs *b, const struct options *o,
			      const struct keyfile_config *cfg)
{
	uint8_t key[BS_CRYPT_KEY] = { 0 };
	struct keyfile *file = keyfile_open(cfg, key);
	const struct bs_crypt_config crypt = {
		.key = key,
		.nworkers = o->workers,
		.random = keyfile_random,
		.keep = keyfile_keep,
		.release = keyfile_close,
		.arg = file,
	};
	struct bs *filter = file ? bs_crypt_new(b, &crypt) : NULL;

	OPENSSL_cleanse(key, sizeof(key));
	if (file && !filter) {
		say("%s: out of memory", b->name);
		keyfile_close(file);
	}
	return filter;
}

struct bs *lun_encrypt(struct bs *b, const struct options *o,
		       const struct lun_spec *s, struct io_loop *const *loops)
{
	struct keyfile_config cfg = {
		.path = key_path(s),
		.read_only = b->caps & BS_CAP_READ_ONLY,
		.loops = loops,
	};
	struct bs *encrypted = NULL;

	if (may_be_encrypted(s, o) && choose_key(s, b, &cfg.wish))
		encrypted = open_filter(b, o, &cfg);
	if (encrypted)
		mark_encrypted(s, encrypted);
	else
		bs_close(b);
	return encrypted;
}

bool lun_key_usable(const struct lun_spec *s, const struct options *o)
{
	return o->lun.read_only || !key_path(s) || keyfile_usable(key_path(s));
}
