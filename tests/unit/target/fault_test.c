/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault_test.c: the n-th request to the store fails, for every n, in a
 * session that uses every kind of request: that command gets the right sense
 * data, all others their right responses, and nothing leaks.
 */
#include <string.h>

#include "base/err.h"
#include "cmocka_all.h"
#include "fixture.h"

struct outcome {
	unsigned good, failed;
};

/* Sends a command with its data and expects its response. */
static void run(struct peer *p, struct outcome *o, const uint8_t cdb[16],
		uint32_t in, uint32_t out, uint8_t key)
{
	struct sent *s;

	peer_command(p, cdb, in > 0, out > 0, in + out);
	if (out)
		peer_unsolicited(p, p->last_task, 0, out, 0);
	fixture_settle(p->fixture);
	s = peer_expect(p, ISCSI_SCSI_RESPONSE);
	if (s->pdu.rsp.status == SCSI_GOOD) {
		o->good++;
		return;
	}
	assert_int_equal(s->pdu.rsp.status, SCSI_CHECK_CONDITION);
	assert_true(s->len >= 2 + 14);
	assert_int_equal(s->data[4] & 0x0f, key);
	o->failed++;
}

static struct outcome session(int err, unsigned nth, uint8_t key)
{
	static const uint8_t read10[16] = { 0x28, 0, 0, 0, 0, 8, 0, 0, 8 };
	static const uint8_t write10[16] = { 0x2a, 0, 0, 0, 0, 8, 0, 0, 8 };
	static const uint8_t write_fua[16] = { 0x2a, 8, 0, 0, 0, 8, 0, 0, 8 };
	static const uint8_t sync[16] = { 0x35 };
	static const uint8_t verify[16] = { 0x2f, 0, 0, 0, 0, 0, 0, 0, 8 };
	static const uint8_t same[16] = { 0x41, 0, 0, 0, 0, 0, 0, 0, 16 };
	static const uint8_t status[16] = { 0x9e, 0x12, 0, 0, 0, 0, 0,
					    0,	  0,	0, 0, 0, 0, 40 };
	struct fixture *r = fixture_new_faulty(1, NULL, nth, err);
	struct peer *p = peer_session(r, 0, 1);
	struct outcome o = { 0, 0 };

	peer_ready(p);
	for (int round = 0; round < 2; round++) {
		run(p, &o, read10, 4096, 0, key);
		run(p, &o, write10, 0, 4096, key);
		run(p, &o, write_fua, 0, 4096, key);
		run(p, &o, sync, 0, 0, key);
		run(p, &o, verify, 0, 0, key);
		run(p, &o, same, 0, 512, key);
		run(p, &o, status, 40, 0, key);
	}
	peer_ready(p); /* the session still works */
	fixture_free(r);
	return o;
}

static void every_request(int err, uint8_t key)
{
	unsigned nth = 1;
	struct outcome o;

	do {
		o = session(err, nth++, key);
		assert_true(o.failed <= 1);
		assert_int_equal(o.good + o.failed, 14);
	} while (o.failed);
	assert_true(nth > 10); /* so many requests reached the store */
}

static void test_medium_fails_everywhere(void **state)
{
	(void)state;
	every_request(ERR_MEDIUM, 0x03);
}

static void test_store_is_full_everywhere(void **state)
{
	(void)state;
	every_request(ERR_NO_SPACE, 0x07);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_medium_fails_everywhere),
		cmocka_unit_test(test_store_is_full_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
