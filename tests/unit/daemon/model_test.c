/* SPDX-License-Identifier: BSD-2-Clause */
/* model_test.c: configuration files: what is read, each rule that refuses a
 * file, and the canonical form. */
#include "daemon/config/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "cmocka_all.h"
#include "daemon/config/nouns.h"
#include "daemon/config/yaml.h"
#include "net/conn.h"

static struct cfg_errors errors;

static struct cfg_model *read_text(const char *text)
{
	memset(&errors, 0, sizeof(errors));
	return cfg_model_read(text, strlen(text), &errors);
}

static struct cfg_model *read_good(const char *text)
{
	struct cfg_model *m = read_text(text);

	for (unsigned i = 0; i < cfg_errors_kept(&errors); i++)
		print_error("%u:%u: %s\n", errors.all[i].at.line,
			    errors.all[i].at.column, errors.all[i].text);
	assert_non_null(m);
	assert_int_equal(errors.n, 0);
	return m;
}

static const char full[] =
	"version: 1\n"
	"daemon:\n"
	"  workers: 2\n"
	"  max-sessions: 500:20\n"
	"  log: info\n"
	"backstores:\n"
	"  db: {store: /srv/db.img, key: /k, protection: 1, read-only: no,\n"
	"       block-size: 4096, buffered: yes, serial: \"12\"}\n"
	"  ram1: {store: ram:1G, rotational: true, vendor: ACME,\n"
	"         cache: write-through, max-iops: 1000:2000,\n"
	"         max-bandwidth: 1536K,\n"
	"         uuid: F81D4FAE-7DEC-41D0-A765-00A0C91E6BF6,\n"
	"         naa: naa.6001405B605D2C100000000000000000,\n"
	"         eui: \"00:25:38:5a:91:b0:32:6f\"}\n"
	"auth-groups:\n"
	"  lab:\n"
	"    accounts: [{user: alice, secret-file: /a}]\n"
	"    mutual: {user: tgt, secret-file: /m}\n"
	"    initiators: [\"iqn.2026-01.com.Example:*\"]\n"
	"    addresses: [10.0.0.0/8, \"fd00::/8\", 10.0.0.1]\n"
	"portal-groups:\n"
	"  front:\n"
	"    listen: [\"10.0.0.1:3260\", \"[::]:3260\"]\n"
	"    transport: [tcp, iser]\n"
	"    discovery: all\n"
	"    discovery-auth: lab\n"
	"  back: {tag: 7, listen: 127.0.0.1, verbs: off}\n"
	"initiator-groups:\n"
	"  cluster: [iqn.2026-01.com.example:n1, iqn.2026-01.com.example:N2]\n"
	"targets:\n"
	"  iqn.2026-01.com.example:disk:\n"
	"    alias: a b\n"
	"    auth-group: lab\n"
	"    portal-groups: [back, front]\n"
	"    luns: {256: ram1, 0: db}\n"
	"    maps:\n"
	"      - {initiators: [cluster, \"eui.*\"],\n"
	"         luns: {1: {backstore: ram1, read-only: yes}}}\n"
	"    digests: prefer\n"
	"    compat: strict\n"
	"  iqn.2026-01.com.example:any:\n"
	"    auth-group: any\n"
	"    portal-groups: front\n"
	"alua-groups:\n"
	"  1: {state: standby, ports: [1, 2], preferred: yes}\n";

static void test_all_fields(void **state)
{
	struct cfg_model *m = read_good(full);
	const struct cfg_target *t = m->targets.v;

	(void)state;
	assert_int_equal(m->options.workers, 2);
	assert_int_equal(m->options.limits.sessions, 500);
	assert_int_equal(m->options.limits.source_sessions, 20);
	assert_int_equal(m->options.limits.discovery, 128); /* default */
	assert_int_equal(m->options.log.level, TRACE_LEVEL_INFO);
	assert_int_equal(m->backstores.n, 2);
	assert_string_equal(m->backstores.v[0].head.name, "db");
	assert_int_equal(m->backstores.v[0].lun.block_size, 4096);
	assert_true(m->backstores.v[0].lun.buffered);
	assert_false(m->backstores.v[1].lun.buffered);
	assert_string_equal(m->backstores.v[0].serial, "12");
	assert_true(m->backstores.v[1].rotational);
	assert_int_equal(m->backstores.v[0].cache, CFG_WRITE_BACK);
	assert_int_equal(m->backstores.v[0].limits.ops, 0);
	assert_int_equal(m->backstores.v[1].cache, CFG_WRITE_THROUGH);
	assert_int_equal(m->backstores.v[1].limits.ops, 1000);
	assert_int_equal(m->backstores.v[1].limits.ops_burst, 2000);
	assert_int_equal(m->backstores.v[1].limits.bytes, 1536 << 10);
	assert_int_equal(m->backstores.v[1].limits.bytes_burst, 1536 << 10);
	assert_int_equal(m->backstores.v[1].uuid[0], 0xf8);
	assert_int_equal(m->backstores.v[1].uuid[15], 0xf6);
	assert_int_equal(m->backstores.v[1].naa.len, 16);
	assert_int_equal(m->backstores.v[1].eui.len, 8);
	assert_int_equal(m->auths.v[0].prefixes[0].bits, 104);
	assert_int_equal(m->auths.v[0].prefixes[1].bits, 8);
	assert_int_equal(m->auths.v[0].prefixes[2].bits, 128);
	assert_string_equal(m->auths.v[0].names.v[0],
			    "iqn.2026-01.com.example:*");
	assert_int_equal(m->portals.v[0].transports,
			 NET_ALLOW_TCP | NET_ALLOW_RDMA);
	assert_int_equal(m->portals.v[0].tag, 1);
	assert_int_equal(m->portals.v[0].auth, 0);
	assert_int_equal(m->portals.v[1].listen.n, 1);
	assert_int_equal(m->portals.v[1].verbs, VERBS_OFF);
	assert_int_equal(m->portals.v[1].auth, CFG_AUTH_ANY);
	assert_int_equal(t->auth, 0);
	assert_int_equal(t->portals[0], 1);
	assert_int_equal(t->luns.v[0].lun, 0); /* in order */
	assert_int_equal(t->luns.v[1].lun, 256);
	assert_int_equal(t->luns.v[1].index, 1);
	assert_int_equal(t->maps.v[0].names.n, 3);
	assert_string_equal(t->maps.v[0].names.v[1],
			    "iqn.2026-01.com.example:n2");
	assert_true(t->maps.v[0].luns.v[0].read_only);
	assert_int_equal(t->digests, DIGESTS_PREFER);
	assert_int_equal(t->data_timeout, 30);
	assert_true(t->strict);
	assert_int_equal(t[1].auth, CFG_AUTH_ANY);
	assert_int_equal(m->aluas.v[0].group.id, 1);
	assert_int_equal(m->aluas.v[0].group.state, DEV_ACCESS_STANDBY);
	assert_int_equal(m->aluas.v[0].group.nports, 2);
	cfg_model_free(m);
}

/* The canonical form is read as the same model, whose form is the same. */
static void test_canonical_form_is_stable(void **state)
{
	struct cfg_model *m = read_good(full), *again;
	char *text = cfg_dump(m), *second;

	(void)state;
	assert_non_null(text);
	assert_null(strstr(text, "read-only: no"));
	assert_non_null(strstr(text, "    cache: write-through\n"
				     "    max-iops: \"1000:2000\"\n"
				     "    max-bandwidth: 1536K\n"));
	assert_non_null(
		strstr(text, "    uuid: f81d4fae-7dec-41d0-a765-00a0c91e6bf6\n"
			     "    naa: 6001405b605d2c100000000000000000\n"
			     "    eui: 0025385a91b0326f\n"));
	assert_non_null(
		strstr(text, "    luns:\n      0: db\n      256: ram1\n"));
	again = read_good(text);
	second = cfg_dump(again);
	assert_string_equal(text, second);
	free(text);
	free(second);
	cfg_model_free(m);
	cfg_model_free(again);
}

static void test_json(void **state)
{
	struct cfg_model *m = read_good(
		"{\"version\": 1, \"backstores\": {\"r\": {\"store\": "
		"\"ram:1M\", \"read-only\": true}}, \"portal-groups\": "
		"{\"p\": {\"listen\": [\"127.0.0.1:0\"]}}, \"targets\": "
		"{\"iqn.2026-01.x:y\": {\"auth-group\": \"any\", "
		"\"portal-groups\": [\"p\"], \"luns\": {\"0\": \"r\"}}}}");

	(void)state;
	assert_true(m->backstores.v[0].lun.read_only);
	assert_int_equal(m->targets.v[0].luns.v[0].lun, 0);
	cfg_model_free(m);
}

/* ---- what is refused ---- */

#define V     "version: 1\n"
#define STORE V "backstores: {a: {store: ram:1M}, b: {store: ram:1M}}\n"
#define P     "portal-groups: {p: {listen: 127.0.0.1:0}}\n"
#define T     STORE P "targets:\n  iqn.2026-01.x:y:\n"
#define A     "    auth-group: any\n"
#define PG    "    portal-groups: p\n"

struct refusal {
	const char *text;
	unsigned line, column;
	const char *want; /* a part of the error */
};

static const struct refusal syntax[] = {
	{ "", 1, 1, "the file is empty" },
	{ "version: [1", 2, 1, "not valid YAML" },
	{ V "a: &x 1\n", 2, 4, "anchors (&NAME) and aliases" },
	{ V "a: *x\n", 2, 4, "anchors (&NAME) and aliases" },
	{ V "<<: {}\n", 2, 1, "merge keys are not supported" },
	{ V "a: !!int 3\n", 2, 4, "tags (!NAME) are not supported" },
	{ V "a: !x {}\n", 2, 4, "tags (!NAME) are not supported" },
	{ V "[a]: b\n", 2, 1, "a list or mapping as a key" },
	{ V "---\nversion: 1\n", 2, 1, "a second document" },
	{ V "a: \"b\\nc\"\n", 2, 4, "control character" },
	{ V "a: \"b\\0c\"\n", 2, 4, "control character" },
	{ V "version: 1\n", 2, 1, "version: given twice" },
	{ V "a: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", 2, 19,
	  "more than 16 levels" },
	{ "- a\n", 1, 1, "not a mapping" },
	{ "\xff\n", 1, 1, "not valid YAML" },
	/* frequent mistakes: where they are, and what to do */
	{ V "# Gr\xfc\xdf\n", 2, 5, "byte fc; save the file in UTF-8" },
	{ V "# \xc3\xa4\na: %x\n", 3, 4,
	  "begins with this character in quotes" },
	{ V "backstores:\n\ta: {}\n", 3, 1, "indent by blanks, not by tabs" },
	{ V "a:\n  listen: [::1]:3260\n", 3, 12,
	  "put an IPv6 address in quotes: \"[::1]:3260\"" },
	{ V "a: [[::1]:3260]\n", 2, 5, "put an IPv6 address in quotes" },
	{ V "a: *\n", 2, 5, "put a value that begins with * in quotes" },
	{ V "a: {b: !c}\n", 2, 10, "begins with ! in quotes" },
	{ V "a: b: c\n", 2, 5, "has a colon and a blank in quotes" },
	{ V "targets\n", 3, 1, "a colon is missing there" },
};

static const struct refusal fields[] = {
	{ "targets: {}\n", 1, 1, "version: missing; give version: 1" },
	{ "version: 2\n", 1, 10, "version: 2: must be 1" },
	{ V "backstores: {a: {store:/x}}\n", 2, 18,
	  "backstore a: store:/x: give a blank after the colon" },
	{ V "backstores:\n  a:\n    store:/x\n", 4, 5,
	  "backstore a: store:/x: give a blank after the colon" },
	{ V "target: {}\n", 2, 1,
	  "target: unknown field; did you mean targets?" },
	{ V "portals: {}\n", 2, 1,
	  "portals: unknown field; did you mean portal-groups?" },
	{ V "xyzzy: {}\n", 2, 1,
	  "xyzzy: unknown field; give one of version, daemon, " },
	{ V "daemon: {wrokers: 2}\n", 2, 10,
	  "daemon: wrokers: unknown field; did you mean workers?" },
	{ V "daemon: {workers: 0}\n", 2, 19,
	  "daemon: workers: 0: must be a number from 1 to 64" },
	{ V "daemon: {workers: }\n", 2, 19, "workers: no value" },
	{ V "daemon: {workers: [1]}\n", 2, 19, "workers: a list; give one" },
	{ V "daemon: {workers: {}}\n", 2, 19, "workers: a mapping; give one" },
	{ V "daemon: {pin: maybe}\n", 2, 15, "pin: maybe: must be yes or no" },
	{ V "daemon: {io: fast}\n", 2, 14, "io: fast: must be one of auto" },
	{ V "daemon: {max-sessions: \"0:1\"}\n", 2, 24, "max-sessions: 0:1:" },
	{ V "daemon: 3\n", 2, 9, "daemon: not a mapping" },
	{ V "targets: 3\n", 2, 10, "targets: not a mapping" },
	{ V "targets: [x]\n", 2, 10, "targets: not a mapping" },
	{ V "auth-groups: {g: {accounts: {user: x}}}\n", 2, 29,
	  "auth group g: accounts: not a list" },
};

static const struct refusal backstores[] = {
	{ V "backstores: {a: {}}\n", 2, 17, "backstore a: store: missing" },
	{ V "backstores: {a: }\n", 2, 17, "backstore a: store: missing" },
	{ V "backstores: {\"a b\": {store: ram:1M}}\n", 2, 21,
	  "not a name; use letters" },
	{ V "backstores: {\"-a\": {store: ram:1M}}\n", 2, 20,
	  "does not begin with a letter" },
	{ V "backstores: {a: {store: ram:5x}}\n", 2, 25, "5x: not a size" },
	{ V "backstores: {a: {store: ram:1000}}\n", 2, 25,
	  "not a multiple of the block size 512" },
	{ V "backstores: {a: {store: \"\"}}\n", 2, 25, "no file or device" },
	{ V "backstores: {a: {store: \"x,key=y\"}}\n", 2, 25,
	  "has the suffix ,key= of the command line" },
	{ V "backstores: {a: {store: null:1M, key: k}}\n", 2, 39,
	  "stores nothing to encrypt" },
	{ V "backstores: {a: {store: ram:1M, pi: k}}\n", 2, 37,
	  "only files and block devices" },
	{ V "backstores: {a: {store: x, key: k, new-key: l}}\n", 2, 45,
	  "given with key" },
	{ V "backstores: {a: {store: x, vendor: too long to fit}}\n", 2, 36,
	  "not 1 to 8 characters" },
	{ V "backstores: {a: {store: x, serial: \"\\u00e4\"}}\n", 2, 36,
	  "not ASCII" },
	{ V "backstores: {a: {store: \"scsi:/dev/sg0\", serial: x}}\n", 2, 50,
	  "reports that of its device" },
	{ V "backstores: {a: {store: x, uuid: 5}}\n", 2, 34, "not a UUID" },
	{ V "backstores: {a: {store: x, "
	    "uuid: f81d4fae7dec-41d0-a765-00a0-c91e6bf6}}\n",
	  2, 34, "not a UUID" },
	{ V "backstores: {a: {store: x, "
	    "uuid: 00000000-0000-0000-0000-000000000000}}\n",
	  2, 34, "not a UUID" },
	{ V "backstores: {a: {store: x, naa: 6001405000000000}}\n", 2, 33,
	  "not an NAA identifier" },
	{ V "backstores: {a: {store: x, "
	    "naa: 50014050000000005001405000000000}}\n",
	  2, 33, "not an NAA identifier" },
	{ V "backstores: {a: {store: x, naa: 500140500000000g}}\n", 2, 33,
	  "not an NAA identifier" },
	{ V "backstores: {a: {store: x, naa: 50014050000000001}}\n", 2, 33,
	  "not an NAA identifier" },
	{ V "backstores: {a: {store: x, eui: 00253800000000}}\n", 2, 33,
	  "not an EUI-64" },
	{ V "backstores: {a: {store: x, eui: \"0000000000000000\"}}\n", 2, 33,
	  "not an EUI-64" },
	{ V "backstores: {a: {store: \"scsi:/dev/sg0\", eui: "
	    "0025380000000001}}\n",
	  2, 47, "reports that of its device" },
	{ V "backstores: {a: {store: x, block-size: 100}}\n", 2, 40,
	  "must be 512 or 4096" },
	{ V "backstores: {a: {store: x, protection: 4}}\n", 2, 40,
	  "must be a number from 1 to 3" },
	{ V "backstores: {a: {store: x, cache: none}}\n", 2, 35,
	  "cache: none: must be one of write-back, write-through" },
	{ V
	  "backstores: {a: {store: \"scsi:/dev/sg0\", cache: write-through}}\n",
	  2, 49, "has the cache of its device" },
	{ V "backstores: {a: {store: x, max-iops: 0}}\n", 2, 38,
	  "max-iops: 0: must be N[:BURST]" },
	{ V "backstores: {a: {store: x, max-iops: 100K}}\n", 2, 38,
	  "max-iops: 100K: must be N[:BURST]" },
	{ V "backstores: {a: {store: x, max-iops: \"10:\"}}\n", 2, 38,
	  "must be N[:BURST]" },
	{ V "backstores: {a: {store: x, max-iops: 1000000001}}\n", 2, 38,
	  "each from 1 to 1000000000" },
	{ V "backstores: {a: {store: x, max-bandwidth: 1M:0}}\n", 2, 43,
	  "max-bandwidth: 1M:0: must be SIZE[:BURST]" },
	{ V "backstores: {a: {store: x, max-bandwidth: 100}}\n", 2, 43,
	  "each at least 1K" },
	{ V "backstores: {a: {store: x, max-bandwidth: 1M:2M:3M}}\n", 2, 43,
	  "must be SIZE[:BURST]" },
};

static const struct refusal groups[] = {
	{ V "auth-groups: {any: {}}\n", 2, 20, "any and none are built in" },
	{ V "auth-groups: {g: {initiators: [foo]}}\n", 2, 32,
	  "auth group g: initiators: foo:" },
	{ V "auth-groups: {g: {initiators: [\"foo*\"]}}\n", 2, 32,
	  "begins with none of iqn., eui., naa." },
	{ V "auth-groups: {g: {initiators: [\"iqn.a/b*\"]}}\n", 2, 32,
	  "U+002F is not allowed in an iSCSI name" },
	{ V "auth-groups: {g: {addresses: [10.0.0.0/33]}}\n", 2, 31,
	  "10.0.0.0/33: not an address" },
	{ V "auth-groups: {g: {addresses: [10.1.2.3/8]}}\n", 2, 31,
	  "10.1.2.3/8: an address and the length of a network" },
	{ V "auth-groups: {g: {addresses: [\"fd00::1/127\"]}}\n", 2, 31,
	  "give the address alone" },
	{ V "portal-groups: {a: {listen: \"::1:3260\"}}\n", 2, 29,
	  "an IPv6 address, or one with a port; give [V6]:PORT" },
	{ V "portal-groups: {a: {listen: 0.0.0.0}, b: {tag: 2, listen: "
	    "127.0.0.1}}\n",
	  2, 59, "127.0.0.1: already an address of portal group a" },
	{ V "portal-groups: {a: {listen: \"[::1]:80\"}, b: {tag: 2, listen: "
	    "\"[::]:80\"}}\n",
	  2, 62, "already an address of portal group a" },
	{ V "daemon: {metrics: \"127.0.0.1:3260\"}\nportal-groups: {a: "
	    "{listen: 0.0.0.0}}\n",
	  3, 29, "0.0.0.0: already the address of metrics" },
	{ V "auth-groups: {g: {addresses: [host]}}\n", 2, 31,
	  "host: not an address" },
	{ V "auth-groups: {g: {accounts: [{user: a}]}}\n", 2, 30,
	  "auth group g: account 1: secret-file: missing" },
	{ V "auth-groups: {g: {accounts: [{user: a, secret-file: b}, {user: "
	    "a, secret-file: c}]}}\n",
	  2, 64, "account 2: user: a: already account 1" },
	{ V "auth-groups: {g: {mutual: {user: a, secret-file: b}}}\n", 2, 27,
	  "the group has no accounts" },
	{ V "auth-groups: {g: {accounts: [{user: a, secret-file: b, "
	    "initiators: foo}]}}\n",
	  2, 68, "auth group g: account 1: initiators: foo: " },
	{ V "auth-groups: {g: {accounts: [{user: a, secret-file: b}], mutual: "
	    "{user: t, secret-file: c, initiators: eui.*}}}\n",
	  2, 66, "is for every initiator; leave out its initiators" },
	{ V "auth-groups: {g: {accounts: [{user: a, secret: hunter2hunter2, "
	    "secret-file: b}]}}\n",
	  2, 40, "secret: unknown field; did you mean secret-file?" },
	{ V "portal-groups: {p: {}}\n", 2, 20, "listen: missing" },
	{ V "portal-groups: {p: {listen: here}}\n", 2, 29,
	  "here: not a numeric address" },
	{ V "portal-groups: {p: {listen: []}}\n", 2, 20, "listen: missing" },
	{ V "portal-groups: {p: {listen: 3260}, q: {listen: 3261}}\n", 2, 39,
	  "tag: 1: already the tag of portal group p" },
	{ V "portal-groups: {p: {listen: 3260}, q: {tag: 2, listen: "
	    "[\"127.0.0.1\"]}}\n",
	  2, 56, "already an address of portal group p" },
	{ V "portal-groups: {p: {listen: 0, verbs-listen: 1, transport: tcp}}"
	    "\n",
	  2, 46, "transport does not have iser" },
	{ V "portal-groups: {p: {listen: 0, discovery-auth: x}}\n", 2, 48,
	  "discovery-auth: x: no such auth group; add it to auth-groups" },
	{ V "portal-groups: {p: {listen: 0, transport: [tcp, udp]}}\n", 2, 43,
	  "must be one or more of tcp, iser, switch" },
	{ V "initiator-groups: {iqn.x: [iqn.2026-01.x:y]}\n", 2, 27,
	  "looks like that of an initiator" },
	{ V "initiator-groups: {g: []}\n", 2, 23, "names: an empty list" },
	{ V "alua-groups: {0: {ports: 1}}\n", 2, 18,
	  "not a number from 1 to 65535" },
	{ V "alua-groups: {1: {ports: 0}}\n", 2, 26,
	  "ports: 0: must be a number from 1 to 65535" },
	{ V "alua-groups: {1: {ports: 1}, 2: {ports: 1}}\n", 2, 41,
	  "1: already a port of group 1" },
	{ V "alua-groups: {1: {state: dozing, ports: 1}}\n", 2, 26,
	  "dozing: must be one of optimized" },
	{ V "alua-groups: {1: {ports: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, "
	    "13, 14, 15, 16, 17]}}\n",
	  2, 26, "more than 16; give fewer" },
};

static const struct refusal targets[] = {
	{ T PG, 6, 5, "target iqn.2026-01.x:y: auth-group: missing" },
	{ T A, 6, 5, "portal-groups: missing" },
	{ T A "    portal-groups: []\n", 6, 5, "portal-groups: an empty list" },
	{ T A "    portal-groups: q\n", 7, 20, "q: no such portal group" },
	{ T A "    portal-groups: [p, p]\n", 7, 20, "p: given twice" },
	{ T PG "    auth-group: labs\n", 7, 17, "labs: no such auth group" },
	{ T A PG "    luns: {0: c}\n", 8, 15, "c: no such backstore" },
	{ T A PG "    luns: {0: a, 0: b}\n", 8, 18, "0: given twice" },
	{ T A PG "    luns: {0: a, 1: a}\n", 8, 21,
	  "LUN 1: backstore: a: already another LUN here" },
	{ T A PG "    luns: {16384: a}\n", 8, 19,
	  "LUN 16384: not a number from 0 to 16383" },
	{ T A PG "    luns: {01: a}\n", 8, 16, "not a number from 0" },
	{ T A PG "    luns: {0: {read-only: yes}}\n", 8, 15,
	  "LUN 0: backstore: missing" },
	{ T A PG "    maps: [{luns: {0: a}}]\n", 8, 12,
	  "map 1: initiators: missing" },
	{ T A PG "    maps: [{initiators: grp, luns: {0: a}}]\n", 8, 25,
	  "map 1: initiators: grp: no such initiator group" },
	{ T A PG "    maps: [{initiators: iqn.x, luns: {0: a}}]\n", 8, 25,
	  "map 1: initiators: iqn.x: " },
	{ T A PG "    maps: [{initiators: eui.*, account: x, luns: {}}]\n", 8,
	  41, "map 1: account: x: no account of the target's auth group" },
	{ STORE P "targets: {disk: {auth-group: any, portal-groups: p}}\n", 4,
	  17, "target disk: " },
	{ STORE P "targets:\n"
		  "  iqn.2026-01.x:y: {auth-group: any, portal-groups: p}\n"
		  "  iqn.2026-01.x:Y: {auth-group: any, portal-groups: p}\n",
	  6, 20, "the same name as iqn.2026-01.x:y" },
	{ T A PG "    tgt-id: 0\n", 8, 13, "0" },
	{ T A PG "    tgt-id: 2147483648\n", 8, 13, "2147483648" },
	{ STORE P
	  "targets:\n"
	  "  iqn.2026-01.x:y: {auth-group: any, portal-groups: p, tgt-id: 4}\n"
	  "  iqn.2026-01.x:u: {auth-group: any, portal-groups: p}\n"
	  "  iqn.2026-01.x:v: {auth-group: any, portal-groups: p}\n"
	  "  iqn.2026-01.x:z: {auth-group: any, portal-groups: p, tgt-id: 4}\n",
	  8, 64, "tgt-id: 4: already the number of iqn.2026-01.x:y" },
};

static void check_refusals(const struct refusal *rows, size_t n)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i++) {
		const struct refusal *r = &rows[i];
		struct cfg_model *m = read_text(r->text);

		if (m || errors.n != 1 || errors.all[0].at.line != r->line ||
		    errors.all[0].at.column != r->column ||
		    !strstr(errors.all[0].text, r->want)) {
			print_error("%s\ngives %u errors, the first is "
				    "%u:%u: %s\n",
				    r->text, errors.n, errors.all[0].at.line,
				    errors.all[0].at.column,
				    errors.all[0].text);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static void test_syntax(void **state)
{
	(void)state;
	check_refusals(syntax, ARRAY_LEN(syntax));
}

static void test_fields(void **state)
{
	(void)state;
	check_refusals(fields, ARRAY_LEN(fields));
}

static void test_backstores(void **state)
{
	(void)state;
	check_refusals(backstores, ARRAY_LEN(backstores));
}

static void test_groups(void **state)
{
	(void)state;
	check_refusals(groups, ARRAY_LEN(groups));
}

static void test_targets(void **state)
{
	(void)state;
	check_refusals(targets, ARRAY_LEN(targets));
}

/* All errors are reported in the order of the lines; after 20, they are
 * counted. */
static void test_many_errors(void **state)
{
	char text[4096] = V "targets: {iqn.2026-01.x:y: {auth-group: q}}\n"
			    "backstores:\n";

	(void)state;
	for (unsigned i = 0; i < 30; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "  b%u: {store: ram:x}\n", i);
	assert_null(read_text(text));
	assert_int_equal(errors.n, 32);
	assert_int_equal(cfg_errors_kept(&errors), CFG_ERRORS);
	for (unsigned i = 1; i < CFG_ERRORS; i++)
		assert_true(errors.all[i - 1].at.line <= errors.all[i].at.line);
}

/* A value that may be a secret is not in the error. */
static void test_secrets_are_not_shown(void **state)
{
	(void)state;
	assert_null(read_text(V
			      "auth-groups: {g: {accounts: [{user: a, secret: "
			      "hunter2hunter2, secret-file: b}]}}\n"));
	for (unsigned i = 0; i < cfg_errors_kept(&errors); i++)
		assert_null(strstr(errors.all[i].text, "hunter2"));
}

static void test_line_of_an_error(void **state)
{
	char line[256];

	(void)state;
	assert_null(read_text(V "\"a\\u001b[31m\": 1\n"));
	assert_null(read_text(V "daemon: {io: x}\n"));
	cfg_error_line(&errors, 0, "f\033", "", line, sizeof(line));
	assert_string_equal(line, "f\\x1b:2:14: daemon: io: x: must be one of "
				  "auto, uring, epoll");
}

/* ---- differences ---- */

struct seen {
	char text[2048];
	unsigned n;
};

static void see(void *arg, const struct cfg_change *c)
{
	struct seen *s = arg;

	s->n++;
	snprintf(s->text + strlen(s->text), sizeof(s->text) - strlen(s->text),
		 "%c %s %s %s%s\n", "+-~"[c->kind], c -> path,
		 c -> from ? c -> from : "", c->to ? c->to : "",
		 c->needs_restart ? " restart" : "");
}

static void assert_diff(const char *a, const char *b, const char *want)
{
	struct cfg_model *from = read_good(a), *to = read_good(b);
	struct seen s = { .n = 0 };

	assert_true(cfg_diff(from, to, see, &s));
	assert_string_equal(s.text, want);
	cfg_model_free(from);
	cfg_model_free(to);
}

static void test_differences(void **state)
{
	(void)state;
	assert_diff(full, full, "");
	assert_diff(V "daemon: {workers: 1, log: notice}\n", V, "");
	assert_diff(STORE, V "backstores: {b: {store: ram:1024K}}\n",
		    "- backstores.a {store: ram:1M} \n"
		    "~ backstores.b.store ram:1M ram:1024K\n");
	assert_diff(V, V "daemon: {workers: 2, log: debug}\n",
		    "+ daemon.workers  2 restart\n+ daemon.log  debug\n");
	assert_diff(STORE,
		    V
		    "backstores: {a: {store: ram:1M, max-iops: 7:7},\n"
		    "             b: {store: ram:1M, max-bandwidth: 1024K:3M,\n"
		    "                 cache: write-back}}\n",
		    "+ backstores.a.max-iops  7\n"
		    "+ backstores.b.max-bandwidth  1M:3M\n");
	assert_diff(T A PG, T A PG "    luns: {3: a}\n",
		    "+ targets.iqn.2026-01.x:y.luns  {3: a}\n");
	assert_diff(V, V "alua-groups: {1: {ports: [1, 2]}}\n",
		    "+ alua-groups.1  {ports: [1, 2]}\n");
}

/* Compares the backstore "a" of two files. */
static void assert_compared(const char *a, const char *b,
			    enum cfg_difference want)
{
	char text[2][200];
	struct cfg_model *from, *to;

	snprintf(text[0], sizeof(text[0]), V "backstores: {a: {store: x%s}}\n",
		 a);
	snprintf(text[1], sizeof(text[1]),
		 V "backstores: {b: {store: y}, a: {store: x%s}}\n", b);
	from = read_good(text[0]);
	to = read_good(text[1]);
	assert_null(cfg_backstore_find(from, "b"));
	assert_ptr_equal(cfg_backstore_find(to, "a"), &to->backstores.v[1]);
	assert_int_equal(cfg_backstore_compare(cfg_backstore_find(from, "a"),
					       cfg_backstore_find(to, "a")),
			 want);
	cfg_model_free(from);
	cfg_model_free(to);
}

static void test_backstores_are_compared(void **state)
{
	static const char *const live[] = {
		", vendor: ACME",	   ", product: disk",
		", revision: \"2\"",	   ", serial: \"3\"",
		", read-only: yes",	   ", rotational: yes",
		", cache: write-through",  ", max-iops: 10",
		", max-iops: 10:11",	   ", max-bandwidth: 1M",
		", naa: 3000000000000001", ", eui: 0000000000000001",
	};
	static const char *const others[] = {
		", key: /k",
		", protection: 1",
		", block-size: 4096",
		", buffered: yes",
		", shared: yes",
		", removable: yes",
		", sanitize-rate: 1M, serial: x",
		", uuid: f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
	};

	(void)state;
	assert_compared("", "", CFG_SAME);
	assert_compared("", ", cache: write-back, read-only: no", CFG_SAME);
	assert_compared(", serial: x, rotational: yes",
			", rotational: on, serial: \"x\"", CFG_SAME);
	for (unsigned i = 0; i < ARRAY_LEN(live); i++)
		assert_compared("", live[i], CFG_DIFFERS_LIVE);
	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		assert_compared("", others[i], CFG_DIFFERS);
}

/* ---- the command line ---- */

/* The command line is a configuration with one target. */
static void test_command_line(void **state)
{
	static struct options o;
	struct cfg_model *m;
	char *text;

	(void)state;
	memset(&errors, 0, sizeof(errors));
	options_default(&o);
	snprintf(o.name, sizeof(o.name), "iqn.2026-01.x:y");
	o.luns[o.nluns++] = "ram:1M,key=/k";
	o.luns[o.nluns++] = "cd:";
	o.listen[o.nlisten++] = "127.0.0.1:0";
	o.groups[o.ngroups++] = "7:standby:1,2:preferred";
	o.lun.read_only = true;
	o.workers = 3;
	o.chap.user = "me";
	o.chap.secret_file = "/s";
	o.chap.discovery = true;
	o.strict = true;
	m = cfg_model_of_options(&o, &errors);
	assert_non_null(m);
	assert_true(m->is_command_line);
	text = cfg_dump(m);
	assert_string_equal(text, "version: 1\n"
				  "daemon:\n"
				  "  workers: 3\n"
				  "backstores:\n"
				  "  lun0:\n"
				  "    store: ram:1M\n"
				  "    key: /k\n"
				  "    read-only: yes\n"
				  "  lun1:\n"
				  "    store: \"cd:\"\n"
				  "    read-only: yes\n"
				  "auth-groups:\n"
				  "  chap:\n"
				  "    accounts:\n"
				  "      - user: me\n"
				  "        secret-file: /s\n"
				  "portal-groups:\n"
				  "  portals:\n"
				  "    listen: [\"127.0.0.1:0\"]\n"
				  "    discovery-auth: chap\n"
				  "targets:\n"
				  "  iqn.2026-01.x:y:\n"
				  "    alias: openiser\n"
				  "    auth-group: chap\n"
				  "    portal-groups: [portals]\n"
				  "    luns:\n"
				  "      0: lun0\n"
				  "      1: lun1\n"
				  "    compat: strict\n"
				  "alua-groups:\n"
				  "  7:\n"
				  "    state: standby\n"
				  "    ports: [1, 2]\n"
				  "    preferred: yes\n");
	free(text);
	cfg_model_free(m);
	o.luns[o.nluns++] = "null:1M,key=/k";
	assert_null(cfg_model_of_options(&o, &errors));
}

/* ---- the rows ---- */

/* Each option of the command line is a field of one noun, except those that a
 * file has in another form. */
static void test_each_option_is_a_field(void **state)
{
	static const char *const other[] = { "name",
					     "chap-user",
					     "chap-secret-file",
					     "chap-mutual-user",
					     "chap-mutual-secret-file",
					     "discovery-auth",
					     "takeover",
					     "alua" };
	const struct cfg_row *rows;
	size_t n;

	(void)state;
	rows = cfg_rows(&n);
	for (size_t i = 0; i < n; i++) {
		unsigned found = rows[i].type == CFG_ACTION;

		for (unsigned k = 0; k < ARRAY_LEN(other); k++)
			found += !strcmp(rows[i].opt.name, other[k]);
		for (unsigned k = 0; k < CFG_NOUNS; k++) {
			const struct cfg_noun *noun =
				cfg_noun_of((enum cfg_noun_id)k);

			for (unsigned f = 0; f < noun->nfields; f++)
				if (noun->fields[f].option &&
				    cfg_field_row(&noun->fields[f]) == &rows[i])
					found++;
		}
		if (found != 1)
			fail_msg("%s is a field of %u nouns; one noun of "
				 "nouns.c needs an OPTION for it",
				 rows[i].opt.name, found);
	}
}

/* Returns whether the noun has a member for the option: else its value would be lost. */
static bool has_member(const struct cfg_noun *noun, const struct cfg_row *row)
{
	for (unsigned i = 0; i < noun->nmembers; i++)
		if (row->opt.at - noun->members[i].option <
		    noun->members[i].size)
			return true;
	return row->get || row->parts;
}

static void test_rows_of_nouns_are_complete(void **state)
{
	(void)state;
	for (unsigned k = 0; k < CFG_NOUNS; k++) {
		const struct cfg_noun *noun = cfg_noun_of((enum cfg_noun_id)k);

		assert_true(noun->name && noun->help && noun->nfields);
		assert_true(noun->nfields <= CFG_FIELDS_MAX);
		for (unsigned f = 0; f < noun->nfields; f++) {
			const struct cfg_field *field = &noun->fields[f];
			const struct cfg_row *row = cfg_field_row(field);
			bool has_value = field->shape <= CFG_MANY &&
					 row->type != CFG_BOOL;

			assert_true(row->opt.help && *row->opt.help);
			assert_true((row->opt.arg != NULL) == has_value);
			assert_true(!field->option ||
				    field->shape == CFG_MANY ||
				    has_member(noun, row));
			assert_true(!(row->opt.initial && row->otherwise));
			/* no secret is in a document: only its file */
			assert_true(!row->is_secret || row->type == CFG_PATH);
			/* else a dump would leave out its value */
			assert_true(field->shape != CFG_ONE ||
				    row->opt.kind != OPT_KIND_CALL ||
				    row->get || row->parts || row->kept);
		}
	}
}

static void test_nearest(void **state)
{
	struct nearest n;

	(void)state;
	nearest_begin(&n, "lsiten");
	nearest_try(&n, "tag");
	assert_null(n.best);
	nearest_try(&n, "listen");
	nearest_try(&n, "verbs-listen");
	assert_string_equal(n.best, "listen");
	nearest_begin(&n, "db");
	nearest_try(&n, "xy");
	assert_null(n.best);
	nearest_try(&n, "da");
	assert_string_equal(n.best, "da");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fields),
		cmocka_unit_test(test_canonical_form_is_stable),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_backstores),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_many_errors),
		cmocka_unit_test(test_secrets_are_not_shown),
		cmocka_unit_test(test_line_of_an_error),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_backstores_are_compared),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_each_option_is_a_field),
		cmocka_unit_test(test_rows_of_nouns_are_complete),
		cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
