/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.h: connecting a set of paths, for connect.c. */
#ifndef LIB_PATH_CALLS_H
#define LIB_PATH_CALLS_H

#include "lib/internal.h"

/* lib_paths_connect is iser_connect_paths_start for more than one URL, or for
 * paths=all. */
struct iser_session *
lib_paths_connect(struct iser_context *ctx, const struct iser_url *urls,
		  unsigned n,
		  void (*done)(void *arg, struct iser_session *s, int err),
		  void *arg, int *err);

#endif
