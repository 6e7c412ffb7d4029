/* SPDX-License-Identifier: BSD-2-Clause */
/* opening.h: what open.c and measure.c share. */
#ifndef BACKSTORE_URING_OPENING_H
#define BACKSTORE_URING_OPENING_H

#include <sys/stat.h>
#include <time.h>

#include "backstore/uring/file.h"

/* The store that is being opened, and the buffer for the error message. */
struct bsf_opening {
	const struct bs_file_config *cfg;
	struct bs_file *file;
	struct stat st;
	char *why;
	size_t why_size;
};

/* bsf_refuse writes the message and returns err. */
__attribute__((format(printf, 3, 4))) int
bsf_refuse(struct bsf_opening *o, int err, const char *format, ...);
/* bsf_is_device returns whether o->st is that of a block device. */
bool bsf_is_device(const struct bsf_opening *o);
/* bsf_measure opens the file, which its caller closes, and sets its sizes. Returns 0, or
 * -Exxx with a message. */
int bsf_measure(struct bsf_opening *o);
/* Between two tries while another process has a lock. */
extern const struct timespec bsf_lock_pause;

#endif
