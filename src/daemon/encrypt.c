/* SPDX-License-Identifier: BSD-2-Clause */
/* encrypt.c: units whose stores are encrypted: which key, and whether there may
 * be a new one. */
#include "daemon/encrypt.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "daemon/keyfile.h"

#define PI_WORD ",pi="
#define LOOK_AT ((off_t)64 << 20) /* of an image, for whether it is new */
#define PIECE	((size_t)1 << 20)

bool lun_key_split(struct lun_key *k, const char *spec)
{
	static const char word[] = ",key=", new_word[] = ",new-key=";
	const char *at = strstr(spec, word), *new_at = strstr(spec, new_word);
	size_t len;
	char *pi;

	k->path = NULL;
	k->is_new = new_at && (!at || new_at < at);
	if (k->is_new)
		at = new_at;
	len = at ? (size_t)(at - spec) : strlen(spec);
	if (len >= sizeof(k->store)) {
		say("%s: too long", spec);
		return false;
	}
	snprintf(k->store, sizeof(k->store), "%.*s", (int)len, spec);
	pi = strstr(k->store, PI_WORD);
	k->pi = pi ? pi + strlen(PI_WORD) : NULL;
	if (pi)
		*pi = '\0';
	if (at)
		k->path = at + strlen(k->is_new ? new_word : word);
	return true;
}

/* ---- is there anything in the image? ---- */

static bool is_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (!p[0] && !memcmp(p, p + 1, n - 1));
}

/* All that can be looked at in no time has never been written, or is zeros. */
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

static bool refuse(const struct lun_key *k, const char *why)
{
	say("%s,%skey=%s: %s", k->store, k->is_new ? "new-" : "", k->path, why);
	return false;
}

static bool may_be_encrypted(const struct lun_key *k, const struct options *o)
{
	if (!*k->path)
		return refuse(k, "no file is named");
	if (!strncmp(k->store, "null:", 5))
		return refuse(k, "nothing is kept that could be encrypted");
	if (o->shared) /* whose CRYPTO ERASE the others would not notice */
		return refuse(k, "units that are encrypted can't be --shared");
	if (k->is_new && o->read_only)
		return refuse(k, "a new key makes sense for writing only");
	return true;
}

/* False after a message: a new key for what an old one encrypted would be the
 * end of it. */
static bool choose(const struct lun_key *k, const struct bs *b,
		   enum keyfile_wish *wish)
{
	*wish = k->is_new ? KEY_NEW : KEY_MUST_EXIST;
	if (k->is_new || (b->caps & BS_CAP_READ_ONLY) ||
	    keyfile_exists(k->path))
		return true;
	if (strncmp(k->store, "ram:", 4) != 0 && !is_blank_image(k->store))
		return refuse(k, "there is no such key file, and the image has "
				 "data: put the key back, or write new-key= in "
				 "place of key= to make one, with which those "
				 "data can't be read");
	*wish = KEY_IF_MISSING;
	return true;
}

static struct bs *filter(struct bs *b, const struct options *o,
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
		       const struct lun_key *k, struct io_loop *const *loops)
{
	struct keyfile_config cfg = {
		.path = k->path,
		.read_only = b->caps & BS_CAP_READ_ONLY,
		.loops = loops,
	};
	struct bs *encrypted = NULL;

	if (may_be_encrypted(k, o) && choose(k, b, &cfg.wish))
		encrypted = filter(b, o, &cfg);
	if (!encrypted)
		bs_close(b);
	return encrypted;
}

bool lun_key_usable(const char *spec, const struct options *o)
{
	struct lun_key k;

	return o->read_only ||
	       (lun_key_split(&k, spec) && (!k.path || keyfile_usable(k.path)));
}
