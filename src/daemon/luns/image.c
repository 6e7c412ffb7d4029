/* SPDX-License-Identifier: BSD-2-Clause */
/* image.c: recognizes containers of virtual disks by their first bytes, and
 * files by their inodes. */
#include "daemon/luns/image.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "daemon/config/options.h"
#include "daemon/log/say.h"

#define HEAD_LEN 128

static const struct {
	const char *format; /* as qemu-img calls it */
	unsigned at;
	const char *bytes;
	unsigned len;
} containers[] = {
	{ "qcow2", 0, "QFI\xfb", 4 },
	{ "vmdk", 0, "KDMV", 4 },
	{ "vmdk", 0, "COWD", 4 },
	{ "vmdk", 0, "# Disk DescriptorFile", 21 },
	{ "vhdx", 0, "vhdxfile", 8 },
	{ "vpc", 0, "conectix", 8 }, /* a dynamic VHD */
	{ "vdi", 64, "\x7f\x10\xda\xbe", 4 },
	{ "qed", 0, "QED\0", 4 },
	{ "parallels", 0, "WithoutFreeSpace", 16 },
	{ "parallels", 0, "WithouFreSpacExt", 16 },
};

static const char *format_of(const char *head)
{
	for (unsigned i = 0; i < ARRAY_LEN(containers); i++)
		if (!memcmp(head + containers[i].at, containers[i].bytes,
			    containers[i].len))
			return containers[i].format;
	return NULL;
}

void image_warn(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char head[HEAD_LEN] = { 0 };
	const char *format = NULL;

	if (fd < 0)
		return;
	if (pread(fd, head, sizeof(head), 0) > 0)
		format = format_of(head);
	close(fd);
	if (format)
		say_note(
			"%s: begins like a %s image; its bytes are served as they "
			"are, not the disk inside: stop iserd and convert the "
			"image with qemu-img convert -f %s -O raw %s NEWFILE",
			path, format, format, path);
}

bool image_is_same(const char *path, const char *other)
{
	struct stat a, b;

	if (stat(path, &a) || stat(other, &b))
		return false;
	if (S_ISBLK(a.st_mode) && S_ISBLK(b.st_mode))
		return a.st_rdev == b.st_rdev;
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
