/* SPDX-License-Identifier: BSD-2-Clause */
/* block.h: the commands of direct access block devices, and functions about
 * the backstore of a unit that other folders call. command.h describes
 * dev_prepare_* and the functions that execute a command (the row's prepare
 * and run). */
#ifndef DEVICE_BLOCK_H
#define DEVICE_BLOCK_H

#include "device/unit/unit.h"

/* ---- rw.c ---- */

/* dev_prepare_read validates and dev_read executes all forms of READ. */
int dev_prepare_read(struct dev_task *t, uint64_t *out_len);
void dev_read(struct dev_task *t);
/* dev_prepare_write validates and dev_write executes all forms of WRITE;
 * dev_prepare_write also serves commands with the same CDB. */
int dev_prepare_write(struct dev_task *t, uint64_t *out_len);
void dev_write(struct dev_task *t);
/* dev_prepare_range validates LBA and length of a command without data-out. */
int dev_prepare_range(struct dev_task *t, uint64_t *out_len);
/* dev_synchronize_cache executes SYNCHRONIZE CACHE(10) and (16). */
void dev_synchronize_cache(struct dev_task *t);
/* dev_prepare_capacity validates READ CAPACITY(10) and (16), and makes
 * commands that read a variable size exclude each other. The other two
 * execute. */
int dev_prepare_capacity(struct dev_task *t, uint64_t *out_len);
void dev_read_capacity_10(struct dev_task *t);
void dev_read_capacity_16(struct dev_task *t);

/* ---- verify.c ---- */

/* dev_prepare_verify validates and dev_verify executes all forms of VERIFY. */
int dev_prepare_verify(struct dev_task *t, uint64_t *out_len);
void dev_verify(struct dev_task *t);
/* dev_prepare_write_verify validates and dev_write_verify (rw.c) executes
 * all forms of WRITE AND VERIFY. */
int dev_prepare_write_verify(struct dev_task *t, uint64_t *out_len);
void dev_write_verify(struct dev_task *t);

/* ---- thin.c ---- */

#define UNMAP_MAX_DESCS 256
/* dev_has_unmap returns whether the backstore can deallocate blocks. */
bool dev_has_unmap(const struct dev_lu *lu);
bool dev_has_block_erase(const struct dev_lu *lu); /* SANITIZE BLOCK ERASE */
/* dev_prepare_unmap validates and dev_unmap executes UNMAP. */
int dev_prepare_unmap(struct dev_task *t, uint64_t *out_len);
void dev_unmap(struct dev_task *t);
/* dev_prepare_write_same validates and dev_write_same executes all forms of
 * WRITE SAME. */
int dev_prepare_write_same(struct dev_task *t, uint64_t *out_len);
void dev_write_same(struct dev_task *t);
/* dev_prepare_lba_status validates and dev_lba_status executes GET LBA
 * STATUS. */
int dev_prepare_lba_status(struct dev_task *t, uint64_t *out_len);
void dev_lba_status(struct dev_task *t);

/* ---- provisioning.c ---- */

/* dev_threshold_exponent returns n if a threshold set is 2^n blocks; 0 if
 * the backstore cannot report its free space. */
unsigned dev_threshold_exponent(const struct dev_lu *lu);
/* dev_written ends a command that wrote `bytes` bytes with GOOD. If this
 * write completed a threshold set, dev_written first compares the free space
 * with the soft threshold. */
void dev_written(struct dev_task *t, uint64_t bytes);

/* ---- orwrite.c ---- */

/* dev_has_generations returns whether the unit has ORWRITE(32) and so
 * generations. */
bool dev_has_generations(const struct dev_lu *lu);
/* dev_prepare_orwrite_32 validates ORWRITE(32); dev_orwrite executes
 * ORWRITE(16) and (32). */
int dev_prepare_orwrite_32(struct dev_task *t, uint64_t *out_len);
void dev_orwrite(struct dev_task *t);

/* ---- xor.c ---- */

/* dev_has_xor returns whether the unit has XDWRITEREAD(10), dev_has_xor_32 the same of
 * XDWRITEREAD(32). */
bool dev_has_xor(const struct dev_lu *lu);
bool dev_has_xor_32(const struct dev_lu *lu);
/* dev_prepare_xdwriteread validates and dev_xdwriteread executes both. */
int dev_prepare_xdwriteread(struct dev_task *t, uint64_t *out_len);
void dev_xdwriteread(struct dev_task *t);

/* ---- caw.c ---- */

/* dev_has_atomic returns whether the unit has WRITE ATOMIC(16). */
bool dev_has_atomic(const struct dev_lu *lu);
/* dev_atomic_max returns the most blocks of one WRITE ATOMIC(16) (VPD B0h);
 * 0: the unit does not have this command. */
uint32_t dev_atomic_max(const struct dev_lu *lu);
/* dev_prepare_compare_and_write validates and dev_compare_and_write executes
 * COMPARE AND WRITE. */
int dev_prepare_compare_and_write(struct dev_task *t, uint64_t *out_len);
void dev_compare_and_write(struct dev_task *t);
/* dev_prepare_write_atomic validates WRITE ATOMIC(16), which dev_write
 * executes. */
int dev_prepare_write_atomic(struct dev_task *t, uint64_t *out_len);

/* ---- defects.c ---- */

/* These return an empty defect list. */
void dev_read_defects_10(struct dev_task *t);
void dev_read_defects_12(struct dev_task *t);

/* ---- sanitize.c ---- */

/* dev_has_rekey returns whether the backstore can change its encryption key. */
bool dev_has_rekey(const struct dev_lu *lu);
/* dev_prepare_overwrite validates and dev_sanitize_overwrite executes
 * SANITIZE with service action OVERWRITE. */
int dev_prepare_overwrite(struct dev_task *t, uint64_t *out_len);
void dev_sanitize_overwrite(struct dev_task *t);
/* dev_prepare_erase validates the service actions of SANITIZE that have no
 * parameter list; the next three functions execute them. */
int dev_prepare_erase(struct dev_task *t, uint64_t *out_len);
void dev_sanitize_block_erase(struct dev_task *t);
void dev_sanitize_crypto_erase(struct dev_task *t);
void dev_sanitize_exit_failure(struct dev_task *t);
/* dev_prepare_format validates and dev_format_unit executes FORMAT UNIT. */
int dev_prepare_format(struct dev_task *t, uint64_t *out_len);
void dev_format_unit(struct dev_task *t);

#endif
