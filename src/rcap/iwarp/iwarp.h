/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp.h: software iWARP: a queue pair (rcap/rcap.h) on a byte stream
 * (base/stream.h), by MPA (RFC 5044, RFC 6581), DDP (RFC 5041) and RDMAP (RFC
 * 5040). It needs no RDMA device, and interoperates with RNICs and with siw of
 * Linux.
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
	/* Active: request the peer-to-peer model with one of wish.rtr (RFC 6581
	 * §9.2), which RNICs require. */
	bool peer_to_peer;
	/* Active: private data of the request; copied. */
	const uint8_t *private_data;
	size_t private_len;
	/* Most octets of an FPDU, including markers and CRC: the EMSS of the
	 * path (RFC 5044 §4.5). 0: as many as the format permits. */
	size_t emss;
	/* RFC 7306: Immediate Data and atomic operations. MPA cannot negotiate
	 * them: both ends must be configured alike. */
	bool extended;
	size_t lookahead; /* bytes of the receive buffer, at least 1024 */
	uint32_t max_regions;
	uint32_t seed; /* seed of STag keys; random */
	/* for each MPA frame of the peer, and for its first FPDU */
	xtime startup_timeout;
};

/* iwarp_config_default: revision 2, CRC requested, no markers, 64 KiB
 * look-ahead, IRD and ORD 32, 4096 regions, 10 s. */
void iwarp_config_default(struct iwarp_config *cfg, bool active);

/*
 * iwarp_new makes a queue pair; its driver starts it through iwarp_stream_ops.
 * `first`: octets that the caller has already read from the stream (RFC 5044
 * §7.1.2: start-up on a stream that was in use); copied. NULL: out of memory,
 * or first does not fit in the look-ahead.
 */
struct iwarp *iwarp_new(const struct iwarp_config *cfg,
			struct stream_host *host, const void *first,
			size_t first_len, xtime now);
/* iwarp_free: only after rcap_user.closed, or before the driver started. NULL
 * has no effect. */
void iwarp_free(struct iwarp *c);

/* iwarp_qp: the queue pair of c; valid until iwarp_free. */
struct rcap_qp *iwarp_qp(struct iwarp *c);

struct iwarp_stats {
	uint64_t rx_bytes, tx_bytes; /* octets that the transport moved */
	uint64_t rx_fpdus, tx_fpdus;
	uint64_t rx_payload, tx_payload;
	uint64_t copied; /* payload bytes that went through a buffer */
	uint64_t crc_errors;
};
const struct iwarp_stats *iwarp_stats(const struct iwarp *c);
/* iwarp_terms: the negotiated terms; valid from ESTABLISHED on. */
const struct mpa_terms *iwarp_terms(const struct iwarp *c);

/* The calls of the driver; core is the struct iwarp. */
extern const struct stream_ops iwarp_stream_ops;

#endif
