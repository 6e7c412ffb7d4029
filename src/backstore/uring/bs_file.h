/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bs_file.h: files and block devices as backstores, by the event loop's file
 * operations. O_DIRECT where file system and alignment allow it, else
 * buffered and honest about the write cache.
 */
#ifndef BACKSTORE_URING_BS_FILE_H
#define BACKSTORE_URING_BS_FILE_H

#include "backstore/backstore.h"
#include "io/io.h"

struct bs_file_config {
	const char *path;
	bool read_only;
	bool buffered; /* never O_DIRECT */
	bool shared;   /* others that say so may have it open, too */
	/* Whoever had it locked may be about to end: ask so often again, 25 ms
	 * apart. */
	unsigned lock_retries;
	uint32_t block_size; /* 0: what the medium says, or 512 */
	/* Not 0: a file of records of so many bytes beside another store: its
	 * blocks, as many as are wanted. */
	uint32_t grain;
	/* loops[i] is worker i's; borrowed, must outlive the backstore. */
	struct io_loop *const *loops;
	unsigned nloops;
};

/*
 * bs_file_open opens path. On failure returns NULL, *err is -Exxx and
 * why[] (size bytes) says in one sentence what is wrong with which file and
 * what to do.
 */
struct bs *bs_file_open(const struct bs_file_config *cfg, int *err, char *why,
			size_t size);

#endif
