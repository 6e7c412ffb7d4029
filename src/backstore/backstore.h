/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backstore.h: what holds the blocks of a logical unit. A backstore knows
 * bytes, not SCSI: read, write, flush, unmap, zero, extents. One table of
 * operations, called only through the doorway in backstore.c.
 *
 * Threads: any worker may submit at any time; the completion comes on the
 * worker that submitted (req->worker). Two requests that overlap have no
 * order between them.
 */
#ifndef BACKSTORE_BACKSTORE_H
#define BACKSTORE_BACKSTORE_H

#include <stdbool.h>

#include "base/bufv.h"
#include "base/list.h"

enum bs_op {
	BS_READ,    /* fill req->data */
	BS_WRITE,   /* store req->data */
	BS_FLUSH,   /* all writes completed before are durable */
	BS_UNMAP,   /* give the space back; reads then give zeros */
	BS_ZERO,    /* write zeros; BS_MAY_UNMAP allows giving space back */
	BS_EXTENTS, /* is the byte at off mapped, and for how long alike? */
	BS_PROTECT, /* all blocks are of protection type pi_type, unchecked */
	BS_MEND,    /* after an unclean end, before anything else; protect.h */
	BS_SPACE,   /* how much room the store takes, and can still take */
	BS_SIZE,    /* how large is it now? bs.size is that afterwards. One at
		     * a time, and nobody uses what is new before it is known */
	/* What was written can't be read ever again: another key is in force,
	 * and the old one is gone. What is read instead nobody knows. No other
	 * request may be under way. */
	BS_REKEY,
};

/* bs_req.flags */
#define BS_FUA	     0x1u /* BS_WRITE, BS_ZERO: durable before completion */
#define BS_MAY_UNMAP 0x2u /* BS_ZERO */
#define BS_ALONE     0x4u /* BS_FLUSH: nothing else is under way */
/* Of stores with protection information, where the request brings none: */
#define BS_PI_UNCHECKED 0x8u  /* BS_READ: don't hold the blocks against it */
#define BS_PI_OWNED	0x10u /* BS_WRITE: application tags are not ours */
#define BS_PI_NONE	0x20u /* BS_WRITE: have none afterwards (all FFh) */

/* bs.caps */
#define BS_CAP_FUA	   0x01u /* BS_FUA costs less than write + flush */
#define BS_CAP_UNMAP	   0x02u
#define BS_CAP_EXTENTS	   0x04u
#define BS_CAP_WRITE_CACHE 0x08u /* volatile until BS_FLUSH */
#define BS_CAP_LEND	   0x10u
#define BS_CAP_READ_ONLY   0x20u
#define BS_CAP_SPACE	   0x40u
#define BS_CAP_SIZE	   0x80u /* it can change while the store is open */
#define BS_CAP_REKEY	   0x100u

#define BS_REQ_PRIVATE 192
#define BS_REQ_HOOKS   8

struct bs_req;

/* What a filter or the doorway wants done when a request comes back up. */
struct bs_hook {
	void (*back)(void *arg, struct bs_req *req);
	void *arg;
};

struct bs_req {
	/* set by the submitter */
	enum bs_op op;
	unsigned flags;
	unsigned worker; /* index of the submitting worker */
	uint64_t off, len;
	struct bufv data; /* READ, WRITE: data.len == len; borrowed */
	/* READ, WRITE of a store with protection information: 8 bytes for each
	 * block, to be filled, or to be kept as they are. NULL: the store
	 * checks them, and makes them, itself. */
	uint8_t *pi;
	uint8_t pi_type; /* PROTECT: 0 (none), 1, 2, 3 */
	/* Called once, possibly before bs_submit returns. */
	void (*done)(struct bs_req *req);
	/* set before done. 0 or ERR_MEDIUM, ERR_NO_SPACE, ERR_READ_ONLY,
	 * ERR_UNSUPPORTED, ERR_NOMEM, ERR_ABORTED; ERR_RANGE: not inside the
	 * store, or not in whole blocks */
	int result;
	/* EXTENTS: the run of bytes from off that is alike, and what it is */
	uint64_t extent_len;
	bool extent_mapped;
	bool extent_kept; /* not mapped, but its space is kept for it */
	/* SPACE, bytes */
	uint64_t space_used, space_left;
	uint64_t size_now; /* SIZE, bytes; a multiple of block_size */
	uint64_t bad_at;   /* ERR_PI_*: the block, in bytes */
	uint64_t mended;   /* MEND: how many blocks */
	/* the doorway's and the filters' own; the last pushed comes first */
	unsigned nhooks;
	struct bs_hook hook[BS_REQ_HOOKS];
	/* the backstore's own */
	_Alignas(16) unsigned char priv[BS_REQ_PRIVATE];
};

struct bs;

/* Disks have 512 or 4096 bytes in a block, optical media 2048. */
static inline bool bs_block_size_ok(uint32_t size)
{
	return size == 512 || size == 2048 || size == 4096;
}

struct bs_ops {
	void (*submit)(struct bs *b, struct bs_req *req);
	/* Points *iov at [off, off + len) in memory that stays readable until
	 * the backstore is closed, or returns ERR_UNSUPPORTED. What it shows
	 * may change under the reader. */
	int (*lend)(struct bs *b, uint64_t off, size_t len, struct iovec *iov);
	/* Frees b. No request is in flight. */
	void (*close)(struct bs *b);
};

enum bs_state {
	BS_OPEN,
	BS_CLOSED,
};

/* What is known of a store with protection information. */
struct bs_protection {
	uint8_t type;	    /* 0: it has none now */
	unsigned unsettled; /* regions that a BS_FLUSH with BS_ALONE settles */
};

/* The common part; a backstore embeds it. */
struct bs {
	const struct bs_ops *ops;
	enum bs_state state;
	uint64_t size;	      /* bytes; a multiple of block_size; BS_SIZE */
	uint32_t block_size;  /* smallest unit, bytes; bs_block_size_ok */
	uint32_t phys_block;  /* what the medium likes, bytes */
	uint32_t unmap_grain; /* bytes; 0 when BS_CAP_UNMAP is missing */
	unsigned caps;
	const struct bs_protection *protection; /* NULL: it can't have any */
	uint8_t uuid[16]; /* the same each time the same store is opened */
	char name[256];	  /* "ram:64M", a path: for people and VPD */
};

/* bs_submit: range inside b->size and flags that b can't do are dealt with
 * here, once for all backstores (FUA becomes write + flush). Never fails:
 * the result is in req. */
void bs_submit(struct bs *b, struct bs_req *req);
/* bs_lend: see bs_ops.lend; ERR_RANGE as in bs_submit. */
int bs_lend(struct bs *b, uint64_t off, size_t len, struct iovec *iov);
void bs_close(struct bs *b);

/* ---- for those who implement a backstore or a filter ---- */

/* bs_complete ends req, from whichever backstore has it now: never call
 * req->done directly. req belongs to the submitter afterwards. */
void bs_complete(struct bs_req *req, int result);
/* bs_forward: a filter hands req on to the store behind it. */
void bs_forward(struct bs *next, struct bs_req *req);
/* bs_req_push: back(arg, req) is called when req comes back up, with
 * req->result set; it goes on with bs_complete. */
void bs_req_push(struct bs_req *req,
		 void (*back)(void *arg, struct bs_req *req), void *arg);
/* bs_set_name copies name, cut to fit. */
void bs_set_name(struct bs *b, const char *name);
/* bs_uuid_derive makes a UUID (RFC 9562 version 8) of any bytes that tell one
 * store from another: equal bytes, equal UUID. */
void bs_uuid_derive(uint8_t uuid[16], const void *key, size_t len);

/* ---- memory ---- */

/*
 * bs_ram_new: a backstore over memory of the caller's (mapped, size bytes,
 * zeroed; a memfd lets the driver sendfile from it). size is a multiple of
 * block_size. release is called with arg when the store is closed. NULL: out
 * of memory.
 */
struct bs *bs_ram_new(const char *name, void *memory, uint64_t size,
		      uint32_t block_size, void (*release)(void *arg),
		      void *arg);

/* What a driver can do better than ram.c itself, since it knows what the
 * memory is made of. Both are called from any worker. */
struct bs_ram_ops {
	/* Makes [off, off + len) zero and gives its pages back. Negative: it
	 * could not; ram.c then writes zeros. */
	int (*punch)(void *arg, uint64_t off, uint64_t len);
	/* The run from off, at most len bytes, that is alike. */
	void (*extents)(void *arg, uint64_t off, uint64_t len, uint64_t *run,
			bool *mapped);
	/* Bytes of memory that are taken. */
	uint64_t (*used)(void *arg);
	/* Nothing was written to the memory yet: what never is, is never read
	 * either, and extents are known without asking. */
	bool is_empty;
};

/* bs_ram_set_ops: before the first request. arg is that of bs_ram_new.
 * ERR_NOMEM: close it. */
int bs_ram_set_ops(struct bs *ram, const struct bs_ram_ops *ops);

/* bs_null_new: reads give zeros, writes are dropped. */
struct bs *bs_null_new(const char *name, uint64_t size, uint32_t block_size);

/* ---- filters: stand in front of next, which they close with themselves.
 * None lends, so that each sees every read. NULL: out of memory; next is
 * still open then. ---- */

/* bs_fault_new: the nth request that matches op_mask (BIT(enum bs_op)) fails
 * with err, and every period-th after it (0: never again). */
struct bs *bs_fault_new(struct bs *next, unsigned op_mask, unsigned nth,
			unsigned period, int err);
/* bs_hold_new: requests wait until bs_hold_release lets the oldest n go
 * (single worker; for tests that need a command to be in flight). */
struct bs *bs_hold_new(struct bs *next);
unsigned bs_hold_waiting(const struct bs *hold);
void bs_hold_release(struct bs *hold, unsigned n);
/* bs_trace_new: fn sees each request at its completion. */
struct bs *bs_trace_new(struct bs *next,
			void (*fn)(void *arg, const struct bs_req *req),
			void *arg);

/* ---- encryption ---- */

#define BS_CRYPT_KEY 64 /* bytes: AES-256-XTS has two keys */

/* Another key is to be kept in the place of the old one, for good. */
struct bs_key_change {
	const uint8_t *key; /* BS_CRYPT_KEY bytes, borrowed until done */
	unsigned worker;
	/* set before done. in_force: whoever opens the store from now on finds
	 * the new key; that may be so although something failed. */
	bool in_force;
	int result;
	void (*done)(struct bs_key_change *c); /* on that worker */
};

struct bs_crypt_config {
	const uint8_t *key; /* borrowed for the call; its halves differ */
	unsigned nworkers;
	/* Bytes that nobody can guess; false: there are none. */
	bool (*random)(void *arg, uint8_t *p, size_t n);
	/* NULL: the key stays (no BS_REKEY) */
	void (*keep)(void *arg, struct bs_key_change *c);
	void (*release)(void *arg); /* when the store is closed; or NULL */
	void *arg;
};

/*
 * bs_crypt_new: a filter that encrypts what it writes with AES-256-XTS, in
 * sectors of 512 bytes; the tweak is the sector's number. What the store behind
 * it does not hold, it does not hold either: holes and zeros that BS_UNMAP and
 * BS_ZERO leave are seen as such in the store. NULL: out of memory, or
 * libcrypto does not take the key; next is still open then.
 */
struct bs *bs_crypt_new(struct bs *next, const struct bs_crypt_config *cfg);

#endif
