/* SPDX-License-Identifier: BSD-2-Clause */
/* sense.c: fixed and descriptor format sense data, SPC-4 §§4.5.2, 4.5.3. */
#include "scsi/sense.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

#define FIXED_CURRENT	    0x70
#define FIXED_DEFERRED	    0x71
#define DESCRIPTOR_CURRENT  0x72
#define DESCRIPTOR_DEFERRED 0x73
#define VALID		    0x80

#define DESC_INFORMATION  0x00
#define DESC_COMMAND	  0x01
#define DESC_KEY_SPECIFIC 0x02

#define SEGMENT_AT 2 /* in the COMMAND-SPECIFIC INFORMATION field */

/* The 3 bytes of sense-key specific data: the field pointer, or the progress
 * indication (SPC-4 §4.5.2.4). */
static void put_field(const struct scsi_sense *s, uint8_t *p)
{
	if (s->has_progress) {
		p[0] = 0x80;
		put_be16(p + 1, s->progress);
		return;
	}
	p[0] = (uint8_t)(0x80 | (s->in_cdb ? 0x40 : 0) |
			 (s->has_bit ? 0x08 | (s->bit & 7) : 0));
	put_be16(p + 1, s->field);
}

static void get_field(struct scsi_sense *s, const uint8_t *p)
{
	if ((p[0] & 0x80) && s->key == SENSE_NOT_READY) {
		s->has_progress = true;
		s->progress = get_be16(p + 1);
	}
	if (!(p[0] & 0x80) ||
	    (s->key != SENSE_ILLEGAL_REQUEST && s->key != SENSE_COPY_ABORTED))
		return;
	s->has_field = true;
	s->in_cdb = p[0] & 0x40;
	s->has_bit = p[0] & 0x08;
	s->bit = p[0] & 7;
	s->field = get_be16(p + 1);
}

static size_t build_fixed(const struct scsi_sense *s, uint8_t *p)
{
	memset(p, 0, SCSI_SENSE_FIXED_LEN);
	p[0] = s->deferred ? FIXED_DEFERRED : FIXED_CURRENT;
	p[2] = s->key & 0x0f;
	if (s->has_info && s->info <= UINT32_MAX) {
		p[0] |= VALID;
		put_be32(p + 3, (uint32_t)s->info);
	}
	p[7] = SCSI_SENSE_FIXED_LEN - 8;
	if (s->has_segment)
		put_be16(p + 8 + SEGMENT_AT, s->segment);
	put_be16(p + 12, s->asc);
	if (s->has_field || s->has_progress)
		put_field(s, p + 15);
	return SCSI_SENSE_FIXED_LEN;
}

static size_t build_descriptor(const struct scsi_sense *s, uint8_t *p)
{
	size_t n = 8;

	memset(p, 0, SCSI_SENSE_MAX);
	p[0] = s->deferred ? DESCRIPTOR_DEFERRED : DESCRIPTOR_CURRENT;
	p[1] = s->key & 0x0f;
	put_be16(p + 2, s->asc);
	if (s->has_info) {
		p[n] = DESC_INFORMATION;
		p[n + 1] = 10;
		p[n + 2] = VALID;
		put_be64(p + n + 4, s->info);
		n += 12;
	}
	if (s->has_segment) {
		p[n] = DESC_COMMAND;
		p[n + 1] = 10;
		put_be16(p + n + 4 + SEGMENT_AT, s->segment);
		n += 12;
	}
	if (s->has_field || s->has_progress) {
		p[n] = DESC_KEY_SPECIFIC;
		p[n + 1] = 6;
		put_field(s, p + n + 4);
		n += 8;
	}
	p[7] = (uint8_t)(n - 8);
	return n;
}

size_t scsi_sense_build(const struct scsi_sense *s, bool descriptor, uint8_t *p)
{
	return descriptor ? build_descriptor(s, p) : build_fixed(s, p);
}

static int parse_fixed(struct scsi_sense *s, const uint8_t *p, size_t len)
{
	if (len < 8)
		return ERR_TRUNCATED;
	s->key = p[2] & 0x0f;
	s->has_info = p[0] & VALID;
	s->info = get_be32(p + 3);
	s->has_segment = s->key == SENSE_COPY_ABORTED && len >= 12;
	if (s->has_segment)
		s->segment = get_be16(p + 8 + SEGMENT_AT);
	if (len >= 14)
		s->asc = get_be16(p + 12);
	if (len >= 18)
		get_field(s, p + 15);
	return 0;
}

static int parse_descriptor(struct scsi_sense *s, const uint8_t *p, size_t len)
{
	size_t at = 8, end;

	if (len < 8)
		return ERR_TRUNCATED;
	s->key = p[1] & 0x0f;
	s->asc = get_be16(p + 2);
	end = MIN(len, (size_t)8 + p[7]);
	while (at + 2 <= end && at + 2 + p[at + 1] <= end) {
		if (p[at] == DESC_INFORMATION && p[at + 1] == 10) {
			s->has_info = p[at + 2] & VALID;
			s->info = get_be64(p + at + 4);
		} else if (p[at] == DESC_COMMAND && p[at + 1] == 10 &&
			   s->key == SENSE_COPY_ABORTED) {
			s->has_segment = true;
			s->segment = get_be16(p + at + 4 + SEGMENT_AT);
		} else if (p[at] == DESC_KEY_SPECIFIC && p[at + 1] == 6) {
			get_field(s, p + at + 4);
		}
		at += 2u + p[at + 1];
	}
	return 0;
}

int scsi_sense_parse(struct scsi_sense *s, const uint8_t *p, size_t len)
{
	uint8_t code;

	memset(s, 0, sizeof(*s));
	if (len < 1)
		return ERR_TRUNCATED;
	code = p[0] & 0x7f;
	s->deferred = code == FIXED_DEFERRED || code == DESCRIPTOR_DEFERRED;
	if (code == FIXED_CURRENT || code == FIXED_DEFERRED)
		return parse_fixed(s, p, len);
	if (code == DESCRIPTOR_CURRENT || code == DESCRIPTOR_DEFERRED)
		return parse_descriptor(s, p, len);
	return ERR_FORMAT;
}

const char *scsi_sense_key_str(uint8_t key)
{
	static const char *const names[16] = {
		"no sense",	   "recovered error", "not ready",
		"medium error",	   "hardware error",  "illegal request",
		"unit attention",  "data protect",    "blank check",
		"vendor specific", "copy aborted",    "aborted command",
		"reserved",	   "volume overflow", "miscompare",
		"completed",
	};

	return names[key & 15];
}

const char *scsi_asc_str(uint16_t asc)
{
	switch (asc) {
#define SCSI_ASC_TEXT(name, code, text) \
 case code:                             \
  return text;
		SCSI_ASC_TABLE(SCSI_ASC_TEXT)
#undef SCSI_ASC_TEXT
	default:
		return NULL;
	}
}

const char *scsi_status_str(uint8_t status)
{
	switch (status) {
	case 0x00:
		return "GOOD";
	case 0x02:
		return "CHECK CONDITION";
	case 0x04:
		return "CONDITION MET";
	case 0x08:
		return "BUSY";
	case 0x18:
		return "RESERVATION CONFLICT";
	case 0x28:
		return "TASK SET FULL";
	case 0x30:
		return "ACA ACTIVE";
	case 0x40:
		return "TASK ABORTED";
	default:
		return "unknown status";
	}
}
