/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of an image of Ceph (backstore/rbd/spec.h). */
#include <string.h>

#include "backstore/rbd/spec.h"
#include "base/bytes.h"
#include "cmocka_all.h"

static struct bsrbd_spec s;

static void expect_text(const char *is, const char *wanted)
{
	if (wanted)
		assert_string_equal(is, wanted);
	else
		assert_null(is);
}

static void test_parts_of_an_image(void **state)
{
	static const struct {
		const char *text, *pool, *space, *image, *snap;
	} rows[] = {
		{ "rbd/img", "rbd", NULL, "img", NULL },
		{ "rbd/lab/img", "rbd", "lab", "img", NULL },
		{ "p.1/img@now", "p.1", NULL, "img", "now" },
		{ "p/n/i@s@t", "p", "n", "i", "s@t" },
		{ "p@1/i", "p@1", NULL, "i", NULL },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		assert_null(bsrbd_spec_parse(&s, rows[i].text));
		expect_text(s.pool, rows[i].pool);
		expect_text(s.space, rows[i].space);
		expect_text(s.image, rows[i].image);
		expect_text(s.snap, rows[i].snap);
		assert_null(s.conf);
		assert_null(s.id);
		assert_null(s.keyring);
	}
}

/* Options come in any order; their values may have commas. */
static void test_options(void **state)
{
	(void)state;
	assert_null(bsrbd_spec_parse(
		&s, "rbd/img@s,keyring=/k,1,conf=/etc/ceph/x.conf,id=gw.1"));
	expect_text(s.image, "img");
	expect_text(s.snap, "s");
	expect_text(s.keyring, "/k,1");
	expect_text(s.conf, "/etc/ceph/x.conf");
	expect_text(s.id, "gw.1");
	/* a comma alone is a part of the name */
	assert_null(bsrbd_spec_parse(&s, "rbd/a,b,id=c"));
	expect_text(s.image, "a,b");
}

static void test_errors(void **state)
{
	static const char *const bad[] = {
		"",
		"img",
		"/img",
		"rbd/",
		"rbd//img",
		"rbd/a/b/c",
		"rbd/img@",
		"rbd/@s",
		"rbd/img,id=",
		"rbd/i,id=,conf=/c",
		"rbd/i,id=a,id=b",
		",id=a",
	};
	char text[PATH_MAX + 2] = "rbd/";

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_non_null(bsrbd_spec_parse(&s, bad[i]));
	memset(text + 4, 'x', sizeof(text) - 5);
	assert_non_null(bsrbd_spec_parse(&s, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_of_an_image),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
