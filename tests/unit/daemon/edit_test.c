/* SPDX-License-Identifier: BSD-2-Clause */
/* edit_test.c: the verbs of iserctl on a configuration: what each changes, what it
 * refuses with which words, and lists. */
#include "daemon/config/edit.h"
#include "daemon/config/luns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/config/nouns.h"
#include "daemon/config/yaml.h"
#include "daemon/rpc/api.h"

#define A     "iqn.2026-01.com.example:a"
#define B     "iqn.2026-01.com.example:b"
#define A_TOO "IQN.2026-01.com.Example:A" /* RFC 3722: the same name as A */

static struct cfg_errors errors;

static const char base[] =
	"version: 1\n"
	"backstores:\n"
	"  one: {store: ram:1M}\n"
	"  two: {store: ram:2M, vendor: \"null\"}\n"
	"auth-groups:\n"
	"  g: {initiators: [eui.1*, eui.*], accounts: [{user: u, secret-file: /s}]}\n"
	"portal-groups:\n"
	"  front: {listen: 127.0.0.1}\n"
	"  back: {tag: 2, listen: 127.0.0.2, transport: [tcp, iser],\n"
	"         discovery-auth: g}\n"
	"initiator-groups:\n"
	"  cl: [eui.1*]\n"
	"targets:\n"
	"  " A ":\n"
	"    auth-group: any\n"
	"    portal-groups: [front, back]\n"
	"    luns: {0: one}\n"
	"    maps: [{initiators: cl, luns: {3: one}}]\n";

static struct cfg_model *read_text(const char *text)
{
	struct cfg_model *m;

	memset(&errors, 0, sizeof(errors));
	m = cfg_model_read(text, strlen(text), &errors);
	if (!m)
		print_error("%s\n", errors.all[0].text);
	assert_non_null(m);
	return m;
}

struct row {
	enum cfg_verb verb;
	const char *noun, *name;
	const char *fields; /* "KEY VALUE" with '|' between fields; or NULL */
	const char *want;   /* what cfg_diff says, or the error */
};

/* Makes the mapping of the fields of a row. */
static json_t *fields_of(const char *fields)
{
	char *copy = strdup(fields), *rest = copy;
	json_t *out = json_object();

	for (char *f; (f = strsep(&rest, "|"));) {
		char *space = strchr(f, ' ');

		*space = '\0';
		json_object_set_new(out, f, json_string(space + 1));
	}
	free(copy);
	return out;
}

static struct cfg_model *edit(const struct cfg_model *m, const struct row *row)
{
	const struct cfg_edit x = {
		.noun = row->noun,
		.verb = row->verb,
		.name = row->name,
		.fields = row->fields ? fields_of(row->fields) : NULL,
	};
	struct cfg_model *next;

	memset(&errors, 0, sizeof(errors));
	next = cfg_edit(m, &x, &errors);
	assert_int_equal(!next, errors.n > 0);
	json_decref(x.fields);
	return next;
}

/* Writes "PATH FROM > TO;" to the end of arg. */
static void note(void *arg, const struct cfg_change *c)
{
	char *out = arg;
	size_t len = strlen(out);

	snprintf(out + len, 1000 - len, "%s %s > %s;", c->path,
		 c->from ? c->from : "-", c->to ? c->to : "-");
}

static const struct row changes[] = {
	{ CFG_ADD, "target", B, "auth-group any|portal-groups front,back",
	  "targets." B " - > {auth-group: any, portal-groups: [front, "
	  "back]};" },
	{ CFG_ADD, "target", B,
	  "auth-group g|portal-groups front|luns {0: two, 9: one}",
	  "targets." B " - > {auth-group: g, portal-groups: [front], "
	  "luns: {0: two, 9: one}};" },
	{ CFG_SET, "target", A, "alias two words",
	  "targets." A ".alias - > two words;" },
	{ CFG_SET, "target", A, "portal-groups- back|alias x",
	  "targets." A ".portal-groups [front, back] > [front];targets." A
	  ".alias - > x;" },
	{ CFG_SET, "target", A, "luns+ {5: two}",
	  "targets." A ".luns.5 - > two;" },
	{ CFG_SET, "target", A, "luns- 0", "targets." A ".luns {0: one} > -;" },
	{ CFG_REMOVE, "target", A, NULL, NULL },
	{ CFG_SET, "target", A_TOO, "alias x", "targets." A ".alias - > x;" },
	{ CFG_REMOVE, "target", A_TOO, NULL, NULL },
	{ CFG_REMOVE, "lun", A_TOO "/0", NULL,
	  "targets." A ".luns {0: one} > -;" },
	{ CFG_ADD, "map", A_TOO "/1", "initiators eui.*",
	  "targets." A ".maps [{initiators: [cl], luns: {3: one}}] > "
	  "[{initiators: [eui.*]}, {initiators: [cl], luns: {3: "
	  "one}}];" },
	{ CFG_SET, "auth", "g", "initiators- EUI.1*",
	  "auth-groups.g.initiators [eui.1*, eui.*] > [eui.*];" },
	{ CFG_ADD, "lun", A "/7", "backstore two",
	  "targets." A ".luns.7 - > two;" },
	{ CFG_ADD, "lun", A "/7", "store ram:3M|read-only yes|serial S",
	  "backstores.disk0 - > {store: ram:3M, serial: S};targets." A
	  ".luns.7 - > {backstore: disk0, read-only: yes};" },
	{ CFG_ADD, "lun", A "/7", "store ram:3M|backstore new",
	  "backstores.new - > {store: ram:3M};targets." A ".luns.7 - > new;" },
	{ CFG_SET, "lun", A "/0", "read-only yes",
	  "targets." A ".luns.0 one > {backstore: one, read-only: "
	  "yes};" },
	{ CFG_REPLACE, "lun", A "/0", "backstore two",
	  "targets." A ".luns.0 one > two;" },
	{ CFG_REMOVE, "lun", A "/0", NULL, "targets." A ".luns {0: one} > -;" },
	{ CFG_ADD, "lun", A "/1/4", "backstore two",
	  "targets." A ".maps [{initiators: [cl], luns: {3: one}}] > "
	  "[{initiators: [cl], luns: {3: one, 4: two}}];" },
	{ CFG_ADD, "map", A, "initiators eui.*",
	  "targets." A ".maps [{initiators: [cl], luns: {3: one}}] > "
	  "[{initiators: [cl], luns: {3: one}}, {initiators: "
	  "[eui.*]}];" },
	{ CFG_ADD, "map", A "/1", "initiators eui.*",
	  "targets." A ".maps [{initiators: [cl], luns: {3: one}}] > "
	  "[{initiators: [eui.*]}, {initiators: [cl], luns: {3: "
	  "one}}];" },
	{ CFG_REMOVE, "map", A "/1", NULL,
	  "targets." A ".maps [{initiators: [cl], luns: {3: one}}] > "
	  "-;" },
	{ CFG_ADD, "backstore", "three", "store ram:1M|rotational yes",
	  "backstores.three - > {store: ram:1M, rotational: yes};" },
	{ CFG_SET, "backstore", "two", "vendor |max-iops 5:6",
	  "backstores.two.vendor null > -;backstores.two.max-iops - > "
	  "5:6;" },
	{ CFG_REMOVE, "backstore", "two", NULL,
	  "backstores.two {store: ram:2M, vendor: null} > -;" },
	{ CFG_ADD, "portal", "v6", "tag 3|listen [::1]:3260,[::2]:3260",
	  "portal-groups.v6 - > {tag: 3, listen: [[::1]:3260, "
	  "[::2]:3260]};" },
	{ CFG_SET, "portal", "back", "transport- iser",
	  "portal-groups.back.transport [tcp, iser] > [tcp];" },
	{ CFG_SET, "auth", "g", "initiators- eui.1*|accounts ",
	  "auth-groups.g.accounts [{user: u, secret-file: /s}] > -;"
	  "auth-groups.g.initiators [eui.1*, eui.*] > [eui.*];" },
	{ CFG_SET, "auth", "g", "initiators ",
	  "auth-groups.g.initiators [eui.1*, eui.*] > -;" },
	{ CFG_SET, "auth", "g", "addresses 10.0.0.1",
	  "auth-groups.g.addresses - > [10.0.0.1];" },
	{ CFG_SET, "portal", "front", "transport- iser",
	  "portal-groups.front.transport - > [tcp, switch];" },
	{ CFG_SET, "portal", "front", "transport+ iser", "" },
	{ CFG_SET, "auth", "g", "accounts+ {user: w, secret-file: /w}",
	  "auth-groups.g.accounts [{user: u, secret-file: /s}] > "
	  "[{user: u, secret-file: /s}, {user: w, secret-file: /w}];" },
	{ CFG_SET, "auth", "g", "mutual {user: t, secret-file: /t}",
	  "auth-groups.g.mutual - > {user: t, secret-file: /t};" },
	{ CFG_SET, "initiators", "cl", "names+ eui.2*",
	  "initiator-groups.cl [eui.1*] > [eui.1*, eui.2*];" },
	{ CFG_ADD, "group", "1", "ports 1,2|state standby",
	  "alua-groups.1 - > {state: standby, ports: [1, 2]};" },
	{ CFG_SET, "daemon", NULL, "log info|workers 2",
	  "daemon.workers - > 2;daemon.log - > info;" },
};

static void test_changes(void **state)
{
	struct cfg_model *m = read_text(base), *next;
	char text[1000];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		*text = '\0';
		next = edit(m, &changes[i]);
		if (!next)
			print_error("%zu: %s\n", i, errors.all[0].text);
		assert_non_null(next);
		assert_true(cfg_diff(m, next, note, text));
		if (changes[i].want)
			assert_string_equal(text, changes[i].want);
		else
			assert_int_equal(next->targets.n, 0);
		cfg_model_free(next);
	}
	cfg_model_free(m);
}

static const struct row refused[] = {
	{ CFG_ADD, "target", A, "auth-group any", "exists already" },
	{ CFG_ADD, "target", A_TOO, "auth-group any", "exists already" },
	{ CFG_SET, "auth", "g", "accounts- {user: U, secret-file: /s}",
	  "does not have" },
	{ CFG_SET, "auth", "g", "initiators+ iqn.2026-01.x:a/b*",
	  "U+002F is not allowed" },
	{ CFG_ADD, "target", B, NULL, "auth-group: missing" },
	{ CFG_ADD, "target", "a b", "auth-group any|portal-groups front",
	  "target a b: " },
	{ CFG_ADD, "target", "", NULL, "no name" },
	{ CFG_SET, "target", B, "alias x", "did you mean " A "?" },
	{ CFG_SET, "target", "zz", "alias x",
	  "iserctl target list lists them" },
	{ CFG_SET, "target", A, NULL, "no field to set" },
	{ CFG_SET, "target", A, "alais x", "did you mean alias?" },
	{ CFG_SET, "target", A, "portal-groups frnt", "did you mean front?" },
	{ CFG_SET, "target", A, "portal-groups front,front", "given twice" },
	{ CFG_SET, "target", A, "portal-groups ", "missing" },
	{ CFG_SET, "target", A, "portal-groups- front,back", "missing" },
	{ CFG_SET, "target", A, "portal-groups- no", "does not have no" },
	{ CFG_SET, "target", A, "alias+ x", "one value" },
	{ CFG_SET, "auth", "g", "addresses+ 10.0.0.1",
	  "addresses: not given, which means every address; addresses+= would "
	  "leave these entries alone: give addresses=VALUE for that" },
	{ CFG_SET, "auth", "g", "algorithms+ md5",
	  "algorithms: not given, which means all of them" },
	{ CFG_SET, "auth", "g", "initiators- eui.1*,eui.*",
	  "initiators: no entry would be left, which means every name; give "
	  "initiators= for that" },
	{ CFG_SET, "auth", "g", "accounts- {user: u, secret-file: /s}",
	  "accounts: no entry would be left, which means no restriction" },
	{ CFG_SET, "portal", "front", "verbs-listen+ 10.0.0.1",
	  "verbs-listen: not given, which means those of --listen" },
	{ CFG_SET, "target", A, "luns {0: ", "not valid YAML" },
	{ CFG_SET, "target", A, "luns [one]", "luns: not a mapping" },
	{ CFG_SET, "target", A, "luns+ [one]", "luns+: not a mapping" },
	{ CFG_SET, "target", A, "luns- 3", "does not have 3" },
	{ CFG_SET, "target", A, "maps- x", "does not have x" },
	{ CFG_SET, "target", A, "alias &x", NULL },
	{ CFG_SET, "target", A, "luns &x {}", "anchors" },
	{ CFG_SET, "target", A, "alias a\nb", "control character" },
	{ CFG_SET, "auth", "g", "initiators eui.1\x7f*", "control character" },
	{ CFG_SET, "target", A, "alias \xc2\x80", "control character" },
	{ CFG_SET, "target", A, "alias \xc2\x85", "control character" },
	{ CFG_SET, "target", A, "alias \xe2\x80\xa8", "control character" },
	{ CFG_SET, "target", A, "alias \xef\xbb\xbf", "control character" },
	{ CFG_SET, "target", A, "alias \xef\xbf\xbe", "control character" },
	{ CFG_SET, "target", A, "data-timeout 99999999999999999999",
	  "data-timeout: " },
	{ CFG_REMOVE, "target", A, "alias x", "remove has no fields" },
	{ CFG_REMOVE, "target", B, NULL, "no such target" },
	{ CFG_ADD, "lun", A, "backstore one", "give TARGET/N" },
	{ CFG_ADD, "lun", A "/", "backstore one", "give TARGET/N" },
	{ CFG_ADD, "lun", A "/00", "backstore two", "not a number" },
	{ CFG_ADD, "lun", A "/16384", "backstore two", "not a number" },
	{ CFG_ADD, "lun", A "/0", "backstore two", "exists already" },
	{ CFG_ADD, "lun", A "/1", "backstore one", "already another LUN here" },
	{ CFG_ADD, "lun", A "/1", "store ram:1M|backstore one",
	  "backstore one: exists already" },
	{ CFG_ADD, "lun", A "/1", "store ram:1M|colour red",
	  "colour: unknown field" },
	{ CFG_ADD, "lun", A "/2/0", "backstore two", "no such map" },
	{ CFG_ADD, "lun", A "/x/0", "backstore two", "TARGET/MAP" },
	{ CFG_ADD, "lun", A "/99999999999/0", "backstore two", "TARGET/MAP" },
	{ CFG_ADD, "lun", B "/1", "backstore one", "did you mean " A "?" },
	{ CFG_REPLACE, "lun", A "/0", NULL, "no backstore" },
	{ CFG_REPLACE, "lun", A "/0", "backstore one", "already" },
	{ CFG_REPLACE, "lun", A "/5", "backstore one", "no such LUN" },
	{ CFG_REPLACE, "target", A, "alias x", "only a LUN" },
	{ CFG_REMOVE, "map", A, NULL, "TARGET/MAP" },
	{ CFG_REMOVE, "map", A "/2", NULL, "no such map" },
	{ CFG_ADD, "map", A "/3", "initiators eui.*", "has 1 maps" },
	{ CFG_ADD, "backstore", "x y", "store ram:1M", "backstore x y: " },
	{ CFG_ADD, "backstore", "x", "size 3", "unknown field" },
	{ CFG_SET, "backstore", "tow", "vendor x", "did you mean two?" },
	{ CFG_REMOVE, "backstore", "one", NULL,
	  "first iserctl lun remove " A "/0" },
	{ CFG_REMOVE, "portal", "front", NULL,
	  "first iserctl target set " A " portal-groups-=front" },
	{ CFG_REMOVE, "auth", "g", NULL,
	  "first iserctl portal set back discovery-auth=GROUP" },
	{ CFG_REMOVE, "initiators", "cl", NULL,
	  "first iserctl map set " A "/1 initiators-=cl" },
	{ CFG_SET, "portal", "back", "tag 1", "already the tag" },
	{ CFG_SET, "daemon", "x", "log info", "has no name" },
	{ CFG_REMOVE, "daemon", NULL, NULL, "cannot be removed" },
	{ CFG_ADD, "daemon", NULL, NULL, "always there" },
	{ CFG_ADD, "disk", "x", NULL, "no such noun" },
};

static void test_refused(void **state)
{
	struct cfg_model *m = read_text(base), *next;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		next = edit(m, &refused[i]);
		if (!refused[i].want) {
			assert_non_null(next);
			cfg_model_free(next);
			continue;
		}
		if (next || !strstr(errors.all[0].text, refused[i].want))
			print_error("%zu: %s\n", i, errors.all[0].text);
		assert_null(next);
		assert_non_null(strstr(errors.all[0].text, refused[i].want));
		assert_int_equal(errors.all[0].at.line, 0);
	}
	cfg_model_free(m);
}

/* Each part of a LUN that is used by a map only, and in the order of the checks. */
static void test_uses_in_maps(void **state)
{
	static const struct row rows[] = {
		{ CFG_REMOVE, "lun", A "/0", NULL, NULL },
		{ CFG_REMOVE, "backstore", "one", NULL,
		  "map 1 of target " A " has it as LUN 3" },
		{ CFG_SET, "target", A, "auth-group g", NULL },
		{ CFG_REMOVE, "auth", "g", NULL,
		  "first iserctl target set " A " auth-group=GROUP" },
	};
	struct cfg_model *m = read_text(base), *next;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		next = edit(m, &rows[i]);
		if (rows[i].want) {
			assert_null(next);
			assert_non_null(
				strstr(errors.all[0].text, rows[i].want));
			continue;
		}
		assert_non_null(next);
		cfg_model_free(m);
		m = next;
	}
	cfg_model_free(m);
}

static long memory_left = -1; /* values of JSON; -1: no limit */

static void *limited_malloc(size_t size)
{
	if (memory_left == 0)
		return NULL;
	memory_left -= memory_left > 0;
	return malloc(size);
}

/* Without memory for some value a change is an error, and never another change. */
static void test_no_memory(void **state)
{
	static const struct row rows[] = {
		{ CFG_ADD, "lun", A "/7", "store ram:3M|vendor x", NULL },
		{ CFG_SET, "lun", A "/0", "read-only yes", NULL },
		{ CFG_ADD, "map", A "/1", "initiators cl|luns {1: two, 0: one}",
		  NULL },
		{ CFG_SET, "portal", "back", "transport- iser|listen+ [::1]",
		  NULL },
		{ CFG_REMOVE, "lun", A "/0", NULL, NULL },
	};
	struct cfg_model *m = read_text(base), *next;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cfg_model *good = edit(m, &rows[i]);
		bool is_enough = false;

		assert_non_null(good);
		for (long n = 0; !is_enough; n++) {
			memory_left = n;
			json_set_alloc_funcs(limited_malloc, free);
			next = edit(m, &rows[i]);
			is_enough = memory_left > 0;
			memory_left = -1;
			if (next)
				assert_true(json_equal(next->head.document,
						       good->head.document));
			cfg_model_free(next);
		}
		cfg_model_free(good);
	}
	json_set_alloc_funcs(malloc, free);
	cfg_model_free(m);
}

/* Values as a client of JSON sends them: lists and mappings as such. */
static void test_values_that_are_no_text(void **state)
{
	struct cfg_model *m = read_text(base), *next;
	json_t *list = json_pack("[s]", "back");
	json_t *fields =
		json_pack("{s:O, s:{}}", "portal-groups", list, "luns");
	const struct cfg_edit x = { "target", CFG_SET, A, fields };

	(void)state;
	next = cfg_edit(m, &x, &errors);
	assert_non_null(next);
	assert_int_equal(next->targets.v[0].portal_groups.n, 1);
	assert_int_equal(next->targets.v[0].luns.n, 0);
	cfg_model_free(next);
	json_object_set_new(fields, "alias", list); /* a list for one value */
	assert_null(cfg_edit(m, &x, &errors));
	assert_non_null(strstr(errors.all[0].text, "alias: a list"));
	json_decref(fields);
	cfg_model_free(m);
}

/* An empty list and an empty mapping: refused with a reason, or nothing changes. An older
 * iserd ended by "addresses-": []. */
static void test_nothing_to_add_or_remove(void **state)
{
	static const char *const names[] = { "addresses",  "addresses+",
					     "addresses-", "initiators-",
					     "accounts-",  "accounts+" };
	struct cfg_model *m = read_text(base);

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(names); i++) {
		json_t *fields = json_object();
		const struct cfg_edit x = { "auth", CFG_SET, "g", fields };
		struct cfg_model *next;

		json_object_set_new(fields, names[i / 2],
				    i % 2 ? json_object() : json_array());
		memset(&errors, 0, sizeof(errors));
		next = cfg_edit(m, &x, &errors);
		assert_int_equal(!next, errors.n > 0);
		if (next)
			cfg_model_free(next);
		json_decref(fields);
	}
	cfg_model_free(m);
}

/* Returns the model with a patch. */
static struct cfg_model *patch(const struct cfg_model *m, const char *text)
{
	json_t *doc = json_deep_copy(m->head.document);
	json_t *p = json_loads(text, 0, NULL);
	struct cfg_model *next;

	memset(&errors, 0, sizeof(errors));
	assert_null(cfg_doc_merge(doc, p));
	next = cfg_model_of_document(doc, &errors);
	assert_non_null(next);
	json_decref(doc);
	json_decref(p);
	return next;
}

/* A text such as "null" stays one when something else is patched. */
static void test_patch_keeps_texts(void **state)
{
	struct cfg_model *m = read_text(base), *next, *last;
	char *before = cfg_dump(m), *after;

	(void)state;
	next = patch(m, "{\"daemon\": {\"workers\": 3}}");
	assert_int_equal(next->options.workers, 3);
	last = patch(next, "{\"daemon\": null}");
	after = cfg_dump(last);
	assert_string_equal(after, before);
	free(before);
	free(after);
	cfg_model_free(last);
	cfg_model_free(next);
	cfg_model_free(m);
}

/* The text of iserctl is a text, too: only an empty one removes a field. */
static void test_null_is_a_text(void **state)
{
	static const struct row row = { CFG_SET, "target", A, "alias null",
					NULL };
	struct cfg_model *m = read_text(base), *next = edit(m, &row);

	(void)state;
	assert_non_null(next);
	assert_string_equal(next->targets.v[0].alias, "null");
	cfg_model_free(next);
	cfg_model_free(m);
}

static void assert_field(const json_t *noun, const char *key, const char *want)
{
	assert_string_equal(json_string_value(json_object_get(noun, key)),
			    want);
}

static void test_list_and_show(void **state)
{
	static const struct {
		const char *noun, *yaml;
	} rows[] = {
		{ "target",
		  "- name: " A "\n  auth-group: any\n  portal-groups: "
		  "\"front,back\"\n  luns: 1\n  maps: 1\n" },
		{ "lun", "- name: " A "/0\n  backstore: one\n- name: " A
			 "/1/3\n  backstore: one\n" },
		{ "map", "- name: " A "/1\n  initiators: cl\n  luns: 1\n" },
		{ "initiators", "- name: cl\n  names: \"eui.1*\"\n" },
		{ "group", "[]\n" },
		{ "daemon", "[]\n" },
	};
	struct cfg_model *m = read_text(base);
	json_t *v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text;

		v = cfg_edit_list(m, rows[i].noun);
		text = cfg_yaml_write(v);
		assert_string_equal(text, rows[i].yaml);
		json_decref(v);
		free(text);
	}
	v = cfg_edit_show(m, "portal", "back", &errors);
	assert_field(v, "tag", "2");
	assert_field(v, "discovery", "permitted");
	assert_true(json_is_null(json_object_get(v, "verbs-listen")));
	assert_int_equal(json_array_size(json_object_get(v, "transport")), 2);
	json_decref(v);
	v = cfg_edit_show(m, "lun", A "/1/3", &errors);
	assert_field(v, "backstore", "one");
	assert_field(v, "read-only", "no");
	json_decref(v);
	v = cfg_edit_show(m, "daemon", NULL, &errors);
	assert_field(v, "log", "notice");
	json_decref(v);
	assert_null(cfg_edit_show(m, "portal", "bakc", &errors));
	assert_non_null(strstr(errors.all[0].text, "did you mean back?"));
	cfg_model_free(m);
}

/* Writes "TARGET/N BACKSTORE;" to the end of arg. */
static void note_lun(void *arg, const struct cfg_reach *r)
{
	char *out = arg;
	size_t len = strlen(out);

	snprintf(out + len, 1000 - len, "%s/%u/%u %s;", r->target, r->map,
		 r->lun, r->backstore);
}

/* A unit has the name of its backstore and the names of its LUNs. */
static void test_luns(void **state)
{
	static const char *const rows[][2] = {
		{ "one", "one" },
		{ A "/0", "one" },
		{ A "/1/3", "one" },
		{ "two", "two" },
		{ "tow",
		  "backstore tow: no such backstore; did you mean two?" },
		{ "0", "backstore 0: no such backstore" },
		{ A "/1", "no such LUN; iserctl lun list" },
		{ A "/2/3", "no such map" },
		{ B "/0", "no such target; did you mean " A "?" },
		{ "", "no name" },
	};
	struct cfg_model *m = read_text(base);
	char text[1000] = "";

	(void)state;
	cfg_luns_each(m, note_lun, text);
	assert_string_equal(text, A "/0/0 one;" A "/1/3 one;");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *got;

		memset(&errors, 0, sizeof(errors));
		got = cfg_lun_backstore(m, rows[i][0], &errors);
		assert_int_equal(!got, errors.n > 0);
		if (!got)
			assert_non_null(strstr(errors.all[0].text, rows[i][1]));
		else
			assert_string_equal(got, rows[i][1]);
	}
	cfg_model_free(m);
}

/* Returns the CPU time of reading a file with `begin`, n of these entries and `end`. */
static clock_t time_of(const char *begin, const char *entry, unsigned n,
		       const char *end)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	clock_t begun;

	assert_non_null(f);
	fputs(begin, f);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, entry, i);
	fputs(end, f);
	assert_int_equal(fclose(f), 0);
	begun = clock();
	cfg_model_free(read_text(text));
	free(text);
	return clock() - begun;
}

/* The time of a list is not the square of its length: worker 0, which reads a file of
 * "apply", serves no initiator meanwhile. */
static void test_long_lists(void **state)
{
	(void)state;
	assert_true(
		time_of("version: 1\nportal-groups: {p: {listen: 127.0.0.1, "
			"transport: [tcp",
			", tcp", 500000, "]}}\n") < 20 * CLOCKS_PER_SEC);
	assert_true(time_of("version: 1\nauth-groups: {g: {accounts: [",
			    "{user: u%u, secret-file: /s},", 150000,
			    "]}}\n") < 20 * CLOCKS_PER_SEC);
}

/* A noun of the management socket with a verb that changes is a noun here. */
static void test_nouns_of_the_socket(void **state)
{
	const struct rpc_noun *all;
	size_t n;

	(void)state;
	all = rpc_nouns(&n);
	for (size_t i = 0; i < n; i++) {
		for (unsigned v = 0; v < RPC_VERBS && all[i].verbs[v]; v++)
			assert_non_null(rpc_verb_of(all[i].verbs[v]));
		if (rpc_noun_has(&all[i], "set"))
			assert_non_null(cfg_edit_noun(all[i].name));
		assert_ptr_equal(rpc_noun_of(all[i].name), &all[i]);
	}
	assert_null(rpc_noun_of("disk"));
	assert_null(rpc_verb_of("eat"));
	assert_null(cfg_edit_noun("disk"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_uses_in_maps),
		cmocka_unit_test(test_values_that_are_no_text),
		cmocka_unit_test(test_nothing_to_add_or_remove),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_patch_keeps_texts),
		cmocka_unit_test(test_null_is_a_text),
		cmocka_unit_test(test_list_and_show),
		cmocka_unit_test(test_luns),
		cmocka_unit_test(test_long_lists),
		cmocka_unit_test(test_nouns_of_the_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
