/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * open.c: opens the stores of LUNs. Memory is a memfd: a page is allocated when
 * it is first used and freed by UNMAP, and sendfile can send from it.
 */
#include "daemon/luns/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backstore/uring/bs_file.h"
#include "base/bytes.h"
#include "base/opt.h"
#include "daemon/log/say.h"
#include "daemon/luns/encrypt.h"
#include "daemon/luns/image.h"
#include "daemon/luns/memory.h"
#include "daemon/luns/module.h"
#include "device/sg/sg.h"
#include "net/net.h"

struct ram {
	int fd;
	void *memory;
	uint64_t size;
};

static int ram_punch(void *arg, uint64_t off, uint64_t len)
{
	struct ram *r = arg;

	return fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)off, (off_t)len)
		       ? -errno
		       : 0;
}

/* All workers share the file position that lseek changes; no code uses that
 * position. */
static void ram_extents(void *arg, uint64_t off, uint64_t len, uint64_t *run,
			bool *mapped)
{
	struct ram *r = arg;
	off_t data = lseek(r->fd, (off_t)off, SEEK_DATA), end;

	*mapped = data == (off_t)off;
	end = *mapped ? lseek(r->fd, (off_t)off, SEEK_HOLE) : data;
	if (end < 0) /* ENXIO: a hole to the end */
		end = (off_t)r->size;
	*run = MIN(len, (uint64_t)end - off);
}

static uint64_t ram_used(void *arg)
{
	struct ram *r = arg;
	struct stat st;

	return fstat(r->fd, &st) ? r->size : (uint64_t)st.st_blocks * 512;
}

/* new_ram: memory that has never been written; old_ram: that of an earlier
 * process. */
static const struct bs_ram_ops new_ram = {
	.punch = ram_punch,
	.extents = ram_extents,
	.used = ram_used,
	.is_empty = true,
};
static const struct bs_ram_ops old_ram = {
	.punch = ram_punch,
	.extents = ram_extents,
	.used = ram_used,
};

static void ram_release(void *arg)
{
	struct ram *r = arg;

	net_file_backed(NULL, 0, r->fd);
	munmap(r->memory, r->size);
	close(r->fd);
	free(r);
}

static int new_memory(const char *spec, uint64_t size)
{
	int fd = memfd_create(spec, MFD_CLOEXEC);

	if (fd < 0 || !ftruncate(fd, (off_t)size))
		return fd;
	close(fd);
	return -1;
}

/* Maps fd, which it owns; -1: new memory. */
static struct ram *ram_map(const char *spec, int fd, uint64_t size,
			   bool sendfile)
{
	struct ram *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->size = size;
	r->fd = fd >= 0 ? fd : new_memory(spec, size);
	if (r->fd < 0)
		goto out_free;
	r->memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->memory == MAP_FAILED)
		goto out_free;
	/* huge pages, if the system permits them for a memfd (shmem_enabled) */
	(void)madvise(r->memory, size, MADV_HUGEPAGE);
	if (sendfile)
		net_file_backed(r->memory, size, r->fd);
	return r;
out_free:
	say("%s: %s; give a smaller size", spec, strerror(errno));
	if (r->fd >= 0)
		close(r->fd);
	free(r);
	return NULL;
}

/* Opens m->fd, or new memory if that is -1, and sets m->fd. */
static struct bs *ram_open(const char *spec, struct lun_memory *m,
			   uint32_t block, bool sendfile)
{
	const struct bs_ram_ops *ops = m->fd >= 0 ? &old_ram : &new_ram;
	uint64_t size = m->size;
	struct ram *r;
	struct bs *b;
	char why[128];

	if (m->fd < 0 && !lun_memory_fits(size, why, sizeof(why))) {
		say("%s: %s", spec, why);
		return NULL;
	}
	r = ram_map(spec, m->fd, size, sendfile);
	if (!r)
		return NULL;
	m->fd = r->fd;
	b = bs_ram_new(spec, r->memory, size, block, ram_release, r);
	if (!b) {
		ram_release(r);
		say("%s: out of memory", spec);
		return NULL;
	}
	if (bs_ram_set_ops(b, ops)) {
		bs_close(b);
		say("%s: out of memory", spec);
		return NULL;
	}
	return b;
}

struct bs *lun_pi_memory(const char *spec, uint64_t size, uint32_t block)
{
	struct lun_memory m = { .fd = -1, .size = size };

	return ram_open(spec, &m, block, false);
}

static struct bs *null_open(const char *spec, uint64_t size, uint32_t block)
{
	struct bs *b = bs_null_new(spec, size, block);

	if (!b)
		say("%s: out of memory", spec);
	return b;
}

/* Reads the size of "KIND:SIZE", in bytes. False after a message. */
static bool spec_size(const struct lun_spec *s, uint32_t block, uint64_t *size)
{
	if (!opt_size(s->operand, size)) {
		say("%s: \"%s\" is not a size; give bytes, or a number with K, M, "
		    "G or T, for example %.*s1G",
		    s->store, s->operand, (int)(s->operand - s->store),
		    s->store);
		return false;
	}
	if (*size == 0 || *size % block) {
		say("%s: the size must be a multiple of the block size %u and "
		    "not 0",
		    s->store, block);
		return false;
	}
	return true;
}

#define CD_BLOCK 2048u

static struct bs_file_config file_config(const struct options *o,
					 const char *path,
					 struct io_loop *const *loops)
{
	return (struct bs_file_config){
		.path = path,
		.read_only = o->lun.read_only,
		.buffered = o->lun.buffered,
		/* the lock of a record excludes other gateways */
		.shared = o->lun.shared || o->lun.cluster,
		.lock_retries = 40, /* an iserd that was killed unlocks soon */
		.block_size = o->lun.block_size,
		.loops = loops,
		.nloops = o->workers,
	};
}

struct bs *lun_file(const struct bs_file_config *cfg)
{
	char why[512];
	int err;
	struct bs *b = bs_file_open(cfg, &err, why, sizeof(why));

	if (!b)
		say("%s", why);
	return b;
}

static struct bs *file_open(const struct options *o, const char *path,
			    struct io_loop *const *loops)
{
	const struct bs_file_config cfg = file_config(o, path, loops);
	struct bs *b = lun_file(&cfg);

	if (b)
		image_warn(path);
	return b;
}

struct bs *lun_open_cd(const struct options *o, const char *path,
		       struct io_loop *const *loops, char *why, size_t size)
{
	struct bs_file_config cfg = file_config(o, path, loops);
	int err;

	cfg.read_only = true;
	cfg.block_size = CD_BLOCK;
	cfg.lock_retries = 0; /* worker 0 must not wait while it serves */
	return bs_file_open(&cfg, &err, why, size);
}

static struct bs *cd_open(const struct options *o, const char *path,
			  struct io_loop *const *loops)
{
	char why[512];
	struct bs *b = lun_open_cd(o, path, loops, why, sizeof(why));

	if (!b)
		say("%s", why);
	return b;
}

/* Opens a ram: LUN with the memory and the identity of an earlier process, if *m
 * has those and the size is the same. */
static struct bs *ram_store(const struct options *o, const struct lun_spec *s,
			    struct lun_memory *m, uint64_t size, uint32_t block)
{
	struct bs *b;
	bool is_old = m->fd >= 0 && m->size == size;

	if (m->fd >= 0 && !is_old) {
		say_note(
			"%s: the iserd before had another size; its data are lost",
			s->store);
		close(m->fd);
	}
	if (!is_old)
		m->fd = -1;
	m->size = size;
	b = ram_open(s->store, m, block, o->lun.sendfile);
	/* new memory has no identity yet (identity.h) */
	if (b && is_old)
		memcpy(b->uuid, m->uuid, sizeof(m->uuid));
	else if (b)
		memset(b->uuid, 0, sizeof(b->uuid));
	return b;
}

static struct bs *store_open(const struct options *o, const struct lun_spec *s,
			     struct lun_memory *m, bool may_wait,
			     struct io_loop *const *loops)
{
	uint32_t block = o->lun.block_size ? o->lun.block_size : 512;
	uint64_t size;

	if (s->kind == LUN_CD)
		return cd_open(o, s->operand, loops);
	if (s->kind == LUN_FILE)
		return file_open(o, s->store, loops);
	if (lun_is_module(s->kind))
		return lun_open_module(o, s, may_wait, loops);
	if (!spec_size(s, block, &size))
		return NULL;
	if (s->kind == LUN_RAM)
		return ram_store(o, s, m, size, block);
	return null_open(s->store, size, block);
}

struct bs *lun_open(const struct options *o, const struct lun_spec *s,
		    struct lun_memory *memory, bool may_wait,
		    struct io_loop *const *loops)
{
	bool has_key = s->key || s->new_key;
	const char *why =
		lun_lacks_key(s->kind, s->store, has_key, o->lun.read_only);
	struct bs *b;

	if (why) {
		say("%s: %s", s->store, why);
		return NULL;
	}
	b = store_open(o, s, memory, may_wait, loops);
	return b && has_key ? lun_encrypt(b, o, s, loops) : b;
}

/* ---- SCSI devices of this machine ---- */

static void device_gone(void *arg, const char *path)
{
	(void)arg;
	say("%s: the device is gone; its commands fail until iserd is "
	    "restarted with the device",
	    path);
}

struct pass *lun_open_scsi(const struct options *o, const struct lun_spec *s,
			   struct io_loop *const *loops)
{
	const struct sg_config cfg = {
		.path = s->operand,
		.read_only = o->lun.read_only,
		.shared = o->lun.shared,
		.timeout = o->lun.scsi_timeout,
		.loops = loops,
		.nloops = o->workers,
		.gone = device_gone,
	};
	char why[512];
	struct pass *p = sg_open(&cfg, why, sizeof(why));

	if (!p)
		say("%s", why);
	return p;
}
