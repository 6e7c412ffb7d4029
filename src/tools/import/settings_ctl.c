/* SPDX-License-Identifier: BSD-2-Clause */
/* settings_ctl.c: what ctl.conf can have: ctl.conf(5) and, for the options of a LUN,
 * ctladm(8) of FreeBSD 15. */
#include "base/bytes.h"
#include "tools/import/settings.h"

static const char isns[] =
	"iser-isns(8) registers the targets of iserd; start it for this server";
static const char nvme[] = "it is for NVMe over Fabrics; keep ctld for it";
static const char own_pages[] =
	"iserd reports its own values; nothing to do unless an initiator "
	"depends on this one";

/* clang-format off */
static const struct import_setting file[] = {
	IMPORT_TAKEN("auth-group"), IMPORT_TAKEN("lun"),
	IMPORT_TAKEN("portal-group"), IMPORT_TAKEN("target"),
	/* of ctld itself */
	IMPORT_MUTE("debug"), IMPORT_MUTE("pidfile"), IMPORT_MUTE("timeout"),
	IMPORT_MUTE("isns-period"), IMPORT_MUTE("isns-timeout"),
	IMPORT_USUAL("controller", NULL, .why = nvme),
	IMPORT_USUAL("isns-server", NULL, .why = isns),
	IMPORT_USUAL("maxproc", NULL, IMPORT_FIELD("daemon", "max-startups")),
	IMPORT_USUAL("transport-group", NULL, .why = nvme),
};

static const struct import_setting auth[] = {
	IMPORT_TAKEN("auth-type"), IMPORT_TAKEN("chap"),
	IMPORT_TAKEN("chap-mutual"), IMPORT_TAKEN("initiator-name"),
	IMPORT_TAKEN("initiator-portal"),
	IMPORT_USUAL("host-address", NULL, .why = nvme),
	IMPORT_USUAL("host-nqn", NULL, .why = nvme),
};

static const struct import_setting portal[] = {
	IMPORT_TAKEN("discovery-auth-group"), IMPORT_TAKEN("discovery-filter"),
	IMPORT_TAKEN("foreign"), IMPORT_TAKEN("listen"),
	IMPORT_TAKEN("listen-iser"), IMPORT_TAKEN("redirect"),
	IMPORT_TAKEN("tag"),
	IMPORT_MUTE("offload"),
	IMPORT_USUAL("dscp", NULL), IMPORT_USUAL("option", NULL),
	IMPORT_USUAL("options", NULL), IMPORT_USUAL("pcp", NULL),
};

static const struct import_setting target[] = {
	IMPORT_TAKEN("alias"), IMPORT_TAKEN("auth-group"),
	IMPORT_TAKEN("auth-type"), IMPORT_TAKEN("chap"),
	IMPORT_TAKEN("chap-mutual"), IMPORT_TAKEN("initiator-name"),
	IMPORT_TAKEN("initiator-portal"), IMPORT_TAKEN("lun"),
	IMPORT_TAKEN("port"), IMPORT_TAKEN("portal-group"),
	IMPORT_TAKEN("redirect"),
	IMPORT_MUTE("offload"),
};

static const struct import_setting lun[] = {
	IMPORT_TAKEN("backend"), IMPORT_TAKEN("blocksize"),
	IMPORT_TAKEN("device-type"), IMPORT_TAKEN("name"),
	IMPORT_TAKEN("number"), IMPORT_TAKEN("option"),
	IMPORT_TAKEN("options"), IMPORT_TAKEN("path"), IMPORT_TAKEN("serial"),
	IMPORT_TAKEN("size"),
	/* the number among all LUNs of CTL, which initiators do not see */
	IMPORT_MUTE("ctl-lun"),
	IMPORT_USUAL("device-id", NULL,
		     .why = "units of iserd always have an NAA identifier, "
			    "which initiators use before this name; give "
			    "naa or serial to choose it"),
};

static const struct import_setting options[] = {
	IMPORT_TAKEN("eui"), IMPORT_TAKEN("naa"),
	IMPORT_TAKEN("product"), IMPORT_TAKEN("readonly"),
	IMPORT_TAKEN("removable"), IMPORT_TAKEN("revision"),
	IMPORT_TAKEN("rpm"), IMPORT_TAKEN("vendor"),
	IMPORT_TAKEN("writecache"),
	/* how the kernel of FreeBSD works */
	IMPORT_MUTE("num_threads"), IMPORT_MUTE("readcache"),
	IMPORT_MUTE("reordering"), IMPORT_MUTE("serseq"),
	IMPORT_USUAL("avail-threshold", NULL, .why = own_pages),
	IMPORT_USUAL("capacity", NULL),
	IMPORT_USUAL("file", NULL, IMPORT_FIELD("backstore", "store")),
	IMPORT_USUAL("formfactor", NULL, .why = own_pages),
	IMPORT_USUAL("ha_role", NULL, IMPORT_FIELD("ALUA group", "state")),
	IMPORT_USUAL("ident_info", NULL, .why = own_pages),
	IMPORT_USUAL("insecure_tpc", "off"),
	IMPORT_USUAL("pblockoffset", NULL, .why = own_pages),
	IMPORT_USUAL("pblocksize", NULL, .why = own_pages),
	IMPORT_USUAL("pool-avail-threshold", NULL, .why = own_pages),
	IMPORT_USUAL("pool-used-threshold", NULL, .why = own_pages),
	IMPORT_USUAL("provisioning_type", NULL, .why = own_pages),
	IMPORT_USUAL("reftemperature", NULL, .why = own_pages),
	IMPORT_USUAL("scsiname", NULL, .why = own_pages),
	IMPORT_USUAL("temperature", NULL, .why = own_pages),
	IMPORT_USUAL("text_ident_info", NULL, .why = own_pages),
	IMPORT_USUAL("ublockoffset", NULL, .why = own_pages),
	IMPORT_USUAL("ublocksize", NULL, .why = own_pages),
	IMPORT_USUAL("unmap", "on"),
	IMPORT_USUAL("unmap_max_descr", NULL, .why = own_pages),
	IMPORT_USUAL("unmap_max_lba", NULL, .why = own_pages),
	IMPORT_USUAL("used-threshold", NULL, .why = own_pages),
	IMPORT_USUAL("uuid", NULL),
	IMPORT_USUAL("write_same_max_lba", NULL, .why = own_pages),
};
/* clang-format on */

const struct import_table import_ctl_tables[CTL_TABLES] = {
	[CTL_FILE] = IMPORT_TABLE("ctl.conf", file),
	[CTL_AUTH] = IMPORT_TABLE("an auth-group of ctld", auth),
	[CTL_PORTAL] = IMPORT_TABLE("a portal-group of ctld", portal),
	[CTL_TARGET] = IMPORT_TABLE("a target of ctld", target),
	[CTL_LUN] = IMPORT_TABLE("a LUN of ctld", lun),
	[CTL_LUN_OPTIONS] = IMPORT_TABLE("a LUN of ctld", options),
};
