/* SPDX-License-Identifier: BSD-2-Clause */
/* open.c: opens a SCSI device of this machine: identifies the device, finds its
 * limits and its name, and writes the error text if the device is not usable. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backstore/backstore.h"
#include "base/err.h"
#include "device/sg/internal.h"
#include "scsi/cdb.h"

#define SG_MAJOR      21u	  /* SCSI_GENERIC_MAJOR: /dev/sgN */
#define TRANSFER_MIN  (64u << 10) /* also if Linux reports no or a lower limit */
#define TRANSFER_MAX  (64u << 20)
#define PROBE_SECONDS 20u

/* The device that is being opened, and the buffer for an error text. */
struct opening {
	const struct sg_config *cfg;
	struct sg_device *dev;
	struct stat st;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3))) static bool
refuse(struct opening *o, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_why(o->why, o->why_size, o->cfg->path, format, args);
	va_end(args);
	return false;
}

static bool refuse_open(struct opening *o, int err)
{
	switch (err) {
	case ENOENT:
		return refuse(o, "no such device; \"ls /dev/sg*\" or lsscsi -g "
				 "show which there are (modprobe sg makes "
				 "them)");
	case EACCES:
	case EPERM:
		return refuse(o, "permission denied; run as root, or permit "
				 "access to the device (group disk, or a udev "
				 "rule)");
	case ENXIO:
	case ENODEV:
		return refuse(o, "no device is connected to this path; connect "
				 "the device");
	case EBUSY:
		return refuse(o, "in exclusive use by another program; end "
				 "that program");
	default:
		return refuse(o, "cannot open the device: %s", strerror(err));
	}
}

/* ---- /sys ---- */

/* sys_path writes the path of the file `below` in the /sys folder of the SCSI
 * device. */
static void sys_path(const struct opening *o, char path[PATH_MAX],
		     const char *below)
{
	snprintf(path, PATH_MAX, "/sys/dev/%s/%u:%u/device/%s",
		 S_ISBLK(o->st.st_mode) ? "block" : "char",
		 major(o->st.st_rdev), minor(o->st.st_rdev), below);
}

/* block_name returns the name of the disk or CD drive that the kernel made for the
 * SCSI device; false: the device has none, a tape for example. */
static bool block_name(const struct opening *o, char name[NAME_MAX + 1])
{
	char path[PATH_MAX];
	struct dirent *e;
	bool found = false;
	DIR *d;

	sys_path(o, path, "block");
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		found = e->d_name[0] != '.';
		if (found)
			snprintf(name, NAME_MAX + 1, "%s", e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

static bool queue_number(const struct opening *o, const char *what,
			 unsigned long *n)
{
	char name[NAME_MAX + 1], path[PATH_MAX];

	if (!block_name(o, name))
		return false;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/%s", name, what);
	return io_read_number(path, n);
}

/* ---- commands before the event loop runs ---- */

static void fill_probe(struct pass_req *r, const uint8_t *cdb, size_t cdb_len,
		       void *buf, uint32_t len)
{
	*r = (struct pass_req){ .cdb_len = (uint8_t)cdb_len,
				.dir = len ? PASS_IN : PASS_NONE,
				.buf = buf,
				.len = len,
				.timeout = PROBE_SECONDS };
	memcpy(r->cdb, cdb, cdb_len);
	memset(buf, 0, len);
	sg_step_of(r)->req = r;
}

/* probe executes a command. 0: GOOD; 1: another status; -Exxx: the kernel does not
 * take commands by this kind of call. */
static int probe(const struct sg_device *d, enum sg_kind kind,
		 const uint8_t *cdb, size_t cdb_len, void *buf, uint32_t len)
{
	uint8_t sense[64];
	struct pass_req r;
	struct sg_step *s = sg_step_of(&r);

	fill_probe(&r, cdb, cdb_len, buf, len);
	r.sense = sense;
	r.sense_max = sizeof(sense);
	if (kind == SG_V4)
		sg_fill_v4(s);
	else
		sg_fill_v3(s);
	if (ioctl(d->fd, SG_IO, &s->io) < 0)
		return -errno;
	if (kind == SG_V4)
		return s->io.v4.device_status || s->io.v4.transport_status;
	return s->io.v3.status || s->io.v3.host_status;
}

static int inquire(const struct sg_device *d, enum sg_kind kind, bool evpd,
		   uint8_t page, uint8_t *buf, uint8_t len)
{
	const uint8_t cdb[6] = { SCSI_INQUIRY, evpd, page, 0, len, 0 };

	return probe(d, kind, cdb, sizeof(cdb), buf, len);
}

/* ---- identification ---- */

static bool look(struct opening *o)
{
	char path[64];

	if (stat(o->cfg->path, &o->st) < 0)
		return refuse_open(o, errno);
	if (!S_ISCHR(o->st.st_mode) && !S_ISBLK(o->st.st_mode))
		return refuse(o, "not a device; give /dev/sgN, /dev/bsg/..., "
				 "/dev/sdX or /dev/srN, or serve the file by "
				 "its path without scsi:");
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition",
		 major(o->st.st_rdev), minor(o->st.st_rdev));
	if (S_ISBLK(o->st.st_mode) && access(path, F_OK) == 0)
		return refuse(o, "a partition; give the whole disk");
	return true;
}

static bool is_generic(const struct opening *o)
{
	return S_ISCHR(o->st.st_mode) && major(o->st.st_rdev) == SG_MAJOR;
}

static bool refuse_kind(struct opening *o, int err)
{
	if (err == -EPERM || err == -EACCES)
		return refuse(o, "SCSI commands are not permitted; run as "
				 "root, or give iserd CAP_SYS_RAWIO");
	if (err == -ENODEV || err == -ENXIO)
		return refuse_open(o, -err);
	return refuse(o,
		      "not a SCSI device: %s; give /dev/sgN, /dev/bsg/..., "
		      "/dev/sdX or /dev/srN, or serve the device by its path "
		      "without scsi:",
		      err < 0 ? strerror(-err) : "INQUIRY failed");
}

/* identify finds the kind of call that the kernel takes for the device, and the
 * type of the device. A read-only descriptor does not permit SG_ASYNC, which uses
 * write(). */
static bool identify(struct opening *o)
{
	struct sg_device *d = o->dev;
	enum sg_kind kind =
		is_generic(o) && !o->cfg->read_only ? SG_ASYNC : SG_V3;
	uint8_t p[96];
	int err = inquire(d, kind, false, 0, p, sizeof(p));

	if (err < 0 && S_ISCHR(o->st.st_mode) && !is_generic(o)) {
		kind = SG_V4;
		err = inquire(d, kind, false, 0, p, sizeof(p));
	}
	if (err)
		return refuse_kind(o, err);
	if (p[0] & 0xe0)
		return refuse(o,
			      "no logical unit: peripheral qualifier %u; give "
			      "a device with a logical unit",
			      p[0] >> 5);
	d->kind = kind;
	d->pass.type = p[0] & 0x1f;
	d->pass.version = p[2];
	return true;
}

static void measure(struct sg_device *d)
{
	static const uint8_t ready[6] = { SCSI_TEST_UNIT_READY };
	static const uint8_t capacity[10] = { SCSI_READ_CAPACITY_10 };
	uint8_t p[8];
	uint32_t size;

	/* Read and drop unit attentions of the device. Initiators do not need
	 * them, because each nexus gets an attention at its login. */
	for (int i = 0; i < 3; i++)
		if (!probe(d, d->kind, ready, sizeof(ready), p, 0))
			break;
	if (probe(d, d->kind, capacity, sizeof(capacity), p, sizeof(p)))
		return;
	size = get_be32(p + 4);
	d->pass.block_size = size <= PASS_BLOCK_MAX ? size : 0;
}

/* ---- limits ---- */

/* reported_transfer returns the most bytes of one command that Linux reports for
 * the device; 0: unknown. BLKSECTGET gives bytes for /dev/sgN, sectors for disks. */
static unsigned long reported_transfer(const struct opening *o)
{
	unsigned short sectors = 0;
	unsigned long kib = 0;
	int bytes = 0;

	if (is_generic(o) && !ioctl(o->dev->fd, BLKSECTGET, &bytes) &&
	    bytes > 0)
		return (unsigned long)bytes;
	if (S_ISBLK(o->st.st_mode) && !ioctl(o->dev->fd, BLKSECTGET, &sectors))
		return sectors * 512ul;
	return queue_number(o, "max_sectors_kb", &kib) ? kib << 10 : 0;
}

/* ioctl(SG_IO) maps the pages of a request, each of which may need a segment of
 * its own. For /dev/sgN the kernel copies the data to memory of its own. */
static void limit(struct opening *o)
{
	struct sg_device *d = o->dev;
	unsigned long most = reported_transfer(o), segments, depth = 1;
	char path[PATH_MAX];

	if (d->kind != SG_ASYNC && queue_number(o, "max_segments", &segments))
		most = MIN(most, (segments - MIN(segments, 1ul)) * 4096);
	most = MIN(MAX(most, (unsigned long)TRANSFER_MIN),
		   (unsigned long)TRANSFER_MAX);
	d->pass.max_transfer = (uint32_t)most;
	sys_path(o, path, "queue_depth");
	if (!io_read_number(path, &depth) || depth == 0)
		depth = 1;
	depth /= o->cfg->nloops;
	d->room = (unsigned)MIN(MAX(depth, 1ul),
				(unsigned long)(SG_FDS * SG_FD_QUEUE));
}

/* ---- the name of the unit ---- */

/* unit_name copies the first designator of VPD page 83h that identifies the unit
 * (SPC-4 §7.8.6): T10 vendor ID, EUI-64, NAA or SCSI name. Returns its length; 0:
 * the page has none. */
static size_t unit_name(const struct sg_device *d, uint8_t key[256])
{
	uint8_t p[252];
	size_t end;

	if (inquire(d, d->kind, true, 0x83, p, sizeof(p)) || p[1] != 0x83)
		return 0;
	end = MIN((size_t)get_be16(p + 2) + 4, sizeof(p));
	for (size_t at = 4; at + 4 <= end && at + 4 + p[at + 3] <= end;
	     at += 4 + (size_t)p[at + 3]) {
		unsigned kind = p[at + 1] & 0x0f;

		if ((p[at + 1] & 0x30) || p[at + 3] == 0 ||
		    (kind != 1 && kind != 2 && kind != 3 && kind != 8))
			continue;
		memcpy(key, p + at, 4 + (size_t)p[at + 3]);
		return 4 + (size_t)p[at + 3];
	}
	return 0;
}

static void name(struct opening *o)
{
	struct pass *p = &o->dev->pass;
	uint8_t key[256];
	size_t len = unit_name(o->dev, key);

	if (len)
		bs_uuid_derive(p->uuid, key, len);
	snprintf(p->name, sizeof(p->name), "%s", o->cfg->path);
}

/* ---- sg_open ---- */

static int open_fd(const struct opening *o)
{
	return open(o->cfg->path, (o->cfg->read_only ? O_RDONLY : O_RDWR) |
					  O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

/* reserve_disk refuses a disk that is mounted or part of a volume, by any of its
 * names: a writer that bypasses the file system would damage the file system. An
 * exclusive descriptor prevents mounts while the device is open. */
static bool reserve_disk(struct opening *o)
{
	char name[NAME_MAX + 1], path[NAME_MAX + 8];

	if (o->cfg->read_only || o->cfg->shared || !block_name(o, name))
		return true;
	snprintf(path, sizeof(path), "/dev/%s", name);
	o->dev->guard = open(path, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);
	if (o->dev->guard < 0 && errno == EBUSY)
		return refuse(o,
			      "disk %s is in use by the system (mounted, or "
			      "part of a volume); free the disk, or serve the "
			      "device read-only",
			      path);
	return true;
}

static bool open_lane(struct opening *o, struct sg_lane *l)
{
	l->loop = o->cfg->loops[l - o->dev->lanes];
	l->dev = o->dev;
	list_init(&l->waiting);
	for (unsigned i = 0; i < SG_FDS; i++) {
		l->ports[i].lane = l;
		l->ports[i].watch.fd = -1;
	}
	l->reset = calloc(1, sizeof(*l->reset));
	if (!l->reset)
		return refuse(o, "out of memory");
	for (unsigned i = 0; i < SG_FDS && o->dev->kind == SG_ASYNC; i++) {
		l->ports[i].watch.fd = open_fd(o);
		if (l->ports[i].watch.fd < 0)
			return refuse_open(o, errno);
	}
	return true;
}

static bool open_lanes(struct opening *o)
{
	struct sg_device *d = o->dev;

	d->lanes = calloc(o->cfg->nloops, sizeof(d->lanes[0]));
	if (!d->lanes)
		return refuse(o, "out of memory");
	while (d->nlanes < o->cfg->nloops)
		if (!open_lane(o, &d->lanes[d->nlanes++]))
			return false;
	return true;
}

static bool open_all(struct opening *o)
{
	struct sg_device *d = o->dev;

	if (!look(o))
		return false;
	d->fd = open_fd(o);
	if (d->fd < 0)
		return refuse_open(o, errno);
	if (fstat(d->fd, &o->st) < 0)
		return refuse_open(o, errno);
	if (!identify(o) || !reserve_disk(o))
		return false;
	measure(d);
	limit(o);
	name(o);
	return open_lanes(o);
}

bool sg_look(const struct sg_config *cfg, char *why, size_t size)
{
	struct opening o = { .cfg = cfg, .why = why, .why_size = size };

	return look(&o);
}

struct pass *sg_open(const struct sg_config *cfg, char *why, size_t size)
{
	struct opening o = { .cfg = cfg, .why = why, .why_size = size };
	struct sg_device *d = calloc(1, sizeof(*d));

	why[0] = '\0';
	o.dev = d;
	if (!d) {
		refuse(&o, "out of memory");
		return NULL;
	}
	d->fd = d->guard = -1;
	d->pass.ops = &sg_pass_ops;
	d->pass.timeout = cfg->timeout;
	d->say_gone = cfg->gone;
	d->arg = cfg->arg;
	if (open_all(&o))
		return &d->pass;
	d->pass.ops->close(&d->pass);
	return NULL;
}
