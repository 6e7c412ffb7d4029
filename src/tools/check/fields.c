/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fields.c: the fields of each PDU, from the figures of RFC 7143 §11: name,
 * byte, bit (0 is the most significant one, as in the figures) and width. A
 * case writes any value to any field, also to those that are reserved, and to
 * the opcode and the lengths.
 */
#include <lauxlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/check/check.h"

#define BHS   48
#define WORDY 64 /* wider fields are strings of bytes */

struct field {
	const char *name;
	unsigned byte, bit, width;
};

struct kind {
	const char *name;
	unsigned opcode;
	struct field fields[20];
};

/* clang-format off */
static const struct field common[] = {
	{ "rsvd_b0", 0, 0, 1 }, { "immediate", 0, 1, 1 }, { "opcode", 0, 2, 6 },
	{ "final", 1, 0, 1 }, { "ahslen", 4, 0, 8 }, { "dsl", 5, 0, 24 },
	{ "lun", 8, 0, 64 }, { "itt", 16, 0, 32 }, { NULL },
};

/* StatSN, ExpCmdSN and MaxCmdSN of a target; CmdSN and ExpStatSN of an initiator */
#define TARGET_SNS { "statsn", 24, 0, 32 }, { "expcmdsn", 28, 0, 32 }, { "maxcmdsn", 32, 0, 32 }
#define INITIATOR_SNS { "cmdsn", 24, 0, 32 }, { "expstatsn", 28, 0, 32 }

static const struct kind kinds[] = {
	{ "nop_out", 0x00, { { "flags", 1, 1, 7 }, { "ttt", 20, 0, 32 }, INITIATOR_SNS, { "rsvd_b32", 32, 0, 64 } } },
	{ "scsi_command", 0x01, { { "read", 1, 1, 1 }, { "write", 1, 2, 1 }, { "rsvd_b1", 1, 3, 2 }, { "attr", 1, 5, 3 },
		{ "rsvd_b2", 2, 0, 16 }, { "edtl", 20, 0, 32 }, INITIATOR_SNS, { "cdb", 32, 0, 128 } } },
	{ "task_request", 0x02, { { "func", 1, 1, 7 }, { "rsvd_b2", 2, 0, 16 }, { "rtt", 20, 0, 32 }, INITIATOR_SNS,
		{ "refcmdsn", 32, 0, 32 }, { "expdatasn", 36, 0, 32 } } },
	{ "login_request", 0x03, { { "transit", 1, 0, 1 }, { "cont", 1, 1, 1 }, { "rsvd_b1", 1, 2, 2 }, { "csg", 1, 4, 2 }, { "nsg", 1, 6, 2 },
		{ "vmax", 2, 0, 8 }, { "vmin", 3, 0, 8 }, { "isid", 8, 0, 48 }, { "tsih", 14, 0, 16 }, { "cid", 20, 0, 16 },
		{ "rsvd_b22", 22, 0, 16 }, INITIATOR_SNS, { "rsvd_b32", 32, 0, 64 } } },
	{ "text_request", 0x04, { { "cont", 1, 1, 1 }, { "rsvd_b1", 1, 2, 6 }, { "rsvd_b2", 2, 0, 16 }, { "ttt", 20, 0, 32 }, INITIATOR_SNS } },
	{ "data_out", 0x05, { { "rsvd_b1", 1, 1, 7 }, { "ttt", 20, 0, 32 }, { "expstatsn", 28, 0, 32 }, { "datasn", 36, 0, 32 },
		{ "offset", 40, 0, 32 } } },
	{ "logout_request", 0x06, { { "reason", 1, 1, 7 }, { "rsvd_b2", 2, 0, 16 }, { "cid", 20, 0, 16 }, INITIATOR_SNS } },
	{ "snack", 0x10, { { "type", 1, 4, 4 }, { "ttt", 20, 0, 32 }, { "expstatsn", 28, 0, 32 }, { "begrun", 40, 0, 32 },
		{ "runlength", 44, 0, 32 } } },
	{ "nop_in", 0x20, { { "flags", 1, 1, 7 }, { "rsvd_b2", 2, 0, 16 }, { "ttt", 20, 0, 32 }, TARGET_SNS, { "rsvd_b36", 36, 0, 64 } } },
	{ "scsi_response", 0x21, { { "rsvd_b1", 1, 1, 2 }, { "bidi_overflow", 1, 3, 1 }, { "bidi_underflow", 1, 4, 1 },
		{ "overflow", 1, 5, 1 }, { "underflow", 1, 6, 1 }, { "rsvd_b1_7", 1, 7, 1 }, { "response", 2, 0, 8 }, { "status", 3, 0, 8 },
		{ "snacktag", 20, 0, 32 }, TARGET_SNS, { "expdatasn", 36, 0, 32 }, { "bidi_residual", 40, 0, 32 }, { "residual", 44, 0, 32 } } },
	{ "task_response", 0x22, { { "rsvd_b1", 1, 1, 7 }, { "response", 2, 0, 8 }, { "rsvd_b3", 3, 0, 8 }, TARGET_SNS } },
	{ "login_response", 0x23, { { "transit", 1, 0, 1 }, { "cont", 1, 1, 1 }, { "rsvd_b1", 1, 2, 2 }, { "csg", 1, 4, 2 }, { "nsg", 1, 6, 2 },
		{ "vmax", 2, 0, 8 }, { "vactive", 3, 0, 8 }, { "isid", 8, 0, 48 }, { "tsih", 14, 0, 16 }, { "rsvd_b20", 20, 0, 32 },
		TARGET_SNS, { "status_class", 36, 0, 8 }, { "status_detail", 37, 0, 8 }, { "status", 36, 0, 16 }, { "rsvd_b38", 38, 0, 16 },
		{ "rsvd_b40", 40, 0, 64 } } },
	{ "text_response", 0x24, { { "cont", 1, 1, 1 }, { "rsvd_b1", 1, 2, 6 }, { "rsvd_b2", 2, 0, 16 }, { "ttt", 20, 0, 32 }, TARGET_SNS,
		{ "rsvd_b36", 36, 0, 64 } } },
	{ "data_in", 0x25, { { "ack", 1, 1, 1 }, { "rsvd_b1", 1, 2, 3 }, { "overflow", 1, 5, 1 }, { "underflow", 1, 6, 1 }, { "has_status", 1, 7, 1 },
		{ "rsvd_b2", 2, 0, 8 }, { "status", 3, 0, 8 }, { "ttt", 20, 0, 32 }, TARGET_SNS, { "datasn", 36, 0, 32 }, { "offset", 40, 0, 32 },
		{ "residual", 44, 0, 32 } } },
	{ "logout_response", 0x26, { { "rsvd_b1", 1, 1, 7 }, { "response", 2, 0, 8 }, TARGET_SNS, { "time2wait", 40, 0, 16 },
		{ "time2retain", 42, 0, 16 } } },
	{ "r2t", 0x31, { { "rsvd_b1", 1, 1, 7 }, { "rsvd_b2", 2, 0, 16 }, { "ttt", 20, 0, 32 }, TARGET_SNS, { "r2tsn", 36, 0, 32 },
		{ "offset", 40, 0, 32 }, { "length", 44, 0, 32 } } },
	{ "async", 0x32, { { "rsvd_b1", 1, 1, 7 }, { "ttt", 20, 0, 32 }, TARGET_SNS, { "event", 36, 0, 8 }, { "vcode", 37, 0, 8 },
		{ "param1", 38, 0, 16 }, { "param2", 40, 0, 16 }, { "param3", 42, 0, 16 } } },
	{ "reject", 0x3f, { { "rsvd_b1", 1, 1, 7 }, { "reason", 2, 0, 8 }, { "rsvd_b3", 3, 0, 8 }, TARGET_SNS, { "datasn", 36, 0, 32 } } },
};
/* clang-format on */

static uint64_t read_bits(const uint8_t *pdu, const struct field *f)
{
	uint64_t value = 0;

	for (unsigned i = 0, at = f->byte * 8 + f->bit; i < f->width; i++, at++)
		value = value << 1 | (pdu[at / 8] >> (7 - at % 8) & 1);
	return value;
}

static void write_bits(uint8_t *pdu, const struct field *f, uint64_t value)
{
	unsigned at = f->byte * 8 + f->bit + f->width;

	for (unsigned i = 0; i < f->width; i++, value >>= 1) {
		uint8_t bit = (uint8_t)(0x80 >> (--at % 8));

		pdu[at / 8] = (uint8_t)(value & 1 ? pdu[at / 8] | bit
						  : pdu[at / 8] & ~bit);
	}
}

static const struct kind *kind_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static const struct field *find_field(const struct kind *k, const char *name)
{
	for (const struct field *f = k->fields; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	for (const struct field *f = common; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

/* Writes the value at the top of the stack to the field called name. */
static void encode_field(lua_State *l, const struct kind *k, const char *name,
			 uint8_t bhs[BHS])
{
	const struct field *f = find_field(k, name);
	const char *bytes;
	size_t len;

	if (!f)
		luaL_error(l, "%s has no field %s", k->name, name);
	else if (f->width > WORDY) {
		bytes = luaL_checklstring(l, -1, &len);
		memcpy(bhs + f->byte, bytes, MIN(len, f->width / 8));
	} else if (lua_isboolean(l, -1)) {
		write_bits(bhs, f, (uint64_t)lua_toboolean(l, -1));
	} else {
		write_bits(bhs, f, (uint64_t)luaL_checkinteger(l, -1));
	}
}

/* pdu_encode(kind, fields) returns the BHS. Fields that are not given are 0,
 * except the opcode; what is not a field (names with "_") belongs to the library in Lua. */
static int encode(lua_State *l)
{
	const struct kind *k = kind_by_name(luaL_checkstring(l, 1));
	uint8_t bhs[BHS] = { 0 };

	if (!k)
		return luaL_error(l, "no PDU is called %s", lua_tostring(l, 1));
	luaL_checktype(l, 2, LUA_TTABLE);
	bhs[0] = (uint8_t)k->opcode;
	for (lua_pushnil(l); lua_next(l, 2); lua_pop(l, 1)) {
		if (lua_type(l, -2) != LUA_TSTRING)
			return luaL_error(l,
					  "the name of a field must be a text");
		if (lua_tostring(l, -2)[0] != '_')
			encode_field(l, k, lua_tostring(l, -2), bhs);
	}
	lua_pushlstring(l, (const char *)bhs, BHS);
	return 1;
}

static void decode_fields(lua_State *l, const struct field *f,
			  const uint8_t *bhs)
{
	for (; f->name; f++) {
		if (f->width > WORDY)
			lua_pushlstring(l, (const char *)bhs + f->byte,
					f->width / 8);
		else if (f->width == 1)
			lua_pushboolean(l, read_bits(bhs, f) != 0);
		else
			lua_pushinteger(l, (lua_Integer)read_bits(bhs, f));
		lua_setfield(l, -2, f->name);
	}
}

/* pdu_decode(bhs) returns the table of the fields, with the name of the PDU as _kind. */
static int decode(lua_State *l)
{
	size_t len;
	const uint8_t *bhs = (const uint8_t *)luaL_checklstring(l, 1, &len);
	const struct kind *k = NULL;

	if (len != BHS)
		return luaL_error(l, "a BHS has 48 bytes, not %d", (int)len);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i].opcode == (bhs[0] & 0x3f))
			k = &kinds[i];
	lua_newtable(l);
	decode_fields(l, common, bhs);
	if (k)
		decode_fields(l, k->fields, bhs);
	lua_pushstring(l, k ? k->name : "unknown");
	lua_setfield(l, -2, "_kind");
	return 1;
}

void fields_open(lua_State *l)
{
	lua_pushcfunction(l, encode);
	lua_setfield(l, -2, "pdu_encode");
	lua_pushcfunction(l, decode);
	lua_setfield(l, -2, "pdu_decode");
}
