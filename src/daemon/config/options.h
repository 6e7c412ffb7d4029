/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h: the configuration of iserd: its fields (schema.h has a
 * row for each) and the command line that sets them. */
#ifndef DAEMON_CONFIG_OPTIONS_H
#define DAEMON_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trace.h"
#include "daemon/log/log_line.h"
#include "daemon/serve/admission.h"
#include "io/io.h"

#ifndef OPENISER_VERSION
# define OPENISER_VERSION "unknown"
#endif

/* Exit statuses of iserd; --help and iserd(8) list them. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_ERROR = 1,	  /* a failure that is not below */
	EXIT_USAGE = 2,	  /* the command line is not valid */
	EXIT_STORE = 3,	  /* a LUN can't be opened, or its size is not valid */
	EXIT_NETWORK = 4, /* an address or port can't be used */
};

#define LUNS_MAX     256
#define LISTEN_MAX   64
#define GROUPS_MAX   16
#define ANNOUNCE_MAX 16
#define GATEWAY_SIZE 64u  /* of the name of a gateway, with the NUL */
#define METRICS_PORT 9860 /* of --metrics, where it names none */

enum verbs_wish {
	VERBS_AUTO,
	VERBS_OFF,
	VERBS_ON,
};

enum failover_wish { /* schema.c: failovers */
	FAILOVER_AUTOMATIC,
	FAILOVER_MANUAL,
};

enum order_wish { /* schema.c: orders */
	IN_ORDER,
	IN_ANY_ORDER,
};

enum crc_wish {
	CRC_ALWAYS,
	CRC_OPTIONAL,
};

enum digests_wish {
	DIGESTS_NONE,
	DIGESTS_PREFER,
};

/* The scope CFG_LUN of schema.h. */
struct lun_options {
	bool read_only, buffered, sendfile, removable, shared, cluster;
	uint64_t sanitize_rate; /* bytes per second; 0: no limit */
	unsigned scsi_timeout;	/* seconds; scsi: units */
	unsigned block_size;	/* bytes; 0: that of the medium */
	unsigned protection;	/* type of protection information; 0: none */
};

struct log_options {
	enum trace_level level; /* at the start; log.trace.level is in force */
	enum log_format format;
};

struct chap_options {
	const char *user, *secret_file; /* of initiators; NULL: no CHAP */
	const char *mutual_user, *mutual_secret_file; /* of the target */
	bool discovery; /* for discovery sessions, too */
};

/* This gateway among those that share units. */
struct cluster_options {
	const char *gateway; /* its name; NULL: that of the host */
	unsigned number;     /* 0: not given */
	const char *directory;
	enum failover_wish failover;
	unsigned beacon, silence, patience; /* milliseconds */
};

struct address_list {
	const char *v[LISTEN_MAX];
	unsigned n;
};

struct start_options {
	const char *config; /* the file; NULL: the command line */
	bool check;	    /* only validate the file */
	bool takeover;	    /* from the iserd at `control` */
};

/* Set by options_parse and constant from then on, unless a comment says
 * otherwise. Texts are borrowed from argv. */
struct options {
	/* LUNs */
	const char *luns[LUNS_MAX];
	unsigned nluns;
	struct lun_options lun; /* of all of them */
	/* portals */
	const char *listen[LISTEN_MAX];
	unsigned nlisten;
	bool listen_default;		  /* there was no --listen */
	struct address_list verbs_listen; /* RDMA devices only */
	struct address_list announce;	  /* in place of listen */
	unsigned transports;		  /* NET_ALLOW_* */
	enum verbs_wish verbs;
	/* target */
	char name[224];			/* IQN */
	const char *groups[GROUPS_MAX]; /* ALUA, as groups.h reads them */
	unsigned ngroups;
	unsigned port_id; /* relative target port identifier */
	struct cluster_options cluster;
	struct {
		unsigned data_timeout;	 /* seconds; tgt_config.data_time */
		unsigned discovery_time; /* seconds */
		unsigned max_connections;
		unsigned recovery_level; /* ErrorRecoveryLevel */
		unsigned max_r2t;	 /* MaxOutstandingR2T */
		/* DataPDUInOrder, DataSequenceInOrder */
		enum order_wish pdu_in_order, sequence_in_order;
		enum crc_wish mpa_crc;
	} session;
	enum digests_wish digests;
	struct chap_options chap;
	bool strict; /* --compat strict */
	struct start_options start;
	/* the process */
	enum io_backend io;
	unsigned workers;
	struct {
		unsigned spin_us;
		bool pin;
	} threads;
	struct log_options log;
	const char *control; /* path of the management socket, or NULL */
	const char *state;   /* directory for what outlives iserd, or NULL */
	struct {
		/* an address or a path where they are served by HTTP */
		const char *metrics;
		unsigned slow_command; /* ms; 0: none is logged */
	} numbers;
	bool allow_lost;
	const char *user; /* to become once everything is open, or NULL */
	struct admission_limits limits; /* listen.c reduces its copy of them */
};

/* options_default sets the default of every field, without LUNs. */
void options_default(struct options *o);

/*
 * options_parse reads the command line. Returns true to go on; false to end
 * with *code, after --help, --version or a message on standard error. Texts in
 * *o are borrowed from argv, whose order changes.
 */
bool options_parse(struct options *o, int argc, char **argv, int *code);

#endif
