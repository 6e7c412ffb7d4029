/* SPDX-License-Identifier: BSD-2-Clause */
/* import_test.c: iserctl import of targets.conf, construct by construct, and what
 * all formats have in common: names, secrets, limits. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import_fixture.h"

/* ---- the syntax of tgt ---- */

static void test_tgt_comments_and_blanks(void **state)
{
	(void)state;
	expect("tgt",
	       "# comment\r\n/* several\n lines */\n\n\t<target  " IQN
	       " > # c\n"
	       "backing-store\t/a # c\n/* <target x> */\n</target>\n",
	       "{store: /a}", "luns: {1: a}", NULL);
	/* a backslash before a number sign keeps it */
	expect("tgt", TGT("backing-store /a\\#b\n"), "{store: \"/a#b\"}", NULL);
}

/* As Config::General 2.65, by which tgt-admin reads: a rule beside or after a comment
 * counts, one inside does not. */
static void test_tgt_comments_between_rules(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("backing-store /a\n/* c */ incominguser u secretpass12\n"),
	       "- {user: u,", "auth-group: disk\n", NULL);
	expect("tgt",
	       TGT("backing-store /a/* c */\n/* c\n d */ initiator-address "
		   "192.0.2.1\n"),
	       "{store: /a}", "addresses: [\"192.0.2.1\"]", NULL);
	/* a comment within a line of a comment does not end it */
	expect("tgt",
	       TGT("/*\nbacking-store /x\n/* c */\nbacking-store /y\n*/\n"
		   "backing-store /a\nx */ backing-store /b\n"),
	       "luns: {1: a, 2: b}", NULL);
	expect("tgt", TGT("backing-store /a/*.b\nbacking-store /c\n"),
	       "{store: \"/a/*.b\"}", "{store: /c}", NULL);
	expect("tgt", TGT("/*/\nbacking-store /a\n/*/ c\nx\n*/\n"),
	       ": /*/: not carried over", "luns: {1: a}", NULL);
	expect("tgt", TGT("<backing-store \"/with blank\"/>\n"),
	       "{store: \"/with blank\"}", NULL);
	/* no include in a continued line */
	included = "incominguser u secretpass12\n";
	expect("tgt", TGT("backing-store /a\ninclude \\\n x\n"),
	       "F:3: " IQN ": include: not carried over", "auth-group: any",
	       NULL);
}

static void test_tgt_quotes_and_equals(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("backing-store = \"/with blank\"\nvendor_id=\"A \\\"B\\\"\"\n"),
	       "{store: \"/with blank\"", "vendor: \"A \\\"B\\\"\"", NULL);
	expect("tgt",
	       TGT("<backing-store \"/with blank\">\nlun 7\n"
		   "</backing-store>\n"),
	       "{store: \"/with blank\"", "luns: {7: with-blank}", NULL);
}

static void test_tgt_continued_line(void **state)
{
	(void)state;
	expect("tgt", TGT("backing-\\\n   store \\\n  /a\n"), "{store: /a}",
	       NULL);
	/* the note has the first line */
	expect("tgt", TGT("fo\\\no 1\n"), "F:2: " IQN ": foo:", NULL);
}

static void test_tgt_continued_too_long(void **state)
{
	char text[3 * 8200 + 1];

	(void)state;
	for (unsigned i = 0; i < 8200; i++)
		memcpy(text + 3 * i, "a\\\n", 4);
	expect_error("tgt", text,
		     "F:8192: a continued line has more than 8192");
}

static void test_tgt_blocks_are_merged(void **state)
{
	(void)state;
	expect("tgt", TGT("backing-store /a\n") TGT("backing-store /b\n"),
	       "luns: {1: a, 2: b}", NULL);
	expect("tgt", TGT("<backing-store /a/>\n"), "luns: {1: a}", NULL);
}

static void test_tgt_include(void **state)
{
	(void)state;
	included = TGT("backing-store /a\n");
	expect("tgt", "include /etc/x\n", "{store: /a}", NULL);
	included = "backing-store /b\nfoo\n";
	expect("tgt", TGT("INCLUDE \"/etc/x y\"\n"), "{store: /b}",
	       "/etc/x y:2: " IQN ": foo:", NULL);
	expect("tgt", "include /etc/conf.d/*.conf\n", "targets: {}", NULL);
	expect_error("tgt", "\ninclude /missing\n",
		     "F:2: include /missing: No such file");
	included = "include /itself\n";
	expect_error("tgt", "include /itself\n",
		     "/itself:1: include /itself: "
		     "files include each other");
}

static void test_tgt_syntax_errors(void **state)
{
	static const char latin1[] = "# ok\nvendor_id \xe9\n";
	static const char nul[] = "a b\nc\0d\n";

	(void)state;
	expect_error("tgt", "<target a>\n\n",
		     "F:1: <target a>: the block has "
		     "no end");
	expect_error("tgt", "\n</target>\n", "F:2: </target>: no block");
	expect_error("tgt", "<target a>\n<backing-store /b>\n</target>\n",
		     "F:3: </target>: does not end the block <backing-store> "
		     "of line 2");
	expect_error("tgt", "<target a\n", "F:1: a block has no closing >");
	expect_error("tgt", "a <<EOF\nb\nEOF\n", "F:1: a: a value of several");
	expect_error("tgt", latin1, "F:2: not UTF-8 text");
	expect_bytes_error("tgt", nul, sizeof(nul) - 1, "F:2: a NUL");
	expect_error("tgt", "a \x1b[1m\n", "F:1: not UTF-8 text");
	/* YAML does not have U+FFFE and U+FFFF */
	expect_error("tgt", "a \xef\xbf\xbe\n", "F:1: not UTF-8 text");
	expect_error("lio", "{\"a\": \"\\uffff\"}", "F:1: a text is not UTF-8");
	expect_error("ctl", "alias \xef\xbf\xbf\n", "F:1: a text is not UTF-8");
}

static void test_tgt_depth(void **state)
{
	char text[TREE_DEPTH * 8 + 1] = "";

	(void)state;
	for (unsigned i = 0; i < TREE_DEPTH; i++)
		strcat(text, "<a b>\n");
	expect_error("tgt", text, "F:32: <a>: more than 32 blocks");
}

/* ---- what tgt's directives mean ---- */

static void test_tgt_lun_numbers(void **state)
{
	(void)state;
	/* backing-store first, each in the order of the paths */
	expect("tgt",
	       TGT("direct-store /dev/c\nbacking-store /z\nbacking-store /b\n"
		   "backing-store /b\n"),
	       "luns: {1: b, 2: z, 3: c}", NULL);
	/* numbers that a block gives are not used for others */
	expect("tgt",
	       TGT("<backing-store /a>\n</backing-store>\n<backing-store /b>\n"
		   "lun 1\n</backing-store>\n<backing-store /c>\nlun 0x10\n"
		   "</backing-store>\n<direct-store /d>\nlun 2\n"
		   "</direct-store>\n"),
	       "luns: {1: b, 2: d, 3: a, 16: c}", NULL);
	expect("tgt", TGT("backing-store /a\nlun 10\n"), "luns: {10: a}", NULL);
	expect("tgt", TGT("<backing-store /a>\nlun 20000\n</backing-store>\n"),
	       "LUN 20000: left out: more than 16383", "has no LUN", NULL);
	expect("tgt", TGT("<backing-store /a>\nlun x\n</backing-store>\n"),
	       "F:3: lun x: not a number", "luns: {1: a}", NULL);
	expect("tgt", TGT("backing-store /a\nbacking-store /b\nlun 3\n"),
	       "LUN 3: /b left out: the number is in use", "luns: {3: a}",
	       NULL);
}

static void test_tgt_options_of_stores(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("<backing-store /a>\nvendor_id V\nproduct_id P\n"
		   "product_rev R\nscsi_sn S\nremovable 1\nreadonly 1\n"
		   "block-size 4096\nwrite-cache off\n</backing-store>\n"),
	       "a: {store: /a, read-only: yes, removable: yes, block-size: "
	       "4096, serial: S, vendor: V, product: P, revision: R, cache: "
	       "write-through}",
	       NULL);
	/* the target gives what the block does not */
	expect("tgt",
	       TGT("vendor_id T\nwrite-cache on\n<backing-store /a>\n"
		   "vendor_id B\n</backing-store>\n<backing-store /b>\n"
		   "</backing-store>\n"),
	       "{store: /a, vendor: B}", "{store: /b, vendor: T}", NULL);
	expect("tgt", TGT("backing-store /a\nbsoflags sync:direct\n"),
	       "{store: /a, cache: write-through}", NULL);
	expect("tgt", TGT("backing-store /a\nmode_page 8:0:18:0x10:0\n"),
	       "{store: /a, cache: write-through}", NULL);
	expect("tgt",
	       TGT("backing-store /a\nmode_page 8:0:18:0x14:0\nmode_page "
		   "10:0:10:2\n"),
	       "{store: /a}", "F:4: mode_page 10:0:10:2: not carried", NULL);
	expect("tgt", TGT("backing-store /a\nblock-size 1024\n"),
	       "F:3: block size 1024 of /a: not carried over", NULL);
	expect("tgt", TGT("backing-store /a\nwrite-cache maybe\n"),
	       "F:3: write-cache maybe", NULL);
}

/* params is executed after the other options, and a LUN that is offline or
 * read-only in tgt is not more in iserd. */
static void test_tgt_rights_are_kept(void **state)
{
	(void)state;
	expect("tgt", TGT("backing-store /a\nonline 0\n"),
	       "F:2: /a: left out: it is offline (online 0 in line 3)",
	       "luns: {}", NULL);
	expect("tgt",
	       TGT("backing-store /a\nparams x=1,online=no,vendor_id=V\n"),
	       "F:3: params: x: not carried over",
	       "/a: left out: it is offline", NULL);
	expect("tgt",
	       TGT("<backing-store /a>\nparams readonly=2,vendor_id=V\n"
		   "vendor_id W\nreadonly 0\n</backing-store>\n"),
	       "{store: /a, read-only: yes, vendor: V}", NULL);
	/* the store of the second target is read-only in the first one only */
	expect("tgt",
	       TGT("backing-store /a\n") "<target " IQN "2>\nbacking-store "
					 "/a\nreadonly 1\nwrite-cache off\n"
					 "</target>\n",
	       "a: {store: /a, cache: write-through}", "luns: {1: a}",
	       "luns: {1: {backstore: a, read-only: yes}}", NULL);
	expect("tgt",
	       TGT("<backing-store /a>\nreadonly 1\n</backing-store>\n"
		   "backing-store /a\nbacking-store /a\n"),
	       "{store: /a, read-only: yes}", NULL);
	expect("tgt", TGT("backing-store /a\nstate offline\n"),
	       "F:3: state offline: the target " IQN " admits no initiator",
	       "auth-group: none", NULL);
	expect("tgt",
	       TGT("<initiator-address 192.0.2.1>\n</initiator-address>\n"
		   "backing-store /a\n"),
	       "F:2: <initiator-address>: not a block", "auth-group: none",
	       NULL);
	expect("tgt", "iSNSAccessControl On\n" TGT("backing-store /a\n"),
	       "F:1: iSNSAccessControl: iserd does not ask iSNS",
	       "auth-group: none", NULL);
	expect("tgt", "iSNSAccessControl Off\n" TGT("backing-store /a\n"),
	       "auth-group: any", NULL);
}

/* A path must not become another kind of store. */
static void test_paths_stay_paths(void **state)
{
	(void)state;
	expect("tgt", TGT("backing-store ram:1G\nbacking-store nbd://x\n"),
	       "F:2: ram:1G: left out: iserd takes this for another kind",
	       "F:3: nbd://x: left out", "luns: {}", NULL);
	expect("tgt", TGT("backing-store \"/a,key=/b\"\n"),
	       "/a,key=/b: left out: iserd takes ,key= in a path", NULL);
	expect("tgt", TGT("backing-store disk.img\n"),
	       "F:2: disk.img: a path in the working directory of the other",
	       "{store: disk.img}", NULL);
	expect("ctl",
	       "lun a { path nbd://x }\nlun b { path cd:\ndevice-type cd }\n",
	       "nbd://x: left out", "cd:: left out", NULL);
	expect("lio",
	       "{\"storage_objects\":[{\"name\":\"d\",\"plugin\":\"fileio\","
	       "\"dev\":\"null:1G\"}]}",
	       "null:1G: left out", NULL);
}

static void test_tgt_types_of_stores(void **state)
{
	(void)state;
	expect("tgt", TGT("backing-store /a.iso\ndevice-type cd\n"),
	       "{store: \"cd:/a.iso\"}", NULL);
	expect("tgt",
	       TGT("backing-store /dev/sg1\ndevice-type pt\n"
		   "bs-type sg\n"),
	       "{store: \"scsi:/dev/sg1\"}", NULL);
	expect("tgt", TGT("backing-store /a\nbs-type aio\n"), "{store: /a}",
	       NULL);
	expect("tgt",
	       TGT("backing-store pool/a\nbs-type rbd\nbsopts "
		   "\"conf=/etc/c.conf\\\\;id=tgt;cluster=x\"\n"),
	       "{store: \"rbd:pool/a,conf=/etc/c.conf,id=tgt\"}",
	       "option cluster: not carried over", NULL);
	expect("tgt", TGT("backing-store a\nbs-type rbd\n"),
	       "{store: \"rbd:rbd/a\"}", NULL);
	expect("tgt", TGT("backing-store a,id=x/y\nbs-type rbd\n"),
	       "image a,id=x/y: left out", NULL);
	expect("tgt", TGT("backing-store tcp:x\nbs-type sheepdog\n"),
	       "tcp:x: left out: iserd does not have the backing store type "
	       "sheepdog",
	       "luns: {}", NULL);
	expect("tgt", TGT("backing-store /x\nbs-type null\n"),
	       "{store: \"null:1T\"}", NULL);
	expect("tgt", TGT("backing-store /t\ndevice-type tape\n"),
	       "/t: left out: iserd does not have devices of type tape", NULL);
}

static void test_tgt_one_file_twice(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("backing-store /a\n") "<target " IQN "2>\nbacking-store /a\n"
					 "</target>\n",
	       "F:5: /a: one backstore for all targets", "luns: {1: a}", NULL);
	expect("tgt", TGT("backing-store /x/a\nbacking-store /y/a\n"),
	       "  a: {store: /x/a}", "  a-2: {store: /y/a}", NULL);
	expect("tgt",
	       TGT("backing-store /a\n<direct-store /a>\ndevice-type cd\n"
		   "</direct-store>\n"),
	       "have the same file", NULL);
}

static void test_tgt_accounts(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("incominguser alice secretpass12\nincominguser bob  "
		   "secretpass23\noutgoinguser tgt secretpassA1\n"
		   "outgoinguser t2 secretpassA2\nbacking-store /a\n"),
	       "auth-group: disk",
	       "- {user: alice, secret-file: /s/disk.1.secret}",
	       "- {user: bob, secret-file: /s/disk.2.secret}",
	       "mutual: {user: tgt, secret-file: /s/disk.mutual.secret}",
	       "F:5: mutual user t2: left out", NULL);
	expect("tgt", TGT("incominguser alice short\nbacking-store /a\n"),
	       "F:2: secret of user alice: not carried over: has 5 bytes",
	       "{user: alice, secret-file: /s/disk.1.secret}", NULL);
	/* an account that cannot be carried over must not open the target */
	expect("tgt", TGT("incominguser alice\nbacking-store /a\n"),
	       "F:2: incominguser: left out: the line has no secret",
	       "auth-group: none", NULL);
	expect("tgt", TGT("incominguser a secretpass12 x\nbacking-store /a\n"),
	       "F:2: incominguser: the words after the secret", NULL);
	expect("tgt",
	       TGT("incominguser a secretpass12\nincominguser a "
		   "secretpass13\nbacking-store /a\n"),
	       "F:3: user a: left out: the user has another secret in line 2",
	       NULL);
}

/* The configuration and the notes never contain a secret. */
static void test_secrets_are_not_printed(void **state)
{
	static const char text[] =
		TGT("incominguser a Sesam-oeffne-dich\noutgoinguser b "
		    "Sesam-schliess-dich\nincominguser c Sesam\n"
		    "backing-store /a\n") "incomingdiscoveryuser d "
					  "Sesam-zeige-dich\n";
	struct result r = { 0 };

	(void)state;
	import_bytes(&r, "tgt", text, strlen(text));
	assert_null(strstr(r.yaml, "Sesam"));
	assert_null(strstr(r.notes, "Sesam"));
	assert_non_null(strstr(r.yaml, "user: c"));
	end_result(&r);
}

/* The target authenticates itself after the initiator, with another secret. */
static void test_mutual_accounts(void **state)
{
	(void)state;
	expect("tgt", TGT("outgoinguser m secretpass12\nbacking-store /a\n"),
	       "F:2: mutual user m: left out: initiators log in without CHAP",
	       "auth-group: any", NULL);
	expect("tgt",
	       TGT("incominguser u secretpass12\noutgoinguser m secretpass12\n"
		   "backing-store /a\n"),
	       "F:3: secret of user m: not carried over: is that of user u",
	       "mutual: {user: m, ", NULL);
	/* of another target, and of discovery (RFC 7143 §9.2.1) */
	expect("tgt",
	       TGT("incominguser u secretpass12\noutgoinguser m "
		   "otherpass123\nbacking-store /a\n") "<target iqn.2026-01."
						       "com.example:b>\n"
						       "incominguser v "
						       "otherpass123\n"
						       "</target>\n",
	       "F:3: secret of user m: not carried over: is that of user v in "
	       "line 7",
	       NULL);
	expect("tgt",
	       "incomingdiscoveryuser d "
	       "otherpass123\n" TGT("incominguser u secretpass12\n"
				    "outgoinguser m otherpass123\n"
				    "backing-store /a\n"),
	       "F:4: secret of user m: not carried over: is that of user d in "
	       "line 1",
	       NULL);
}

static void test_tgt_addresses_and_names(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("initiator-address 192.0.2.1\ninitiator-address "
		   "192.0.2.0/24\ninitiator-address 2001:db8::/32\n"
		   "initiator-name iqn.2026-01.com.example:n1\n"
		   "backing-store /a\n"),
	       "F:5: initiator-name iqn.2026-01.com.example:n1: left out",
	       "addresses: [\"192.0.2.1\", \"192.0.2.0/24\", "
	       "\"2001:db8::/32\"]",
	       NULL);
	expect("tgt",
	       TGT("initiator-name iqn.2026-01.com.example:n1\nbacking-store "
		   "/a\n"),
	       "initiators: [\"iqn.2026-01.com.example:n1\"]",
	       "F:2: initiator-name: tgt admits all initiators nevertheless",
	       NULL);
	expect("tgt",
	       TGT("initiator-address 192.0.2.1\ninitiator-address ALL\n"
		   "backing-store /a\n"),
	       "auth-group: any", NULL);
	/* what cannot be carried over must not open the target */
	expect("tgt", TGT("initiator-address host.example\nbacking-store /a\n"),
	       "F:2: host.example: left out: not a numeric address",
	       "auth-group: none", NULL);
	expect("tgt", TGT("initiator-address 192.0.2.1/33\nbacking-store /a\n"),
	       "F:2: 192.0.2.1/33: left out", "auth-group: none", NULL);
	expect("tgt", TGT("initiator-name iqn.*\nbacking-store /a\n"),
	       "F:2: iqn.*: left out", "auth-group: none", NULL);
}

static void test_tgt_discovery(void **state)
{
	(void)state;
	expect("tgt",
	       "incomingdiscoveryuser d secretpass12\noutgoingdiscoveryuser o "
	       "secretpass13\n",
	       "discovery-auth: discovery",
	       "- {user: d, secret-file: /s/discovery.1.secret}",
	       "mutual: {user: o, ", NULL);
}

static void test_tgt_other_directives(void **state)
{
	(void)state;
	expect("tgt", TGT("HeaderDigest CRC32C\nbacking-store /a\n"),
	       "digests: prefer", NULL);
	expect("tgt", "iSNS On\nfoo bar\n<block x>\n</block>\n",
	       "F:1: the file: iSNS On: not carried over: iser-isns(8)",
	       "F:2: the file: foo: not", "F:3: the file: block: not", NULL);
	expect("tgt",
	       TGT("MaxConnections 2\nErrorRecoveryLevel 1\ncontroller_tid "
		   "4\nscsi_id X\nfoo bar\nbacking-store /a\n"),
	       "max-connections: 2\n", "tgt-id: 4\n",
	       "daemon: {error-recovery-level: 1}\n",
	       "F:5: NAA identifier of /a: not carried over",
	       "F:6: " IQN ": foo:", NULL);
	expect("tgt", TGT("MaxConnections 99\nbacking-store /a\n"),
	       "F:2: MaxConnections 99: 16, the most", "max-connections: 16",
	       NULL);
	/* a field of iserd that is about the same */
	expect("tgt", TGT("MaxOutstandingR2T 16\nbacking-store /a\n"),
	       "MaxOutstandingR2T 16: not carried over: iserd has the field "
	       "max-outstanding-r2t of daemon",
	       NULL);
	expect_notes("tgt",
		     "default-driver iscsi\n" TGT(
			     "driver iscsi\nallow-in-use yes\nscsi_id "
			     "12345678\nbacking-store /a\nHeaderDigest None\n"),
		     0);
}

/* iserd has the transports by address, tgt by target. */
static void test_tgt_drivers(void **state)
{
	(void)state;
	expect("tgt", TGT("backing-store /a\n"), "transport: [tcp]", NULL);
	expect("tgt", "default-driver iser\n" TGT("backing-store /a\n"),
	       "listen: [\"0.0.0.0:3260\", \"[::]:3260\"]\n    transport: "
	       "[iser]",
	       "portal-groups: [default]", NULL);
	expect("tgt",
	       TGT("backing-store /a\n") "<target " IQN "2>\nbacking-store "
					 "/b\ndriver iser\n</target>\n",
	       "transport: [tcp]", "portal-groups: [default]",
	       "listen: [\"127.0.0.1:0\"]\n    transport: [iser]",
	       "portal-groups: [iser]", "driver iser of " IQN "2: its portal",
	       NULL);
	expect("tgt", TGT("backing-store /a\ndriver fcoe\n"),
	       "target " IQN ": left out: iserd does not have the driver fcoe",
	       "targets: {}", NULL);
}

static void test_target_names(void **state)
{
	(void)state;
	expect("tgt", "<target disk1>\nbacking-store /a\n</target>\n",
	       "F:1: target disk1: left out: not an iSCSI name", "targets: {}",
	       NULL);
	expect("tgt", "<target iqn.2026-13.com.example:a>\n</target>\n",
	       "not an iSCSI name: no month 13", NULL);
	/* as iserd compares names: in small letters */
	expect("tgt", "<target iqn.2026-01.com.example:DISK>\n</target>\n",
	       "  \"iqn.2026-01.com.example:disk\":", NULL);
	expect("ctl",
	       "target " IQN " { lun 0 { path /a } }\ntarget " IQN
	       " { lun 0 { path /b } }\n",
	       "F:2: target " IQN ": left out: line 1", NULL);
}

/* Words that YAML reads as something else are quoted. */
static void test_yaml_quotes(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("<backing-store /no>\nvendor_id yes\nproduct_id 12\n"
		   "scsi_sn \"a: b\"\nproduct_rev \"\\\\\"\n"
		   "</backing-store>\n"),
	       "  \"no\": {store: /no", "vendor: \"yes\"", "product: \"12\"",
	       "serial: \"a: b\"", "revision: \"\\\\\"", "{1: \"no\"}", NULL);
}

/* The fields of INQUIRY have fixed lengths; tgt cuts texts, too. */
static void test_identity_is_cut(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("backing-store /a\nvendor_id 123456789\nproduct_id "
		   "12345678901234567\nproduct_rev 12345\n"),
	       "vendor: \"12345678\", product: \"1234567890123456\", revision: "
	       "\"1234\"",
	       "F:2: vendor 123456789 of a: cut to 8 characters", NULL);
	expect("tgt", TGT("backing-store /a\nvendor_id \xc3\xa4\n"),
	       "{store: /a}", "F:2: vendor \xc3\xa4 of a: not carried over",
	       NULL);
}

/* tgt makes an NAA identifier of the hexadecimal digits of scsi_id: as tgtd 1.0.85
 * answers with these (VPD page 83h). */
static void test_naa_of_tgt(void **state)
{
	static const char *const ids[][2] = {
		{ "1", "keep it 60000000000000000000000000000001" },
		{ "xyz", "keep it 60000000000000000000000000000000" },
		{ "IET     00030001", "\"60000000000000000e00000000030001\"" },
		{ "123456789abcdef0", "\"6000000000000000123456789abcdef0\"" },
		{ "ABCDEFg1h2", "\"6000000000000000000000abcdef0102\"" },
		{ "0123456789abcdef0123456789abcdef",
		  "\"6123456789abcdef0123456789abcdef\"" },
		{ "0123456789abcdef0123456789abcdef9876",
		  "\"656789abcdef0123456789abcdef9876\"" },
		{ "volume-11111111-2222-3333-4444-555555555555",
		  "\"6e011111111022220333304444055555\"" },
		{ "12345678901234567", "\"60000000000000012345678901234567\"" },
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		bool is_weak = ids[i][1][0] == 'k';

		snprintf(text, sizeof(text),
			 TGT("backing-store /a\nscsi_id \"%s\"\n"), ids[i][0]);
		expect("tgt", text,
		       is_weak ? "{store: /a}" : "{store: /a, naa: ",
		       is_weak ? "digits, so that disks" : ids[i][1],
		       is_weak ? ids[i][1] + 8 : "store", NULL);
	}
	expect("tgt", TGT("backing-store /a\nscsi_id xyz\n"),
	       "identity of /a, and of other stores without scsi_id", NULL);
	/* one scsi_id and scsi_sn of all stores */
	expect("tgt",
	       TGT("backing-store /a\nbacking-store /b\nscsi_id "
		   "12345678\nscsi_sn S\n"),
	       "a: {store: /a, serial: S, naa:", "b: {store: /b}",
	       "of /b: not carried over: /a has it",
	       "serial S of b: not carried over: a has it", NULL);
}

/* A SCSI device has its own names and cache. */
static void test_identity_of_devices(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("backing-store /dev/sg1\nbs-type sg\nscsi_id 1\nvendor_id "
		   "V\nwrite-cache off\n"),
	       "sg1: {store: \"scsi:/dev/sg1\"}",
	       "identity and cache are not carried over", NULL);
}

/* Names have at most 64 characters. */
static void test_names_are_short(void **state)
{
	(void)state;
	expect("tgt",
	       TGT("backing-store /x/"
		   "1234567890123456789012345678901234567890123456789012345678"
		   "901234567890\nbacking-store /y/"
		   "1234567890123456789012345678901234567890123456789012345678"
		   "901234567890\n"),
	       "  \"123456789012345678901234567890123456789012345678901234567890\": "
	       "{store: /x",
	       "  \"12345678901234567890123456789012345678901234567890123456-2\": "
	       "{store: /y",
	       NULL);
}

/* ---- many of everything ---- */

static char *repeat(unsigned n, const char *before, const char *format,
		    const char *after)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	fputs(before, f);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, format, i, i);
	fputs(after, f);
	fclose(f);
	return text;
}

/* As many as iserd serves are imported, and the rest is noted. */
static void test_most_targets_and_stores(void **state)
{
	char *text =
		repeat(4097, "",
		       "<target iqn.2026-01.com.example:%u>\nbacking-store "
		       "/x/%u\n</target>\n",
		       "");

	(void)state;
	expect("tgt", text,
	       "F:12289: target iqn.2026-01.com.example:4096: left "
	       "out: more than 4096 targets",
	       "example:4095\":", NULL);
	free(text);
	text = repeat(16385, "<target " IQN ">\n", "backing-store /x/%05u\n",
		      "</target>\n");
	expect("tgt", text, "F:16386: /x/16384: left out: more than 16384",
	       "F:16385: LUN 16384: left out: more than 16383",
	       "16383: \"16382\"}", NULL);
	free(text);
}

/* ---- secrets ---- */

static const char two_accounts[] =
	TGT("incominguser a first-secret-1\nincominguser b short\noutgoinguser "
	    "c mutual-secret\nbacking-store /a\n");

static void read_text(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
}

static void test_secrets_are_written(void **state)
{
	char dir[] = "/tmp/import-test-XXXXXX", path[64], text[64];
	struct result r = { 0 };
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	r.m.secrets_dir = dir;
	import_bytes(&r, "tgt", two_accounts, strlen(two_accounts));
	umask(0);
	assert_int_equal(import_write_secrets(&r.m), 0);
	snprintf(path, sizeof(path), "%s/disk.1.secret", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	read_text(path, text, sizeof(text));
	assert_string_equal(text, "first-secret-1\n");
	unlink(path);
	/* a secret that iserd would refuse is not written */
	snprintf(path, sizeof(path), "%s/disk.2.secret", dir);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/disk.mutual.secret", dir);
	read_text(path, text, sizeof(text));
	assert_string_equal(text, "mutual-secret\n");
	/* existing files stay, and no other file is left */
	assert_int_equal(import_write_secrets(&r.m), 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	end_result(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tgt_comments_and_blanks),
		cmocka_unit_test(test_tgt_comments_between_rules),
		cmocka_unit_test(test_tgt_quotes_and_equals),
		cmocka_unit_test(test_tgt_continued_line),
		cmocka_unit_test(test_tgt_continued_too_long),
		cmocka_unit_test(test_tgt_blocks_are_merged),
		cmocka_unit_test(test_tgt_include),
		cmocka_unit_test(test_tgt_syntax_errors),
		cmocka_unit_test(test_tgt_depth),
		cmocka_unit_test(test_tgt_lun_numbers),
		cmocka_unit_test(test_tgt_options_of_stores),
		cmocka_unit_test(test_tgt_rights_are_kept),
		cmocka_unit_test(test_paths_stay_paths),
		cmocka_unit_test(test_tgt_types_of_stores),
		cmocka_unit_test(test_tgt_one_file_twice),
		cmocka_unit_test(test_tgt_accounts),
		cmocka_unit_test(test_secrets_are_not_printed),
		cmocka_unit_test(test_mutual_accounts),
		cmocka_unit_test(test_tgt_addresses_and_names),
		cmocka_unit_test(test_tgt_discovery),
		cmocka_unit_test(test_tgt_other_directives),
		cmocka_unit_test(test_tgt_drivers),
		cmocka_unit_test(test_target_names),
		cmocka_unit_test(test_yaml_quotes),
		cmocka_unit_test(test_identity_is_cut),
		cmocka_unit_test(test_naa_of_tgt),
		cmocka_unit_test(test_identity_of_devices),
		cmocka_unit_test(test_names_are_short),
		cmocka_unit_test(test_most_targets_and_stores),
		cmocka_unit_test(test_secrets_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
