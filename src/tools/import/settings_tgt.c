/* SPDX-License-Identifier: BSD-2-Clause */
/* settings_tgt.c: what targets.conf can have: the directives of tgt-admin 1.0.85. */
#include "base/bytes.h"
#include "tools/import/settings.h"

static const char isns[] =
	"iser-isns(8) registers the targets of iserd; start it for this server";
static const char negotiated[] =
	"iserd negotiates this key with each initiator; nothing to do";
static const char mode_pages[] =
	"iserd follows the mode page that the initiator sets; nothing to do";
static const char own_pages[] =
	"iserd reports its own values; nothing to do unless an initiator "
	"depends on this one";

/* clang-format off */
static const struct import_setting file[] = {
	IMPORT_TAKEN("default-driver"), IMPORT_TAKEN("incomingdiscoveryuser"),
	IMPORT_TAKEN("iSNSAccessControl"),
	IMPORT_TAKEN("outgoingdiscoveryuser"), IMPORT_TAKEN("target"),
	/* of tgt-admin itself */
	IMPORT_MUTE("control-port"), IMPORT_MUTE("ignore-errors"),
	IMPORT_USUAL("iSNS", "Off", .why = isns),
	IMPORT_USUAL("iSNSServerIP", NULL, .why = isns),
	IMPORT_USUAL("iSNSServerPort", NULL, .why = isns),
};

/* A store, or all stores of a target. */
#define STORE_ROWS                                                           \
	IMPORT_TAKEN("block-size"), IMPORT_TAKEN("bs-type"),                 \
	IMPORT_TAKEN("bsoflags"), IMPORT_TAKEN("bsopts"),                    \
	IMPORT_TAKEN("device-type"), IMPORT_TAKEN("lun"),                    \
	IMPORT_TAKEN("mode_page"), IMPORT_TAKEN("online"),                   \
	IMPORT_TAKEN("params"), IMPORT_TAKEN("product_id"),                  \
	IMPORT_TAKEN("product_rev"), IMPORT_TAKEN("readonly"),               \
	IMPORT_TAKEN("removable"), IMPORT_TAKEN("scsi_id"),                  \
	IMPORT_TAKEN("scsi_sn"),                                             \
	IMPORT_TAKEN("vendor_id"), IMPORT_TAKEN("write-cache"),              \
	IMPORT_MUTE("allow-in-use"),                                         \
	IMPORT_USUAL("la_lba", NULL, .why = own_pages),                      \
	IMPORT_USUAL("lbppbe", NULL, .why = own_pages),                      \
	IMPORT_USUAL("optimal_xfer_gran", NULL, .why = own_pages),           \
	IMPORT_USUAL("optimal_xfer_len", NULL, .why = own_pages),            \
	IMPORT_USUAL("path", NULL),                                          \
	IMPORT_USUAL("sense_format", NULL, .why = mode_pages),               \
	IMPORT_USUAL("thin_provisioning", NULL, .why = own_pages)

static const struct import_setting target[] = {
	IMPORT_TAKEN("DataDigest"), IMPORT_TAKEN("ErrorRecoveryLevel"),
	IMPORT_TAKEN("HeaderDigest"), IMPORT_TAKEN("MaxConnections"),
	IMPORT_TAKEN("backing-store"), IMPORT_TAKEN("controller_tid"),
	IMPORT_TAKEN("direct-store"), IMPORT_TAKEN("driver"),
	IMPORT_TAKEN("incominguser"), IMPORT_TAKEN("initiator-address"),
	IMPORT_TAKEN("initiator-name"), IMPORT_TAKEN("outgoinguser"),
	IMPORT_TAKEN("state"),
	/* obsolete (RFC 7143 section 13.25) */
	IMPORT_MUTE("IFMarkInt"), IMPORT_MUTE("IFMarker"),
	IMPORT_MUTE("OFMarkInt"), IMPORT_MUTE("OFMarker"),
	IMPORT_USUAL("DataPDUInOrder", "Yes"),
	IMPORT_USUAL("DataSequenceInOrder", "Yes"),
	IMPORT_USUAL("DefaultTime2Retain", NULL, .why = negotiated),
	IMPORT_USUAL("DefaultTime2Wait", NULL, .why = negotiated),
	IMPORT_USUAL("FirstBurstLength", NULL, .why = negotiated),
	IMPORT_USUAL("ImmediateData", NULL, .why = negotiated),
	IMPORT_USUAL("InitialR2T", NULL, .why = negotiated),
	IMPORT_USUAL("MaxBurstLength", NULL, .why = negotiated),
	IMPORT_USUAL("MaxOutstandingR2T", NULL),
	IMPORT_USUAL("MaxRecvDataSegmentLength", NULL, .why = negotiated),
	IMPORT_USUAL("MaxXmitDataSegmentLength", NULL, .why = negotiated),
	STORE_ROWS,
};

static const struct import_setting store[] = { STORE_ROWS };
/* clang-format on */

const struct import_table import_tgt_tables[TGT_TABLES] = {
	[TGT_FILE] = IMPORT_TABLE("targets.conf", file),
	[TGT_TARGET] = IMPORT_TABLE("a target of tgt", target),
	[TGT_STORE] = IMPORT_TABLE("a store of tgt", store),
};
