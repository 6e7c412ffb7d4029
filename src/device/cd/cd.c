/* SPDX-License-Identifier: BSD-2-Clause */
/* cd.c: reads from a CD/DVD device and the layout of its medium: one session
 * with one data track in mode 1 that begins at LBA 0 (MMC-6 §6). */
#include <string.h>

#include "device/cd/cd.h"
#include "device/unit/condition.h"

uint64_t cd_blocks(const struct dev_lu *lu)
{
	if (dev_condition(lu) != LU_READY)
		return 0;
	return __atomic_load_n(&lu->blocks, __ATOMIC_RELAXED);
}

enum cd_profile cd_profile(const struct dev_lu *lu)
{
	uint64_t n = cd_blocks(lu);

	if (n == 0)
		return CD_PROFILE_NONE;
	if (n <= CD_MAX_BLOCKS)
		return CD_PROFILE_CD_ROM;
	return n <= DVD_MAX_BLOCKS ? CD_PROFILE_DVD_ROM : CD_PROFILE_BD_ROM;
}

/* ---- minutes, seconds, frames ---- */

void cd_put_msf(uint8_t p[3], uint64_t lba)
{
	uint64_t n = MIN(lba, (uint64_t)CD_MAX_BLOCKS) + CD_LEAD_IN;

	n = MIN(n, (uint64_t)100 * 60 * CD_FRAMES - 1);
	p[0] = (uint8_t)(n / CD_FRAMES / 60);
	p[1] = (uint8_t)(n / CD_FRAMES % 60);
	p[2] = (uint8_t)(n % CD_FRAMES);
}

int cd_get_msf(const uint8_t p[3], uint64_t *lba)
{
	uint32_t n = (p[0] * 60u + p[1]) * CD_FRAMES + p[2];

	if (p[0] > 99 || p[1] > 59 || p[2] >= CD_FRAMES)
		return ERR_FORMAT;
	if (n < CD_LEAD_IN)
		return ERR_RANGE;
	*lba = n - CD_LEAD_IN;
	return 0;
}

/* put_address writes four bytes: an LBA, or 0, M, S, F. */
static void put_address(uint8_t *p, uint64_t lba, bool msf)
{
	if (msf)
		cd_put_msf(p + 1, lba);
	else
		put_be32(p, (uint32_t)MIN(lba, (uint64_t)UINT32_MAX));
}

/* ---- READ CAPACITY, SEEK ---- */

void cd_read_capacity(struct dev_task *t)
{
	uint64_t n = cd_blocks(t->lu);
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	put_be32(p, (uint32_t)MIN(n ? n - 1 : 0, (uint64_t)UINT32_MAX));
	put_be32(p + 4, CD_BLOCK);
	dev_return(t, 8, 8);
}

int cd_prepare_seek(struct dev_task *t, uint64_t *out_len)
{
	(void)out_len;
	return dev_range(t, get_be32(t->cdb + 2), 1);
}

/* ---- READ TOC/PMA/ATIP, MMC-6 §6.25 ---- */

#define TOC_MSF	    0x02
#define TOC_TRACKS  0
#define TOC_SESSION 1
#define TOC_RAW	    2

static uint8_t *put_track(uint8_t *p, uint8_t track, uint64_t lba, bool msf)
{
	p[1] = CD_DATA_CTRL;
	p[2] = track;
	put_address(p + 4, lba, msf);
	return p + 8;
}

/* toc_tracks writes the tracks with numbers >= from and returns the length; 0:
 * the medium does not have such a track. */
static size_t toc_tracks(const struct dev_lu *lu, uint8_t *p, uint8_t from,
			 bool msf)
{
	uint8_t *at = p + 4;

	if (from > CD_TRACK && from != CD_LEAD_OUT)
		return 0;
	p[2] = p[3] = CD_TRACK;
	if (from <= CD_TRACK)
		at = put_track(at, CD_TRACK, 0, msf);
	at = put_track(at, CD_LEAD_OUT, cd_blocks(lu), msf);
	return (size_t)(at - p);
}

static size_t toc_session(uint8_t *p, bool msf)
{
	p[2] = p[3] = 1;
	return (size_t)(put_track(p + 4, CD_TRACK, 0, msf) - p);
}

static uint8_t *put_point(uint8_t *p, uint8_t point)
{
	p[0] = 1; /* session */
	p[1] = CD_DATA_CTRL;
	p[3] = point;
	return p;
}

/* toc_raw writes the Q sub-channel data of the lead-in, always in MSF. */
static size_t toc_raw(const struct dev_lu *lu, uint8_t *p, uint8_t session)
{
	uint8_t *at = p + 4;

	if (session > 1)
		return 0;
	p[2] = p[3] = 1;
	put_point(at, 0xa0)[8] = CD_TRACK; /* first track; CD-ROM */
	at += 11;
	put_point(at, 0xa1)[8] = CD_TRACK; /* last track */
	at += 11;
	cd_put_msf(put_point(at, 0xa2) + 8, cd_blocks(lu));
	at += 11;
	cd_put_msf(put_point(at, CD_TRACK) + 8, 0);
	return (size_t)(at + 11 - p);
}

/* Linux and older initiators send the format in the vendor specific bits of
 * CONTROL, as SFF-8020i defines. */
static unsigned toc_format(const struct dev_task *t)
{
	unsigned format = t->cdb[2] & 0x0f;

	return format ? format : t->cdb[9] >> 6;
}

void cd_read_toc(struct dev_task *t)
{
	unsigned format = toc_format(t);
	bool msf = t->cdb[1] & TOC_MSF;
	size_t len;
	uint8_t *p;

	if (format > TOC_RAW) { /* a CD-ROM does not have PMA, ATIP, CD-TEXT */
		dev_bad_field(t, t->cdb[2] ? 2 : 9, -1);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	if (format == TOC_TRACKS)
		len = toc_tracks(t->lu, p, t->cdb[6], msf);
	else if (format == TOC_SESSION)
		len = toc_session(p, msf);
	else
		len = toc_raw(t->lu, p, t->cdb[6]);
	if (len == 0) {
		dev_bad_field(t, 6, -1);
		return;
	}
	put_be16(p, (uint16_t)(len - 2));
	dev_return(t, len, get_be16(t->cdb + 7));
}

/* ---- READ CD, READ CD MSF, MMC-6 §§6.17, 6.18 ---- */

/* Main channel selection, byte 9 */
#define MAIN_SYNC     0x80
#define MAIN_HEADER   0x20
#define MAIN_USER     0x10
#define MAIN_PARITY   0x08
#define MAIN_C2	      0x06
#define SECTOR_ANY    0
#define SECTOR_MODE_1 2

struct part {
	uint32_t at, len; /* within the sector */
};

/* main_channel sets *part to the part of each sector that the CDB requests;
 * false: the requested fields are not adjacent. Mode 1 has no subheaders. */
static bool main_channel(uint8_t byte, struct part *part)
{
	static const struct {
		uint8_t bit;
		uint16_t len;
	} fields[] = { { MAIN_SYNC, CD_SYNC_LEN },
		       { MAIN_HEADER, CD_HEADER_LEN },
		       { MAIN_USER, CD_BLOCK },
		       { MAIN_PARITY, CD_PARITY_LEN } };
	uint32_t at = 0;

	*part = (struct part){ 0, 0 };
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (byte & fields[i].bit) {
			if (part->len == 0)
				part->at = at;
			else if (part->at + part->len != at)
				return false;
			part->len += fields[i].len;
		}
		at += fields[i].len;
	}
	return !(byte & MAIN_PARITY) || (byte & MAIN_USER);
}

/* check_read_cd checks bytes 1, 9 and 10, which mean the same in both commands,
 * for the blocks t->lba, t->blocks. 1: t was refused. */
static int check_read_cd(struct dev_task *t)
{
	unsigned type = t->cdb[1] >> 2 & 7;
	struct part part;

	if (type > 5)
		return dev_bad_field(t, 1, 4);
	if (!main_channel(t->cdb[9], &part))
		return dev_bad_field(t, 9, 7);
	if (t->cdb[9] & MAIN_C2)
		return dev_bad_field(t, 9, 2);
	if (t->cdb[10] & 0x07) /* the unit has no sub-channel data */
		return dev_bad_field(t, 10, 2);
	if (dev_range(t, t->lba, t->own.blocks))
		return 1;
	if (t->own.blocks * CD_SECTOR > t->nexus->server->max_transfer)
		return dev_bad_field(t, 6, -1);
	if (t->own.blocks && type != SECTOR_ANY && type != SECTOR_MODE_1)
		return dev_check(t, SENSE_ILLEGAL_REQUEST,
				 ASC_ILLEGAL_MODE_FOR_TRACK);
	/* Only CDs have sync, header and parity around the user data. */
	if (part.len && (part.at != 16 || part.len != CD_BLOCK) &&
	    cd_profile(t->lu) != CD_PROFILE_CD_ROM)
		return dev_check(t, SENSE_ILLEGAL_REQUEST,
				 ASC_INCOMPATIBLE_MEDIUM);
	return 0;
}

int cd_prepare_read_cd(struct dev_task *t, uint64_t *out_len)
{
	(void)out_len;
	t->lba = get_be32(t->cdb + 2);
	t->own.blocks = get_be24(t->cdb + 6);
	return check_read_cd(t);
}

/* The ending MSF is not part of the range. */
int cd_prepare_read_cd_msf(struct dev_task *t, uint64_t *out_len)
{
	uint64_t from, to;
	int err;

	(void)out_len;
	err = cd_get_msf(t->cdb + 3, &from);
	if (err == ERR_FORMAT)
		return dev_bad_field(t, 3, -1);
	if (err)
		return dev_bad_lba(t, 0);
	err = cd_get_msf(t->cdb + 6, &to);
	if (err || to < from)
		return dev_bad_field(t, 6, -1);
	t->lba = from;
	t->own.blocks = to - from;
	return check_read_cd(t);
}

static struct part part_of(const struct dev_task *t)
{
	struct part part;

	(void)main_channel(t->cdb[9], &part);
	return part;
}

static void return_sectors(struct dev_task *t, uint64_t len)
{
	t->total.in = len;
	t->own.mem.iov[0] =
		(struct iovec){ t->own.mem.buf,
				(size_t)MIN(len, (uint64_t)t->edtl.in) };
	t->in = bufv_of(t->own.mem.iov, 1);
	dev_good(t);
}

/* The user data are at the end of the buffer. wrap adds the other fields of each
 * sector and writes the result to the front. Writing never overtakes reading,
 * because the last sector ends where the last user data end. */
static void wrap(struct dev_task *t, struct part part)
{
	uint8_t sector[CD_SECTOR] = { 0 }, *out = t->own.mem.buf;
	const uint8_t *user =
		out + t->own.blocks * part.len - t->own.blocks * CD_BLOCK;
	bool has_user = part.at + part.len > 16;

	for (uint64_t i = 0; i < t->own.blocks; i++) {
		cd_sector_begin(sector, t->lba + i);
		if (has_user) {
			memcpy(sector + 16, user + i * CD_BLOCK, CD_BLOCK);
			cd_sector_protect(sector);
		}
		memcpy(out + i * part.len, sector + part.at, part.len);
	}
	return_sectors(t, t->own.blocks * part.len);
}

static void sectors_came(struct dev_task *t, int result)
{
	if (result)
		dev_io_failed(t, result, t->own.req.off);
	else
		wrap(t, part_of(t));
}

void cd_read_cd(struct dev_task *t)
{
	struct part part = part_of(t);
	size_t user = (size_t)t->own.blocks * CD_BLOCK;
	size_t all = (size_t)t->own.blocks * part.len;

	if (all == 0) {
		dev_good(t);
		return;
	}
	if (!dev_buf(t, all))
		return;
	if (part.at + part.len <= 16) { /* no user data, so no read */
		wrap(t, part);
		return;
	}
	t->own.mem.iov[0] =
		(struct iovec){ (uint8_t *)t->own.mem.buf + all - user, user };
	t->own.req.data = bufv_of(t->own.mem.iov, 1);
	dev_submit(t, BS_READ, 0, t->lba * CD_BLOCK, user, sectors_came);
}

/* ---- READ SUB-CHANNEL, MMC-6 §6.23: the unit never plays audio ---- */

#define SUBQ	      0x40
#define NO_AUDIO      0x15
#define SUB_POSITION  1
#define SUB_CATALOGUE 2
#define SUB_ISRC      3

static size_t put_subchannel(const struct dev_task *t, uint8_t *p)
{
	bool msf = t->cdb[1] & TOC_MSF;
	unsigned format = t->cdb[3];

	p[0] = (uint8_t)format;
	if (format == SUB_CATALOGUE) /* MCVal is 0: no catalogue number */
		return 20;
	p[1] = CD_DATA_CTRL;
	p[2] = CD_TRACK;
	if (format == SUB_ISRC) /* TCVal is 0: no ISRC */
		return 20;
	p[3] = 1; /* index */
	put_address(p + 4, 0, msf);
	if (!msf) /* The track-relative address is 0 in both forms. */
		put_be32(p + 8, 0);
	return 12;
}

void cd_read_subchannel(struct dev_task *t)
{
	size_t len = 0;
	uint8_t *p;

	if (t->cdb[3] < SUB_POSITION || t->cdb[3] > SUB_ISRC) {
		dev_bad_field(t, 3, -1);
		return;
	}
	if (t->cdb[3] == SUB_ISRC && t->cdb[6] > CD_TRACK) {
		dev_bad_field(t, 6, -1);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	if (t->cdb[2] & SUBQ)
		len = put_subchannel(t, p + 4);
	p[1] = NO_AUDIO;
	put_be16(p + 2, (uint16_t)len);
	dev_return(t, 4 + len, get_be16(t->cdb + 7));
}
