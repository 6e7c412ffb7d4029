/* SPDX-License-Identifier: BSD-2-Clause */
/* names_test.c: the names of a unit (SPC-4 §7.8.6, §7.8.15): which follows from which,
 * their designators, and that EXTENDED COPY finds a unit by each of them. */
#include "base/hex.h"
#include "cmds.h"
#include "device/unit/names.h"

/* RFC 9562 version 8, as bs_uuid_derive makes it. */
static const uint8_t uuid[16] = { 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc,
				  0x8d, 0xef, 0x81, 0x23, 0x45, 0x67,
				  0x89, 0xab, 0xcd, 0xef };

static void expect_hex(const struct dev_id *id, const char *want)
{
	char text[33];

	hex_put(text, id->bytes, id->len);
	assert_string_equal(text, want);
}

static struct dev_names names_of(const char *serial, const struct dev_id *naa,
				 const struct dev_id *eui)
{
	struct dev_lu_config cfg = { .lun = 0 };
	struct dev_names n;

	snprintf(cfg.serial, sizeof(cfg.serial), "%s", serial);
	cfg.naa = naa ? *naa : cfg.naa;
	cfg.eui = eui ? *eui : cfg.eui;
	dev_names_make(&n, &cfg, uuid);
	return n;
}

static void test_names_of_uuid_spc4_7_8_6_6_4(void **state)
{
	struct dev_names n = names_of("", NULL, NULL);

	(void)state;
	assert_string_equal(n.serial, "123456789abc8def8123456789abcdef");
	expect_hex(&n.naa, "323456789abc8def");
	assert_int_equal(n.eui.len, 0);
}

/* UUIDs of version 7 that were made in one millisecond begin with the same bytes. */
static void test_names_of_uuids_with_a_time(void **state)
{
	struct dev_lu_config cfg = { .lun = 0 };
	uint8_t a[16], b[16];
	struct dev_names na, nb;

	(void)state;
	memcpy(a, uuid, 16);
	a[6] = 0x7d;
	memcpy(b, a, 16);
	b[15] ^= 1;
	dev_names_make(&na, &cfg, a);
	dev_names_make(&nb, &cfg, b);
	assert_int_equal(na.naa.bytes[0] >> 4, 3);
	assert_memory_not_equal(na.naa.bytes, nb.naa.bytes, 8);
}

/* What LIO (Linux 6.1) reports for these serial numbers. */
static void test_naa_of_serial_as_lio(void **state)
{
	static const struct {
		const char *serial, *naa;
	} rows[] = {
		{ "bff3f42a-49d8-4cfc-b64e-2b933a2f8a11",
		  "6001405bff3f42a49d84cfcb64e2b933" },
		{ "BFF3F42A-49D8-4CFC-B64E-2B933A2F8A11",
		  "6001405bff3f42a49d84cfcb64e2b933" },
		{ "b605d2c1", "6001405b605d2c100000000000000000" },
		{ "0123456789abcdef0123456789abcdef0123",
		  "60014050123456789abcdef012345678" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct dev_names n = names_of(rows[i].serial, NULL, NULL);

		assert_string_equal(n.serial, rows[i].serial);
		expect_hex(&n.naa, rows[i].naa);
	}
}

/* By LIO's rule these would have one name, or none of their own: it uses the
 * hexadecimal digits only. */
static void test_naa_of_other_serials(void **state)
{
	static const char *const serials[] = {
		"log1", "tmp1", "XYZ",	"zyx",		 "1",
		"10",	"S123", "T123", "web-000000001", "wel-000000001"
	};
	struct dev_names n[ARRAY_LEN(serials)];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(serials); i++) {
		n[i] = names_of(serials[i], NULL, NULL);
		assert_int_equal(n[i].naa.len, 8);
		assert_int_equal(n[i].naa.bytes[0] >> 4, 3);
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(n[i].naa.bytes, n[k].naa.bytes,
						8);
	}
}

/* A field wins; other names follow from it, and so from page to page. */
static void test_names_of_fields(void **state)
{
	static const struct dev_id naa = {
		16, { 0x60, 0x01, 0x43, 0x80, 0x12, 0x5a, 0x4e, 0x16, 1 }
	};
	static const struct dev_id eui = { 8, { 0x00, 0x25, 0x38, 1, 2, 3 } };
	struct dev_names n = names_of("", &naa, NULL);

	(void)state;
	assert_string_equal(n.serial, "60014380125a4e160100000000000000");
	expect_hex(&n.naa, n.serial);
	n = names_of("S1", &naa, &eui);
	assert_string_equal(n.serial, "S1");
	expect_hex(&n.naa, "60014380125a4e160100000000000000");
	expect_hex(&n.eui, "0025380102030000");
	n = names_of("", NULL, &eui);
	assert_string_equal(n.serial, "0025380102030000");
	expect_hex(&n.naa, "60014050025380102030000000000000");
}

/* ---- designators ---- */

static struct dev_lu *lu(void)
{
	return dev_lu_get(three.server, 0);
}

static void count(void *arg)
{
	++*(unsigned *)arg;
}

static void configure(const struct dev_lu_config *cfg)
{
	unsigned done = 0;

	assert_int_equal(dev_lu_configure(lu(), cfg, count, &done), 0);
	three_settle();
	assert_int_equal(done, 1);
	for (unsigned who = 0; who < INITIATORS; who++)
		expect_attention(who, ASC_INQUIRY_CHANGED);
}

static const struct dev_lu_config full = {
	.serial = "S1",
	.vendor = "ACME",
	.naa = { 16, { 0x6f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 } },
	.eui = { 16, { 0x00, 0x25, 0x38, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 } },
};

static void test_page_83_spc4_7_8_6(void **state)
{
	const uint8_t *p = (const uint8_t *)three.i[A].in + 4;

	(void)state;
	configure(&full);
	assert_int_equal(RUN(A, 255, 0x12, 1, 0x83, 0, 255), SCSI_GOOD);
	assert_memory_equal(p, "\x01\x03\x00\x10", 4); /* §7.8.6.6 */
	assert_memory_equal(p + 4, full.naa.bytes, 16);
	assert_memory_equal(p + 20, "\x01\x02\x00\x10", 4); /* §7.8.6.5 */
	assert_memory_equal(p + 24, full.eui.bytes, 16);
	assert_memory_equal(p + 40, "\x02\x01\x00\x0a", 4); /* §7.8.6.4 */
	assert_memory_equal(p + 44, "ACME    S1", 10);
	assert_int_equal(RUN(A, 255, 0x12, 1, 0x80, 0, 255), SCSI_GOOD);
	assert_memory_equal(p - 4, "\x00\x80\x00\x02S1", 6);
}

static void test_names_of_copies_spc4_6_4_5(void **state)
{
	uint8_t d[32] = { 0 };

	(void)state;
	configure(&full);
	dev_lu_put_name(lu(), d);
	assert_int_equal(d[3], 16);
	assert_true(dev_lu_has_name(lu(), 1, 3, full.naa.bytes, 16));
	assert_true(dev_lu_has_name(lu(), 1, 2, full.eui.bytes, 16));
	assert_false(dev_lu_has_name(lu(), 1, 3, full.naa.bytes, 8));
	assert_false(dev_lu_has_name(lu(), 1, 3, full.eui.bytes, 16));
	assert_true(
		dev_lu_has_name(lu(), 2, 1, (const uint8_t *)"ACME    S1", 10));
}

static int open_one(void **state)
{
	(void)state;
	memset(&three, 0, sizeof(three));
	memset(cmds, 0, sizeof(cmds));
	nended = 0;
	three_start();
	return 0;
}

#define TS(name) cmocka_unit_test_setup_teardown(name, open_one, three_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_uuid_spc4_7_8_6_6_4),
		cmocka_unit_test(test_names_of_uuids_with_a_time),
		cmocka_unit_test(test_naa_of_serial_as_lio),
		cmocka_unit_test(test_naa_of_other_serials),
		cmocka_unit_test(test_names_of_fields),
		TS(test_page_83_spc4_7_8_6),
		TS(test_names_of_copies_spc4_6_4_5),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
