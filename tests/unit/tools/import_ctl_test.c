/* SPDX-License-Identifier: BSD-2-Clause */
/* import_ctl_test.c: iserctl import of ctl.conf, construct by construct. */
#include "import_fixture.h"

/* ---- ctl.conf ---- */

#define CTL(body) "target " IQN " {\nauth-group no-authentication\n" body "}\n"

static void test_ctl_syntaxes_agree(void **state)
{
	static const char classic[] =
		"auth-group ag {\n chap \"u\" secretpass12;\n initiator-portal "
		"192.0.2.0/24\n}\nportal-group pg {\n discovery-auth-group "
		"no-authentication\n listen 192.0.2.1\n listen [::1]:3261\n}\n"
		"lun l { path /a\n blocksize 4096 }\ntarget " IQN
		" { alias \"A B\" auth-group ag portal-group pg\nlun 0 l\nlun "
		"1\n{\n path /b\n option vendor V\n}\n}\n";
	static const char ucl[] =
		"auth-group { ag { chap { user = u; secret = secretpass12 }\n"
		"initiator-portal = [ 192.0.2.0/24 ] } }\nportal-group \"pg\" {"
		" discovery-auth-group = no-authentication\nlisten = [ "
		"\"192.0.2.1\", \"[::1]:3261\" ] }\n/* a /* nested */ comment "
		"*/\nlun { l { path: /a, blocksize: 4096 } }\ntarget { \"" IQN
		"\" { alias 'A B'\nauth-group = ag # comment\nportal-group = "
		"pg;\nlun = [ { number = 0, name = l }, { number = 1; path = "
		"/b; options { vendor = V } } ] } }\n";
	struct result a = { 0 }, b = { 0 };

	(void)state;
	assert_false(tree_ctl_is_ucl(classic, strlen(classic)));
	assert_true(tree_ctl_is_ucl(ucl, strlen(ucl)));
	import_bytes(&a, "ctl", classic, strlen(classic));
	import_bytes(&b, "ctl", ucl, strlen(ucl));
	assert_null(a.error);
	assert_null(b.error);
	assert_string_equal(a.yaml, b.yaml);
	assert_non_null(strstr(a.yaml, "luns: {0: l, 1: disk-1}"));
	assert_non_null(strstr(a.yaml, "disk-1: {store: /b, vendor: V}"));
	assert_non_null(strstr(a.yaml, "listen: [\"192.0.2.1:3260\", "
				       "\"[::1]:3261\"]"));
	end_result(&a);
	end_result(&b);
}

static void test_ctl_syntax_errors(void **state)
{
	(void)state;
	expect_error("ctl", "auth-group a {\n",
		     "F:1: auth-group a: the section "
		     "has no end");
	expect_error("ctl", "auth-group a {\n}\n}\n",
		     "F:3: } without a section");
	expect_error("ctl", "debug 1\n;\ndebug\n",
		     "F:3: debug: 1 words expected after it, found 0");
	expect_error("ctl", "auth-group a {\nchap u }\n",
		     "F:2: chap: 2 words expected after it, found 1");
	expect_error("ctl", "pidfile \"x\n", "F:1: a string has no closing");
	expect_error("ctl", "debug 1 {\n}\n", "F:1: { without a keyword");
	expect_bytes_error("ctl", "debug\0", 6, "F:1: a NUL character");
	expect_error("ctl", "target { a = <<EOD\nx\nEOD\n}\n",
		     "F:1: a value of several lines");
	expect_error("ctl", ".load \"/x\"\n", "F:1: .load: this macro is not");
	expect_error("ctl", "target {\n a = [ 1 2 ", "F:2: ',' or ']'");
	expect_error("ctl", "target {\n a = 1\n", "F:3: '}' expected");
	expect_error("ctl", "target {\n /* a = 1\n", "F:3: a key expected");
	/* a colon ends a key of UCL */
	expect_error("ctl", "\ntarget " IQN " {\nalias = A\n}\n",
		     "F:2: target: the name of the section has characters that "
		     "UCL takes in quotes only; write target \"NAME\" {");
}

/* As libucl: a comment ends a word, also over lines, and brackets may be in pairs. */
static void test_ucl_words(void **state)
{
	(void)state;
	expect("ctl",
	       "target { \"" IQN "\" { auth-group = no-access /* c\n"
	       "auth-group = no-authentication */\nlun { 0 { path = /a{b}[c]\n"
	       "options { readonly = on; writecache = off /* c */ } } } } }\n",
	       "{store: \"/a{b}[c]\", read-only: yes, cache: write-through}",
	       "auth-group: none", NULL);
	expect_error("ctl", "target { \"" IQN "\" { alias = a]b } }\n",
		     "F:1: a key expected, found ']'");
}

/* iserd refuses an alias of more bytes than a name has (RFC 7143 section 13.7). */
static void test_ctl_alias(void **state)
{
	char text[512];

	(void)state;
	for (int len = 223; len <= 224; len++) {
		snprintf(text, sizeof(text), CTL("alias %0*d\n"), len, 1);
		if (len == 223)
			expect("ctl", text, "    alias: \"0", NULL);
		else
			expect("ctl", text, IQN "\":\n    auth-group: any",
			       "alias of " IQN
			       ": not carried over: longer than "
			       "223 bytes",
			       NULL);
	}
}

/* What a file includes belongs to the object that includes it. */
static void test_ucl_include(void **state)
{
	(void)state;
	included = "target { \"" IQN "\" { lun { 0 { path = /a } } } }\n";
	expect("ctl", ".include \"/etc/x\"\n", "luns: {0: disk-0}", NULL);
	included = "{ lun { 0 { path = /a } }\nfoo = 1\n}\n";
	expect("ctl",
	       "target { \"" IQN "\" { alias = A; .include(try=true) /etc/x\n"
	       "auth-group = no-authentication } }\n",
	       "alias: A", "luns: {0: disk-0}", "auth-group: any",
	       "/etc/x:2: " IQN ": foo:", NULL);
	expect("ctl", ".include(try=true, glob=true) \"/missing/*\"\n",
	       "targets: {}", NULL);
	expect("ctl", ".try_include '/missing'\n", "targets: {}", NULL);
	expect_error("ctl", "\n.include \"/missing\"\n",
		     "F:2: include /missing: No such file");
	included = "target {\n a = \n";
	expect_error("ctl", ".try_include /bad\n",
		     "/bad:2: a value is missing");
	included = ".include /itself\n";
	expect_error("ctl", ".include(try=true) /itself\n",
		     "/itself:1: include /itself: files include each other");
	expect_error("ctl", ".include = \"/x\"\n",
		     "F:1: .include: not the name");
	expect_error("ctl", ".include \"/x*\"\n",
		     "F:1: .include: not the name");
	expect_error("ctl", ".include [ /x ]\n", "F:1: .include: not the name");
	expect_error("ctl", ".include(sign=true) \"/x\"\n",
		     "F:1: .include(sign=true): a parameter other than");
	expect_error("ctl", ".include(try=true\n", "F:1: ')' expected");
	/* each is inside the other for ever */
	included = ".include /a\n.include /a\n";
	expect_error("ctl", ".include /a\n", "/a:1: include /a: files include");
}

/* ctld denies access unless the file permits it. */
static void test_ctl_access(void **state)
{
	(void)state;
	expect("ctl", "target " IQN " { lun 0 { path /a } }\n",
	       "auth-group: none", NULL);
	expect("ctl", CTL("lun 0 { path /a }\n"), "auth-group: any", NULL);
	expect("ctl", "auth-group a { initiator-name " IQN " }\n",
	       "a: auth group none", NULL);
	expect("ctl",
	       "auth-group a { auth-type none\ninitiator-name " IQN " }\n"
	       "target " IQN " { auth-group a\nlun 0 { path /a } }\n",
	       "initiators: [\"" IQN "\"]", "auth-group: a", NULL);
	expect("ctl",
	       "auth-group a { auth-type deny\nchap u secretpass12 }\n"
	       "target " IQN " { auth-group a }\n",
	       "auth-group: none", NULL);
	expect("ctl", "target " IQN " { auth-group missing }\n",
	       "auth-group missing: the file does not define it",
	       "auth-group: none", NULL);
	expect("ctl",
	       "target " IQN " { chap-mutual u secretpass12 m secretpass13 }\n",
	       "- {user: u, ", "mutual: {user: m, ", NULL);
	expect("ctl",
	       "auth-group default { chap u secretpass12 }\ntarget " IQN
	       " { alias a }\n",
	       "auth-group: default", NULL);
}

static void test_ctl_portals(void **state)
{
	(void)state;
	expect("ctl", CTL(""), "default:",
	       "listen: [\"0.0.0.0:3260\", "
	       "\"[::]:3260\"]",
	       "discovery: none", NULL);
	expect("ctl",
	       "portal-group p { listen ::1\ntag 7\ndiscovery-filter "
	       "portal-name\ndiscovery-auth-group no-authentication\n"
	       "dscp AF11 }\n",
	       "tag: 7", "listen: [\"[::1]:3260\"]\n    transport: [tcp]\n",
	       "p: dscp AF11: not carried over", NULL);
	expect("ctl",
	       "portal-group p { listen 0.0.0.0:3260 }\nportal-group q { "
	       "listen 0.0.0.0\nlisten host }\n" CTL(""),
	       "listen 0.0.0.0:3260: left out: the portal group p",
	       "listen host: left out: not a numeric",
	       "listen host: left out: not a numeric",
	       "listen: [\"[::]:3260\"]", NULL);
	expect("ctl",
	       "portal-group p { listen 192.0.2.1:99999\ntag 2 }\nportal-group "
	       "r { listen [::1\nlisten ::1 }\nportal-group q { listen "
	       "192.0.2.2 }\n",
	       "listen 192.0.2.1:99999: left out", "listen [::1: left out",
	       "  p:\n    tag: 2\n    listen: [\"127.0.0.1:0\"]",
	       "  r:\n    tag: 3\n    listen: [\"[::1]:3260\"]",
	       "  q:\n    tag: 4\n", NULL);
	expect("ctl",
	       "auth-group a { chap u secretpass12 }\nportal-group p { listen "
	       "192.0.2.1 }\ntarget " IQN " { portal-group p a\nportal-group "
	       "missing }\n",
	       "auth-group: a", "portal-group missing: left out", NULL);
	expect("ctl", "target naa.5001000000000001 { port isp0 }\n",
	       "target naa.5001000000000001: left out: it has no portal-group",
	       "targets: {}", NULL);
}

/* Linux has one listener of a port either at all addresses or at each. */
static void test_all_addresses(void **state)
{
	(void)state;
	expect("ctl",
	       "portal-group p { listen 192.0.2.1 }\nportal-group q { listen "
	       "0.0.0.0\nlisten [::] }\nportal-group r { listen 192.0.2.2\n"
	       "listen [::]:3261\nlisten [::1]:3261 }\n",
	       "F:2: listen 0.0.0.0:3260 of portal group q: left out: "
	       "192.0.2.1:3260 is of portal group p",
	       "listen: [\"192.0.2.1:3260\"]", "listen: [\"[::]:3260\"]",
	       "listen: [\"192.0.2.2:3260\", \"[::]:3261\"]", NULL);
	expect("ctl",
	       "portal-group p { listen 0.0.0.0\nlisten [::1] }\n" CTL(""),
	       "listen: [\"0.0.0.0:3260\", \"[::1]:3260\"]",
	       "listen 0.0.0.0:3260: left out: the portal group p has this",
	       "listen [::]:3260 of portal group default: left out",
	       "portal group default: has no address; it listens at 127.0.0.1 "
	       "only",
	       NULL);
}

static void test_ctl_luns(void **state)
{
	(void)state;
	expect("ctl",
	       CTL("lun 0 { path /a serial S blocksize 512 option readonly on "
		   "option rpm 7200 option writecache off size 4G device-id "
		   "D }\nlun 1 { backend ramdisk size 4m }\nlun 2 { path /b "
		   "device-type cd }\nlun 3 { backend block }\nlun 4 missing\n"
		   "lun x { path /c }\nlun 5 { path /a }\n"),
	       "{store: /a, read-only: yes, block-size: 512, serial: S, "
	       "rotational: yes, cache: write-through}",
	       "device-id D: not carried over", "{store: \"ram:4M\"}",
	       "{store: \"cd:/b\"}", "LUN disk-3: left out: it has no path",
	       "lun 4: left out: missing is not defined",
	       "lun x: left out: not a number",
	       "LUN 5: left out: /a is LUN 0 of the same map", NULL);
}

static void test_ctl_identity(void **state)
{
	(void)state;
	expect("ctl",
	       "lun a { path /a\noption naa 0x5001000000000001\noption eui "
	       "0025385a91b0326f }\nlun b { path /b\noption naa "
	       "0x6001-405f-81d4-fae7dec41d0a\noption eui 0x1 }\nlun c { path "
	       "/c\noption naa 0x4ee0ebaf06a1acbb\noption eui 0xg }\nlun d { "
	       "path /d\noption eui 0 }\n",
	       "naa: \"5001000000000001\", eui: \"0025385a91b0326f\"",
	       "naa: \"6001405f81d4fae7dec41d0a00000000\", eui: "
	       "\"1000000000000000\"",
	       "{store: /c}", "{store: /d}",
	       "NAA identifier 4ee0ebaf06a1acbb of /c: not carried over",
	       "identifier g: not carried over: not up to 32", "eui 0 of /d",
	       "F:7: identity of /c, and of other stores without the option "
	       "naa or eui: initiators see new names",
	       NULL);
	expect_notes("ctl", "lun a { path /a\noption naa 0x5001000000000001 }",
		     0);
}

static void test_ctl_globals(void **state)
{
	(void)state;
	expect("ctl",
	       "pidfile /p\nisns-server 192.0.2.1\nunknown a b c\n"
	       "transport-group t { listen tcp 192.0.2.1 }\nlun 0 x\n",
	       "F:2: the file: isns-server 192.0.2.1: not carried over: "
	       "iser-isns(8)",
	       "F:3: the file: unknown: not carried over",
	       "F:4: the file: transport-group: not carried over: it is for "
	       "NVMe",
	       NULL);
}

#define OPEN "auth-group no-authentication\n"

/* A portal group that ctld does not serve is not served by iserd. */
static void test_ctl_addresses_are_kept(void **state)
{
	(void)state;
	expect("ctl",
	       "portal-group p { listen 192.0.2.1\nforeign }\nportal-group q { "
	       "listen 192.0.2.2 }\ntarget " IQN " {\n" OPEN
	       "portal-group p\nportal-group q }\n",
	       "portal-group p: left out: it is foreign", "portal-groups: [q]",
	       NULL);
	expect("ctl",
	       "portal-group p { foreign }\ntarget " IQN " {\n" OPEN
	       "portal-group p }\n",
	       "has no portal group left", "portal-groups: [unreachable]",
	       NULL);
	/* the transports */
	expect("ctl",
	       "portal-group p { listen 192.0.2.1\nlisten-iser 192.0.2.2 }\n"
	       "portal-group q { listen-iser 192.0.2.3 }\nportal-group r { "
	       "listen 192.0.2.4\nlisten-iser 192.0.2.4 }\ntarget " IQN
	       " {\n" OPEN "portal-group p }\n",
	       "listen: [\"192.0.2.1:3260\"]\n    transport: [tcp]\n",
	       "  p-iser:\n    tag: 2\n    listen: "
	       "[\"192.0.2.2:3260\"]\n    transport: [iser]\n",
	       "listen: [\"192.0.2.3:3260\"]\n    transport: [iser]\n",
	       "listen: [\"192.0.2.4:3260\"]\n    transport: [tcp, iser]\n",
	       "portal-groups: [p, p-iser]", NULL);
}

static void test_ctl_redirects(void **state)
{
	(void)state;
	expect("ctl", CTL("redirect 192.0.2.9\n"),
	       "redirects:\n      - {to: [\"192.0.2.9:3260\"]}", NULL);
	expect("ctl",
	       "portal-group p { listen 192.0.2.1\nredirect [2001:db8::1]:3261 "
	       "}\ntarget " IQN " {\n" OPEN "portal-group p }\n",
	       "redirects:\n      - {to: [\"[2001:db8::1]:3261\"]}", NULL);
	/* not all of its addresses redirect */
	expect("ctl",
	       "portal-group p { listen 192.0.2.1\nredirect 192.0.2.9 }\n"
	       "portal-group q { listen 192.0.2.2 }\ntarget " IQN " {\n" OPEN
	       "portal-group p\nportal-group q }\n",
	       "a portal group is left out: it redirects",
	       "portal-groups: [q]\n    luns: {}", NULL);
	expect("ctl", CTL("redirect host.example\n"),
	       "redirect host.example: not a numeric address",
	       "auth-group: none", NULL);
}

/* Where the file says two things, or has another rule in a portal group, no rule
 * is relaxed. */
static void test_ctl_access_is_not_relaxed(void **state)
{
	(void)state;
	expect("ctl",
	       "auth-group a { chap u secretpass12 }\ntarget " IQN
	       " { auth-group a\nauth-type none\n}\n",
	       "there are several rules", "auth-group: none", NULL);
	expect("ctl",
	       "auth-group a { auth-type chap\nauth-type none\nchap u "
	       "secretpass12 }\ntarget " IQN " { auth-group a }\n",
	       "there are several rules", "auth-group: none", NULL);
	expect("ctl",
	       "auth-group a { chap u secretpass12 }\nauth-group a { auth-type "
	       "none }\ntarget " IQN " { auth-group a }\n",
	       "there are several rules", "auth-group: none", NULL);
	expect("ctl",
	       "auth-group a { chap u secretpass12 }\nportal-group p { listen "
	       "192.0.2.1 }\nportal-group q { listen 192.0.2.2 }\ntarget " IQN
	       " {\n" OPEN "portal-group p\nportal-group q a }\n",
	       "a portal group is left out: it has another auth group",
	       "auth-group: any\n    portal-groups: [p]", NULL);
	expect("ctl",
	       "lun l { path /a }\nlun l { path /b }\ntarget " IQN " {\n" OPEN
	       "lun 0 l }\n",
	       "LUN l: there are two of them", "luns: {}", NULL);
	expect("ctl",
	       CTL("lun 0 { path /a }\n") "target " IQN "2 {\n" OPEN
					  "lun 0 { path /a\noption readonly on "
					  "}\n}\n",
	       "luns: {0: disk-0}",
	       "luns: {0: {backstore: disk-0, read-only: yes}}", NULL);
	/* ctld has these groups already, and refuses the file */
	expect("ctl",
	       "auth-group no-access {\nauth-type none\n}\ntarget " IQN
	       " {\nauth-group no-access\nlun 0 { path /a }\n}\n",
	       "auth-group: none", "no-access: auth group none", NULL);
	expect("ctl",
	       "auth-group no-authentication {\nauth-type none\n}\n" CTL(
		       "lun 0 { path /a }\n"),
	       "auth-group: none", NULL);
	/* of two rules for discovery, which ctld refuses, none opens it */
	expect("ctl",
	       "auth-group a { chap u secretpass12 }\nportal-group p { listen "
	       "192.0.2.1\ndiscovery-auth-group a\ndiscovery-auth-group "
	       "no-authentication\n}\n",
	       "discovery: none", "p: no discovery sessions", NULL);
	expect("ctl",
	       "portal-group p { listen 192.0.2.1\ndiscovery-auth-group "
	       "no-authentication\ndiscovery-filter portal-name\n"
	       "discovery-filter none\n}\n",
	       "transport: [tcp]\ntargets:", NULL);
	/* of two portal groups, the other one may be meant */
	expect("ctl",
	       "portal-group p { listen 192.0.2.1 }\nportal-group p { listen "
	       "0.0.0.0 }\ntarget " IQN " {\n" OPEN "portal-group p }\n",
	       "portal-group p: there are two of them",
	       "left out: there are two of its name",
	       "listen: [\"192.0.2.1:3260\"]", "portal-groups: [unreachable]",
	       NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ctl_syntaxes_agree),
		cmocka_unit_test(test_ctl_syntax_errors),
		cmocka_unit_test(test_ucl_include),
		cmocka_unit_test(test_ucl_words),
		cmocka_unit_test(test_ctl_alias),
		cmocka_unit_test(test_ctl_access),
		cmocka_unit_test(test_ctl_portals),
		cmocka_unit_test(test_all_addresses),
		cmocka_unit_test(test_ctl_luns),
		cmocka_unit_test(test_ctl_identity),
		cmocka_unit_test(test_ctl_globals),
		cmocka_unit_test(test_ctl_addresses_are_kept),
		cmocka_unit_test(test_ctl_redirects),
		cmocka_unit_test(test_ctl_access_is_not_relaxed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
