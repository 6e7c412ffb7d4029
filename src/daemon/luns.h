/* SPDX-License-Identifier: BSD-2-Clause */
/* luns.h: what "disk.img", "cd:boot.iso", "scsi:/dev/sg1", "ram:1G" and "null:1T"
 * on the command line mean. */
#ifndef DAEMON_LUNS_H
#define DAEMON_LUNS_H

#include "backstore/backstore.h"
#include "daemon/options.h"
#include "device/device.h"

struct bs_file_config;

/* lun_file: a file of a LUN's, or what is beside it; NULL after a line on
 * stderr. */
struct bs *lun_file(const struct bs_file_config *cfg);
/* lun_memory: more memory of a LUN's, for what is beside it. */
struct bs *lun_memory(const char *spec, uint64_t size, uint32_t block);
/*
 * lun_open opens one LUN. NULL after a line on stderr. loops[i] is worker i's,
 * borrowed until the store is closed.
 */
struct bs *lun_open(const struct options *o, const char *spec,
		    struct io_loop *const *loops);

/* "scsi:/dev/sg1": a SCSI device of this machine; NULL after a line on stderr. */
bool lun_is_scsi(const char *spec);
struct pass *lun_open_scsi(const struct options *o, const char *spec,
			   struct io_loop *const *loops);

/* lun_open_cd: an image for a CD/DVD drive; NULL: why[] (size bytes) says. */
struct bs *lun_open_cd(const struct options *o, const char *path,
		       struct io_loop *const *loops, char *why, size_t size);

/* lun_is_empty_drive: "cd:" alone, which has nothing to open. */
bool lun_is_empty_drive(const char *spec);

/* lun_type: which type of unit it is to be. */
enum dev_type lun_type(const char *spec);

#endif
