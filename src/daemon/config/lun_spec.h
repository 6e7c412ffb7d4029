/* SPDX-License-Identifier: BSD-2-Clause */
/* lun_spec.h: the text of a LUN, such as "disk.img,key=disk.key": what kind it
 * is of, and its suffixes, by the rows of schema.c. */
#ifndef DAEMON_CONFIG_LUN_SPEC_H
#define DAEMON_CONFIG_LUN_SPEC_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum lun_kind {
	LUN_FILE, /* a file or block device: no prefix */
	LUN_CD,
	LUN_SCSI,
	LUN_RAM,
	LUN_NULL,
	LUN_RBD,
	LUN_NBD,
	LUN_KINDS,
};

/* The texts are in text[], or after the struct, so the struct must not be
 * copied. */
struct lun_spec {
	enum lun_kind kind;
	const char *store;   /* the LUN without its suffixes: "ram:1G" */
	const char *operand; /* the store without the prefix: "1G" */
	/* the values of suffixes; NULL: the LUN does not have the suffix */
	const char *pi, *key, *new_key, *uuid, *serial, *naa, *eui;
	char text[2 * PATH_MAX];
};

/* The memory of a ram: LUN, which one iserd hands over to the next. fd: a memfd;
 * -1: none. */
struct lun_memory {
	int fd;
	uint64_t size;	  /* bytes */
	uint8_t uuid[16]; /* the identity of the store */
};

/* lun_spec_parse takes the text of a LUN apart. False after a message: the text
 * is too long, or a suffix has no value or does not fit the kind of LUN. */
bool lun_spec_parse(struct lun_spec *s, const char *text);
/* lun_spec_new makes a LUN of its parts, which are copied; all but store may be
 * NULL. The caller frees the result. NULL: no memory. */
struct lun_spec *lun_spec_new(const char *store, const char *pi,
			      const char *key, const char *new_key);
/* lun_spec_kind returns what kind of LUN a store without suffixes is, and sets
 * *operand to what follows the prefix. */
enum lun_kind lun_spec_kind(const char *store, const char **operand);
/* lun_spec_has_suffix returns the name of a suffix that the text has, or
 * NULL. */
const char *lun_spec_has_suffix(const char *text);
/* lun_spec_is_empty_drive returns whether the LUN is a CD/DVD drive without a
 * medium. */
bool lun_spec_is_empty_drive(const struct lun_spec *s);

#endif
