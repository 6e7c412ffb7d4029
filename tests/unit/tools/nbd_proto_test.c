/* SPDX-License-Identifier: BSD-2-Clause */
/* nbd_proto_test.c: NBD's negotiation, requests and replies, as bytes. */
#include "tools/nbd/proto.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

static const struct nbd_export disk = {
	.name = "disk",
	.description = "a disk",
	.size = 1 << 20,
	.min_block = 512,
	.preferred_block = 4096,
	.can_trim = true,
	.has_extents = true,
};

struct wire {
	struct nbd_nego n;
	uint8_t in[16384];
	size_t in_len;
};

static void put(struct wire *w, const void *p, size_t len)
{
	memcpy(w->in + w->in_len, p, len);
	w->in_len += len;
}

static void put32(struct wire *w, uint32_t v)
{
	uint8_t b[4];

	nbd_put32(b, v);
	put(w, b, 4);
}

static void put16(struct wire *w, uint16_t v)
{
	uint8_t b[2];

	nbd_put16(b, v);
	put(w, b, 2);
}

static void put_option(struct wire *w, uint32_t option, uint32_t len)
{
	put(w, "IHAVEOPT", 8);
	put32(w, option);
	put32(w, len);
}

/* Feeds what is in, `most` bytes at a time; out keeps what the last call
 * answered. Returns what was taken. */
static size_t feed(struct wire *w, size_t most)
{
	size_t at = 0, want;
	uint8_t *where;

	while (at < w->in_len && (want = nbd_nego_want(&w->n, &where)) > 0) {
		size_t n = want < most ? want : most;

		if (n > w->in_len - at)
			n = w->in_len - at;
		memcpy(where, w->in + at, n);
		w->n.out_len = 0;
		nbd_nego_got(&w->n, n);
		at += n;
	}
	w->in_len = 0;
	return at;
}

static struct wire *greeted_with(const struct nbd_export *e, uint32_t flags)
{
	struct wire *w = calloc(1, sizeof(*w));

	nbd_nego_start(&w->n, e);
	put32(w, flags);
	assert_int_equal(feed(w, 1), 4);
	return w;
}

static struct wire *greeted(void)
{
	struct wire *w = greeted_with(&disk, 3);

	assert_int_equal(w->n.state, NBD_NEGO_OPTION);
	return w;
}

/* The type of reply at `at`, to this option; *at moves to its end. */
static uint32_t reply_at(const struct wire *w, size_t *at, uint32_t option)
{
	const uint8_t *p = w->n.out + *at;
	uint32_t len;

	assert_true(w->n.out_len >= *at + 20);
	assert_int_equal(nbd_get64(p), 0x0003e889045565a9ull);
	assert_int_equal(nbd_get32(p + 8), option);
	len = nbd_get32(p + 16);
	assert_true(w->n.out_len >= *at + 20 + len);
	*at += 20 + len;
	return nbd_get32(p + 12);
}

static uint32_t only_reply(const struct wire *w, uint32_t option)
{
	size_t at = 0;
	uint32_t type = reply_at(w, &at, option);

	assert_int_equal(at, w->n.out_len);
	return type;
}

static void test_start_greets(void **state)
{
	struct nbd_nego *n = calloc(1, sizeof(*n));

	(void)state;
	nbd_nego_start(n, &disk);
	assert_int_equal(n->out_len, 18);
	assert_memory_equal(n->out, "NBDMAGICIHAVEOPT\0\3", 18);
	free(n);
}

static void test_flags_unknown(void **state)
{
	struct wire *w = greeted_with(&disk, 0x80000003);

	(void)state;
	assert_int_equal(w->n.state, NBD_NEGO_FAILED);
	assert_true(w->n.why[0]);
	free(w);
}

static void test_option_without_magic(void **state)
{
	struct wire *w = greeted();

	(void)state;
	put(w, "GET / HTTP/1.1\r\n", 16);
	feed(w, 100);
	assert_int_equal(w->n.state, NBD_NEGO_FAILED);
	free(w);
}

static void test_option_unknown(void **state)
{
	struct wire *w = greeted();

	(void)state;
	put_option(w, 5, 0); /* STARTTLS */
	feed(w, 100);
	assert_int_equal(only_reply(w, 5), 0x80000001);
	put_option(w, 11, 0); /* EXTENDED_HEADERS */
	feed(w, 100);
	assert_int_equal(only_reply(w, 11), 0x80000001);
	assert_int_equal(w->n.state, NBD_NEGO_OPTION);
	free(w);
}

static void test_option_too_long_is_passed_over(void **state)
{
	struct wire *w = greeted();

	(void)state;
	put_option(w, 7, NBD_NEGO_IN + 1000);
	memset(w->in + w->in_len, 'x', NBD_NEGO_IN + 1000);
	w->in_len += NBD_NEGO_IN + 1000;
	feed(w, 700);
	assert_int_equal(only_reply(w, 7), 0x80000009);
	put_option(w, 2, 0);
	feed(w, 100);
	assert_int_equal(only_reply(w, 2), 1);
	assert_int_equal(w->n.state, NBD_NEGO_ENDED);
	free(w);
}

static void test_list(void **state)
{
	struct wire *w = greeted();
	size_t at = 0;

	(void)state;
	put_option(w, 3, 0);
	feed(w, 3);
	assert_int_equal(reply_at(w, &at, 3), 2);
	assert_memory_equal(w->n.out + 20, "\0\0\0\4disk", 8);
	assert_int_equal(reply_at(w, &at, 3), 1);
	assert_int_equal(at, w->n.out_len);
	put_option(w, 3, 1);
	put(w, "x", 1);
	feed(w, 100);
	assert_int_equal(only_reply(w, 3), 0x80000003);
	free(w);
}

static void put_go(struct wire *w, uint32_t option, const char *name,
		   uint32_t name_len)
{
	put_option(w, option, (uint32_t)strlen(name) + 8);
	put32(w, name_len);
	put(w, name, strlen(name));
	put16(w, 1);
	put16(w, 3);
}

static void test_go_tells_size_flags_and_blocks(void **state)
{
	struct wire *w = greeted();
	const uint8_t *p = w->n.out;
	size_t at = 0;

	(void)state;
	put_go(w, 7, "disk", 4);
	feed(w, 5);
	assert_int_equal(reply_at(w, &at, 7), 3);
	assert_int_equal(nbd_get16(p + 20), 0);
	assert_int_equal(nbd_get64(p + 22), 1 << 20);
	/* flags, flush, FUA, trim, zeroes, many connections */
	assert_int_equal(nbd_get16(p + 30), 0x016d);
	p = w->n.out + at;
	assert_int_equal(reply_at(w, &at, 7), 3);
	assert_int_equal(nbd_get16(p + 20), 3);
	assert_int_equal(nbd_get32(p + 22), 512);
	assert_int_equal(nbd_get32(p + 26), 4096);
	assert_int_equal(nbd_get32(p + 30), 32 << 20);
	assert_int_equal(reply_at(w, &at, 7), 3);
	assert_int_equal(reply_at(w, &at, 7), 3);
	assert_int_equal(reply_at(w, &at, 7), 1);
	assert_int_equal(at, w->n.out_len);
	assert_int_equal(w->n.state, NBD_NEGO_OVER);
	free(w);
}

static void test_info_goes_on(void **state)
{
	struct wire *w = greeted();

	(void)state;
	put_go(w, 6, "", 0); /* the default export */
	feed(w, 100);
	assert_true(w->n.out_len > 100);
	assert_int_equal(w->n.state, NBD_NEGO_OPTION);
	free(w);
}

static void test_go_unknown_name(void **state)
{
	struct wire *w = greeted();

	(void)state;
	put_go(w, 7, "dish", 4);
	feed(w, 100);
	assert_int_equal(only_reply(w, 7), 0x80000006);
	assert_int_equal(w->n.state, NBD_NEGO_OPTION);
	free(w);
}

static void test_go_lengths_do_not_fit(void **state)
{
	static const uint32_t lengths[] = {
		3, 5, 6, 100, 0xfffffffa, 0xffffffff
	};
	struct wire *w = greeted();

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		put_go(w, 7, "disk", lengths[i]);
		feed(w, 100);
		assert_int_equal(only_reply(w, 7), 0x80000003);
	}
	for (uint32_t len = 0; len < 6; len++) {
		put_option(w, 7, len);
		put(w, "\0\0\0\0\0\0", len);
		feed(w, 100);
		assert_int_equal(only_reply(w, 7), 0x80000003);
	}
	free(w);
}

static void test_export_name(void **state)
{
	struct wire *w = greeted();

	(void)state;
	put_option(w, 1, 4);
	put(w, "disk", 4);
	feed(w, 100);
	assert_int_equal(w->n.state, NBD_NEGO_OVER);
	assert_int_equal(w->n.out_len, 10);
	assert_int_equal(nbd_get64(w->n.out), 1 << 20);
	free(w);

	w = greeted_with(&disk, 1); /* no NO_ZEROES: 124 of them */
	put_option(w, 1, 0);
	feed(w, 100);
	assert_int_equal(w->n.state, NBD_NEGO_OVER);
	assert_int_equal(w->n.out_len, 134);
	free(w);

	w = greeted();
	put_option(w, 1, 4);
	put(w, "dish", 4);
	feed(w, 100);
	assert_int_equal(w->n.state, NBD_NEGO_FAILED);
	free(w);
}

static void put_meta(struct wire *w, uint32_t option, const char *query,
		     uint32_t claimed)
{
	put_option(w, option, 4 + 4 + 4 + 4 + (uint32_t)strlen(query));
	put32(w, 4);
	put(w, "disk", 4);
	put32(w, 1);
	put32(w, claimed);
	put(w, query, strlen(query));
}

static void test_meta_context(void **state)
{
	struct wire *w = greeted();
	size_t at = 0;

	(void)state;
	put_meta(w, 10, "base:allocation", 15);
	feed(w, 100); /* structured replies come first */
	assert_int_equal(only_reply(w, 10), 0x80000003);
	put_option(w, 8, 0);
	feed(w, 100);
	assert_int_equal(only_reply(w, 8), 1);
	put_meta(w, 10, "base:allocation", 15);
	feed(w, 100);
	assert_int_equal(reply_at(w, &at, 10), 4);
	assert_int_equal(nbd_get32(w->n.out + 20), NBD_CONTEXT_ID);
	assert_memory_equal(w->n.out + 24, "base:allocation", 15);
	assert_int_equal(reply_at(w, &at, 10), 1);
	assert_true(w->n.extents);
	put_meta(w, 10, "qemu:dirty-bitmap:x", 19); /* selects anew */
	feed(w, 100);
	assert_int_equal(only_reply(w, 10), 1);
	assert_false(w->n.extents);
	at = 0;
	put_meta(w, 9, "base:", 5);
	feed(w, 100);
	assert_int_equal(reply_at(w, &at, 9), 4);
	assert_false(w->n.extents);
	put_meta(w, 10, "base:allocation", 16);
	feed(w, 100);
	assert_int_equal(only_reply(w, 10), 0x80000003);
	put_meta(w, 10, "base:allocation", 0xffffffff);
	feed(w, 100);
	assert_int_equal(only_reply(w, 10), 0x80000003);
	free(w);
}

static void test_meta_context_not_offered(void **state)
{
	struct nbd_export thick = disk;
	struct wire *w;

	(void)state;
	thick.has_extents = false;
	w = greeted_with(&thick, 3);
	put_option(w, 8, 0);
	put_meta(w, 10, "base:allocation", 15);
	feed(w, 100);
	assert_int_equal(only_reply(w, 10), 1);
	assert_false(w->n.extents);
	free(w);
}

/* ---- requests ---- */

static enum nbd_error check(const struct nbd_nego *n, uint16_t command,
			    uint16_t flags, uint64_t offset, uint32_t length)
{
	const struct nbd_request r = { flags, command, 7, offset, length };

	return nbd_request_check(n, &r);
}

static void test_request_get(void **state)
{
	static const uint8_t b[NBD_REQUEST_SIZE] = {
		0x25, 0x60, 0x95, 0x13, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6,
		7,    8,    0,	  0,	1, 0, 0, 0, 2, 0, 0, 0, 4, 0
	};
	uint8_t bad[NBD_REQUEST_SIZE];
	struct nbd_request r;

	(void)state;
	assert_true(nbd_request_get(&r, b));
	assert_int_equal(r.flags, NBD_FUA);
	assert_int_equal(r.command, NBD_WRITE_ZEROES);
	assert_int_equal(r.cookie, 0x0102030405060708);
	assert_int_equal(r.offset, 0x10000000200);
	assert_int_equal(r.length, 1024);
	memcpy(bad, b, sizeof(b));
	bad[3] ^= 1;
	assert_false(nbd_request_get(&r, bad));
}

static void test_request_range(void **state)
{
	struct nbd_nego n = { .export = &disk };
	uint32_t whole = 1 << 20;

	(void)state;
	assert_int_equal(check(&n, NBD_READ, 0, 0, whole), NBD_OK);
	assert_int_equal(check(&n, NBD_READ, 0, 1, whole), NBD_EINVAL);
	assert_int_equal(check(&n, NBD_READ, 0, 1, 3), NBD_OK);
	assert_int_equal(check(&n, NBD_READ, 0, UINT64_MAX, 2), NBD_EINVAL);
	assert_int_equal(check(&n, NBD_WRITE, 0, whole, 0), NBD_OK);
	assert_int_equal(check(&n, NBD_WRITE, 0, whole, 512), NBD_ENOSPC);
	assert_int_equal(check(&n, NBD_WRITE, 0, UINT64_MAX - 511, 512),
			 NBD_ENOSPC);
	assert_int_equal(check(&n, NBD_TRIM, 0, 0, 2 * whole), NBD_EINVAL);
}

static void test_request_blocks(void **state)
{
	struct nbd_nego n = { .export = &disk };

	(void)state;
	assert_int_equal(check(&n, NBD_WRITE, 0, 512, 1024), NBD_OK);
	assert_int_equal(check(&n, NBD_WRITE, 0, 512, 1), NBD_EINVAL);
	assert_int_equal(check(&n, NBD_WRITE, 0, 1, 512), NBD_EINVAL);
	assert_int_equal(check(&n, NBD_WRITE_ZEROES, 0, 1, 512), NBD_EINVAL);
	assert_int_equal(check(&n, NBD_TRIM, 0, 512, 100), NBD_EINVAL);
}

static void test_request_payload(void **state)
{
	struct nbd_export large = disk;
	struct nbd_nego n = { .export = &large };

	(void)state;
	large.size = 1ull << 40;
	assert_int_equal(check(&n, NBD_READ, 0, 0, NBD_PAYLOAD_MAX), NBD_OK);
	assert_int_equal(check(&n, NBD_READ, 0, 0, NBD_PAYLOAD_MAX + 1),
			 NBD_EOVERFLOW);
	assert_int_equal(check(&n, NBD_WRITE, 0, 0, NBD_PAYLOAD_MAX + 512),
			 NBD_EOVERFLOW);
	assert_int_equal(check(&n, NBD_TRIM, 0, 0, 0xfffffe00), NBD_OK);
	assert_int_equal(check(&n, NBD_WRITE_ZEROES, 0, 0, 0xfffffe00), NBD_OK);
}

static void test_request_flags_and_commands(void **state)
{
	struct nbd_nego n = { .export = &disk };

	(void)state;
	assert_int_equal(check(&n, NBD_WRITE, NBD_FUA, 0, 512), NBD_OK);
	assert_int_equal(check(&n, NBD_WRITE, NBD_NO_HOLE, 0, 512), NBD_EINVAL);
	assert_int_equal(check(&n, NBD_WRITE_ZEROES, NBD_NO_HOLE | NBD_FUA, 0,
			       512),
			 NBD_OK);
	assert_int_equal(check(&n, NBD_READ, NBD_DF, 0, 512), NBD_EINVAL);
	n.structured = true;
	assert_int_equal(check(&n, NBD_READ, NBD_DF, 0, 512), NBD_OK);
	assert_int_equal(check(&n, NBD_BLOCK_STATUS, 0, 0, 512), NBD_EINVAL);
	n.extents = true;
	assert_int_equal(check(&n, NBD_BLOCK_STATUS, NBD_REQ_ONE, 0, 512),
			 NBD_OK);
	assert_int_equal(check(&n, NBD_BLOCK_STATUS, 0, 0, 0), NBD_EINVAL);
	assert_int_equal(check(&n, NBD_FLUSH, 0, 0, 0), NBD_OK);
	for (unsigned c = 8; c < 65536; c++)
		assert_int_equal(check(&n, (uint16_t)c, 0, 0, 512), NBD_EINVAL);
	assert_int_equal(check(&n, NBD_CACHE, 0, 0, 512), NBD_EINVAL);
}

static void test_request_read_only(void **state)
{
	struct nbd_export ro = disk;
	struct nbd_nego n = { .export = &ro };

	(void)state;
	ro.read_only = true;
	assert_int_equal(check(&n, NBD_READ, 0, 0, 512), NBD_OK);
	assert_int_equal(check(&n, NBD_FLUSH, 0, 0, 0), NBD_OK);
	assert_int_equal(check(&n, NBD_WRITE, 0, 0, 512), NBD_EPERM);
	assert_int_equal(check(&n, NBD_TRIM, 0, 0, 512), NBD_EPERM);
	assert_int_equal(check(&n, NBD_WRITE_ZEROES, 0, 0, 512), NBD_EPERM);
}

/* ---- replies ---- */

static void test_reply_simple(void **state)
{
	struct nbd_nego n = { .export = &disk };
	const struct nbd_request r = { 0, NBD_READ, 0x1122334455667788, 0,
				       512 };
	uint8_t b[NBD_REPLY_MAX];

	(void)state;
	assert_int_equal(nbd_reply_put(&n, &r, NBD_EIO, b), 16);
	assert_memory_equal(b,
			    "\x67\x44\x66\x98\0\0\0\5"
			    "\x11\x22\x33\x44\x55\x66\x77\x88",
			    16);
}

static void test_reply_structured(void **state)
{
	struct nbd_nego n = { .export = &disk, .structured = true };
	struct nbd_request r = { 0, NBD_READ, 9, 0x1000, 512 };
	uint8_t b[NBD_REPLY_MAX];

	(void)state;
	assert_int_equal(nbd_reply_put(&n, &r, NBD_OK, b), 28);
	assert_memory_equal(b,
			    "\x66\x8e\x33\xef\0\1\0\1\0\0\0\0\0\0\0\x9"
			    "\0\0\2\x8\0\0\0\0\0\0\x10\0",
			    28);
	assert_int_equal(nbd_reply_put(&n, &r, NBD_EINVAL, b), 26);
	assert_memory_equal(b + 4, "\0\1\x80\1", 4);
	assert_memory_equal(b + 16, "\0\0\0\6\0\0\0\x16\0\0", 10);
	r.command = NBD_WRITE;
	assert_int_equal(nbd_reply_put(&n, &r, NBD_OK, b), 20);
	assert_memory_equal(b + 4, "\0\1\0\0", 4);
	r.command = NBD_BLOCK_STATUS;
	assert_int_equal(nbd_status_put(&r, 3, b), 24);
	assert_memory_equal(b + 4, "\0\1\0\5", 4);
	assert_memory_equal(b + 16, "\0\0\0\x1c\0\0\0\1", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_greets),
		cmocka_unit_test(test_flags_unknown),
		cmocka_unit_test(test_option_without_magic),
		cmocka_unit_test(test_option_unknown),
		cmocka_unit_test(test_option_too_long_is_passed_over),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_go_tells_size_flags_and_blocks),
		cmocka_unit_test(test_info_goes_on),
		cmocka_unit_test(test_go_unknown_name),
		cmocka_unit_test(test_go_lengths_do_not_fit),
		cmocka_unit_test(test_export_name),
		cmocka_unit_test(test_meta_context),
		cmocka_unit_test(test_meta_context_not_offered),
		cmocka_unit_test(test_request_get),
		cmocka_unit_test(test_request_range),
		cmocka_unit_test(test_request_blocks),
		cmocka_unit_test(test_request_payload),
		cmocka_unit_test(test_request_flags_and_commands),
		cmocka_unit_test(test_request_read_only),
		cmocka_unit_test(test_reply_simple),
		cmocka_unit_test(test_reply_structured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
