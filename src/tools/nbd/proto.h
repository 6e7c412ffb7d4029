/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proto.h: the NBD protocol at the server, without a socket: the negotiation,
 * request headers and their checks, reply headers. Citations name sections of
 * the document doc/proto.md of the NBD project.
 */
#ifndef TOOLS_NBD_PROTO_H
#define TOOLS_NBD_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest string of the protocol ("Values"). */
#define NBD_NAME_MAX	4096
#define NBD_PAYLOAD_MAX (32u << 20) /* the limit that the document gives */

/* Errors on the wire: the errno values of Linux, on every system. */
enum nbd_error {
	NBD_OK = 0,
	NBD_EPERM = 1,
	NBD_EIO = 5,
	NBD_ENOMEM = 12,
	NBD_EINVAL = 22,
	NBD_ENOSPC = 28,
	NBD_EOVERFLOW = 75,
	NBD_ENOTSUP = 95,
	NBD_ESHUTDOWN = 108,
};

/* The export. The strings are borrowed. */
struct nbd_export {
	const char *name;
	const char *description;
	uint64_t size;		  /* bytes, whole blocks */
	uint32_t min_block;	  /* requests are multiples of this */
	uint32_t preferred_block; /* power of two, at least min_block */
	bool read_only;
	bool can_trim;
	bool has_extents; /* the metadata context base:allocation */
};

/* ---- negotiation: "Handshake phase", fixed newstyle ---- */

enum nbd_nego_state {
	NBD_NEGO_FLAGS,	 /* receives the flags of the client */
	NBD_NEGO_OPTION, /* receives the header of an option */
	NBD_NEGO_DATA,	 /* receives the data of the option */
	NBD_NEGO_SKIP,	 /* drops data that exceed the buffer */
	NBD_NEGO_OVER,	 /* requests follow */
	NBD_NEGO_FAILED, /* close the connection; `why` has the reason */
	NBD_NEGO_ENDED,	 /* close the connection: the client asked for it */
};

#define NBD_NEGO_IN  (NBD_NAME_MAX + 1024)
#define NBD_NEGO_OUT (NBD_NAME_MAX + 1024)

struct nbd_nego {
	const struct nbd_export *export;
	enum nbd_nego_state state;
	/* negotiated */
	bool no_zeroes;
	bool structured;
	bool extents; /* base:allocation is selected */
	/* the option in progress; left: bytes of its data to receive */
	uint32_t option, left;
	uint8_t in[NBD_NEGO_IN];
	size_t in_len;
	/* to send, out[0 .. out_len): the caller sends it, sets out_len to 0
	 * and then receives again */
	uint8_t out[NBD_NEGO_OUT];
	size_t out_len;
	char why[128];
};

/* nbd_nego_start begins a negotiation with the greeting in out. e is borrowed
 * until the connection ends. */
void nbd_nego_start(struct nbd_nego *n, const struct nbd_export *e);
/* nbd_nego_want returns how many bytes to receive next, and where; 0: the
 * negotiation has ended. */
size_t nbd_nego_want(struct nbd_nego *n, uint8_t **where);
/* nbd_nego_got takes len received bytes, at most those of nbd_nego_want. out is
 * empty before the call. */
void nbd_nego_got(struct nbd_nego *n, size_t len);

/* ---- requests: "Transmission phase" ---- */

enum nbd_command {
	NBD_READ = 0,
	NBD_WRITE = 1,
	NBD_DISC = 2,
	NBD_FLUSH = 3,
	NBD_TRIM = 4,
	NBD_CACHE = 5,
	NBD_WRITE_ZEROES = 6,
	NBD_BLOCK_STATUS = 7,
};

enum nbd_command_flag {
	NBD_FUA = 1 << 0,
	NBD_NO_HOLE = 1 << 1,
	NBD_DF = 1 << 2,
	NBD_REQ_ONE = 1 << 3,
};

#define NBD_REQUEST_SIZE 28

struct nbd_request {
	uint16_t flags;
	uint16_t command;
	uint64_t cookie;
	uint64_t offset;
	uint32_t length;
};

/* nbd_request_get decodes a request header. Returns false if its magic number is
 * wrong: the connection cannot continue. */
bool nbd_request_get(struct nbd_request *r, const uint8_t b[NBD_REQUEST_SIZE]);
/* nbd_request_check returns NBD_OK if the request may be carried out, or the
 * error to reply with. */
enum nbd_error nbd_request_check(const struct nbd_nego *n,
				 const struct nbd_request *r);

/* ---- replies ---- */

/* The longest header: a structured reply with an offset, or with an error. */
#define NBD_REPLY_MAX 28

/* nbd_reply_put encodes the header of a reply to out and returns its length. The
 * data of a READ follow the header, and nothing follows it after an error. */
size_t nbd_reply_put(const struct nbd_nego *n, const struct nbd_request *r,
		     enum nbd_error err, uint8_t out[NBD_REPLY_MAX]);
/* nbd_status_put encodes the header of a reply to BLOCK_STATUS and returns its
 * length; `extents` descriptors (nbd_extent_put) follow the header. */
size_t nbd_status_put(const struct nbd_request *r, uint32_t extents,
		      uint8_t out[NBD_REPLY_MAX]);

/* The number that base:allocation has on a connection. */
#define NBD_CONTEXT_ID 1

enum nbd_extent_flag {
	NBD_HOLE = 1 << 0,
	NBD_ZERO = 1 << 1,
};
#define NBD_EXTENT_SIZE 8
/* nbd_extent_put encodes one descriptor: length in bytes, nbd_extent_flag. */
void nbd_extent_put(uint8_t out[NBD_EXTENT_SIZE], uint32_t length,
		    uint32_t flags);

/* ---- numbers of the wire: big-endian; the caller checks lengths ---- */

/* nbd_get16 reads the two bytes at p. */
uint16_t nbd_get16(const uint8_t *p);
/* nbd_get32 reads the four bytes at p. */
uint32_t nbd_get32(const uint8_t *p);
/* nbd_get64 reads the eight bytes at p. */
uint64_t nbd_get64(const uint8_t *p);
/* nbd_put16 writes v to the two bytes at p. */
void nbd_put16(uint8_t *p, uint16_t v);
/* nbd_put32 writes v to the four bytes at p. */
void nbd_put32(uint8_t *p, uint32_t v);
/* nbd_put64 writes v to the eight bytes at p. */
void nbd_put64(uint8_t *p, uint64_t v);

#endif
