/* SPDX-License-Identifier: BSD-2-Clause */
/* log_line_test.c: each form of a log line; names of a peer break neither the
 * line nor the JSON. */
#include "daemon/log/log_line.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "cmocka_all.h"

#define NAME_LEN 223 /* of an iSCSI name */

static struct log_record record(const char *text)
{
	return (struct log_record){
		.when = { .tv_sec = 1767225599, .tv_nsec = 7999999 },
		.level = TRACE_LEVEL_WARN,
		.event = "LOGIN_FAILED",
		.about = { .peer = "[2001:db8::9]:41234" },
		.text = text,
	};
}

static void test_forms(void **state)
{
	struct log_record r = record("refused");
	char out[LOG_LINE_MAX];

	(void)state;
	setenv("TZ", "XXX-05:30", 1);
	r.dropped = 3;
	log_line_write(out, LOG_TEXT, &r);
	assert_string_equal(out, "2026-01-01T05:29:59.007+05:30 warning "
				 "LOGIN_FAILED: refused (3 like it before were "
				 "dropped)\n");
	log_line_write(out, LOG_JOURNALD, &r);
	assert_string_equal(out, "<4>warning LOGIN_FAILED: refused (3 like it "
				 "before were dropped)\n");
	log_line_write(out, LOG_JSON, &r);
	assert_string_equal(out,
			    "{\"time\":\"2025-12-31T23:59:59.007Z\",\"level\":"
			    "\"warning\",\"event\":\"LOGIN_FAILED\",\"peer\":"
			    "\"[2001:db8::9]:41234\",\"dropped\":3,\"text\":"
			    "\"refused\"}\n");
}

static void test_messages_of_the_process(void **state)
{
	struct log_record r = record("out of memory");
	char out[LOG_LINE_MAX];

	(void)state;
	r.event = LOG_PROCESS;
	r.level = TRACE_LEVEL_ERROR;
	log_line_write(out, LOG_TEXT, &r);
	assert_string_equal(out, "iserd: out of memory\n");
	log_line_write(out, LOG_JOURNALD, &r);
	assert_string_equal(out, "<3>iserd: out of memory\n");
}

static void test_clause(void **state)
{
	static const struct {
		const char *text, *clause;
	} rows[] = {
		{ "SCSI Command before login (RFC 7143 §6.3); dropped",
		  "RFC 7143 §6.3" },
		{ "RFC 1 §2 and RFC 7145 §10.1.3.1.", "RFC 7145 §10.1.3.1" },
		{ "RFC 7143 6.3", "" },
		{ "RFC §6.3", "" },
		{ "RFC 7143 §", "" },
		{ "", "" },
	};
	const char *at = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = log_clause(rows[i].text, &at);

		assert_int_equal(n, strlen(rows[i].clause));
		assert_true(!n || !memcmp(at, rows[i].clause, n));
	}
}

static uint64_t seed = 1;

static unsigned next(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

/* Half of the names have the bytes that a line or JSON cares about. */
static void make_name(char name[NAME_LEN + 1])
{
	static const char *const hostile[] = {
		"\"",
		"\\",
		"\n",
		"\r",
		"\x7f",
		"\x1b[2J",
		"\xff",
		"\xc3",
		"\xe2\x80\xae",
		"\xe2\x80\xa8",
		"\xed\xa0\x80",
		"},{",
		"%s%n",
		"\",\"level\":\"error",
		"\xf0\x9f\x92\xbe",
	};
	unsigned len = next(2) ? NAME_LEN : next(NAME_LEN + 1), at = 0;

	while (at < len) {
		const char *p = hostile[next(15)];
		char one[2] = { (char)(1 + next(255)), '\0' };

		if (next(2) || strlen(p) > len - at)
			p = one;
		memcpy(name + at, p, strlen(p));
		at += (unsigned)strlen(p);
	}
	name[at] = '\0';
}

static void check_member(const json_t *j, const char *key, const char *name)
{
	char plain[TEXT_ESCAPED_SIZE(NAME_LEN)];
	const json_t *v = json_object_get(j, key);

	text_escape_str(plain, sizeof(plain), name);
	if (*name)
		assert_string_equal(json_string_value(v), plain);
	else
		assert_null(v);
}

static void check_line(const char *out, size_t len)
{
	assert_int_equal(strlen(out), len);
	assert_ptr_equal(strchr(out, '\n'), out + len - 1);
	assert_true(text_is_plain(out, len - 1));
}

static void test_hostile_names(void **state)
{
	char initiator[NAME_LEN + 1], target[NAME_LEN + 1], text[1024];
	char raw[512], out[LOG_LINE_MAX];

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct log_record r = record(text);
		size_t len;
		json_t *j;

		make_name(initiator);
		make_name(target);
		snprintf(raw, sizeof(raw), "%s: %s", initiator, target);
		text_escape_str(text, sizeof(text), raw);
		r.about.initiator = initiator;
		r.about.target = target;
		len = log_line_write(out, LOG_TEXT, &r);
		check_line(out, len);
		len = log_line_write(out, LOG_JSON, &r);
		check_line(out, len);
		j = json_loadb(out, len, JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(j);
		check_member(j, "initiator", initiator);
		check_member(j, "target", target);
		assert_string_equal(
			json_string_value(json_object_get(j, "level")),
			"warning");
		assert_string_equal(
			json_string_value(json_object_get(j, "text")), text);
		json_decref(j);
	}
}

/* Each byte of the longest text and names is doubled or quintupled by the
 * escapes, and the line is still whole. */
static void test_longest_line(void **state)
{
	char name[NAME_LEN + 1], text[1024] = "", out[LOG_LINE_MAX];
	struct log_record r = record(text);
	json_t *j;

	(void)state;
	memset(name, '\x01', NAME_LEN);
	name[NAME_LEN] = '\0';
	memset(text, '\\', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	r.about = (struct trace_about){ name, name, name };
	r.dropped = 4294967295u;
	j = json_loadb(out, log_line_write(out, LOG_JSON, &r), 0, NULL);
	assert_non_null(j);
	check_member(j, "target", name);
	json_decref(j);
}

/* Values in the text are members of JSON, too. */
static void test_fields(void **state)
{
	static const struct trace_field fields[] = { { "opcode", "2a", 0 },
						     { "lba", NULL, 7 } };
	char out[LOG_LINE_MAX];
	struct log_record r = record("disk: command 2a, LBA 7");
	json_t *j;

	(void)state;
	r.about.backstore = "disk";
	r.about.fields = fields;
	r.about.nfields = 2;
	j = json_loadb(out, log_line_write(out, LOG_JSON, &r), 0, NULL);
	check_member(j, "backstore", "disk");
	check_member(j, "opcode", "2a");
	assert_int_equal(json_integer_value(json_object_get(j, "lba")), 7);
	json_decref(j);
	out[log_line_write(out, LOG_TEXT, &r)] = '\0';
	assert_non_null(strstr(out, ": disk: command 2a, LBA 7\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_messages_of_the_process),
		cmocka_unit_test(test_clause),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_longest_line),
		cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
