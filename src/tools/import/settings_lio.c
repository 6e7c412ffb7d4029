/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings_lio.c: what saveconfig.json can have: the members that rtslib writes
 * and reads, and the attributes and parameters of the kernel up to Linux 6.12.
 */
#include "base/bytes.h"
#include "tools/import/settings.h"

static const char negotiated[] =
	"iserd negotiates this key with each initiator; nothing to do";

/* clang-format off */
static const struct import_setting file[] = {
	IMPORT_TAKEN("fabric_modules"), IMPORT_TAKEN("storage_objects"), IMPORT_TAKEN("targets"),
};

static const struct import_setting fabric[] = {
	IMPORT_TAKEN("name"), IMPORT_TAKEN("discovery_enable_auth"),
	IMPORT_TAKEN("discovery_userid"), IMPORT_TAKEN("discovery_password"),
	IMPORT_TAKEN("discovery_mutual_userid"), IMPORT_TAKEN("discovery_mutual_password"),
};

static const struct import_setting storage[] = {
	IMPORT_TAKEN("alua_tpgs"), IMPORT_TAKEN("attributes"), IMPORT_TAKEN("config"),
	IMPORT_TAKEN("dev"), IMPORT_TAKEN("name"), IMPORT_TAKEN("nullio"), IMPORT_TAKEN("plugin"),
	IMPORT_TAKEN("readonly"), IMPORT_TAKEN("size"), IMPORT_TAKEN("write_back"), IMPORT_TAKEN("wwn"),
	IMPORT_TAKEN("company_id"), IMPORT_TAKEN("vendor_id"),
	IMPORT_TAKEN("product_id"), IMPORT_TAKEN("revision"),
	IMPORT_MUTE("aio"), IMPORT_MUTE("control"), IMPORT_MUTE("hw_max_sectors"),
	/* of older versions of rtslib, which ignores them now */
	IMPORT_MUTE("buffered_mode"), IMPORT_MUTE("exists"),
	/* iserd opens a block device for itself, too */
	IMPORT_MUTE("exclusive"),
};

static const struct import_setting storage_attributes[] = {
	IMPORT_TAKEN("block_size"), IMPORT_TAKEN("emulate_model_alias"),
	IMPORT_TAKEN("emulate_write_cache"), IMPORT_TAKEN("is_nonrot"),
	IMPORT_MUTE("alua_support"), IMPORT_MUTE("cmd_ring_size_mb"), IMPORT_MUTE("cmd_time_out"),
	IMPORT_MUTE("complete_type"), IMPORT_MUTE("data_pages_per_blk"), IMPORT_MUTE("dev_config"),
	IMPORT_MUTE("dev_size"), IMPORT_MUTE("emulate_dpo"), IMPORT_MUTE("emulate_fua_read"),
	IMPORT_MUTE("emulate_fua_write"), IMPORT_MUTE("emulate_tpu"), IMPORT_MUTE("emulate_tpws"),
	IMPORT_MUTE("hw_block_size"), IMPORT_MUTE("hw_max_sectors"), IMPORT_MUTE("hw_pi_prot_type"),
	IMPORT_MUTE("hw_queue_depth"), IMPORT_MUTE("max_data_area_mb"),
	IMPORT_MUTE("max_unmap_block_desc_count"), IMPORT_MUTE("max_unmap_lba_count"),
	IMPORT_MUTE("max_write_same_len"), IMPORT_MUTE("nl_reply_supported"),
	IMPORT_MUTE("optimal_sectors"), IMPORT_MUTE("pi_prot_format"),
	IMPORT_MUTE("pi_prot_verify"), IMPORT_MUTE("qfull_time_out"), IMPORT_MUTE("queue_depth"),
	IMPORT_MUTE("submit_type"), IMPORT_MUTE("tmr_notification"),
	IMPORT_MUTE("unmap_granularity"), IMPORT_MUTE("unmap_granularity_alignment"),
	IMPORT_MUTE("unmap_zeroes_data"),
	IMPORT_USUAL("emulate_3pc", "1"), IMPORT_USUAL("emulate_caw", "1"),
	IMPORT_USUAL("emulate_pr", "1"), IMPORT_USUAL("emulate_rest_reord", "0"),
	IMPORT_USUAL("emulate_rsoc", "1"), IMPORT_USUAL("emulate_tas", "1"),
	IMPORT_USUAL("emulate_ua_intlck_ctrl", "0"), IMPORT_USUAL("enforce_pr_isids", "1"),
	IMPORT_USUAL("force_pr_aptpl", "0", IMPORT_FIELD("daemon", "state")),
	IMPORT_USUAL("pgr_support", "1"),
	IMPORT_USUAL("pi_prot_type", "0", IMPORT_FIELD("backstore", "protection")),
};

static const struct import_setting target[] = {
	IMPORT_TAKEN("fabric"), IMPORT_TAKEN("tpgs"), IMPORT_TAKEN("wwn"), IMPORT_TAKEN("parameters"),
};

static const struct import_setting target_parameters[] = {
	/* which CPUs of the kernel work for the target */
	IMPORT_MUTE("cmd_completion_affinity"), IMPORT_MUTE("cpus_allowed_list"),
};

static const struct import_setting tpg[] = {
	IMPORT_TAKEN("attributes"), IMPORT_TAKEN("enable"), IMPORT_TAKEN("luns"),
	IMPORT_TAKEN("node_acls"), IMPORT_TAKEN("parameters"), IMPORT_TAKEN("portals"),
	IMPORT_TAKEN("tag"), IMPORT_TAKEN("chap_userid"), IMPORT_TAKEN("chap_password"),
	IMPORT_TAKEN("chap_mutual_userid"), IMPORT_TAKEN("chap_mutual_password"),
};

static const struct import_setting tpg_attributes[] = {
	IMPORT_TAKEN("authentication"), IMPORT_TAKEN("demo_mode_write_protect"),
	IMPORT_TAKEN("generate_node_acls"), IMPORT_TAKEN("prod_mode_write_protect"),
	/* whether rules that LIO makes for a session outlast it */
	IMPORT_MUTE("cache_dynamic_acls"),
	/* iserd shows an initiator the targets that it may log in to */
	IMPORT_MUTE("demo_mode_discovery"),
	IMPORT_MUTE("login_keys_workaround"), IMPORT_MUTE("netif_timeout"),
	/* a TPG that is not enabled is left out */
	IMPORT_MUTE("tpg_enabled_sendtargets"),
	IMPORT_USUAL("default_cmdsn_depth", "64"),
	IMPORT_USUAL("default_erl", "0", IMPORT_FIELD("daemon", "error-recovery-level")),
	IMPORT_USUAL("fabric_prot_type", "0", IMPORT_FIELD("backstore", "protection")),
	IMPORT_USUAL("login_timeout", "15"),
	IMPORT_USUAL("t10_pi", "0", IMPORT_FIELD("backstore", "protection")),
};

static const struct import_setting tpg_parameters[] = {
	IMPORT_TAKEN("AuthMethod"), IMPORT_TAKEN("DataDigest"), IMPORT_TAKEN("ErrorRecoveryLevel"),
	IMPORT_TAKEN("HeaderDigest"), IMPORT_TAKEN("MaxConnections"), IMPORT_TAKEN("TargetAlias"),
	/* obsolete (RFC 7143 section 13.25) */
	IMPORT_MUTE("IFMarkInt"), IMPORT_MUTE("IFMarker"), IMPORT_MUTE("OFMarkInt"),
	IMPORT_MUTE("OFMarker"),
	IMPORT_USUAL("DataPDUInOrder", "Yes"), IMPORT_USUAL("DataSequenceInOrder", "Yes"),
	IMPORT_USUAL("DefaultTime2Retain", "20", .why = negotiated),
	IMPORT_USUAL("DefaultTime2Wait", "2", .why = negotiated),
	IMPORT_USUAL("FirstBurstLength", "65536", .why = negotiated),
	IMPORT_USUAL("ImmediateData", "Yes", .why = negotiated),
	IMPORT_USUAL("InitialR2T", "Yes", .why = negotiated),
	IMPORT_USUAL("MaxBurstLength", "262144", .why = negotiated),
	IMPORT_USUAL("MaxOutstandingR2T", "1"),
	IMPORT_USUAL("MaxRecvDataSegmentLength", "8192", .why = negotiated),
	IMPORT_USUAL("MaxXmitDataSegmentLength", "262144", .why = negotiated),
};

static const struct import_setting lun[] = {
	IMPORT_TAKEN("index"), IMPORT_TAKEN("storage_object"), IMPORT_MUTE("alias"),
	IMPORT_USUAL("alua_tg_pt_gp_name", "default_tg_pt_gp",
	      IMPORT_FIELD("ALUA group", "ports")),
};

static const struct import_setting portal[] = {
	IMPORT_TAKEN("ip_address"), IMPORT_TAKEN("iser"), IMPORT_TAKEN("offload"), IMPORT_TAKEN("port"),
};

static const struct import_setting acl[] = {
	IMPORT_TAKEN("attributes"), IMPORT_TAKEN("mapped_luns"), IMPORT_TAKEN("node_wwn"),
	IMPORT_TAKEN("chap_userid"), IMPORT_TAKEN("chap_password"),
	IMPORT_TAKEN("chap_mutual_userid"), IMPORT_TAKEN("chap_mutual_password"),
	IMPORT_MUTE("tag"),
};

static const struct import_setting acl_attributes[] = {
	IMPORT_TAKEN("authentication"),
	IMPORT_MUTE("dataout_timeout_retries"), IMPORT_MUTE("nopin_response_timeout"),
	IMPORT_MUTE("nopin_timeout"), IMPORT_MUTE("random_datain_pdu_offsets"),
	IMPORT_MUTE("random_datain_seq_offsets"), IMPORT_MUTE("random_r2t_offsets"),
	IMPORT_USUAL("dataout_timeout", "3", IMPORT_FIELD("target", "data-timeout")),
	IMPORT_USUAL("default_erl", "0", IMPORT_FIELD("daemon", "error-recovery-level")),
};

static const struct import_setting mapped_lun[] = {
	IMPORT_TAKEN("index"), IMPORT_TAKEN("tpg_lun"), IMPORT_TAKEN("write_protect"),
	IMPORT_MUTE("alias"), IMPORT_MUTE("tag"),
};
/* clang-format on */

const struct import_table import_lio_tables[LIO_TABLES] = {
	[LIO_FILE] = IMPORT_TABLE("saveconfig.json", file),
	[LIO_FABRIC] = IMPORT_TABLE("a fabric module of LIO", fabric),
	[LIO_STORAGE] = IMPORT_TABLE("a storage object of LIO", storage),
	[LIO_STORAGE_ATTRIBUTES] =
		IMPORT_TABLE("a storage object of LIO", storage_attributes),
	[LIO_TARGET] = IMPORT_TABLE("a target of LIO", target),
	[LIO_TARGET_PARAMETERS] =
		IMPORT_TABLE("a target of LIO", target_parameters),
	[LIO_TPG] = IMPORT_TABLE("a TPG of LIO", tpg),
	[LIO_TPG_ATTRIBUTES] = IMPORT_TABLE("a TPG of LIO", tpg_attributes),
	[LIO_TPG_PARAMETERS] = IMPORT_TABLE("a TPG of LIO", tpg_parameters),
	[LIO_LUN] = IMPORT_TABLE("a LUN of LIO", lun),
	[LIO_PORTAL] = IMPORT_TABLE("a portal of LIO", portal),
	[LIO_ACL] = IMPORT_TABLE("an ACL of LIO", acl),
	[LIO_ACL_ATTRIBUTES] = IMPORT_TABLE("an ACL of LIO", acl_attributes),
	[LIO_MAPPED_LUN] = IMPORT_TABLE("a mapped LUN of LIO", mapped_lun),
};
