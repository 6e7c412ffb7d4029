/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sense.h: sense data (SPC-4 §4.5). The device builds them, the initiator
 * parses them and prints their text.
 */
#ifndef SCSI_SENSE_H
#define SCSI_SENSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scsi_sense_key {
	SENSE_NO_SENSE = 0x0,
	SENSE_RECOVERED_ERROR = 0x1,
	SENSE_NOT_READY = 0x2,
	SENSE_MEDIUM_ERROR = 0x3,
	SENSE_HARDWARE_ERROR = 0x4,
	SENSE_ILLEGAL_REQUEST = 0x5,
	SENSE_UNIT_ATTENTION = 0x6,
	SENSE_DATA_PROTECT = 0x7,
	SENSE_BLANK_CHECK = 0x8,
	SENSE_COPY_ABORTED = 0xa,
	SENSE_ABORTED_COMMAND = 0xb,
	SENSE_MISCOMPARE = 0xe,
};

/* ASC << 8 | ASCQ; X(name, code, text) */
#define SCSI_ASC_TABLE(X)                                                      \
 X(ASC_NONE, 0x0000, "no additional sense information")                        \
 X(ASC_OPERATION_IN_PROGRESS, 0x0016, "operation in progress")                 \
 X(ASC_BECOMING_READY, 0x0401, "logical unit is in process of becoming ready") \
 X(ASC_FORMAT_IN_PROGRESS, 0x0404,                                             \
   "logical unit not ready, format in progress")                               \
 X(ASC_ACCESS_TRANSITION, 0x040a,                                              \
   "logical unit not accessible, asymmetric access state transition")          \
 X(ASC_PORT_IN_STANDBY, 0x040b,                                                \
   "logical unit not accessible, target port in standby state")                \
 X(ASC_PORT_UNAVAILABLE, 0x040c,                                               \
   "logical unit not accessible, target port in unavailable state")            \
 X(ASC_SANITIZE_IN_PROGRESS, 0x041b,                                           \
   "logical unit not ready, sanitize in progress")                             \
 X(ASC_NO_SELECTION_RESPONSE, 0x0500,                                          \
   "logical unit does not respond to selection")                               \
 X(ASC_LU_COMMUNICATION, 0x0800, "logical unit communication failure")         \
 X(ASC_WRITE_ERROR, 0x0c00, "write error")                                     \
 X(ASC_UNEXPECTED_UNSOLICITED_DATA, 0x0c0c,                                    \
   "write error: unexpected unsolicited data")                                 \
 X(ASC_NOT_ENOUGH_UNSOLICITED_DATA, 0x0c0d,                                    \
   "write error: not enough unsolicited data")                                 \
 X(ASC_THIRD_PARTY_DEVICE_FAILURE, 0x0d01, "third party device failure")       \
 X(ASC_COPY_TARGET_NOT_REACHABLE, 0x0d02, "copy target device not reachable")  \
 X(ASC_INVALID_FIELD_IN_IU, 0x0e03,                                            \
   "invalid field in command information unit")                                \
 X(ASC_GUARD_CHECK_FAILED, 0x1001, "logical block guard check failed")         \
 X(ASC_APP_TAG_CHECK_FAILED, 0x1002,                                           \
   "logical block application tag check failed")                               \
 X(ASC_REF_TAG_CHECK_FAILED, 0x1003,                                           \
   "logical block reference tag check failed")                                 \
 X(ASC_UNRECOVERED_READ_ERROR, 0x1100, "unrecovered read error")               \
 X(ASC_FAILED_RETRANSMISSION, 0x1113,                                          \
   "read error - failed retransmission request")                               \
 X(ASC_PARAMETER_LIST_LENGTH_ERROR, 0x1a00, "parameter list length error")     \
 X(ASC_MISCOMPARE_DURING_VERIFY, 0x1d00, "miscompare during verify operation") \
 X(ASC_INVALID_OPCODE, 0x2000, "invalid command operation code")               \
 X(ASC_NO_ACCESS_RIGHTS, 0x2002, "access denied - no access rights")           \
 X(ASC_LBA_OUT_OF_RANGE, 0x2100, "logical block address out of range")         \
 X(ASC_TOKEN_TYPE, 0x2301, "unsupported token type")                           \
 X(ASC_TOKEN_UNKNOWN, 0x2304, "token unknown")                                 \
 X(ASC_TOKEN_CORRUPT, 0x2305, "token corrupt")                                 \
 X(ASC_TOKEN_REVOKED, 0x2306, "token revoked")                                 \
 X(ASC_TOKEN_EXPIRED, 0x2307, "token expired")                                 \
 X(ASC_INVALID_FIELD_IN_CDB, 0x2400, "invalid field in CDB")                   \
 X(ASC_LUN_NOT_SUPPORTED, 0x2500, "logical unit not supported")                \
 X(ASC_INVALID_FIELD_IN_PARAMETERS, 0x2600, "invalid field in parameter list") \
 X(ASC_TOO_MANY_TARGETS, 0x2606, "too many target descriptors")                \
 X(ASC_TARGET_DESCRIPTOR_TYPE, 0x2607,                                         \
   "unsupported target descriptor type code")                                  \
 X(ASC_TOO_MANY_SEGMENTS, 0x2608, "too many segment descriptors")              \
 X(ASC_SEGMENT_DESCRIPTOR_TYPE, 0x2609,                                        \
   "unsupported segment descriptor type code")                                 \
 X(ASC_INEXACT_SEGMENT, 0x260a, "unexpected inexact segment")                  \
 X(ASC_INLINE_DATA_LENGTH, 0x260b, "inline data length exceeded")              \
 X(ASC_INVALID_RELEASE, 0x2604, "invalid release of persistent reservation")   \
 X(ASC_WRITE_PROTECTED, 0x2700, "write protected")                             \
 X(ASC_SOFTWARE_WRITE_PROTECTED, 0x2702,                                       \
   "logical unit software write protected")                                    \
 X(ASC_SPACE_ALLOCATION_FAILED, 0x2707,                                        \
   "space allocation failed write protect")                                    \
 X(ASC_MEDIUM_MAY_HAVE_CHANGED, 0x2800,                                        \
   "not ready to ready change, medium may have changed")                       \
 X(ASC_POWER_ON, 0x2900, "power on, reset, or bus device reset occurred")      \
 X(ASC_BUS_DEVICE_RESET, 0x2903, "bus device reset function occurred")         \
 X(ASC_NEXUS_LOSS, 0x2907, "I_T nexus loss occurred")                          \
 X(ASC_MODE_PARAMETERS_CHANGED, 0x2a01, "mode parameters changed")             \
 X(ASC_LOG_PARAMETERS_CHANGED, 0x2a02, "log parameters changed")               \
 X(ASC_RESERVATIONS_PREEMPTED, 0x2a03, "reservations preempted")               \
 X(ASC_RESERVATIONS_RELEASED, 0x2a04, "reservations released")                 \
 X(ASC_REGISTRATIONS_PREEMPTED, 0x2a05, "registrations preempted")             \
 X(ASC_ACCESS_STATE_CHANGED, 0x2a06, "asymmetric access state changed")        \
 X(ASC_ACCESS_TRANSITION_FAILED, 0x2a07,                                       \
   "implicit asymmetric access state transition failed")                       \
 X(ASC_PRIORITY_CHANGED, 0x2a08, "priority changed")                           \
 X(ASC_CAPACITY_CHANGED, 0x2a09, "capacity data has changed")                  \
 X(ASC_TIMESTAMP_CHANGED, 0x2a10, "timestamp changed")                         \
 X(ASC_COMMAND_SEQUENCE, 0x2c00, "command sequence error")                     \
 X(ASC_ORWRITE_GENERATION, 0x2c0c, "orwrite generation does not match")        \
 X(ASC_COMMAND_TIMEOUT, 0x2e02,                                                \
   "command timeout during processing due to error recovery")                  \
 X(ASC_COMMANDS_CLEARED, 0x2f00, "commands cleared by another initiator")      \
 X(ASC_INCOMPATIBLE_MEDIUM, 0x3002, "cannot read medium, incompatible format") \
 X(ASC_FORMAT_FAILED, 0x3101, "format command failed")                         \
 X(ASC_SANITIZE_FAILED, 0x3103, "sanitize command failed")                     \
 X(ASC_SOFT_THRESHOLD, 0x3807, "thin provisioning soft threshold reached")     \
 X(ASC_SAVING_NOT_SUPPORTED, 0x3900, "saving parameters not supported")        \
 X(ASC_MEDIUM_NOT_PRESENT, 0x3a00, "medium not present")                       \
 X(ASC_NO_MEDIUM_TRAY_CLOSED, 0x3a01, "medium not present, tray closed")       \
 X(ASC_NO_MEDIUM_TRAY_OPEN, 0x3a02, "medium not present, tray open")           \
 X(ASC_INQUIRY_CHANGED, 0x3f03, "inquiry data has changed")                    \
 X(ASC_DEVICE_IDENTIFIER_CHANGED, 0x3f05, "device identifier changed")         \
 X(ASC_REPORTED_LUNS_CHANGED, 0x3f0e, "reported LUNs data has changed")        \
 X(ASC_INTERNAL_TARGET_FAILURE, 0x4400, "internal target failure")             \
 X(ASC_RESERVATION_LOST, 0x4401, "persistent reservation information lost")    \
 X(ASC_SCSI_PARITY_ERROR, 0x4700, "SCSI parity error")                         \
 X(ASC_PROTOCOL_SERVICE_CRC_ERROR, 0x4705, "protocol service CRC error")       \
 X(ASC_ISCSI_EVENT, 0x477f, "some commands cleared by iSCSI protocol event")   \
 X(ASC_INVALID_MESSAGE, 0x4900, "invalid message error")                       \
 X(ASC_REMOVAL_PREVENTED, 0x5302, "medium removal prevented")                  \
 X(ASC_INSUFFICIENT_RESOURCES, 0x5503, "insufficient resources")               \
 X(ASC_INSUFFICIENT_REGISTRATIONS, 0x5504,                                     \
   "insufficient registration resources")                                      \
 X(ASC_ILLEGAL_MODE_FOR_TRACK, 0x6400, "illegal mode for this track")          \
 X(ASC_SET_GROUPS_FAILED, 0x670a, "set target port groups command failed")

enum scsi_asc {
#define SCSI_ASC_ENUM(name, code, text) name = code,
	SCSI_ASC_TABLE(SCSI_ASC_ENUM)
#undef SCSI_ASC_ENUM
};

/* Sense data, decoded. A field has a meaning only if its has_ flag is set. */
struct scsi_sense {
	uint8_t key;   /* enum scsi_sense_key */
	uint16_t asc;  /* ASC << 8 | ASCQ */
	bool deferred; /* the error of an earlier command */
	bool has_info;
	uint64_t info; /* INFORMATION field, for most commands an LBA */
	/* COMMAND-SPECIFIC INFORMATION of EXTENDED COPY: the number of the
	 * failed segment descriptor, from 0 (SPC-4 §5.17.7.4) */
	bool has_segment;
	uint16_t segment;
	/* sense-key specific: field pointer of an ILLEGAL REQUEST */
	bool has_field, in_cdb, has_bit;
	uint8_t bit;
	uint16_t field;
	/* sense-key specific of NOT READY: progress indication, 65536ths */
	bool has_progress;
	uint16_t progress;
};

#define SCSI_SENSE_FIXED_LEN 18
#define SCSI_SENSE_MAX	     40

/* scsi_sense_build writes s to p in fixed format (18 bytes) or in descriptor
 * format and returns the length. p has SCSI_SENSE_MAX bytes. */
size_t scsi_sense_build(const struct scsi_sense *s, bool descriptor,
			uint8_t *p);

/* scsi_sense_parse decodes len bytes of either format; ERR_TRUNCATED if they
 * end before the additional sense length, ERR_FORMAT for another response
 * code. */
int scsi_sense_parse(struct scsi_sense *s, const uint8_t *p, size_t len);

/* These three return constant texts. */
const char *scsi_sense_key_str(uint8_t key);
/* scsi_asc_str returns NULL for a code outside of SCSI_ASC_TABLE. */
const char *scsi_asc_str(uint16_t asc);
const char *scsi_status_str(uint8_t status);

#endif
