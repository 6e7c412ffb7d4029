/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cdb.h: operation codes of the commands that this project sends or serves,
 * and the LBA and length of block commands (SBC-3 §5).
 */
#ifndef SCSI_CDB_H
#define SCSI_CDB_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum scsi_opcode {
	SCSI_TEST_UNIT_READY = 0x00,
	SCSI_REQUEST_SENSE = 0x03,
	SCSI_FORMAT_UNIT = 0x04,
	SCSI_READ_6 = 0x08,
	SCSI_WRITE_6 = 0x0a,
	SCSI_INQUIRY = 0x12,
	SCSI_MODE_SELECT_6 = 0x15,
	SCSI_RESERVE_6 = 0x16,
	SCSI_RELEASE_6 = 0x17,
	SCSI_MODE_SENSE_6 = 0x1a,
	SCSI_START_STOP_UNIT = 0x1b,
	SCSI_SEND_DIAGNOSTIC = 0x1d,
	SCSI_PREVENT_ALLOW = 0x1e,
	SCSI_READ_CAPACITY_10 = 0x25,
	SCSI_READ_10 = 0x28,
	SCSI_WRITE_10 = 0x2a,
	SCSI_SEEK_10 = 0x2b,
	SCSI_WRITE_AND_VERIFY_10 = 0x2e,
	SCSI_VERIFY_10 = 0x2f,
	SCSI_PRE_FETCH_10 = 0x34,
	SCSI_SYNCHRONIZE_CACHE_10 = 0x35,
	SCSI_READ_DEFECT_DATA_10 = 0x37,
	SCSI_WRITE_BUFFER = 0x3b,
	SCSI_READ_BUFFER = 0x3c,
	SCSI_WRITE_SAME_10 = 0x41,
	SCSI_UNMAP = 0x42,
	SCSI_READ_SUBCHANNEL = 0x42, /* MMC-6 */
	SCSI_READ_TOC = 0x43,
	SCSI_GET_CONFIGURATION = 0x46,
	SCSI_SANITIZE = 0x48,
	SCSI_GET_EVENT_STATUS = 0x4a,
	SCSI_LOG_SELECT = 0x4c,
	SCSI_LOG_SENSE = 0x4d,
	SCSI_READ_DISC_INFORMATION = 0x51,
	SCSI_READ_TRACK_INFORMATION = 0x52,
	SCSI_XDWRITEREAD_10 = 0x53,
	SCSI_MODE_SELECT_10 = 0x55,
	SCSI_RESERVE_10 = 0x56,
	SCSI_RELEASE_10 = 0x57,
	SCSI_MODE_SENSE_10 = 0x5a,
	SCSI_PERSISTENT_RESERVE_IN = 0x5e,
	SCSI_PERSISTENT_RESERVE_OUT = 0x5f,
	SCSI_VARIABLE_LENGTH = 0x7f,
	SCSI_EXTENDED_COPY = 0x83,
	SCSI_RECEIVE_COPY_RESULTS = 0x84,
	SCSI_READ_16 = 0x88,
	SCSI_COMPARE_AND_WRITE = 0x89,
	SCSI_WRITE_16 = 0x8a,
	SCSI_ORWRITE_16 = 0x8b,
	SCSI_WRITE_AND_VERIFY_16 = 0x8e,
	SCSI_VERIFY_16 = 0x8f,
	SCSI_PRE_FETCH_16 = 0x90,
	SCSI_SYNCHRONIZE_CACHE_16 = 0x91,
	SCSI_WRITE_SAME_16 = 0x93,
	SCSI_WRITE_ATOMIC_16 = 0x9c,
	SCSI_SERVICE_ACTION_IN_16 = 0x9e,
	SCSI_REPORT_LUNS = 0xa0,
	SCSI_MAINTENANCE_IN = 0xa3,
	SCSI_MAINTENANCE_OUT = 0xa4,
	SCSI_SET_READ_AHEAD = 0xa7,
	SCSI_READ_12 = 0xa8,
	SCSI_WRITE_12 = 0xaa,
	SCSI_GET_PERFORMANCE = 0xac,
	SCSI_READ_DISC_STRUCTURE = 0xad,
	SCSI_WRITE_AND_VERIFY_12 = 0xae,
	SCSI_VERIFY_12 = 0xaf,
	SCSI_SET_STREAMING = 0xb6,
	SCSI_READ_DEFECT_DATA_12 = 0xb7,
	SCSI_READ_CD_MSF = 0xb9,
	SCSI_SET_CD_SPEED = 0xbb,
	SCSI_MECHANISM_STATUS = 0xbd,
	SCSI_READ_CD = 0xbe,
};

/* Service actions of SCSI_VARIABLE_LENGTH, in bytes 8 and 9 (SPC-4 §4.2.3) */
#define SCSI_VL_XDWRITEREAD_32	    0x0007
#define SCSI_VL_READ_32		    0x0009
#define SCSI_VL_VERIFY_32	    0x000a
#define SCSI_VL_WRITE_32	    0x000b
#define SCSI_VL_WRITE_AND_VERIFY_32 0x000c
#define SCSI_VL_WRITE_SAME_32	    0x000d
#define SCSI_VL_ORWRITE_32	    0x000e

#define SCSI_SAI_READ_CAPACITY_16	  0x10
#define SCSI_SAI_GET_LBA_STATUS		  0x12
#define SCSI_MI_REPORT_TARGET_PORT_GROUPS 0x0a
#define SCSI_MO_SET_TARGET_PORT_GROUPS	  0x0a
#define SCSI_MI_REPORT_SUPPORTED_OPCODES  0x0c
#define SCSI_MI_REPORT_SUPPORTED_TMFS	  0x0d
#define SCSI_MI_REPORT_IDENTIFYING	  0x05
#define SCSI_MO_SET_IDENTIFYING		  0x06
#define SCSI_MI_REPORT_PRIORITY		  0x0e
#define SCSI_MO_SET_PRIORITY		  0x0e
#define SCSI_MI_REPORT_TIMESTAMP	  0x0f
#define SCSI_MO_SET_TIMESTAMP		  0x0f
#define SCSI_SANITIZE_OVERWRITE		  0x01
#define SCSI_SANITIZE_BLOCK_ERASE	  0x02
#define SCSI_SANITIZE_CRYPTO_ERASE	  0x03
#define SCSI_SANITIZE_EXIT_FAILURE	  0x1f
#define SCSI_XC_LID1			  0x00
#define SCSI_XC_POPULATE_TOKEN		  0x10
#define SCSI_XC_WRITE_USING_TOKEN	  0x11
#define SCSI_RCR_TOKEN_INFORMATION	  0x07
#define SCSI_RCR_COPY_STATUS_LID1	  0x00
#define SCSI_RCR_OPERATING_PARAMETERS	  0x03

/* PERSISTENT RESERVE IN, SPC-4 table 155 */
#define SCSI_PRIN_READ_KEYS	      0x00
#define SCSI_PRIN_READ_RESERVATION    0x01
#define SCSI_PRIN_REPORT_CAPABILITIES 0x02
#define SCSI_PRIN_READ_FULL_STATUS    0x03
/* PERSISTENT RESERVE OUT, SPC-4 table 171 */
#define SCSI_PROUT_REGISTER	     0x00
#define SCSI_PROUT_RESERVE	     0x01
#define SCSI_PROUT_RELEASE	     0x02
#define SCSI_PROUT_CLEAR	     0x03
#define SCSI_PROUT_PREEMPT	     0x04
#define SCSI_PROUT_PREEMPT_AND_ABORT 0x05
#define SCSI_PROUT_REGISTER_IGNORE   0x06
#define SCSI_PROUT_REGISTER_AND_MOVE 0x07
#define SCSI_PROUT_REPLACE_LOST	     0x08

/* scsi_cdb_len returns the length of a CDB by its group code (SPC-4 §4.2.5.1):
 * 6, 10, 12 or 16, and 0 for the variable-length and vendor-specific
 * groups. */
static inline size_t scsi_cdb_len(uint8_t opcode)
{
	static const uint8_t by_group[8] = { 6, 10, 10, 0, 16, 12, 0, 0 };

	return by_group[opcode >> 5];
}
/* scsi_cdb_sa returns the service action field, which has a meaning only for
 * operation codes with service actions. A CDB of variable length has at least
 * 10 bytes. */
uint16_t scsi_cdb_sa(const uint8_t *cdb);

/* scsi_cdb_lba and scsi_cdb_blocks return the LBA and the number of blocks of
 * a CDB with the layout of READ or WRITE of its group. Length 0 of READ(6) and
 * WRITE(6) is returned as 256. The caller provides all bytes of the group, 32
 * of a CDB of variable length (SBC-3 §§5.10 and 5.36). */
static inline uint64_t scsi_cdb_lba(const uint8_t *cdb)
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

static inline uint32_t scsi_cdb_blocks(const uint8_t *cdb)
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

/* scsi_cdb_rw builds READ(10) or WRITE(10), or the form of 16 bytes if lba or
 * blocks needs it, and returns the length of the CDB. */
size_t scsi_cdb_rw(uint8_t cdb[16], int is_write, uint64_t lba, uint32_t blocks,
		   int fua);

#endif
