/* SPDX-License-Identifier: BSD-2-Clause */
/* open.h: opens LUNs by their texts (lun_spec.h): "disk.img", "cd:boot.iso",
 * "scsi:/dev/sg1", "ram:1G", "null:1T", "rbd:pool/image". */
#ifndef DAEMON_LUNS_OPEN_H
#define DAEMON_LUNS_OPEN_H

#include "backstore/backstore.h"
#include "daemon/config/lun_spec.h"
#include "daemon/config/options.h"
#include "device/device.h"

struct bs_file_config;

/* lun_file opens a file of a LUN, or the file of its protection information.
 * NULL after a message. */
struct bs *lun_file(const struct bs_file_config *cfg);
/* lun_pi_memory makes memory for the protection information of a ram: LUN. NULL
 * after a message. */
struct bs *lun_pi_memory(const char *spec, uint64_t size, uint32_t block);
/*
 * lun_open opens the store of a LUN that is neither a scsi: LUN nor an empty
 * drive, with its encrypting filter. loops[i] is that of worker i, borrowed
 * until the store is closed. *memory is that of an earlier process for a ram: LUN,
 * or has fd -1; lun_open owns its descriptor. Afterwards *memory describes the
 * memory of a ram: LUN, whose fd the store owns. may_wait: for the lock of a
 * client of Ceph that is gone. NULL after a message.
 */
struct bs *lun_open(const struct options *o, const struct lun_spec *s,
		    struct lun_memory *memory, bool may_wait,
		    struct io_loop *const *loops);

/* lun_open_scsi opens a SCSI device of this machine (LUN_SCSI), which the caller
 * closes. loops as above. NULL after a message. */
struct pass *lun_open_scsi(const struct options *o, const struct lun_spec *s,
			   struct io_loop *const *loops);

/* lun_open_cd opens an image for a CD/DVD drive. NULL: why[] (size bytes) has
 * the reason. */
struct bs *lun_open_cd(const struct options *o, const char *path,
		       struct io_loop *const *loops, char *why, size_t size);

#endif
