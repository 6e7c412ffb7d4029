/* SPDX-License-Identifier: BSD-2-Clause */
/* record_test.c: the record of a shared unit as bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/err.h"
#include "cluster/record.h"
#include "cmocka_all.h"

static struct cluster_record full, got;
static uint8_t bytes[CLUSTER_RECORD_MAX + 1];
static const uint8_t part[] = "reservations", event[] = "preempted";

static void make_full(void)
{
	memset(&full, 0, sizeof(full));
	full.version = 100;
	full.generation = 7;
	full.forgotten = 40;
	strcpy(full.owner, "gw-b");
	full.ngateways = 3;
	for (unsigned i = 0; i < 3; i++) {
		struct cluster_gateway *g = &full.gateways[i];

		memcpy(g->id, "gw-", 3);
		g->id[3] = (char)('a' + i);
		g->number = (uint16_t)(i + 1);
		g->nports = 2;
		g->ports[0] = (uint16_t)(10 * i + 1);
		g->ports[1] = (uint16_t)(10 * i + 2);
		g->nportals = 1;
		strcpy(g->portals[0], "[2001:db8::1]:3260,2");
		g->last = (struct cluster_change_id){ 5 + i, 6 };
	}
	full.parts[CLUSTER_RESERVATIONS].data = part;
	full.parts[CLUSTER_RESERVATIONS].len = sizeof(part);
	full.parts[CLUSTER_RESERVATIONS].changed = 99;
	for (unsigned i = 0; i < 3; i++)
		full.events[i] = (struct cluster_event){
			.at = 50 + i, .data = event, .len = sizeof(event) - i
		};
	full.nevents = 3;
}

/* Encodes full, changes it by `damage`, and decodes it with a right CRC. */
static size_t encode(void)
{
	size_t n = cluster_record_size(&full);

	assert_int_equal(cluster_record_encode(&full, bytes), n);
	return n;
}

static int decode_right(size_t n)
{
	uint8_t *copy = malloc(n);
	uint32_t crc;
	int err;

	put_be32(bytes + 12, (uint32_t)n);
	crc = crc32c_update(CRC32C_SEED, bytes, 16);
	crc = crc32c_update(crc, bytes + 20, n - 20);
	put_be32(bytes + 16, crc32c_wire(crc));
	memcpy(copy, bytes, n);
	err = cluster_record_decode(&got, copy, n);
	free(copy);
	return err;
}

static void test_round_trip(void **state)
{
	size_t n;

	(void)state;
	make_full();
	n = encode();
	assert_int_equal(cluster_record_decode(&got, bytes, n), 0);
	assert_int_equal(got.version, 100);
	assert_int_equal(got.generation, 7);
	assert_int_equal(got.forgotten, 40);
	assert_false(got.withheld);
	assert_string_equal(got.owner, "gw-b");
	assert_int_equal(got.ngateways, 3);
	assert_memory_equal(got.gateways, full.gateways, sizeof(got.gateways));
	assert_int_equal(got.parts[CLUSTER_RESERVATIONS].changed, 99);
	assert_int_equal(got.parts[CLUSTER_RESERVATIONS].len, sizeof(part));
	assert_memory_equal(got.parts[CLUSTER_RESERVATIONS].data, part,
			    sizeof(part));
	assert_int_equal(got.parts[CLUSTER_KEPT].len, 0);
	assert_int_equal(got.nevents, 3);
	assert_int_equal(got.events[2].at, 52);
	assert_int_equal(got.events[2].len, sizeof(event) - 2);
	assert_int_equal(cluster_record_changed(&got), 99);
}

static void test_smallest(void **state)
{
	size_t n;

	(void)state;
	memset(&full, 0, sizeof(full));
	full.version = 1;
	full.withheld = true;
	n = encode();
	assert_int_equal(cluster_record_decode(&got, bytes, n), 0);
	assert_true(got.withheld);
}

static void test_truncated(void **state)
{
	size_t n;

	(void)state;
	make_full();
	n = encode();
	for (size_t i = 0; i < n; i++) {
		uint8_t *copy = malloc(i ? i : 1);

		memcpy(copy, bytes, i);
		assert_int_equal(cluster_record_decode(&got, copy, i),
				 ERR_TRUNCATED);
		free(copy);
		if (i >= 20) {
			encode();
			assert_int_not_equal(decode_right(i), 0);
			encode();
		}
	}
	bytes[n] = 0;
	assert_int_equal(cluster_record_decode(&got, bytes, n + 1), ERR_FORMAT);
	assert_int_equal(decode_right(n + 1), ERR_FORMAT);
	assert_int_equal(cluster_record_decode(&got, bytes, sizeof(bytes)),
			 ERR_TOO_LONG);
}

static void test_damaged(void **state)
{
	size_t n;

	(void)state;
	make_full();
	n = encode();
	for (size_t i = 0; i < 8 * n; i++) {
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_not_equal(cluster_record_decode(&got, bytes, n), 0);
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
	}
}

/* Format 1, which has no block sizes, stays as it was. */
static void test_block_sizes(void **state)
{
	size_t n, old;

	(void)state;
	make_full();
	old = encode();
	assert_int_equal(get_be16(bytes + 8), 1);
	assert_int_equal(cluster_record_decode(&got, bytes, old), 0);
	assert_int_equal(got.gateways[2].block_size, 0);
	put_be16(bytes + 8, 2);
	assert_int_not_equal(decode_right(old), 0);
	full.gateways[0].block_size = full.gateways[2].block_size = 4096;
	n = encode();
	assert_int_equal(n, old + 3 * 2);
	assert_int_equal(get_be16(bytes + 8), 2);
	assert_int_equal(cluster_record_decode(&got, bytes, n), 0);
	assert_memory_equal(got.gateways, full.gateways, sizeof(got.gateways));
	put_be16(bytes + 8, 1);
	assert_int_not_equal(decode_right(n), 0);
	/* no gateway has one: a record of format 1 */
	full.ngateways = 1;
	strcpy(full.owner, "gw-a");
	n = encode();
	put_be16(bytes + 20 + 24 + 3 + 5 + 5 + 2, 0);
	assert_int_equal(decode_right(n), ERR_FORMAT);
	make_full();
	full.gateways[0].block_size = 512;
	full.gateways[2].block_size = 4096;
	n = encode();
	assert_int_equal(cluster_record_decode(&got, bytes, n), ERR_FORMAT);
}

static void test_newer_format(void **state)
{
	size_t n;

	(void)state;
	make_full();
	n = encode();
	put_be16(bytes + 8, 3);
	assert_int_equal(decode_right(n), ERR_UNSUPPORTED);
	encode();
	put_be16(bytes + 10, 0x8000);
	assert_int_equal(decode_right(n), ERR_UNSUPPORTED);
}

/* Contents that no gateway writes. */
static void refuse(void)
{
	size_t n = encode();

	assert_int_equal(cluster_record_decode(&got, bytes, n), ERR_FORMAT);
	make_full();
}

static void test_contents(void **state)
{
	(void)state;
	make_full();
	full.version = 0;
	refuse();
	full.withheld = true;
	refuse();
	strcpy(full.owner, "stranger");
	refuse();
	full.gateways[1].number = 1;
	refuse();
	full.gateways[1].number = 0;
	refuse();
	full.gateways[1].number = 17;
	refuse();
	full.gateways[2].ports[1] = 1;
	refuse();
	full.gateways[2].ports[1] = 0;
	refuse();
	strcpy(full.gateways[2].id, "gw-a");
	refuse();
	full.gateways[2].id[0] = '\0';
	refuse();
	strcpy(full.gateways[2].id, "two words");
	refuse();
	full.parts[1].changed = 101;
	refuse();
	full.forgotten = 50;
	refuse();
	full.forgotten = 101;
	full.nevents = 0;
	refuse();
	full.events[2].at = 51;
	refuse();
	full.events[2].at = 101;
	refuse();
	full.events[2].len = 0;
	refuse();
}

static void test_rival(void **state)
{
	struct cluster_gateway self;
	enum cluster_rivalry why;

	(void)state;
	make_full();
	self = full.gateways[1];
	assert_null(cluster_record_rival(&full, &self, &why));
	assert_int_equal(why, CLUSTER_RIVAL_NONE);
	strcpy(self.id, "gw-d");
	assert_ptr_equal(cluster_record_rival(&full, &self, &why),
			 &full.gateways[1]);
	assert_int_equal(why, CLUSTER_RIVAL_NUMBER);
	self.number = 4;
	assert_ptr_equal(cluster_record_rival(&full, &self, &why),
			 &full.gateways[1]);
	assert_int_equal(why, CLUSTER_RIVAL_PORT);
	self.nports = 0;
	assert_null(cluster_record_rival(&full, &self, &why));
	self.number = 3;
	assert_ptr_equal(cluster_record_rival(&full, &self, &why),
			 &full.gateways[2]);
	assert_int_equal(why, CLUSTER_RIVAL_NUMBER);
	self.number = 4;
	self.block_size = 4096;
	assert_null(cluster_record_rival(&full, &self, &why));
	full.gateways[0].block_size = 4096;
	assert_null(cluster_record_rival(&full, &self, &why));
	self.block_size = 512;
	assert_ptr_equal(cluster_record_rival(&full, &self, &why),
			 &full.gateways[0]);
	assert_int_equal(why, CLUSTER_RIVAL_BLOCKS);
}

static void test_events(void **state)
{
	static uint8_t big[CLUSTER_EVENT_MAX];

	(void)state;
	memset(&full, 0, sizeof(full));
	for (unsigned i = 1; i <= CLUSTER_EVENTS; i++) {
		full.version = i;
		assert_true(cluster_record_remember(&full, 0, event, 1));
	}
	assert_int_equal(full.nevents, CLUSTER_EVENTS);
	assert_int_equal(full.forgotten, 0);
	full.version = 50;
	assert_true(cluster_record_remember(&full, 1, event, 1));
	assert_int_equal(full.nevents, CLUSTER_EVENTS);
	assert_int_equal(full.forgotten, 1);
	assert_int_equal(full.events[0].at, 2);
	assert_int_equal(full.events[CLUSTER_EVENTS - 1].at, 50);
	for (unsigned i = 51; i < 55; i++) {
		full.version = i;
		assert_true(
			cluster_record_remember(&full, 1, big, sizeof(big)));
		assert_true(cluster_record_size(&full) <= CLUSTER_RECORD_MAX);
	}
	assert_int_equal(full.nevents, 3);
	assert_int_equal(full.forgotten, 51);
	full.parts[0].data = big;
	full.parts[0].len = CLUSTER_RECORD_MAX;
	assert_false(cluster_record_remember(&full, 0, NULL, 0));
	assert_int_equal(full.nevents, 0);
	assert_int_equal(full.forgotten, 54);
}

static void test_notes(void **state)
{
	struct cluster_note_body b = { CLUSTER_NOTE_YIELD, 1234567890123u, 9 };
	uint8_t note[CLUSTER_NOTE_SIZE + 8] = { 0 };

	(void)state;
	cluster_note_encode(&b, note);
	memset(&b, 0, sizeof(b));
	assert_int_equal(cluster_note_decode(&b, note, sizeof(note)), 0);
	assert_int_equal(b.kind, CLUSTER_NOTE_YIELD);
	assert_int_equal(b.version, 1234567890123u);
	assert_int_equal(b.generation, 9);
	for (size_t i = 0; i < CLUSTER_NOTE_SIZE; i++)
		assert_int_equal(cluster_note_decode(&b, note, i),
				 ERR_TRUNCATED);
	note[3] = 0;
	assert_int_equal(cluster_note_decode(&b, note, 24), ERR_UNSUPPORTED);
	note[3] = CLUSTER_NOTE_YIELD + 1;
	assert_int_equal(cluster_note_decode(&b, note, 24), ERR_UNSUPPORTED);
	note[2]++;
	assert_int_equal(cluster_note_decode(&b, note, 24), ERR_UNSUPPORTED);
	note[0]++;
	assert_int_equal(cluster_note_decode(&b, note, 24), ERR_FORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_smallest),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_block_sizes),
		cmocka_unit_test(test_newer_format),
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_rival),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
