/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer.h: one queue pair of software iWARP, and a scripted peer that sends any
 * octets and checks each octet that comes back. No wire, no clock: all events
 * happen within the calls.
 */
#ifndef UNIT_RCAP_PEER_H
#define UNIT_RCAP_PEER_H

#include "base/bytes.h"
#include "base/err.h"
#include "cmocka_all.h"
#include "rcap/iwarp/iwarp.h"
#include "rcap/iwarp/rdmap.h"

#define PEER_REGION 4096 /* octets of each region, and of the guards */
#define PEER_BASE   0x10000
#define PEER_RECVS  4
#define PEER_SENT   (1u << 20)
#define PEER_CANARY 0xc7 /* fills all memory that must not be sent */

struct peer {
	struct stream_host host; /* first */
	struct iwarp *c;
	struct rcap_qp *qp;
	xtime now;
	size_t chunk;	   /* octets per read; 0: as many as fit */
	bool stalled;	   /* the transport takes no octets at present */
	bool corrupt;	   /* the next FPDU has a wrong CRC */
	bool asymmetrical; /* markers only in what the queue pair sends */
	bool keep_recvs;   /* do not post a returned receive again */
	struct mpa_stream in, out; /* octets to the queue pair, and from it */
	/* memory: guard, readable, guard, writable, guard */
	uint8_t *memory;
	struct iovec iov[2];
	struct rcap_mr readable, writable;
	struct rcap_recv recv[PEER_RECVS];
	uint8_t recv_buf[PEER_RECVS][128];
	/* sent by the queue pair; seen: checked by the script */
	uint8_t *sent;
	size_t sent_len, seen;
	/* up-calls */
	unsigned requested, established, received, aborted_recvs;
	unsigned done, aborted; /* work requests */
	int done_err;
	struct rcap_cm cm;
	uint8_t private_data[MPA_PRIVATE_MAX];
	struct rcap_cm answer; /* to connect_request */
	bool hold, refuse;     /* do not answer yet; reject */
	void (*on_received)(struct peer *p, struct rcap_recv *r);
	void (*on_established)(struct peer *p);
	struct rcap_recv last;
	uint8_t last_data[128];
	bool closed;
	int err;
	char why[200];
};

/* peer_new: a queue pair with two regions registered and n receives posted. */
struct peer *peer_new(const struct iwarp_config *cfg, const void *first,
		      size_t first_len, unsigned recvs);
/* peer_free ends the connection if it is still up, and checks the guards. */
void peer_free(struct peer *p);

/* peer_octets passes octets to the queue pair, and takes its output. */
void peer_octets(struct peer *p, const void *octets, size_t n);
void peer_turn(struct peer *p); /* no octets were sent */
void peer_fin(struct peer *p, int err);
void peer_time(struct peer *p, xtime dt);

/* ---- start-up ---- */

/* peer_frame lays out an MPA frame at b: key, 16 bits of flags and revision,
 * private data. Returns its length. */
size_t peer_frame(uint8_t *b, bool reply, uint16_t bits, const void *data,
		  size_t n);
#define MPA_BITS_M 0x8000
#define MPA_BITS_C 0x4000
#define MPA_BITS_R 0x2000
#define MPA_BITS_S 0x1000

/* peer_up: a passive queue pair after a request with these bits (including the
 * revision), its reply and a first FPDU: a zero-length Write. */
struct peer *peer_up(uint16_t bits, unsigned recvs);
/* peer_up_extended: the same with CRC and the operations of RFC 7306. */
struct peer *peer_up_extended(unsigned recvs);
/* peer_up_active: an active one after a reply with these bits. */
struct peer *peer_up_active(uint16_t bits, unsigned recvs);
/* peer_up_path: the same on a path whose segments have emss octets; 0: any. */
struct peer *peer_up_path(uint16_t bits, size_t emss, unsigned recvs);

/* ---- segments ---- */

/* Placeholders for a segment's STags. */
#define S_READABLE 0xaaaa0001u
#define S_WRITABLE 0xaaaa0002u
#define S_WRONGKEY 0xaaaa0003u /* the writable one with another key */

struct seg {
	uint16_t ctrl;
	uint32_t stag;
	uint64_t to;	       /* tagged */
	uint32_t qn, msn, mo;  /* untagged */
	uint32_t sink, source; /* with size: a Read Request header follows */
	uint64_t sink_to, source_to;
	uint32_t size;
	bool read;
	size_t payload;
};

#define C_WRITE	   0xc140
#define C_READ	   0x4141
#define C_RESPONSE 0xc142
#define C_SEND	   0x4143
#define C_SEND_INV 0x4144
#define C_SEND_SE  0x4145
#define C_SEND_SI  0x4146
#define C_TERM	   0x4147
#define C_MORE(c)  ((c) & ~0x4000)

/* peer_lay encodes the ULPDU at b; payload counts up from 1. Returns its
 * length. */
size_t peer_lay(struct peer *p, const struct seg *s, uint8_t *b);
/* peer_segment sends it as an FPDU; peer_ulpdu: any ULPDU. */
void peer_segment(struct peer *p, const struct seg *s);
void peer_ulpdu(struct peer *p, const void *ulpdu, size_t n);
/* peer_fpdu frames a ULPDU at b: returns the length. */
size_t peer_fpdu(struct peer *p, const void *ulpdu, size_t n, uint8_t *b);

/* ---- what comes back ---- */

/* peer_next takes the next FPDU that the queue pair sent: its ULPDU; 0: there
 * is none. Its CRC and markers are checked. */
size_t peer_next(struct peer *p, uint8_t *ulpdu);

/* peer_expect_terminate: the next FPDU is a Terminate of that reason with the
 * headers of `ulpdu`: ddp octets of DDP header, rdmap of RDMAP header (0 and 0:
 * none); then the connection ended with that reason. */
void peer_expect_terminate(struct peer *p, uint16_t reason,
			   const uint8_t *ulpdu, size_t len, size_t ddp,
			   size_t rdmap);
/* peer_expect_closed: the connection ended without another octet, with this
 * error. */
void peer_expect_closed(struct peer *p, int err, const char *why_has);

/* peer_untouched: no octet of the regions changed. */
void peer_untouched(struct peer *p);

#endif
