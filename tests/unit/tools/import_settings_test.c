/* SPDX-License-Identifier: BSD-2-Clause */
/* import_settings_test.c: the tables of what other targets can set. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/config/fields.h"
#include "tools/import/settings.h"

static void check_table(const struct import_table *t)
{
	char text[400];

	assert_non_null(t->what);
	for (size_t i = 0; i < t->n; i++) {
		const struct import_setting *s = &t->rows[i];

		/* a key twice: the second row would not count */
		assert_ptr_equal(import_setting_of(t, s->key), s);
		assert_true(!s->field == !s->noun);
		if (s->field &&
		    !cfg_field_text(s->noun, s->field, text, sizeof(text)))
			fail_msg("%s: iserd has no %s of %s", s->key, s->field,
				 s->noun);
		if (s->why && strstr(s->why, "iserd has no"))
			fail_msg("%s: this is for the rows of iserd to say",
				 s->key);
	}
}

/* Each row is there once, and the fields of iserd that they name exist. */
static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < LIO_TABLES; i++)
		check_table(&import_lio_tables[i]);
	for (size_t i = 0; i < TGT_TABLES; i++)
		check_table(&import_tgt_tables[i]);
	for (size_t i = 0; i < CTL_TABLES; i++)
		check_table(&import_ctl_tables[i]);
}

static const char *note_of(struct import_model *m, const char *key,
			   const char *value)
{
	static const struct import_setting rows[] = {
		IMPORT_TAKEN("taken"),
		IMPORT_MUTE("mute"),
		IMPORT_USUAL("usual", "1"),
		IMPORT_USUAL("Max_Connections", "1"),
		IMPORT_USUAL("erl", "0",
			     IMPORT_FIELD("daemon", "error-recovery-level")),
		IMPORT_USUAL("explained", NULL, .why = "because"),
	};
	static const struct import_table table = IMPORT_TABLE("a thing", rows);
	struct tree at = { .file = "F", .line = 1 };

	m->last_note = m->notes = NULL;
	import_setting(m, &at, "it", &table, key, value);
	return m->notes ? m->notes->text : NULL;
}

static void test_notes(void **state)
{
	struct import_model m = { 0 };
	const char *note;

	(void)state;
	assert_null(note_of(&m, "taken", "x"));
	assert_null(note_of(&m, "mute", "x"));
	assert_null(note_of(&m, "usual", "1"));
	assert_string_equal(note_of(&m, "usual", "2"),
			    "it: usual 2: not carried over: iserd has no such "
			    "field; nothing to do unless an initiator depends "
			    "on it");
	assert_string_equal(note_of(&m, "usual", NULL),
			    "it: usual: not carried over: iserd has no such "
			    "field; nothing to do unless an initiator depends "
			    "on it");
	/* a field of the same name is found without a word in the row */
	note = note_of(&m, "Max_Connections", "2");
	assert_non_null(strstr(note, "iserd has the field max-connections of "
				     "targets.NAME ("));
	note = note_of(&m, "erl", "2");
	assert_non_null(strstr(note, "field error-recovery-level of daemon"));
	assert_string_equal(note_of(&m, "explained", "x"),
			    "it: explained x: not carried over: because");
	/* the value of what is unknown may be a secret */
	assert_string_equal(note_of(&m, "new", "sesame"),
			    "it: new: not carried over: not a setting of a "
			    "thing that this program knows; see its manual");
	pool_free(&m.pool);
}

/* A hostile file cannot fill the memory with notes. */
static void test_notes_are_bounded(void **state)
{
	struct import_model m = { 0 };
	struct tree at = { .file = "F", .line = 1 };
	unsigned n = 0;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	for (unsigned i = 0; i < IMPORT_NOTES_MAX + 7; i++)
		import_note(&m, &at, "%u", i);
	for (const struct import_note *x = m.notes; x; x = x->next)
		n++;
	assert_int_equal(n, IMPORT_NOTES_MAX);
	import_print_notes(&m, f);
	fclose(f);
	assert_non_null(strstr(text, "F:1: 7 more notes are not printed\n"));
	free(text);
	pool_free(&m.pool);
}

static void test_fields(void **state)
{
	char text[400];

	(void)state;
	assert_false(cfg_field_text(NULL, "no-such-field", text, sizeof(text)));
	assert_false(cfg_field_text("backstore", "max-connections", text,
				    sizeof(text)));
	assert_true(
		cfg_field_text("target", "MAXConnections", text, sizeof(text)));
	assert_int_equal(cfg_field_max("target", "max-connections"), 16);
	assert_int_equal(cfg_field_max("target", "none"), 0);
	assert_string_equal(cfg_store_prefix("rbd"), "rbd:");
	assert_null(cfg_store_prefix("rb"));
	assert_null(cfg_store_prefix(""));
	assert_true(cfg_is_path("disk.img"));
	assert_false(cfg_is_path("cd:/x"));
	assert_string_equal(cfg_store_suffix("/a,key=b"), "key");
	assert_null(cfg_store_suffix("/a,b=c"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_notes_are_bounded),
		cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
