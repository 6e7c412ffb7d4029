/* SPDX-License-Identifier: BSD-2-Clause */
/* protection.c: opens, makes and mends what is beside a LUN. */
#include "daemon/protection.h"

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
#include "daemon/device_id.h"
#include "daemon/encrypt.h"
#include "daemon/luns.h"

/* The file beside a file or device. */
struct beside {
	const struct options *o;
	const struct lun_key *lun;
	const struct bs *data;
	char path[PATH_MAX];
	struct stat st; /* of the data */
	int fd;
	struct protect_head head;
	uint8_t of[16]; /* the device; zeros: a file, or nobody knows */
	bool closed;	/* data was, with what is above it */
};

static bool failed(const struct beside *f)
{
	say("%s: %s", f->path, strerror(errno));
	return false;
}

/* Nobody knows of it before its directory does. */
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
		return failed(f);
	err = fsync(fd);
	close(fd);
	return err ? failed(f) : true;
}

/* The head comes last: without one there is nothing yet. */
static bool make(struct beside *f)
{
	uint8_t p[PROTECT_HEAD_LEN];

	f->head = (struct protect_head){ .type = f->o->protection,
					 .block_size = f->data->block_size };
	memcpy(f->head.of, f->of, sizeof(f->of));
	protect_head_put(&f->head, p);
	if (fsync(f->fd) || pwrite(f->fd, p, sizeof(p), 0) != sizeof(p) ||
	    fsync(f->fd))
		return failed(f);
	return sync_directory(f);
}

static bool is_known(const uint8_t of[16])
{
	static const uint8_t nobody[16];

	return memcmp(of, nobody, sizeof(nobody)) != 0;
}

/* A file that was named may be another device's. */
static bool is_ours(const struct beside *f)
{
	if (!memcmp(f->head.of, f->of, sizeof(f->of)) || !is_known(f->of) ||
	    !is_known(f->head.of))
		return true;
	say("%s: has the protection information of another device than %s is; "
	    "name that one",
	    f->path, f->lun->store);
	return false;
}

static bool read_head(struct beside *f, const uint8_t *p)
{
	int err = protect_head_get(&f->head, p);

	if (err) {
		say("%s: %s; if it is to be lost, remove it", f->path,
		    err == ERR_DATA_DIGEST ? "is damaged"
					   : "has no protection information");
		return false;
	}
	if (f->head.block_size != f->data->block_size) {
		say("%s: is for blocks of %u bytes; serve the LUN with "
		    "--block-size %u, or remove it",
		    f->path, f->head.block_size, f->head.block_size);
		return false;
	}
	if (!is_ours(f))
		return false;
	if (!is_known(f->of)) /* today */
		memcpy(f->of, f->head.of, sizeof(f->of));
	if (f->o->protection && f->o->protection != f->head.type)
		say("%s: the LUN is formatted with protection type %u, and "
		    "stays it; FORMAT UNIT changes that",
		    f->path, f->head.type);
	return true;
}

/* What was begun has the length that it is to have; of a name that was given
 * any other may be somebody's. */
static bool may_be_made(const struct beside *f, off_t size)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return failed(f);
	if (S_ISREG(st.st_mode) &&
	    (!f->lun->pi || st.st_size == 0 || st.st_size == size))
		return true;
	say("%s: is something else; name a new file", f->path);
	return false;
}

/* What grew has no information; what was cut off has none when it is back. */
static bool look(struct beside *f)
{
	static const uint8_t none[PROTECT_HEAD_LEN];
	uint8_t p[PROTECT_HEAD_LEN] = { 0 };
	off_t size = (off_t)(PROTECT_PI_AT +
			     f->data->size / f->data->block_size * 8);
	ssize_t n = pread(f->fd, p, sizeof(p), 0);
	bool is_new = !memcmp(p, none, sizeof(p));

	if (n < 0)
		return failed(f);
	if (is_new && (!f->o->protection || f->o->read_only)) {
		say("%s: has no protection information; remove it", f->path);
		return false;
	}
	/* what is another's, or for other blocks, stays as it is */
	if (!is_new && !read_head(f, p))
		return false;
	if (is_new && !may_be_made(f, size))
		return false;
	if (!f->o->read_only && ftruncate(f->fd, size))
		return failed(f);
	return !is_new || make(f);
}

static struct bs *open_store(const struct beside *f,
			     struct io_loop *const *loops)
{
	const struct bs_file_config cfg = {
		.path = f->path,
		.read_only = f->o->read_only,
		.buffered = true,
		.lock_retries = 40,
		.grain = PROTECT_GRAIN,
		.loops = loops,
		.nloops = f->o->workers,
	};

	return lun_file(&cfg);
}

/* ---- after an unclean end ---- */

struct mend {
	struct bs_req req;
	bool done;
};

static void mended(struct bs_req *req)
{
	container_of(req, struct mend, req)->done = true;
}

static bool mend(const struct beside *f, struct bs *b, struct io_loop *loop)
{
	struct mend m = { .req = { .op = BS_MEND, .done = mended } };

	if (f->o->read_only)
		return true;
	bs_submit(b, &m.req);
	while (!m.done)
		io_loop_turn(loop, 50 * XTIME_MS);
	if (m.req.result) {
		say("%s: can't be mended after an unclean end: %s", f->path,
		    err_str(m.req.result));
		return false;
	}
	if (m.req.mended)
		say("%s: after an unclean end the guards of %llu blocks are "
		    "made anew",
		    f->path, (unsigned long long)m.req.mended);
	return true;
}

/* ---- a file ---- */

/* Of a device only with a file that is named: there is no room beside it. */
static bool has_place(const struct beside *f)
{
	return S_ISREG(f->st.st_mode) || f->lun->pi;
}

static bool may_be_protected(const struct beside *f)
{
	const char *spec = f->lun->store;

	if (!has_place(f))
		say("%s: protection information of a device is kept in a file; "
		    "write %s,pi=FILE",
		    spec, spec);
	else if (f->o->shared)
		say("%s: --shared LUNs can't have protection information",
		    spec);
	else if (f->data->size > PROTECT_REGIONS * PROTECT_REGION)
		say("%s: protection information is for 16 TiB at most", spec);
	else
		return true;
	return false;
}

/* The file is not touched before it is locked. */
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
	if (!look(f)) {
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
	if (mend(f, b, loops[0]))
		return b;
	bs_close(b);
	f->closed = true;
	return NULL;
}

/* The file that is named, and that there is no other which may be meant. */
static bool find_named(struct beside *f)
{
	char other[PATH_MAX + 4];
	struct stat st, named;

	snprintf(f->path, sizeof(f->path), "%s", f->lun->pi);
	snprintf(other, sizeof(other), "%s.pi", f->lun->store);
	if (!*f->path)
		say("%s,pi=: no file is named", f->lun->store);
	else if (S_ISREG(f->st.st_mode) && !stat(other, &st) &&
		 (stat(f->path, &named) || st.st_ino != named.st_ino ||
		  st.st_dev != named.st_dev))
		say("%s: is there, too; remove it, or leave out ,pi=%s", other,
		    f->path);
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
		say("no room for \".pi\" behind so long a name: %s", spec);
	else
		return true;
	return false;
}

static struct bs *open_file(const struct options *o, const struct lun_key *k,
			    struct bs *data, struct io_loop *const *loops)
{
	struct beside f = { .o = o, .lun = k, .data = data };
	int flags = o->read_only ? O_RDONLY : O_RDWR;
	struct bs *b = NULL;

	/* whatever has that name is not waited for */
	flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (!find_beside(&f)) {
		bs_close(data);
		return NULL;
	}
	if (S_ISBLK(f.st.st_mode) && !device_id(f.st.st_rdev, f.of))
		memset(f.of, 0, sizeof(f.of));
	if (o->protection && !o->read_only && has_place(&f))
		flags |= O_CREAT;
	f.fd = open(f.path, flags, f.st.st_mode & 0666);
	if (f.fd < 0 && errno == ENOENT && !o->protection && !k->pi)
		return data;
	if (f.fd >= 0 || !has_place(&f))
		b = beside_file(&f, data, loops);
	else if (errno == ENOENT && !o->protection)
		say("%s: no such file; --protection TYPE makes one", f.path);
	else
		failed(&f);
	if (f.fd >= 0)
		close(f.fd);
	if (!b && !f.closed)
		bs_close(data);
	return b;
}

/* ---- memory ---- */

static struct bs *open_memory(const struct options *o, const char *spec,
			      struct bs *data)
{
	uint64_t size = data->size / data->block_size * 8;
	struct bs_protect_config cfg = { .data = data, .type = o->protection };
	struct bs *b = NULL;

	cfg.pi = lun_memory(spec, (size + 4095) & ~(uint64_t)4095,
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

struct bs *protection_open(const struct options *o, const struct lun_key *k,
			   struct bs *b, struct io_loop *const *loops)
{
	const char *spec = k->store;
	bool memory = !strncmp(spec, "ram:", 4);
	bool none = !strncmp(spec, "null:", 5) || lun_type(spec) != DEV_DISK;

	if (k->pi && (memory || none)) {
		say("%s,pi=%s: files and block devices only have such a file",
		    spec, k->pi);
		bs_close(b);
		return NULL;
	}
	if (none)
		return b;
	if (!memory)
		return open_file(o, k, b, loops);
	return o->protection ? open_memory(o, spec, b) : b;
}
