/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge.h: reads an iSCSI connection's bytes, both directions, and fails the
 * test where a PDU breaks a rule of RFC 7143. It shares only the header codec
 * with what it judges.
 */
#ifndef TESTS_SIM_JUDGE_H
#define TESTS_SIM_JUDGE_H

#include "iscsi/bhs.h"
#include "iscsi/params.h"

#define JUDGE_TASKS 128
#define JUDGE_R2TS  8
#define JUDGE_PDUS  65536

struct judge_r2t {
	bool open;
	uint32_t ttt, off, end, datasn;
};

struct judge_task {
	bool known, is_write, unsolicited_over;
	uint32_t itt, edtl, unsolicited, datasn_out;
	/* one count for Data-In and R2T: §11.8.2 is R2TSN, §11.7.5 DataSN */
	uint32_t next_sn;
	uint32_t in_offset, in_sequence;
	struct judge_r2t r2t[JUDGE_R2TS];
};

struct judge_way {
	uint8_t *bytes; /* what is not a whole PDU yet */
	size_t len, room;
	bool digests;
	uint64_t at; /* bytes judged */
	uint64_t boundary[JUDGE_PDUS];
	unsigned npdus;
};

struct judge {
	struct iscsi_params params; /* max_recv_dsl: of both ends */
	struct judge_way way[2];    /* 0: from the initiator */
	struct judge_task task[JUDGE_TASKS];
	bool statsn_known;
	uint32_t statsn; /* the next */
	unsigned r2ts, data_ins, data_outs, immediates;
};

void judge_init(struct judge *j, const struct iscsi_params *params);
void judge_fini(struct judge *j);
/* judge_bytes has the shape of wire_config.tap. */
void judge_bytes(void *judge, unsigned from, const uint8_t *p, size_t n);

#endif
