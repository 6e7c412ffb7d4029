/* SPDX-License-Identifier: BSD-2-Clause */
/* codec_fuzz.c: any bytes to the BHS, AHS and text decoders; decoded values
 * that are encoded again decode to the same values. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "iscsi/bhs.h"
#include "iscsi/chap.h"
#include "iscsi/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void bhs(const uint8_t *data)
{
	struct iscsi_pdu a, b;
	uint8_t bytes[ISCSI_BHS_LEN], again[ISCSI_BHS_LEN];

	if (iscsi_bhs_decode(&a, data))
		return;
	iscsi_bhs_encode(&a, bytes);
	if (iscsi_bhs_decode(&b, bytes))
		abort();
	iscsi_bhs_encode(&b, again);
	if (memcmp(bytes, again, sizeof(bytes)))
		abort();
}

static void ahs(const uint8_t *data, size_t size)
{
	struct iscsi_ahs a;
	uint8_t out[ISCSI_MAX_AHS_LEN];

	if (!iscsi_ahs_decode(&a, data, MIN(size, sizeof(out))) &&
	    iscsi_ahs_encode(&a, out, sizeof(out)) < 0)
		abort();
}

static void text(const uint8_t *data, size_t size)
{
	struct iscsi_text_iter it = iscsi_text_iter(data, size);
	char key[ISCSI_KEY_NAME_MAX + 1];
	uint8_t binary[64];
	const char *value;

	while (iscsi_text_next(&it, key, &value) > 0) {
		if (strlen(value) > size || strlen(key) > ISCSI_KEY_NAME_MAX)
			abort();
		if (chap_binary_parse(value, binary, sizeof(binary)) >
		    (int)sizeof(binary))
			abort();
		chap_pick(value, CHAP_OFFER);
		chap_pick(CHAP_OFFER, value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= ISCSI_BHS_LEN)
		bhs(data);
	ahs(data, size);
	text(data, size);
	return 0;
}
