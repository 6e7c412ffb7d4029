/* SPDX-License-Identifier: BSD-2-Clause */
/* err_test.c: texts and classes of error codes; names and levels of trace
 * events, and what reaches the hook. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/trace.h"
#include "cmocka_all.h"

static void test_each_code_has_its_text_and_class(void **state)
{
	static const struct {
		int code;
		enum err_class class;
		const char *text;
	} rows[] = {
#define ROW(name, value, class, text) { name, ERR_CLASS_##class, text },
		ERR_TABLE(ROW)
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_string_equal(err_str(rows[i].code), rows[i].text);
		assert_int_equal(err_class_of(rows[i].code), rows[i].class);
	}
	assert_string_equal(err_str(0), "no error");
	assert_int_equal(err_class_of(0), ERR_CLASS_NONE);
	assert_string_equal(err_str(-1), "unknown error");
	assert_int_equal(err_class_of(-1), ERR_CLASS_FATAL);
	assert_int_equal(err_class_of(1), ERR_CLASS_FATAL);
}

static void why_of(char *why, size_t size, const char *what, const char *format,
		   ...)
{
	va_list args;

	va_start(args, format);
	err_why(why, size, what, format, args);
	va_end(args);
}

static void test_why_is_cut_to_its_room(void **state)
{
	static const char whole[] = "disk: no 7";

	(void)state;
	for (size_t size = 1; size < sizeof(whole) + 2; size++) {
		char why[16];

		memset(why, 'x', sizeof(why));
		why_of(why, size, "disk", "no %d", 7);
		assert_int_equal(strlen(why), MIN(size, sizeof(whole)) - 1);
		assert_memory_equal(why, whole, strlen(why));
		assert_int_equal(why[size], 'x');
	}
}

/* ---- trace.h ---- */

static enum trace_event heard;
static char text[1200];

static void hear(struct trace *t, enum trace_event e,
		 const struct trace_about *about, const char *what)
{
	(void)about;
	(void)t;
	heard = e;
	snprintf(text, sizeof(text), "%s", what);
}

static void test_names_and_levels(void **state)
{
	static const char *const levels[] = { "error", "warning", "notice",
					      "info", "debug" };
	static const struct {
		const char *name;
		enum trace_level level;
	} rows[] = {
#define ROW(name, level, what) { #name, TRACE_LEVEL_##level },
		TRACE_EVENTS(ROW)
#undef ROW
	};

	(void)state;
	assert_int_equal(ARRAY_LEN(rows), TRACE_EVENT_COUNT);
	for (unsigned e = 0; e < TRACE_EVENT_COUNT; e++) {
		assert_string_equal(trace_event_name((enum trace_event)e),
				    rows[e].name);
		assert_int_equal(trace_event_level((enum trace_event)e),
				 rows[e].level);
	}
	assert_string_equal(trace_event_name(TRACE_EVENT_COUNT), "?");
	assert_int_equal(trace_event_level(TRACE_EVENT_COUNT),
			 TRACE_LEVEL_ERROR);
	for (unsigned l = 0; l < ARRAY_LEN(levels); l++)
		assert_string_equal(trace_level_name((enum trace_level)l),
				    levels[l]);
	assert_string_equal(trace_level_name((enum trace_level)5), "?");
}

static void test_the_hook_hears_its_level_and_below(void **state)
{
	struct trace t = { .emit = hear };

	(void)state;
	trace_emit(NULL, TRACE_PDU, "without a hook");
	for (unsigned l = 0; l <= TRACE_LEVEL_DEBUG; l++)
		for (unsigned e = 0; e < TRACE_EVENT_COUNT; e++) {
			enum trace_event event = (enum trace_event)e;

			t.level = (enum trace_level)l;
			text[0] = '\0';
			trace_emit(&t, event, "event %u", e);
			if (trace_event_level(event) > l) {
				assert_string_equal(text, "");
				continue;
			}
			assert_int_equal(heard, event);
			assert_non_null(strstr(text, "event "));
		}
}

static void test_the_words_of_a_peer_are_escaped(void **state)
{
	struct trace t = { .level = TRACE_LEVEL_DEBUG, .emit = hear };
	char large[1100];

	(void)state;
	trace_emit(&t, TRACE_LOGIN, "name %s", "a\nb");
	assert_string_equal(text, "name a\\x0ab");
	trace_emit(&t, TRACE_LOGIN, "name %s", "\xc3\xbc");
	assert_string_equal(text, "name \xc3\xbc");
	memset(large, 'y', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	trace_emit(&t, TRACE_LOGIN, "%s", large);
	assert_int_equal(strlen(text), 1023);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_code_has_its_text_and_class),
		cmocka_unit_test(test_why_is_cut_to_its_room),
		cmocka_unit_test(test_names_and_levels),
		cmocka_unit_test(test_the_hook_hears_its_level_and_below),
		cmocka_unit_test(test_the_words_of_a_peer_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
