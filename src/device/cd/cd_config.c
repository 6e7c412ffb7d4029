/* SPDX-License-Identifier: BSD-2-Clause */
/* cd_config.c: descriptions of drive and medium: GET CONFIGURATION, events,
 * disc and track information, structures, status, performance (MMC-6 §6). */
#include <string.h>

#include "device/cd/cd.h"

/* ---- features, MMC-6 §5.3 ---- */

#define ANY_PROFILE 0xffffu /* current with and without a medium */
#define ANY_MEDIUM  0xfffeu /* current with any medium */
#define PERSISTENT  0x02
#define CURRENT	    0x01

struct feature {
	uint16_t code;
	uint8_t version;
	bool persistent;
	uint16_t current; /* the profile with which the feature is current */
	uint8_t len;	  /* of the data after the header */
	uint8_t data[28];
	/* fill sets the data that depend on the medium; NULL: no such data */
	void (*fill)(const struct dev_lu *lu, uint8_t *p);
};

static bool is_current(uint16_t profile, enum cd_profile now)
{
	if (profile == ANY_PROFILE)
		return true;
	if (profile == ANY_MEDIUM)
		return now != CD_PROFILE_NONE;
	return profile == now;
}

static void fill_profiles(const struct dev_lu *lu, uint8_t *p)
{
	for (int i = 0; i < 3; i++, p += 4)
		p[2] = is_current(get_be16(p), cd_profile(lu)) ? CURRENT : 0;
}

static void fill_readable(const struct dev_lu *lu, uint8_t *p)
{
	enum cd_profile now = cd_profile(lu);

	put_be32(p, CD_BLOCK);
	put_be16(p + 4, now == CD_PROFILE_DVD_ROM  ? 16
			: now == CD_PROFILE_BD_ROM ? 32
						   : 1);
}

/* §5.3.1 prescribes the order of the codes. */
static const struct feature features[] = {
	/* profile list */
	{ 0x0000,
	  0,
	  true,
	  ANY_PROFILE,
	  12,
	  { 0, CD_PROFILE_BD_ROM, 0, 0, 0, CD_PROFILE_DVD_ROM, 0, 0, 0,
	    CD_PROFILE_CD_ROM },
	  fill_profiles },
	/* core: SCSI family; reports device busy events */
	{ 0x0001, 2, true, ANY_PROFILE, 8, { 0, 0, 0, 1, 0x01 }, NULL },
	/* morphing: initiators poll for operational changes */
	{ 0x0002, 1, true, ANY_PROFILE, 4, { 0x02 }, NULL },
	/* removable medium: a tray that loads, ejects, locks */
	{ 0x0003, 2, true, ANY_PROFILE, 4, { 0x39 }, NULL },
	/* random readable; with the error recovery page */
	{ 0x0010,
	  0,
	  false,
	  ANY_MEDIUM,
	  8,
	  { 0, 0, 0, 0, 0, 0, 1 },
	  fill_readable },
	/* multi-read */
	{ 0x001d, 0, false, CD_PROFILE_CD_ROM, 0, { 0 }, NULL },
	/* CD read: neither C2 pointers nor CD-TEXT */
	{ 0x001e, 2, false, CD_PROFILE_CD_ROM, 4, { 0 }, NULL },
	/* DVD read */
	{ 0x001f, 0, false, CD_PROFILE_DVD_ROM, 0, { 0 }, NULL },
	/* BD read: BD-ROM, version 1 */
	{ 0x0040, 0, false, CD_PROFILE_BD_ROM, 28, { [21] = 0x02 }, NULL },
	/* power management */
	{ 0x0100, 0, true, ANY_PROFILE, 0, { 0 }, NULL },
	/* timeout */
	{ 0x0105, 0, true, ANY_PROFILE, 0, { 0 }, NULL },
	/* real-time streaming: supports SET CD SPEED */
	{ 0x0107, 4, false, ANY_MEDIUM, 4, { 0x08 }, NULL },
};

static size_t put_feature(const struct dev_lu *lu, const struct feature *f,
			  uint8_t *p)
{
	put_be16(p, f->code);
	p[2] = (uint8_t)(f->version << 2 | (f->persistent ? PERSISTENT : 0));
	if (is_current(f->current, cd_profile(lu)))
		p[2] |= CURRENT;
	p[3] = f->len;
	memcpy(p + 4, f->data, f->len);
	if (f->fill)
		f->fill(lu, p + 4);
	return 4u + f->len;
}

#define RT_ALL	   0
#define RT_CURRENT 1
#define RT_ONE	   2

static bool is_wanted(const struct dev_task *t, const struct feature *f)
{
	uint16_t from = get_be16(t->cdb + 2);

	switch (t->cdb[1] & 3) {
	case RT_ALL:
		return f->code >= from;
	case RT_CURRENT:
		return f->code >= from &&
		       is_current(f->current, cd_profile(t->lu));
	default:
		return f->code == from;
	}
}

/* GET CONFIGURATION, §6.5 */
void cd_get_configuration(struct dev_task *t)
{
	size_t at = 8;
	uint8_t *p;

	if ((t->cdb[1] & 3) > RT_ONE) {
		dev_bad_field(t, 1, 1);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	for (size_t i = 0; i < ARRAY_LEN(features); i++)
		if (is_wanted(t, &features[i]))
			at += put_feature(t->lu, &features[i], p + at);
	put_be32(p, (uint32_t)(at - 4));
	put_be16(p + 6, (uint16_t)cd_profile(t->lu));
	dev_return(t, at, get_be16(t->cdb + 7));
}

/* ---- GET EVENT STATUS NOTIFICATION, §6.6 ---- */

#define POLLED		0x01
#define NO_EVENT	0x80 /* NEA: no requested class is supported */
#define CLASS_OPERATION 1
#define CLASS_POWER	2
#define CLASS_MEDIA	4
#define CLASS_BUSY	6
#define CLASSES \
 (BIT(CLASS_OPERATION) | BIT(CLASS_POWER) | BIT(CLASS_MEDIA) | BIT(CLASS_BUSY))

/* class_of selects the class to report: the lowest requested class with an event,
 * otherwise the lowest requested class. Only the media class has events. */
static unsigned class_of(unsigned asked, bool news)
{
	if (news && (asked & BIT(CLASS_MEDIA)))
		return CLASS_MEDIA;
	return (unsigned)__builtin_ctz(asked);
}

static void put_media_event(struct dev_task *t, uint8_t *p)
{
	uint8_t *event = &t->own.begun.itl->media_event;

	p[0] = *event;
	*event = CD_EVENT_NONE;
	if (cd_tray_is_open(t->lu))
		p[1] |= 0x01;
	else if (cd_blocks(t->lu))
		p[1] |= 0x02;
}

void cd_get_event(struct dev_task *t)
{
	unsigned asked = t->cdb[4] & CLASSES, class;
	bool news = t->own.begun.itl->media_event != CD_EVENT_NONE;
	uint16_t alloc = get_be16(t->cdb + 7);
	uint8_t *p;

	if (!(t->cdb[1] & POLLED)) { /* Asynchronous operation is optional. */
		dev_bad_field(t, 1, 0);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	p[3] = CLASSES;
	if (!asked) {
		put_be16(p, 2);
		p[2] = NO_EVENT;
		dev_return(t, 4, alloc);
		return;
	}
	class = class_of(asked, news);
	put_be16(p, 6); /* the length of the data after this field */
	p[2] = (uint8_t) class;
	if (class == CLASS_POWER)
		p[5] = 0x01; /* active */
	/* An event that does not fit the allocation length stays pending. */
	if (class == CLASS_MEDIA && alloc >= 8)
		put_media_event(t, p + 4);
	dev_return(t, 8, alloc);
}

/* ---- READ DISC INFORMATION, READ TRACK INFORMATION, §§6.21, 6.26 ---- */

void cd_disc_information(struct dev_task *t)
{
	uint8_t *p;

	if (t->cdb[1] & 7) { /* Other data types describe writable media. */
		dev_bad_field(t, 1, 2);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	put_be16(p, 32);
	p[2] = 0x0e; /* last session complete, disc finalized */
	p[3] = CD_TRACK;
	p[4] = 1; /* session */
	p[5] = p[6] = CD_TRACK;
	p[7] = 0x20;		 /* URU */
	memset(p + 16, 0xff, 8); /* no session can be added */
	dev_return(t, 34, get_be16(t->cdb + 7));
}

#define BY_LBA	   0
#define BY_TRACK   1
#define BY_SESSION 2

/* check_track checks that the CDB names the only track; false: t was ended. */
static bool check_track(struct dev_task *t)
{
	uint32_t which = get_be32(t->cdb + 2);
	unsigned by = t->cdb[1] & 3;

	if (by == BY_LBA && which < cd_blocks(t->lu))
		return true;
	if ((by == BY_TRACK || by == BY_SESSION) && which == 1)
		return true;
	if (by == BY_LBA)
		dev_sense(t, &(struct scsi_sense){ .key = SENSE_ILLEGAL_REQUEST,
						   .asc = ASC_LBA_OUT_OF_RANGE,
						   .has_info = true,
						   .info = which });
	else
		dev_bad_field(t, by > BY_SESSION ? 1 : 2, -1);
	return false;
}

void cd_track_information(struct dev_task *t)
{
	uint64_t n = cd_blocks(t->lu);
	uint8_t *p;

	if (!check_track(t))
		return;
	p = dev_param_buf(t);
	if (!p)
		return;
	put_be16(p, 34);
	p[2] = CD_TRACK;
	p[3] = 1;    /* session */
	p[5] = 0x04; /* data, uninterrupted */
	p[6] = 0x01; /* mode 1 */
	put_be32(p + 24, (uint32_t)MIN(n, (uint64_t)UINT32_MAX));
	dev_return(t, 36, get_be16(t->cdb + 7));
}

/* ---- READ DISC STRUCTURE, §6.22 ---- */

#define PHYSICAL_FORMAT 0x00
#define COPYRIGHT	0x01
#define MANUFACTURING	0x04
#define STRUCTURE_LIST	0xff
#define DVD_DATA_START	0x030000u

/* ECMA-267: a medium of one layer, or of two with opposite track paths. */
static size_t put_physical_format(const struct dev_lu *lu, uint8_t *p)
{
	uint32_t n = (uint32_t)cd_blocks(lu), first = n;
	bool two = n > DVD_LAYER;

	if (two) /* Each layer has half of the blocks, in whole ECC blocks. */
		first = ((n + 1) / 2 + 15) / 16 * 16;
	p[0] = 0x01;		  /* DVD-ROM, version 1 */
	p[1] = 0x0f;		  /* 120 mm, no maximum rate */
	p[2] = two ? 0x31 : 0x01; /* layers, path; embossed */
	put_be32(p + 4, DVD_DATA_START);
	put_be32(p + 8, DVD_DATA_START + n - 1);
	if (two) {
		uint32_t end = DVD_DATA_START + first - 1;

		/* The second layer has the inverted sector numbers of the
		 * first. */
		put_be32(p + 8, (~end & 0xffffff) + (n - first) - 1);
		put_be32(p + 12, end);
	}
	return 2048;
}

static size_t put_structures(uint8_t *p)
{
	static const struct {
		uint8_t format;
		uint16_t len;
	} all[] = { { PHYSICAL_FORMAT, 2052 },
		    { COPYRIGHT, 8 },
		    { MANUFACTURING, 2052 } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++, p += 4) {
		p[0] = all[i].format;
		p[1] = 0x40; /* RDS */
		put_be16(p + 2, all[i].len);
	}
	return 4 * ARRAY_LEN(all);
}

/* check_structure permits structures of a DVD only, and only while the medium
 * is a DVD; false: t was ended. */
static bool check_structure(struct dev_task *t)
{
	uint8_t format = t->cdb[7];

	if ((t->cdb[1] & 0x0f) != 0 && format != STRUCTURE_LIST)
		dev_bad_field(t, 1, 3);
	else if (format != PHYSICAL_FORMAT && format != COPYRIGHT &&
		 format != MANUFACTURING && format != STRUCTURE_LIST)
		dev_bad_field(t, 7, -1);
	else if (cd_profile(t->lu) != CD_PROFILE_DVD_ROM)
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_INCOMPATIBLE_MEDIUM);
	else if (t->cdb[6] > (cd_blocks(t->lu) > DVD_LAYER))
		dev_bad_field(t, 6, -1);
	else
		return true;
	return false;
}

void cd_disc_structure(struct dev_task *t)
{
	size_t len = 0;
	uint8_t *p;

	if (!check_structure(t))
		return;
	p = dev_param_buf(t);
	if (!p)
		return;
	switch (t->cdb[7]) {
	case PHYSICAL_FORMAT:
		len = put_physical_format(t->lu, p + 4);
		break;
	case COPYRIGHT: /* no protection; permitted in every region */
		len = 4;
		break;
	case MANUFACTURING:
		len = 2048;
		break;
	case STRUCTURE_LIST:
		len = put_structures(p + 4);
		break;
	}
	put_be16(p, (uint16_t)(len + 2));
	dev_return(t, 4 + len, get_be16(t->cdb + 8));
}

/* ---- status and performance ---- */

/* MECHANISM STATUS, §6.9 */
void cd_mechanism_status(struct dev_task *t)
{
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	if (cd_tray_is_open(t->lu))
		p[1] = 0x10;
	dev_return(t, 8, get_be16(t->cdb + 8));
}

#define PERFORMANCE 0x00
#define PERF_WRITE  0x04
#define PERF_EXCEPT 0x03

/* GET PERFORMANCE, §6.8: all blocks have the same speed, without exceptions. */
void cd_get_performance(struct dev_task *t)
{
	uint64_t n = cd_blocks(t->lu);
	uint16_t max = get_be16(t->cdb + 8);
	size_t len = 8;
	uint8_t *p;

	if (t->cdb[10] != PERFORMANCE) {
		dev_bad_field(t, 10, -1);
		return;
	}
	if (t->cdb[1] & PERF_WRITE) {
		dev_bad_field(t, 1, 2);
		return;
	}
	if (get_be32(t->cdb + 2) >= n) {
		dev_bad_field(t, 2, -1);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	if (t->cdb[1] & PERF_EXCEPT) {
		p[4] = 0x01;
	} else {
		put_be32(p + 8, get_be32(t->cdb + 2));
		put_be32(p + 12, cd_speed(t->lu));
		put_be32(p + 16, (uint32_t)(n - 1));
		put_be32(p + 20, cd_speed(t->lu));
		len += 16;
	}
	put_be32(p, (uint32_t)(len - 4));
	dev_return(t, len, 8 + 16 * (size_t)max);
}

#define STREAM_LEN 28u

/* SET STREAMING, §6.39. The unit checks the descriptor and ignores the speed. */
int cd_prepare_set_streaming(struct dev_task *t, uint64_t *out_len)
{
	uint16_t len = get_be16(t->cdb + 9);

	if (t->cdb[8] != 0) /* only performance descriptors */
		return dev_bad_field(t, 8, -1);
	if (len && len != STREAM_LEN)
		return dev_bad_length(t);
	*out_len = len;
	return 0;
}

void cd_set_streaming(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	uint32_t start, end;

	if (get_be16(t->cdb + 9) == 0) {
		dev_good(t);
		return;
	}
	if (t->out_len < STREAM_LEN) {
		dev_bad_length(t);
		return;
	}
	start = get_be32(p + 4);
	end = get_be32(p + 8);
	if (p[0] & 0x04) /* RDD restores the defaults; ignore other fields. */
		dev_good(t);
	else if (end < start)
		dev_bad_parameter(t, 8);
	else
		dev_good(t);
}

/* SET READ AHEAD, §6.37 */
int cd_prepare_set_read_ahead(struct dev_task *t, uint64_t *out_len)
{
	(void)out_len;
	if (dev_range(t, get_be32(t->cdb + 2), 1))
		return 1;
	return dev_range(t, get_be32(t->cdb + 6), 1);
}
