/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bs_file.h: files and block devices as backstores, by the file operations of
 * the event loop. O_DIRECT if file system and alignment permit it, else
 * buffered, with BS_CAP_WRITE_CACHE.
 */
#ifndef BACKSTORE_URING_BS_FILE_H
#define BACKSTORE_URING_BS_FILE_H

#include "backstore/backstore.h"
#include "io/io.h"

struct bs_file_config {
	const char *path;
	bool read_only;
	bool buffered; /* never O_DIRECT */
	/* other processes that open it as shared may have it open, too */
	bool shared;
	/* Retries while another process has the lock and may be about to end,
	 * 25 ms apart. */
	unsigned lock_retries;
	uint32_t block_size; /* 0: the medium's own, or 512 */
	/* Not 0: a file of records of so many bytes beside another store; its
	 * size is unlimited. */
	uint32_t grain;
	/* loops[i] belongs to worker i; borrowed until the store is closed */
	struct io_loop *const *loops;
	unsigned nloops;
};

/*
 * bs_file_open opens path. On failure it returns NULL, *err is -Exxx, and why
 * (size bytes) gets a sentence: which file, what is wrong, what to do.
 */
struct bs *bs_file_open(const struct bs_file_config *cfg, int *err, char *why,
			size_t size);
/* bs_file_look returns 0 if bs_file_open could open the file, as far as that can be said
 * without its lock; else -Exxx, with the sentence. Without loops. */
int bs_file_look(const struct bs_file_config *cfg, char *why, size_t size);

#endif
