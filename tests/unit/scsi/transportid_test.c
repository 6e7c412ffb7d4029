/* SPDX-License-Identifier: BSD-2-Clause */
/* transportid_test.c: TransportIDs of iSCSI ports, SPC-4 §7.6.4.6. */
#include "scsi/transportid.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"

/* "iqn.x,i,0x0123456789ab", 22 bytes and a NUL: padded to 24 */
static const uint8_t one[] = {
	0x45, 0x00, 0x00, 0x18, 'i', 'q', 'n', '.', 'x', ',',
	'i',  ',',  '0',  'x',	'0', '1', '2', '3', '4', '5',
	'6',  '7',  '8',  '9',	'a', 'b', 0,   0,
};

static char name[SCSI_PORT_NAME_MAX + 1];
static size_t used;

static void test_put_and_get(void **state)
{
	uint8_t p[SCSI_TRANSPORTID_MAX];

	(void)state;
	assert_int_equal(scsi_transportid_put("iqn.x,i,0x0123456789ab", p),
			 sizeof(one));
	assert_memory_equal(p, one, sizeof(one));
	assert_int_equal(scsi_transportid_get(one, sizeof(one), name, &used),
			 0);
	assert_string_equal(name, "iqn.x,i,0x0123456789ab");
	assert_int_equal(used, sizeof(one));
}

static void test_get_truncated_at_every_length(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(one); n++)
		assert_int_equal(scsi_transportid_get(one, n, name, &used),
				 ERR_TRUNCATED);
}

static int get_text(const char *text)
{
	uint8_t p[1024];

	memset(p, 0, sizeof(p));
	p[0] = 0x45;
	put_be16(p + 2, 512);
	memcpy(p + 4, text, strlen(text));
	return scsi_transportid_get(p, sizeof(p), name, &used);
}

static void test_get_isid_in_other_spellings(void **state)
{
	(void)state;
	assert_int_equal(get_text("iqn.x,i,0xABCDEF"), 0);
	assert_string_equal(name, "iqn.x,i,0x000000abcdef");
	assert_int_equal(get_text("iqn.x,i,0x0"), 0);
	assert_string_equal(name, "iqn.x,i,0x000000000000");
}

static void test_get_malformed(void **state)
{
	uint8_t bad[sizeof(one)];
	char text[400];

	(void)state;
	assert_int_equal(get_text(""), ERR_FORMAT);
	assert_int_equal(get_text("iqn.x"), ERR_FORMAT);
	assert_int_equal(get_text("iqn.x,i,0x"), ERR_FORMAT);
	assert_int_equal(get_text(",i,0x1"), ERR_FORMAT);
	assert_int_equal(get_text("iqn.x,i,0x1g"), ERR_FORMAT);
	assert_int_equal(get_text("iqn.x,I,0x1,i,0x1"), ERR_FORMAT);
	assert_int_equal(get_text("iqn.x,y,i,0x1"), ERR_FORMAT);
	assert_int_equal(get_text("iqn.x,i,0x1234567890abc"), ERR_FORMAT);
	memset(text, 'a', sizeof(text));
	strcpy(text + 224, ",i,0x1");
	assert_int_equal(get_text(text), ERR_FORMAT);
	strcpy(text + 223, ",i,0x1");
	assert_int_equal(get_text(text), 0);
	assert_int_equal(strlen(name), SCSI_PORT_NAME_MAX);
	memset(text, 'a', sizeof(text));
	strcpy(text + 380, ",i,0x1");
	assert_int_equal(get_text(text), ERR_FORMAT);
	/* another protocol, a device without a port, a length that is not a
	 * multiple of 4, no final NUL, a reserved byte */
	for (unsigned i = 0; i < 5; i++) {
		static const struct {
			uint8_t at, value;
			int err;
		} change[] = {
			{ 0, 0x44, ERR_UNSUPPORTED },
			{ 0, 0x05, ERR_UNSUPPORTED },
			{ 3, 0x17, ERR_FORMAT },
			{ 3, 0x14, ERR_FORMAT },
			{ 1, 0x01, ERR_FORMAT },
		};

		memcpy(bad, one, sizeof(one));
		bad[change[i].at] = change[i].value;
		assert_int_equal(scsi_transportid_get(bad, sizeof(bad), name,
						      &used),
				 change[i].err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_and_get),
		cmocka_unit_test(test_get_truncated_at_every_length),
		cmocka_unit_test(test_get_isid_in_other_spellings),
		cmocka_unit_test(test_get_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
