/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bytes.h: numbers in wire order, and arithmetic that is safe on numbers of a
 * peer.
 *
 * Only the codec files, which convert between bytes and structs, may call the
 * get and put functions. These functions check no length: the codec checks
 * each length on the line that decodes it.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BIT(n)	     (1u << (n))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))

/* container_of returns the struct that embeds *ptr as its member. */
#define container_of(ptr, type, member) \
 ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* GCC makes bytewise code out of shifts if several fields are adjacent; from
 * these functions it always makes one load or store. The test of the order
 * costs nothing: the compiler knows the result. */
static inline bool is_little_endian(void)
{
	const uint16_t one = 1;
	uint8_t first;

	memcpy(&first, &one, 1);
	return first == 1;
}

static inline uint16_t get_be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return is_little_endian() ? __builtin_bswap16(v) : v;
}

static inline uint32_t get_be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return is_little_endian() ? __builtin_bswap32(v) : v;
}

static inline uint64_t get_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return is_little_endian() ? __builtin_bswap64(v) : v;
}

static inline uint32_t get_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return is_little_endian() ? v : __builtin_bswap32(v);
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
	v = is_little_endian() ? __builtin_bswap16(v) : v;
	memcpy(p, &v, sizeof(v));
}

static inline void put_be24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
	v = is_little_endian() ? __builtin_bswap32(v) : v;
	memcpy(p, &v, sizeof(v));
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
	v = is_little_endian() ? __builtin_bswap64(v) : v;
	memcpy(p, &v, sizeof(v));
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	v = is_little_endian() ? v : __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

/*
 * range_ok returns whether [off, off + len) lies inside [0, size). Offsets and
 * lengths of a peer are compared with a size by this function only, because
 * its arithmetic cannot overflow.
 */
static inline bool range_ok(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}

/*
 * ranges_overlap returns whether [a, a + na) and [b, b + nb) have an element in
 * common; a range of length 0 overlaps a range that it lies in. Its arithmetic
 * cannot overflow.
 */
static inline bool ranges_overlap(uint64_t a, uint64_t na, uint64_t b,
				  uint64_t nb)
{
	return a < b ? b - a < na : a - b < nb;
}

/* add_ok and mul_ok store a + b and a * b, and return whether the result fits
 * in size_t. */
static inline bool add_ok(size_t a, size_t b, size_t *sum)
{
	return !__builtin_add_overflow(a, b, sum);
}

static inline bool mul_ok(size_t a, size_t b, size_t *product)
{
	return !__builtin_mul_overflow(a, b, product);
}

/* round_up4 returns the length of an iSCSI segment of n bytes with its padding
 * (RFC 7143 §11.1). */
static inline size_t round_up4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

#endif
