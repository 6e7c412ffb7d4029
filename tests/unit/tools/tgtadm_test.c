/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgtadm_test.c: iser-tgtadm without iserd: command lines with the errors and exit
 * statuses of tgtadm 1.0.85, and what each operation makes of a configuration.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "tools/tgtadm/tgtadm.h"

#define ARGS 24

/* ---- what is printed ---- */

static FILE *real_stderr;
static char *printed;
static size_t printed_len;

static void catch_begin(void)
{
	real_stderr = stderr;
	free(printed);
	printed = NULL;
	stderr = open_memstream(&printed, &printed_len);
	assert_non_null(stderr);
}

static void catch_end(void)
{
	fclose(stderr);
	stderr = real_stderr;
}

/* ---- a command line ---- */

static struct tgtadm_request request;
static char line_text[4096], *line_args[ARGS + 1];

/* Splits a line at its spaces; '~' is a space in an argument. Returns whether it is
 * a good command line. */
static bool parse(const char *line, int *code)
{
	int n = 0;
	bool good;

	snprintf(line_text, sizeof(line_text), "tgtadm %s", line);
	for (char *p = strtok(line_text, " "); p && n < ARGS;
	     p = strtok(NULL, " ")) {
		for (char *c = p; *c; c++)
			*c = *c == '~' ? ' ' : *c;
		line_args[n++] = p;
	}
	line_args[n] = NULL;
	free(request.password);
	tgtadm_program(line_args[0]);
	catch_begin();
	good = tgtadm_options(&request, n, line_args, code);
	catch_end();
	return good;
}

static void check_line(const char *line, int want, const char *text)
{
	int code = -1;
	bool good = parse(line, &code);

	if (good != (want < 0) || (!good && code != want) ||
	    strcmp(printed, text) != 0)
		fail_msg("%s\ngives %s, %d: %s", line, good ? "good" : "bad",
			 code, printed);
}

#define TRY "Try `tgtadm --help' for more information.\n"

/* The texts and statuses are those of tgtadm 1.0.85. */
static const struct {
	const char *line;
	int code;
	const char *text;
} refused[] = {
	{ "", 22, "tgtadm: specify the operation type\n" },
	{ "--mode target", 22, "tgtadm: specify the operation type\n" },
	{ "--op show", 22, "tgtadm: specify the mode\n" },
	{ "--op zap --mode target", 1, "tgtadm: unknown operation: zap\n" },
	{ "--op show --mode zap", 1, "tgtadm: unknown mode: zap\n" },
	{ "--op show --mode stats", 1, "tgtadm: unknown mode: stats\n" },
	{ "--op show --mode target extra", 22,
	  "tgtadm: unrecognized option 'extra'\n" TRY },
	{ "--nonsense", 22, "tgtadm: unrecognized option '--nonsense'\n" TRY },
	{ "-Z", 22, "tgtadm: invalid option -- 'Z'\n" TRY },
	{ "--op", 22, "tgtadm: option '--op' requires an argument\n" TRY },
	{ "--op show --mode target --t 1", 22,
	  "tgtadm: option '--t' is ambiguous; possibilities: '--tid' "
	  "'--targetname'\n" TRY },
	{ "--op new --mode target", 22, "tgtadm: 'tid' option is necessary\n" },
	{ "--op new --mode target -t 0 -T x", 22,
	  "tgtadm: 'tid' cannot be 0\n" },
	{ "--op new --mode target -t 1", 22,
	  "tgtadm: creating new target requires a name, use "
	  "--targetname\n" },
	{ "--op new --mode target -t 2147483648 -T x", 22,
	  "-t argument value '2147483648' out of range\n" TRY },
	{ "--op new --mode target -t -1 -T x", 22,
	  "-t argument value '-1' invalid\n" TRY },
	{ "--op new --mode target -t 1x -T x", 22,
	  "-t argument value '1x' invalid\n" TRY },
	{ "--op new --mode target -t 99999999999999999999999 -T x", 22,
	  "-t argument value '99999999999999999999999' out of "
	  "range\n" TRY },
	{ "-l 18446744073709551616", 22,
	  "-l argument value '18446744073709551616' invalid\n" TRY },
	{ "-C 99999 --op show --mode sys", 22,
	  "-C argument value '99999' out of range\n" TRY },
	{ "--op show --mode target --lun 1", 22,
	  "tgtadm: target mode: option '-l' is not "
	  "allowed/supported\n" },
	{ "--op new --mode target -t 9 -T x --force", 22,
	  "tgtadm: target mode: option '-F' is not "
	  "allowed/supported\n" },
	{ "--op update --mode target -t 7 -n state", 22,
	  "tgtadm: update operation requires 'name' and 'value' "
	  "options\n" },
	{ "--op update --mode target -t 7 -P x=1", 22,
	  "tgtadm: target mode: option '-P' is not "
	  "allowed/supported\n" },
	{ "--op bind --mode target -t 7", 22,
	  "tgtadm: bind operation requires initiator-address, "
	  "initiator-nameor bus\n" },
	{ "--op unbind --mode target -t 7", 22,
	  "tgtadm: unbind operation requires initiator-address, "
	  "initiator-nameor bus\n" },
	{ "--op new --mode lu -l 3", 22,
	  "tgtadm: 'tid' option is necessary\n" },
	{ "--op new --mode lu -t 3", 22,
	  "tgtadm: 'lun' option is necessary\n" },
	{ "--op new --mode lu -t 1 -l 1 -Y zzz", 22,
	  "tgtadm: unknown target type: zzz\n" },
	{ "--op new --mode lu -t 1 -l 50 --force", 22,
	  "tgtadm: logicalunit mode: option '-F' is not "
	  "allowed/supported\n" },
	{ "--op update --mode lu -t 1 -l 1 --force", 22,
	  "tgtadm: option '-F' not supported in logicalunit mode\n" },
	{ "--op show --mode lu -t 1 -l 1", 22,
	  "tgtadm: operation show not supported in logicalunit "
	  "mode\n" },
	{ "--op new --mode account", 22,
	  "tgtadm: 'user' and 'password' options are required\n" },
	{ "--op new --mode account -u a -p b -t 1", 22,
	  "tgtadm: account mode: option '-t' is not "
	  "allowed/supported\n" },
	{ "--op bind --mode account -t 7", 22,
	  "tgtadm: 'user' option is necessary\n" },
	{ "--op delete --mode account", 22,
	  "tgtadm: 'user' option is necessary\n" },
	{ "--op update --mode account -u a", 22,
	  "tgtadm: operation update not supported in account mode\n" },
	{ "--op show --mode portal -t 1", 22,
	  "tgtadm: option '-t' not supported in portal mode\n" },
	{ "--op new --mode portal", 22,
	  "tgtadm: you must specify --param portal=<portal>\n" },
	{ "--op new --mode sys", 22,
	  "tgtadm: operation new not supported in system mode\n" },
	{ "--op update --mode sys", 22,
	  "tgtadm: update operation requires 'name' and 'value' "
	  "options\n" },
	{ "--op bind --mode target -t 1 -B pci,1", 22,
	  "tgtadm: can't find bus: pci\n" },
};

static void test_options_refused(void **state)
{
	(void)state;
	unsetenv("ISER_TGTADM_PASSWORD_FILE");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		check_line(refused[i].line, refused[i].code, refused[i].text);
}

static void test_options_good(void **state)
{
	(void)state;
	check_line("-C 3 --lld iscsi --op new --mode target --tid 0x10 -T "
		   "iqn.x",
		   -1, "");
	assert_int_equal(request.tid, 16);
	assert_int_equal(request.control_port, 3);
	assert_string_equal(request.target, "iqn.x");
	check_line("--op show --mode target", -1, "");
	assert_int_equal(request.tid, -1);
	check_line("--name=iqn.x --op update --mode target -t 7 -n state -v "
		   "ready",
		   -1, "");
	assert_string_equal(request.name, "state");
	check_line("--op delete --mode conn -t 1 -s 5 -c 4294967295", -1, "");
	assert_int_equal(request.cid, UINT32_MAX);
	check_line("--op update --mode lu -t 1 -l 2 --param a=b", -1, "");
	assert_string_equal(request.params, "a=b");
}

/* The secret must not stay on the command line. */
static void test_password_is_wiped(void **state)
{
	(void)state;
	check_line("--op new --mode account -u me --password=my~secret~is~long",
		   -1, "");
	assert_string_equal(request.password, "my secret is long");
	for (int i = 0; line_args[i]; i++)
		assert_null(strstr(line_args[i], "secret is"));
}

static void test_password_file(void **state)
{
	char path[] = "/tmp/tgtadm_test.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "from a file\n", 12), 12);
	close(fd);
	setenv("ISER_TGTADM_PASSWORD_FILE", path, 1);
	check_line("--op new --mode account -u me", -1, "");
	assert_string_equal(request.password, "from a file");
	unlink(path);
	setenv("ISER_TGTADM_PASSWORD_FILE", "/nowhere/x", 1);
	check_line("--op new --mode account -u me", 22,
		   "tgtadm: /nowhere/x: No such file or directory\n");
	unsetenv("ISER_TGTADM_PASSWORD_FILE");
}

/* ---- a configuration ---- */

static struct tgtadm tgt;

static void config_end(void)
{
	json_decref(tgt.before);
	json_decref(tgt.config);
	json_decref(tgt.notes);
	tgt = (struct tgtadm){ .link = RPC_LINK_NONE };
}

/* Single quotes stand for double ones. */
static json_t *json_of(const char *text)
{
	char *copy = strdup(text);
	json_error_t e;
	json_t *v;

	assert_non_null(copy);
	for (char *p = copy; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	v = json_loads(copy, 0, &e);
	if (!v)
		fail_msg("%s: %s", text, e.text);
	free(copy);
	return v;
}

static void config_begin(const char *text)
{
	config_end();
	tgt.r = &request;
	tgt.config = json_of(text);
	tgt.before = json_deep_copy(tgt.config);
	assert_true(tgtadm_number_targets(tgt.config));
}

/* Runs the operation of a command line, which must end with this text. */
static void run(const char *line, int (*edit)(struct tgtadm *t),
		const char *text)
{
	int code = -1, want = *text ? TGTADM_REFUSED : 0;

	if (!parse(line, &code))
		fail_msg("%s: %s", line, printed);
	catch_begin();
	code = edit(&tgt);
	catch_end();
	if (code != want || strncmp(printed, text, strlen(text)) != 0 ||
	    (!*text && *printed))
		fail_msg("%s\ngives %d: %s", line, code, printed);
}

static void check_config(const char *text)
{
	json_t *want = json_of(text);

	if (!json_equal(want, tgt.config))
		fail_msg("%s\nbut the configuration is\n%s", text,
			 json_dumps(tgt.config, JSON_INDENT(1)));
	json_decref(want);
}

#define PORTALS "'portal-groups': {'p': {'listen': ['127.0.0.1:3260']}}"
#define X	"'iqn.2026-11.x:x'"

static void test_number_targets(void **state)
{
	(void)state;
	config_begin("{'targets': {'a': {}, 'b': {'tgt-id': '2'}, 'c': {}, "
		     "'d': {'tgt-id': '2147483647'}, 'e': {'tgt-id': '1'}, "
		     "'f': {}}}");
	check_config("{'targets': {'a': {'tgt-id': '3'}, 'b': {'tgt-id': "
		     "'2'}, 'c': {'tgt-id': '4'}, 'd': {'tgt-id': "
		     "'2147483647'}, 'e': {'tgt-id': '1'}, 'f': {'tgt-id': "
		     "'5'}}}");
	config_begin("{}");
	check_config("{}");
}

static void check_difference(const char *from, const char *to,
			     const char *patch)
{
	json_t *a = json_of(from), *b = json_of(to), *want = json_of(patch);
	json_t *got = tgtadm_difference(a, b);

	assert_non_null(got);
	if (!json_equal(got, want))
		fail_msg("%s -> %s: %s", from, to, json_dumps(got, 0));
	json_decref(a);
	json_decref(b);
	json_decref(want);
	json_decref(got);
}

static void test_difference(void **state)
{
	(void)state;
	check_difference("{}", "{}", "{}");
	check_difference("{'a': '1'}", "{}", "{'a': null}");
	check_difference("{}", "{'a': {'b': '1'}}", "{'a': {'b': '1'}}");
	check_difference("{'a': {'b': '1', 'c': '2'}}", "{'a': {'c': '2'}}",
			 "{'a': {'b': null}}");
	check_difference("{'a': {'b': '1'}}", "{'a': {'b': '1'}}", "{}");
	check_difference("{'a': '1'}", "{'a': {'b': '1'}}",
			 "{'a': {'b': '1'}}");
	check_difference("{'a': ['1', '2']}", "{'a': ['2']}", "{'a': ['2']}");
	check_difference("{'a': {}}", "{'a': []}", "{'a': []}");
}

static void test_targets(void **state)
{
	(void)state;
	config_begin("{}");
	run("--op new --mode target -t 4 -T iqn.2026-11.x:x", tgtadm_target_new,
	    "tgtadm: invalid request: iserd listens nowhere");
	config_begin("{" PORTALS "}");
	run("--op new --mode target -t 4 -T iqn.2026-11.x:x", tgtadm_target_new,
	    "");
	check_config("{" PORTALS ", 'targets': {" X ": {'auth-group': 'none', "
		     "'portal-groups': ['p'], 'tgt-id': '4'}}}");
	run("--op new --mode target -t 4 -T iqn.2026-11.x:z", tgtadm_target_new,
	    "tgtadm: this target already exists\n");
	run("--op new --mode target -t 5 -T iqn.2026-11.x:X", tgtadm_target_new,
	    "tgtadm: this target already exists\n");
	run("--lld nope --op new --mode target -t 5 -T iqn.2026-11.x:z",
	    tgtadm_target_new, "tgtadm: can't find the driver\n");
	run("--op delete --mode target -t 5 -F", tgtadm_target_delete,
	    "tgtadm: can't find the target\n");
	run("--op delete --mode target -t 4 -F", tgtadm_target_delete, "");
	check_config("{" PORTALS ", 'targets': {}}");
}

/* The next target with a number must not get the accounts of an earlier one, whatever
 * removed that one. */
static void test_rules_end_with_the_target(void **state)
{
	static const char left[] = "'auth-groups': {'tgt-1': {'accounts': "
				   "[{'user': 'a', 'secret-file': '/s'}]}}";
	char text[400];

	(void)state;
	snprintf(text, sizeof(text),
		 "{" PORTALS ", %s, 'targets': {" X
		 ": {'auth-group': 'none', 'tgt-id': '1'}}}",
		 left);
	config_begin(text);
	run("--op delete --mode target -t 1 -F", tgtadm_target_delete, "");
	check_config("{" PORTALS ", 'targets': {}}");
	snprintf(text, sizeof(text), "{" PORTALS ", %s, 'targets': {}}", left);
	config_begin(text);
	run("--op new --mode target -t 1 -T iqn.2026-11.x:x", tgtadm_target_new,
	    "");
	check_config("{" PORTALS ", 'targets': {" X ": {'auth-group': 'none', "
		     "'portal-groups': ['p'], 'tgt-id': '1'}}}");
	/* a target that another program has made gets the number */
	snprintf(text, sizeof(text),
		 "{%s, 'targets': {" X ": {'auth-group': 'none'}}}", left);
	config_begin(text);
	run("--op bind --mode target -t 1 -I ALL", tgtadm_target_bind, "");
	check_config("{'auth-groups': {'tgt-1': {'addresses': ['0.0.0.0/0', "
		     "'::/0']}}, 'targets': {" X ": {'auth-group': 'tgt-1', "
		     "'tgt-id': '1'}}}");
	/* a group in use stays */
	config_begin("{'auth-groups': {'tgt-1': {'addresses': '::1'}}, "
		     "'targets': {" X
		     ": {'auth-group': 'tgt-1', 'tgt-id': '1'}, "
		     "'y': {'auth-group': 'tgt-1', 'tgt-id': '2'}}}");
	run("--op delete --mode target -t 1 -F", tgtadm_target_delete, "");
	check_config(
		"{'auth-groups': {'tgt-1': {'addresses': '::1'}}, "
		"'targets': {'y': {'auth-group': 'tgt-1', 'tgt-id': '2'}}}");
}

/* tgtadm skips empty parts; OCF agents begin and end with a comma. */
static void test_params(void **state)
{
	char text[] = ",,a=1,,b=,c,", only[] = ",", *next = text;
	struct tgtadm_param p;

	(void)state;
	assert_true(tgtadm_param(&next, &p));
	assert_string_equal(p.name, "a");
	assert_string_equal(p.value, "1");
	assert_true(tgtadm_param(&next, &p));
	assert_string_equal(p.name, "b");
	assert_string_equal(p.value, "");
	assert_true(tgtadm_param(&next, &p));
	assert_string_equal(p.name, "c");
	assert_null(p.value);
	assert_false(tgtadm_param(&next, &p));
	next = only;
	assert_false(tgtadm_param(&next, &p));
	next = NULL;
	assert_false(tgtadm_param(&next, &p));
}

/* The auth group of a target that is shared is copied before it changes. */
static void test_rules(void **state)
{
	static const char shared[] =
		"{'auth-groups': {'g': {'initiators': ['iqn.2026-11.x:i']}}, "
		"'targets': {" X ": {'auth-group': 'g', 'tgt-id': '1'}}}";

	(void)state;
	config_begin("{'targets': {" X ": {'auth-group': 'none', 'tgt-id': "
		     "'1'}}}");
	run("--op bind --mode target -t 1 -I ALL", tgtadm_target_bind, "");
	check_config("{'auth-groups': {'tgt-1': {'addresses': ['0.0.0.0/0', "
		     "'::/0']}}, 'targets': {" X ": {'auth-group': 'tgt-1', "
		     "'tgt-id': '1'}}}");
	run("--op bind --mode target -t 1 -I ALL", tgtadm_target_bind,
	    "tgtadm: this access control rule already exists\n");
	run("--op bind --mode target -t 1 -I [fd00::1]", tgtadm_target_bind,
	    "");
	run("--op unbind --mode target -t 1 -I ALL", tgtadm_target_unbind, "");
	run("--op unbind --mode target -t 1 -I ALL", tgtadm_target_unbind,
	    "tgtadm: this access control rule does not exist\n");
	check_config("{'auth-groups': {'tgt-1': {'addresses': ['fd00::1']}}, "
		     "'targets': {" X ": {'auth-group': 'tgt-1', 'tgt-id': "
		     "'1'}}}");
	run("--op update --mode target -t 1 -n state -v offline",
	    tgtadm_target_update, "");
	run("--op bind --mode target -t 1 -I 10.0.0.0/8", tgtadm_target_bind,
	    "");
	check_config("{'auth-groups': {'tgt-1': {'addresses': ['fd00::1', "
		     "'10.0.0.0/8']}}, 'targets': {" X ": {'auth-group': "
		     "'none', 'tgt-id': '1'}}}");
	run("--op update --mode target -t 1 -n state -v ready",
	    tgtadm_target_update, "");
	run("--op unbind --mode target -t 1 -I fd00::1", tgtadm_target_unbind,
	    "");
	run("--op unbind --mode target -t 1 -I 10.0.0.0/8",
	    tgtadm_target_unbind, "");
	check_config("{'targets': {" X ": {'auth-group': 'none', 'tgt-id': "
		     "'1'}}}");
	config_begin(shared);
	run("--op bind --mode target -t 1 -Q iqn.2026-11.x:j",
	    tgtadm_target_bind, "");
	check_config("{'auth-groups': {'g': {'initiators': "
		     "['iqn.2026-11.x:i']}, 'tgt-1': {'initiators': "
		     "['iqn.2026-11.x:i', 'iqn.2026-11.x:j']}}, 'targets': {" X
		     ": {'auth-group': 'tgt-1', 'tgt-id': '1'}}}");
}

/* A target must not get the rules of an earlier target, or of another one. */
static void test_rules_of_others(void **state)
{
	(void)state;
	config_begin("{" PORTALS ", 'auth-groups': {'tgt-1': {'addresses': "
		     "['0.0.0.0/0', '::/0']}}}");
	run("--op new --mode target -t 1 -T iqn.2026-11.x:x", tgtadm_target_new,
	    "");
	check_config("{" PORTALS ", 'targets': {" X ": {'auth-group': 'none', "
		     "'portal-groups': ['p'], 'tgt-id': '1'}}}");
	config_begin("{'auth-groups': {'tgt-1': {'initiators': ['i']}}, "
		     "'targets': {" X ": {'auth-group': 'any', 'tgt-id': "
		     "'1'}, 'y': {'auth-group': 'tgt-1', 'tgt-id': '2'}}}");
	run("--op bind --mode target -t 1 -I 10.0.0.1", tgtadm_target_bind,
	    "tgtadm: auth group tgt-1: in use by another target");
}

static void test_keys(void **state)
{
	(void)state;
	config_begin("{'targets': {" X ": {'auth-group': 'none', 'tgt-id': "
		     "'1'}}}");
	run("--op update --mode target -t 1 -n HeaderDigest -v CRC32C",
	    tgtadm_target_update, "");
	check_config("{'targets': {" X ": {'auth-group': 'none', 'tgt-id': "
		     "'1', 'digests': 'prefer'}}}");
	run("--op update --mode target -t 1 -n MaxBurstLength -v 512",
	    tgtadm_target_update, "");
	assert_int_equal(json_array_size(tgt.notes), 1);
	run("--op update --mode target -t 1 -n MaxConnections -v 99",
	    tgtadm_target_update, "");
	check_config("{'targets': {" X ": {'auth-group': 'none', 'tgt-id': "
		     "'1', 'digests': 'prefer', 'max-connections': '16'}}}");
	assert_int_equal(json_array_size(tgt.notes), 2);
	run("--op update --mode target -t 1 -n MaxBurstLength -v 511",
	    tgtadm_target_update, "tgtadm: invalid request\n");
	run("--op update --mode target -t 1 -n nonsense -v 1",
	    tgtadm_target_update, "tgtadm: invalid request\n");
	run("--op update --mode target -t 1 -n state -v xx",
	    tgtadm_target_update, "tgtadm: invalid request\n");
	run("--op update --mode target -t 2 -n state -v ready",
	    tgtadm_target_update, "tgtadm: can't find the target\n");
}

#define LUNS(luns, stores)                                                  \
 "{'targets': {" X ": {'auth-group': 'none', 'tgt-id': '1', 'luns': {" luns \
 "}}}, 'backstores': {" stores "}}"

static void test_luns(void **state)
{
	(void)state;
	config_begin("{'targets': {" X ": {'auth-group': 'none', 'tgt-id': "
		     "'1'}}}");
	run("--op new --mode lu -t 1 -l 1 -b /d/a", tgtadm_lun_new, "");
	check_config(LUNS("'1': 'tgt-1-1'", "'tgt-1-1': {'store': '/d/a'}"));
	run("--op new --mode lu -t 1 -l 1 -b /d/b", tgtadm_lun_new,
	    "tgtadm: this logical unit number already exists\n");
	run("--op new --mode lu -t 1 -l 0 -b /d/b", tgtadm_lun_new,
	    "tgtadm: this logical unit number already exists\n");
	run("--op new --mode lu -t 9 -l 2 -b /d/b", tgtadm_lun_new,
	    "tgtadm: can't find the target\n");
	run("--op new --mode lu -t 1 -l 2 -b /d/a", tgtadm_lun_new,
	    "tgtadm: invalid request: logical unit 1 of this target");
	run("--op new --mode lu -t 1 -l 2 -b /d/b -E sheepdog", tgtadm_lun_new,
	    "tgtadm: invalid request: --bstype sheepdog: iserd does not");
	run("--op new --mode lu -t 1 -l 2 -b /d/b -Y tape", tgtadm_lun_new,
	    "tgtadm: invalid request: --device-type tape: iserd does not");
	run("--op new --mode lu -t 1 -l 2 -b /d/b -y 1000", tgtadm_lun_new,
	    "tgtadm: invalid request: --blocksize 1000: give 512 or 4096");
	run("--op new --mode lu -t 1 -l 2 -b /d/b -f x", tgtadm_lun_new,
	    "tgtadm: invalid request: --bsoflags x: give sync");
	run("--op new --mode lu -t 1 -l 2", tgtadm_lun_new,
	    "tgtadm: 'backing-store' option is necessary\n");
	run("--op new --mode lu -t 1 -l 16384 -b /d/b", tgtadm_lun_new,
	    "tgtadm: invalid request: LUN 16384");
	run("--op new --mode lu -t 1 -l 2 -b /d/b -E aio -f direct:sync -y "
	    "4096",
	    tgtadm_lun_new, "");
	run("--op new --mode lu -t 1 -l 3 -E null", tgtadm_lun_new, "");
	run("--op new --mode lu -t 1 -l 4 -Y cd", tgtadm_lun_new, "");
	check_config(LUNS("'1': 'tgt-1-1', '2': 'tgt-1-2', '3': 'tgt-1-3', "
			  "'4': 'tgt-1-4'",
			  "'tgt-1-1': {'store': '/d/a'}, 'tgt-1-2': {'store': "
			  "'/d/b', 'block-size': '4096', 'cache': "
			  "'write-through'}, 'tgt-1-3': {'store': 'null:1T'}, "
			  "'tgt-1-4': {'store': 'cd:'}"));
	run("--op delete --mode lu -t 1 -l 9", tgtadm_lun_delete,
	    "tgtadm: can't find the logical unit\n");
	run("--op delete --mode lu -t 1 -l 0", tgtadm_lun_delete,
	    "tgtadm: invalid request\n");
	run("--op delete --mode lu -t 1 -l 2", tgtadm_lun_delete, "");
	run("--op delete --mode lu -t 1 -l 3", tgtadm_lun_delete, "");
	run("--op delete --mode lu -t 1 -l 4", tgtadm_lun_delete, "");
	check_config(LUNS("'1': 'tgt-1-1'", "'tgt-1-1': {'store': '/d/a'}"));
}

/* Images of Ceph have a pool and options. */
static void test_luns_of_ceph(void **state)
{
	(void)state;
	config_begin("{'targets': {" X ": {'tgt-id': '1'}}}");
	run("--op new --mode lu -t 1 -l 1 -b pool/a -E rbd -S "
	    "conf=/c;id=u",
	    tgtadm_lun_new, "");
	run("--op new --mode lu -t 1 -l 2 -b b -E rbd", tgtadm_lun_new, "");
	check_config("{'targets': {" X ": {'tgt-id': '1', 'luns': {'1': "
		     "'tgt-1-1', '2': 'tgt-1-2'}}}, 'backstores': {'tgt-1-1': "
		     "{'store': 'rbd:pool/a,conf=/c,id=u'}, 'tgt-1-2': "
		     "{'store': 'rbd:rbd/b'}}}");
	run("--op new --mode lu -t 1 -l 3 -b c -E rbd -S cluster=x",
	    tgtadm_lun_new,
	    "tgtadm: invalid request: --bsopts cluster=x: give");
	run("--op new --mode lu -t 1 -l 3 -b a,id=x -E rbd", tgtadm_lun_new,
	    "tgtadm: invalid request: --backing-store: give POOL/IMAGE");
}

/* One backstore in two targets, and one that another program made. */
static void test_luns_share(void **state)
{
	static const char two[] =
		"{'targets': {'a': {'tgt-id': '1'}, 'b': {'tgt-id': '2'}}, "
		"'backstores': {'disk': {'store': '/d/x'}}}";

	(void)state;
	config_begin(two);
	run("--op new --mode lu -t 1 -l 1 -b /d/a", tgtadm_lun_new, "");
	run("--op new --mode lu -t 2 -l 7 -b /d/a", tgtadm_lun_new, "");
	run("--op new --mode lu -t 2 -l 8 -b /d/x", tgtadm_lun_new, "");
	check_config("{'targets': {'a': {'tgt-id': '1', 'luns': {'1': "
		     "'tgt-1-1'}}, 'b': {'tgt-id': '2', 'luns': {'7': "
		     "'tgt-1-1', '8': 'disk'}}}, 'backstores': {'disk': "
		     "{'store': '/d/x'}, 'tgt-1-1': {'store': '/d/a'}}}");
	run("--op delete --mode target -t 1 -F", tgtadm_target_delete, "");
	assert_int_equal(tgtadm_uses(tgt.config, "tgt-1-1"), 1);
	assert_non_null(json_object_get(
		json_object_get(tgt.config, "backstores"), "tgt-1-1"));
	run("--op delete --mode target -t 2 -F", tgtadm_target_delete, "");
	check_config("{'targets': {}, 'backstores': {'disk': {'store': "
		     "'/d/x'}}}");
}

static void test_lun_update(void **state)
{
	(void)state;
	config_begin(LUNS("'1': 'd'", "'d': {'store': '/d/a'}"));
	run("--op update --mode lu -t 1 -l 1 -P "
	    "vendor_id=ACMEACMEA,product_id=p,product_rev=1,scsi_sn=s",
	    tgtadm_lun_update, "");
	check_config(LUNS("'1': 'd'",
			  "'d': {'store': '/d/a', 'vendor': 'ACMEACME', "
			  "'product': 'p', 'revision': '1', 'serial': 's', "
			  "'naa': '37be32ffcded2a6d'}"));
	config_begin(LUNS("'1': 'd'", "'d': {'store': '/d/a'}"));
	run("--op update --mode lu -t 1 -l 1 -P readonly=1,online=1",
	    tgtadm_lun_update, "");
	check_config(LUNS("'1': {'backstore': 'd', 'read-only': 'yes'}",
			  "'d': {'store': '/d/a'}"));
	run("--op update --mode lu -t 1 -l 1 -P readonly=0", tgtadm_lun_update,
	    "");
	/* write-cache off of tgt-admin */
	run("--op update --mode lu -t 1 -l 1 -P "
	    "mode_page=8:0:18:0x10:0:0xff:0xff:0:0:0xff:0xff:0xff:0xff:0x80:"
	    "0x14:0:0:0:0:0:0",
	    tgtadm_lun_update, "");
	check_config(LUNS("'1': 'd'", "'d': {'store': '/d/a', 'cache': "
				      "'write-through'}"));
	run("--op update --mode lu -t 1 -l 1 -P mode_page=8:0:18:0x14:0",
	    tgtadm_lun_update, "");
	check_config(LUNS("'1': 'd'",
			  "'d': {'store': '/d/a', 'cache': 'write-back'}"));
	assert_int_equal(json_array_size(tgt.notes), 0);
	run("--op update --mode lu -t 1 -l 1 -P scsi_id=x,mode_page=8:0",
	    tgtadm_lun_update, "");
	assert_int_equal(json_array_size(tgt.notes), 2);
	run("--op update --mode lu -t 1 -l 1 -P online=0", tgtadm_lun_update,
	    "tgtadm: invalid request: online=0: iserd cannot");
	run("--op update --mode lu -t 1 -l 1 -P readonly=2", tgtadm_lun_update,
	    "tgtadm: invalid request: 2: give 0 or 1");
	run("--op update --mode lu -t 1 -l 1 -P x=2", tgtadm_lun_update,
	    "tgtadm: invalid request: x: iserd does not have");
	run("--op update --mode lu -t 1 -l 1 -P vendor_id=", tgtadm_lun_update,
	    "tgtadm: invalid request\n");
	run("--op update --mode lu -t 1 -l 1 -P vendor_id", tgtadm_lun_update,
	    "tgtadm: invalid request\n");
	run("--op update --mode lu -t 1 -l 3 -P online=1", tgtadm_lun_update,
	    "tgtadm: can't find the logical unit\n");
	run("--op update --mode lu -t 3 -l 1 -P online=1", tgtadm_lun_update,
	    "tgtadm: can't find the target\n");
}

/* tgt names a disk by the digits of scsi_id; two disks never get one name. */
static void test_lun_identity(void **state)
{
	static const char id[] = "'store': '/d/a', 'naa': "
				 "'60000000000000000000000012345678'";
	char text[400];

	(void)state;
	config_begin(LUNS("'1': 'a', '2': 'b'",
			  "'a': {'store': '/d/a'}, 'b': {'store': '/d/b'}"));
	run("--op update --mode lu -t 1 -l 1 -P scsi_id=12345678",
	    tgtadm_lun_update, "");
	snprintf(text, sizeof(text),
		 LUNS("'1': 'a', '2': 'b'",
		      "'a': {%s}, 'b': {'store': '/d/b'}"),
		 id);
	check_config(text);
	run("--op update --mode lu -t 1 -l 1 -P scsi_id=12345678",
	    tgtadm_lun_update, "");
	run("--op update --mode lu -t 1 -l 2 -P scsi_id=x12345678,scsi_id=lu1",
	    tgtadm_lun_update, "");
	check_config(text);
	assert_int_equal(json_array_size(tgt.notes), 2);
	run("--op update --mode lu -t 1 -l 2 -P scsi_id=", tgtadm_lun_update,
	    "tgtadm: invalid request\n");
}

/* ---- accounts ---- */

#define ACCOUNT(name) "{'user': '" name "', 'secret-file': '/s/" name "'}"
#define ACCOUNTS \
 "'tgt-accounts': {'accounts': [" ACCOUNT("a") ", " ACCOUNT("b") "]}"

static void test_accounts(void **state)
{
	(void)state;
	config_begin("{'auth-groups': {" ACCOUNTS "}, 'targets': {" X
		     ": {'auth-group': 'any', 'tgt-id': '1'}}}");
	run("--op bind --mode account -u x -t 1", tgtadm_account_change,
	    "tgtadm: can't find the account\n");
	run("--op bind --mode account -u a -t 9", tgtadm_account_change,
	    "tgtadm: can't find the target\n");
	run("--op new --mode account -u a -p 123456789012", tgtadm_account_new,
	    "tgtadm: this account already exists\n");
	run("--op bind --mode account -u a -t 1", tgtadm_account_change, "");
	run("--op bind --mode account -u a -t 1", tgtadm_account_change,
	    "tgtadm: this account already exists\n");
	run("--op bind --mode account -u b -t 1 -O", tgtadm_account_change, "");
	run("--op bind --mode account -u a -t 1 -O", tgtadm_account_change,
	    "tgtadm: this target already has an outgoing account\n");
	check_config(
		"{'auth-groups': {" ACCOUNTS ", 'tgt-1': {'addresses': "
		"['0.0.0.0/0', '::/0'], 'accounts': [" ACCOUNT("a") "], 'mutual': " ACCOUNT(
			"b") "}}, 'targets': {" X
			     ": {'auth-group': 'tgt-1', 'tgt-id': '1'}}}");
	run("--op unbind --mode account -u b -t 1", tgtadm_account_change,
	    "tgtadm: can't find the account\n");
	run("--op unbind --mode account -u b -t 1 -O", tgtadm_account_change,
	    "");
	run("--op delete --mode account -u a", tgtadm_account_delete, "");
	check_config("{'auth-groups': {'tgt-accounts': {'accounts': [" ACCOUNT(
		"b") "]}, 'tgt-1': {'addresses': ['0.0.0.0/0', '::/0']}}, "
		     "'targets': {" X ": {'auth-group': 'tgt-1', 'tgt-id': "
		     "'1'}}}");
	run("--op delete --mode account -u x", tgtadm_account_delete,
	    "tgtadm: can't find the account\n");
}

/* The target authenticates only after the initiator (RFC 7143 §12.1.3). */
static void test_account_outgoing_alone(void **state)
{
	(void)state;
	config_begin("{'auth-groups': {" ACCOUNTS "}, 'targets': {" X
		     ": {'auth-group': 'any', 'tgt-id': '1'}}}");
	run("--op bind --mode account -u a -t 1 -O", tgtadm_account_change,
	    "tgtadm: invalid request: an outgoing account needs an incoming");
}

/* An account of a group that tgtadm did not make must not vanish from it: the group
 * would admit initiators without CHAP. */
static void test_account_of_others(void **state)
{
	(void)state;
	config_begin("{'auth-groups': {'lab': {'accounts': [" ACCOUNT(
		"a") "]}}, 'targets': {" X ": {'auth-group': 'lab', 'tgt-id': "
		     "'1'}}}");
	run("--op delete --mode account -u a", tgtadm_account_delete,
	    "tgtadm: invalid request: the account is in auth group lab");
	run("--op new --mode account -u a -p 123456789012", tgtadm_account_new,
	    "tgtadm: this account already exists\n");
}

static void test_account_discovery(void **state)
{
	(void)state;
	config_begin("{'auth-groups': {" ACCOUNTS "}, 'portal-groups': {'p': "
		     "{}, 'q': {'discovery-auth': 'none'}}}");
	run("--op bind --mode account -u a", tgtadm_account_change, "");
	check_config("{'auth-groups': {" ACCOUNTS
		     ", 'tgt-discovery': {'accounts': [" ACCOUNT(
			     "a") "]}}, 'portal-groups': {'p': "
				  "{'discovery-auth': 'tgt-discovery'}, 'q': "
				  "{'discovery-auth': 'none'}}}");
	run("--op unbind --mode account -u a", tgtadm_account_change, "");
	check_config("{'auth-groups': {" ACCOUNTS "}, 'portal-groups': {'p': "
		     "{}, 'q': {'discovery-auth': 'none'}}}");
}

/* The secret is in a file that only its owner can read. */
static void test_secret_file(void **state)
{
	char folder[] = "/tmp/tgtadm_test.XXXXXX", socket[64], state_dir[96];
	char first[sizeof(tgt.made)];
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(socket, sizeof(socket), "%s/ctl", folder);
	close(creat(socket, 0600));
	config_begin("{}");
	tgt.socket = socket;
	run("--op new --mode account -u a/../b -p 12345678901",
	    tgtadm_account_new, "tgtadm: invalid request: the secret has 11");
	assert_string_equal(tgt.made, "");
	run("--op new --mode account -u a/../b -p 123456789012",
	    tgtadm_account_new, "");
	snprintf(state_dir, sizeof(state_dir), "%s/tgtadm-secrets", folder);
	assert_int_equal(strncmp(tgt.made, state_dir, strlen(state_dir)), 0);
	assert_non_null(strstr(tgt.made, "/a_.._b."));
	assert_int_equal(stat(tgt.made, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 12);
	assert_int_equal(stat(state_dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	snprintf(first, sizeof(first), "%s", tgt.made);
	/* a directory that other users can enter is not used */
	chmod(state_dir, 0755);
	tgt.made[0] = '\0';
	run("--op new --mode account -u c -p 123456789012", tgtadm_account_new,
	    "tgtadm: ");
	assert_non_null(strstr(printed, "others may read or change it"));
	assert_string_equal(tgt.made, "");
	snprintf(tgt.made, sizeof(tgt.made), "%s", first);
	tgtadm_secret_remove(&tgt, socket); /* none of its files */
	assert_int_equal(stat(socket, &st), 0);
	tgtadm_secret_remove(&tgt, tgt.made);
	assert_int_equal(rmdir(state_dir), 0);
	unlink(socket);
	rmdir(folder);
}

/* ---- portals ---- */

static void test_portals(void **state)
{
	static const char *const names[][2] = {
		{ "3261", "127.0.0.1:3261" },	 { ":3261", "127.0.0.1:3261" },
		{ "10.0.0.1", "10.0.0.1:3260" }, { "10.0.0.1:1", "10.0.0.1:1" },
		{ "[::1]", "[::1]:3260" },	 { "[::1]:1", "[::1]:1" },
		{ "fd00::1", "[fd00::1]:3260" },
	};
	char name[TGTADM_PORTAL_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		tgtadm_portal_name(names[i][0], name);
		assert_string_equal(name, names[i][1]);
	}
	config_begin("{'targets': {" X ": {'tgt-id': '1'}}}");
	run("--op new --mode portal --param portal=10.0.0.1", tgtadm_portal_new,
	    "");
	check_config("{'targets': {" X ": {'tgt-id': '1', 'portal-groups': "
		     "['tgt']}}, 'portal-groups': {'tgt': {'listen': "
		     "['10.0.0.1:3260']}}}");
	run("--op new --mode portal --param portal=10.0.0.1:3260",
	    tgtadm_portal_new,
	    "tgtadm: invalid request: 10.0.0.1:3260 is a portal already");
	run("--op new --mode portal --param portal=10.0.0.1:3261",
	    tgtadm_portal_new, "");
	run("--op delete --mode portal --param portal=10.0.0.2",
	    tgtadm_portal_delete,
	    "tgtadm: invalid request: 10.0.0.2:3260 is not a portal");
	run("--op delete --mode portal --param portal=10.0.0.1",
	    tgtadm_portal_delete, "");
	run("--op delete --mode portal --param portal=10.0.0.1:3261",
	    tgtadm_portal_delete,
	    "tgtadm: invalid request: 10.0.0.1:3261 is the last portal");
	run("--op delete --mode portal --param nonsense", tgtadm_portal_delete,
	    "tgtadm: invalid request: nonsense: give portal=");
}

static int finish(void **state)
{
	(void)state;
	config_end();
	free(request.password);
	free(printed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_refused),
		cmocka_unit_test(test_options_good),
		cmocka_unit_test(test_password_is_wiped),
		cmocka_unit_test(test_password_file),
		cmocka_unit_test(test_number_targets),
		cmocka_unit_test(test_difference),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_rules_end_with_the_target),
		cmocka_unit_test(test_params),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_rules_of_others),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_luns),
		cmocka_unit_test(test_luns_of_ceph),
		cmocka_unit_test(test_luns_share),
		cmocka_unit_test(test_lun_update),
		cmocka_unit_test(test_lun_identity),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_account_outgoing_alone),
		cmocka_unit_test(test_account_of_others),
		cmocka_unit_test(test_account_discovery),
		cmocka_unit_test(test_secret_file),
		cmocka_unit_test(test_portals),
	};

	return cmocka_run_group_tests(tests, NULL, finish);
}
