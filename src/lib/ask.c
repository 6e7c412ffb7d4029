/* SPDX-License-Identifier: BSD-2-Clause */
/* ask.c: the queries that find out who a unit is (SPC-4, SBC-3, MMC-6). */
#include "lib/ask.h"

#include <string.h>

#include "lib/internal.h"
#include "scsi/cdb.h"

#define TYPE_MASK      0x1f
#define TYPE_CD	       0x05
#define TYPE_RBC       0x0e
#define QUALIFIER_MASK 0xe0
#define QUALIFIER_NONE 0x60 /* 011b: no unit (SPC-4 table 141) */
#define PAGE_IDENTITY  0x83
#define PAGE_SERIAL    0x80

#define ROUNDS_MAX 8

static void submit_step(struct lib_ask *a);

/* ---- answers ---- */

static bool has_sense(const struct iser_io *io, uint8_t key, uint16_t asc)
{
	struct scsi_sense s;

	return io->err == ISER_E_SCSI &&
	       !scsi_sense_parse(&s, io->sense, io->sense_len) &&
	       s.key == key && s.asc == asc;
}

static size_t answer_len(const struct lib_ask *a)
{
	return a->io.err
		       ? 0
		       : MIN((size_t)a->io.transferred, a->params.iov.iov_len);
}

/* Each of these returns the error that ends the queries, or 0. */

static int take_inquiry(struct lib_ask *a)
{
	const uint8_t *b = a->params.data;
	size_t n = MIN(answer_len(a), sizeof(a->who.inquiry));

	if (has_sense(&a->io, SENSE_ILLEGAL_REQUEST, ASC_LUN_NOT_SUPPORTED))
		return ISER_E_NOT_FOUND;
	if (a->io.err)
		return a->io.err;
	if (!n)
		return ISER_E_SHORT;
	if ((b[0] & QUALIFIER_MASK) == QUALIFIER_NONE)
		return ISER_E_NOT_FOUND;
	memcpy(a->who.inquiry, b, n);
	a->who.inquiry_len = (uint8_t)n;
	memcpy(a->who.identity.product, a->who.inquiry + 8,
	       sizeof(a->who.identity.product));
	return 0;
}

static void set_failed(struct lib_ask *a, int err)
{
	a->failed = a->io;
	a->failed.err = err;
}

static void set_capacity(struct lib_ask *a, int err,
			 const struct iser_capacity *c)
{
	a->capacity_err = err;
	a->is_impossible = err == ISER_E_PROTOCOL && !a->io.err;
	a->who.has_capacity = !err;
	if (err)
		set_failed(a, err);
	else
		a->who.capacity = *c;
}

static int take_capacity_16(struct lib_ask *a)
{
	struct iser_capacity c = { 0 };
	int err = a->io.err;

	if (lib_sense_key(&a->io) == SENSE_ILLEGAL_REQUEST)
		return 0; /* READ CAPACITY(10) is next */
	if (!err)
		err = iser_parse_capacity(&a->io, &c);
	a->last = get_be64(a->params.data);
	a->block_size = get_be32(a->params.data + 8);
	set_capacity(a, err, &c);
	return 0;
}

/* FFFFFFFFh: the unit has more blocks than the answer can express
 * (SBC-3 §5.15.2). To assume 2^32 blocks would lose data. */
static int take_capacity_10(struct lib_ask *a)
{
	const uint8_t *b = a->params.data;
	struct iser_capacity c = { 0 };
	int err = a->io.err;

	if (!err && a->io.transferred < 8)
		err = ISER_E_SHORT;
	if (!err && get_be32(b) == UINT32_MAX)
		err = ISER_E_PROTOCOL;
	if (!err)
		err = lib_set_capacity(get_be32(b), get_be32(b + 4), &c);
	a->last = get_be32(b);
	a->block_size = get_be32(b + 4);
	set_capacity(a, err, &c);
	return 0;
}

static int take_identity(struct lib_ask *a)
{
	lib_identity_read(&a->who.identity, &a->who.port, a->params.data,
			  answer_len(a));
	return 0;
}

static int take_serial(struct lib_ask *a)
{
	lib_identity_serial(&a->who.identity, a->params.data, answer_len(a));
	return 0;
}

/* The LUN may have another form than the one without a unit. */
static int take_luns(struct lib_ask *a)
{
	a->knows_luns = true;
	return lib_wire_note(a->session, a->params.data, answer_len(a))
		       ? 0
		       : ISER_E_NOT_FOUND;
}

static int (*const take_answer[])(struct lib_ask *a) = {
	[ASK_LUNS] = take_luns,
	[ASK_INQUIRY] = take_inquiry,
	[ASK_CAPACITY_16] = take_capacity_16,
	[ASK_CAPACITY_10] = take_capacity_10,
	[ASK_IDENTITY] = take_identity,
	[ASK_SERIAL] = take_serial,
};

/* ---- the sequence ---- */

/* Some MMC devices fail after a command that they do not support, so they get READ
 * CAPACITY(10) only. */
static bool can_skip(const struct lib_ask *a)
{
	uint8_t type = a->who.inquiry[0];

	switch (a->step) {
	case ASK_CAPACITY_16:
		return (type & QUALIFIER_MASK) || !lib_has_capacity(type) ||
		       type == TYPE_CD || type == TYPE_RBC;
	case ASK_CAPACITY_10:
		return (type & QUALIFIER_MASK) || !lib_has_capacity(type) ||
		       a->who.has_capacity || a->capacity_err;
	case ASK_SERIAL:
		return lib_identity_is_strong(&a->who.identity);
	case ASK_LUNS:
	case ASK_INQUIRY:
	case ASK_IDENTITY:
	case ASK_OVER:
		return false;
	}
	return false;
}

static void prep_step(struct lib_ask *a)
{
	switch (a->step) {
	case ASK_LUNS:
		iser_prep_report_luns(&a->io, &a->params);
		break;
	case ASK_INQUIRY:
		iser_prep_inquiry(&a->io, a->lun, -1, &a->params);
		break;
	case ASK_CAPACITY_16:
		iser_prep_read_capacity(&a->io, a->lun, &a->params);
		break;
	case ASK_CAPACITY_10:
		iser_prep_read_capacity(&a->io, a->lun, &a->params);
		memset(a->io.cdb, 0, sizeof(a->io.cdb));
		a->io.cdb[0] = SCSI_READ_CAPACITY_10;
		a->io.cdb_len = 10;
		a->params.iov.iov_len = 8;
		break;
	case ASK_IDENTITY:
		iser_prep_inquiry(&a->io, a->lun, PAGE_IDENTITY, &a->params);
		break;
	case ASK_SERIAL:
		iser_prep_inquiry(&a->io, a->lun, PAGE_SERIAL, &a->params);
		break;
	case ASK_OVER:
		break;
	}
}

/* Forgets the answers of the round before. */
static void begin_round(struct lib_ask *a)
{
	a->who = (struct lib_who){ 0 };
	a->capacity_err = 0;
	a->step = ASK_INQUIRY;
	a->begun_at = *a->round;
	submit_step(a);
}

/* Ends the queries as a command would end with these sense data. */
static void end_with(struct lib_ask *a, int err, uint8_t key, uint16_t asc)
{
	const struct scsi_sense s = { .key = key, .asc = asc };

	set_failed(a, ISER_E_SCSI);
	a->failed.status = 0x02; /* CHECK CONDITION */
	a->failed.sense_len =
		(uint16_t)scsi_sense_build(&s, true, a->failed.sense);
	a->done(a, err);
}

static void end_queries(struct lib_ask *a, int err)
{
	if (err == ISER_E_NOT_FOUND) {
		end_with(a, err, SENSE_ILLEGAL_REQUEST, ASC_LUN_NOT_SUPPORTED);
		return;
	}
	if (err)
		set_failed(a, err);
	a->done(a, err);
}

static void next_step(struct lib_ask *a)
{
	int err = lib_ask_is_lost(a->io.err) ? a->io.err
					     : take_answer[a->step](a);

	if (err == ISER_E_NOT_FOUND && !a->knows_luns) {
		a->step = ASK_LUNS;
		submit_step(a);
		return;
	}
	do
		a->step++;
	while (!err && can_skip(a));
	if (err || a->step == ASK_OVER)
		end_queries(a, err);
	else
		submit_step(a);
}

/* An initiator that resets the unit again and again keeps it from being identified: the
 * attention is the answer then. */
static void step_completed(struct iser_io *io)
{
	struct lib_ask *a = io->arg;

	if (lib_ask_is_lost(io->err) || *a->round == a->begun_at)
		next_step(a);
	else if (++a->rounds < ROUNDS_MAX)
		begin_round(a);
	else
		end_with(a, ISER_E_SCSI, SENSE_UNIT_ATTENTION, ASC_POWER_ON);
}

static void submit_step(struct lib_ask *a)
{
	memset(&a->params, 0, sizeof(a->params));
	a->io = (struct iser_io){ .lun = a->lun,
				  .done = step_completed,
				  .arg = a };
	prep_step(a);
	a->submit(a->session, &a->io);
}

void lib_ask_begin(struct lib_ask *a)
{
	a->round = &a->session->guard.round;
	a->rounds = 0;
	begin_round(a);
}
