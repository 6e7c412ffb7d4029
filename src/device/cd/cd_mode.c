/* SPDX-License-Identifier: BSD-2-Clause */
/* cd_mode.c: the mode pages of a CD/DVD device (MMC-6 §7). MODE SELECT cannot
 * change any of their values. */
#include "device/cd/cd.h"

/* 01h, §7.3 */
void cd_fill_recovery(const struct dev_lu *lu, const struct dev_control *c,
		      uint8_t *p)
{
	(void)lu;
	(void)c;
	p[3] = 5; /* read retries */
}

/* 1Dh, §7.6. SWPP and the other bits of byte 4 apply to writing drives only. */
void cd_fill_timeout(const struct dev_lu *lu, const struct dev_control *c,
		     uint8_t *p)
{
	(void)lu;
	(void)c;
	put_be16(p + 6, 6);   /* seconds, group 1 */
	put_be16(p + 8, 240); /* group 2 */
}

uint16_t cd_speed(const struct dev_lu *lu)
{
	switch (cd_profile(lu)) {
	case CD_PROFILE_DVD_ROM:
		return 22160; /* 16 x */
	case CD_PROFILE_BD_ROM:
		return 53952; /* 12 x */
	default:
		return 8467; /* 48 x */
	}
}

/* 2Ah, §7.11: a legacy page that Linux and Windows still read */
void cd_fill_capabilities(const struct dev_lu *lu, const struct dev_control *c,
			  uint8_t *p)
{
	uint16_t speed = cd_speed(lu);

	(void)c;
	p[2] = 0x0b; /* reads DVD-ROM, CD-RW, CD-R */
	p[4] = 0x40; /* reads multisession media */
	p[6] = 0x29; /* a tray; supports EJECT and PREVENT */
	if (dev_is_locked(lu))
		p[6] |= 0x02;
	put_be16(p + 8, speed);
	put_be16(p + 12, 2048); /* KiB of buffer */
	put_be16(p + 14, speed);
	put_be16(p + 22, 0); /* no copy management */
}
