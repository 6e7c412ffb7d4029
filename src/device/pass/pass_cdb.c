/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass_cdb.c: direction and length of the data of a command, decoded from its
 * CDB. For a CDB without a shape in this file, pass.c uses the direction and
 * length that the initiator expects.
 */
#include <string.h>

#include "device/pass/pass_unit.h"

/* The unit of the length field. */
enum counts {
	NOTHING,    /* the command has no data */
	BYTES,	    /* the parameter list length or the allocation length */
	BLOCKS,	    /* pass_cdb_cut may reduce the number of blocks */
	ALL_BLOCKS, /* the number of blocks stays: WRITE ATOMIC */
	PAIRS,	    /* pairs of blocks: COMPARE AND WRITE */
	ONE_BLOCK,  /* no length field; the data are one block */
	CHECKED,    /* blocks or one block or nothing: BYTCHK of VERIFY */
	FIXED,	    /* no length field; `at` is the number of bytes */
	SECURITY,   /* bytes, or units of 512 bytes: INC_512 */
};

struct shape {
	uint8_t op;
	uint8_t at, width; /* of the length field */
	enum counts counts;
	enum pass_dir dir;
};

/* clang-format off */
static const struct shape of_all[] = { /* SPC-4 */
	{ SCSI_TEST_UNIT_READY, 0, 0, NOTHING, PASS_NONE },
	{ SCSI_REQUEST_SENSE, 4, 1, BYTES, PASS_IN },
	{ SCSI_INQUIRY, 3, 2, BYTES, PASS_IN },
	{ SCSI_MODE_SELECT_6, 4, 1, BYTES, PASS_OUT },
	{ SCSI_MODE_SENSE_6, 4, 1, BYTES, PASS_IN },
	{ 0x1c /* RECEIVE DIAGNOSTIC RESULTS */, 3, 2, BYTES, PASS_IN },
	{ 0x1d /* SEND DIAGNOSTIC */, 3, 2, BYTES, PASS_OUT },
	{ SCSI_WRITE_BUFFER, 6, 3, BYTES, PASS_OUT },
	{ SCSI_READ_BUFFER, 6, 3, BYTES, PASS_IN },
	{ SCSI_LOG_SELECT, 7, 2, BYTES, PASS_OUT },
	{ SCSI_LOG_SENSE, 7, 2, BYTES, PASS_IN },
	{ SCSI_MODE_SELECT_10, 7, 2, BYTES, PASS_OUT },
	{ SCSI_MODE_SENSE_10, 7, 2, BYTES, PASS_IN },
};

static const struct shape not_mmc[] = { /* other commands in MMC-6 */
	{ SCSI_MAINTENANCE_IN, 6, 4, BYTES, PASS_IN },
	{ SCSI_MAINTENANCE_OUT, 6, 4, BYTES, PASS_OUT },
	{ 0xa2 /* SECURITY PROTOCOL IN */, 6, 4, SECURITY, PASS_IN },
	{ 0xb5 /* SECURITY PROTOCOL OUT */, 6, 4, SECURITY, PASS_OUT },
};

static const struct shape of_blocks[] = { /* SBC-3 */
	{ SCSI_READ_6, 4, 1, BLOCKS, PASS_IN },
	{ SCSI_WRITE_6, 4, 1, BLOCKS, PASS_OUT },
	{ SCSI_START_STOP_UNIT, 0, 0, NOTHING, PASS_NONE },
	{ SCSI_PREVENT_ALLOW, 0, 0, NOTHING, PASS_NONE },
	{ SCSI_READ_CAPACITY_10, 8, 0, FIXED, PASS_IN },
	{ SCSI_READ_10, 7, 2, BLOCKS, PASS_IN },
	{ SCSI_WRITE_10, 7, 2, BLOCKS, PASS_OUT },
	{ SCSI_WRITE_AND_VERIFY_10, 7, 2, BLOCKS, PASS_OUT },
	{ SCSI_VERIFY_10, 7, 2, CHECKED, PASS_OUT },
	{ SCSI_PRE_FETCH_10, 0, 0, NOTHING, PASS_NONE },
	{ SCSI_SYNCHRONIZE_CACHE_10, 0, 0, NOTHING, PASS_NONE },
	{ SCSI_READ_DEFECT_DATA_10, 7, 2, BYTES, PASS_IN },
	{ 0x3e /* READ LONG(10) */, 7, 2, BYTES, PASS_IN },
	{ 0x3f /* WRITE LONG(10) */, 7, 2, BYTES, PASS_OUT },
	{ SCSI_WRITE_SAME_10, 0, 0, ONE_BLOCK, PASS_OUT },
	{ SCSI_UNMAP, 7, 2, BYTES, PASS_OUT },
	{ SCSI_SANITIZE, 7, 2, BYTES, PASS_OUT },
	{ SCSI_READ_16, 10, 4, BLOCKS, PASS_IN },
	{ SCSI_COMPARE_AND_WRITE, 13, 1, PAIRS, PASS_OUT },
	{ SCSI_WRITE_16, 10, 4, BLOCKS, PASS_OUT },
	{ SCSI_ORWRITE_16, 10, 4, BLOCKS, PASS_OUT },
	{ SCSI_WRITE_AND_VERIFY_16, 10, 4, BLOCKS, PASS_OUT },
	{ SCSI_VERIFY_16, 10, 4, CHECKED, PASS_OUT },
	{ SCSI_PRE_FETCH_16, 0, 0, NOTHING, PASS_NONE },
	{ SCSI_SYNCHRONIZE_CACHE_16, 0, 0, NOTHING, PASS_NONE },
	{ SCSI_WRITE_SAME_16, 0, 0, ONE_BLOCK, PASS_OUT },
	{ SCSI_WRITE_ATOMIC_16, 12, 2, ALL_BLOCKS, PASS_OUT },
	{ SCSI_SERVICE_ACTION_IN_16, 10, 4, BYTES, PASS_IN },
	{ SCSI_READ_12, 6, 4, BLOCKS, PASS_IN },
	{ SCSI_WRITE_12, 6, 4, BLOCKS, PASS_OUT },
	{ SCSI_WRITE_AND_VERIFY_12, 6, 4, BLOCKS, PASS_OUT },
	{ SCSI_VERIFY_12, 6, 4, CHECKED, PASS_OUT },
	{ SCSI_READ_DEFECT_DATA_12, 6, 4, BYTES, PASS_IN },
};
/* clang-format on */

bool pass_has_blocks(uint8_t type)
{
	return type == TYPE_DISK || type == TYPE_OPTICAL || type == TYPE_RBC ||
	       type == TYPE_ZONED;
}

static const struct shape *find(const struct shape *s, size_t n, uint8_t op)
{
	for (size_t i = 0; i < n; i++)
		if (s[i].op == op)
			return &s[i];
	return NULL;
}

static const struct shape *shape_of(uint8_t type, uint8_t op)
{
	const struct shape *s = find(of_all, ARRAY_LEN(of_all), op);

	if (!s && type != TYPE_MMC)
		s = find(not_mmc, ARRAY_LEN(not_mmc), op);
	if (!s && pass_has_blocks(type))
		s = find(of_blocks, ARRAY_LEN(of_blocks), op);
	return s;
}

static uint32_t number(const uint8_t *p, unsigned width)
{
	uint32_t n = 0;

	while (width--)
		n = n << 8 | *p++;
	return n;
}

/* is_protected returns whether the initiator transfers protection information
 * (RDPROTECT, WRPROTECT). The length then depends on the format of the medium. */
static bool is_protected(const uint8_t *cdb)
{
	return (cdb[0] >> 5) != 0 && (cdb[1] & 0xe0);
}

/* block_count returns the number of blocks that the command transfers. */
static uint64_t block_count(const struct shape *s, const uint8_t *cdb)
{
	uint64_t n = number(cdb + s->at, s->width);

	switch (s->counts) {
	case ONE_BLOCK: /* NDOB of WRITE SAME(16): no data */
		return s->op == SCSI_WRITE_SAME_16 && (cdb[1] & 0x01) ? 0 : 1;
	case CHECKED: /* SBC-3 table 120 */
		n = (cdb[1] & 0x06) == 0x06 ? 1 : n;
		return cdb[1] & 0x02 ? n : 0;
	case PAIRS:
		return 2 * n;
	default:
		return s->width == 1 && n == 0 ? 256 : n; /* READ(6) */
	}
}

bool pass_cdb_data(const struct pass *p, const uint8_t *cdb,
		   struct pass_data *d)
{
	uint32_t block = __atomic_load_n(&p->block_size, __ATOMIC_RELAXED);
	const struct shape *s = shape_of(p->type, cdb[0]);

	if (!s)
		return false;
	*d = (struct pass_data){ .dir = s->dir };
	switch (s->counts) {
	case NOTHING:
		break;
	case FIXED:
		d->len = s->at;
		break;
	case SECURITY:
		d->len = number(cdb + s->at, s->width);
		d->len *= cdb[4] & 0x80 ? 512 : 1;
		break;
	case BYTES:
		d->len = number(cdb + s->at, s->width);
		break;
	default:
		if (!block || is_protected(cdb))
			return false;
		d->unit = block;
		d->whole = s->counts == BLOCKS;
		d->len = block_count(s, cdb) * block;
	}
	return true;
}

void pass_cdb_cut(uint8_t *cdb, uint32_t blocks)
{
	const struct shape *s = find(of_blocks, ARRAY_LEN(of_blocks), cdb[0]);

	for (unsigned i = s->width; i--; blocks >>= 8)
		cdb[s->at + i] = (uint8_t)blocks;
}

/* FC, SAS and iSCSI carry 16 octets for each command; a parallel bus or an ATA
 * bridge needs the true length. Vendor specific commands have no known length and
 * get 16 octets. */
size_t pass_cdb_len(const uint8_t *cdb, size_t have)
{
	size_t len = scsi_cdb_len(cdb[0]);

	if (cdb[0] == SCSI_VARIABLE_LENGTH) { /* SPC-4 §4.2.3 */
		len = 8 + (size_t)cdb[7];
		return cdb[7] >= 4 && len % 4 == 0 && len <= have &&
				       len <= PASS_CDB_MAX
			       ? len
			       : 0;
	}
	return len ? len : 16;
}

/* Commands that may take hours: of disks, and of all other types. */
static const uint8_t slow_disk[] = {
	0x04, /* FORMAT UNIT */
	0x07, /* REASSIGN BLOCKS */
	0x1d, /* SEND DIAGNOSTIC */
	0x48, /* SANITIZE */
};

static const uint8_t slow_other[] = {
	0x01, /* REWIND */
	0x04, /* FORMAT MEDIUM, FORMAT UNIT */
	0x07, /* INITIALIZE ELEMENT STATUS */
	0x11, /* SPACE */
	0x19, /* ERASE */
	0x1b, /* LOAD UNLOAD, START STOP UNIT */
	0x1d, /* SEND DIAGNOSTIC */
	0x2b, /* LOCATE */
	0x37, /* INITIALIZE ELEMENT STATUS WITH RANGE */
	0x5b, /* CLOSE TRACK SESSION */
	0x91, /* SPACE(16) */
	0x92, /* LOCATE(16) */
	0x93, /* ERASE(16) */
	0xa1, /* BLANK */
	0xa5, /* MOVE MEDIUM */
	0xa6, /* EXCHANGE MEDIUM */
};

unsigned pass_timeout(const struct pass *p, const uint8_t *cdb)
{
	bool disk = pass_has_blocks(p->type);
	const uint8_t *slow = disk ? slow_disk : slow_other;
	size_t n = disk ? sizeof(slow_disk) : sizeof(slow_other);

	return memchr(slow, cdb[0], n) ? MAX(p->timeout, PASS_SLOW)
				       : p->timeout;
}
