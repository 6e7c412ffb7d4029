/* SPDX-License-Identifier: BSD-2-Clause */
/* cdb.c: fields of CDBs by their group code. */
#include "scsi/cdb.h"

#include <string.h>

#include "base/bytes.h"

uint16_t scsi_cdb_sa(const uint8_t *cdb)
{
	return cdb[0] == SCSI_VARIABLE_LENGTH ? get_be16(cdb + 8)
					      : cdb[1] & 0x1f;
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
