/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pdu_checker.h: checks the bytes of an iSCSI connection in both directions,
 * and fails the test if a PDU breaks a rule of RFC 7143. It shares only the
 * header codec with the checked code.
 */
#ifndef TESTS_SIM_PDU_CHECKER_H
#define TESTS_SIM_PDU_CHECKER_H

#include "iscsi/bhs.h"
#include "iscsi/params.h"

#define CHECKER_TASKS 128
#define CHECKER_R2TS  8
#define CHECKER_PDUS  65536

struct checker_r2t {
	bool open;
	uint32_t ttt, off, end, datasn;
};

struct checker_task {
	bool known, is_write, unsolicited_over;
	uint32_t asked; /* the end of the last R2T */
	uint32_t itt, edtl, unsolicited, datasn_out;
	/* one count for Data-In and R2T: §11.8.2 is R2TSN, §11.7.5 DataSN */
	uint32_t next_sn;
	uint32_t in_offset, in_sequence;
	struct checker_r2t r2t[CHECKER_R2TS];
};

struct checker_way {
	uint8_t *bytes; /* the bytes of an incomplete PDU */
	size_t len, room;
	bool digests;
	uint64_t at; /* checked bytes */
	uint64_t boundary[CHECKER_PDUS];
	unsigned npdus;
};

struct pdu_checker {
	struct iscsi_params params; /* max_recv_dsl: of both ends */
	struct checker_way way[2];  /* 0: from the initiator */
	struct checker_task task[CHECKER_TASKS];
	bool statsn_known;
	uint32_t statsn; /* the next */
	unsigned r2ts, data_ins, data_outs, immediates;
};

void checker_init(struct pdu_checker *j, const struct iscsi_params *params);
void checker_fini(struct pdu_checker *j);
/* checker_bytes has the type of wire_config.tap. */
void checker_bytes(void *checker, unsigned from, const uint8_t *p, size_t n);

#endif
