/* SPDX-License-Identifier: BSD-2-Clause */
/* codec_replay_test.c: what is decoded and encoded again, for the corpus of the
 * codecs' fuzz target with single bits inverted (flips.h). */
#include "iscsi/bhs.h"
#include "iscsi/text.h"
#include "unit/flips.h"

static int seen_bhs_decode(struct iscsi_pdu *pdu,
			   const uint8_t b[ISCSI_BHS_LEN])
{
	int err = iscsi_bhs_decode(pdu, b);

	see_number((uint64_t)(int64_t)err);
	return err;
}

static void seen_bhs_encode(const struct iscsi_pdu *pdu,
			    uint8_t b[ISCSI_BHS_LEN])
{
	iscsi_bhs_encode(pdu, b);
	see(b, ISCSI_BHS_LEN);
}

static int seen_ahs_decode(struct iscsi_ahs *ahs, const uint8_t *p, size_t len)
{
	int err = iscsi_ahs_decode(ahs, p, len);

	see_number((uint64_t)(int64_t)err);
	if (err)
		return err;
	see_number(ahs->has_bidi ? ahs->bidi_read_edtl : UINT64_MAX);
	if (ahs->ext_cdb)
		see(ahs->ext_cdb, ahs->ext_cdb_len);
	return 0;
}

static int seen_ahs_encode(const struct iscsi_ahs *ahs, uint8_t *p, size_t max)
{
	int n = iscsi_ahs_encode(ahs, p, max);

	if (n > 0)
		see(p, (size_t)n);
	return n;
}

static int seen_text_next(struct iscsi_text_iter *it,
			  char key[ISCSI_KEY_NAME_MAX + 1], const char **value)
{
	int r = iscsi_text_next(it, key, value);

	see_number((uint64_t)(int64_t)r);
	if (r > 0) {
		see(key, strlen(key) + 1);
		see(*value, strlen(*value) + 1);
	}
	return r;
}

#define iscsi_bhs_decode seen_bhs_decode
#define iscsi_bhs_encode seen_bhs_encode
#define iscsi_ahs_decode seen_ahs_decode
#define iscsi_ahs_encode seen_ahs_encode
#define iscsi_text_next	 seen_text_next
#include "fuzz/iscsi/codec_fuzz.c"

int main(int argc, char **argv)
{
	return flips_main(argc, argv, "iscsi_codec");
}
