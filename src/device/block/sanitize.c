/* SPDX-License-Identifier: BSD-2-Clause */
/* sanitize.c: SANITIZE (SBC-3 §5.24) and FORMAT UNIT (§5.3). */
#include "device/block/block.h"
#include "device/block/erase.h"
#include "device/keep/keep.h"

#define IMMED 0x80
#define AUSE  0x20

/* The parameters that the CDBs of all service actions have. */
static struct dev_erase_spec sanitize(const struct dev_task *t)
{
	return (struct dev_erase_spec){ .during = LU_SANITIZING,
					.failed = LU_SANITIZE_FAILED,
					.immediate = t->cdb[1] & IMMED,
					.unrestricted = t->cdb[1] & AUSE };
}

/* ---- SANITIZE: OVERWRITE ---- */

#define OVERWRITE_HEADER 4u
#define INVERT		 0x80
#define TEST		 0x60
#define COUNT		 0x1f

int dev_prepare_overwrite(struct dev_task *t, uint64_t *out_len)
{
	uint32_t len = get_be16(t->cdb + 7);

	if (len <= OVERWRITE_HEADER ||
	    len > OVERWRITE_HEADER + MIN(t->lu->block_size, KEEP_PATTERN_MAX))
		return dev_bad_field(t, 7, -1);
	*out_len = len;
	return 0;
}

void dev_sanitize_overwrite(struct dev_task *t)
{
	struct dev_erase_spec spec = sanitize(t);
	const uint8_t *p = t->own.mem.buf;
	uint16_t len;

	if (t->out_len < OVERWRITE_HEADER + 1) {
		dev_bad_length(t);
		return;
	}
	len = get_be16(p + 2);
	if (p[0] & TEST || (p[0] & COUNT) == 0) {
		dev_bad_parameter(t, 0);
		return;
	}
	if (p[1]) {
		dev_bad_parameter(t, 1);
		return;
	}
	if (len == 0 || OVERWRITE_HEADER + len > t->out_len) {
		dev_bad_parameter(t, 2);
		return;
	}
	spec.passes = p[0] & COUNT;
	spec.invert = p[0] & INVERT;
	spec.pattern = p + OVERWRITE_HEADER;
	spec.pattern_len = len;
	dev_erase(t, &spec);
}

/* ---- SANITIZE: BLOCK ERASE, CRYPTO ERASE, EXIT FAILURE MODE ---- */

int dev_prepare_erase(struct dev_task *t, uint64_t *out_len)
{
	(void)out_len;
	if (get_be16(t->cdb + 7)) /* there is no parameter list */
		return dev_bad_field(t, 7, -1);
	return 0;
}

void dev_sanitize_block_erase(struct dev_task *t)
{
	const struct dev_erase_spec spec = sanitize(t);

	dev_erase(t, &spec);
}

bool dev_has_rekey(const struct dev_lu *lu)
{
	return !lu->shared && (lu->bs->caps & BS_CAP_REKEY);
}

/* Changes the key, then deallocates all blocks, which no longer can be
 * decrypted. */
void dev_sanitize_crypto_erase(struct dev_task *t)
{
	struct dev_erase_spec spec = sanitize(t);

	spec.rekey = true;
	dev_erase(t, &spec);
}

/* SBC-3 §4.11.4: EXIT FAILURE MODE is valid only if the failed command had
 * AUSE set; without a failed SANITIZE the command has no effect. */
void dev_sanitize_exit_failure(struct dev_task *t)
{
	if (dev_condition(t->lu) == LU_SANITIZE_FAILED &&
	    !__atomic_load_n(&t->lu->unrestricted, __ATOMIC_RELAXED)) {
		dev_bad_field(t, 1, 4);
		return;
	}
	dev_erase_exit_failure(t);
}

/* ---- FORMAT UNIT ---- */

#define LONGLIST	0x20
#define FMTDATA		0x10
#define PF_USAGE	0x07 /* PROTECTION FIELDS USAGE */
#define FORMAT_IMMED	0x02
#define FORMAT_HARMLESS 0xf0 /* FOV, DPRY, DCRT, STPF: about defects, ignored */

static uint32_t format_header(const struct dev_task *t)
{
	return t->cdb[1] & LONGLIST ? 8 : 4;
}

int dev_prepare_format(struct dev_task *t, uint64_t *out_len)
{
	unsigned info = t->cdb[1] >> 6;

	if (info && (!t->lu->bs->protection || info == 1)) /* 01b: reserved */
		return dev_bad_field(t, 1, 7);
	if (t->cdb[1] & FMTDATA)
		*out_len = format_header(t);
	/* these bits describe the parameter list */
	else if (t->cdb[1] & ~FMTDATA & 0x3f)
		return dev_bad_field(t, 1, 5);
	return 0;
}

/* Checks the header of the parameter list; false: the task was ended. */
static bool check_format(struct dev_task *t)
{
	const uint8_t *p = t->own.mem.buf;
	bool is_long = t->cdb[1] & LONGLIST;

	if (t->out_len < format_header(t))
		dev_bad_length(t);
	else if ((p[0] & PF_USAGE) > (t->cdb[1] >> 6 == 3 ? 1 : 0))
		dev_bad_parameter(t, 0);
	else if (p[1] & (uint8_t) ~(FORMAT_HARMLESS | FORMAT_IMMED))
		dev_bad_parameter(t, 1);
	else if (is_long ? get_be32(p + 4) : get_be16(p + 2))
		dev_bad_parameter(t, is_long ? 4 : 2); /* a defect list */
	else if (is_long && p[3])
		dev_bad_parameter(t, 3);
	else
		return true;
	return false;
}

/* FMTPINFO and PROTECTION FIELD USAGE, SBC-3 table 48. */
static uint8_t format_type(const struct dev_task *t)
{
	unsigned info = t->cdb[1] >> 6;
	bool usage =
		t->cdb[1] & FMTDATA && *(uint8_t *)t->own.mem.buf & PF_USAGE;

	return (uint8_t)(info == 0 ? 0 : info == 2 ? 1 : usage ? 3 : 2);
}

/* Without passes of a pattern, dev_erase zeros all blocks. */
void dev_format_unit(struct dev_task *t)
{
	bool has_list = t->cdb[1] & FMTDATA;

	if (has_list && !check_format(t))
		return;
	dev_erase(t, &(struct dev_erase_spec){
			     .during = LU_FORMATTING,
			     .failed = LU_FORMAT_FAILED,
			     .protect = t->lu->bs->protection,
			     .type = format_type(t),
			     .immediate = has_list &&
					  (((uint8_t *)t->own.mem.buf)[1] &
					   FORMAT_IMMED),
		     });
}
