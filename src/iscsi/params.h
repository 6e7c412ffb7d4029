/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * params.h: the negotiated values of a connection and its session (RFC 7143
 * §13, RFC 7144 §6, RFC 7145 §6). The table in keys.c has the key of each
 * member, and how it is negotiated.
 */
#ifndef ISCSI_PARAMS_H
#define ISCSI_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

enum iscsi_role {
	ISCSI_INITIATOR,
	ISCSI_TARGET,
};

#define ISCSI_NAME_MAX 223 /* bytes without the final NUL, §4.2.7.2 */

/* TaskReporting (RFC 7143 §13.23), in rising order: each has what those before it
 * have. */
enum iscsi_task_reporting {
	ISCSI_RFC3720,
	ISCSI_RESPONSE_FENCE, /* §4.2.2.3.3 */
	ISCSI_FAST_ABORT,     /* §4.2.3.4 */
};

struct iscsi_params {
	/* connection */
	bool header_digest; /* CRC32C rather than None */
	bool data_digest;
	uint32_t max_recv_dsl; /* MaxRecvDataSegmentLength that we declared */
	uint32_t max_send_dsl; /* MaxRecvDataSegmentLength of the peer */
	/* session */
	uint16_t max_connections;
	bool initial_r2t;
	bool immediate_data;
	uint32_t max_burst_length;
	uint32_t first_burst_length;
	uint16_t default_time2wait;
	uint16_t default_time2retain;
	uint16_t max_outstanding_r2t;
	bool data_pdu_in_order;
	bool data_sequence_in_order;
	uint8_t error_recovery_level;
	uint32_t protocol_level; /* iSCSIProtocolLevel, RFC 7144 §7 */
	uint8_t task_reporting;	 /* enum iscsi_task_reporting */
	/* iSER, RFC 7145 §6 */
	bool rdma_extensions;
	uint32_t target_recv_dsl;
	uint32_t initiator_recv_dsl;
	uint32_t max_outstanding_unexpected_pdus;
	uint32_t max_ahs_length;
	bool tagged_buffer_for_solicited_data_only;
	bool iser_hello_required;
	/* Sets of keys, one bit per enum iscsi_key_id: keys whose values were
	 * declared or negotiated, and keys that the peer does not support. Read
	 * by iscsi_params_declared and iscsi_params_refused in keys.h. */
	uint64_t declared, refused;
};

/* iscsi_params_defaults sets every value to the default of its key. */
void iscsi_params_defaults(struct iscsi_params *p);

#endif
