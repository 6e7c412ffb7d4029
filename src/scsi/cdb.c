/* SPDX-License-Identifier: BSD-2-Clause */
/* cdb.c: fields of CDBs by their group code. */
#include "scsi/cdb.h"

#include <string.h>

#include "base/bytes.h"

size_t scsi_cdb_len(uint8_t opcode)
{
	static const uint8_t by_group[8] = { 6, 10, 10, 0, 16, 12, 0, 0 };

	return by_group[opcode >> 5];
}

uint16_t scsi_cdb_sa(const uint8_t *cdb)
{
	return cdb[0] == SCSI_VARIABLE_LENGTH ? get_be16(cdb + 8)
					      : cdb[1] & 0x1f;
}

/* For the CDBs of 32 bytes see SBC-3 §§5.10 and 5.36. */
uint64_t scsi_cdb_lba(const uint8_t *cdb)
{
	switch (scsi_cdb_len(cdb[0])) {
	case 0:
		return get_be64(cdb + 12);
	case 6:
		return get_be24(cdb + 1) & 0x1fffff;
	case 16:
		return get_be64(cdb + 2);
	default:
		return get_be32(cdb + 2);
	}
}

uint32_t scsi_cdb_blocks(const uint8_t *cdb)
{
	switch (scsi_cdb_len(cdb[0])) {
	case 0:
		return get_be32(cdb + 28);
	case 6:
		return cdb[4] ? cdb[4] : 256;
	case 10:
		return get_be16(cdb + 7);
	case 12:
		return get_be32(cdb + 6);
	default:
		return get_be32(cdb + 10);
	}
}

size_t scsi_cdb_rw(uint8_t cdb[16], int is_write, uint64_t lba, uint32_t blocks,
		   int fua)
{
	memset(cdb, 0, 16);
	cdb[1] = fua ? 0x08 : 0;
	if (lba <= UINT32_MAX && blocks <= UINT16_MAX) {
		cdb[0] = is_write ? SCSI_WRITE_10 : SCSI_READ_10;
		put_be32(cdb + 2, (uint32_t)lba);
		put_be16(cdb + 7, (uint16_t)blocks);
		return 10;
	}
	cdb[0] = is_write ? SCSI_WRITE_16 : SCSI_READ_16;
	put_be64(cdb + 2, lba);
	put_be32(cdb + 10, blocks);
	return 16;
}
