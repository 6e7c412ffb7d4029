/* SPDX-License-Identifier: BSD-2-Clause */
/* place.c: see place.h. */
#include "daemon/luns/place.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "base/bytes.h"
#include "io/io.h"

#ifndef XFS_SUPER_MAGIC
# define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef ZFS_SUPER_MAGIC
# define ZFS_SUPER_MAGIC 0x2fc12fc1
#endif

#define PRODUCT_UUID "/sys/class/dmi/id/product_uuid"

void identity_machine_read(struct machine *m)
{
	char text[64];
	size_t n = io_read_text(PRODUCT_UUID, text, sizeof(text));

	memset(m, 0, sizeof(*m));
	m->id_len = io_read_text("/etc/machine-id", m->id, sizeof(m->id));
	if (m->id_len && m->id[0] == '\n')
		m->id_len = 0;
	if (n)
		identity_digest(m->product, text, n);
}

/* ---- file systems ---- */

/* XFS_IOC_FSGEOMETRY_V1: f_fsid of XFS is a device number. */
static void xfs_uuid(int fd, const struct statfs *fs, char out[PLACE_DIGITS])
{
	struct xfs_geometry {
		uint32_t words[8];
		uint64_t longs[4];
		uint8_t uuid[16];
		uint32_t more[8];
	} g;

	(void)fs;
	if (!ioctl(fd, _IOR('X', 100, struct xfs_geometry), &g))
		identity_digest(out, g.uuid, sizeof(g.uuid));
}

/* A number of the UUID of the file system, and of the subvolume or data set. */
static void fsid(int fd, const struct statfs *fs, char out[PLACE_DIGITS])
{
	static const __typeof__(fs->f_fsid) none;

	(void)fd;
	if (memcmp(&fs->f_fsid, &none, sizeof(none)) != 0)
		identity_digest(out, &fs->f_fsid, sizeof(fs->f_fsid));
}

/* FS_IOC_GETFSUUID, since Linux 6.9. */
static void any_uuid(int fd, const struct statfs *fs, char out[PLACE_DIGITS])
{
	struct fs_uuid {
		uint8_t len;
		uint8_t uuid[16];
	} u;

	(void)fs;
	if (!ioctl(fd, _IOR(0x15, 0, struct fs_uuid), &u) && u.len &&
	    u.len <= sizeof(u.uuid))
		identity_digest(out, u.uuid, u.len);
}

static void nothing(int fd, const struct statfs *fs, char out[PLACE_DIGITS])
{
	(void)fd;
	(void)fs;
	(void)out;
}

/* Always one way for one file system, since another one would give another number.
 * is_local: a file cannot be seen from two machines, so another machine has another
 * file. */
static const struct system {
	uint32_t magic;
	bool is_local;
	void (*uuid)(int fd, const struct statfs *fs, char out[PLACE_DIGITS]);
} systems[] = {
	{ EXT4_SUPER_MAGIC, true, fsid },
	{ BTRFS_SUPER_MAGIC, true, fsid },
	{ TMPFS_MAGIC, true, fsid },
	{ ZFS_SUPER_MAGIC, true, fsid },
	{ XFS_SUPER_MAGIC, true, xfs_uuid },
	{ F2FS_SUPER_MAGIC, true, any_uuid },
	{ OVERLAYFS_SUPER_MAGIC, true, nothing },
};

static const struct system *system_of(const struct statfs *fs)
{
	static const struct system other = { 0, false, any_uuid };

	for (size_t i = 0; i < ARRAY_LEN(systems); i++)
		if (systems[i].magic == (uint32_t)fs->f_type)
			return &systems[i];
	return &other;
}

/* A snapshot of a volume has its own UUID, and the same file system as the volume. */
static void find_volume(dev_t dev, char out[PLACE_DIGITS])
{
	char path[64], text[256];
	size_t n;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/dm/uuid", major(dev),
		 minor(dev));
	n = io_read_text(path, text, sizeof(text));
	if (n > 4 && !memcmp(text, "LVM-", 4))
		identity_digest(out, text, n);
}

void identity_place_read(int fd, const struct machine *m,
			 struct identity_place *p)
{
	const struct system *s;
	struct statfs fs;
	struct statx sx;
	struct stat st;

	memset(p, 0, sizeof(*p));
	if (fstat(fd, &st))
		return;
	p->inode = st.st_ino;
	if (!statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) &&
	    sx.stx_mask & STATX_BTIME)
		snprintf(p->born, sizeof(p->born), "%lld.%09u",
			 (long long)sx.stx_btime.tv_sec, sx.stx_btime.tv_nsec);
	find_volume(st.st_dev, p->volume);
	if (fstatfs(fd, &fs))
		return;
	s = system_of(&fs);
	s->uuid(fd, &fs, p->fs);
	if (s->is_local)
		memcpy(p->machine, m->product, sizeof(p->machine));
}

bool identity_place_is_lower(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}
