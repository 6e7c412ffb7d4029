/* SPDX-License-Identifier: BSD-2-Clause */
/* url_test.c: valid and invalid URLs. */
#include <errno.h>
#include <iser/iser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "lib/internal.h"

static struct iser_url u;
static char why[200];

static int parse(const char *text, bool discovery)
{
	return iser_url_parse(&u, text, discovery, why, sizeof(why));
}

static void test_url_whole(void **state)
{
	(void)state;
	assert_int_equal(
		parse("iscsi://joe%secret@[fe80::1]:3261/iqn.2026-01."
		      "a:t/7?header_digest=crc32c&data_digest=none&"
		      "timeout=9&depth=64&reconnect=7&retry=8&priority=3&"
		      "connections=4&error_recovery_level=2&initiator=iqn.b&"
		      "max_outstanding_r2t=65535&data_pdu_in_order=no&"
		      "data_sequence_in_order=yes",
		      false),
		0);
	assert_string_equal(u.user, "joe");
	assert_string_equal(u.password, "secret");
	assert_string_equal(u.host, "fe80::1");
	assert_int_equal(u.port, 3261);
	assert_string_equal(u.target, "iqn.2026-01.a:t");
	assert_int_equal(u.lun, 7);
	assert_string_equal(u.header_digest, "crc32c");
	assert_string_equal(u.data_digest, "none");
	assert_int_equal(u.timeout, 9);
	assert_int_equal(u.depth, 64);
	assert_int_equal(u.reconnect, 7);
	assert_int_equal(u.retry, 8);
	assert_int_equal(u.priority, 3);
	assert_int_equal(u.connections, 4);
	assert_int_equal(u.error_recovery_level, 2);
	assert_int_equal(u.max_outstanding_r2t, 65535);
	assert_true(u.data_pdu_in_any_order);
	assert_false(u.data_sequence_in_any_order);
	assert_string_equal(u.initiator, "iqn.b");
}

/* A target reports no zone, and a link-local address is of no use without one. */
static void test_reported_address_gets_zone_rfc4007_11_2(void **state)
{
	static const struct {
		const char *reported, *host, *address;
	} rows[] = {
		{ "[fe80::1]:3260,1", "fe80::9%eth0", "[fe80::1%eth0]:3260,1" },
		{ "[FEBF::1],1", "fe80::9%2", "[FEBF::1%2],1" },
		{ "[fe80::1%eth1]:1,1", "fe80::9%eth0", "[fe80::1%eth1]:1,1" },
		{ "[fe80::1]:3260,1", "2001:db8::9", "[fe80::1]:3260,1" },
		{ "[fec0::1]:3260,1", "fe80::9%eth0", "[fec0::1]:3260,1" },
		{ "[fe", "fe80::9%eth0", "[fe" },
		{ "10.0.0.1:3260,1", "fe80::9%eth0", "10.0.0.1:3260,1" },
		{ "", "fe80::9%eth0", "" },
	};
	char out[24];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(lib_put_zone(out, sizeof(out), rows[i].reported,
					 rows[i].host));
		assert_string_equal(out, rows[i].address);
	}
	assert_false(lib_put_zone(out, 21, rows[0].reported, rows[0].host));
}

/* RFC 7143 §13.10 to §13.14, and the CRC of RFC 5044 §4.4 */
static void test_url_data_keys(void **state)
{
	(void)state;
	assert_int_equal(
		parse("iscsi://h/t/0?initial_r2t=yes&immediate_data=no&"
		      "first_burst_length=512&max_burst_length=16777215&"
		      "max_recv_data_segment_length=65536&mpa_crc=no&"
		      "iser_hello=yes",
		      false),
		0);
	assert_int_equal(u.initial_r2t, ISER_YES);
	assert_int_equal(u.immediate_data, ISER_NO);
	assert_int_equal(u.first_burst_length, 512);
	assert_int_equal(u.max_burst_length, 16777215);
	assert_int_equal(u.max_recv_data_segment_length, 65536);
	assert_true(u.no_mpa_crc);
	assert_true(u.iser_hello);
	assert_int_equal(
		parse("iscsi://h/t/0?mpa_crc=yes&iser_hello=no", false), 0);
	assert_false(u.no_mpa_crc);
	assert_false(u.iser_hello);
	assert_int_equal(u.initial_r2t, ISER_DEFAULT);
	assert_int_equal(u.max_burst_length, 0);
}

static void test_url_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse("iscsi://h/t/0", false), 0);
	assert_int_equal(u.port, 3260);
	assert_int_equal(u.timeout, 0);
	assert_int_equal(u.connections, 1);
	assert_string_equal(u.user, "");
	assert_int_equal(parse("h", true), 0);
	assert_int_equal(u.lun, -1);
	assert_int_equal(parse("iscsi://h:1/t", true), 0);
	assert_string_equal(u.target, "t");
}

static void test_url_reasons_say_what_helps(void **state)
{
	static const struct {
		const char *url, *why;
	} rows[] = {
		{ "iscsi://h/iqn.x:y/abc",
		  "the LUN must be a number up to 16383: 'abc'" },
		{ "iscsi://h:x/iqn.x:y/0",
		  "the port must be a number up to 65535: 'x'" },
		{ "iscsi://h/", "the URL names no target; a URL has the form: "
				"'iscsi://HOST[:PORT]/IQN/LUN'" },
		{ "iscsi://h/iqn.x:y/0?depth=many",
		  "depth, 0 to 4096: 'many'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(parse(rows[i].url, false), ISER_E_INVALID);
		assert_string_equal(why, rows[i].why);
	}
}

/* Whatever is wrong with the URL, and wherever its characters split the password. */
static void test_url_reasons_have_no_password(void **state)
{
	static const char *const bad[] = {
		"http://alice%secret-word@h/t/0",
		"alice%secret-word@h/t/0",
		" iscsi://alice%secret-word@h/t/0",
		"iscsi://alice%secret-word@/t/0",
		"iscsi://alice%secret-word@h:x/t/0",
		"iscsi://alice%secret-word@h/t/x",
		"iscsi://alice%x?secret-word@h/t/0",
		"iscsi://alice%x/secret-word@h/t/0",
		"iscsi://alice%x@secret-word@h/t/0",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!parse(bad[i], false))
			continue;
		if (strstr(why, "secret") || !*why)
			fail_msg("%s: %s", bad[i], why);
	}
	assert_int_not_equal(parse(bad[0], false), 0);
	assert_non_null(strstr(why, "'http://alice%***@h/t/0'"));
}

static void test_url_bad_ones_say_why(void **state)
{
	static const char *const bad[] = {
		"",
		"http://h/t/0",
		"iscsi://",
		"iscsi://h",
		"iscsi://h/t",
		"iscsi://h/t/",
		"iscsi://h/t/x",
		"iscsi://h/t/-1",
		"iscsi://h/t/16384",
		"iscsi://h:/t/0",
		"iscsi://h:65536/t/0",
		"iscsi://h:3260x/t/0",
		"iscsi://[::1/t/0",
		"iscsi://[::1]x/t/0",
		"iscsi://@h/t/0",
		"iscsi://u%@h/t/0",
		"iscsi://h/t/0?",
		"iscsi://h/t/0?a",
		"iscsi://h/t/0?colour=red",
		"iscsi://h/t/0?header_digest=md5",
		"iscsi://h/t/0?depth=5000",
		"iscsi://h/t/0?reconnect=1001",
		"iscsi://h/t/0?priority=16",
		"iscsi://h/t/0?connections=0",
		"iscsi://h/t/0?connections=17",
		"iscsi://h/t/0?error_recovery_level=3",
		"iscsi://h/t/0?initial_r2t=maybe",
		"iscsi://h/t/0?immediate_data=",
		"iscsi://h/t/0?mpa_crc=1",
		"iscsi://h/t/0?iser_hello=Yes",
		"iscsi://h/t/0?first_burst_length=511",
		"iscsi://h/t/0?max_burst_length=16777216",
		"iscsi://h/t/0?max_recv_data_segment_length=64k",
		"iscsi://h/t/0?max_outstanding_r2t=0",
		"iscsi://h/t/0?max_outstanding_r2t=65536",
		"iscsi://h/t/0?data_pdu_in_order=maybe",
		"iscsi://h/t/0?data_sequence_in_order=",
		"iscsi://h/t/0?reconnect=-1",
		"iscsi://h/t/0?retry=86401",
		"iscsi://h/t/0?target_user=t&target_password=q",
		"iscsi://u%q@h/t/0?target_user=t&target_password=q",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int err = parse(bad[i], false);

		/* an empty query has no effect */
		if (!strcmp(bad[i], "iscsi://h/t/0?")) {
			assert_int_equal(err, 0);
			continue;
		}
		if (err != ISER_E_INVALID)
			print_error("%s\n", bad[i]);
		assert_int_equal(err, ISER_E_INVALID);
		assert_true(strlen(why) > 3);
	}
}

static void test_url_environment_as_libiscsi(void **state)
{
	(void)state;
	setenv("LIBISCSI_CHAP_USERNAME", "env", 1);
	setenv("LIBISCSI_CHAP_PASSWORD", "pw", 1);
	assert_int_equal(parse("iscsi://h/t/0", false), 0);
	assert_string_equal(u.user, "env");
	assert_string_equal(u.password, "pw");
	assert_int_equal(parse("iscsi://me%mine@h/t/0", false), 0);
	assert_string_equal(u.user, "me");
	assert_string_equal(u.password, "mine");
	unsetenv("LIBISCSI_CHAP_USERNAME");
	unsetenv("LIBISCSI_CHAP_PASSWORD");
}

/* A text that does not fit is not cut: that would be another name or secret. */
static void test_url_environment_that_does_not_fit(void **state)
{
	static const struct {
		const char *name;
		unsigned most;
	} rows[] = {
		{ "LIBISCSI_CHAP_USERNAME", 223 },
		{ "LIBISCSI_CHAP_PASSWORD", 127 },
		{ "LIBISCSI_CHAP_TARGET_USERNAME", 223 },
		{ "LIBISCSI_CHAP_TARGET_PASSWORD", 127 },
	};
	char text[300];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setenv("LIBISCSI_CHAP_USERNAME", "u", 1);
		setenv("LIBISCSI_CHAP_PASSWORD", "p", 1);
		for (unsigned n = rows[i].most; n <= rows[i].most + 1; n++) {
			memset(text, 'x', n);
			text[n] = '\0';
			setenv(rows[i].name, text, 1);
			assert_int_equal(parse("iscsi://h/t/0", false),
					 n > rows[i].most ? ISER_E_INVALID : 0);
		}
		assert_non_null(strstr(why, rows[i].name));
		assert_non_null(strstr(why, "long"));
		unsetenv(rows[i].name);
	}
	unsetenv("LIBISCSI_CHAP_USERNAME");
	unsetenv("LIBISCSI_CHAP_PASSWORD");
}

/* Writes n bytes to the file, and reads a URL that names it as the secret. */
static int parse_with_file(const char *path, const char *text, size_t n,
			   mode_t mode)
{
	char url[100];
	FILE *file;

	unlink(path);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, n, file), n);
	assert_int_equal(fchmod(fileno(file), mode), 0);
	assert_int_equal(fclose(file), 0);
	snprintf(url, sizeof(url), "iscsi://me@h/t/0?password_file=%s", path);
	return parse(url, false);
}

static void test_password_file(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		mode_t mode;
		const char *why; /* NULL: the secret is "secret" */
	} rows[] = {
		{ "secret", 6, 0600, NULL },
		{ "secret\n", 7, 0400, NULL },
		{ "secret\r\n", 8, 0600, NULL },
		{ "secret\n", 7, 0640, "use chmod 600" },
		{ "secret\n", 7, 0604, "use chmod 600" },
		{ "\n", 1, 0600, "is empty" },
		{ "one\ntwo\n", 8, 0600, "more than one line" },
		{ "\xef\xbb\xbfsecret\n", 10, 0600, "byte order mark" },
		{ "\xff\xfes\0e\0", 6, 0600, "UTF-16" },
		{ "secret\0", 7, 0600, "zero byte" },
	};
	char path[] = "/tmp/url_test.XXXXXX", longest[128];

	(void)state;
	assert_true(close(mkstemp(path)) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse_with_file(path, rows[i].text, rows[i].n,
						 rows[i].mode),
				 rows[i].why ? ISER_E_INVALID : 0);
		if (rows[i].why)
			assert_non_null(strstr(why, rows[i].why));
		else
			assert_string_equal(u.password, "secret");
	}
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(parse_with_file(path, longest, 127, 0600), 0);
	assert_int_equal(parse_with_file(path, longest, 128, 0600),
			 ISER_E_INVALID);
	unlink(path);
	assert_int_equal(parse("iscsi://me@h/t/0?password_file=/none", false),
			 ISER_E_INVALID);
	assert_non_null(strstr(why, "password file /none: No such file"));
	assert_int_equal(parse("iscsi://me%p@h/t/0?password_file=/none", false),
			 ISER_E_INVALID);
	assert_int_equal(parse("iscsi://h/t/0?target_password_file=/", false),
			 ISER_E_INVALID);
	assert_non_null(strstr(why, "is not a regular file"));
}

/* RFC 7143 §4.2.7.1 */
static void test_initiator_name_of_224_bytes(void **state)
{
	struct iser_context *ctx;
	char name[225] = "iqn.2026-01.org.a:";

	(void)state;
	memset(name + strlen(name), 'a', 224 - strlen(name));
	assert_null(iser_context_new(name));
	assert_int_equal(errno, EINVAL);
	name[223] = '\0';
	ctx = iser_context_new(name);
	assert_non_null(ctx);
	iser_context_free(ctx);
}

/* RFC 7143 §13.8 */
static void test_portal_group_tag(void **state)
{
	static const char *const good[] = { "h:3261,1",
					    "[fe80::1%e]:3261,65535",
					    "iscsi://h:3261,7" };
	static const char *const bad[] = { "h:3261,", "h:3261,x", "h:3261,1,",
					   ",1" };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(parse(good[i], true), 0);
		assert_int_equal(u.port, 3261);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], true), ISER_E_INVALID);
	assert_int_equal(parse("iscsi://h:3261,1/t/0", false), ISER_E_INVALID);
}

/* Separators end a URL only before another one, or at the end. */
static void test_several_urls(void **state)
{
	static const struct {
		const char *text;
		int n;
		const char *password, *auth;
	} rows[] = {
		{ "iscsi://u%a b, c@h/t/0?auth=sha256,md5", 1, "a b, c",
		  "sha256,md5" },
		{ " iscsi://u%p q@h/t/0 iscsi://h/t/0\n", 2, "p q", "" },
		{ "iscsi://u%p@h/t/0?auth=sha1,iser://h/t/0", 2, "p", "sha1" },
		{ "iscsi://u%p@h/t/0,iscsi://h/t/0 \tiser://h/t/1 ", 3, "p",
		  "" },
	};
	struct iser_url urls[4];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(iser_paths_parse(urls, 4, rows[i].text, why,
						  sizeof(why)),
				 rows[i].n);
		assert_string_equal(urls[0].password, rows[i].password);
		assert_string_equal(urls[0].auth, rows[i].auth);
	}
	assert_int_equal(iser_paths_parse(urls, 1, rows[1].text, why,
					  sizeof(why)),
			 ISER_E_INVALID);
}

static void test_url_of_libiscsi(void **state)
{
	static const struct {
		const char *url, *word;
	} refused[] = {
		{ "iscsi://h/t/0?auth=sha-256", "best one first" },
		{ "iscsi://h/t/0?auth=", "best one first" },
		{ "iscsi://h/t/0?auth=md5,md5", "best one first" },
		{ "iscsi://h/t/0?auth=md5,", "best one first" },
		{ "iscsi://h/t/0?auth", "no '='" },
		{ "iscsi://h/t/0?force_usn=1", "not supported" },
		{ "iscsi://h/t/0?LIBISCSI_RDMA_ACK_TIMEOUT=3",
		  "not supported" },
		{ "iscsi://h/iqn%3/0", "hexadecimal" },
		{ "iscsi://h/iqn%zz/0", "hexadecimal" },
		{ "iscsi://h/iqn%00x/0", "hexadecimal" },
	};

	(void)state;
	assert_int_equal(parse("iscsi://joe:secret@h/iqn.a%3Ab%2fc/2?iser&"
			       "auth=md5&header_digest=none",
			       false),
			 0);
	assert_string_equal(u.user, "joe");
	assert_string_equal(u.password, "secret");
	assert_string_equal(u.target, "iqn.a:b/c");
	assert_string_equal(u.transport, "iser");
	assert_int_equal(parse("iscsi://h/t/0?iser=1", false), 0);
	assert_string_equal(u.transport, "iser");
	/* the first % ends the user name; a colon of an iSCSI name does not */
	assert_int_equal(parse("iscsi://a:b%c:d@h/t/0", false), 0);
	assert_string_equal(u.user, "a:b");
	assert_string_equal(u.password, "c:d");
	assert_int_equal(parse("iscsi://iqn.a:b@h/t/0", false), 0);
	assert_string_equal(u.user, "iqn.a:b");
	assert_string_equal(u.password, "");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(parse(refused[i].url, false), ISER_E_INVALID);
		assert_non_null(strstr(why, refused[i].word));
	}
}

static int parse_paths(const char *text)
{
	static struct iser_url urls[3];
	int n = iser_paths_parse(urls, 3, text, why, sizeof(why));

	u = urls[0];
	return n;
}

/* White space and commas separate URLs, and occur in URLs. */
static void test_urls_of_several_paths(void **state)
{
	(void)state;
	assert_int_equal(parse_paths(" iscsi://g/t/0 "), 1);
	assert_int_equal(parse_paths("iscsi://g/t/0 iser://h/t/0"), 2);
	assert_int_equal(parse_paths("iscsi://g/t/0,iscsi://h/t/0 ,\n"
				     "iscsi://i/t/0"),
			 3);
	assert_int_equal(parse_paths("iscsi://joe%a b, c@g/t/0 iscsi://h/t/0"),
			 2);
	assert_string_equal(u.password, "a b, c");
	assert_int_equal(parse_paths("iscsi://g/t/0 h"), ISER_E_INVALID);
	assert_int_equal(parse_paths(" \t"), ISER_E_INVALID);
	assert_int_equal(parse_paths("iscsi://g/t/0 iscsi://g/t/1 "
				     "iscsi://g/t/2 iscsi://g/t/3"),
			 ISER_E_INVALID);
	assert_string_equal(why, "more than 3 URLs");
}

/* A port at which no process listens: an error code and a reason. */
static void test_connect_refused(void **state)
{
	struct iser_context *ctx = iser_context_new(NULL);
	int err = 0;

	(void)state;
	assert_int_equal(parse("iscsi://127.0.0.1:1/t/0", false), 0);
	assert_null(iser_connect(ctx, &u, &err));
	assert_int_equal(err, ISER_E_CONNECT);
	assert_true(strlen(iser_message(ctx)) > 10);
	iser_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_url_whole),
		cmocka_unit_test(test_reported_address_gets_zone_rfc4007_11_2),
		cmocka_unit_test(test_url_data_keys),
		cmocka_unit_test(test_url_defaults),
		cmocka_unit_test(test_url_reasons_say_what_helps),
		cmocka_unit_test(test_url_bad_ones_say_why),
		cmocka_unit_test(test_url_reasons_have_no_password),
		cmocka_unit_test(test_url_environment_as_libiscsi),
		cmocka_unit_test(test_url_environment_that_does_not_fit),
		cmocka_unit_test(test_password_file),
		cmocka_unit_test(test_initiator_name_of_224_bytes),
		cmocka_unit_test(test_portal_group_tag),
		cmocka_unit_test(test_several_urls),
		cmocka_unit_test(test_url_of_libiscsi),
		cmocka_unit_test(test_urls_of_several_paths),
		cmocka_unit_test(test_connect_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
