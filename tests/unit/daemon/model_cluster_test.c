/* SPDX-License-Identifier: BSD-2-Clause */
/* model_cluster_test.c: the section `cluster` of a configuration, and the backstores of
 * several gateways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cmocka_all.h"
#include "daemon/config/model.h"

static struct cfg_errors errors;

static struct cfg_model *read_text(const char *text)
{
	memset(&errors, 0, sizeof(errors));
	return cfg_model_read(text, strlen(text), &errors);
}

/* A file with this section and these fields of a backstore and of a portal group. */
static const char *file_of(const char *section, const char *backstore,
			   const char *portal)
{
	static char text[2048];

	snprintf(
		text, sizeof(text),
		"version: 1\n"
		"backstores: {disk: {%s}}\n"
		"portal-groups: {front: {listen: [\"127.0.0.1:0\"]%s}}\n"
		"targets:\n"
		"  iqn.2026-01.x:y:\n"
		"    {auth-group: any, portal-groups: front, luns: {0: disk}}\n"
		"%s\n",
		backstore, portal, section);
	return text;
}

static void test_all_fields(void **state)
{
	struct cfg_model *m = read_text(
		file_of("cluster: {number: 3, gateway: gw_3.x, directory: /d, "
			"failover: manual, beacon: 100, silence: 300, "
			"patience: 700}",
			"store: /disk, cluster: yes",
			", tag: 2, announce: [10.0.0.1, \"[fd00::1]:99\"]"));
	const struct cfg_cluster *c;
	char *text;

	(void)state;
	assert_int_equal(errors.n, 0);
	assert_int_equal(m->cluster.n, 1);
	c = m->cluster.v;
	assert_string_equal(c->gateway, "gw_3.x");
	assert_int_equal(c->options.number, 3);
	assert_string_equal(c->options.directory, "/d");
	assert_int_equal(c->options.failover, FAILOVER_MANUAL);
	assert_int_equal(c->options.beacon, 100);
	assert_int_equal(c->options.silence, 300);
	assert_int_equal(c->options.patience, 700);
	assert_int_equal(m->portals.v[0].announce.n, 2);
	assert_true(m->backstores.v[0].lun.cluster);
	assert_int_equal(m->portals.v[0].tag, 2);
	assert_int_equal(m->portals.v[0].wire_tag, 19);
	text = cfg_dump(m);
	assert_non_null(strstr(text, "    cluster: yes\n"));
	assert_non_null(
		strstr(text, "    announce: [10.0.0.1, \"[fd00::1]:99\"]\n"));
	assert_non_null(strstr(text, "cluster:\n"
				     "  number: 3\n"
				     "  gateway: gw_3.x\n"
				     "  directory: /d\n"
				     "  failover: manual\n"
				     "  beacon: 100\n"
				     "  silence: 300\n"
				     "  patience: 700\n"));
	free(text);
	cfg_model_free(m);
}

/* The name of the host is a valid one, whatever it is; without a cluster, tags are
 * those of the file. */
static void test_defaults(void **state)
{
	struct cfg_model *m =
		read_text(file_of("cluster: {number: 16, directory: /d}",
				  "store: /disk, cluster: yes", ""));

	(void)state;
	assert_int_equal(errors.n, 0);
	assert_true(strlen(m->cluster.v->gateway) > 0);
	assert_int_equal(m->cluster.v->options.failover, FAILOVER_AUTOMATIC);
	assert_int_equal(m->cluster.v->options.beacon, 1000);
	assert_int_equal(m->portals.v[0].wire_tag, 16);
	cfg_model_free(m);
	m = read_text(file_of("", "store: /disk", ", tag: 65535"));
	assert_int_equal(errors.n, 0);
	assert_int_equal(m->cluster.n, 0);
	assert_int_equal(m->portals.v[0].wire_tag, 65535);
	cfg_model_free(m);
}

static bool has_error(const char *text)
{
	for (unsigned i = 0; i < cfg_errors_kept(&errors); i++)
		if (strstr(errors.all[i].text, text))
			return true;
	return false;
}

static void test_bad(void **state)
{
	static const char good[] = "cluster: {number: 1, directory: /d}";
	static const char disk[] = "store: /disk, cluster: yes";
	static const struct {
		const char *section, *backstore, *portal, *error;
	} rows[] = {
		{ "", disk, "", "without the section cluster" },
		{ "cluster: {number: 1}", disk, "", "needs a directory" },
		{ "cluster: {directory: /d}", disk, "", "number: missing" },
		{ "cluster: {number: 0}", disk, "", "from 1 to 16" },
		{ "cluster: {number: 17}", disk, "", "from 1 to 16" },
		{ "cluster: {number: 1, gateway: \"\"}", disk, "",
		  "gateway: " },
		{ "cluster: {number: 1, gateway: a b}", disk, "",
		  "use letters" },
		{ "cluster: {number: 1, gateway: "
		  "a23456789012345678901234567890123456789012345678901234567890"
		  "1234}",
		  disk, "", "longer than 63 bytes" },
		{ "cluster: {number: 1, directory: /d, silence: 2999}", disk,
		  "", "three times the beacon" },
		{ good, disk, ", announce: host", "not a numeric address" },
		{ good, disk, ", announce: \"[::]\"",
		  "stands for all addresses" },
		{ good, disk, ", announce: \"3260\"", "announce: " },
		{ good, disk, ", announce: 10.0.0.1:0",
		  "not a numeric address" },
		{ good, disk, ", announce: \"[fe80::1%lo]\"", "has a zone" },
		{ "cluster: {number: 1, directory: /d}\n"
		  "alua-groups: {1: {ports: [1]}}",
		  disk, "", "leave out alua-groups" },
		{ "cluster: {number: 1, directory: /d}\ndaemon: {port-id: 7}",
		  disk, "", "leave out port-id" },
		{ good, disk, ", tag: 4096", "tags up to 4095" },
		{ good, "store: ram:1M, cluster: yes", "", "in this iserd" },
		{ good, "store: null:1M, cluster: yes", "", "in this iserd" },
		{ good, "store: \"cd:/x\", cluster: yes", "", "same image" },
		{ good, "store: scsi:/dev/sg0, cluster: yes", "",
		  "in the device" },
		{ good, "store: \"nbd://h/x\", cluster: yes", "",
		  "NBD server" },
		{ good, "store: /disk, cluster: yes, shared: yes", "",
		  "leave shared out" },
		{ good, "store: /disk, cluster: yes, read-only: yes", "",
		  "leave cluster out" },
		{ good, "store: /disk, cluster: yes, key: /k", "",
		  "CRYPTO ERASE" },
		{ good, "store: /disk, cluster: yes, protection: 1", "",
		  "stored apart" },
		{ good, "store: /disk, cluster: yes, removable: yes", "",
		  "ejected" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cfg_model *m = read_text(file_of(
			rows[i].section, rows[i].backstore, rows[i].portal));

		if (m || !errors.n)
			fail_msg("row %zu was accepted", i);
		if (!has_error(rows[i].error))
			fail_msg("row %zu: %s", i, errors.all[0].text);
	}
}

/* Images of Ceph have their record beside them. */
static void test_image_needs_no_directory(void **state)
{
	struct cfg_model *m = read_text(
		file_of("cluster: {number: 1}",
			"store: \"rbd:pool/image\", cluster: yes", ""));

	(void)state;
	assert_non_null(m);
	cfg_model_free(m);
}

static void test_command_line(void **state)
{
	static struct options o;
	struct cfg_model *m;
	char *text;

	(void)state;
	memset(&errors, 0, sizeof(errors));
	options_default(&o);
	snprintf(o.name, sizeof(o.name), "iqn.2026-01.x:y");
	o.luns[o.nluns++] = "/disk";
	o.listen[o.nlisten++] = "127.0.0.1:0";
	o.lun.cluster = true;
	o.cluster.number = 2;
	o.cluster.directory = "/d";
	o.announce.v[o.announce.n++] = "10.0.0.1";
	m = cfg_model_of_options(&o, &errors);
	assert_non_null(m);
	text = cfg_dump(m);
	assert_non_null(strstr(text, "cluster:\n"
				     "  number: 2\n"
				     "  directory: /d\n"));
	assert_non_null(strstr(text, "    announce: [10.0.0.1]\n"));
	assert_int_equal(m->portals.v[0].wire_tag, 2);
	free(text);
	cfg_model_free(m);
}

struct changes {
	unsigned n, restarts;
};

static void count(void *arg, const struct cfg_change *c)
{
	struct changes *x = arg;

	x->n++;
	x->restarts += c->needs_restart;
}

/* Only the addresses change while iserd serves. */
static void test_changes(void **state)
{
	static const char before[] = "cluster: {number: 1, directory: /d}";
	static const struct {
		const char *section, *portal;
		unsigned restarts;
	} rows[] = {
		{ before, ", announce: 10.0.0.1", 0 },
		{ "cluster: {number: 2, directory: /d}", "", 1 },
		{ "cluster: {number: 1, directory: /e}", "", 1 },
		{ "cluster: {number: 1, directory: /d, beacon: 100}", "", 1 },
	};
	static const char disk[] = "store: /disk, cluster: yes";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cfg_model *a = read_text(file_of(before, disk, ""));
		struct cfg_model *b = read_text(
			file_of(rows[i].section, disk, rows[i].portal));
		struct changes x = { 0 };

		assert_true(a && b);
		assert_true(cfg_diff(a, b, count, &x));
		assert_int_equal(x.n, 1);
		assert_int_equal(x.restarts, rows[i].restarts);
		cfg_model_free(a);
		cfg_model_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fields),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_image_needs_no_directory),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
