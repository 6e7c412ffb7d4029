/* SPDX-License-Identifier: BSD-2-Clause */
/* recovery_target.h: the target's end of datamover/tcp at ErrorRecoveryLevel 1, which
 * the test sends commands, SNACKs and Data-Outs. */
#ifndef TESTS_DATAMOVER_RECOVERY_TARGET_H
#define TESTS_DATAMOVER_RECOVERY_TARGET_H

#include "raw_seen.h"

#define BURST 16384u

static uint8_t data[65536];

static inline struct iscsi_params params(void)
{
	struct iscsi_params k = raw_params();

	k.error_recovery_level = 1;
	k.max_burst_length = BURST;
	return k;
}

/* The first StatSN of the full feature phase. */
static uint32_t first;

static inline void begin(const struct iscsi_params *k)
{
	raw_init(&r, ISCSI_TARGET, k);
	raw_login(&r);
	first = r.role.numbers.statsn;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 512);
	memcpy(r.role.disk, data, sizeof(data));
}

static inline void feed(struct iscsi_pdu p, const void *bytes, enum raw_bad bad)
{
	raw_pdu(&r, &p, bytes, bad);
	fetch();
}

/* fake_answer is in byte 1 of the CDB. */
static inline struct iscsi_pdu command(uint32_t itt, bool write, uint32_t edtl,
				       enum fake_answer answer)
{
	struct iscsi_pdu p = { .op = ISCSI_SCSI_COMMAND,
			       .final = true,
			       .immediate = true,
			       .itt = itt,
			       .lun = 5,
			       .expstatsn = first };

	p.cmd.read = !write;
	p.cmd.write = write;
	p.cmd.edtl = edtl;
	p.cmd.cdb[1] = (uint8_t)answer;
	return p;
}

static inline struct iscsi_pdu snack(uint8_t type, uint32_t itt,
				     uint32_t begrun, uint32_t runlen)
{
	struct iscsi_pdu p = { .op = ISCSI_SNACK_REQUEST,
			       .final = true,
			       .itt = itt,
			       .ttt = ISCSI_RESERVED_TAG,
			       .expstatsn = first };

	p.snack.type = type;
	p.snack.begrun = begrun;
	p.snack.runlen = runlen;
	return p;
}

static inline void expect_refused(struct iscsi_pdu p, int err)
{
	unsigned before = r.role.errors;

	feed(p, NULL, RAW_GOOD);
	assert_int_equal(r.role.errors, before + 1);
	assert_int_equal(r.role.last_error, err);
	assert_int_equal(nseen, 0);
	assert_int_equal(raw_fate(&r), 1);
}

/* ---- write data ---- */

static inline struct iscsi_pdu data_out(uint32_t ttt, uint32_t datasn,
					uint32_t off, uint32_t len, bool final)
{
	struct iscsi_pdu p = { .op = ISCSI_DATA_OUT,
			       .final = final,
			       .itt = 20,
			       .ttt = ttt,
			       .lun = ttt == ISCSI_RESERVED_TAG ? 0 : 5,
			       .dsl = len,
			       .expstatsn = first };

	p.data.datasn = datasn;
	p.data.offset = off;
	return p;
}

static inline void write_out(uint32_t ttt, uint32_t datasn, uint32_t off,
			     uint32_t len, bool final, enum raw_bad bad)
{
	feed(data_out(ttt, datasn, off, len, final), data + off, bad);
}

static inline struct iscsi_params write_params(void)
{
	struct iscsi_params k = params();

	k.data_digest = true;
	k.immediate_data = false;
	k.initial_r2t = true;
	return k;
}

static inline void begin_write(const struct iscsi_params *k, uint32_t edtl)
{
	struct iscsi_pdu p = command(20, true, edtl, 0);

	begin(k);
	p.final = k->initial_r2t;
	memset(r.role.disk, 0, FAKE_DISK);
	feed(p, NULL, RAW_GOOD);
}

/* The last PDU is an R2T with these values. */
static inline uint32_t assert_r2t(uint32_t sn, uint32_t off, uint32_t len)
{
	const struct iscsi_pdu *p = &seen[nseen - 1];

	assert_true(nseen > 0);
	assert_int_equal(p->op, ISCSI_R2T);
	assert_int_equal(p->r2t.r2tsn, sn);
	assert_int_equal(p->r2t.offset, off);
	assert_int_equal(p->r2t.ddtl, len);
	return p->ttt;
}

static inline void assert_written(uint32_t len, uint8_t status)
{
	assert_int_equal(seen[nseen - 1].op, ISCSI_SCSI_RESPONSE);
	assert_int_equal(seen[nseen - 1].rsp.status, status);
	if (!status)
		assert_memory_equal(r.role.disk, data, len);
	assert_int_equal(raw_fate(&r), 1);
}

#endif
