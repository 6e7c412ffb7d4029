/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp.h: software iWARP: a queue pair (rcap/rcap.h) on a byte stream
 * (base/stream.h), by MPA (RFC 5044, RFC 6581), DDP (RFC 5041) and RDMAP
 * (RFC 5040). Needs no RDMA device; talks to RNICs and to Linux' siw.
 */
#ifndef RCAP_IWARP_IWARP_H
#define RCAP_IWARP_IWARP_H

#include "base/stream.h"
#include "rcap/iwarp/mpa.h"
#include "rcap/rcap.h"

struct iwarp;

struct iwarp_config {
	bool active; /* sends the MPA Request */
	struct mpa_wish wish;
	/* Active: revision 1, or 2 with RFC 6581's block. */
	uint8_t revision;
	/* Active: ask for the peer-to-peer model with one of wish.rtr, as
	 * hardware wants it (RFC 6581 §9.2). */
	bool peer_to_peer;
	/* Active: what goes with the request; copied. */
	const uint8_t *private_data;
	size_t private_len;
	/* Octets of an FPDU at most, its markers and CRC counted: the path's
	 * EMSS (RFC 5044 §4.5); 0: as long as the format can say. */
	size_t emss;
	/* RFC 7306: Immediate Data and atomic operations. MPA can't negotiate
	 * them: both users have to know. */
	bool extended;
	size_t lookahead; /* bytes of the receive buffer, at least 1024 */
	uint32_t max_regions;
	uint32_t seed;	       /* makes STag keys hard to guess */
	xtime startup_timeout; /* for each frame of the peer's, and its first
				* FPDU */
};

/* iwarp_config_default: revision 2, CRC wanted, no markers, 64 KiB look-ahead,
 * IRD and ORD 32, 4096 regions, 10 s. */
void iwarp_config_default(struct iwarp_config *cfg, bool active);

/*
 * iwarp_new: a queue pair that has to be started by its driver through
 * iwarp_stream_ops. `first` are octets of the stream that someone else has
 * read already (RFC 5044 §7.1.2: start-up on a stream that was in use);
 * copied. NULL: out of memory, or first does not fit in the look-ahead.
 */
struct iwarp *iwarp_new(const struct iwarp_config *cfg,
			struct stream_host *host, const void *first,
			size_t first_len, xtime now);
/* iwarp_free: after rcap_user.closed only, or before the driver began. */
void iwarp_free(struct iwarp *c);

struct rcap_qp *iwarp_qp(struct iwarp *c);

struct iwarp_stats {
	uint64_t rx_bytes, tx_bytes; /* all that the transport moved */
	uint64_t rx_fpdus, tx_fpdus;
	uint64_t rx_payload, tx_payload;
	uint64_t copied; /* payload bytes that went through a buffer */
	uint64_t crc_errors;
};
const struct iwarp_stats *iwarp_stats(const struct iwarp *c);
/* What was agreed; valid from ESTABLISHED on. */
const struct mpa_terms *iwarp_terms(const struct iwarp *c);

/* The driver's side; core is the struct iwarp. */
extern const struct stream_ops iwarp_stream_ops;

#endif
