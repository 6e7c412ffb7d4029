/* SPDX-License-Identifier: BSD-2-Clause */
/* crypt.c: hashes and random bytes for cases, from libcrypto. */
#include <lauxlib.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "tools/check/check.h"

#define RANDOM_MAX 65536

/* hash(name, bytes) returns the digest. */
static int hash_bytes(lua_State *l)
{
	const EVP_MD *md = EVP_get_digestbyname(luaL_checkstring(l, 1));
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	size_t len;
	const char *bytes = luaL_checklstring(l, 2, &len);

	if (!md || !EVP_Digest(bytes, len, digest, &n, md, NULL))
		return luaL_error(l, "libcrypto has no hash %s",
				  lua_tostring(l, 1));
	lua_pushlstring(l, (const char *)digest, n);
	return 1;
}

/* random(n) returns n random bytes. */
static int random_bytes(lua_State *l)
{
	lua_Integer n = luaL_checkinteger(l, 1);
	luaL_Buffer b;
	char *bytes;

	luaL_argcheck(l, n >= 0 && n <= RANDOM_MAX, 1, "0 to 65536 bytes");
	bytes = luaL_buffinitsize(l, &b, (size_t)n);
	if (RAND_bytes((unsigned char *)bytes, (int)n) != 1)
		return luaL_error(l, "cannot get random bytes");
	luaL_pushresultsize(&b, (size_t)n);
	return 1;
}

static int crc_bytes(lua_State *l)
{
	size_t len;
	const char *bytes = luaL_checklstring(l, 1, &len);

	lua_pushinteger(l, check_crc32c(bytes, len));
	return 1;
}

void crypt_open(lua_State *l)
{
	lua_pushcfunction(l, hash_bytes);
	lua_setfield(l, -2, "hash");
	lua_pushcfunction(l, random_bytes);
	lua_setfield(l, -2, "random");
	lua_pushcfunction(l, crc_bytes);
	lua_setfield(l, -2, "crc32c");
}
