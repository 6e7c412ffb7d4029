/* SPDX-License-Identifier: BSD-2-Clause */
/* block.c: the blocking queries of a unit (SPC-4, SBC-3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/internal.h"
#include "scsi/cdb.h"

/* Runs a command with data in one piece; fewer bytes than len are an error. */
static int run_io(struct iser_session *s, struct iser_io *io, int lun,
		  enum iser_direction dir, const void *buf, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	io->lun = lun;
	io->cdb_len = (uint8_t)scsi_cdb_len(io->cdb[0]);
	io->direction = dir;
	io->iov = &iov;
	io->niov = 1;
	return iser_run(s, io);
}

static int fail_short(struct iser_session *s, const struct iser_io *io,
		      size_t came, size_t least)
{
	return lib_fail(s->ctx, ISER_E_SHORT,
			"LUN %d of %s: command %02xh: short transfer: "
			"%zu bytes came, at least %zu are needed",
			io->lun, s->url.target, io->cdb[0], came, least);
}

/*
 * Runs a command with an allocation length: fewer bytes than len may come. Returns
 * their number, and the rest of buf is zeros; or an error, also if fewer than
 * `least` bytes came, and all of buf is zeros.
 */
static int run_query(struct iser_session *s, struct iser_io *io, int lun,
		     uint8_t *buf, size_t len, size_t least)
{
	size_t came;
	int err;

	memset(buf, 0, len);
	io->short_ok = true;
	err = run_io(s, io, lun, ISER_READ, buf, len);
	if (err) {
		memset(buf, 0, len);
		return err;
	}
	came = MIN((size_t)io->transferred, len);
	if (came >= least) {
		memset(buf + came, 0, len - came);
		return (int)came;
	}
	memset(buf, 0, len);
	return fail_short(s, io, came, least);
}

int iser_inquiry(struct iser_session *s, int lun, int page, uint8_t *buf,
		 size_t size)
{
	struct iser_io io = { .cdb = { SCSI_INQUIRY } };
	int n;

	size = MIN(size, (size_t)65535);
	if (page >= 0) {
		io.cdb[1] = 1;
		io.cdb[2] = (uint8_t)page;
	}
	put_be16(io.cdb + 3, (uint16_t)size);
	/* the first byte, the type, is the least answer */
	n = run_query(s, &io, lun, buf, size, MIN(size, (size_t)1));
	/* a unit may be added to a LUN that has none: do not keep that answer */
	if (n > 0 && page < 0 && !(buf[0] & 0xe0))
		lib_type_note(s, lun, buf[0]);
	return n;
}

int iser_test_unit_ready(struct iser_session *s, int lun)
{
	struct iser_io io = { 0 };

	iser_prep_test_unit_ready(&io, lun);
	return iser_run(s, &io);
}

/* ---- capacity ---- */

/* SPC-4 table 144 */
#define TYPE_DISK	0x00
#define TYPE_WRITE_ONCE 0x04
#define TYPE_CD		0x05
#define TYPE_OPTICAL	0x07
#define TYPE_RBC	0x0e
#define TYPE_ZONED	0x14
#define TYPE_UNKNOWN	0x1f

const char *iser_device_type(uint8_t type)
{
	static const char *const names[] = {
		[TYPE_DISK] = "disk",
		[0x01] = "tape drive",
		[0x02] = "printer",
		[0x03] = "processor",
		[TYPE_WRITE_ONCE] = "write-once device",
		[TYPE_CD] = "CD/DVD drive",
		[0x06] = "scanner",
		[TYPE_OPTICAL] = "optical memory device",
		[0x08] = "medium changer",
		[0x09] = "communications device",
		[0x0c] = "storage array controller",
		[0x0d] = "enclosure",
		[TYPE_RBC] = "simplified disk",
		[0x0f] = "optical card reader",
		[0x11] = "object storage device",
		[0x12] = "automation/drive interface",
		[TYPE_ZONED] = "zoned disk",
		[0x1e] = "well known logical unit",
		[TYPE_UNKNOWN] = "unknown device",
	};

	type &= 0x1f;
	if (type >= ARRAY_LEN(names) || !names[type])
		return "device of a reserved type";
	return names[type];
}

bool lib_has_capacity(uint8_t type)
{
	switch (type) {
	case TYPE_DISK:
	case TYPE_WRITE_ONCE:
	case TYPE_CD:
	case TYPE_OPTICAL:
	case TYPE_RBC:
	case TYPE_ZONED:
	case TYPE_UNKNOWN: /* no unit: the target reports a better error */
		return true;
	default:
		return false;
	}
}

int lib_fail_no_capacity(struct iser_session *s, int lun, uint8_t type)
{
	return lib_fail(s->ctx, ISER_E_UNSUPPORTED,
			"LUN %d of %s is a %s: it has no capacity", lun,
			s->url.target, iser_device_type(type));
}

/* Offsets of a unit become file offsets of type off_t, so 2^63 bytes are too
 * many. */
int lib_fail_capacity(struct iser_session *s, int lun, uint64_t last,
		      uint32_t block_size)
{
	const int err = ISER_E_PROTOCOL;

	if (block_size < 512 || block_size > 65536 ||
	    (block_size & (block_size - 1)))
		return lib_fail(s->ctx, err,
				"LUN %d of %s: the target reports blocks of %u "
				"bytes; expected a power of two from 512 to "
				"65536",
				lun, s->url.target, block_size);
	if (last == UINT32_MAX)
		return lib_fail(s->ctx, err,
				"LUN %d of %s: the target reports FFFFFFFFh as "
				"its last block, more than READ CAPACITY(10) "
				"can express, and does not support READ "
				"CAPACITY(16)",
				lun, s->url.target);
	return lib_fail(s->ctx, err,
			"LUN %d of %s: the target reports %llu as its "
			"last block, of %u bytes each: a capacity of "
			"2^63 bytes or more is not possible",
			lun, s->url.target, (unsigned long long)last,
			block_size);
}

static int set_capacity(struct iser_session *s, int lun, uint64_t last,
			uint32_t block_size, struct iser_capacity *c)
{
	return lib_set_capacity(last, block_size, c)
		       ? lib_fail_capacity(s, lun, last, block_size)
		       : 0;
}

/* READ CAPACITY(16), SBC-3 §5.16. *refused: the unit may not support it. */
static int capacity_16(struct iser_session *s, int lun, struct iser_capacity *c,
		       bool *refused)
{
	struct iser_io io = { .cdb = { SCSI_SERVICE_ACTION_IN_16,
				       SCSI_SAI_READ_CAPACITY_16 } };
	uint8_t b[32];
	int n, err;

	put_be32(io.cdb + 10, sizeof(b));
	n = run_query(s, &io, lun, b, sizeof(b), 12);
	*refused = n < 0 && lib_sense_key(&io) == SENSE_ILLEGAL_REQUEST;
	err = n < 0 ? n : set_capacity(s, lun, get_be64(b), get_be32(b + 8), c);
	if (err)
		return err;
	c->physical_block_size = c->block_size << (b[13] & 0x0f);
	c->thin = b[14] & 0x80;
	c->reads_zeros = b[14] & 0x40;
	return 0;
}

/* READ CAPACITY(10), SBC-3 §5.15, MMC-6 §6.24. *more: the unit has more blocks
 * than the answer can express. */
static int capacity_10(struct iser_session *s, int lun, struct iser_capacity *c,
		       bool *more)
{
	struct iser_io io = { .cdb = { SCSI_READ_CAPACITY_10 } };
	uint8_t b[8] = { 0 };
	int err = run_io(s, &io, lun, ISER_READ, b, sizeof(b));

	*more = !err && get_be32(b) == UINT32_MAX;
	if (err || *more)
		return err;
	return set_capacity(s, lun, get_be32(b), get_be32(b + 4), c);
}

/* READ CAPACITY(10) cannot express the number of blocks (SBC-3 §5.15.2), and READ
 * CAPACITY(16) failed: to assume 2^32 blocks would lose data. */
static int capacity_unknown(struct iser_session *s, int lun)
{
	char why[256];

	snprintf(why, sizeof(why), "%s", iser_message(s->ctx));
	return lib_fail(s->ctx, ISER_E_PROTOCOL,
			"LUN %d of %s: the target reports FFFFFFFFh as its "
			"last block, more than READ CAPACITY(10) can express, "
			"and READ CAPACITY(16) failed: %s",
			lun, s->url.target, why);
}

/* SPC-2 targets and MMC devices support READ CAPACITY(10) only. Some MMC devices
 * fail after a command that they do not support, so they get that one first. */
static int query_capacity(struct iser_session *s, int lun, uint8_t type,
			  struct iser_capacity *c)
{
	bool refused = false, more = false;
	int err;

	if (type == TYPE_CD || type == TYPE_RBC) {
		err = capacity_10(s, lun, c, &more);
		if (!more)
			return err;
		err = capacity_16(s, lun, c, &refused);
		return refused ? capacity_unknown(s, lun) : err;
	}
	err = capacity_16(s, lun, c, &refused);
	if (refused)
		err = capacity_10(s, lun, c, &more);
	return more ? capacity_unknown(s, lun) : err;
}

/* Byte 0 of the INQUIRY data of a unit, from this session if known; or an
 * error. */
static int type_of(struct iser_session *s, int lun)
{
	uint8_t inq[36];
	int type = lib_type_known(s, lun), err;

	if (type >= 0)
		return type;
	err = iser_inquiry(s, lun, -1, inq, sizeof(inq));
	return err < 0 ? err : inq[0];
}

int iser_read_capacity(struct iser_session *s, int lun, struct iser_capacity *c)
{
	int type = type_of(s, lun), err;

	memset(c, 0, sizeof(*c));
	if (type < 0)
		return type;
	/* with a peripheral qualifier other than 0 the type has no meaning */
	if (!(type & 0xe0) && !lib_has_capacity((uint8_t)type))
		return lib_fail_no_capacity(s, lun, (uint8_t)type);
	err = query_capacity(s, lun, (uint8_t)type, c);
	if (!err)
		lib_guard_note(s, lun, c);
	return err;
}

int iser_report_luns(struct iser_session *s, int *luns, int max)
{
	struct iovec iov = { .iov_len = 8 + 8 * (size_t)LIB_LUNS };
	struct iser_io io = { 0 };
	struct iser_parameters p;
	int err;

	iov.iov_base = malloc(iov.iov_len);
	if (!iov.iov_base)
		return lib_fail(s->ctx, ISER_E_NOMEM,
				"REPORT LUNS: out of memory");
	iser_prep_report_luns(&io, &p);
	put_be32(io.cdb + 6, (uint32_t)iov.iov_len);
	io.iov = &iov;
	err = iser_run(s, &io);
	if (!err && io.transferred < 8)
		err = fail_short(s, &io, io.transferred, 8);
	if (!err) {
		err = iser_parse_luns(&io, luns, max);
		lib_wire_note(s, iov.iov_base, io.transferred);
	}
	free(iov.iov_base);
	return err;
}
