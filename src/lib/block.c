/* SPDX-License-Identifier: BSD-2-Clause */
/* block.c: the blocking calls of a block device (SPC-4, SBC-3). */
#include <string.h>

#include "lib/internal.h"
#include "scsi/cdb.h"

#define UNIT_ATTENTION_RETRIES 8
/* What Linux's initiator asks of an iSER target at most. tgt drops the
 * connection of who asks for more, and its Block Limits page is silent. */
#define ISER_TRANSFER_MAX (512u << 10)

#define TARGET_CHANGED 0x3f /* TARGET OPERATING CONDITIONS HAVE CHANGED, ... */

static bool is_unit_attention(const struct iser_io *io)
{
	struct scsi_sense s;

	return io->err == ISER_E_SCSI &&
	       !scsi_sense_parse(&s, io->sense, io->sense_len) &&
	       s.key == SENSE_UNIT_ATTENTION;
}

/* Runs a command whose data are in one piece; a unit attention is news, not
 * a failure, so the command is tried again. */
static int run(struct iser_session *s, struct iser_io *io, int lun,
	       enum iser_direction dir, const void *buf, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	int err = 0;

	io->lun = lun;
	io->cdb_len = (uint8_t)scsi_cdb_len(io->cdb[0]);
	io->direction = dir;
	io->iov = &iov;
	io->niov = dir == ISER_NO_DATA ? 0 : 1;
	for (int i = 0; i < UNIT_ATTENTION_RETRIES; i++) {
		err = iser_run(s, io);
		if (!err || !is_unit_attention(io))
			break;
	}
	return err;
}

/* Bytes of a data-in command that really came. */
static int came(const struct iser_io *io, size_t len)
{
	if (io->overflow)
		return (int)len;
	return (int)(len - MIN((size_t)io->resid, len));
}

int iser_inquiry(struct iser_session *s, int lun, int page, uint8_t *buf,
		 size_t size)
{
	struct iser_io io = { .cdb = { SCSI_INQUIRY } };
	int err;

	size = MIN(size, (size_t)65535);
	memset(buf, 0, size);
	if (page >= 0) {
		io.cdb[1] = 1;
		io.cdb[2] = (uint8_t)page;
	}
	put_be16(io.cdb + 3, (uint16_t)size);
	err = run(s, &io, lun, ISER_READ, buf, size);
	/* "no unit is there" is not the type of one that comes later */
	if (!err && page < 0 && came(&io, size) > 0 && !(buf[0] & 0xe0))
		s->typed = (struct lib_type){ .is_known = true,
					      .type = buf[0],
					      .lun = lun };
	return err ? err : came(&io, size);
}

int iser_test_unit_ready(struct iser_session *s, int lun)
{
	struct iser_io io = { .cdb = { SCSI_TEST_UNIT_READY } };

	return run(s, &io, lun, ISER_NO_DATA, NULL, 0);
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

static bool has_capacity(uint8_t type)
{
	switch (type) {
	case TYPE_DISK:
	case TYPE_WRITE_ONCE:
	case TYPE_CD:
	case TYPE_OPTICAL:
	case TYPE_RBC:
	case TYPE_ZONED:
	case TYPE_UNKNOWN: /* no such unit: its own words are better */
		return true;
	default:
		return false;
	}
}

static bool is_refused(const struct iser_io *io)
{
	struct scsi_sense s;

	return io->err == ISER_E_SCSI &&
	       !scsi_sense_parse(&s, io->sense, io->sense_len) &&
	       s.key == SENSE_ILLEGAL_REQUEST;
}

/* READ CAPACITY(16), SBC-3 §5.16. *refused: it may not know the command. */
static int capacity_16(struct iser_session *s, int lun, struct iser_capacity *c,
		       bool *refused)
{
	struct iser_io io = { .cdb = { SCSI_SERVICE_ACTION_IN_16,
				       SCSI_SAI_READ_CAPACITY_16 } };
	uint8_t b[32] = { 0 };
	int err;

	put_be32(io.cdb + 10, sizeof(b));
	err = run(s, &io, lun, ISER_READ, b, sizeof(b));
	*refused = err && is_refused(&io);
	if (err)
		return err;
	c->blocks = get_be64(b) + 1;
	c->block_size = get_be32(b + 8);
	c->physical_block_size = c->block_size << (b[13] & 0x0f);
	c->thin = b[14] & 0x80;
	c->reads_zeros = b[14] & 0x40;
	return 0;
}

/* READ CAPACITY(10), SBC-3 §5.15, MMC-6 §6.24. *more: it has more blocks than
 * the answer holds. */
static int capacity_10(struct iser_session *s, int lun, struct iser_capacity *c,
		       bool *more)
{
	struct iser_io io = { .cdb = { SCSI_READ_CAPACITY_10 } };
	uint8_t b[8] = { 0 };
	int err = run(s, &io, lun, ISER_READ, b, sizeof(b));

	*more = !err && get_be32(b) == UINT32_MAX;
	if (err)
		return err;
	c->blocks = (uint64_t)get_be32(b) + 1;
	c->block_size = c->physical_block_size = get_be32(b + 4);
	return 0;
}

/* SPC-2 targets and MMC devices know the short command only; of the latter some
 * do not take what they do not know lightly, so they are asked that first. */
static int ask_capacity(struct iser_session *s, int lun, uint8_t type,
			struct iser_capacity *c)
{
	bool again = false, dummy;
	int err;

	if (type == TYPE_CD || type == TYPE_RBC) {
		err = capacity_10(s, lun, c, &again);
		/* what the short answer holds is there, whatever comes now */
		if (again)
			(void)capacity_16(s, lun, c, &dummy);
		return err;
	}
	err = capacity_16(s, lun, c, &again);
	return again ? capacity_10(s, lun, c, &dummy) : err;
}

void lib_type_news(struct iser_session *s, const struct iser_io *io)
{
	struct scsi_sense sense;

	if (s->typed.is_known && is_unit_attention(io) &&
	    !scsi_sense_parse(&sense, io->sense, io->sense_len) &&
	    sense.asc >> 8 == TARGET_CHANGED)
		s->typed.is_known = false;
}

/* Byte 0 of INQUIRY data, as it was told to this session; or less than 0. */
static int type_of(struct iser_session *s, int lun)
{
	uint8_t inq[36];
	int err;

	if (s->typed.is_known && s->typed.lun == lun)
		return s->typed.type;
	err = iser_inquiry(s, lun, -1, inq, sizeof(inq));
	return err < 0 ? err : inq[0];
}

int iser_read_capacity(struct iser_session *s, int lun, struct iser_capacity *c)
{
	int err, type = type_of(s, lun);

	memset(c, 0, sizeof(*c));
	if (type < 0)
		return type;
	/* a peripheral qualifier other than 0: no unit to be typed */
	if (!(type & 0xe0) && !has_capacity((uint8_t)type))
		return lib_fail(s->ctx, ISER_E_UNSUPPORTED,
				"LUN %d of %s is a %s: it has no capacity", lun,
				s->url.target, iser_device_type((uint8_t)type));
	err = ask_capacity(s, lun, (uint8_t)type, c);
	if (err)
		return err;
	if (c->block_size < 512 || c->block_size > 65536 ||
	    (c->block_size & (c->block_size - 1)))
		return lib_fail(s->ctx, ISER_E_PROTOCOL,
				"LUN %d reports blocks of %u bytes", lun,
				c->block_size);
	return 0;
}

int iser_report_luns(struct iser_session *s, int *luns, int max)
{
	struct iser_io io = { .cdb = { SCSI_REPORT_LUNS } };
	uint8_t b[8 + 256 * 8] = { 0 };
	uint32_t n;
	int err;

	put_be32(io.cdb + 6, sizeof(b));
	err = run(s, &io, 0, ISER_READ, b, sizeof(b));
	if (err)
		return err;
	n = MIN(get_be32(b) / 8, 256u);
	for (uint32_t i = 0; i < n && (int)i < max; i++)
		luns[i] = get_be16(b + 8 + 8 * i) & 0x3fff;
	return (int)n;
}

int iser_flush(struct iser_session *s, int lun)
{
	struct iser_io io = { .cdb = { SCSI_SYNCHRONIZE_CACHE_10 } };

	return run(s, &io, lun, ISER_NO_DATA, NULL, 0);
}

void iser_prep_rw(struct iser_io *io, int lun, bool write, uint64_t lba,
		  uint32_t blocks)
{
	io->lun = lun;
	io->direction = write ? ISER_WRITE : ISER_READ;
	io->cdb_len = (uint8_t)scsi_cdb_rw(io->cdb, write, lba, blocks, 0);
}

static int rw(struct iser_session *s, int lun, bool write, uint32_t block_size,
	      uint64_t lba, const void *buf, size_t len)
{
	struct iser_io io = { 0 };

	if (block_size == 0 || len % block_size ||
	    len / block_size > UINT32_MAX)
		return lib_fail(s->ctx, ISER_E_INVALID,
				"%zu bytes are not whole blocks of %u", len,
				block_size);
	iser_prep_rw(&io, lun, write, lba, (uint32_t)(len / block_size));
	return run(s, &io, lun, io.direction, buf, len);
}

int iser_read(struct iser_session *s, int lun, uint32_t block_size,
	      uint64_t lba, void *buf, size_t len)
{
	return rw(s, lun, false, block_size, lba, buf, len);
}

int iser_write(struct iser_session *s, int lun, uint32_t block_size,
	       uint64_t lba, const void *buf, size_t len)
{
	return rw(s, lun, true, block_size, lba, buf, len);
}

uint64_t iser_max_transfer(struct iser_session *s, int lun, uint32_t block_size)
{
	uint8_t b[64];
	int n = iser_inquiry(s, lun, 0xb0, b, sizeof(b));
	uint64_t max = n >= 12 ? (uint64_t)get_be32(b + 8) * block_size : 0;
	struct iser_params p;

	iser_get_params(s, &p);
	if (!strcmp(p.transport, "iser") && (!max || max > ISER_TRANSFER_MAX))
		max = ISER_TRANSFER_MAX;
	return max;
}

static int unmap_one(struct iser_session *s, int lun, uint64_t lba,
		     uint32_t blocks)
{
	struct iser_io io = { .cdb = { SCSI_UNMAP } };
	uint8_t list[24] = { 0 };

	put_be16(list, sizeof(list) - 2);
	put_be16(list + 2, 16);
	put_be64(list + 8, lba);
	put_be32(list + 16, blocks);
	put_be16(io.cdb + 7, sizeof(list));
	return run(s, &io, lun, ISER_WRITE, list, sizeof(list));
}

int iser_unmap(struct iser_session *s, int lun, uint64_t lba, uint64_t blocks)
{
	int err = 0;

	while (blocks > 0 && !err) {
		uint32_t n = (uint32_t)MIN(blocks, (uint64_t)(1u << 31));

		err = unmap_one(s, lun, lba, n);
		lba += n;
		blocks -= n;
	}
	return err;
}

int iser_lba_status(struct iser_session *s, int lun, uint64_t lba,
		    struct iser_extent *extents, int max)
{
	struct iser_io io = { .cdb = { SCSI_SERVICE_ACTION_IN_16,
				       SCSI_SAI_GET_LBA_STATUS } };
	uint8_t b[8 + 64 * 16] = { 0 };
	uint32_t alloc, n;
	int err;

	max = MIN(MAX(max, 0), 64);
	alloc = 8 + (uint32_t)max * 16;
	put_be64(io.cdb + 2, lba);
	put_be32(io.cdb + 10, alloc);
	err = run(s, &io, lun, ISER_READ, b, alloc);
	if (err)
		return err;
	n = MIN((get_be32(b) + 4 - MIN(get_be32(b) + 4, 8u)) / 16,
		(uint32_t)max);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *d = b + 8 + 16 * i;

		extents[i].lba = get_be64(d);
		extents[i].blocks = get_be32(d + 8);
		extents[i].mapped = (d[12] & 0x0f) == 0;
	}
	return (int)n;
}
