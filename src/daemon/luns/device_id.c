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
#include "base/hex.h"

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

/* ---- which names are unique ---- */

/* Returns whether text, of len bytes, begins with prefix. */
static bool begins(const char *text, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len > n && !memcmp(text, prefix, n);
}

/* An EUI-64 with a company of IEEE (SPC-4 §7.8.6.5): without the bit of locally
 * administered addresses, which emulators use. */
static bool is_assigned_eui(const char *text, size_t len)
{
	size_t at = len == 4 + 32 ? 4 + 16 : 4; /* after the extension */
	int digit = begins(text, len, "eui.") && len > at + 1
			    ? hex_digit(text[at + 1])
			    : -1;

	return digit >= 0 && !(digit & 2);
}

/* NAA identifiers with the company of the vendor (SPC-4 §7.8.6.6); each administrator
 * may assign those of 3h. "t10." is a vendor with a serial number that an emulator
 * invents, and that a clone of a virtual machine has, too. */
static enum device_names scsi_name(char *text, size_t *len)
{
	return begins(text, *len, "naa.2") || begins(text, *len, "naa.5") ||
			       begins(text, *len, "naa.6") ||
			       begins(text, *len, "uuid.") ||
			       is_assigned_eui(text, *len)
		       ? DEVICE_UNIQUE
		       : DEVICE_OF_SERIES;
}

/* "nvme.1b36-..." is a vendor with a serial number. */
static enum device_names nvme_name(char *text, size_t *len)
{
	return begins(text, *len, "nvme.") ? DEVICE_OF_SERIES
					   : scsi_name(text, len);
}

static enum device_names serial_name(char *text, size_t *len)
{
	(void)text;
	(void)len;
	return DEVICE_OF_SERIES;
}

static enum device_names array_name(char *text, size_t *len)
{
	(void)text;
	(void)len;
	return DEVICE_UNIQUE;
}

/* multipath: the name of the paths, by the first digit as udev has it. */
static enum device_names mpath_name(char *text, size_t *len)
{
	char type = text[6];

	if (type != '2' && type != '3')
		return DEVICE_OF_SERIES;
	memmove(text + 4, text + 7, *len - 7);
	memcpy(text, type == '3' ? "naa." : "eui.", 4);
	*len -= 3;
	return scsi_name(text, len);
}

/* Device mapper: the name of its user, and what this makes unique. That of LUKS goes on
 * with the name of the mapping, which may change. */
static enum device_names dm_name(char *text, size_t *len)
{
	const size_t luks = sizeof("CRYPT-LUKS2-") - 1 + 32;

	if (begins(text, *len, "LVM-"))
		return DEVICE_UNIQUE;
	if (begins(text, *len, "CRYPT-LUKS") && *len >= luks) {
		*len = luks;
		return DEVICE_UNIQUE;
	}
	if (begins(text, *len, "mpath-") && *len > 7)
		return mpath_name(text, len);
	return DEVICE_OF_SERIES;
}

static enum device_names loop_name(char *text, size_t *len)
{
	(void)text;
	*len = 0;
	return DEVICE_LOOP;
}

/* The files with names: of SCSI disks, NVMe, virtio, device mapper, software RAID, loop
 * devices. The first one that exists counts. */
static const struct {
	const char *file;
	enum device_names (*judge)(char *text, size_t *len);
} names[] = {
	{ "device/wwid", scsi_name }, { "wwid", nvme_name },
	{ "serial", serial_name },    { "dm/uuid", dm_name },
	{ "md/uuid", array_name },    { "loop/backing_file", loop_name },
};

/* Returns the length, and the index of the file in *which. */
static size_t find_text(const char *folder, char *text, size_t *which)
{
	size_t n = 0;

	for (*which = 0; *which < ARRAY_LEN(names); ++*which) {
		n = read_text(folder, names[*which].file, text);
		if (n)
			break;
	}
	return n;
}

/* Sets whole to the folder of the device of a partition. Returns the length of the begin
 * of the partition in start; 0: it is none. False in *good: it cannot be found out. */
static size_t find_whole(const char *folder, char whole[PATH_MAX], char *start,
			 bool *good)
{
	size_t n = 0;
	int len = snprintf(whole, PATH_MAX, "%s", folder);

	*good = len < PATH_MAX;
	if (*good && read_text(folder, "partition", start)) {
		n = read_text(folder, "start", start);
		len = snprintf(whole, PATH_MAX, "%s/..", folder);
		*good = n && len < PATH_MAX;
	}
	return n;
}

bool device_id_at(const char *folder, uint8_t id[16])
{
	char whole[PATH_MAX], key[2 * TEXT_MAX];
	size_t n, which, start;
	bool good;

	start = find_whole(folder, whole, key, &good);
	if (!good)
		return false;
	n = find_text(whole, key + start, &which);
	if (n)
		bs_uuid_derive(id, key, start + n);
	return n != 0;
}

static size_t trimmed(const char *text, size_t len)
{
	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	return len;
}

enum device_names device_name_at(const char *folder, char text[DEVICE_TEXT])
{
	char whole[PATH_MAX], name[TEXT_MAX] = "";
	enum device_names kind;
	size_t n, which, start;
	bool good;

	start = trimmed(text, find_whole(folder, whole, text, &good));
	text[start] = '\0';
	n = good ? trimmed(name, find_text(whole, name, &which)) : 0;
	if (!n)
		return DEVICE_NAMELESS;
	kind = names[which].judge(name, &n);
	snprintf(text + start, DEVICE_TEXT - start, "%s%.*s",
		 start && n ? " " : "", (int)n, name);
	return kind;
}

static void folder_of(dev_t rdev, char folder[64])
{
	snprintf(folder, 64, "/sys/dev/block/%u:%u", major(rdev), minor(rdev));
}

bool device_id(dev_t rdev, uint8_t id[16])
{
	char folder[64];

	folder_of(rdev, folder);
	return device_id_at(folder, id);
}

enum device_names device_name(dev_t rdev, char text[DEVICE_TEXT])
{
	char folder[64];

	folder_of(rdev, folder);
	return device_name_at(folder, text);
}
