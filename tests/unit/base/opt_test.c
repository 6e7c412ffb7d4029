/* SPDX-License-Identifier: BSD-2-Clause */
/* opt_test.c: command lines by rows, their errors, and the text of --help. */
#include "base/opt.h"

#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"

enum colour {
	RED,
	GREEN,
};

struct values {
	bool loud, quiet;
	unsigned level, count;
	uint64_t seed, size;
	double time;
	const char *name;
	enum colour colour;
	char calls[64];
};

struct more {
	bool json;
};

static const char *const colours[] = { "red", "green", NULL };

static enum opt_end note(void *into, const char *arg, char why[OPT_WHY])
{
	struct values *v = into;

	if (!strcmp(arg, "bad")) {
		strcpy(why, "not liked; give another");
		return OPT_BAD;
	}
	strncat(v->calls, arg, sizeof(v->calls) - strlen(v->calls) - 1);
	return !strcmp(arg, "stop") ? OPT_STOPPED : OPT_OK;
}

static const struct opt_row rows[] = {
	{ .name = "loud", OPT_FLAG(struct values, loud), .help = "loudly" },
	{ .name = "quiet",
	  .letter = 'q',
	  .repeats = true,
	  OPT_FLAG(struct values, quiet),
	  .help = "print no progress" },
	{ .name = "debug",
	  .letter = 'd',
	  OPT_COUNT(struct values, level),
	  .help = "log; twice: log each PDU" },
	{ .name = "count",
	  .letter = 'c',
	  .arg = "N",
	  .initial = "5",
	  OPT_NUMBER(struct values, count, 1, 9),
	  .help = "commands to send, described in a text that takes more "
		  "than one line of output" },
	{ .name = "seed",
	  .arg = "N",
	  OPT_COUNTER(struct values, seed, 0, UINT64_MAX),
	  .help = "of the random places" },
	{ .name = "size",
	  .letter = 's',
	  .arg = "SIZE",
	  .initial = "4k",
	  OPT_SIZE(struct values, size, 512, 64u << 20),
	  .help = "bytes" },
	{ .name = "time",
	  .arg = "SECONDS",
	  .initial = "0.5",
	  OPT_SECONDS(struct values, time, 1, 60000),
	  .help = "for this long" },
	{ .name = "name",
	  .letter = 'n',
	  .arg = "NAME",
	  .initial = "unnamed",
	  OPT_TEXT(struct values, name),
	  .help = "its name" },
	{ .name = "colour",
	  .arg = "COLOUR",
	  OPT_WORD(struct values, colour, colours),
	  .help = "red or green" },
	{ .name = "call",
	  .arg = "TEXT",
	  .repeats = true,
	  OPT_CALL(note),
	  .help = "noted" },
};

static const struct opt_row more_rows[] = {
	{ .name = "json",
	  .letter = 'j',
	  OPT_FLAG(struct more, json),
	  .help = "as JSON" },
	{ .name = "help", .letter = 'h', OPT_STOP, .help = "this text" },
};

struct line {
	struct opt_parser parser;
	struct values values;
	struct more more;
	char *argv[16];
};

static enum opt_end parse(struct line *l, const char *const *words)
{
	int argc = 0;

	*l = (struct line){
		.parser = { .command = "tool",
			    .groups = { { rows, ARRAY_LEN(rows), &l->values },
					{ more_rows, ARRAY_LEN(more_rows),
					  &l->more } } },
	};
	for (; words[argc]; argc++)
		l->argv[argc] = (char *)words[argc];
	return opt_parse(&l->parser, argc, l->argv);
}

#define PARSE(l, ...) parse(l, (const char *const[]){ __VA_ARGS__, NULL })

static void test_opt_parse_defaults(void **state)
{
	struct line l;

	(void)state;
	assert_int_equal(parse(&l, (const char *const[]){ NULL }), OPT_OK);
	assert_int_equal(l.parser.noperands, 0);
	assert_int_equal(l.values.count, 5);
	assert_int_equal(l.values.size, 4096);
	assert_string_equal(l.values.name, "unnamed");
	assert_true(l.values.time > 0.499 && l.values.time < 0.501);
	assert_false(l.values.loud);
	assert_int_equal(l.values.level, 0);
}

static void test_opt_parse_all_kinds(void **state)
{
	struct line l;

	(void)state;
	assert_int_equal(PARSE(&l, "--loud", "--debug", "--count", "7",
			       "--seed=18446744073709551615", "--size", "1.5k",
			       "--name=", "--colour", "green", "--json",
			       "--time=12.25"),
			 OPT_OK);
	assert_true(l.values.time > 12.249 && l.values.time < 12.251);
	assert_true(l.values.loud && l.more.json);
	assert_false(l.values.quiet);
	assert_int_equal(l.values.level, 1);
	assert_int_equal(l.values.count, 7);
	assert_true(l.values.seed == UINT64_MAX);
	assert_int_equal(l.values.size, 1536);
	assert_string_equal(l.values.name, "");
	assert_int_equal(l.values.colour, GREEN);
}

static void test_opt_parse_letters(void **state)
{
	struct line l;

	(void)state;
	assert_int_equal(PARSE(&l, "-qdd", "-c3", "-n", "x", "-js8k"), OPT_OK);
	assert_true(l.values.quiet && l.more.json);
	assert_int_equal(l.values.level, 2);
	assert_int_equal(l.values.count, 3);
	assert_string_equal(l.values.name, "x");
	assert_int_equal(l.values.size, 8192);
}

static void test_opt_parse_operands_keep_their_order(void **state)
{
	struct line l;

	(void)state;
	assert_int_equal(PARSE(&l, "a", "--count", "2", "-", "-q", "b", "--",
			       "--loud", "--"),
			 OPT_OK);
	assert_int_equal(l.parser.noperands, 5);
	assert_string_equal(l.argv[0], "a");
	assert_string_equal(l.argv[1], "-");
	assert_string_equal(l.argv[2], "b");
	assert_string_equal(l.argv[3], "--loud");
	assert_string_equal(l.argv[4], "--");
	assert_false(l.values.loud);
}

/* A beginning of a name is not a name: "--port" is not "--port-id". */
static void test_opt_parse_other_names(void **state)
{
	static const struct opt_hint hints[] = { { "volume", "give --size" },
						 { NULL, NULL } };
	static const struct {
		const char *word, *why;
	} words[] = {
		{ "--lou", "--lou: no such option; did you mean --loud? tool "
			   "--help lists the options" },
		{ "--cou=4",
		  "--cou: no such option; did you mean --count? tool "
		  "--help lists the options" },
		{ "--tmie=4", "--tmie: no such option; did you mean --time? "
			      "tool --help lists the options" },
		{ "--sizes", "--sizes: no such option; did you mean --size? "
			     "tool --help lists the options" },
	};
	struct line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		assert_int_equal(PARSE(&l, words[i].word), OPT_BAD);
		assert_string_equal(l.parser.why, words[i].why);
	}
	l.parser.hints = hints;
	l.argv[0] = (char *)"--volume";
	assert_int_equal(opt_parse(&l.parser, 1, l.argv), OPT_BAD);
	assert_string_equal(l.parser.why,
			    "--volume: no such option; give --size");
}

static void test_opt_parse_errors(void **state)
{
	static const struct {
		const char *words[4], *why;
	} lines[] = {
		{ { "--frobnicate" },
		  "--frobnicate: no such option; tool --help lists the options" },
		{ { "-x" },
		  "-x: no such option; tool --help lists the options" },
		{ { "-qx" },
		  "-x: no such option; tool --help lists the options" },
		{ { "--count" }, "--count: no value; give --count N" },
		{ { "-c" }, "--count: no value; give --count N" },
		{ { "--json=yes" }, "--json: takes no value; leave out =yes" },
		{ { "--json", "-j" }, "--json: given twice; give it once" },
		{ { "-c2", "--count=2" },
		  "--count: given twice; give it once" },
		{ { "--count", "10" },
		  "--count 10: must be a number from 1 to 9" },
		{ { "-c", "0" }, "--count 0: must be a number from 1 to 9" },
		{ { "-c", "" }, "--count : must be a number from 1 to 9" },
		{ { "-c", "3x" }, "--count 3x: must be a number from 1 to 9" },
		{ { "-c", "-3" }, "--count -3: must be a number from 1 to 9" },
		{ { "--seed=18446744073709551616" },
		  "--seed 18446744073709551616: must be a number from 0 to "
		  "18446744073709551615" },
		{ { "-s", "12q" },
		  "--size 12q: not a size; give a number of bytes, or one with "
		  "K, M, G or T, for example 100M" },
		{ { "-s", "511" },
		  "--size 511: must be a size from 512 to "
		  "64M" },
		{ { "-s", "65M" },
		  "--size 65M: must be a size from 512 to "
		  "64M" },
		{ { "--colour=blue" },
		  "--colour blue: must be one of red, green" },
		{ { "--time", "0" },
		  "--time 0: must be seconds from 0.001 to 60" },
		{ { "--time", "60.01" },
		  "--time 60.01: must be seconds from 0.001 to 60" },
		{ { "--time", "1e1" },
		  "--time 1e1: must be seconds from 0.001 to 60" },
		{ { "--call", "bad" }, "--call bad: not liked; give another" },
	};
	struct line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		assert_int_equal(parse(&l, lines[i].words), OPT_BAD);
		assert_string_equal(l.parser.why, lines[i].why);
	}
}

static void test_opt_parse_what_may_be_repeated(void **state)
{
	struct line l;

	(void)state;
	assert_int_equal(PARSE(&l, "-q", "--quiet", "-d", "-d", "--call", "a",
			       "--call=b"),
			 OPT_OK);
	assert_int_equal(l.values.level, 2);
	assert_string_equal(l.values.calls, "ab");
}

static void test_opt_parse_stops(void **state)
{
	struct line l;

	(void)state;
	assert_int_equal(PARSE(&l, "-q", "--help", "--nope"), OPT_STOPPED);
	assert_string_equal(l.parser.stopped->name, "help");
	assert_true(l.values.quiet);
	assert_int_equal(PARSE(&l, "-jhx"), OPT_STOPPED);
	assert_int_equal(PARSE(&l, "--call", "stop", "--nope"), OPT_STOPPED);
	assert_string_equal(l.parser.stopped->name, "call");
	/* the first mistake counts */
	assert_int_equal(PARSE(&l, "--nope", "--help"), OPT_BAD);
}

static void test_opt_parse_long_words_fit(void **state)
{
	char word[2000];
	struct line l;

	(void)state;
	memset(word, 'x', sizeof(word));
	word[0] = word[1] = '-';
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(PARSE(&l, word), OPT_BAD);
	assert_int_equal(PARSE(&l, "--colour", word), OPT_BAD);
	assert_non_null(strstr(l.parser.why, "must be one of red, green"));
	memcpy(word, "--json=", 7);
	assert_int_equal(PARSE(&l, word), OPT_BAD);
}

static void test_opt_help(void **state)
{
	static const char want[] =
		"      --loud         loudly\n"
		"  -q, --quiet        print no progress\n"
		"  -d, --debug        log; twice: log each PDU\n"
		"  -c, --count N      commands to send, described in a text "
		"that takes more than\n"
		"                     one line of output (default: 5)\n"
		"      --seed N       of the random places\n"
		"  -s, --size SIZE    bytes (default: 4k)\n"
		"      --time SECONDS\n"
		"                     for this long (default: 0.5)\n"
		"  -n, --name NAME    its name (default: unnamed)\n"
		"      --colour COLOUR\n"
		"                     red or green\n"
		"      --call TEXT    noted\n"
		"  -j, --json         as JSON\n"
		"  -h, --help         this text\n";
	struct opt_parser p = { .groups = { { rows, ARRAY_LEN(rows), NULL },
					    { more_rows, ARRAY_LEN(more_rows),
					      NULL } } };
	char out[2048];

	(void)state;
	assert_int_equal(opt_help(&p, 21, out, sizeof(out)), strlen(want));
	assert_string_equal(out, want);
	/* what does not fit is cut off, and counted */
	assert_int_equal(opt_help(&p, 21, out, 10), strlen(want));
	assert_int_equal(strlen(out), 9);
	assert_memory_equal(out, want, 9);
}

static void test_opt_size_good(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "4k", 4096 },
		{ "64M", 64u << 20 },
		{ "64MiB", 64u << 20 },
		{ "64Mi", 64u << 20 },
		{ "64MB", 64u << 20 },
		{ "1.5GiB", 3u << 29 },
		{ "0.25k", 256 },
		{ "2T", 2ull << 40 },
		{ "1PB", 1ull << 50 },
		{ "9223372036854775807", INT64_MAX },
	};
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(opt_size(good[i].text, &v));
		assert_true(v == good[i].size);
	}
}

static void test_opt_size_bad(void **state)
{
	static const char *const bad[] = {
		"",
		"M",
		"x",
		"-1",
		"1X",
		"4kk",
		"64Mb",
		"64Mib",
		"64mb",
		"1MM",
		"0x10",
		" 1",
		"1 M",
		"nan",
		"1.5",
		".5k",
		"1.5.5k",
		"1e3",
		"9223372036854775808",
		"1kBx",
		"8192P",
		"8191.9999999999999999999P",
	};
	uint64_t v = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(opt_size(bad[i], &v));
	assert_int_equal(v, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opt_parse_defaults),
		cmocka_unit_test(test_opt_parse_all_kinds),
		cmocka_unit_test(test_opt_parse_letters),
		cmocka_unit_test(test_opt_parse_operands_keep_their_order),
		cmocka_unit_test(test_opt_parse_other_names),
		cmocka_unit_test(test_opt_parse_errors),
		cmocka_unit_test(test_opt_parse_what_may_be_repeated),
		cmocka_unit_test(test_opt_parse_stops),
		cmocka_unit_test(test_opt_parse_long_words_fit),
		cmocka_unit_test(test_opt_help),
		cmocka_unit_test(test_opt_size_good),
		cmocka_unit_test(test_opt_size_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
