/* SPDX-License-Identifier: BSD-2-Clause */
/* ram.c: a store in memory. Every request completes within submit. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/backstore.h"
#include "backstore/memory.h"
#include "backstore/memory_map.h"
#include "base/bytes.h"
#include "base/err.h"

/* Zeros to lend for pages that were never written. Never written themselves:
 * the system maps one page for all of them. */
#define LENT_ZEROS ((size_t)1 << 20)

/* Counters of changes, each for every region that is a multiple of COUNTERS regions
 * away: a loan sees each change of its own region, and some of others. */
#define REGION	 ((uint64_t)64 << 10)
#define COUNTERS 4096u

struct bs_ram {
	struct bs bs;
	uint64_t changes[COUNTERS]; /* of regions; atomic */
	uint8_t *memory;
	struct memory_map *map; /* NULL: all pages count as written */
	void *zeros;
	const struct bs_ram_ops *ops;
	void (*release)(void *arg);
	void *arg;
};

static struct bs_ram *ram_of(struct bs *b)
{
	return container_of(b, struct bs_ram, bs);
}

/* The run from off in one state; without a map, by the driver. */
static uint64_t run_at(const struct bs_ram *ram, uint64_t off, uint64_t len,
		       bool *written)
{
	uint64_t run = len;

	*written = true;
	if (ram->map)
		return memory_map_run(ram->map, off, len, written);
	ram->ops->extents(ram->arg, off, len, &run, written);
	return run;
}

static void read_pieces(const struct bs_ram *ram, const struct bs_req *req)
{
	uint64_t at = 0;

	while (at < req->len) {
		bool written = true;
		uint64_t n = req->len - at;

		if (ram->map)
			n = run_at(ram, req->off + at, n, &written);
		if (written)
			bufv_copy_in(&req->data, at,
				     ram->memory + req->off + at, n);
		else
			bufv_fill(&req->data, at, 0, n);
		at += n;
	}
}

static void will_write(struct bs_ram *ram, uint64_t off, uint64_t len)
{
	if (ram->map)
		memory_map_set(ram->map, off, len);
}

/* The regions of [off, off + len); at most COUNTERS of them count. */
static uint64_t regions_of(uint64_t off, uint64_t len, uint64_t *first)
{
	uint64_t last = (off + MAX(len, (uint64_t)1) - 1) / REGION;

	*first = off / REGION;
	return MIN(last - *first + 1, (uint64_t)COUNTERS);
}

/* Counts the begin or the end of a change. A full barrier: the bytes change after the
 * first count and before the second one. */
static void count_change(struct bs_ram *ram, const struct bs_req *req)
{
	uint64_t first, n = regions_of(req->off, req->len, &first);

	for (uint64_t i = 0; i < n; i++) {
		uint64_t *changes = &ram->changes[(first + i) % COUNTERS];

		__atomic_fetch_add(changes, 1, __ATOMIC_SEQ_CST);
	}
}

static void fill_zeros(struct bs_ram *ram, uint64_t off, uint64_t len)
{
	will_write(ram, off, len);
	memset(ram->memory + off, 0, len);
}

/* Zeroes a part of a page, if the page was written. */
static void clear_part(struct bs_ram *ram, uint64_t off, uint64_t len)
{
	bool written = true;

	if (len && ram->map)
		(void)run_at(ram, off, len, &written);
	if (len && written)
		memset(ram->memory + off, 0, len);
}

static void unmap_pages(struct bs_ram *ram, uint64_t off, uint64_t len)
{
	memory_map_clear(ram->map, off, len);
	if (ram->ops->punch(ram->arg, off, len) < 0)
		memset(ram->memory + off, 0, len);
}

static void unmap(struct bs_ram *ram, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;
	uint64_t first = (off + MEMORY_PAGE - 1) & ~(MEMORY_PAGE - 1);
	uint64_t last = end & ~(MEMORY_PAGE - 1);

	if (!ram->map) {
		if (ram->ops->punch(ram->arg, off, len) < 0)
			memset(ram->memory + off, 0, len);
		return;
	}
	if (first >= last) { /* no whole page: two parts at most */
		uint64_t n = MIN(first, end) - off;

		clear_part(ram, off, n);
		clear_part(ram, off + n, len - n);
		return;
	}
	clear_part(ram, off, first - off);
	unmap_pages(ram, first, last - first);
	clear_part(ram, last, end - last);
}

static void zero(struct bs_ram *ram, const struct bs_req *req)
{
	if (req->flags & BS_MAY_UNMAP)
		unmap(ram, req->off, req->len);
	else
		fill_zeros(ram, req->off, req->len);
}

static bool is_change(const struct bs_req *req)
{
	return req->op == BS_WRITE || req->op == BS_UNMAP || req->op == BS_ZERO;
}

static void ram_submit(struct bs *b, struct bs_req *req)
{
	struct bs_ram *ram = ram_of(b);

	if (is_change(req))
		count_change(ram, req);
	switch (req->op) {
	case BS_READ:
		read_pieces(ram, req);
		break;
	case BS_WRITE:
		will_write(ram, req->off, req->len);
		bufv_copy_out(&req->data, 0, ram->memory + req->off, req->len);
		break;
	case BS_UNMAP:
		unmap(ram, req->off, req->len);
		break;
	case BS_ZERO:
		zero(ram, req);
		break;
	case BS_EXTENTS:
		req->extent_len =
			run_at(ram, req->off, req->len, &req->extent_mapped);
		break;
	case BS_SPACE:
		req->space_used = ram->ops->used(ram->arg);
		req->space_left = b->size - MIN(req->space_used, b->size);
		break;
	case BS_FLUSH:
	case BS_PROTECT: /* not b->protection */
	case BS_MEND:
	case BS_SIZE: /* not BS_CAP_SIZE */
	case BS_RESIZE:
	case BS_CHECK: /* not BS_CAP_CHECK */
	case BS_REKEY: /* not BS_CAP_REKEY */
		break;
	}
	if (is_change(req))
		count_change(ram, req);
	bs_complete(req, 0);
}

static uint64_t ram_stamp(struct bs *b, uint64_t off, size_t len)
{
	const struct bs_ram *ram = ram_of(b);
	uint64_t first, n = regions_of(off, len, &first), sum = 0;

	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* after earlier loads */
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t *changes = &ram->changes[(first + i) % COUNTERS];

		sum += __atomic_load_n(changes, __ATOMIC_ACQUIRE);
	}
	return sum;
}

static bool ram_stamp_sees(uint64_t off, size_t len, uint64_t at, uint64_t n)
{
	uint64_t first, have = regions_of(off, len, &first);
	uint64_t other, changed = regions_of(at, n, &other);
	uint64_t ahead = (other - first) % COUNTERS;

	return ahead < have || COUNTERS - ahead < changed;
}

static int ram_lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov)
{
	struct bs_ram *ram = ram_of(b);
	enum memory_state state = MEMORY_WRITTEN;

	if (ram->map)
		state = memory_map_state(ram->map, off, len);
	if (state == MEMORY_MIXED ||
	    (state == MEMORY_UNWRITTEN && len > LENT_ZEROS))
		return ERR_UNSUPPORTED;
	iov->iov_base =
		state == MEMORY_WRITTEN ? ram->memory + off : ram->zeros;
	iov->iov_len = len;
	return 0;
}

static void ram_close(struct bs *b)
{
	struct bs_ram *ram = ram_of(b);

	if (ram->release)
		ram->release(ram->arg);
	memory_map_free(ram->map);
	free(ram->zeros);
	free(ram);
}

static const struct bs_ops ram_ops = {
	.submit = ram_submit,
	.lend = ram_lend,
	.stamp = ram_stamp,
	.stamp_sees = ram_stamp_sees,
	.close = ram_close,
};

/* Plain memory: cannot be freed, is all mapped, and has no BS_CAP_SPACE. */
static int punch_unsupported(void *arg, uint64_t off, uint64_t len)
{
	(void)arg;
	(void)off;
	(void)len;
	return ERR_UNSUPPORTED;
}

static void all_mapped(void *arg, uint64_t off, uint64_t len, uint64_t *run,
		       bool *mapped)
{
	(void)arg;
	(void)off;
	*run = len;
	*mapped = true;
}

static uint64_t all_used(void *arg)
{
	(void)arg;
	return UINT64_MAX;
}

static const struct bs_ram_ops plain_memory_ops = {
	.punch = punch_unsupported,
	.extents = all_mapped,
	.used = all_used,
};

#define MEMORY_PART (256u << 10)

void bs_memory_init(struct bs *b, const struct bs_ops *ops, const char *name,
		    uint64_t size, uint32_t block_size)
{
	uint8_t key[sizeof(b->name) + 8];

	/* 8: protection information of another store */
	assert(bs_block_size_ok(block_size) || block_size == 8);
	assert(size % block_size == 0);
	*b = (struct bs){
		.ops = ops,
		.state = BS_OPEN,
		.size = size,
		.block_size = block_size,
		.phys_block = block_size, /* memory has no preferred unit */
		.unmap_grain = block_size,
		.caps = BS_CAP_FUA | BS_CAP_UNMAP | BS_CAP_EXTENTS |
			BS_CAP_LEND | BS_CAP_AT_ONCE,
		.part = { .data = MEMORY_PART, .discard = MEMORY_PART },
	};
	bs_set_name(b, name);
	memcpy(key, b->name, sizeof(b->name));
	put_be64(key + sizeof(b->name), size);
	bs_uuid_derive(b->uuid, key, sizeof(key));
}

struct bs *bs_ram_new(const char *name, void *memory, uint64_t size,
		      uint32_t block_size, void (*release)(void *arg),
		      void *arg)
{
	struct bs_ram *ram = calloc(1, sizeof(*ram));

	if (!ram)
		return NULL;
	bs_memory_init(&ram->bs, &ram_ops, name, size, block_size);
	ram->memory = memory;
	ram->ops = &plain_memory_ops;
	ram->release = release;
	ram->arg = arg;
	return &ram->bs;
}

int bs_ram_set_ops(struct bs *b, const struct bs_ram_ops *ops)
{
	struct bs_ram *ram = ram_of(b);

	assert(b->ops == &ram_ops);
	ram->ops = ops;
	if (ops->is_empty) {
		ram->map = memory_map_new(b->size);
		ram->zeros = calloc(1, LENT_ZEROS);
		if (!ram->map || !ram->zeros)
			return ERR_NOMEM;
	}
	b->caps |= BS_CAP_SPACE;
	return 0;
}
