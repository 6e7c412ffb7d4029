/* SPDX-License-Identifier: BSD-2-Clause */
/* schema.c: the configuration fields of iserd, the kinds of LUNs and the suffixes
 * of LUNs, a row each. */
#include "daemon/config/schema.h"

#include "base/bytes.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/options.h"
#include "daemon/config/setters.h"

static const char *const ios[] = { "auto", "uring", "epoll", NULL };
static const char *const verbs[] = { "auto", "off", "on", NULL };
static const char *const compats[] = { "linux", "strict", NULL };
static const char *const orders[] = { "yes", "no", NULL };
static const char *const failovers[] = { "automatic", "manual", NULL };
static const char *const crcs[] = { "always", "optional", NULL };
static const char *const digests[] = { "none", "prefer", NULL };
static const char *const blocks[] = { "512", "4096", NULL };
static const char *const levels[] = { "error", "warning", "notice",
				      "info",  "debug",	  NULL };
static const char *const log_formats[] = { "auto", "text", "json", "journald",
					   NULL };

/* clang-format off */
static const struct cfg_row rows[] = {
	{ { .name = "listen", .letter = 'l', .arg = "ADDR[:PORT]",
	    .repeats = true, OPT_CALL(cfg_set_listen),
	    .help = "where to listen: an address, a port or both; 0.0.0.0 and "
		    "[::] are all addresses, port 0 is any free one; may be "
		    "repeated" },
	  .type = CFG_ADDRESS, .scope = CFG_PORTAL,
	  .otherwise = "127.0.0.1:3260" },
	{ { .name = "announce", .arg = "ADDR[:PORT]", .repeats = true,
	    OPT_CALL(cfg_set_announce),
	    .help = "an address to report to initiators in place of those of "
		    "listen, if a router translates addresses, or for other "
		    "gateways; may be repeated" },
	  .type = CFG_ADDRESS, .scope = CFG_PORTAL, .apply = CFG_AT_ONCE,
	  .otherwise = "those of --listen" },
	{ { .name = "name", .letter = 'n', .arg = "IQN",
	    OPT_CALL(cfg_set_name), .help = "the target's name" },
	  .type = CFG_STRING, .scope = CFG_TARGET,
	  .otherwise = "one with the host's name" },
	{ { .name = "read-only", .letter = 'r',
	    OPT_FLAG(struct options, lun.read_only), .help = "refuse writes" },
	  .type = CFG_BOOL, .scope = CFG_LUN },
	{ { .name = "removable", OPT_FLAG(struct options, lun.removable),
	    .help = "let initiators eject the medium of a disk" },
	  .type = CFG_BOOL, .scope = CFG_LUN },
	{ { .name = "sanitize-rate", .arg = "SIZE",
	    OPT_SIZE(struct options, lun.sanitize_rate, 0, OPT_SIZE_MAX),
	    .help = "bytes per second that SANITIZE OVERWRITE writes at most" },
	  .type = CFG_SIZE, .scope = CFG_LUN, .unit = "bytes per second",
	  .otherwise = "no limit" },
	{ { .name = "scsi-timeout", .arg = "SECONDS", .initial = "60",
	    OPT_NUMBER(struct options, lun.scsi_timeout, 1, 86400),
	    .help = "end a command of a scsi: LUN that takes longer; a command "
		    "that may last long gets at least two hours" },
	  .type = CFG_DURATION, .scope = CFG_LUN, .unit = "seconds" },
	{ { .name = "data-timeout", .arg = "SECONDS", .initial = "30",
	    OPT_NUMBER(struct options, session.data_timeout, 1, 86400),
	    .help = "drop a connection that owes data of a WRITE, or does not "
		    "read, and moves less than 64 KiB in this time" },
	  .type = CFG_DURATION, .scope = CFG_TARGET, .unit = "seconds" },
	{ { .name = "block-size", .letter = 'b', .arg = "512|4096",
	    OPT_CALL(cfg_set_block_size),
	    .at = OPT_AT(struct options, lun.block_size, unsigned), .words = blocks,
	    .help = "logical block size" },
	  .type = CFG_ENUM, .scope = CFG_LUN, .unit = "bytes",
	  .kept = OPT_KIND_NUMBER,
	  .otherwise = "512, or that of the block device" },
	{ { .name = "protection", .arg = "TYPE",
	    OPT_NUMBER(struct options, lun.protection, 1, 3),
	    .help = "protection information of type 1, 2 or 3; that of a file "
		    "is kept in PATH.pi, or where ,pi=FILE says" },
	  .type = CFG_NUMBER, .scope = CFG_LUN, .otherwise = "none" },
	{ { .name = "buffered", OPT_FLAG(struct options, lun.buffered),
	    .help = "open files through the page cache, without O_DIRECT" },
	  .type = CFG_BOOL, .scope = CFG_LUN },
	{ { .name = "sendfile", OPT_FLAG(struct options, lun.sendfile),
	    .help = "send reads of ram: LUNs by sendfile (slower on loopback)" },
	  .type = CFG_BOOL, .scope = CFG_LUN },
	{ { .name = "io", .arg = "auto|uring|epoll", .initial = "auto",
	    OPT_WORD(struct options, io, ios),
	    .help = "wait for events by io_uring, or by epoll and threads" },
	  .type = CFG_ENUM, .scope = CFG_DAEMON },
	{ { .name = "workers", .letter = 'w', .arg = "N", .initial = "1",
	    OPT_NUMBER(struct options, workers, 1, 64),
	    .help = "threads that serve connections" },
	  .type = CFG_NUMBER, .scope = CFG_DAEMON },
	{ { .name = "pin", OPT_FLAG(struct options, threads.pin),
	    .help = "bind each thread to a CPU" },
	  .type = CFG_BOOL, .scope = CFG_DAEMON },
	{ { .name = "spin", .arg = "US", .initial = "0",
	    OPT_NUMBER(struct options, threads.spin_us, 0, 10000),
	    .help = "poll so many microseconds before a thread sleeps" },
	  .type = CFG_DURATION, .scope = CFG_DAEMON, .unit = "microseconds" },
	{ { .name = "digests", .arg = "none|prefer", .initial = "none",
	    OPT_WORD(struct options, digests, digests),
	    .help = "what to choose where an initiator offers both CRC32C "
		    "digests and none" },
	  .type = CFG_ENUM, .scope = CFG_TARGET },
	{ { .name = "max-connections", .arg = "N", .initial = "1",
	    OPT_NUMBER(struct options, session.max_connections, 1, 16),
	    .help = "connections that a session may have (MaxConnections)" },
	  .type = CFG_NUMBER, .scope = CFG_TARGET },
	{ { .name = "chap-user", .arg = "NAME",
	    OPT_TEXT(struct options, chap.user),
	    .help = "initiators must log in by CHAP with this name" },
	  .type = CFG_STRING, .scope = CFG_TARGET },
	{ { .name = "chap-secret-file", .arg = "FILE",
	    OPT_TEXT(struct options, chap.secret_file),
	    .help = "the secret of --chap-user is in FILE (12 to 128 bytes)" },
	  .type = CFG_PATH, .scope = CFG_TARGET, .apply = CFG_AT_RELOAD,
	  .is_secret = true },
	{ { .name = "chap-mutual-user", .arg = "NAME",
	    OPT_TEXT(struct options, chap.mutual_user),
	    .help = "authenticate the target with this name to initiators that "
		    "ask for it" },
	  .type = CFG_STRING, .scope = CFG_TARGET },
	{ { .name = "chap-mutual-secret-file", .arg = "FILE",
	    OPT_TEXT(struct options, chap.mutual_secret_file),
	    .help = "the secret of --chap-mutual-user is in FILE" },
	  .type = CFG_PATH, .scope = CFG_TARGET, .apply = CFG_AT_RELOAD,
	  .is_secret = true },
	{ { .name = "discovery-auth", OPT_FLAG(struct options, chap.discovery),
	    .help = "demand CHAP of discovery sessions, too" },
	  .type = CFG_BOOL, .scope = CFG_DAEMON },
	{ { .name = "transport", .arg = "LIST", .initial = "tcp,iser,switch",
	    OPT_CALL(cfg_set_transport), .words = cfg_transports,
	    .help = "connections that are accepted: tcp (iSCSI), iser (RDMA "
		    "from the first byte), switch (iSER after a login over "
		    "TCP)" },
	  .type = CFG_LIST, .scope = CFG_PORTAL, .get = cfg_get_transport },
	{ { .name = "verbs", .arg = "auto|off|on", .initial = "auto",
	    OPT_WORD(struct options, verbs, verbs),
	    .help = "serve on RDMA devices, too: if there are any, never, or "
		    "refuse to start without one" },
	  .type = CFG_ENUM, .scope = CFG_PORTAL },
	{ { .name = "verbs-listen", .arg = "ADDR[:PORT]", .repeats = true,
	    OPT_CALL(cfg_set_verbs_listen),
	    .help = "an address for RDMA devices only; may be repeated" },
	  .type = CFG_ADDRESS, .scope = CFG_PORTAL,
	  .otherwise = "those of --listen" },
	{ { .name = "compat", .arg = "linux|strict", .initial = "linux",
	    OPT_CALL(cfg_set_compat), .words = compats,
	    .help = "follow Linux, or the letter of the standards, for iSER "
		    "from the first byte, WRITE SAME with UNMAP and others; "
		    "help lists the rules over iSER" },
	  .type = CFG_ENUM, .scope = CFG_TARGET, .get = cfg_get_compat },
	{ { .name = "max-sessions", .arg = "N[:M]", .initial = "1024:256",
	    OPT_CALL(cfg_set_max_sessions),
	    .help = "sessions, and those from one address" },
	  .type = CFG_NUMBERS, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE,
	  .parts = &cfg_max_sessions },
	{ { .name = "max-startups", .arg = "START:RATE:FULL[:M]",
	    .initial = "128:30:512:64", OPT_CALL(cfg_set_max_startups),
	    .help = "connections that have not logged in: from START on, the "
		    "oldest is dropped for a new one with a probability of "
		    "RATE %, which grows to 100 % at FULL; M from one "
		    "address" },
	  .type = CFG_NUMBERS, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE,
	  .parts = &cfg_max_startups },
	{ { .name = "max-discovery", .arg = "N[:M]", .initial = "128:16",
	    OPT_CALL(cfg_set_max_discovery),
	    .help = "discovery sessions, and those from one address" },
	  .type = CFG_NUMBERS, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE,
	  .parts = &cfg_max_discovery },
	{ { .name = "discovery-time", .arg = "SECONDS", .initial = "60",
	    OPT_NUMBER(struct options, session.discovery_time, 1, 86400),
	    .help = "drop a discovery session that lasts longer" },
	  .type = CFG_DURATION, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE, .unit = "seconds" },
	{ { .name = "error-recovery-level", .arg = "N", .initial = "0",
	    OPT_NUMBER(struct options, session.recovery_level, 0, 2),
	    .help = "ErrorRecoveryLevel to accept: 1 recovers PDUs that a "
		    "data digest finds damaged (TCP), 2 also lost connections" },
	  .type = CFG_NUMBER, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE },
	{ { .name = "max-outstanding-r2t", .arg = "N", .initial = "8",
	    OPT_NUMBER(struct options, session.max_r2t, 1, 65535),
	    .help = "R2Ts of a command that may be outstanding at once over "
		    "TCP; 1 with --error-recovery-level above 0, unless "
		    "--data-sequence-in-order is no" },
	  .type = CFG_NUMBER, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE },
	{ { .name = "data-pdu-in-order", .arg = "yes|no", .initial = "yes",
	    OPT_WORD(struct options, session.pdu_in_order, orders),
	    .help = "no: an initiator may ask to send the data of a sequence in "
		    "any order" },
	  .type = CFG_ENUM, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE },
	{ { .name = "data-sequence-in-order", .arg = "yes|no",
	    .initial = "yes",
	    OPT_WORD(struct options, session.sequence_in_order, orders),
	    .help = "no: an initiator may ask for sequences of data in any "
		    "order" },
	  .type = CFG_ENUM, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE },
	{ { .name = "mpa-crc", .arg = "always|optional", .initial = "always",
	    OPT_WORD(struct options, session.mpa_crc, crcs),
	    .help = "CRC of MPA over software iWARP; optional: an initiator may "
		    "do without it" },
	  .type = CFG_ENUM, .scope = CFG_DAEMON },
	{ { .name = "login-rate", .arg = "N", .initial = "200",
	    OPT_NUMBER(struct options, limits.per_second, 0, 1000000),
	    .help = "connections per second from one address, five times as "
		    "many at once; 0: no limit" },
	  .type = CFG_NUMBER, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE,
	  .unit = "connections per second" },
	{ { .name = "penalty", .arg = "FIRST:MAX", .initial = "1:60",
	    OPT_CALL(cfg_set_penalty),
	    .help = "seconds for which CHAP of an account and initiator is "
		    "refused at an address after the third failure, doubled "
		    "by each further one; 0:0: never" },
	  .type = CFG_NUMBERS, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE, .unit = "seconds",
	  .parts = &cfg_penalty },
	{ { .name = "address-block", .arg = "V4:V6", .initial = "32:64",
	    OPT_CALL(cfg_set_address_block),
	    .help = "leading bits of an IPv4 and of an IPv6 address that count "
		    "as one address" },
	  .type = CFG_NUMBERS, .scope = CFG_DAEMON, .unit = "bits",
	  .parts = &cfg_address_block },
	{ { .name = "control", .arg = "PATH", OPT_TEXT(struct options, control),
	    .help = "listen for iserctl at this Unix socket" },
	  .type = CFG_PATH, .scope = CFG_DAEMON },
	{ { .name = "takeover", OPT_FLAG(struct options, start.takeover),
	    .help = "take over from the iserd at --control, which ends: its "
		    "listening sockets, ram: LUNs and reservations" },
	  .type = CFG_BOOL, .scope = CFG_DAEMON },
	{ { .name = "metrics", .arg = "ADDR:PORT|PATH",
	    OPT_CALL(cfg_set_metrics),
	    .at = OPT_AT(struct options, numbers.metrics, const char *),
	    .help = "serve /metrics, /healthz, /readyz and a web page by HTTP "
		    "at this address or Unix socket; all are read only" },
	  .type = CFG_ADDRESS, .scope = CFG_DAEMON, .kept = OPT_KIND_TEXT },
	{ { .name = "slow-command", .arg = "MS", .initial = "0",
	    OPT_NUMBER(struct options, numbers.slow_command, 0, 3600000),
	    .help = "log each command that takes so long; 0: none" },
	  .type = CFG_DURATION, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE, .unit = "milliseconds" },
	{ { .name = "state", .arg = "DIR", OPT_TEXT(struct options, state),
	    .help = "save persistent reservations and mode pages in this "
		    "directory" },
	  .type = CFG_PATH, .scope = CFG_DAEMON },
	{ { .name = "allow-lost-reservations",
	    OPT_FLAG(struct options, allow_lost),
	    .help = "start where saved reservations are damaged, too: the LUN "
		    "waits for REPLACE LOST RESERVATION" },
	  .type = CFG_BOOL, .scope = CFG_DAEMON },
	{ { .name = "alua", .arg = "ID:STATE:PORT[,PORT][:preferred]",
	    .repeats = true, OPT_CALL(cfg_set_alua),
	    .help = "a target port group, of this iserd or of another one on "
		    "the same LUNs; STATE is optimized, non-optimized, "
		    "standby, unavailable or transitioning; may be repeated" },
	  .type = CFG_STRING, .scope = CFG_TARGET },
	{ { .name = "shared", OPT_FLAG(struct options, lun.shared),
	    .help = "another iserd with --shared may serve the same files, in "
		    "turns by --alua" },
	  .type = CFG_BOOL, .scope = CFG_LUN },
	{ { .name = "cluster", OPT_FLAG(struct options, lun.cluster),
	    .help = "other gateways, that is iserd with other numbers, serve "
		    "the same file, block device or rbd: image; one at a time "
		    "executes commands" },
	  .type = CFG_BOOL, .scope = CFG_LUN },
	{ { .name = "cluster-number", .arg = "N",
	    OPT_NUMBER(struct options, cluster.number, 1, 16),
	    .help = "the number of this gateway, different at each: its target "
		    "port group and its target portal group tag" },
	  .type = CFG_NUMBER, .scope = CFG_CLUSTER },
	{ { .name = "cluster-gateway", .arg = "NAME",
	    OPT_CALL(cfg_set_gateway),
	    .at = OPT_AT(struct options, cluster.gateway, const char *),
	    .help = "the name of this gateway, different at each" },
	  .type = CFG_STRING, .scope = CFG_CLUSTER, .kept = OPT_KIND_TEXT,
	  .otherwise = "the host's name" },
	{ { .name = "cluster-directory", .arg = "DIR",
	    OPT_TEXT(struct options, cluster.directory),
	    .help = "where the gateways of this machine keep what they share "
		    "of files and block devices; the record of an rbd: image "
		    "is in its pool" },
	  .type = CFG_PATH, .scope = CFG_CLUSTER },
	{ { .name = "cluster-failover", .arg = "automatic|manual",
	    .initial = "automatic",
	    OPT_WORD(struct options, cluster.failover, failovers),
	    .help = "what happens to the units of a gateway that is silent: "
		    "this gateway takes them, or waits for an initiator or "
		    "iserctl cluster take" },
	  .type = CFG_ENUM, .scope = CFG_CLUSTER },
	{ { .name = "cluster-beacon", .arg = "MS", .initial = "1000",
	    OPT_NUMBER(struct options, cluster.beacon, 10, 60000),
	    .help = "how often a gateway asks the owner of a unit for a sign "
		    "of life" },
	  .type = CFG_DURATION, .scope = CFG_CLUSTER, .unit = "milliseconds" },
	{ { .name = "cluster-silence", .arg = "MS", .initial = "5000",
	    OPT_NUMBER(struct options, cluster.silence, 100, 600000),
	    .help = "after which silence the owner counts as gone; three "
		    "times the beacon at least" },
	  .type = CFG_DURATION, .scope = CFG_CLUSTER, .unit = "milliseconds" },
	{ { .name = "cluster-patience", .arg = "MS", .initial = "5000",
	    OPT_NUMBER(struct options, cluster.patience, 100, 600000),
	    .help = "how long a hand-over may take before the owner is fenced" },
	  .type = CFG_DURATION, .scope = CFG_CLUSTER, .unit = "milliseconds" },
	{ { .name = "port-id", .arg = "N", .initial = "1",
	    OPT_NUMBER(struct options, port_id, 1, 65535),
	    .help = "the relative target port identifier" },
	  .type = CFG_NUMBER, .scope = CFG_TARGET },
	{ { .name = "user", .arg = "NAME", OPT_TEXT(struct options, user),
	    .help = "become this user once everything is open" },
	  .type = CFG_STRING, .scope = CFG_DAEMON },
	{ { .name = "log", .arg = "LEVEL", .initial = "notice",
	    OPT_WORD(struct options, log.level, levels),
	    .help = "log error, warning, notice, info or debug, and what is "
		    "more severe" },
	  .type = CFG_ENUM, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE },
	{ { .name = "log-format", .arg = "auto|text|json|journald",
	    .initial = "auto",
	    OPT_WORD(struct options, log.format, log_formats),
	    .help = "lines of text with full time stamps, of JSON, or with the "
		    "priorities of the journal; auto: journald if standard "
		    "error is the journal, else text" },
	  .type = CFG_ENUM, .scope = CFG_DAEMON, .apply = CFG_AT_ONCE },
	{ { .name = "help", .letter = 'h', OPT_STOP, .help = "this text" },
	  .type = CFG_ACTION },
	{ { .name = "version", .letter = 'V', OPT_STOP, .help = "the version" },
	  .type = CFG_ACTION },
};

static const struct cfg_kind kinds[LUN_KINDS] = {
	[LUN_FILE] = { "", "PATH", "a file or a block device, as a disk" },
	[LUN_CD] = { "cd:", "PATH",
		     "an ISO image, as the medium of a CD/DVD drive; without "
		     "PATH the drive is empty (iserctl insert)" },
	[LUN_SCSI] = { "scsi:", "DEVICE",
		       "a SCSI device of this machine: /dev/sgN, "
		       "/dev/bsg/H:C:T:L, /dev/sdX, /dev/srN" },
	[LUN_RAM] = { "ram:", "SIZE",
		      "memory, as a disk that is lost at the end" },
	[LUN_NULL] = { "null:", "SIZE",
		       "a disk that reads as zeros and drops writes" },
	[LUN_NBD] = { "nbd:", "URI",
		      "an export of an NBD server such as nbdkit or qemu-nbd: "
		      "nbd://HOST/EXPORT or nbd:nbd+unix:///?socket=PATH" },
	[LUN_RBD] = { "rbd:", "IMAGE",
		      "an image of Ceph, POOL/IMAGE, POOL/NAMESPACE/IMAGE or "
		      "POOL/IMAGE@SNAPSHOT; ,conf=FILE ,id=NAME and "
		      ",keyring=FILE say how to reach the cluster" },
};

#define CAN_BE_ENCRYPTED \
 (1u << LUN_FILE | 1u << LUN_CD | 1u << LUN_RAM | 1u << LUN_RBD | 1u << LUN_NBD)
static const char not_encrypted[] =
	"a null: LUN stores nothing to encrypt, and the data of a scsi: LUN "
	"are those of its device; leave out the key";

#define HAS_NAMES	 (CAN_BE_ENCRYPTED | 1u << LUN_NULL)
#define HAS_IDENTITY (HAS_NAMES | 1u << LUN_SCSI)
static const char no_names[] =
	"a scsi: LUN reports the names of its device; leave it out";

static const struct cfg_suffix suffixes[] = {
	{ { { .name = "uuid", .arg = "UUID", OPT_TEXT(struct lun_spec, uuid),
	      .help = "with this identity (iserd.yaml(5))" },
	    .type = CFG_STRING, .scope = CFG_LUN },
	  .kinds = HAS_IDENTITY, .refusal = "leave it out" },
	{ { { .name = "serial", .arg = "TEXT",
	      OPT_TEXT(struct lun_spec, serial),
	      .help = "with this unit serial number" },
	    .type = CFG_STRING, .scope = CFG_LUN },
	  .kinds = HAS_NAMES, .refusal = no_names },
	{ { { .name = "naa", .arg = "DIGITS", OPT_TEXT(struct lun_spec, naa),
	      .help = "with this NAA identifier" },
	    .type = CFG_STRING, .scope = CFG_LUN },
	  .kinds = HAS_NAMES, .refusal = no_names },
	{ { { .name = "eui", .arg = "DIGITS", OPT_TEXT(struct lun_spec, eui),
	      .help = "with this EUI-64; these four suffixes may be anywhere" },
	    .type = CFG_STRING, .scope = CFG_LUN },
	  .kinds = HAS_NAMES, .refusal = no_names },
	{ { { .name = "pi", .arg = "FILE", OPT_TEXT(struct lun_spec, pi),
	      .help = "with the protection information of a file or block "
		      "device in FILE (before ,key=)" },
	    .type = CFG_PATH, .scope = CFG_LUN },
	  .place = 1, .kinds = 1u << LUN_FILE,
	  .refusal = "only files and block devices have such a file; leave "
		     "out ,pi=" },
	{ { { .name = "key", .arg = "FILE", OPT_TEXT(struct lun_spec, key),
	      .help = "encrypted (AES-256-XTS) with the key in FILE, which is "
		      "made if the medium is new" },
	    .type = CFG_PATH, .scope = CFG_LUN, .is_secret = true },
	  .place = 2, .kinds = CAN_BE_ENCRYPTED, .refusal = not_encrypted },
	{ { { .name = "new-key", .arg = "FILE",
	      OPT_TEXT(struct lun_spec, new_key),
	      .help = "encrypted with a new key; data of the medium become "
		      "unreadable" },
	    .type = CFG_PATH, .scope = CFG_LUN, .is_secret = true },
	  .place = 2, .kinds = CAN_BE_ENCRYPTED, .refusal = not_encrypted },
};
/* clang-format on */

const struct cfg_row *cfg_rows(size_t *n)
{
	*n = ARRAY_LEN(rows);
	return rows;
}

const struct cfg_kind *cfg_kinds(void)
{
	return kinds;
}

const struct cfg_suffix *cfg_suffixes(size_t *n)
{
	*n = ARRAY_LEN(suffixes);
	return suffixes;
}

const char *cfg_type_name(enum cfg_type type)
{
	static const char *const names[] = {
		[CFG_BOOL] = "boolean",	      [CFG_NUMBER] = "number",
		[CFG_DURATION] = "duration",  [CFG_SIZE] = "size",
		[CFG_STRING] = "string",      [CFG_ADDRESS] = "address",
		[CFG_PATH] = "path",	      [CFG_ENUM] = "word",
		[CFG_LIST] = "list of words", [CFG_NUMBERS] = "numbers",
		[CFG_ACTION] = "action",
	};

	return names[type];
}

const char *cfg_scope_name(enum cfg_scope scope)
{
	static const char *const names[] = {
		[CFG_DAEMON] = "daemon",   [CFG_TARGET] = "target",
		[CFG_PORTAL] = "portal",   [CFG_LUN] = "lun",
		[CFG_CLUSTER] = "cluster",
	};

	return names[scope];
}

const char *cfg_apply_name(enum cfg_apply apply)
{
	static const char *const names[] = {
		[CFG_AT_START] = "start",
		[CFG_AT_RELOAD] = "reload",
		[CFG_AT_ONCE] = "at once",
	};

	return names[apply];
}
