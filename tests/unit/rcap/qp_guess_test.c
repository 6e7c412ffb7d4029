/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_guess_test.c: large messages to a region with RCAP_UNDEFINED, whose
 * segments the queue pair receives where it guesses them: segments as guessed,
 * shorter, longer, elsewhere, of other regions, and Sends between them, in reads
 * of every size. Each octet has to end where its header says.
 */
#include <stdlib.h>
#include <string.h>

#include "unit/rcap/peer.h"

#define BIG    (400u << 10)
#define BASE   0x77000000ull
#define SEG    (40u << 10)
#define PIECES 12

struct part {
	size_t off, len; /* of the region; len 0: none */
	bool last;
	bool send; /* a Send of 8 octets in place of a Write */
};

struct big {
	struct peer *p;
	uint8_t *memory, *octets;
	size_t n; /* octets to send */
	struct iovec iov[3];
	struct rcap_mr mr;
	uint32_t msn;
};

static uint8_t octet_at(size_t i)
{
	return (uint8_t)(i * 7 ^ i >> 8 ^ i >> 16);
}

static void big_init(struct big *b, uint16_t bits)
{
	struct bufv v;

	*b = (struct big){ .p = peer_up(bits, 3) };
	b->memory = malloc(BIG);
	b->octets = malloc(2 * BIG);
	/* the borders of the pieces are not those of segments */
	b->iov[0] = (struct iovec){ b->memory, 50001 };
	b->iov[1] = (struct iovec){ b->memory + 50001, 7 };
	b->iov[2] = (struct iovec){ b->memory + 50008, BIG - 50008 };
	v = bufv_of(b->iov, 3);
	assert_int_equal(rcap_reg(b->p->qp, &v, BASE,
				  RCAP_REMOTE_WRITE | RCAP_UNDEFINED, &b->mr),
			 0);
}

static void big_fini(struct big *b)
{
	peer_free(b->p);
	free(b->memory);
	free(b->octets);
}

static void lay_part(struct big *b, const struct part *part)
{
	static uint8_t ulpdu[70000];
	const struct seg send = { .ctrl = C_SEND,
				  .msn = ++b->msn,
				  .payload = 8 };
	const struct seg write = { .ctrl = part->last ? C_WRITE
						      : C_MORE(C_WRITE),
				   .stag = b->mr.stag,
				   .to = BASE + part->off,
				   .payload = part->len };
	size_t n = peer_lay(b->p, part->send ? &send : &write, ulpdu);

	for (size_t i = 0; i < part->len && !part->send; i++)
		ulpdu[14 + i] = octet_at(part->off + i);
	b->msn -= !part->send;
	b->n += peer_fpdu(b->p, ulpdu, n, b->octets + b->n);
}

#define P(at, n)          \
 {                        \
  .off = (at), .len = (n) \
 }
#define LAST(at, n)                     \
 {                                      \
  .off = (at), .len = (n), .last = true \
 }

/* A peer that does not write from the start on: the memory may hold other
 * octets until the next message. */
static const struct part backwards[PIECES] = {
	P(3 * SEG, SEG), P(2 * SEG, SEG), P(SEG, SEG),
	P(0, SEG),	 P(0, SEG),	  LAST(SEG, SEG),
};

/* Sends the parts and a Send, at most `chunk` octets per read. Returns the
 * payload that was copied. */
static uint64_t send_parts(struct big *b, const struct part *parts,
			   size_t chunk)
{
	const struct part notice = { .send = true };
	uint64_t copied = iwarp_stats(b->p->c)->copied;

	memset(b->memory, 0x11, BIG);
	b->n = 0;
	for (size_t i = 0; i < PIECES && (parts[i].len || parts[i].send); i++)
		lay_part(b, &parts[i]);
	lay_part(b, &notice);
	b->p->chunk = chunk;
	peer_octets(b->p, b->octets, b->n);
	assert_int_equal(rcap_state(b->p->qp), RCAP_ESTABLISHED);
	assert_int_equal(b->p->received, b->msn);
	for (size_t i = 0; i < PIECES; i++)
		for (size_t k = 0; k < parts[i].len && parts != backwards; k++)
			if (b->memory[parts[i].off + k] !=
			    octet_at(parts[i].off + k))
				fail_msg("part %zu, octet %zu", i, k);
	return iwarp_stats(b->p->c)->copied - copied;
}

/* clang-format off */
static const struct part lists[][PIECES] = {
	/* as guessed, the last one shorter */
	{ P(0, SEG), P(SEG, SEG), P(2 * SEG, SEG), P(3 * SEG, SEG), P(4 * SEG, SEG), P(5 * SEG, SEG),
	  P(6 * SEG, SEG), P(7 * SEG, SEG), P(8 * SEG, SEG), LAST(9 * SEG, BIG - 9 * SEG) },
	/* the message ends before the region */
	{ P(0, SEG), P(SEG, SEG), LAST(2 * SEG, SEG) },
	/* a shorter one, a longer one, one of a few octets, an odd one */
	{ P(0, SEG), P(SEG, SEG), P(2 * SEG, 20000), P(2 * SEG + 20000, 60000), P(200000, 5), P(200005, SEG),
	  P(200005 + SEG, 30001), LAST(300000, SEG) },
	/* each is a message, with Sends between them */
	{ LAST(0, SEG), { .send = true }, LAST(SEG, SEG), { .send = true }, LAST(2 * SEG, SEG), LAST(3 * SEG, 100) },
	/* small after large */
	{ P(0, SEG), P(SEG, SEG), P(2 * SEG, 100), P(2 * SEG + 100, 100), P(2 * SEG + 200, 100), P(100000, SEG),
	  P(100000 + SEG, SEG), LAST(100000 + 2 * SEG, SEG) },
};
/* clang-format on */

static const uint16_t settings[] = { 0x5002, 0x1002, 0xd002 };

static void test_segments_anywhere_in_reads_of_any_size(void **state)
{
	static const size_t chunks[] = { 0,	1000,  16384, 40960,
					 40973, 70001, 131072 };

	(void)state;
	for (size_t s = 0; s < ARRAY_LEN(settings); s++)
		for (size_t k = 0; k < ARRAY_LEN(chunks); k++) {
			struct big b;

			big_init(&b, settings[s]);
			for (size_t i = 0; i < 4 * ARRAY_LEN(lists); i++)
				send_parts(&b, lists[i % ARRAY_LEN(lists)],
					   chunks[k]);
			/* a region of which the guess is right, in the end */
			for (size_t i = 0; i < 4; i++)
				send_parts(&b, lists[0], chunks[k]);
			send_parts(&b, backwards, chunks[k]);
			big_fini(&b);
		}
}

/* Reads end at every octet near the borders of guessed segments. */
static void test_reads_end_at_every_border(void **state)
{
	struct big b;

	(void)state;
	big_init(&b, 0x5002);
	send_parts(&b, backwards, 0);
	for (size_t i = 0; i < 3; i++)
		send_parts(&b, lists[0], 0);
	for (size_t chunk = SEG - 20; chunk < SEG + 60; chunk++) {
		send_parts(&b, lists[0], chunk);
		send_parts(&b, lists[2], chunk);
	}
	big_fini(&b);
}

/* A segment in its guessed place is not copied. The first one is in the
 * look-ahead. */
static void test_right_guesses_copy_nothing(void **state)
{
	struct big b;

	(void)state;
	big_init(&b, 0x5002);
	for (size_t i = 0; i < 4; i++)
		assert_true(send_parts(&b, lists[0], 0) < 2 * SEG);
	big_fini(&b);
}

/* A wrong CRC in a guessed segment ends the connection. */
static void test_wrong_crc_in_a_guessed_segment(void **state)
{
	struct big b;

	(void)state;
	for (size_t at = 2 * SEG; at < 2 * SEG + 60000; at += 997) {
		big_init(&b, 0x5002);
		send_parts(&b, lists[0], 0);
		send_parts(&b, lists[0], 0);
		b.octets[at] ^= 0x40;
		b.octets[b.n - 8 - 4 - 5] = 3; /* MSN of the last Send */
		peer_octets(b.p, b.octets, b.n);
		assert_true(rcap_state(b.p->qp) >= RCAP_CLOSING);
		assert_int_equal(b.p->received, 2);
		big_fini(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments_anywhere_in_reads_of_any_size),
		cmocka_unit_test(test_reads_end_at_every_border),
		cmocka_unit_test(test_right_guesses_copy_nothing),
		cmocka_unit_test(test_wrong_crc_in_a_guessed_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
