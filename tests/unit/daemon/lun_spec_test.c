/* SPDX-License-Identifier: BSD-2-Clause */
/* lun_spec_test.c: the text of a LUN: its kind and its suffixes. */
#include "daemon/config/lun_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/config/schema.h"

static void assert_text(const char *text, const char *want)
{
	assert_true(!text == !want);
	if (text)
		assert_string_equal(text, want);
}

static void test_suffixes(void **state)
{
	static const struct {
		const char *spec, *store, *pi, *key, *new_key;
		const char *uuid, *serial, *naa, *eui;
	} rows[] = {
		{ "ram:8M", "ram:8M" },
		{ "a,key=k", "a", .key = "k" },
		{ "a,new-key=k", "a", .new_key = "k" },
		{ "a,key=b,new-key=c", "a", .key = "b,new-key=c" },
		{ "a,new-key=b,key=c", "a", .new_key = "b,key=c" },
		{ ",key=k", "", .key = "k" },
		{ "a,keys=k", "a,keys=k" },
		{ "/dev/sdb,pi=p", "/dev/sdb", .pi = "p" },
		{ "a,pi=p,key=k", "a", .pi = "p", .key = "k" },
		{ "a,pi=p,new-key=k", "a", .pi = "p", .new_key = "k" },
		{ "a,pi=p,pi=q", "a", .pi = "p,pi=q" },
		{ "a,key=k,pi=p", "a", .key = "k,pi=p" },
		{ "cd:a,key=k", "cd:a", .key = "k" },
		{ "ram:1M,key=k", "ram:1M", .key = "k" },
		{ "a,uuid=u,serial=s,naa=n,eui=e", "a", .uuid = "u",
		  .serial = "s", .naa = "n", .eui = "e" },
		{ "a,naa=n,pi=p,eui=e,key=k,uuid=u", "a", .pi = "p", .key = "k",
		  .uuid = "u", .naa = "n", .eui = "e" },
		{ "a,key=k,serial=s,pi=p", "a", .key = "k",
		  .serial = "s,pi=p" },
		{ "scsi:/d,uuid=u", "scsi:/d", .uuid = "u" },
		{ "null:1M,naa=n", "null:1M", .naa = "n" },
		{ "cd:,serial=s", "cd:", .serial = "s" },
		{ "rbd:p/i,id=x,naa=n", "rbd:p/i,id=x", .naa = "n" },
	};
	struct lun_spec s;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char *spec = malloc(2 * PATH_MAX);

		assert_non_null(spec);
		assert_true(lun_spec_parse(&s, rows[i].spec));
		assert_string_equal(s.store, rows[i].store);
		assert_text(s.pi, rows[i].pi);
		assert_text(s.key, rows[i].key);
		assert_text(s.new_key, rows[i].new_key);
		assert_text(s.uuid, rows[i].uuid);
		assert_text(s.serial, rows[i].serial);
		assert_text(s.naa, rows[i].naa);
		assert_text(s.eui, rows[i].eui);
		memset(spec, 'a', PATH_MAX);
		snprintf(spec + PATH_MAX, PATH_MAX, "%s", rows[i].spec);
		assert_false(lun_spec_parse(&s, spec));
		free(spec);
	}
}

static void test_suffixes_refused(void **state)
{
	static const char *const specs[] = { "a,key=",
					     "a,new-key=",
					     "a,pi=",
					     "a,pi=,key=k",
					     "a,pi=p,key=",
					     "null:1M,key=k",
					     "ram:1M,pi=p",
					     "null:1M,pi=p",
					     "cd:a,pi=p",
					     "scsi:/d,key=k",
					     "scsi:/d,pi=p",
					     "null:1M,new-key=k",
					     "cd:,pi=p",
					     "ram:1M,pi=p,key=k",
					     "a,naa=",
					     "a,naa=n,naa=m",
					     "a,uuid=u,key=k,uuid=v",
					     "scsi:/d,naa=n",
					     "scsi:/d,eui=e",
					     "scsi:/d,serial=s" };
	struct lun_spec s;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(specs); i++)
		assert_false(lun_spec_parse(&s, specs[i]));
}

/* A text that does not fit is refused, also if only a suffix is too long. */
static void test_too_long(void **state)
{
	struct lun_spec s;
	char text[sizeof(s.text) + 1];

	(void)state;
	memset(text, 'k', sizeof(text));
	memcpy(text, "a,key=", 6);
	text[sizeof(s.text) - 1] = '\0';
	assert_true(lun_spec_parse(&s, text));
	assert_string_equal(s.key, text + 6);
	text[sizeof(s.text) - 1] = 'k';
	text[sizeof(s.text)] = '\0';
	assert_false(lun_spec_parse(&s, text));
}

static void test_kinds(void **state)
{
	static const struct {
		const char *spec, *operand;
		enum lun_kind kind;
		bool is_empty;
	} rows[] = {
		{ "disk.img", "disk.img", LUN_FILE, false },
		{ "./ram:1M", "./ram:1M", LUN_FILE, false },
		{ "ram", "ram", LUN_FILE, false },
		{ "cd:boot.iso", "boot.iso", LUN_CD, false },
		{ "cd:", "", LUN_CD, true },
		{ "cd:,key=k", "", LUN_CD, false },
		{ "scsi:/dev/sg1", "/dev/sg1", LUN_SCSI, false },
		{ "ram:1G,key=k", "1G", LUN_RAM, false },
		{ "null:1T", "1T", LUN_NULL, false },
	};
	struct lun_spec s;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(lun_spec_parse(&s, rows[i].spec));
		assert_int_equal(s.kind, rows[i].kind);
		assert_string_equal(s.operand, rows[i].operand);
		assert_int_equal(lun_spec_is_empty_drive(&s), rows[i].is_empty);
	}
}

static void test_rows_are_complete(void **state)
{
	const struct cfg_suffix *rows;
	size_t n;

	(void)state;
	for (unsigned i = 0; i < LUN_KINDS; i++) {
		assert_true(*cfg_kinds()[i].arg && *cfg_kinds()[i].help);
		assert_true(!*cfg_kinds()[i].prefix == (i == LUN_FILE));
	}
	rows = cfg_suffixes(&n);
	for (size_t i = 0; i < n; i++) {
		assert_true(rows[i].row.opt.arg && rows[i].row.opt.help);
		assert_int_equal(rows[i].row.scope, CFG_LUN);
		assert_int_not_equal(rows[i].kinds, 0);
		assert_non_null(rows[i].refusal);
		assert_true(i == 0 || rows[i].place >= rows[i - 1].place);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_suffixes_refused),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_rows_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
