/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cd.h: the interface between the files of the CD/DVD device (MMC-6).
 *   rows_cd.c    the rows of the commands
 *   cd.c         reads, tables of contents
 *   cd_config.c  descriptions of drive and medium: features, events, structures
 *   cd_mode.c    the mode pages
 *   cd_sector.c  whole sectors of 2,352 bytes
 *   medium.c     changes of the medium
 */
#ifndef DEVICE_CD_H
#define DEVICE_CD_H

#include "device/unit/unit.h"

#define CD_BLOCK     2048u
#define CD_FRAMES    75u  /* frames per second */
#define CD_LEAD_IN   150u /* MSF 00:02:00 is LBA 0 */
#define CD_TRACK     1u	  /* the number of the only track */
#define CD_LEAD_OUT  0xaau
#define CD_DATA_CTRL 0x14u /* ADR 1; data track, uninterrupted, no copies */

/* The current profile (MMC-6 §5.3.1). The size of the medium decides. */
enum cd_profile {
	CD_PROFILE_NONE = 0x0000,
	CD_PROFILE_CD_ROM = 0x0008,
	CD_PROFILE_DVD_ROM = 0x0010,
	CD_PROFILE_BD_ROM = 0x0040,
};

#define CD_MAX_BLOCKS  449849u	/* 99:59:74 is the last MSF */
#define DVD_LAYER      2298496u /* blocks of one layer, ECMA-267 */
#define DVD_MAX_BLOCKS (2 * DVD_LAYER)

/* cd_blocks returns the number of blocks that can be read now; 0 without a
 * ready medium. */
uint64_t cd_blocks(const struct dev_lu *lu);
/* cd_profile returns the profile that the size of the medium selects. */
enum cd_profile cd_profile(const struct dev_lu *lu);
/* cd_put_msf writes an LBA as M, S, F; an LBA after 99:59:74 gives 99:59:74. */
void cd_put_msf(uint8_t p[3], uint64_t lba);
/* cd_get_msf converts M, S, F to an LBA. ERR_FORMAT: not an MSF address;
 * ERR_RANGE: an address before 00:02:00. */
int cd_get_msf(const uint8_t p[3], uint64_t *lba);

/* ---- cd_sector.c: mode 1, ECMA-130 §14 ---- */

#define CD_SECTOR     2352u
#define CD_SYNC_LEN   12u
#define CD_HEADER_LEN 4u
#define CD_PARITY_LEN 288u /* EDC, 8 zeros, ECC */

/* cd_sector_begin writes sync and header of the sector at an LBA. */
void cd_sector_begin(uint8_t sector[CD_SECTOR], uint64_t lba);
/* cd_sector_protect computes EDC and ECC of a sector with header and user data. */
void cd_sector_protect(uint8_t sector[CD_SECTOR]);

/* ---- medium.c ---- */

/* Media class of GET EVENT STATUS NOTIFICATION, MMC-6 table 203. */
enum cd_event {
	CD_EVENT_NONE,
	CD_EVENT_EJECT_REQUEST,
	CD_EVENT_NEW_MEDIUM,
	CD_EVENT_REMOVAL,
};

/* cd_post_event stores a media event for each nexus of t's unit, then calls then. A new
 * medium also sets a unit attention for each nexus except t's. */
void cd_post_event(struct dev_task *t, enum cd_event event,
		   void (*then)(struct dev_task *t));
/* cd_tray_is_open returns whether the unit reports an open tray. */
bool cd_tray_is_open(const struct dev_lu *lu);

/*
 * ---- commands, by file ----
 * cd_prepare_* check the CDB of t and set *out_len to the bytes of its parameter
 * list; they return 1 if they refused t. The other functions execute a command
 * and end t.
 */

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

/* cd_fill_* write the current values of one mode page (cd_mode.c) to p. */
void cd_fill_recovery(const struct dev_lu *lu, const struct dev_control *c,
		      uint8_t *p);
void cd_fill_timeout(const struct dev_lu *lu, const struct dev_control *c,
		     uint8_t *p);
void cd_fill_capabilities(const struct dev_lu *lu, const struct dev_control *c,
			  uint8_t *p);

/* cd_speed returns the read speed in kB/s that the unit reports. */
uint16_t cd_speed(const struct dev_lu *lu);

#endif
