/* SPDX-License-Identifier: BSD-2-Clause */
/* import_lio_ctl_test.c: iserctl import of saveconfig.json and ctl.conf, construct
 * by construct. */
#include "import_fixture.h"

/* ---- JSON and UCL ---- */

static void test_json_errors(void **state)
{
	(void)state;
	expect_error("lio", "", "F:1: '{' expected, found the end of the file");
	expect_error("lio", "[1]", "F:1: '{' expected, found '['");
	expect_error("lio", "{\n\"a\" 1}", "F:2: ':' expected, found '1'");
	expect_error("lio", "{\"a\": 1\n\"b\": 2}", "F:2: ',' or '}'");
	expect_error("lio", "{\"a\": [1\n 2]}", "F:2: ',' or ']'");
	expect_error("lio", "{\"a\": \"x", "F:1: a string has no closing");
	expect_error("lio", "{\"a\": \"x\n\"}", "F:1: a string has no closing");
	expect_error("lio", "{\"a\": \"\\q\"}", "F:1: an unknown escape");
	expect_error("lio", "{\"a\": \"\\u12\"}", "F:1: an unknown escape");
	expect_error("lio", "{\"a\": \"\\ud800\"}", "F:1: a text is not UTF-8");
	expect_error("lio", "{\"a\": \"\\u001b\"}",
		     "F:1: a text is not UTF-8 or has control characters");
	expect_error("lio", "{\"a\": yes}", "F:1: a: not a JSON value");
	expect_error("lio", "{\"a\": [x]}", "F:1: an element of an array: not");
	expect_error("lio", "{\"a\": }", "F:1: a value is missing before '}'");
	expect_error("lio", "{} x", "F:1: the end of the file expected");
	expect_error("lio", "{\"a\": 1,}", "F:1: a key in quotes");
	expect_error("lio", "{a: 1}", "F:1: a key in quotes");
	/* RFC 8259 section 4: LIO uses the last, other software the first */
	expect_error("lio", "{\"a\":1,\n\"a\":0}", "F:2: \"a\" is there twice");
	expect_bytes_error("lio", "{\0}", 3, "F:1: a NUL character");
}

static void test_json_depth(void **state)
{
	char text[2 * TREE_DEPTH + 8] = "{\"a\":";

	(void)state;
	for (unsigned i = 0; i < TREE_DEPTH; i++)
		strcat(text, "[");
	expect_error("lio", text, "F:1: more than 32 sections");
}

#define SO(extra)                                                                   \
 "{\"storage_objects\":[{\"name\":\"d\",\"plugin\":\"fileio\",\"dev\":\"/d\"" extra \
 "}]"
#define LUN0 \
 "\"luns\":[{\"index\":0,\"storage_object\":\"/backstores/fileio/d\"}]"
#define PORTAL "\"portals\":[{\"ip_address\":\"192.0.2.1\",\"port\":3260}]"
/* A file of LIO with one target and one TPG. */
#define LIO(tpg)                                      \
 SO("")                                               \
 ",\"targets\":[{\"fabric\":\"iscsi\",\"wwn\":\"" IQN \
 "\",\"tpgs\":[{\"tag\":1,\"enable\":true," tpg "}]}]}"
#define TARGET(name, tpgs) \
 "{\"fabric\":\"iscsi\",\"wwn\":\"" name "\",\"tpgs\":[" tpgs "]}"
#define ATTRIBUTES(list) "\"attributes\":{" list "}"
#define DEMO                                                 \
 ATTRIBUTES("\"generate_node_acls\":1,\"authentication\":0," \
	    "\"demo_mode_write_protect\":0")
#define NO_CHAP ATTRIBUTES("\"authentication\":0")
#define CHAP(user) \
 "\"chap_userid\":\"" user "\",\"chap_password\":\"secretpass12\""
#define NODE(x) "iqn.2026-01.com.example:" x
/* An ACL with all LUNs and more members. */
#define ACL(x, more)                                            \
 "{\"node_wwn\":\"" NODE(x) "\",\"mapped_luns\":[{\"index\":0," \
			    "\"tpg_lun\":0}]" more "}"

static void test_json_strings(void **state)
{
	(void)state;
	expect("lio",
	       LIO(LUN0 "," PORTAL ",\"parameters\":{\"TargetAlias\":"
			"\"\\u00e4\\ud83d\\ude00\\/\\\\\"}"),
	       "alias: \"\xc3\xa4\xf0\x9f\x98\x80/\\\\\"", NULL);
	expect("lio", SO(",\"wwn\":null,\"write_back\":true") "}",
	       "d: {store: /d}", NULL);
}

/* ---- LIO ---- */

static void test_lio_storage(void **state)
{
	(void)state;
	expect("lio",
	       SO(",\"write_back\":true,\"wwn\":\"W\",\"attributes\":{"
		  "\"block_size\":4096,\"is_nonrot\":1,\"emulate_pr\":0}") "}",
	       "d: {store: /d, block-size: 4096, serial: W, "
	       "rotational: no}",
	       "d: emulate_pr 0: not carried over", NULL);
	expect("lio", SO(",\"write_back\":false,\"readonly\":true") "}",
	       "d: {store: /d, read-only: yes, cache: write-through}", NULL);
	/* rtslib's default */
	expect("lio", SO("") "}", "d: {store: /d, cache: write-through}", NULL);
	expect("lio",
	       SO(",\"write_back\":true," ATTRIBUTES(
		       "\"emulate_write_cache\":0")) "}",
	       "d: {store: /d, cache: write-through}", NULL);
	/* the kernel reports the cache of a block device, whatever this says */
	expect("lio",
	       "{\"storage_objects\":[{\"name\":\"b\",\"plugin\":\"block\","
	       "\"dev\":\"/b\",\"write_back\":false," ATTRIBUTES(
		       "\"emulate_write_cache\":0") "}]}",
	       "b: {store: /b}", NULL);
	expect("lio",
	       SO(",\"vendor_id\":\"V\",\"revision\":\"R\"," ATTRIBUTES(
		       "\"emulate_model_alias\":1,\"pi_prot_type\":1,"
		       "\"new\":5")) "}",
	       "vendor: V, product: d, revision: R",
	       "pi_prot_type 1: not carried over: iserd has the field "
	       "protection of backstores.NAME",
	       "d: new: not carried over: not a setting of a storage object",
	       NULL);
	expect("lio",
	       "{\"storage_objects\":[{\"name\":\"r\",\"plugin\":\"ramdisk\","
	       "\"size\":1048576},{\"name\":\"n\",\"plugin\":\"ramdisk\","
	       "\"size\":4096,\"nullio\":true},{\"name\":\"p\",\"plugin\":"
	       "\"pscsi\",\"dev\":\"/dev/sg0\"},{\"name\":\"u\",\"plugin\":"
	       "\"user\",\"config\":\"rbd/p/x;conf=/c;osd_op_timeout=30\"},"
	       "{\"name\":\"v\",\"plugin\":\"user\",\"config\":"
	       "\"qcow//srv/secret\"},{\"name\":\"q\",\"plugin\":"
	       "\"new\",\"dev\":\"/q\"},{\"name\":\"e\",\"plugin\":"
	       "\"block\"},{\"plugin\":\"block\"}]}",
	       "r: {store: \"ram:1048576\"}", "ramdisk r: the data are not",
	       "\"n\": {store: \"null:4096\"}", "p: {store: \"scsi:/dev/sg0\"}",
	       "u: {store: \"rbd:p/x,conf=/c\"}",
	       "option osd_op_timeout: not carried over",
	       "storage object v: left out: iserd does not have this handler of "
	       "tcmu-runner (qcow)",
	       "unknown plugin new", "a LUN: left out: it has no path",
	       "without name or plugin", NULL);
	expect("lio",
	       "{\"storage_objects\":[{\"name\":\"r\",\"plugin\":\"ramdisk\","
	       "\"size\":1000}]}",
	       "size 1000: the ramdisk is left out", NULL);
}

#define FILEIO(name, dev, more)                                \
 "{\"name\":\"" name "\",\"plugin\":\"fileio\",\"dev\":\"" dev \
 "\",\"write_back\":true" more "}"

/* The NAA identifier is that of the kernel, spc_gen_naa_6h_vendor_specific. */
static void test_lio_identity(void **state)
{
	(void)state;
	expect("lio",
	       SO(",\"wwn\":\"f81d4fae-7dec-41d0-a765-00a0c91e6bf6\"") "}",
	       "serial: f81d4fae-7dec-41d0-a765-00a0c91e6bf6, naa: "
	       "\"6001405f81d4fae7dec41d0a76500a0c\"",
	       NULL);
	expect("lio", SO(",\"wwn\":\"log1\"") "}",
	       "{store: /d, serial: log1, c", "fewer than 8 hexadecimal digits",
	       "give naa: 60014051000000000000000000000000 to keep it", NULL);
	expect("lio",
	       SO(",\"wwn\":\"ABCDEF01\",\"company_id\":\"0xabcdef\"") "}",
	       "naa: \"6abcdefabcdef0100000000000000000\"", NULL);
	expect("lio", SO(",\"wwn\":\"AB\",\"company_id\":16777216") "}",
	       "company_id 16777216 of /d: not carried over",
	       "{store: /d, serial: AB, cache", NULL);
	expect("lio",
	       "{\"storage_objects\":[" FILEIO(
		       "a", "/a",
		       ",\"wwn\":\"12345678\"") "," FILEIO("b", "/b",
							   ",\"wwn\":\"x12345678\"") "]}",
	       "a: {store: /a, serial: \"12345678\", naa:",
	       "b: {store: /b, serial: x12345678}",
	       "of /b: not carried over: /a", NULL);
}

#define LUN(n, so) \
 "{\"index\":" n ",\"storage_object\":\"/backstores/fileio/" so "\"}"

/* One file is one backstore, and each LUN has the rights of its storage object. */
static void test_lio_storage_twice(void **state)
{
	(void)state;
	expect("lio",
	       "{\"storage_objects\":[" FILEIO("a", "/d", "") "," FILEIO("b", "/d", ",\"readonly\":true") "],\"targets\":[" TARGET(
		       IQN,
		       "{\"luns\":[" LUN("0", "b") "]," NO_CHAP ","
						   "\"node_acls\":[" ACL(
							   "n", "") "]}") "]}",
	       "luns: {0: {backstore: a, read-only: yes}}", NULL);
	expect("lio",
	       "{\"storage_objects\":[" FILEIO("a", "/d", "") "," FILEIO(
		       "a", "/e",
		       "") "],\"targets\":[" TARGET(IQN,
						    "{\"luns\":[" LUN(
							    "0", "a") "]," DEMO
								      "}") "]}",
	       "storage object /backstores/fileio/a: there are two of them",
	       "LUN 0: left out", "luns: {}", NULL);
}

static void test_lio_access(void **state)
{
	(void)state;
	/* without ACLs and without demo mode LIO admits no initiator */
	expect("lio", LIO(LUN0 "," PORTAL), "auth-group: none", NULL);
	expect("lio", LIO(LUN0 "," PORTAL "," DEMO), "auth-group: any",
	       "luns: {0: d}", "listen: [\"192.0.2.1:3260\"]", NULL);
	/* demo mode is read-only unless the file says otherwise */
	expect("lio",
	       LIO(LUN0 "," PORTAL "," ATTRIBUTES(
		       "\"generate_node_acls\":1,\"authentication\":0")),
	       "luns: {0: {backstore: d, read-only: yes}}",
	       "read-only for initiators without an ACL", NULL);
	expect("lio",
	       LIO(LUN0 "," PORTAL "," NO_CHAP ",\"node_acls\":[{\"node_wwn\":"
			"\"iqn.2026-01.com.example:n\",\"mapped_luns\":[{"
			"\"index\":3,\"tpg_lun\":0,\"write_protect\":true}]}]"),
	       "initiators: [\"iqn.2026-01.com.example:n\"]",
	       "- {initiators: [\"iqn.2026-01.com.example:n\"], luns: {3: "
	       "{backstore: d, read-only: yes}}}",
	       NULL);
	/* the whole map needs none of its own */
	expect_notes("lio",
		     LIO(LUN0 "," PORTAL "," NO_CHAP
			      ",\"node_acls\":[" ACL("n", "") "]"),
		     1);
}

/* An attribute that is missing has the kernel's default: CHAP is demanded, and
 * initiators need an ACL. One that the kernel refuses does not open the target. */
static void test_lio_access_is_not_relaxed(void **state)
{
	(void)state;
	expect("lio", LIO(LUN0 "," PORTAL ",\"node_acls\":[" ACL("n", "") "]"),
	       "auth-group: none", NULL);
	expect("lio",
	       LIO(LUN0 "," PORTAL ",\"attributes\":null,\"node_acls\":[" ACL(
		       "n", "," CHAP("u")) "]"),
	       "- {user: u, ", "auth-group: disk", NULL);
	expect("lio",
	       LIO(LUN0 "," PORTAL "," ATTRIBUTES(
		       "\"authentication\":\"no\",\"generate_node_acls\":true"
		       ",\"demo_mode_write_protect\":[]")),
	       "authentication: neither 0 nor 1; 1 is used",
	       "generate_node_acls: neither 0 nor 1; 0 is used",
	       "auth-group: none", NULL);
	expect("lio",
	       LIO(LUN0
		   "," PORTAL
		   "," ATTRIBUTES("\"authentication\":0,\"prod_mode_write_protect\":1") ",\"node_acls\":[" ACL(
			   "n", "") "]"),
	       "luns: {0: {backstore: d, read-only: yes}}}", NULL);
	expect("lio", SO(",\"readonly\":\"yes\"") "}",
	       "d: {store: /d, read-only: yes, cache: write-through}",
	       "readonly: neither true nor false", NULL);
}

/* The attribute of an ACL counts before that of its TPG. */
static void test_lio_chap_of_an_acl(void **state)
{
	(void)state;
	expect("lio",
	       LIO(LUN0 "," PORTAL "," NO_CHAP ",\"node_acls\":[" ACL(
		       "n", "," CHAP("u") "," ATTRIBUTES(
				    "\"authentication\":1")) "," ACL("o",
								     "") "]"),
	       "- {user: u, ", "initiators: [\"" NODE("n") "\", \"" NODE("o"),
	       "ACL of " NODE("o") ": LIO admits the initiator without CHAP",
	       NULL);
	expect("lio",
	       LIO(LUN0 "," PORTAL "," NO_CHAP ",\"node_acls\":[" ACL(
		       "n", "," ATTRIBUTES("\"authentication\":\"x\"")) "]"),
	       "auth-group: none", NULL);
	/* -1 stands for the word of the TPG */
	expect("lio",
	       LIO(LUN0 "," PORTAL "," NO_CHAP ",\"node_acls\":[" ACL(
		       "n", "," ATTRIBUTES("\"authentication\":-1")) "]"),
	       "auth-group: disk",
	       "    initiators: [\"" NODE("n") "\"]\nportal-groups:", NULL);
	/* 0 does not open a target that demands CHAP of others */
	expect("lio",
	       LIO(LUN0
		   "," PORTAL
		   ",\"node_acls\":[" ACL("n", "," CHAP("u")) "," ACL(
			   "o", "," ATTRIBUTES("\"authentication\":0")) "]"),
	       "- {user: u, ",
	       "ACL of " NODE("o") ": LIO admits the initiator without CHAP",
	       NULL);
	/* an ACL in demo mode */
	expect("lio",
	       LIO(LUN0 "," PORTAL "," DEMO ",\"node_acls\":[" ACL(
		       "n", "," CHAP("u") "," ATTRIBUTES(
				    "\"authentication\":1")) "]"),
	       "- {user: u, ", "auth-group: disk",
	       "initiators without an ACL: the TPG has no account", NULL);
}

static void test_lio_chap(void **state)
{
	static const char acl[] =
		LIO(LUN0 "," PORTAL ",\"attributes\":{\"authentication\":1},"
			 "\"node_acls\":[{\"node_wwn\":\"iqn.2026-01.com."
			 "example:n\",\"chap_userid\":\"u\",\"chap_password\":"
			 "\"secretpass12\",\"chap_mutual_userid\":\"m\","
			 "\"chap_mutual_password\":\"secretpass13\"},{"
			 "\"node_wwn\":\"iqn.2026-01.com.example:o\"}]");

	(void)state;
	expect("lio", acl, "- {user: u, secret-file: /s/disk.1.secret}",
	       "mutual: {user: m, secret-file: /s/disk.mutual.secret}",
	       "ACL of iqn.2026-01.com.example:o: has no account", NULL);
	/* CHAP that is required without an account admits no initiator */
	expect("lio",
	       LIO(LUN0 "," PORTAL ",\"attributes\":{\"authentication\":1,"
			"\"generate_node_acls\":1}"),
	       "auth-group: none", NULL);
	expect("lio",
	       LIO(LUN0 "," PORTAL ",\"attributes\":{\"authentication\":1,"
			"\"generate_node_acls\":1,\"demo_mode_write_protect\":"
			"0},\"chap_userid\":\"t\",\"chap_password\":"
			"\"secretpass12\""),
	       "- {user: t, ", NULL);
	expect("lio",
	       "{\"fabric_modules\":[{\"name\":\"iscsi\","
	       "\"discovery_enable_auth\":true,\"discovery_userid\":\"f\","
	       "\"discovery_password\":\"secretpass12\"}]}",
	       "discovery:", "- {user: f, ", NULL);
}

#define TPG(portals) \
 "{\"enable\":true," LUN0 "," DEMO ",\"portals\":[" portals "]}"
#define AT(ip) "{\"ip_address\":\"" ip "\",\"port\":3260}"

#define TAGGED(tag, ip, more) \
 "{\"tag\":" tag "," LUN0 ",\"portals\":[" AT(ip) "]," more "}"
#define ISER(ip) "{\"ip_address\":\"" ip "\",\"port\":3260,\"iser\":true}"

/* Addresses with the same targets and transports are one portal group. */
static void test_lio_portals(void **state)
{
	(void)state;
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN "1",
		       TPG(AT("192.0.2.1") "," AT("192.0.2.2") "," AT(
			       "[::0]"))) "," TARGET(IQN "2",
						     TPG(AT("192.0.2.2"))) "]}",
	       "listen: [\"192.0.2.1:3260\", \"[::]:3260\"]\n    transport: [tcp]",
	       "listen: [\"192.0.2.2:3260\"]",
	       "portal-groups: [portal1, portal2]", "portal-groups: [portal2]",
	       NULL);
	expect("lio", LIO(LUN0 "," DEMO ",\"portals\":[" AT("host") "]"),
	       "portal host, port 3260: left out", "has no portal",
	       "listen: [\"127.0.0.1:0\"]", NULL);
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN "1",
		       TPG(AT("192.0.2.1") "," ISER("192.0.2.2"))) "]}",
	       "listen: [\"192.0.2.1:3260\"]\n    transport: [tcp]\n",
	       "listen: [\"192.0.2.2:3260\"]\n    transport: [tcp, iser]\n",
	       NULL);
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN "1",
		       TPG(ISER(
			       "192.0.2.1"))) "," TARGET(IQN "2",
							 TPG(AT("192.0.2.1"))) "]}",
	       "portal 192.0.2.1:3260: iSER is left out", "transport: [tcp]\n",
	       NULL);
}

/* What initiators negotiate. */
static void test_lio_parameters(void **state)
{
	(void)state;
	expect("lio",
	       LIO(LUN0 "," DEMO "," PORTAL
			",\"parameters\":{\"MaxConnections\":\"4\","
			"\"ErrorRecoveryLevel\":\"2\",\"HeaderDigest\":"
			"\"CRC32C\",\"DataDigest\":\"CRC32C,None\","
			"\"MaxBurstLength\":\"1\",\"Other\":\"x\"}"),
	       "max-connections: 4\n", "digests: prefer\n",
	       "daemon: {error-recovery-level: 2}\n",
	       "iserd also accepts initiators that offer None only",
	       "MaxBurstLength 1: not carried over: iserd negotiates",
	       "Other: not carried over: not a setting of a TPG of LIO", NULL);
	/* the least of both TPGs */
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN,
		       TAGGED("1", "192.0.2.1", DEMO ",\"parameters\":{\"MaxConnections\":8}") "," TAGGED(
			       "2", "192.0.2.2",
			       DEMO
			       ",\"parameters\":{\"MaxConnections\":3}")) "]}",
	       "max-connections: 3\n", NULL);
	/* CHAP is demanded by AuthMethod as well */
	expect("lio",
	       LIO(LUN0 "," DEMO "," PORTAL
			",\"parameters\":{\"AuthMethod\":\"CHAP\"}"),
	       "auth-group: none", NULL);
	expect("lio", LIO(LUN0 "," DEMO "," PORTAL ",\"future\":{}"),
	       IQN ": future: not carried over: not a setting of a TPG", NULL);
}

static void test_lio_tpgs(void **state)
{
	(void)state;
	/* the same LUNs: two portal groups of one target */
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN, TPG(AT("192.0.2.1")) "," TPG(AT("192.0.2.2"))) "]}",
	       "listen: [\"192.0.2.1:3260\", \"192.0.2.2:3260\"]",
	       "portal-groups: [portal1]", NULL);
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN,
		       TPG(AT("192.0.2.1")) ",{\"tag\":2,\"enable\":true,"
					    "\"luns\":[],\"portals\":[" AT(
						    "192.0.2.2") "]}") "]}",
	       "TPG 2: left out: its LUNs or access rules differ",
	       "listen: [\"192.0.2.1:3260\"]", NULL);
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN,
		       "{\"enable\":false}") ",{"
					     "\"fabric\":\"loopback\",\"wwn\":\"naa.5\"}]}",
	       "TPG ?: left out: it is not enabled", "auth-group: none",
	       "does not serve the fabric loopback", NULL);
}

/* A TPG with other rules than the first is not served by the rules of the first,
 * and what the file has twice does not open a target. */
static void test_lio_rules_of_tpgs(void **state)
{
	(void)state;
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN, TAGGED("1", "192.0.2.1", DEMO) "," TAGGED(
				    "2", "192.0.2.2",
				    ATTRIBUTES("\"authentication\":1"))) "]}",
	       "TPG 2: left out: its LUNs or access rules differ",
	       "listen: [\"192.0.2.1:3260\"]", NULL);
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN,
		       TAGGED("1", "192.0.2.1", "\"node_acls\":[" ACL("n", "," CHAP("u")) "]") "," TAGGED(
			       "2", "192.0.2.2",
			       "\"node_acls\":[" ACL("n",
						     "," CHAP("v")) "]")) "]}",
	       "TPG 2: left out", "listen: [\"192.0.2.1:3260\"]", NULL);
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN, TAGGED("1", "192.0.2.1", DEMO) "," TAGGED(
				    "\"0x1\"", "192.0.2.1", NO_CHAP)) "]}",
	       "there are two TPGs 0x1", "auth-group: none", NULL);
	expect("lio",
	       SO("") ",\"targets\":[" TARGET(
		       IQN, TAGGED("1", "192.0.2.1",
				   DEMO)) "," TARGET(IQN,
						     TAGGED("1", "192.0.2.1",
							    NO_CHAP)) "]}",
	       "target " IQN ": there are two of them", "auth-group: none",
	       NULL);
	expect("lio",
	       LIO(LUN0 "," PORTAL "," NO_CHAP
			",\"node_acls\":[" ACL("n", "") "," ACL("N", "") "]"),
	       "ACL of " NODE("n") ": there are two of them",
	       "auth-group: none", NULL);
}

/* Members of another type than LIO writes are passed over. */
static void test_lio_clumsy(void **state)
{
	(void)state;
	expect("lio", "{\"storage_objects\":{\"a\":1},\"targets\":3}",
	       "targets: {}", NULL);
	expect("lio",
	       LIO("\"luns\":[{\"index\":-1},{\"index\":0,\"storage_object\":"
		   "\"/backstores/fileio/x\"},7],\"attributes\":[1],"
		   "\"node_acls\":[{\"node_wwn\":\"" IQN
		   "\",\"mapped_luns\":[{\"index\":0,\"tpg_lun\":"
		   "9}]},{\"node_wwn\":{}}]"),
	       "index: left out: no number", "no storage object",
	       "the target has no LUN 9", NULL);
}

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
	       "p { listen [::1\nlisten ::1 }\nportal-group q { listen "
	       "192.0.2.2 }\n",
	       "listen 192.0.2.1:99999: left out", "listen [::1: left out",
	       "  p:\n    tag: 2\n    listen: [\"127.0.0.1:0\"]",
	       "  p-2:\n    tag: 3\n    listen: [\"[::1]:3260\"]",
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
	       NULL);
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_errors),
		cmocka_unit_test(test_json_depth),
		cmocka_unit_test(test_json_strings),
		cmocka_unit_test(test_lio_storage),
		cmocka_unit_test(test_lio_access),
		cmocka_unit_test(test_lio_access_is_not_relaxed),
		cmocka_unit_test(test_lio_chap_of_an_acl),
		cmocka_unit_test(test_lio_chap),
		cmocka_unit_test(test_lio_identity),
		cmocka_unit_test(test_lio_storage_twice),
		cmocka_unit_test(test_lio_portals),
		cmocka_unit_test(test_lio_parameters),
		cmocka_unit_test(test_lio_tpgs),
		cmocka_unit_test(test_lio_rules_of_tpgs),
		cmocka_unit_test(test_lio_clumsy),
		cmocka_unit_test(test_ctl_syntaxes_agree),
		cmocka_unit_test(test_ctl_syntax_errors),
		cmocka_unit_test(test_ucl_include),
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
