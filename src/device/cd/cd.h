/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cd.h: what the files of the CD/DVD device (MMC-6) share.
 *   rows_cd.c    its commands
 *   cd.c         reading, tables of contents
 *   cd_config.c  what drive and medium are: features, events, structures
 *   cd_mode.c    its mode pages
 *   cd_sector.c  whole sectors of 2,352 bytes
 *   medium.c     media come and go
 */
#ifndef DEVICE_CD_H
#define DEVICE_CD_H

#include "device/unit/unit.h"

#define CD_BLOCK     2048u
#define CD_FRAMES    75u  /* a second */
#define CD_LEAD_IN   150u /* MSF 00:02:00 is LBA 0 */
#define CD_TRACK     1u	  /* the only one */
#define CD_LEAD_OUT  0xaau
#define CD_DATA_CTRL 0x14u /* ADR 1; data track, uninterrupted, no copies */

/* What the medium passes for, by its size. */
enum cd_profile {
	CD_PROFILE_NONE = 0x0000,
	CD_PROFILE_CD_ROM = 0x0008,
	CD_PROFILE_DVD_ROM = 0x0010,
	CD_PROFILE_BD_ROM = 0x0040,
};

#define CD_MAX_BLOCKS  449849u	/* 99:59:74 is the last MSF */
#define DVD_LAYER      2298496u /* of one layer, ECMA-267 */
#define DVD_MAX_BLOCKS (2 * DVD_LAYER)

/* Blocks of the medium that can be read now; 0: none. */
uint64_t cd_blocks(const struct dev_lu *lu);
enum cd_profile cd_profile(const struct dev_lu *lu);
/* cd_put_msf: M, S, F of an LBA; what is beyond 99:59:74 is that. */
void cd_put_msf(uint8_t p[3], uint64_t lba);
/* cd_get_msf: ERR_FORMAT; ERR_RANGE: before 00:02:00. */
int cd_get_msf(const uint8_t p[3], uint64_t *lba);

/* ---- cd_sector.c: mode 1, ECMA-130 §14 ---- */

#define CD_SECTOR     2352u
#define CD_SYNC_LEN   12u
#define CD_HEADER_LEN 4u
#define CD_PARITY_LEN 288u /* EDC, 8 zeros, ECC */

/* Sync and header of the sector at an LBA; its EDC and ECC. */
void cd_sector_begin(uint8_t sector[CD_SECTOR], uint64_t lba);
void cd_sector_protect(uint8_t sector[CD_SECTOR]);

/* ---- medium.c ---- */

/* Media class of GET EVENT STATUS NOTIFICATION, MMC-6 table 203. */
enum cd_event {
	CD_EVENT_NONE,
	CD_EVENT_EJECT_REQUEST,
	CD_EVENT_NEW_MEDIUM,
	CD_EVENT_REMOVAL,
};

/* Tells all nexuses of t's unit; the others of a new medium also by a unit
 * attention. Then goes on with t. */
void cd_tell(struct dev_task *t, enum cd_event event,
	     void (*then)(struct dev_task *t));
bool cd_tray_is_open(const struct dev_lu *lu);

/* ---- commands, by file ---- */

int cd_prepare_read(struct dev_task *t, uint64_t *out_len);
void cd_read_capacity(struct dev_task *t);
int cd_prepare_seek(struct dev_task *t, uint64_t *out_len);
void cd_read_toc(struct dev_task *t);
int cd_prepare_read_cd(struct dev_task *t, uint64_t *out_len);
int cd_prepare_read_cd_msf(struct dev_task *t, uint64_t *out_len);
void cd_read_cd(struct dev_task *t);
void cd_read_subchannel(struct dev_task *t);

void cd_get_configuration(struct dev_task *t);
void cd_get_event(struct dev_task *t);
void cd_disc_information(struct dev_task *t);
void cd_track_information(struct dev_task *t);
void cd_disc_structure(struct dev_task *t);
void cd_mechanism_status(struct dev_task *t);
void cd_get_performance(struct dev_task *t);
int cd_prepare_set_streaming(struct dev_task *t, uint64_t *out_len);
void cd_set_streaming(struct dev_task *t);
int cd_prepare_set_read_ahead(struct dev_task *t, uint64_t *out_len);

void cd_fill_recovery(const struct dev_lu *lu, const struct dev_control *c,
		      uint8_t *p);
void cd_fill_timeout(const struct dev_lu *lu, const struct dev_control *c,
		     uint8_t *p);
void cd_fill_capabilities(const struct dev_lu *lu, const struct dev_control *c,
			  uint8_t *p);

/* kB/s that the medium is read with, as far as anybody asks. */
uint16_t cd_speed(const struct dev_lu *lu);

#endif
