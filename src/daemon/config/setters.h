/* SPDX-License-Identifier: BSD-2-Clause */
/* setters.h: setters (base/opt.h) of the fields that are more than one number,
 * word or text. into is a struct options. */
#ifndef DAEMON_CONFIG_SETTERS_H
#define DAEMON_CONFIG_SETTERS_H

#include "daemon/config/schema.h"

/* The parts of fields with colons, for their rows. */
extern const struct cfg_parts cfg_max_sessions, cfg_max_startups,
	cfg_max_discovery, cfg_penalty, cfg_address_block, cfg_max_iops;
/* The words of --transport, for its row. */
extern const char *const cfg_transports[];

/* cfg_size_text writes a number of bytes in the shortest form without a fraction,
 * such as "64M". */
void cfg_size_text(uint64_t v, char *out, size_t size);
/* Each checks the value of the option of its name and stores it; OPT_BAD: why
 * has the reason. These four append to a list and borrow the text. */
opt_setter cfg_set_listen, cfg_set_verbs_listen, cfg_set_alua, cfg_set_announce;
/* These store one value. */
opt_setter cfg_set_metrics, cfg_set_name, cfg_set_block_size, cfg_set_transport,
	cfg_set_gateway;
/* cfg_set_compat returns OPT_STOPPED for "help". */
opt_setter cfg_set_compat;
/* These store the parts of a value like "N:M"; a part that is left out keeps its
 * default, and is lowered to the whole. */
opt_setter cfg_set_max_sessions, cfg_set_max_startups, cfg_set_max_discovery;
opt_setter cfg_set_penalty, cfg_set_address_block;

/* Getters (struct cfg_row) of the fields of their names; from is a struct
 * options. */
void cfg_get_transport(const void *from, char *out, size_t size);
void cfg_get_compat(const void *from, char *out, size_t size);

/* limits.c: setters and getters of a struct cfg_backstore. */
opt_setter cfg_set_max_iops, cfg_set_max_bandwidth;
void cfg_get_max_iops(const void *from, char *out, size_t size);
void cfg_get_max_bandwidth(const void *from, char *out, size_t size);

/* identity.c: setters and getters of a struct cfg_backstore. */
opt_setter cfg_set_uuid, cfg_set_naa, cfg_set_eui;
void cfg_get_uuid(const void *from, char *out, size_t size);
void cfg_get_naa(const void *from, char *out, size_t size);
void cfg_get_eui(const void *from, char *out, size_t size);
/* cfg_uuid_parse reads a UUID in that form, or as 32 digits. False: another form, or
 * all zero. */
bool cfg_uuid_parse(const char *text, uint8_t uuid[16]);
/* cfg_uuid_text writes a UUID in the form of RFC 9562 §4, with a NUL. */
void cfg_uuid_text(const uint8_t uuid[16], char out[37]);

/*
 * checks.c: each checks one entry of a list in a configuration file, and stores
 * nothing: into is not used.
 */
/* An iSCSI name with wildcards; such a name or the name of an initiator group;
 * the name of a group; an address with a number of bits; a relative target port
 * identifier. */
opt_setter cfg_check_initiator, cfg_check_initiator_or_group, cfg_check_name,
	cfg_check_address, cfg_check_algorithm;
opt_setter cfg_check_prefix, cfg_check_port;
/* cfg_is_initiator_name returns whether the text begins like an iSCSI name or has
 * a wildcard, so is not the name of an initiator group. */
bool cfg_is_initiator_name(const char *text);
/* cfg_prepare_initiator writes an iSCSI name with wildcards, which
 * cfg_check_initiator accepts, to out in the form of RFC 3722. */
void cfg_prepare_initiator(char out[224], const char *text);
/* cfg_parse_prefix reads "10.0.0.0/8" or "fd00::/8", in the form of IPv6, and
 * returns false if the text has another form. */
bool cfg_parse_prefix(const char *text, uint8_t address[16], unsigned *bits);

#endif
