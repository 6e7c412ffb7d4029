/* SPDX-License-Identifier: BSD-2-Clause */
/* open.h: opens LUNs by their texts: "disk.img", "cd:boot.iso",
 * "scsi:/dev/sg1", "ram:1G", "null:1T". */
#ifndef DAEMON_LUNS_OPEN_H
#define DAEMON_LUNS_OPEN_H

#include "backstore/backstore.h"
#include "daemon/config/options.h"
#include "device/device.h"

struct bs_file_config;

/* lun_file opens a file of a LUN, or the file of its protection information.
 * NULL after a message. */
struct bs *lun_file(const struct bs_file_config *cfg);
/* lun_memory makes memory for the protection information of a ram: LUN. NULL
 * after a message. */
struct bs *lun_memory(const char *spec, uint64_t size, uint32_t block);
/*
 * lun_open opens the store of a LUN that is neither a scsi: LUN nor an empty
 * drive. loops[i] is that of worker i, borrowed until the store is closed. NULL
 * after a message.
 */
struct bs *lun_open(const struct options *o, const char *spec,
		    struct io_loop *const *loops);

/* lun_is_file returns whether the LUN is a disk in a file or block device. */
bool lun_is_file(const char *spec);

/* lun_is_scsi returns whether the LUN is a SCSI device of this machine, which
 * lun_open_scsi opens; NULL after a message. */
bool lun_is_scsi(const char *spec);
struct pass *lun_open_scsi(const struct options *o, const char *spec,
			   struct io_loop *const *loops);

/* lun_open_cd opens an image for a CD/DVD drive. NULL: why[] (size bytes) has
 * the reason. */
struct bs *lun_open_cd(const struct options *o, const char *path,
		       struct io_loop *const *loops, char *why, size_t size);

/* lun_is_empty_drive returns whether the LUN is a drive without a medium. */
bool lun_is_empty_drive(const char *spec);

/* lun_type returns the type of the unit. */
enum dev_type lun_type(const char *spec);

#endif
