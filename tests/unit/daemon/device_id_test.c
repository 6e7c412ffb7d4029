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
	};

	return cmocka_run_group_tests_name("daemon device_id", tests, make_dir,
					   remove_dir);
}
