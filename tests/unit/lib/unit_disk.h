/* SPDX-License-Identifier: BSD-2-Clause */
/* unit_disk.h: a disk in memory that takes the place of iser_submit (--wrap): commands
 * end in a random order, and some are refused. */
#ifndef TESTS_UNIT_LIB_UNIT_DISK_H
#define TESTS_UNIT_LIB_UNIT_DISK_H

#include <string.h>

#include "cmocka_all.h"
#include "lib/unit/jobs.h"
#include "scsi/cdb.h"
#include "scsi/sense.h"

#define BLOCK  512u
#define BLOCKS 64u
#define SIZE   (BLOCK * BLOCKS)
#define IOS    512

/* The disk and what it supports. */
static struct {
	uint8_t data[SIZE];
	bool mapped[BLOCKS];
	uint8_t type, compare, mode;
	bool same, unmap, status, has_limits, no_16;
	uint32_t transfer, last, block;	    /* 0: BLOCKS - 1, BLOCK */
	uint64_t naa;			    /* 0: no designator */
	const struct iser_session *session; /* where the disk is */
	int lun;
	/* commands in progress */
	struct iser_io *io[IOS];
	unsigned nios;
	struct io_defer pump;
	/* counts */
	unsigned count[256], unmaps;
	/* called before each command is executed */
	void (*before)(const struct iser_io *io);
	uint8_t fail_opcode; /* with MEDIUM ERROR, or with this error */
	int fail_err;
	unsigned lose; /* so many commands of fail_opcode are lost */
} disk;

static struct iser_context *ctx;
static struct iser_session session;
static unsigned seed = 1;

static unsigned rnd(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

/* ---- the disk ---- */

static int end_with(struct iser_io *io, uint8_t key, uint16_t asc,
		    uint64_t info)
{
	const struct scsi_sense s = { .key = key,
				      .asc = asc,
				      .has_info = key == SENSE_MISCOMPARE,
				      .info = info };

	io->status = 0x02;
	io->sense_len = (uint16_t)scsi_sense_build(&s, true, io->sense);
	return ISER_E_SCSI;
}

static int refuse(struct iser_io *io)
{
	return end_with(io, SENSE_ILLEGAL_REQUEST, ASC_INVALID_OPCODE, 0);
}

static int answer(struct iser_io *io, const uint8_t *b, size_t len)
{
	struct bufv v = bufv_of(io->iov, io->niov);

	io->transferred = (uint32_t)bufv_copy_in(&v, 0, b, MIN(len, v.len));
	return 0;
}

static int inquire(struct iser_io *io)
{
	uint8_t b[64] = { disk.type };

	if (!io->cdb[1]) {
		memcpy(b + 8, "ACME    disk \x01          1.0 ", 28);
		return answer(io, b, 36);
	}
	b[1] = io->cdb[2];
	if (b[1] == 0x83 && disk.naa) {
		b[3] = 12;
		b[4] = 1; /* binary */
		b[5] = 3; /* NAA */
		b[7] = 8;
		put_be64(b + 8, disk.naa);
		return answer(io, b, 16);
	}
	if (b[1] == 0xb0) {
		if (!disk.has_limits)
			return end_with(io, SENSE_ILLEGAL_REQUEST,
					ASC_INVALID_FIELD_IN_CDB, 0);
		b[5] = disk.compare;
		put_be32(b + 8, disk.transfer);
		put_be32(b + 20, disk.unmap ? 3 : 0);
		put_be32(b + 24, disk.unmap ? 1 : 0);
		put_be64(b + 36, 5);
		return answer(io, b, 64);
	}
	b[5] = (uint8_t)(disk.unmap << 7 | disk.same << 6);
	return answer(io, b, 8);
}

static int report_capacity(struct iser_io *io)
{
	uint32_t last = disk.last ? disk.last : BLOCKS - 1;
	uint32_t block = disk.block ? disk.block : BLOCK;
	uint8_t b[32] = { 0 };

	if (io->cdb[0] == SCSI_READ_CAPACITY_10) {
		put_be32(b, last);
		put_be32(b + 4, block);
		return answer(io, b, 8);
	}
	put_be64(b, last);
	put_be32(b + 8, block);
	b[13] = 3;
	b[14] = disk.status ? 0xc0 : 0;
	return disk.no_16 ? refuse(io) : answer(io, b, 32);
}

static void set_mapped(uint64_t lba, uint64_t n, bool on)
{
	assert_true(range_ok(lba, n, BLOCKS));
	memset(disk.mapped + lba, on, n);
	if (!on)
		memset(disk.data + lba * BLOCK, 0, n * BLOCK);
}

static int read_write(struct iser_io *io, bool write)
{
	uint64_t lba = scsi_cdb_lba(io->cdb), n = scsi_cdb_blocks(io->cdb);
	struct bufv v = bufv_of(io->iov, io->niov);

	assert_true(range_ok(lba, n, BLOCKS));
	assert_int_equal(v.len, n * BLOCK);
	assert_true(!disk.transfer || n <= disk.transfer);
	if (write) {
		set_mapped(lba, n, true);
		bufv_copy_out(&v, 0, disk.data + lba * BLOCK, v.len);
	} else {
		bufv_copy_in(&v, 0, disk.data + lba * BLOCK, v.len);
	}
	io->transferred = (uint32_t)v.len;
	return 0;
}

static int compare_and_write(struct iser_io *io)
{
	uint64_t lba = get_be64(io->cdb + 2);
	size_t len = io->cdb[13] * (size_t)BLOCK;
	struct bufv v = bufv_of(io->iov, io->niov);
	uint8_t want[8 * BLOCK];

	if (!disk.compare)
		return refuse(io);
	assert_true(len <= sizeof(want) && io->cdb[13] <= disk.compare);
	assert_int_equal(v.len, 2 * len);
	bufv_copy_out(&v, 0, want, len);
	for (size_t i = 0; i < len; i++)
		if (want[i] != disk.data[lba * BLOCK + i])
			return end_with(io, SENSE_MISCOMPARE,
					ASC_MISCOMPARE_DURING_VERIFY, i);
	set_mapped(lba, io->cdb[13], true);
	bufv_copy_out(&v, len, disk.data + lba * BLOCK, len);
	return 0;
}

static int write_same(struct iser_io *io)
{
	uint64_t lba = get_be64(io->cdb + 2);
	uint32_t n = get_be32(io->cdb + 10);

	if (!disk.same)
		return refuse(io);
	assert_true(n <= 5);
	assert_int_equal(io->iov->iov_len, BLOCK);
	disk.unmaps += io->cdb[1] == 0x08;
	set_mapped(lba, n, false);
	set_mapped(lba, n, io->cdb[1] != 0x08);
	for (uint32_t i = 0; i < n; i++)
		memcpy(disk.data + (lba + i) * BLOCK, io->iov->iov_base, BLOCK);
	return 0;
}

static int unmap(struct iser_io *io)
{
	const uint8_t *b = io->iov->iov_base;

	assert_true(disk.unmap);
	assert_int_equal(get_be16(b + 2), 16);
	assert_true(get_be32(b + 16) <= 3);
	set_mapped(get_be64(b + 8), get_be32(b + 16), false);
	return 0;
}

/* At most two descriptors come: the caller asks for the rest. */
static int report_status(struct iser_io *io)
{
	uint64_t lba = get_be64(io->cdb + 2);
	uint8_t b[8 + 2 * 16] = { 0 };
	unsigned n = 0;

	if (!disk.same)
		return refuse(io);
	for (; n < 2 && lba < BLOCKS; n++) {
		uint64_t end = lba;

		while (end < BLOCKS && disk.mapped[end] == disk.mapped[lba])
			end++;
		put_be64(b + 8 + 16 * n, lba);
		put_be32(b + 16 + 16 * n, (uint32_t)(end - lba));
		b[20 + 16 * n] = !disk.mapped[lba];
		lba = end;
	}
	put_be32(b, 4 + 16 * n);
	return answer(io, b, 8 + 16 * n);
}

static int execute(struct iser_io *io)
{
	uint8_t mode[8] = { 7, 0, disk.mode, 0 };
	uint8_t luns[16] = { [3] = 8, [9] = 3 };

	if (io->cdb[0] == disk.fail_opcode && disk.lose) {
		disk.lose--;
		return ISER_E_CLOSED;
	}
	if (io->cdb[0] == disk.fail_opcode)
		return end_with(io, SENSE_MEDIUM_ERROR,
				ASC_UNRECOVERED_READ_ERROR, 0);
	switch (io->cdb[0]) {
	case SCSI_INQUIRY:
		return inquire(io);
	case SCSI_REPORT_LUNS: /* LUN 3 in the usual form */
		return answer(io, luns, sizeof(luns));
	case SCSI_READ_CAPACITY_10:
		return report_capacity(io);
	case SCSI_SERVICE_ACTION_IN_16:
		return io->cdb[1] == SCSI_SAI_GET_LBA_STATUS
			       ? report_status(io)
			       : report_capacity(io);
	case SCSI_MODE_SENSE_6:
		return answer(io, mode, sizeof(mode));
	case SCSI_GET_CONFIGURATION:
		return refuse(io);
	case SCSI_READ_10:
		return read_write(io, false);
	case SCSI_WRITE_10:
		return read_write(io, true);
	case SCSI_COMPARE_AND_WRITE:
		return compare_and_write(io);
	case SCSI_WRITE_SAME_16:
		return write_same(io);
	case SCSI_UNMAP:
		return unmap(io);
	case SCSI_SYNCHRONIZE_CACHE_10:
		return 0;
	default:
		fail_msg("opcode %02x", io->cdb[0]);
		return 0;
	}
}

/* Executes one command in each turn of the loop. */
static void pump(struct io_defer *d)
{
	unsigned i = rnd(disk.nios);
	struct iser_io *io = disk.io[i];

	disk.io[i] = disk.io[--disk.nios];
	if (disk.before)
		disk.before(io);
	disk.count[io->cdb[0]]++;
	io->err = execute(io);
	if (io->err && disk.fail_err) {
		io->err = disk.fail_err;
		io->cause = ERR_OVERFLOW;
		io->transferred = 100;
		io->resid = 412;
	}
	io->done(io);
	if (disk.nios)
		io_loop_defer(ctx->loop, d);
}

void __wrap_iser_submit(struct iser_session *s, struct iser_io *io);
void __wrap_iser_submit(struct iser_session *s, struct iser_io *io)
{
	assert_ptr_equal(s, disk.session);
	assert_true(disk.nios < IOS);
	assert_int_equal(io->lun,
			 io->cdb[0] == SCSI_REPORT_LUNS ? 0 : disk.lun);
	io->err = 0;
	io->status = 0;
	io->sense_len = 0;
	io->transferred = 0;
	disk.io[disk.nios++] = io;
	io_loop_defer(ctx->loop, &disk.pump);
}

/* ---- fixture ---- */

static struct iser_unit *open_unit(void)
{
	int err = 1;
	struct iser_unit *u = iser_unit_open(&session, 3, &err);

	assert_int_equal(err, 0);
	assert_non_null(u);
	return u;
}

static int new_disk(void **state)
{
	(void)state;
	memset(&disk, 0, sizeof(disk));
	disk.compare = 2;
	disk.same = disk.unmap = disk.status = disk.has_limits = true;
	disk.transfer = 4;
	disk.mode = 0x10;
	disk.pump.run = pump;
	list_init(&disk.pump.link);
	for (unsigned i = 0; i < SIZE; i++)
		disk.data[i] = (uint8_t)rnd(256);
	memset(disk.mapped, true, sizeof(disk.mapped));
	ctx = iser_context_new("iqn.2026-01.org.example:i");
	assert_non_null(ctx);
	memset(&session, 0, sizeof(session));
	session.ctx = ctx;
	strcpy(session.url.target, "iqn.t");
	disk.session = &session;
	disk.lun = 3;
	return 0;
}

static int free_disk(void **state)
{
	(void)state;
	assert_int_equal(disk.nios, 0);
	lib_guard_fini(&session);
	iser_context_free(ctx);
	return 0;
}

#endif
