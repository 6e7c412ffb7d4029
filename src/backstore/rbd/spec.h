/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spec.h: the text of an image,
 * POOL[/NAMESPACE]/IMAGE[@SNAP][,conf=FILE][,id=NAME][,keyring=FILE].
 */
#ifndef BACKSTORE_RBD_SPEC_H
#define BACKSTORE_RBD_SPEC_H

#include <limits.h>
#include <stddef.h>

/* The texts are in text[], so the struct must not be copied. NULL: not given. */
struct bsrbd_spec {
	const char *pool, *space, *image, *snap;
	const char *conf;    /* the configuration file of Ceph */
	const char *id;	     /* the client's name without "client." */
	const char *keyring; /* the file with the client's key */
	char text[PATH_MAX];
};

/* bsrbd_spec_parse takes the text apart. It returns NULL, or what is wrong and
 * what to do. */
const char *bsrbd_spec_parse(struct bsrbd_spec *s, const char *text);

#endif
