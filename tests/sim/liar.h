/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * liar.h: a target of iSCSI over TCP on the virtual wire that answers commands
 * with random values: any status, flags and residual, any amount of data in any
 * order, wrong sequence numbers, repeated or missing answers. The target records
 * the sent and received data of each command, for an oracle.
 */
#ifndef TESTS_SIM_LIAR_H
#define TESTS_SIM_LIAR_H

#include "iscsi/bhs.h"
#include "sim/wire.h"

#define LIAR_MOST  (160u << 10) /* bytes of one command */
#define LIAR_TASKS 64

/* The state of a byte of the read data. */
enum liar_byte {
	LIAR_NONE,
	LIAR_READY, /* parameter data that are not sent yet */
	LIAR_SENT,
};

/* One command, from its header until the next one with its slot. */
struct liar_task {
	bool used;
	struct iscsi_pdu cmd;
	uint8_t *sent;	   /* the byte that was sent for each offset */
	uint8_t *has_sent; /* enum liar_byte */
	uint8_t *taken;	   /* Data-Out, likewise */
	uint8_t *has_taken;
	uint32_t datasn, r2tsn, asked; /* the correct counts */
	bool honest, answered;
};

struct liar {
	struct wire *wire;
	uint32_t seed;
	unsigned honesty; /* percentage of correctly answered commands */
	/* Makes parameter data: fills p (at most n bytes), returns the length;
	 * 0: the command has no parameter data. */
	size_t (*parameters)(struct liar *l, const struct iscsi_pdu *cmd,
			     uint8_t *p, size_t n);
	struct liar_task tasks[LIAR_TASKS];
	uint32_t statsn, expcmdsn;
	bool full_feature, closed;
	uint8_t in[ISCSI_BHS_LEN + (256u << 10)];
	size_t in_len;
	uint8_t *out;
	size_t out_len, out_room;
	unsigned lies;
};

void liar_init(struct liar *l, struct wire *wire, uint32_t seed);
void liar_fini(struct liar *l);
/* liar_find returns the command with this tag. */
const struct liar_task *liar_find(const struct liar *l, uint32_t itt);
uint32_t liar_roll(struct liar *l, uint32_t n);

#endif
