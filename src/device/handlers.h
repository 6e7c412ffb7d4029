/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handlers.h: what the rows of commands name, by file. What prepare and run are
 * for is in table.h; the CD/DVD device's own are in cd.h.
 */
#ifndef DEVICE_HANDLERS_H
#define DEVICE_HANDLERS_H

#include "device/device.h"

/* table.c */
void dev_report_opcodes(struct dev_task *t);

/* spc.c */
void dev_inquiry(struct dev_task *t);
void dev_report_luns(struct dev_task *t);
void dev_request_sense(struct dev_task *t);
void dev_test_unit_ready(struct dev_task *t);
void dev_report_tmfs(struct dev_task *t);

/* spc_more.c */
void dev_report_timestamp(struct dev_task *t);
int dev_prepare_set_timestamp(struct dev_task *t, uint64_t *out_len);
void dev_set_timestamp(struct dev_task *t);
int dev_prepare_write_buffer(struct dev_task *t, uint64_t *out_len);
void dev_write_buffer(struct dev_task *t);
void dev_read_buffer(struct dev_task *t);

/* identify.c */
void dev_report_identifying(struct dev_task *t);
int dev_prepare_set_identifying(struct dev_task *t, uint64_t *out_len);
void dev_set_identifying(struct dev_task *t);

/* mode.c */
void dev_mode_sense_6(struct dev_task *t);
void dev_mode_sense_10(struct dev_task *t);
int dev_prepare_mode_select(struct dev_task *t, uint64_t *out_len);
void dev_mode_select(struct dev_task *t);

/* log.c */
void dev_log_sense(struct dev_task *t);
void dev_log_select(struct dev_task *t);

/* rw.c */
int dev_prepare_read(struct dev_task *t, uint64_t *out_len);
void dev_read(struct dev_task *t);
int dev_prepare_write(struct dev_task *t, uint64_t *out_len);
void dev_write(struct dev_task *t);
int dev_prepare_range(struct dev_task *t, uint64_t *out_len);
void dev_synchronize_cache(struct dev_task *t);
int dev_prepare_capacity(struct dev_task *t, uint64_t *out_len);
void dev_read_capacity_10(struct dev_task *t);
void dev_read_capacity_16(struct dev_task *t);

/* verify.c */
int dev_prepare_verify(struct dev_task *t, uint64_t *out_len);
void dev_verify(struct dev_task *t);
int dev_prepare_write_verify(struct dev_task *t, uint64_t *out_len);
void dev_write_verify(struct dev_task *t);

/* thin.c */
int dev_prepare_unmap(struct dev_task *t, uint64_t *out_len);
void dev_unmap(struct dev_task *t);
int dev_prepare_write_same(struct dev_task *t, uint64_t *out_len);
void dev_write_same(struct dev_task *t);
int dev_prepare_lba_status(struct dev_task *t, uint64_t *out_len);
void dev_lba_status(struct dev_task *t);

/* orwrite.c */
int dev_prepare_orwrite_32(struct dev_task *t, uint64_t *out_len);
void dev_orwrite(struct dev_task *t);

/* caw.c */
int dev_prepare_compare_and_write(struct dev_task *t, uint64_t *out_len);
void dev_compare_and_write(struct dev_task *t);
int dev_prepare_write_atomic(struct dev_task *t, uint64_t *out_len);

/* defects.c */
void dev_read_defects_10(struct dev_task *t);
void dev_read_defects_12(struct dev_task *t);

/* copy_list.c */
int dev_prepare_extended_copy(struct dev_task *t, uint64_t *out_len);
void dev_extended_copy(struct dev_task *t);

/* copied.c */
void dev_copy_status(struct dev_task *t);
void dev_copy_parameters(struct dev_task *t);

/* token.c */
int dev_prepare_token(struct dev_task *t, uint64_t *out_len);
void dev_populate_token(struct dev_task *t);
void dev_write_using_token(struct dev_task *t);
void dev_receive_token_information(struct dev_task *t);

/* removal.c */
void dev_start_stop(struct dev_task *t);
void dev_prevent_allow(struct dev_task *t);

/* sanitize.c */
int dev_prepare_overwrite(struct dev_task *t, uint64_t *out_len);
void dev_sanitize_overwrite(struct dev_task *t);
int dev_prepare_erase(struct dev_task *t, uint64_t *out_len);
void dev_sanitize_block_erase(struct dev_task *t);
void dev_sanitize_crypto_erase(struct dev_task *t);
void dev_sanitize_exit_failure(struct dev_task *t);
int dev_prepare_format(struct dev_task *t, uint64_t *out_len);
void dev_format_unit(struct dev_task *t);

/* reserve.c */
void dev_reserve(struct dev_task *t);
void dev_release(struct dev_task *t);

/* pr_in.c, pr_out.c */
void dev_pr_in(struct dev_task *t);
int dev_prepare_pr_out(struct dev_task *t, uint64_t *out_len);
void dev_pr_out(struct dev_task *t);

/* alua.c */
void dev_report_groups(struct dev_task *t);
int dev_prepare_set_groups(struct dev_task *t, uint64_t *out_len);
void dev_set_groups(struct dev_task *t);

/* priority.c */
void dev_report_priority(struct dev_task *t);
int dev_prepare_set_priority(struct dev_task *t, uint64_t *out_len);
void dev_set_priority(struct dev_task *t);

#endif
