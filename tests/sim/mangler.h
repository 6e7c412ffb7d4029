/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mangler.h: faults of iSCSI PDUs on a virtual wire (wire_config.filter): data
 * segments or headers that are damaged, and PDUs that are lost as a whole, as if the
 * receiver had dropped them for a header digest error and found the next PDU by other
 * means (RFC 7143 §7.8).
 */
#ifndef TESTS_SIM_MANGLER_H
#define TESTS_SIM_MANGLER_H

#include "iscsi/bhs.h"
#include "sim/wire.h"

enum mangle {
	MANGLE_DATA,   /* one bit of the data segment, its padding or digest */
	MANGLE_HEADER, /* one bit of the header or its digest */
	MANGLE_LOSE,   /* the whole PDU */
	MANGLES,
};

/* One direction: where the PDU is to which the next byte belongs. */
struct mangler_way {
	uint8_t head[ISCSI_BHS_LEN];
	size_t at;     /* bytes of the PDU that were seen */
	size_t size;   /* of the whole PDU; 0: the header is not complete */
	size_t victim; /* the byte that is damaged, or SIZE_MAX */
	bool lost;
};

/* What the owner sets: 0 in one_in: never; most: so many faults at most. */
struct mangler_plan {
	uint32_t one_in[MANGLES];
	unsigned most;
};

struct mangler {
	struct mangler_way way[2]; /* 0: from the initiator */
	bool header_digest, data_digest;
	bool full_feature; /* the login has ended: there are digests and faults */
	uint32_t seed;
	struct mangler_plan plan;
	unsigned done[MANGLES];
	unsigned ops[MANGLES][64]; /* of these, by opcode */
};

void mangler_init(struct mangler *m, uint32_t seed, bool header_digest,
		  bool data_digest, const struct mangler_plan *plan);
/* mangler_filter is wire_config.filter for one mangler. */
size_t mangler_filter(struct mangler *m, unsigned from, uint8_t *out,
		      const uint8_t *in, size_t n);
/* mangler_random returns a number below n. */
uint32_t mangler_random(uint32_t *seed, uint32_t n);

#endif
