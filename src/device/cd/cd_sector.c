/* SPDX-License-Identifier: BSD-2-Clause */
/* cd_sector.c: the fields around the user data of a sector in mode 1: sync,
 * header, EDC, ECC (ECMA-130 §14, annex A). */
#include <string.h>

#include "device/cd/cd.h"

#define EDC_AT	  2064u
#define ZEROS_AT  2068u
#define P_AT	  2076u
#define Q_AT	  2248u
#define P_COLUMNS 86u
#define P_ROWS	  24u
#define Q_LINES	  52u
#define Q_LEN	  43u

/* x^32 + x^31 + x^16 + x^15 + x^4 + x^3 + x + 1, least significant bit first
 * (§14.3) */
static uint32_t edc(const uint8_t *p, size_t len)
{
	uint32_t crc = 0;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xd8018001u : 0);
	}
	return crc;
}

/* Multiplication in GF(2^8) with x^8 + x^4 + x^3 + x^2 + 1 (annex A). */
static uint8_t times_alpha(uint8_t a)
{
	return (uint8_t)(a << 1 ^ (a & 0x80 ? 0x1d : 0));
}

static uint8_t times(uint8_t a, uint8_t b)
{
	uint8_t sum = 0;

	for (; b; b >>= 1, a = times_alpha(a))
		if (b & 1)
			sum ^= a;
	return sum;
}

#define ONE_BY_ALPHA_PLUS_1 0xf4

/*
 * A code word is n bytes and two bytes of parity. The parity makes two sums
 * zero: the sum of all bytes, and the sum of all bytes weighted with descending
 * powers of alpha, where the last byte has the weight alpha^0.
 */
struct word {
	uint8_t sum, weighted;
};

static void add(struct word *w, uint8_t byte)
{
	w->sum ^= byte;
	w->weighted = times_alpha(w->weighted) ^ byte;
}

static void parity(const struct word *w, uint8_t *first, uint8_t *second)
{
	uint8_t two_more = times_alpha(times_alpha(w->weighted));

	*first = times((uint8_t)(w->sum ^ two_more), ONE_BY_ALPHA_PLUS_1);
	*second = w->sum ^ *first;
}

/* Annex A arranges the bytes from the header on as 16-bit words and codes the
 * high bytes and the low bytes separately. P code words are the columns. */
static void ecc_p(uint8_t *s)
{
	uint8_t *data = s + CD_SYNC_LEN;

	for (unsigned column = 0; column < P_COLUMNS; column++) {
		struct word w = { 0 };

		for (unsigned row = 0; row < P_ROWS; row++)
			add(&w, data[row * P_COLUMNS + column]);
		parity(&w, s + P_AT + column, s + P_AT + P_COLUMNS + column);
	}
}

/* Q code words are the diagonals of the same matrix with the P parity. */
static void ecc_q(uint8_t *s)
{
	uint8_t *data = s + CD_SYNC_LEN;

	for (unsigned line = 0; line < Q_LINES; line++) {
		unsigned at = line / 2 * P_COLUMNS + line % 2;
		struct word w = { 0 };

		for (unsigned i = 0; i < Q_LEN; i++) {
			add(&w, data[at]);
			at = (at + P_COLUMNS + 2) % (Q_LINES * Q_LEN);
		}
		parity(&w, s + Q_AT + line, s + Q_AT + Q_LINES + line);
	}
}

static uint8_t bcd(uint8_t n)
{
	return (uint8_t)(n / 10 << 4 | n % 10);
}

void cd_sector_begin(uint8_t s[CD_SECTOR], uint64_t lba)
{
	uint8_t msf[3];

	cd_put_msf(msf, lba);
	memset(s, 0xff, CD_SYNC_LEN);
	s[0] = s[11] = 0;
	for (int i = 0; i < 3; i++)
		s[CD_SYNC_LEN + i] = bcd(msf[i]);
	s[15] = 0x01; /* mode */
}

void cd_sector_protect(uint8_t s[CD_SECTOR])
{
	uint32_t crc = edc(s, EDC_AT);

	for (int i = 0; i < 4; i++)
		s[EDC_AT + i] = (uint8_t)(crc >> 8 * i);
	memset(s + ZEROS_AT, 0, P_AT - ZEROS_AT);
	ecc_p(s);
	ecc_q(s);
}
