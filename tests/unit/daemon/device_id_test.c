/* SPDX-License-Identifier: BSD-2-Clause */
/* device_id_test.c: identities of block devices, from copies of the folders of
 * sysfs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "daemon/luns/device_id.h"

static char dir[] = "device_id_test.XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void folder(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static bool id_of(const char *name, uint8_t id[16])
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return device_id_at(path, id);
}

static void test_disks_and_partitions(void **state)
{
	uint8_t disk[16], one[16], two[16], again[16];

	(void)state;
	folder("sda");
	assert_false(id_of("sda", disk)); /* there is no identity */
	folder("sda/device");
	put("sda/device/wwid", "naa.5000c500a1b2c3d4\n");
	assert_true(id_of("sda", disk));
	folder("sda/sda1");
	folder("sda/sda2");
	put("sda/sda1/partition", "1\n");
	assert_false(id_of("sda/sda1", one)); /* its first sector is unknown */
	put("sda/sda1/start", "2048\n");
	put("sda/sda2/partition", "2\n");
	put("sda/sda2/start", "1050624\n");
	assert_true(id_of("sda/sda1", one));
	assert_true(id_of("sda/sda2", two));
	assert_memory_not_equal(disk, one, 16);
	assert_memory_not_equal(one, two, 16);
	/* another name, the same disk; another disk of the same name */
	folder("sdb");
	folder("sdb/device");
	put("sdb/device/wwid", "naa.5000c500a1b2c3d4\n");
	assert_true(id_of("sdb", again));
	assert_memory_equal(disk, again, 16);
	put("sda/device/wwid", "naa.5000c500a1b2c3d5\n");
	assert_true(id_of("sda", again));
	assert_memory_not_equal(disk, again, 16);
	assert_true(id_of("sda/sda1", again));
	assert_memory_not_equal(one, again, 16);
}

static void test_other_kinds(void **state)
{
	static const char *const kinds[][2] = {
		{ "nvme0n1", "wwid" },
		{ "vda", "serial" },
		{ "dm-0/dm", "uuid" },
		{ "md0/md", "uuid" },
		{ "loop0/loop", "backing_file" },
	};
	char path[64];
	uint8_t id[16];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(path, sizeof(path), "%s", kinds[i][0]);
		if (strchr(path, '/')) {
			*strchr(path, '/') = '\0';
			folder(path);
		}
		folder(kinds[i][0]);
		assert_false(id_of(path, id));
		snprintf(path, sizeof(path), "%s/%s", kinds[i][0], kinds[i][1]);
		put(path, "one of its kind\n");
		*strchr(path, '/') = '\0';
		assert_true(id_of(path, id));
	}
	assert_false(id_of("there/is/none", id));
}

/* ---- names, and which of them are unique ---- */

static void expect_name(const char *name, enum device_names kind,
			const char *want)
{
	char text[DEVICE_TEXT], path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(device_name_at(path, text), kind);
	if (want)
		assert_string_equal(text, want);
}

static void test_names(void **state)
{
	static const char luks[] =
		"CRYPT-LUKS2-0123456789abcdef0123456789abcdef";
	static const struct {
		const char *file, *text;
		enum device_names kind;
		const char *want; /* NULL: the text */
	} rows[] = {
		{ "device/wwid", "naa.5000c500a1b2c3d4", DEVICE_UNIQUE, NULL },
		{ "device/wwid", "naa.6001405b605d2c100000000000000000",
		  DEVICE_UNIQUE, NULL },
		{ "device/wwid", "eui.0025385a91b0326f", DEVICE_UNIQUE, NULL },
		/* of scsi_debug, on each machine */
		{ "device/wwid", "naa.3333333000007d0", DEVICE_OF_SERIES,
		  NULL },
		{ "device/wwid", "t10.ATA     QEMU HARDDISK   QM00001  ",
		  DEVICE_OF_SERIES, "t10.ATA     QEMU HARDDISK   QM00001" },
		{ "wwid", "eui.0025385a91b0326f", DEVICE_UNIQUE, NULL },
		{ "wwid", "eui.5254000000000001", DEVICE_OF_SERIES, NULL },
		{ "wwid", "eui.02000000000000000025385a91b0326f", DEVICE_UNIQUE,
		  NULL },
		{ "wwid", "uuid.6e1e8f5a-0000-4000-8000-000000000001",
		  DEVICE_UNIQUE, NULL },
		{ "wwid", "nvme.1b36-31323334-51454d55-00000001",
		  DEVICE_OF_SERIES, NULL },
		{ "serial", "0001", DEVICE_OF_SERIES, NULL },
		{ "dm/uuid", "LVM-abc", DEVICE_UNIQUE, NULL },
		{ "dm/uuid",
		  "CRYPT-LUKS2-0123456789abcdef0123456789abcdef-data",
		  DEVICE_UNIQUE, luks },
		{ "dm/uuid", "CRYPT-PLAIN-data", DEVICE_OF_SERIES, NULL },
		{ "dm/uuid", "CRYPT-LUKS2-short", DEVICE_OF_SERIES, NULL },
		/* with and without multipathd */
		{ "dm/uuid", "mpath-36001405b605d2c100000000000000000",
		  DEVICE_UNIQUE, "naa.6001405b605d2c100000000000000000" },
		{ "dm/uuid", "mpath-33333333000007d00", DEVICE_OF_SERIES,
		  "naa.3333333000007d00" },
		{ "dm/uuid", "mpath-20025385a91b0326f", DEVICE_UNIQUE,
		  "eui.0025385a91b0326f" },
		{ "dm/uuid", "mpath-1ATA_QM00001", DEVICE_OF_SERIES, NULL },
		{ "dm/uuid", "mpath-", DEVICE_OF_SERIES, NULL },
		{ "dm/uuid", "", DEVICE_NAMELESS, "" },
		{ "md/uuid", "3b07a5c3:1:2:3", DEVICE_UNIQUE, NULL },
		{ "loop/backing_file", "/srv/x.img", DEVICE_LOOP, "" },
	};
	char name[64], file[128];

	(void)state;
	folder("none");
	expect_name("none", DEVICE_NAMELESS, "");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(name, sizeof(name), "n%u", i);
		folder(name);
		snprintf(file, sizeof(file), "%s/%s", name, rows[i].file);
		if (strchr(rows[i].file, '/')) {
			*strrchr(file, '/') = '\0';
			folder(file);
		}
		snprintf(file, sizeof(file), "%s/%s", name, rows[i].file);
		snprintf(name, sizeof(name), "%s\n", rows[i].text);
		put(file, name);
		snprintf(name, sizeof(name), "n%u", i);
		expect_name(name, rows[i].kind,
			    rows[i].want ? rows[i].want : rows[i].text);
		/* its partition */
		snprintf(file, sizeof(file), "n%u/part", i);
		folder(file);
		snprintf(file, sizeof(file), "n%u/part/partition", i);
		put(file, "1\n");
		snprintf(name, sizeof(name), "n%u/part", i);
		expect_name(name, DEVICE_NAMELESS, ""); /* where it begins? */
		snprintf(file, sizeof(file), "n%u/part/start", i);
		put(file, "2048\n");
		snprintf(file, sizeof(file), "2048%s%s",
			 rows[i].kind > DEVICE_OF_SERIES ? "" : " ",
			 rows[i].want ? rows[i].want : rows[i].text);
		expect_name(name, rows[i].kind,
			    rows[i].kind == DEVICE_NAMELESS ? NULL : file);
	}
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disks_and_partitions),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("daemon device_id", tests, make_dir,
					   remove_dir);
}
