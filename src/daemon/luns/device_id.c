/* SPDX-License-Identifier: BSD-2-Clause */
/* device_id.c: derives the identity of block devices from the files of sysfs
 * with serial numbers and the like. */
#include "daemon/luns/device_id.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backstore/backstore.h"
#include "base/bytes.h"

#define TEXT_MAX 256

static size_t read_text(const char *folder, const char *name, char *text)
{
	char path[PATH_MAX];
	ssize_t n = -1;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >=
	    sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, TEXT_MAX);
		close(fd);
	}
	return n > 0 ? (size_t)n : 0;
}

/* Reads the first of these files that exists: of SCSI disks, NVMe, virtio,
 * device mapper, software RAID, loop devices. */
static size_t find_text(const char *folder, char *text)
{
	static const char *const files[] = {
		"device/wwid", "wwid",	  "serial",
		"dm/uuid",     "md/uuid", "loop/backing_file",
	};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(files) && !n; i++)
		n = read_text(folder, files[i], text);
	return n;
}

bool device_id_at(const char *folder, uint8_t id[16])
{
	char whole[PATH_MAX], key[2 * TEXT_MAX];
	size_t n, start = 0;

	snprintf(whole, sizeof(whole), "%s", folder);
	if (read_text(folder, "partition", key)) {
		start = read_text(folder, "start", key);
		if (!start || (size_t)snprintf(whole, sizeof(whole), "%s/..",
					       folder) >= sizeof(whole))
			return false;
	}
	n = find_text(whole, key + start);
	if (n)
		bs_uuid_derive(id, key, start + n);
	return n != 0;
}

bool device_id(dev_t rdev, uint8_t id[16])
{
	char folder[64];

	snprintf(folder, sizeof(folder), "/sys/dev/block/%u:%u", major(rdev),
		 minor(rdev));
	return device_id_at(folder, id);
}
