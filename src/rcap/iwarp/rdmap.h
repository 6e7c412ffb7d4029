/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmap.h: the headers of DDP (RFC 5041 §4) and RDMAP (RFC 5040 §4, RFC 7306
 * §4) as one host-order struct, and the Terminate Message. Codec only.
 */
#ifndef RCAP_IWARP_RDMAP_H
#define RCAP_IWARP_RDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 5040 §4.2 */
enum rdmap_opcode {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	/* RFC 7306 §4.1, if both ends are configured for it */
	RDMAP_IMMEDIATE = 8,
	RDMAP_IMMEDIATE_SE = 9,
	RDMAP_ATOMIC_REQUEST = 10,
	RDMAP_ATOMIC_RESPONSE = 11,
};

/* RFC 7306 §5.2.1 figure 5 */
enum rdmap_atomic {
	RDMAP_FETCH_ADD = 0,
	RDMAP_CMP_SWAP = 2,
};

/* RFC 5040 §5.1 table: untagged queues */
#define DDP_QN_SEND	 0
#define DDP_QN_READ	 1
#define DDP_QN_TERMINATE 2
#define DDP_QN_ATOMIC	 3 /* RFC 7306: responses */
#define DDP_QN_COUNT	 4

#define DDP_TAGGED_LEN	 14 /* without the MPA length */
#define DDP_UNTAGGED_LEN 18
#define RDMAP_READ_LEN	 28 /* Read Request header after the DDP header */
/* RFC 7306 §§5.2, 6.2 */
#define RDMAP_IMMEDIATE_LEN	  8
#define RDMAP_ATOMIC_REQUEST_LEN  52
#define RDMAP_ATOMIC_RESPONSE_LEN 12
#define DDP_HEADER_MAX		  (DDP_UNTAGGED_LEN + RDMAP_ATOMIC_REQUEST_LEN)

struct rdmap_header {
	bool tagged, last;
	uint8_t opcode; /* enum rdmap_opcode */
	/* tagged */
	uint32_t stag;
	uint64_t to;
	/* untagged; stag: the region that a Send with Invalidate names */
	uint32_t qn, msn, mo;
	/* Read Request, RFC 5040 §4.4 */
	uint32_t sink_stag, read_size, source_stag;
	uint64_t sink_to, source_to;
	/* RFC 7306. Immediate Data: value. Atomic Request: source_stag and
	 * source_to name the memory; operands value, mask, compare,
	 * compare_mask. Atomic Response: value, the old value of the memory. */
	uint8_t atomic; /* enum rdmap_atomic, or an unknown value */
	uint32_t request_id;
	uint64_t value, mask, compare, compare_mask;
};

/* rdmap_header_len: length of the DDP and RDMAP headers of this opcode. */
size_t rdmap_header_len(uint8_t opcode);
/* rdmap_peek_len: length of the headers by their first two octets, at p; the
 * opcode may be invalid. */
size_t rdmap_peek_len(const uint8_t *p);

/*
 * rdmap_decode decodes the header of a ULPDU of n bytes; extended: accept RFC
 * 7306. Returns its length, or a Terminate reason below, negative
 * (-TERM_...).
 */
int rdmap_decode(struct rdmap_header *h, const uint8_t *p, size_t n,
		 bool extended);

/* rdmap_encode encodes the header; p has room for DDP_HEADER_MAX bytes. Returns
 * its length. */
size_t rdmap_encode(const struct rdmap_header *h, uint8_t *p);

/*
 * Terminate reasons: Layer << 12 | Error Type << 8 | Error Code, as the first
 * 16 bits of the Terminate Control Field have them (RFC 5040 §4.8, RFC 5041
 * §7.2, RFC 5044 §8, RFC 6581 §8).
 */
enum rdmap_term {
	/* every code is permitted (figure 9), but 0 would be no error */
	TERM_LOCAL_CATASTROPHIC = 0x00ff,
	TERM_RDMAP_INVALID_STAG = 0x0100,
	TERM_RDMAP_BOUNDS = 0x0101,
	TERM_RDMAP_ACCESS = 0x0102,
	TERM_RDMAP_STREAM = 0x0103,
	TERM_RDMAP_TO_WRAP = 0x0104,
	TERM_RDMAP_CANT_INVALIDATE = 0x0109,
	TERM_RDMAP_PROTECTION_UNSPECIFIED = 0x01ff,
	TERM_RDMAP_VERSION = 0x0205,
	TERM_RDMAP_OPCODE = 0x0206,
	TERM_RDMAP_STREAM_CATASTROPHIC = 0x0207,
	TERM_RDMAP_GLOBAL_CATASTROPHIC = 0x0208,
	TERM_RDMAP_CANT_INVALIDATE_OP = 0x0209,
	TERM_RDMAP_UNSPECIFIED = 0x02ff,
	TERM_DDP_LOCAL_CATASTROPHIC = 0x1000,
	TERM_DDP_TAGGED_INVALID_STAG = 0x1100,
	TERM_DDP_TAGGED_BOUNDS = 0x1101,
	TERM_DDP_TAGGED_STREAM = 0x1102,
	TERM_DDP_TAGGED_TO_WRAP = 0x1103,
	TERM_DDP_TAGGED_VERSION = 0x1104,
	TERM_DDP_UNTAGGED_QN = 0x1201,
	TERM_DDP_UNTAGGED_NO_BUFFER = 0x1202,
	TERM_DDP_UNTAGGED_MSN = 0x1203,
	TERM_DDP_UNTAGGED_MO = 0x1204,
	TERM_DDP_UNTAGGED_TOO_LONG = 0x1205,
	TERM_DDP_UNTAGGED_VERSION = 0x1206,
	TERM_MPA_CLOSED = 0x2001,
	TERM_MPA_CRC = 0x2002,
	TERM_MPA_MARKER = 0x2003,
	TERM_MPA_FRAME = 0x2004,
	TERM_MPA_LOCAL_CATASTROPHIC = 0x2005,
	TERM_MPA_IRD = 0x2006,
	TERM_MPA_RTR = 0x2007,
};

/* rdmap_term_str names a reason; never NULL. */
const char *rdmap_term_str(uint16_t reason);

struct rdmap_terminate {
	uint16_t reason; /* enum rdmap_term */
	/* decode: the reason is known only with layer and type swapped, as siw
	 * of Linux sends them; reason is the swapped value */
	bool swapped;
	bool has_segment_len, has_ddp, has_rdmap; /* M, D, R */
	uint16_t segment_len;
	/* the headers of the segment at fault; borrowed */
	const uint8_t *headers;
	size_t headers_len;
};

/* the RDMAP header is included for Read Requests only (RFC 5040 §4.8) */
#define RDMAP_TERMINATE_HEADERS (DDP_UNTAGGED_LEN + RDMAP_READ_LEN)
#define RDMAP_TERMINATE_MAX	(4 + 2 + RDMAP_TERMINATE_HEADERS)

/* rdmap_terminate_encode encodes the Terminate Header (after the DDP header)
 * and returns its length. p has room for RDMAP_TERMINATE_MAX bytes. */
size_t rdmap_terminate_encode(const struct rdmap_terminate *t, uint8_t *p);
/* rdmap_terminate_decode returns 0 or ERR_TRUNCATED. It clears a bit whose part
 * is missing. */
int rdmap_terminate_decode(struct rdmap_terminate *t, const uint8_t *p,
			   size_t n);

#endif
