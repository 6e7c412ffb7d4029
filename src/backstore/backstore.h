/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backstore.h: the store of the blocks of a logical unit. A backstore knows
 * bytes, not SCSI: read, write, flush, unmap, zero, extents. Its table of
 * operations is called through backstore.c only.
 *
 * Threads: any worker may submit at any time; the request completes on the
 * worker that submitted it (req->worker). Two overlapping requests have no
 * order.
 */
#ifndef BACKSTORE_BACKSTORE_H
#define BACKSTORE_BACKSTORE_H

#include <stdbool.h>

#include "backstore/request.h"
#include "base/bufv.h"
#include "base/list.h"

/* bs.caps */
#define BS_CAP_FUA	   0x01u /* BS_FUA costs less than write + flush */
#define BS_CAP_UNMAP	   0x02u
#define BS_CAP_EXTENTS	   0x04u
#define BS_CAP_WRITE_CACHE 0x08u /* volatile until BS_FLUSH */
#define BS_CAP_LEND	   0x10u
#define BS_CAP_READ_ONLY   0x20u
#define BS_CAP_SPACE	   0x40u
/* the size may change while the store is open */
#define BS_CAP_SIZE   0x80u
#define BS_CAP_REKEY  0x100u
#define BS_CAP_CHECK  0x200u
#define BS_CAP_RESIZE 0x400u
/* each request completes within bs_submit */
#define BS_CAP_AT_ONCE 0x800u

struct bs;

/* Disks have 512 or 4096 bytes in a block, optical media 2048. */
static inline bool bs_block_size_ok(uint32_t size)
{
	return size == 512 || size == 2048 || size == 4096;
}

struct bs_ops {
	void (*submit)(struct bs *b, struct bs_req *req);
	/* Points *iov at [off, off + len) in memory that stays readable until
	 * the store is closed, or returns ERR_UNSUPPORTED. Writes change this
	 * memory while the caller reads it. */
	int (*lend)(struct bs *b, uint64_t off, size_t len, struct iovec *iov);
	/* A number that is another one after each change of [off, off + len) has
	 * begun, and again after it has ended. It may change without that, too.
	 * NULL: the store does not lend, or never changes what it lends. */
	uint64_t (*stamp)(struct bs *b, uint64_t off, size_t len);
	/* Whether a change of [at, at + n) changes the stamp of [off, off + len): if
	 * they overlap, and maybe if they do not. NULL: never. */
	bool (*stamp_sees)(uint64_t off, size_t len, uint64_t at, uint64_t n);
	/* Frees b. No request is in progress. */
	void (*close)(struct bs *b);
};

enum bs_state {
	BS_OPEN,
	BS_CLOSED,
};

/* The state of a store with protection information. */
struct bs_protection {
	uint8_t type; /* 0: none at present */
	/* marked regions; BS_FLUSH with BS_ALONE clears the marks */
	unsigned unsettled;
};

/* ---- latencies of a store ---- */

enum bs_timed {
	BS_TIMED_READ,
	BS_TIMED_WRITE,
	BS_TIMED_FLUSH,
	BS_TIMED_DISCARD, /* BS_UNMAP, BS_ZERO */
	BS_TIMED,
};

/* Bucket b has the latencies below bs_latency_limit(b) that no lower bucket has;
 * the last one has all longer ones. */
#define BS_LATENCY_FIRST   13 /* 2^13 ns: 8 microseconds */
#define BS_LATENCY_BUCKETS 23

/* Written by one worker; any thread reads, relaxed. */
struct bs_latency {
	uint64_t count[BS_LATENCY_BUCKETS];
	uint64_t sum; /* ns */
};

/* What one worker has had. */
struct bs_latencies {
	struct bs_latency of[BS_TIMED];
};

/* The common part; a backstore embeds it. */
struct bs {
	const struct bs_ops *ops;
	enum bs_state state;
	uint64_t size;	      /* bytes; a multiple of block_size; BS_SIZE */
	uint32_t block_size;  /* smallest unit, bytes; bs_block_size_ok */
	uint32_t phys_block;  /* preferred unit of the medium, bytes */
	uint32_t unmap_grain; /* bytes; 0 when BS_CAP_UNMAP is missing */
	unsigned caps;
	/* A request that moves, or discards, more bytes keeps the thread of its worker for
	 * long: it had better come in parts. 0: other threads, or a device, work on it. */
	struct {
		uint32_t data, discard;
	} part;
	const struct bs_protection *protection; /* NULL: not supported */
	/* of each worker; NULL: the store does not count. As long as the store is
	 * open. */
	struct bs_latencies *latencies;
	unsigned nlatencies;
	/*
	 * Failed flushes of the store of the data and of that of the protection
	 * information; the filters of a stack share the counters (NULL: its
	 * flushes cannot fail). Any worker, atomic. Linux reports a failed
	 * write-back once and drops the data: a later flush that succeeds does
	 * not cover writes before a failure.
	 */
	uint32_t *failures[2];
	uint32_t own_failures;
	/* The open file that all requests for the data use; NULL: there is none. A
	 * request in progress keeps it open, also after its process has ended. */
	const int *fd;
	/* The same at each open of the same store. Files, devices and NBD exports
	 * have none: the caller sets it (daemon/luns/identity.h). */
	uint8_t uuid[16];
	char name[256]; /* "ram:64M", a path: for messages and VPD pages */
};

/* bs_submit checks the range, and emulates flags that b does not support (FUA
 * becomes write + flush). It never fails: the result is in req. */
void bs_submit(struct bs *b, struct bs_req *req);
/* bs_lend: see bs_ops.lend; ERR_RANGE as in bs_submit. */
int bs_lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov);
/* bs_stamp: see bs_ops.stamp. If the stamp before a read of lent memory is the one
 * after it, the read has seen one state of these bytes. Any worker. */
uint64_t bs_stamp(struct bs *b, uint64_t off, size_t len);
/* bs_stamp_sees: see bs_ops.stamp_sees. */
bool bs_stamp_sees(const struct bs *b, uint64_t off, size_t len, uint64_t at,
		   uint64_t n);
/* bs_close frees b and its other stores. No request is in progress. */
void bs_close(struct bs *b);
/* bs_trouble_str: what happened and what to do; NULL for BS_SOUND. */
const char *bs_trouble_str(enum bs_trouble t);
/* bs_flush_failures returns the number of failed flushes of b, modulo 2^32.
 * Data written before the number changed may be lost. Any worker. */
static inline uint32_t bs_flush_failures(const struct bs *b)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < 2; i++)
		if (b->failures[i])
			n += __atomic_load_n(b->failures[i], __ATOMIC_ACQUIRE);
	return n;
}

/* bs_latency_limit returns the lowest latency, in nanoseconds, that is above bucket
 * b; INT64_MAX for the last one. */
int64_t bs_latency_limit(unsigned b);
/* bs_latency_sum adds up what all workers have had of one kind of request. */
void bs_latency_sum(const struct bs *b, enum bs_timed kind,
		    struct bs_latency *sum);

/* ---- for backstores and filters ---- */

/* bs_complete ends req; any backstore that has req calls it, and none calls
 * req->done directly. The submitter owns req afterwards. */
void bs_complete(struct bs_req *req, int result);
/* bs_forward passes req from a filter to the backstore below the filter. */
void bs_forward(struct bs *next, struct bs_req *req);
/* bs_req_push: back(arg, req) is called when req returns, with req->result set;
 * it continues with bs_complete. */
void bs_req_push(struct bs_req *req,
		 void (*back)(void *arg, struct bs_req *req), void *arg);
/* bs_latency_add counts a request that took ns nanoseconds; on its worker. */
void bs_latency_add(struct bs *b, const struct bs_req *req, int64_t ns);
/* bs_lend_unsupported: bs_ops.lend of a store without BS_CAP_LEND. */
int bs_lend_unsupported(struct bs *b, uint64_t off, size_t len,
			struct iovec *iov);
/* bs_flush_failed counts a failed flush of b; before the request completes. */
void bs_flush_failed(struct bs *b);
/* bs_err_of_errno maps 0 or -Exxx, the result of a call of a driver, to the
 * result of a request. */
int bs_err_of_errno(int64_t err);
/* bs_set_name copies name, truncated to fit. */
void bs_set_name(struct bs *b, const char *name);
/* bs_uuid_derive derives a UUID (RFC 9562 version 8) from bytes that identify a
 * store: equal bytes, equal UUID. */
void bs_uuid_derive(uint8_t uuid[16], const void *key, size_t len);

/* ---- memory ---- */

/*
 * bs_ram_new makes a backstore of memory of the caller (mapped, size bytes,
 * zeroed; a memfd lets the driver send it by sendfile). size is a multiple of
 * block_size. release is called with arg when the store is closed. NULL: out of
 * memory.
 */
struct bs *bs_ram_new(const char *name, void *memory, uint64_t size,
		      uint32_t block_size, void (*release)(void *arg),
		      void *arg);

/* Operations that a driver does better, because it knows the kind of the
 * memory. Any worker calls them. */
struct bs_ram_ops {
	/* Zeroes [off, off + len) and frees its pages. Negative: not possible;
	 * ram.c then writes zeros. */
	int (*punch)(void *arg, uint64_t off, uint64_t len);
	/* The run from off, at most len bytes, in one state. */
	void (*extents)(void *arg, uint64_t off, uint64_t len, uint64_t *run,
			bool *mapped);
	/* Bytes of memory in use. */
	uint64_t (*used)(void *arg);
	/* The memory was never written: ram.c keeps a map of written pages,
	 * reads no others, and answers extents from the map. */
	bool is_empty;
};

/* bs_ram_set_ops: before the first request. arg is that of bs_ram_new. 0, or
 * ERR_NOMEM: close the store. */
int bs_ram_set_ops(struct bs *ram, const struct bs_ram_ops *ops);

/* bs_null_new: reads return zeros, writes are dropped. */
struct bs *bs_null_new(const char *name, uint64_t size, uint32_t block_size);

/* ---- filters: a filter passes requests to next, and closes next with itself.
 * No filter lends, so that each sees every read. NULL: out of memory, and next
 * is still open. ---- */

/* bs_fault_new: the nth request that matches op_mask (BIT(enum bs_op)) fails
 * with err, and then every period-th (0: no other). */
struct bs *bs_fault_new(struct bs *next, unsigned op_mask, unsigned nth,
			unsigned period, int err);
/* bs_hold_new: requests wait until bs_hold_release passes on the oldest n
 * (single worker; for tests that need a command in progress). */
struct bs *bs_hold_new(struct bs *next);
/* bs_hold_waiting: how many requests wait. */
unsigned bs_hold_waiting(const struct bs *hold);
void bs_hold_release(struct bs *hold, unsigned n);
/* bs_trace_new: fn gets each request at its completion. */
struct bs *bs_trace_new(struct bs *next,
			void (*fn)(void *arg, const struct bs_req *req),
			void *arg);

/* ---- encryption ---- */

#define BS_CRYPT_KEY 64 /* bytes: AES-256-XTS has two keys */

/* A request to persist a new key in the place of the old one. */
struct bs_key_change {
	const uint8_t *key; /* BS_CRYPT_KEY bytes, borrowed until done */
	unsigned worker;
	/* Set before done. in_force: the next open of the store finds the new
	 * key; possible even if a later step failed. */
	bool in_force;
	int result;
	void (*done)(struct bs_key_change *c); /* on that worker */
};

struct bs_crypt_config {
	const uint8_t *key; /* borrowed for the call; its halves differ */
	unsigned nworkers;
	/* Fills p with n random bytes; false: none available. */
	bool (*random)(void *arg, uint8_t *p, size_t n);
	/* Persists a key. NULL: no BS_REKEY. */
	void (*keep)(void *arg, struct bs_key_change *c);
	/* called when the store is closed; or NULL */
	void (*release)(void *arg);
	void *arg;
};

/*
 * bs_crypt_new: a filter that encrypts with AES-256-XTS in sectors of 512
 * bytes; the tweak is the number of the sector. Holes, and zeros of BS_UNMAP
 * and BS_ZERO, are holes and zeros in the backstore below the filter. NULL: out
 * of memory, or libcrypto rejects the key; next is still open.
 */
struct bs *bs_crypt_new(struct bs *next, const struct bs_crypt_config *cfg);

#endif
