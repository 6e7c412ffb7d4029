/* SPDX-License-Identifier: BSD-2-Clause */
/* import_lio_test.c: iserctl import of JSON and saveconfig.json, construct by construct. */
#include "base/bytes.h"
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

/* A rule in another place than a list would be none. */
static void test_lio_lists(void **state)
{
	static const char *const lists[] = {
		"fabric_modules", "luns",    "mapped_luns", "node_acls",
		"portals",	  "targets", "tpgs",	    "storage_objects",
		"alua_tpgs",
	};
	char text[128], error[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		snprintf(text, sizeof(text), "{\"a\":[{\n\"%s\":{}}]}",
			 lists[i]);
		snprintf(error, sizeof(error), "F:2: %s: not a list", lists[i]);
		expect_error("lio", text, error);
		snprintf(text, sizeof(text), "{\"%s\":[\n1]}", lists[i]);
		snprintf(error, sizeof(error), "F:2: %s: an element", lists[i]);
		expect_error("lio", text, error);
	}
	expect_error("lio", "{\"attributes\":[]}",
		     "F:1: attributes: not an object");
	expect_error("lio", "{\"parameters\":1}",
		     "F:1: parameters: not an object");
	expect("lio", "{\"targets\":null}", "targets: {}", NULL);
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
	       "of /b: not carried over: /a",
	       "identity of /b, and of other stores without a wwn of its own: "
	       "initiators see new names; to keep one, give naa",
	       NULL);
	expect("lio", SO("") "}", "identity of /d, and of other stores", NULL);
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
		     2);
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

#define DEMO_CHAP \
 ATTRIBUTES("\"generate_node_acls\":1,\"demo_mode_write_protect\":1")
/* An ACL whose LUN 0 can be written to, unlike in demo mode. */
#define WRITER(x, more)                                         \
 "{\"node_wwn\":\"" NODE(x) "\",\"mapped_luns\":[{\"index\":0," \
			    "\"tpg_lun\":0,\"write_protect\":false}]" more "}"
#define WRITES(x, more) \
 "maps:\n      - {initiators: [\"" NODE(x) "\"]," more " luns: {0: d}}\n"

/* No initiator can take the name of another one with a secret of its own: accounts are
 * bound to the names of the ACLs, and in demo mode maps to the accounts. */
static void test_lio_accounts_of_acls(void **state)
{
	(void)state;
	expect("lio",
	       LIO(LUN0
		   "," PORTAL
		   ",\"node_acls\":[" ACL("n", "," CHAP("u")) "," ACL(
			   "o", "," CHAP("v")) "," ACL("p", "," CHAP("u")) "]"),
	       "- {user: u, secret-file: /s/disk.1.secret, initiators: "
	       "[\"" NODE("n") "\", \"" NODE("p") "\"]}",
	       "- {user: v, secret-file: /s/disk.2.secret, initiators: "
	       "[\"" NODE("o") "\"]}",
	       "    luns: {0: d}\n", NULL);
	expect("lio",
	       LIO(LUN0 "," PORTAL ",\"node_acls\":[" ACL("n", "," CHAP("u")) "," ACL(
		       "o",
		       ",\"chap_userid\":\"u\",\"chap_password\":\"secretpass13\"") "]"),
	       "initiators: [\"" NODE("n") "\"]}\n    initiators:",
	       "user u: left out: the user has another secret in line 1",
	       "ACL of " NODE("o") ": requires CHAP, and no account is for",
	       NULL);
	/* with the account of the TPG, the name sees what all see */
	expect("lio",
	       LIO(LUN0 "," PORTAL "," DEMO_CHAP "," CHAP("t") ",\"node_acls\":[" WRITER(
		       "n",
		       ",\"chap_userid\":\"u\",\"chap_password\":\"secretpass13\"") "]"),
	       "- {user: t, secret-file: /s/disk.1.secret}\n",
	       "- {user: u, secret-file: /s/disk.2.secret, initiators: "
	       "[\"" NODE("n") "\"]}",
	       "luns: {0: {backstore: d, read-only: yes}}\n    " WRITES(
		       "n", " account: u,"),
	       NULL);
	/* the account of the TPG, which is for all */
	expect("lio",
	       LIO(LUN0 "," PORTAL "," DEMO_CHAP "," CHAP(
		       "u") ",\"node_acls\":[" WRITER("n", "," CHAP("u")) "]"),
	       "- {user: u, secret-file: /s/disk.1.secret}\n",
	       WRITES("n", " account: u,"), NULL);
	/* LIO does not admit the name, or does without CHAP */
	expect("lio",
	       LIO(LUN0 "," PORTAL "," DEMO_CHAP
			"," CHAP("u") ",\"node_acls\":[" WRITER("n", "") "]"),
	       "luns: {0: {backstore: d, read-only: yes}}\n",
	       "mapped LUNs of " NODE("n") ": left out, as LIO does not admit",
	       NULL);
	expect("lio",
	       LIO(LUN0
		   "," PORTAL "," DEMO_CHAP
		   "," CHAP("u") ",\"node_acls\":[" WRITER(
			   "n", "," ATTRIBUTES("\"authentication\":0")) "]"),
	       WRITES("n", ""), NULL);
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
	expect("lio", acl,
	       "- {user: u, secret-file: /s/disk.1.secret, initiators: "
	       "[\"iqn.2026-01.com.example:n\"]}",
	       "mutual: {user: m, secret-file: /s/disk.mutual.secret}",
	       "ACL of iqn.2026-01.com.example:o: requires CHAP, and no account "
	       "is for this initiator; add one to the auth group disk",
	       NULL);
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
	expect("lio",
	       LIO("\"luns\":[{\"index\":-1},{\"index\":0,\"storage_object\":"
		   "\"/backstores/fileio/x\"}],\"attributes\":{},"
		   "\"node_acls\":[{\"node_wwn\":\"" IQN
		   "\",\"mapped_luns\":[{\"index\":0,\"tpg_lun\":"
		   "9}]},{\"node_wwn\":{}}]"),
	       "index: left out: no number", "no storage object",
	       "the target has no LUN 9", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_errors),
		cmocka_unit_test(test_json_depth),
		cmocka_unit_test(test_lio_lists),
		cmocka_unit_test(test_json_strings),
		cmocka_unit_test(test_lio_storage),
		cmocka_unit_test(test_lio_access),
		cmocka_unit_test(test_lio_access_is_not_relaxed),
		cmocka_unit_test(test_lio_chap_of_an_acl),
		cmocka_unit_test(test_lio_accounts_of_acls),
		cmocka_unit_test(test_lio_chap),
		cmocka_unit_test(test_lio_identity),
		cmocka_unit_test(test_lio_storage_twice),
		cmocka_unit_test(test_lio_portals),
		cmocka_unit_test(test_lio_parameters),
		cmocka_unit_test(test_lio_tpgs),
		cmocka_unit_test(test_lio_rules_of_tpgs),
		cmocka_unit_test(test_lio_clumsy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
