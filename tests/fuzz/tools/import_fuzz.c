/* SPDX-License-Identifier: BSD-2-Clause */
/* import_fuzz.c: any text as a configuration file of another target. The first
 * byte selects the format. All output must be plain text, with each note on a
 * line of its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "tools/import/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each include directive includes a block that another file may end. */
static const char *open_block(struct tree_include *i, const char *pattern)
{
	static const char text[] = "<target iqn.2026-01.com.example:x>\n"
				   "backing-store /included\n</target>\n";

	if (strchr(pattern, '!'))
		return "refused";
	if (!strchr(pattern, '*'))
		tree_include_text(i, pattern, text, sizeof(text) - 1);
	return NULL;
}

static struct tree *read_tree(struct tree_input *in, uint8_t format)
{
	switch (format % 4) {
	case 0:
		return tree_read_tgt(in, open_block);
	case 1:
		return tree_read_lio(in);
	case 2:
		return tree_read_ucl(in, open_block);
	default:
		(void)tree_ctl_is_ucl(in->text, in->len);
		return tree_read_ctl(in);
	}
}

static void check_lines(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (!text_is_plain(text, len))
			abort();
		text += len + (text[len] == '\n');
	}
}

static void print_model(struct import_model *m)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	import_check_units(m);
	import_check_portals(m);
	import_name_secrets(m);
	import_print_yaml(m, f);
	import_print_notes(m, f);
	import_print_missing(m, f);
	fclose(f);
	check_lines(text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct import_model m = { .format = "any", .secrets_dir = "/s" };
	struct tree_input in = { .pool = &m.pool, .file = "F" };
	struct tree *t;

	if (size < 1)
		return 0;
	in.len = size - 1;
	in.text = pool_copy(&m.pool, (const char *)data + 1, in.len);
	t = read_tree(&in, data[0]);
	if (!t != !!in.error)
		abort();
	if (t && data[0] % 4 == 0)
		import_tgt(&m, t);
	else if (t && data[0] % 4 == 1)
		import_lio(&m, t);
	else if (t)
		import_ctl(&m, t);
	if (t)
		print_model(&m);
	else
		check_lines(in.error);
	pool_free(&m.pool);
	return 0;
}
