/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model.h: the configuration of iserd as plain data: what a file or a command
 * line says, with all defaults. nouns.c has a row for each field. A model is
 * constant once it is checked (model_check.c), and names in it are resolved to
 * indexes.
 */
#ifndef DAEMON_CONFIG_MODEL_H
#define DAEMON_CONFIG_MODEL_H

#include <stdarg.h>
#include <string.h>

#include "daemon/config/doc.h"
#include "daemon/config/errors.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/options.h"
#include "device/device.h"

#define CFG_VERSION	   1
#define CFG_TARGETS_MAX	   4096u
#define CFG_BACKSTORES_MAX 16384u
#define CFG_LUN_MAX	   16383u
#define CFG_TGT_ID_MAX	   2147483647u
#define CFG_NAME_MAX	   64u /* bytes of the name of a backstore or group */

/* The first member of each noun. The documents are parts of those of the model, which has
 * them. */
struct cfg_head {
	const char *name; /* NULL: the noun has none */
	json_t *given;	  /* as it was read */
	/* in its canonical form: fields in the order of iserd.yaml(5), without those
	 * that have their default, each with the text that cfg_value_text writes */
	json_t *document;
	const struct cfg_places *places; /* of what was given */
	bool is_bad;			 /* an error was reported in it */
};

/* cfg_head_at returns where a field of a noun is, the noun if the field is not given or NULL;
 * line 0: nowhere. */
struct cfg_place cfg_head_at(const struct cfg_head *h, const char *field);

struct cfg_texts {
	const char **v;
	unsigned n;
};

struct cfg_account {
	struct cfg_head head;
	const char *user, *secret_file;
	struct cfg_texts initiators; /* with wildcards; none: every name */
	struct cfg_texts names;	     /* resolved: in the form of RFC 3722 */
};

/* An address with the number of its leading bits that count; IPv4 mapped. */
struct cfg_prefix {
	uint8_t address[16];
	unsigned bits;
};

struct cfg_auth {
	struct cfg_head head;
	struct {
		struct cfg_account *v;
		unsigned n;
	} accounts, mutual; /* mutual: at most one */
	struct cfg_texts initiators, addresses, algorithms;
	/* resolved */
	struct cfg_texts names; /* of initiators, in the form of RFC 3722 */
	struct cfg_prefix *prefixes; /* of addresses */
};

/* In place of the index of an auth group. */
enum cfg_auth_index {
	CFG_AUTH_ANY = -1,
	CFG_AUTH_NONE = -2,
};

enum cfg_discovery {
	CFG_DISCOVERY_PERMITTED,
	CFG_DISCOVERY_ALL,
	CFG_DISCOVERY_NONE,
};

struct cfg_portal {
	struct cfg_head head;
	unsigned tag;
	unsigned wire_tag; /* resolved: as initiators see it */
	struct cfg_texts listen, verbs_listen, announce;
	unsigned transports;
	enum verbs_wish verbs;
	enum cfg_discovery discovery;
	const char *discovery_auth;
	int auth; /* of discovery_auth: an index or enum cfg_auth_index */
};

struct cfg_initiators {
	struct cfg_head head;
	struct cfg_texts names;	   /* with wildcards */
	struct cfg_texts prepared; /* resolved: in the form of RFC 3722 */
};

enum cfg_cache {
	CFG_WRITE_BACK,
	CFG_WRITE_THROUGH,
};

struct cfg_backstore {
	struct cfg_head head;
	const char *store; /* as lun_spec.h reads it, without suffixes */
	const char *pi, *key, *new_key;
	struct lun_options lun;
	const char *serial, *vendor, *product, *revision; /* NULL: default */
	uint8_t uuid[16];				  /* zeros: default */
	struct dev_id naa, eui;				  /* none: default */
	bool rotational;
	enum cfg_cache cache;
	struct dev_limits limits;
};

/* cfg_given_uuid returns the field uuid; NULL: not given. */
static inline const uint8_t *cfg_given_uuid(const struct cfg_backstore *b)
{
	static const uint8_t none[16];

	return memcmp(b->uuid, none, 16) ? b->uuid : NULL;
}

struct cfg_lun {
	struct cfg_head head; /* the name is the number */
	const char *backstore;
	bool read_only;
	unsigned lun, index; /* resolved: of the backstore */
};

struct cfg_luns {
	struct cfg_lun *v;
	unsigned n;
};

struct cfg_map {
	struct cfg_head head;
	struct cfg_texts initiators; /* names, wildcards, initiator groups */
	const char *account;	     /* of CHAP; NULL: any, or none */
	struct cfg_luns luns;
	struct cfg_texts names; /* resolved: the groups written out */
};

struct cfg_redirect {
	struct cfg_head head;
	struct cfg_texts initiators; /* as of cfg_map; none: every one */
	struct cfg_texts addresses;  /* HOST[:PORT] */
	bool permanent;
	struct cfg_texts names; /* resolved: the groups written out */
};

struct cfg_target {
	struct cfg_head head; /* the name is as the file has it */
	char name[224];	      /* in the form of RFC 3722 */
	const char *alias, *auth_group;
	unsigned tgt_id; /* the tid of iser-tgtadm(8); 0: none */
	struct cfg_texts portal_groups;
	struct cfg_luns luns;
	struct {
		struct cfg_map *v;
		unsigned n;
	} maps;
	struct {
		struct cfg_redirect *v;
		unsigned n;
	} redirects;
	enum digests_wish digests;
	unsigned data_timeout;
	unsigned max_connections;
	bool strict;
	/* resolved */
	int auth; /* an index or enum cfg_auth_index */
	unsigned *portals;
};

struct cfg_alua {
	struct cfg_head head; /* the name is the id */
	unsigned state;	      /* index of the words */
	struct cfg_texts ports;
	bool preferred;
	struct dev_group group; /* resolved */
};

/* This gateway: `cluster` of the file. */
struct cfg_cluster {
	struct cfg_head head;
	struct cluster_options options;
	char gateway[GATEWAY_SIZE]; /* resolved: its name */
};

struct cfg_model {
	struct cfg_head head;
	struct cfg_arena
		arena; /* of pointers below; others are to the document */
	struct cfg_places places;
	json_t *index; /* of each noun by its name, by section */
	unsigned version;
	bool is_command_line;	/* made of a command line, not of a file */
	struct options options; /* the process: the fields of `daemon` */
	struct {
		struct cfg_backstore *v;
		unsigned n;
	} backstores;
	struct {
		struct cfg_auth *v;
		unsigned n;
	} auths;
	struct {
		struct cfg_portal *v;
		unsigned n;
	} portals;
	struct {
		struct cfg_initiators *v;
		unsigned n;
	} initiators;
	struct {
		struct cfg_target *v;
		unsigned n;
	} targets;
	struct {
		struct cfg_alua *v;
		unsigned n;
	} aluas;
	struct {
		struct cfg_cluster *v;
		unsigned n; /* 0 or 1 */
	} cluster;
};

/* cfg_model_free frees the model and all it points to; m may be NULL. */
void cfg_model_free(struct cfg_model *m);

/*
 * cfg_model_read makes a model of the text of a file and checks it: fields,
 * references and what must not be given together, but no other file. The caller
 * frees the model by cfg_model_free. NULL: e has at least one error.
 */
struct cfg_model *cfg_model_read(const char *text, size_t len,
				 struct cfg_errors *e);
/* cfg_model_of_document does the same for a document, which must not change any more. */
struct cfg_model *cfg_model_of_document(json_t *doc, struct cfg_errors *e);
/* cfg_model_of_options makes the model of a command line; its options are a copy
 * of *o. NULL: e has at least one error, or none after a message. */
struct cfg_model *cfg_model_of_options(const struct options *o,
				       struct cfg_errors *e);
/* cfg_document_of_options returns the document of a command line, which the caller
 * releases. NULL: no memory, or after a message. (For cfg_model_of_options.) */
json_t *cfg_document_of_options(const struct options *o);
/* cfg_model_check resolves names and checks what belongs together. False: e has
 * at least one error. (For the functions above.) */
bool cfg_model_check(struct cfg_model *m, struct cfg_errors *e);
/* cfg_complain reports an error at a field of the object whose head is h; texts name it
 * `object`. field NULL: at the object itself. */
void cfg_complain(struct cfg_errors *e, struct cfg_head *h, const char *object,
		  const char *field, const char *fmt, va_list ap);
/* cfg_model_load reads the file at path as cfg_model_read does; relative paths in it begin in
 * its directory. */
struct cfg_model *cfg_model_load(const char *path, struct cfg_errors *e);

/* cfg_dump returns the model as YAML in its canonical form, which the caller
 * frees. NULL: no memory. */
char *cfg_dump(const struct cfg_model *m);

/* How two backstores differ. */
enum cfg_difference {
	CFG_SAME,
	CFG_DIFFERS_LIVE, /* only in fields that a unit in use can change */
	CFG_DIFFERS,
};

/* cfg_backstore_compare returns how the fields of two backstores differ. */
enum cfg_difference cfg_backstore_compare(const struct cfg_backstore *a,
					  const struct cfg_backstore *b);
/* cfg_backstore_find returns the backstore of this name, or NULL. */
struct cfg_backstore *cfg_backstore_find(const struct cfg_model *m,
					 const char *name);

enum cfg_change_kind {
	CFG_ADDED,
	CFG_REMOVED,
	CFG_CHANGED,
};

/* A difference between two models. Texts are borrowed for the call. */
struct cfg_change {
	enum cfg_change_kind kind;
	const char *path;      /* "targets.iqn.2026-01.x:y.luns.0" */
	const char *from, *to; /* values on one line; NULL: none */
	bool needs_restart;    /* apply refuses the change */
};

/* cfg_diff calls fn for each difference, in the order of iserd.yaml(5). False:
 * no memory, and not all differences were reported. */
bool cfg_diff(const struct cfg_model *from, const struct cfg_model *to,
	      void (*fn)(void *arg, const struct cfg_change *c), void *arg);

#endif
