/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copied.c: the results of copies: RECEIVE COPY STATUS(LID1) (SPC-4 §6.23), the
 * operating parameters (§6.21) and the third-party copy VPD page (§7.8.17). A
 * nexus has an entry for each of its latest copies.
 */
#include <string.h>

#include "device/copy/copy.h"

/* ---- the copies of a nexus ---- */

struct dev_copy *dev_copy_find(const struct dev_task *t,
			       enum dev_copy_kind kind, uint64_t list_id)
{
	for (size_t i = 0; i < DEV_COPIES; i++) {
		struct dev_copy *c = &t->nexus->copies[i];

		if (c->state != COPY_NONE && c->kind == kind &&
		    c->list_id == list_id && c->lu == t->lu)
			return c;
	}
	return NULL;
}

void dev_copies_forget(struct dev_nexus *n, const struct dev_lu *lu)
{
	for (size_t i = 0; i < DEV_COPIES; i++) {
		struct dev_copy *c = &n->copies[i];

		if (c->lu == lu && c->state != COPY_RUNS)
			c->state = COPY_NONE;
	}
}

/* Returns a free entry, or else the entry of the completed copy that began
 * first. */
static struct dev_copy *pick_slot(struct dev_nexus *n)
{
	struct dev_copy *best = NULL;

	for (size_t i = 0; i < DEV_COPIES; i++) {
		struct dev_copy *c = &n->copies[i];

		if (c->state == COPY_NONE)
			return c;
		if (c->state != COPY_RUNS && (!best || c->age < best->age))
			best = c;
	}
	return best;
}

bool dev_copy_begin(struct dev_task *t, enum dev_copy_kind kind,
		    uint64_t list_id, bool discard)
{
	struct dev_nexus *n = t->nexus;
	struct dev_copy *c = NULL;

	if (list_id != COPY_NO_ID)
		c = dev_copy_find(t, kind, list_id);
	/* SPC-4 §6.4.3.2: the list identifier of a copy in progress is in
	 * use */
	if (c && c->state == COPY_RUNS) {
		dev_check(t, SENSE_ILLEGAL_REQUEST, ASC_OPERATION_IN_PROGRESS);
		return false;
	}
	if (!c)
		c = pick_slot(n);
	if (!c) {
		dev_no_resources(t);
		return false;
	}
	dev_token_put(c->token);
	*c = (struct dev_copy){ .state = COPY_RUNS,
				.kind = kind,
				.lu = t->lu,
				.discard = discard,
				.sa = t->cdb[1] & 0x1f,
				.list_id = list_id,
				.age = n->copies_begun++ };
	t->own.copy = c;
	return true;
}

/* After this, another copy may reuse the entry although t has not ended. */
static void record_end(struct dev_task *t, enum dev_copy_state how)
{
	struct dev_copy *c = t->own.copy;

	t->own.copy = NULL;
	c->state = c->discard ? COPY_NONE : how;
}

void dev_copy_succeed(struct dev_task *t)
{
	record_end(t, COPY_DONE);
}

void dev_copy_fail(struct dev_task *t, const struct scsi_sense *s)
{
	struct dev_copy *c = t->own.copy;

	c->sense_len =
		(uint8_t)scsi_sense_build(s, DEV_CTL(t->lu, d_sense), c->sense);
	record_end(t, COPY_FAILED);
	dev_sense(t, s);
}

void dev_copy_abort(struct dev_task *t)
{
	record_end(t, COPY_ABORTED);
}

/* ---- RECEIVE COPY STATUS(LID1) ---- */

#define UNITS_BYTES 0x00
#define UNITS_MIB   0x02

void dev_copy_status(struct dev_task *t)
{
	static const uint8_t status[] = {
		[COPY_RUNS] = 0,
		[COPY_DONE] = 1,
		[COPY_FAILED] = 2,
		[COPY_ABORTED] = 2,
	};
	struct dev_copy *c = dev_copy_find(t, COPY_BY_LID1, t->cdb[2]);
	bool many;
	uint8_t *p;

	if (!c) {
		dev_bad_field(t, 2, -1);
		return;
	}
	p = dev_param_buf(t);
	if (!p)
		return;
	many = c->bytes > UINT32_MAX;
	put_be32(p, 8);
	p[4] = status[c->state];
	put_be16(p + 5, c->segments);
	p[7] = many ? UNITS_MIB : UNITS_BYTES;
	put_be32(p + 8, (uint32_t)(many ? c->bytes >> 20 : c->bytes));
	/* SPC-4 §6.25: the result is reported once */
	if (c->state != COPY_RUNS)
		c->state = COPY_NONE;
	dev_return(t, 12, get_be32(t->cdb + 10));
}

/* ---- operating parameters ---- */

int dev_copy_prepare_list(struct dev_task *t, uint32_t most, uint64_t *out_len)
{
	uint32_t len = get_be32(t->cdb + 10);

	if (len > most)
		return dev_bad_length(t);
	*out_len = len;
	return 0;
}

static const uint8_t descriptor_codes[] = { 0x02, 0x0a, 0xe4 };

/* The codes of descriptors, after their number; returns the end. */
static uint8_t *put_codes(uint8_t *p)
{
	*p++ = sizeof(descriptor_codes);
	memcpy(p, descriptor_codes, sizeof(descriptor_codes));
	return p + sizeof(descriptor_codes);
}

static void put_limits(uint8_t *p)
{
	put_be16(p, COPY_MAX_TARGETS);
	put_be16(p + 2, COPY_MAX_SEGMENTS);
	put_be32(p + 4, COPY_MAX_LIST);
}

static uint32_t max_segment(const struct dev_lu *lu)
{
	return UINT16_MAX * lu->block_size; /* at most 256 MiB */
}

void dev_copy_parameters(struct dev_task *t)
{
	size_t len = 44 + sizeof(descriptor_codes);
	uint8_t *p = dev_param_buf(t);

	if (!p)
		return;
	put_be32(p, (uint32_t)len - 4);
	p[4] = 0x01; /* SNLID: a copy may have no list identifier */
	put_limits(p + 8);
	put_be32(p + 16, max_segment(t->lu));
	put_be16(p + 34, DEV_COPIES); /* TOTAL CONCURRENT COPIES */
	p[36] = DEV_COPIES;	      /* MAXIMUM CONCURRENT COPIES */
	p[37] = 0; /* DATA SEGMENT GRANULARITY: one byte, with descriptor 0Ah */
	put_codes(p + 43);
	dev_return(t, len, get_be32(t->cdb + 10));
}

/* ---- VPD 8Fh ---- */

/* Writes the header of the descriptor from p to end and returns where the
 * next one begins: the length is padded to a multiple of four. */
static uint8_t *close_descriptor(uint8_t *p, uint16_t type, uint8_t *end)
{
	size_t len = round_up4((size_t)(end - p - 4));

	put_be16(p, type);
	put_be16(p + 2, (uint16_t)len);
	return p + 4 + len;
}

static uint8_t *put_commands(const struct dev_lu *lu, uint8_t *p)
{
	bool tokens = dev_has_tokens(lu);
	uint8_t *at = p + 5;

	*at++ = SCSI_EXTENDED_COPY;
	*at++ = tokens ? 3 : 1;
	*at++ = SCSI_XC_LID1;
	if (tokens) {
		*at++ = SCSI_XC_POPULATE_TOKEN;
		*at++ = SCSI_XC_WRITE_USING_TOKEN;
	}
	*at++ = SCSI_RECEIVE_COPY_RESULTS;
	*at++ = tokens ? 3 : 2;
	*at++ = SCSI_RCR_COPY_STATUS_LID1;
	*at++ = SCSI_RCR_OPERATING_PARAMETERS;
	if (tokens)
		*at++ = SCSI_RCR_TOKEN_INFORMATION;
	p[4] = (uint8_t)(at - p - 5);
	return close_descriptor(p, 0x0001, at);
}

static uint8_t *put_parameters(uint8_t *p)
{
	put_limits(p + 8);
	return close_descriptor(p, 0x0004, p + 32);
}

static uint8_t *put_descriptors(uint8_t *p)
{
	return close_descriptor(p, 0x0008, put_codes(p + 4));
}

static uint8_t *put_general(const struct dev_lu *lu, uint8_t *p)
{
	put_be32(p + 4, DEV_COPIES);
	put_be32(p + 8, DEV_COPIES);
	put_be32(p + 12, max_segment(lu));
	p[16] = 0; /* DATA SEGMENT GRANULARITY */
	return close_descriptor(p, 0x8001, p + 36);
}

/* The limits of tokens: block device ROD limits. */
static uint8_t *put_token_limits(const struct dev_lu *lu, uint8_t *p)
{
	put_be16(p + 10, TOKEN_RANGES);
	put_be32(p + 12, TOKEN_IDLE_MAX);
	put_be32(p + 16, TOKEN_IDLE);
	put_be64(p + 20, TOKEN_MAX_BYTES >> lu->block_shift);
	put_be64(p + 28, TOKEN_MAX_BYTES >> lu->block_shift);
	return close_descriptor(p, 0x0000, p + 36);
}

#define TOKEN_IN  0x02
#define TOKEN_OUT 0x01

static uint8_t *put_token_types(uint8_t *p)
{
	put_be16(p + 6, 2 * 64);
	put_be32(p + 8, ROD_CHANGE_VULNERABLE);
	p[12] = TOKEN_IN | TOKEN_OUT;
	put_be32(p + 72, ROD_ZEROS);
	p[76] = TOKEN_IN;
	return close_descriptor(p, 0x0108, p + 8 + 2 * 64);
}

size_t dev_copy_page(const struct dev_task *t, uint8_t *p)
{
	uint8_t *at = p + 4;

	if (dev_has_tokens(t->lu))
		at = put_token_limits(t->lu, at);
	at = put_commands(t->lu, at);
	at = put_parameters(at);
	at = put_descriptors(at);
	if (dev_has_tokens(t->lu))
		at = put_token_types(at);
	at = put_general(t->lu, at);
	return (size_t)(at - p);
}
