/* SPDX-License-Identifier: BSD-2-Clause */
/* protection.c: opens, makes and repairs the protection information of a
 * LUN. */
#include "daemon/luns/protection.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backstore/protect.h"
#include "backstore/uring/bs_file.h"
#include "base/bytes.h"
#include "base/err.h"
#include "daemon/log/say.h"
#include "daemon/luns/device_id.h"
#include "daemon/luns/open.h"

/* The file with the protection information of a file or device. */
struct beside {
	const struct options *o;
	const struct lun_spec *lun;
	const struct bs *data;
	char path[PATH_MAX];
	struct stat st; /* of the data */
	int fd;
	struct protect_head head;
	uint8_t of[16]; /* identity of the device; zeros: a file, or unknown */
	bool closed;	/* data has been closed, with its filter */
};

static bool report_errno(const struct beside *f)
{
	say("%s: %s", f->path, strerror(errno));
	return false;
}

/* Without this a power cut could remove the name of a new file. */
static bool sync_directory(const struct beside *f)
{
	char dir[PATH_MAX];
	char *slash;
	int fd, err;

	snprintf(dir, sizeof(dir), "%s", f->path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[1] = '\0';
	fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return report_errno(f);
	err = fsync(fd);
	close(fd);
	return err ? report_errno(f) : true;
}

/* Writes the head of a new file, last: without a head the file counts as
 * new. */
static bool make_file(struct beside *f)
{
	uint8_t p[PROTECT_HEAD_LEN];

	f->head = (struct protect_head){ .type = (uint8_t)f->o->lun.protection,
					 .block_size = f->data->block_size };
	memcpy(f->head.of, f->of, sizeof(f->of));
	protect_head_put(&f->head, p);
	if (fsync(f->fd) || pwrite(f->fd, p, sizeof(p), 0) != sizeof(p) ||
	    fsync(f->fd))
		return report_errno(f);
	return sync_directory(f);
}

static bool is_known(const uint8_t of[16])
{
	static const uint8_t unknown[16];

	return memcmp(of, unknown, sizeof(unknown)) != 0;
}

/* Refuses a file that has the identity of another device. False after a
 * message. */
static bool is_own_file(const struct beside *f)
{
	if (!memcmp(f->head.of, f->of, sizeof(f->of)) || !is_known(f->of) ||
	    !is_known(f->head.of))
		return true;
	say("%s: has the protection information of another device than %s; "
	    "give the file of this device",
	    f->path, f->lun->store);
	return false;
}

static bool read_head(struct beside *f, const uint8_t *p)
{
	int err = protect_head_get(&f->head, p);

	if (err) {
		say("%s: %s; remove the file to start without it", f->path,
		    err == ERR_DATA_DIGEST ? "is damaged"
					   : "has no protection information");
		return false;
	}
	if (f->head.block_size != f->data->block_size) {
		say("%s: is for blocks of %u bytes; give --block-size %u, or "
		    "remove the file",
		    f->path, f->head.block_size, f->head.block_size);
		return false;
	}
	if (!is_own_file(f))
		return false;
	if (!is_known(f->of)) /* at this start */
		memcpy(f->of, f->head.of, sizeof(f->of));
	if (f->o->lun.protection && f->o->lun.protection != f->head.type)
		say("%s: the LUN is already formatted with protection type %u; "
		    "use FORMAT UNIT to change it",
		    f->path, f->head.type);
	return true;
}

/* A file that an interrupted start made has the length `size`; a file of
 * another length that ",pi=" names may be any file. */
static bool may_be_made(const struct beside *f, off_t size)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return report_errno(f);
	if (S_ISREG(st.st_mode) &&
	    (!f->lun->pi || st.st_size == 0 || st.st_size == size))
		return true;
	say("%s: not a file of protection information; give a new file",
	    f->path);
	return false;
}

/* The data have grown, or the file was cut off: nothing shows which. */
static bool report_short(const struct beside *f, off_t size)
{
	off_t all = (size - (off_t)PROTECT_PI_AT) / 8, lost;
	struct stat st;

	if (fstat(f->fd, &st))
		return report_errno(f);
	lost = MIN((size - st.st_size + 7) / 8, all);
	if (lost > 0)
		say_note("%s: lacks the protection information of the last "
			 "%lld blocks, which are not checked until they are "
			 "written; if the disk has not grown, restore the file",
			 f->path, (long long)lost);
	return true;
}

/* Checks the file, or makes it. It gets the length for the data: new blocks
 * have no information, nor have blocks that were cut off and added again. */
static bool check_file(struct beside *f)
{
	static const uint8_t none[PROTECT_HEAD_LEN];
	uint8_t p[PROTECT_HEAD_LEN] = { 0 };
	off_t size = (off_t)(PROTECT_PI_AT +
			     f->data->size / f->data->block_size * 8);
	ssize_t n = pread(f->fd, p, sizeof(p), 0);
	bool is_new = !memcmp(p, none, sizeof(p));

	if (n < 0)
		return report_errno(f);
	if (is_new && (!f->o->lun.protection || f->o->lun.read_only)) {
		say("%s: has no protection information; remove the file",
		    f->path);
		return false;
	}
	/* the file of another device, or for other blocks, is not changed */
	if (!is_new && !read_head(f, p))
		return false;
	if (is_new ? !may_be_made(f, size) : !report_short(f, size))
		return false;
	if (!f->o->lun.read_only && ftruncate(f->fd, size))
		return report_errno(f);
	return !is_new || make_file(f);
}

static struct bs *open_store(const struct beside *f,
			     struct io_loop *const *loops)
{
	const struct bs_file_config cfg = {
		.path = f->path,
		.read_only = f->o->lun.read_only,
		.buffered = true,
		.lock_retries = 40,
		.grain = PROTECT_GRAIN,
		.loops = loops,
		.nloops = f->o->workers,
	};

	return lun_file(&cfg);
}

/* ---- after an unclean end ---- */

struct repair {
	struct bs_req req;
	bool done;
};

static void repair_done(struct bs_req *req)
{
	container_of(req, struct repair, req)->done = true;
}

#define REPAIR_PATIENCE 5 /* seconds until a line reports the repair */

static void report_long_repair(const struct beside *f)
{
	say_note(
		"%s: its repair after an unclean end has taken %d s so far; iserd "
		"serves when it is complete, and SIGTERM ends iserd",
		f->path, REPAIR_PATIENCE);
}

/* The repair of a large file takes as long as its medium needs, so there is no
 * limit. The loop also has the signals, which end iserd. */
static void await_repair(const struct beside *f, const struct repair *m,
			 struct io_loop *loop)
{
	xtime report = io_now_exact() + REPAIR_PATIENCE * XTIME_S;

	while (!m->done) {
		io_loop_turn(loop, 50 * XTIME_MS);
		if (m->done || io_now_exact() < report)
			continue;
		report_long_repair(f);
		report = XTIME_NEVER;
	}
}

static bool repair(const struct beside *f, struct bs *b, struct io_loop *loop)
{
	struct repair m = { .req = { .op = BS_MEND, .done = repair_done } };

	if (f->o->lun.read_only)
		return true;
	bs_submit(b, &m.req);
	await_repair(f, &m, loop);
	if (m.req.result) {
		say("%s: cannot repair it after an unclean end: %s", f->path,
		    err_str(m.req.result));
		return false;
	}
	if (m.req.mended)
		say_note(
			"%s: after an unclean end the guards of %llu blocks are "
			"recalculated",
			f->path, (unsigned long long)m.req.mended);
	return true;
}

/* ---- a file ---- */

/* Returns whether there is a place for the file: a device needs the one of
 * ",pi=", since its folder is /dev. */
static bool has_place(const struct beside *f)
{
	return S_ISREG(f->st.st_mode) || f->lun->pi;
}

static bool may_be_protected(const struct beside *f)
{
	const char *spec = f->lun->store;

	if (!has_place(f))
		say("%s: the protection information of a device needs a file; "
		    "give %s,pi=FILE",
		    spec, spec);
	else if (f->o->lun.shared)
		say("%s: a shared LUN cannot have protection information; leave out --shared",
		    spec);
	else if (f->data->size > PROTECT_REGIONS * PROTECT_REGION)
		say("%s: larger than 16 TiB, the limit of protection information; leave out --protection",
		    spec);
	else
		return true;
	return false;
}

/* open_store locks the file before it is read or changed. */
static struct bs *beside_file(struct beside *f, struct bs *data,
			      struct io_loop *const *loops)
{
	struct bs_protect_config cfg = { .data = data, .lasting = true };
	struct bs *b;

	if (!may_be_protected(f))
		return NULL;
	cfg.pi = open_store(f, loops);
	if (!cfg.pi)
		return NULL;
	if (!check_file(f)) {
		bs_close(cfg.pi);
		return NULL;
	}
	cfg.type = f->head.type;
	memcpy(cfg.of, f->of, sizeof(cfg.of));
	b = bs_protect_new(&cfg);
	if (!b) {
		say("%s: out of memory", f->lun->store);
		bs_close(cfg.pi);
		return NULL;
	}
	if (repair(f, b, loops[0]))
		return b;
	bs_close(b);
	f->closed = true;
	return NULL;
}

/* Takes the file of ",pi="; refuses if "FILE.pi" exists, too, since it is not
 * clear which one is valid. */
static bool find_named(struct beside *f)
{
	char other[PATH_MAX + 4]; /* lun_spec_parse: the store is shorter */
	struct stat st, named;

	if (strlen(f->lun->pi) >= sizeof(f->path)) {
		say("%.200s: too long; give a shorter path as ,pi=",
		    f->lun->pi);
		return false;
	}
	strcpy(f->path, f->lun->pi);
	snprintf(other, sizeof(other), "%s.pi", f->lun->store);
	if (S_ISREG(f->st.st_mode) && !stat(other, &st) &&
	    (stat(f->path, &named) || st.st_ino != named.st_ino ||
	     st.st_dev != named.st_dev))
		say("%s: exists, too; remove that file, or leave out ,pi=%s",
		    other, f->path);
	else
		return true;
	return false;
}

static bool find_beside(struct beside *f)
{
	const char *spec = f->lun->store;
	int n = snprintf(f->path, sizeof(f->path), "%s.pi", spec);

	if (stat(spec, &f->st))
		say("%s: %s", spec, strerror(errno));
	else if (f->lun->pi)
		return find_named(f);
	else if ((size_t)n >= sizeof(f->path))
		say("%.200s: the name is too long for the suffix .pi; give "
		    ",pi=FILE",
		    spec);
	else
		return true;
	return false;
}

/* A new file is readable by iserd only. O_EXCL refuses a symbolic link, which
 * could lead to another folder. */
static int open_or_make(const struct beside *f, int flags)
{
	int fd = open(f->path, flags);

	if (fd >= 0 || errno != ENOENT || !f->o->lun.protection ||
	    f->o->lun.read_only || !has_place(f))
		return fd;
	return open(f->path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

static struct bs *open_file_protection(const struct options *o,
				       const struct lun_spec *s,
				       struct bs *data,
				       struct io_loop *const *loops)
{
	struct beside f = { .o = o, .lun = s, .data = data };
	int flags = o->lun.read_only ? O_RDONLY : O_RDWR;
	struct bs *b = NULL;

	/* O_NONBLOCK: the name may be that of a pipe */
	flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (!find_beside(&f)) {
		bs_close(data);
		return NULL;
	}
	if (S_ISBLK(f.st.st_mode) && !device_id(f.st.st_rdev, f.of))
		memset(f.of, 0, sizeof(f.of));
	/* before a file is made, which would stay */
	if (o->lun.protection && !may_be_protected(&f)) {
		bs_close(data);
		return NULL;
	}
	f.fd = open_or_make(&f, flags);
	if (f.fd < 0 && errno == ENOENT && !o->lun.protection && !s->pi)
		return data;
	if (f.fd >= 0 || !has_place(&f))
		b = beside_file(&f, data, loops);
	else if (errno == ENOENT && !o->lun.protection)
		say("%s: no such file; --protection TYPE makes one", f.path);
	else if (errno == EEXIST)
		say("%s: is a symbolic link to a file that does not exist; "
		    "remove the link, or make the file",
		    f.path);
	else
		report_errno(&f);
	if (f.fd >= 0)
		close(f.fd);
	if (!b && !f.closed)
		bs_close(data);
	return b;
}

/* ---- memory ---- */

static struct bs *open_memory_protection(const struct options *o,
					 const char *spec, struct bs *data)
{
	uint64_t size = data->size / data->block_size * 8;
	struct bs_protect_config cfg = { .data = data,
					 .type = (uint8_t)o->lun.protection };
	struct bs *b = NULL;

	cfg.pi = lun_pi_memory(spec, (size + 4095) & ~(uint64_t)4095,
			       PROTECT_GRAIN);
	if (cfg.pi) {
		b = bs_protect_new(&cfg);
		if (!b) {
			say("%s: out of memory", spec);
			bs_close(cfg.pi);
		}
	}
	if (!b)
		bs_close(data);
	return b;
}

struct bs *protection_open(const struct options *o, const struct lun_spec *s,
			   struct bs *b, struct io_loop *const *loops)
{
	if (s->kind == LUN_FILE)
		return open_file_protection(o, s, b, loops);
	if (s->kind == LUN_RAM && o->lun.protection)
		return open_memory_protection(o, s->store, b);
	return b;
}
