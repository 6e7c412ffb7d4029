/* SPDX-License-Identifier: BSD-2-Clause */
/* block.h: the commands of direct access block devices, and what they need of a
 * unit. What prepare and run are for is in command.h. */
#ifndef DEVICE_BLOCK_H
#define DEVICE_BLOCK_H

#include "device/unit/unit.h"

/* ---- rw.c ---- */

int dev_prepare_read(struct dev_task *t, uint64_t *out_len);
void dev_read(struct dev_task *t);
int dev_prepare_write(struct dev_task *t, uint64_t *out_len);
void dev_write(struct dev_task *t);
int dev_prepare_range(struct dev_task *t, uint64_t *out_len);
void dev_synchronize_cache(struct dev_task *t);
int dev_prepare_capacity(struct dev_task *t, uint64_t *out_len);
void dev_read_capacity_10(struct dev_task *t);
void dev_read_capacity_16(struct dev_task *t);

/* ---- verify.c ---- */

int dev_prepare_verify(struct dev_task *t, uint64_t *out_len);
void dev_verify(struct dev_task *t);
int dev_prepare_write_verify(struct dev_task *t, uint64_t *out_len);
void dev_write_verify(struct dev_task *t);

/* ---- thin.c ---- */

#define UNMAP_MAX_DESCS 256
bool dev_has_unmap(const struct dev_lu *lu);
int dev_prepare_unmap(struct dev_task *t, uint64_t *out_len);
void dev_unmap(struct dev_task *t);
int dev_prepare_write_same(struct dev_task *t, uint64_t *out_len);
void dev_write_same(struct dev_task *t);
int dev_prepare_lba_status(struct dev_task *t, uint64_t *out_len);
void dev_lba_status(struct dev_task *t);

/* ---- provisioning.c ---- */

/* A threshold set is 2^n blocks; 0: the store cannot tell its space. */
unsigned dev_threshold_exponent(const struct dev_lu *lu);
/* The end of a command that wrote: GOOD, maybe after a look at the space. */
void dev_written(struct dev_task *t, uint64_t bytes);

/* ---- orwrite.c ---- */

bool dev_has_generations(const struct dev_lu *lu);
int dev_prepare_orwrite_32(struct dev_task *t, uint64_t *out_len);
void dev_orwrite(struct dev_task *t);

/* ---- caw.c ---- */

bool dev_has_atomic(const struct dev_lu *lu);
/* The most blocks one WRITE ATOMIC may have (VPD B0h); 0: there is none. */
uint32_t dev_atomic_max(const struct dev_lu *lu);
int dev_prepare_compare_and_write(struct dev_task *t, uint64_t *out_len);
void dev_compare_and_write(struct dev_task *t);
int dev_prepare_write_atomic(struct dev_task *t, uint64_t *out_len);

/* ---- defects.c ---- */

void dev_read_defects_10(struct dev_task *t);
void dev_read_defects_12(struct dev_task *t);

/* ---- sanitize.c ---- */

bool dev_has_rekey(const struct dev_lu *lu);
int dev_prepare_overwrite(struct dev_task *t, uint64_t *out_len);
void dev_sanitize_overwrite(struct dev_task *t);
int dev_prepare_erase(struct dev_task *t, uint64_t *out_len);
void dev_sanitize_block_erase(struct dev_task *t);
void dev_sanitize_crypto_erase(struct dev_task *t);
void dev_sanitize_exit_failure(struct dev_task *t);
int dev_prepare_format(struct dev_task *t, uint64_t *out_len);
void dev_format_unit(struct dev_task *t);

#endif
