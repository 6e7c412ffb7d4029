/* SPDX-License-Identifier: BSD-2-Clause */
/* xts.c: AES-256-XTS of sectors, by libcrypto. */
#include "backstore/xts.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct xts {
	EVP_CIPHER_CTX *encrypt, *decrypt;
};

static EVP_CIPHER_CTX *context(const uint8_t *key, bool encrypt)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

	if (c && EVP_CipherInit_ex(c, EVP_aes_256_xts(), NULL, key, NULL,
				   encrypt) == 1)
		return c;
	EVP_CIPHER_CTX_free(c);
	return NULL;
}

struct xts *xts_new(const uint8_t *key)
{
	struct xts *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->encrypt = context(key, true);
	x->decrypt = context(key, false);
	if (x->encrypt && x->decrypt)
		return x;
	xts_free(x);
	return NULL;
}

void xts_free(struct xts *x)
{
	if (!x)
		return;
	EVP_CIPHER_CTX_free(x->encrypt);
	EVP_CIPHER_CTX_free(x->decrypt);
	free(x);
}

static bool crypt_sector(EVP_CIPHER_CTX *c, uint64_t off, uint8_t *p)
{
	uint64_t sector = off / XTS_SECTOR;
	uint8_t tweak[16] = { 0 };
	int n;

	for (unsigned i = 0; i < 8; i++)
		tweak[i] = (uint8_t)(sector >> 8 * i);
	return EVP_CipherInit_ex(c, NULL, NULL, NULL, tweak, -1) == 1 &&
	       EVP_CipherUpdate(c, p, &n, p, XTS_SECTOR) == 1;
}

bool xts_encrypt(struct xts *x, uint64_t off, uint8_t *p, size_t len)
{
	assert(off % XTS_SECTOR == 0 && len % XTS_SECTOR == 0);
	for (size_t at = 0; at < len; at += XTS_SECTOR)
		if (!crypt_sector(x->encrypt, off + at, p + at))
			return false;
	return true;
}

static bool is_zero(const uint8_t *p)
{
	return !p[0] && !memcmp(p, p + 1, XTS_SECTOR - 1);
}

bool xts_decrypt(struct xts *x, uint64_t off, uint8_t *p, size_t len)
{
	assert(off % XTS_SECTOR == 0 && len % XTS_SECTOR == 0);
	for (size_t at = 0; at < len; at += XTS_SECTOR)
		if (!is_zero(p + at) &&
		    !crypt_sector(x->decrypt, off + at, p + at))
			return false;
	return true;
}
