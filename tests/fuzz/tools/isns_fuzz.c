/* SPDX-License-Identifier: BSD-2-Clause */
/* isns_fuzz.c: any bytes as the attributes that an iSNS server sends. */
#include <stdlib.h>
#include <string.h>

#include "tools/isns/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_text(const char *text)
{
	if (text && strlen(text) >= ISNS_TEXT_MAX)
		abort();
}

static void found(void *arg, const char *name, const char *alias,
		  const struct isns_portal *p, unsigned tag)
{
	(void)arg;
	(void)p;
	(void)tag;
	take_text(name);
	take_text(alias);
}

static void changed(unsigned bits, const char *name)
{
	(void)bits;
	take_text(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct isns_attrs all = { data, size };

	if (!isns_attrs_valid(all))
		return 0;
	(void)isns_answer_found(all, found, NULL);
	take_text(isns_answer_changed(all, changed));
	return 0;
}
