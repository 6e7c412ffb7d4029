/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_fuzz.c: configuration files. A text that is read as a model has a
 * canonical form, which is read as a model with the same form and without
 * differences.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_same(void *arg, const struct cfg_change *c)
{
	(void)arg;
	(void)c;
	abort();
}

static void check_model(struct cfg_model *m, struct cfg_errors *e)
{
	char *text = cfg_dump(m), *second;
	struct cfg_model *again;

	assert(text);
	again = cfg_model_read(text, strlen(text), e);
	assert(again);
	second = cfg_dump(again);
	assert(second && !strcmp(text, second));
	cfg_diff(m, again, must_be_same, NULL);
	cfg_model_free(again);
	free(text);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cfg_errors e;
	char line[8192];
	struct cfg_model *m;

	memset(&e, 0, sizeof(e));
	m = cfg_model_read((const char *)data, size, &e);
	assert(!m == (e.n != 0));
	for (unsigned i = 0; i < cfg_errors_kept(&e); i++)
		cfg_error_line(&e, i, "fuzz", "", line, sizeof(line));
	if (m)
		check_model(m, &e);
	cfg_model_free(m);
	return 0;
}
