/* SPDX-License-Identifier: BSD-2-Clause */
/* url_fuzz.c: any text as a URL. */
#include <iser/iser.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), why[40];
	struct iser_url u;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (int discovery = 0; discovery < 2; discovery++) {
		int err = iser_url_parse(&u, text, discovery, why, sizeof(why));

		if (!err && (!u.host[0] || u.lun < -1 || u.lun > 16383 ||
			     (!discovery && (u.lun < 0 || !u.target[0]))))
			abort();
		if (err && (!why[0] || !memchr(why, 0, sizeof(why))))
			abort();
	}
	free(text);
	return 0;
}
