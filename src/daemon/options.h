/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h: the command line of iserd. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trace.h"
#include "io/io.h"
#include "net/conn.h"

#ifndef OPENISER_VERSION
# define OPENISER_VERSION "unknown"
#endif

/* What iserd ends with; in --help and in the man page. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_ERROR = 1,	  /* anything else */
	EXIT_USAGE = 2,	  /* the command line makes no sense */
	EXIT_STORE = 3,	  /* a LUN can't be opened, or its size is bad */
	EXIT_NETWORK = 4, /* an address or port can't be used */
};

#define LUNS_MAX   256
#define LISTEN_MAX 64
#define GROUPS_MAX 16

struct options {
	const char *listen[LISTEN_MAX];
	unsigned nlisten;
	const char *verbs_listen[LISTEN_MAX]; /* RDMA devices only */
	unsigned nverbs_listen;
	const char *luns[LUNS_MAX];
	unsigned nluns;
	char name[224]; /* IQN */
	bool read_only, buffered, pin, prefer_digests, sendfile, removable,
		shared, allow_lost;
	uint64_t sanitize_rate; /* bytes per second; 0: no limit */
	unsigned scsi_timeout;	/* seconds; scsi: units */
	uint32_t block_size;	/* 0: by the medium */
	uint8_t protection;	/* type of protection information; 0: none */
	enum io_backend io;
	unsigned workers;
	enum trace_level log;
	unsigned spin_us;
	const char *control; /* path of the management socket, or NULL */
	const char *state;   /* directory for what outlives us, or NULL */
	const char *groups[GROUPS_MAX]; /* ALUA, as groups.h reads them */
	unsigned ngroups;
	unsigned port_id; /* relative target port identifier; 0: 1 */
	const char *user; /* to become once everything is open */
	const char *chap_user, *chap_secret_file;
	const char *chap_mutual_user, *chap_mutual_secret_file;
	bool discovery_auth;
	unsigned transports; /* NET_ALLOW_* */
	enum verbs_wish {
		VERBS_AUTO,
		VERBS_OFF,
		VERBS_ON
	} verbs;
	bool strict; /* the standards to the letter: RDMA-first, WRITE SAME */
};

/*
 * options_parse reads the command line. Returns true to go on; false to end
 * with *code (after --help, or a message on stderr). Strings are argv's.
 */
bool options_parse(struct options *o, int argc, char **argv, int *code);

/* size_parse reads "64M", "1T", "512": bytes, with binary suffixes K, M, G, T
 * or P. False: no number, an unknown suffix, or beyond 2^63 - 1. */
bool size_parse(const char *text, uint64_t *size);

/* say writes "iserd: ..." as one line to stderr. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
