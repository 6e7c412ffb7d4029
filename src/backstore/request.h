/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.h: a request to a backstore. A task of the device embeds one, so
 * that this header, unlike backstore.h, is also seen by the target.
 */
#ifndef BACKSTORE_REQUEST_H
#define BACKSTORE_REQUEST_H

#include <stdbool.h>

#include "base/bufv.h"

enum bs_op {
	BS_READ,    /* read to req->data */
	BS_WRITE,   /* write req->data */
	BS_FLUSH,   /* makes all completed writes durable */
	BS_UNMAP,   /* frees the space; reads then return zeros */
	BS_ZERO,    /* writes zeros; BS_MAY_UNMAP permits freeing the space */
	BS_EXTENTS, /* is the byte at off mapped, and how long is its run? */
	/* sets protection type pi_type of all blocks; checks none */
	BS_PROTECT,
	/* repairs after an unclean end; the first request; protect.h */
	BS_MEND,
	BS_SPACE, /* space that the store takes, and can still take */
	/* reads the current size and sets bs.size. One request at a time; no
	 * worker uses the added blocks before it completes */
	BS_SIZE,
	/* Sets a new key and destroys the old one: no block can be read any
	 * more, and reads return undefined data. No other request may be in
	 * progress. */
	BS_REKEY,
	/* Sets the size to size_now bytes; BS_SIZE has to follow. Added blocks
	 * read as zeros. No other request may be in progress. */
	BS_RESIZE,
	BS_CHECK, /* does the path of the store still lead to it? */
};

/* Result of BS_CHECK. */
enum bs_trouble {
	BS_SOUND,
	/* the file has no name: its blocks are lost when iserd ends */
	BS_DELETED,
	BS_MOVED,    /* the path leads to no file; the file was renamed */
	BS_REPLACED, /* the path leads to another file or device */
	BS_SHRUNK,   /* shorter than the unit */
	/* another program changed the size: not an error */
	BS_RESIZED,
};

/* bs_req.flags */
/* BS_WRITE, BS_ZERO, BS_UNMAP: durable before completion */
#define BS_FUA	     0x1u
#define BS_MAY_UNMAP 0x2u /* BS_ZERO */
#define BS_ALONE     0x4u /* BS_FLUSH: no other request is in progress */
/* Stores with protection information, req->pi is NULL: */
#define BS_PI_UNCHECKED 0x8u /* BS_READ: do not check the blocks */
/* BS_WRITE: an application owns the application tags (ATO) */
#define BS_PI_OWNED 0x10u
#define BS_PI_NONE  0x20u /* BS_WRITE: store no information (all FFh) */

#define BS_REQ_PRIVATE 192
#define BS_REQ_HOOKS   8

struct bs_req;

/* Called when a request returns through a filter or backstore.c. */
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
	 * block, to be filled, or stored without a check. NULL: the store
	 * generates and checks them. */
	uint8_t *pi;
	uint8_t pi_type; /* PROTECT: 0 (none), 1, 2, 3 */
	/* Called once, possibly before bs_submit returns. */
	void (*done)(struct bs_req *req);
	/* Set before done. 0 or ERR_MEDIUM, ERR_NO_SPACE, ERR_READ_ONLY,
	 * ERR_UNSUPPORTED, ERR_NOMEM, ERR_ABORTED, ERR_PI_*; ERR_RANGE: outside
	 * the store, or not whole blocks. */
	int result;
	/* EXTENTS: length and state of the run that begins at off */
	uint64_t extent_len;
	bool extent_mapped;
	bool extent_kept; /* not mapped, but its space is allocated */
	/* SPACE, bytes */
	uint64_t space_used, space_left;
	uint64_t size_now; /* SIZE, RESIZE: bytes; a multiple of block_size */
	enum bs_trouble trouble; /* CHECK */
	uint64_t bad_at;	 /* ERR_PI_*: the block, in bytes */
	uint64_t mended;	 /* MEND: how many blocks were repaired */
	/* private to backstore.c and the filters; the last pushed returns
	 * first */
	unsigned nhooks;
	struct bs_hook hook[BS_REQ_HOOKS];
	/* private to the backstore */
	_Alignas(16) unsigned char priv[BS_REQ_PRIVATE];
};

#endif
