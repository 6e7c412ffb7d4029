/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgtadm.h: inside iser-tgtadm, which takes the command line of tgtadm(8) of tgt
 * and carries it out by an iserd. options.c reads the command line; link.c talks
 * to iserd; model.c fetches the configuration in force, numbers its targets and
 * brings the edited configuration into force; target.c, access.c, lun.c,
 * account.c, portal.c and sys.c edit it; show.c and stat.c print.
 *
 * Targets have numbers (tid), which are the field tgt-id of the configuration.
 * What belongs to a target has its number in the name: the auth group "tgt-TID"
 * and the backstores "tgt-TID-LUN". The auth group "tgt-accounts" has all
 * accounts, whether or not they are bound.
 */
#ifndef TOOLS_TGTADM_TGTADM_H
#define TOOLS_TGTADM_TGTADM_H

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/json_get.h"
#include "tools/rpc_link.h"

#define TGTADM_WHY	 600
#define TGTADM_NO_LUN	 UINT64_MAX
#define TGTADM_TID_MAX	 INT32_MAX
#define TGTADM_NAME_SIZE 64 /* bytes of the name of a group or backstore */
#define TGTADM_ACCOUNTS	 "tgt-accounts"
#define TGTADM_DISCOVERY "tgt-discovery"

/* Exit statuses are those of tgtadm: errno values of Linux, and 1. */
enum tgtadm_exit {
	TGTADM_DONE = 0,
	TGTADM_UNKNOWN_WORD = 1, /* of --op or --mode */
	TGTADM_REFUSED = EINVAL,
	TGTADM_NO_DAEMON = ENOTCONN,
};

enum tgtadm_op {
	TGTADM_NEW,
	TGTADM_DELETE,
	TGTADM_SHOW,
	TGTADM_BIND,
	TGTADM_UNBIND,
	TGTADM_UPDATE,
	TGTADM_START,
	TGTADM_STAT,
	TGTADM_OPS,
};

enum tgtadm_mode {
	TGTADM_SYS,
	TGTADM_TARGET,
	TGTADM_LUN,
	TGTADM_PORTAL,
	TGTADM_SESSION,
	TGTADM_CONN,
	TGTADM_ACCOUNT,
	TGTADM_LLD,
	TGTADM_MODES,
};

/* A command line. Texts are borrowed from argv; NULL: not given. */
struct tgtadm_request {
	int op, mode; /* enum tgtadm_op, enum tgtadm_mode; -1: not given */
	int tid;      /* -1: not given */
	uint64_t sid, lun;
	unsigned cid, host, control_port;
	bool has_host, force, outgoing, debug;
	const char *lld, *name, *value, *params;
	const char *path, *bstype, *bsoflags, *bsopts, *blocksize, *device;
	const char *target, *address, *initiator, *user;
	char *password; /* overwritten in argv; the caller wipes and frees it */
	/* the account that the target of this OCF agent is to require */
	const char *agent_user;
};

struct tgtadm {
	const struct tgtadm_request *r;
	const char *socket;
	struct rpc_link link;
	int code; /* of the last error of iserd; 0: none */
	/* the configuration as it was fetched, and as it shall become */
	json_t *before, *config;
	char version[20];
	/* the backstore that is closed and opened again by the change */
	char reopened[TGTADM_NAME_SIZE + 1];
	char made[1024]; /* the secret file that this command wrote; "": none */
	char why[TGTADM_WHY];
	json_t *notes; /* texts for the administrator, if the change is made */
};

/* ---- say.c ---- */

/* tgtadm_program sets the name in front of messages. */
void tgtadm_program(const char *argv0);
/* tgtadm_say prints a line on standard error, with control characters escaped. */
void tgtadm_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* tgtadm_note adds a line that is printed once the change is in force. */
void tgtadm_note(struct tgtadm *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* tgtadm_name_of_program returns the name that tgtadm_program set. */
const char *tgtadm_name_of_program(void);
/* tgtadm_refuse prints a line and returns TGTADM_REFUSED. */
int tgtadm_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What tgtadm says in the same situation. */
extern const char tgtadm_no_target[], tgtadm_target_exists[], tgtadm_no_lun[],
	tgtadm_lun_exists[], tgtadm_rule_exists[], tgtadm_no_rule[],
	tgtadm_user_exists[], tgtadm_no_user[], tgtadm_has_outgoing[],
	tgtadm_no_session[], tgtadm_no_connection[], tgtadm_target_active[],
	tgtadm_no_driver[], tgtadm_invalid[];

/* ---- options.c ---- */

/* tgtadm_options reads a command line into *r. Returns true to go on; false: the
 * program ends with *code, after a message or the help. */
bool tgtadm_options(struct tgtadm_request *r, int argc, char **argv, int *code);

/* A parameter of "--params name=value,name=value", borrowed from *next. */
struct tgtadm_param {
	const char *name, *value; /* value NULL: no "=" */
};

/* tgtadm_param takes the first parameter of the text at *next, which it cuts and
 * advances. False: none is left. */
bool tgtadm_param(char **next, struct tgtadm_param *p);
/* tgtadm_number reads a number that C can write (0x10, 010, 16), of at most max.
 * Returns 0, EINVAL or ERANGE. */
int tgtadm_number(const char *text, uint64_t max, uint64_t *out);

/* ---- secret.c: the secrets of accounts ---- */

/* tgtadm_secret_read sets r->password from standard input ("-"), or from the file
 * $ISER_TGTADM_PASSWORD_FILE if it is NULL. Returns 0, or the exit status after a
 * message; 0 with r->password NULL: there is no such variable. */
int tgtadm_secret_read(struct tgtadm_request *r);
/* tgtadm_secret_save writes the secret of the request to a new file that only the
 * user of iserd can read, and its path to t->made. Returns the exit status. */
int tgtadm_secret_save(struct tgtadm *t);
/* tgtadm_secret_remove removes a file that tgtadm_secret_save made; other files
 * stay. */
void tgtadm_secret_remove(const struct tgtadm *t, const char *path);

/* ---- link.c ---- */

/* tgtadm_call sends a request and returns its result, which the caller releases;
 * params is taken over and may be NULL. NULL: t->why has the reason, and t->code
 * the error code of iserd; 0: there is no answer. */
json_t *tgtadm_call(struct tgtadm *t, const char *method, json_t *params);
/* tgtadm_failed prints the error of tgtadm_call; returns the exit status. */
int tgtadm_failed(const struct tgtadm *t);

/* ---- model.c ---- */

/* tgtadm_change runs edit, which changes t->config, and brings the result into
 * force. If another program changes the configuration meanwhile, edit runs again.
 * Returns the exit status: that of edit, or of the change, after a message. */
int tgtadm_change(struct tgtadm *t, int (*edit)(struct tgtadm *t));
/* tgtadm_difference returns the JSON merge patch (RFC 7396) that makes `to` of
 * `from`, which the caller releases; an empty object: they are equal. NULL: no
 * memory. */
json_t *tgtadm_difference(const json_t *from, const json_t *to);
/* tgtadm_number_targets gives each target of the configuration that has no tgt-id
 * the lowest number that is free, and removes the auth group that an earlier target
 * with this number left. False: no memory. */
bool tgtadm_number_targets(json_t *config);
/* tgtadm_member returns the member of an object, which gets an empty one of `make` if it has none.
 * NULL: no memory. */
json_t *tgtadm_member(json_t *object, const char *key, json_t *(*make)(void));
/* tgtadm_section returns the mapping of this name in the configuration, and adds an
 * empty one if there is none. NULL: no memory. */
json_t *tgtadm_section(struct tgtadm *t, const char *name);
/* tgtadm_target returns the target with this number, and its name in *name; NULL:
 * there is none. name may be NULL. */
json_t *tgtadm_target(const json_t *config, int tid, const char **name);
/* tgtadm_tid_of returns the number of a target of a numbered configuration. */
int tgtadm_tid_of(const json_t *target);
/* tgtadm_text_of returns the text of a value, or "" if it is none. */
const char *tgtadm_text_of(const json_t *v);
/* tgtadm_is_yes returns whether a member is a true boolean of iserd.yaml(5). */
bool tgtadm_is_yes(const json_t *object, const char *key);
/* tgtadm_list_find returns the index of a text in a list; -1: it is not in it, or
 * list is NULL. */
int tgtadm_list_find(const json_t *list, const char *text);
/* tgtadm_uses returns how many LUNs of all targets have the backstore. */
unsigned tgtadm_uses(const json_t *config, const char *backstore);
/* tgtadm_backstore_of returns the name of the backstore of a LUN. */
const char *tgtadm_backstore_of(const json_t *lun);
/* tgtadm_drop_backstore removes a backstore that iser-tgtadm made and that no LUN
 * has any more. */
void tgtadm_drop_backstore(struct tgtadm *t, const char *name);

/* ---- sessions.c ---- */

/* tgtadm_sessions returns the sessions of iserd that are logged in to the target
 * (NULL: to any target), which the caller releases. NULL: the error of
 * tgtadm_call. */
json_t *tgtadm_sessions(struct tgtadm *t, const char *target);
/* tgtadm_address writes the address of a session without its port to out. */
void tgtadm_address(const json_t *session, char *out, size_t size);

/* ---- access.c: the rules of a target, as an auth group ---- */

/* tgtadm_rules returns the auth group with the rules of a target, borrowed. NULL:
 * the target admits no initiator. For showing. */
const json_t *tgtadm_rules(const json_t *config, const json_t *target);
/* tgtadm_has_rules returns whether an auth group lists an address or a name. */
bool tgtadm_has_rules(const json_t *group);
/* tgtadm_is_offline returns whether the target is offline: it has rules, but admits
 * no initiator. */
bool tgtadm_is_offline(const json_t *config, const json_t *target);
/* tgtadm_own_rules returns the target's own auth group for changes: it is made as a
 * copy of the group that the target has. NULL after a message. */
json_t *tgtadm_own_rules(struct tgtadm *t, json_t *target);
/* tgtadm_settle_rules makes the target use its own auth group, if that admits
 * initiators and the target is not to be offline. */
void tgtadm_settle_rules(struct tgtadm *t, json_t *target, bool offline);
/* tgtadm_lacks_account returns whether an OCF agent has asked for CHAP at its target, whose
 * auth group has no account yet, or no longer: then the target admits no initiator. */
bool tgtadm_lacks_account(const struct tgtadm *t, const json_t *group);
/* tgtadm_close makes the target admit no initiator, and removes its own auth group
 * unless another target or a portal group has it. */
void tgtadm_close(struct tgtadm *t, json_t *target);
/* tgtadm_drop_rules removes an auth group that no target or portal group has. */
void tgtadm_drop_rules(json_t *config, const char *group);
/* tgtadm_is_all returns whether rules admit all addresses, because ALL is bound. */
bool tgtadm_is_all(const json_t *rules);
extern const char tgtadm_all_v4[], tgtadm_all_v6[];

/* ---- portal.c ---- */

#define TGTADM_PORTAL_SIZE 160

/* tgtadm_portal_name writes an address of a portal group with its port, as tgtadm
 * shows it: "10.0.0.1:3260", "[::1]:3260". */
void tgtadm_portal_name(const char *listen, char out[TGTADM_PORTAL_SIZE]);

/* ---- the operations: each returns the exit status after a message ---- */

int tgtadm_target_new(struct tgtadm *t);
int tgtadm_target_delete(struct tgtadm *t);
int tgtadm_target_update(struct tgtadm *t);
int tgtadm_target_bind(struct tgtadm *t);
int tgtadm_target_unbind(struct tgtadm *t);
int tgtadm_lun_new(struct tgtadm *t);
int tgtadm_lun_delete(struct tgtadm *t);
int tgtadm_lun_update(struct tgtadm *t);
int tgtadm_account_new(struct tgtadm *t);
int tgtadm_account_delete(struct tgtadm *t);
/* tgtadm_account_change binds an account, or unbinds it. */
int tgtadm_account_change(struct tgtadm *t);
int tgtadm_portal_new(struct tgtadm *t);
int tgtadm_portal_delete(struct tgtadm *t);
int tgtadm_conn_delete(struct tgtadm *t);
int tgtadm_sys_update(struct tgtadm *t);
int tgtadm_sys_delete(struct tgtadm *t);
int tgtadm_show(struct tgtadm *t);
int tgtadm_stat(struct tgtadm *t);

/* tgtadm_run carries out t->r. Returns the exit status. */
int tgtadm_run(struct tgtadm *t);

#endif
