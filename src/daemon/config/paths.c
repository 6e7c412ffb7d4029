/* SPDX-License-Identifier: BSD-2-Clause */
/* paths.c: see paths.h. */
#include "daemon/config/paths.h"

#include <stdio.h>
#include <string.h>

#include "daemon/config/lun_spec.h"
#include "daemon/config/nouns.h"

/* Returns where the path of a store begins; NULL: it has none. */
static const char *path_of_store(const char *text)
{
	const char *operand;
	enum lun_kind kind = lun_spec_kind(text, &operand);

	if (kind == LUN_FILE || kind == LUN_CD || kind == LUN_SCSI)
		return operand;
	return NULL;
}

size_t cfg_path_absolute(const struct cfg_row *row, const char *text,
			 const char *folder, char *out, size_t size)
{
	const char *path = text;

	if (row->type != CFG_PATH)
		return 0;
	if (!strcmp(row->opt.name, "store"))
		path = path_of_store(text);
	if (!path || !*path || *path == '/' ||
	    !strncmp(path, "credential:", 11))
		return 0;
	return (size_t)snprintf(out, size, "%.*s%s/%s", (int)(path - text),
				text, folder, path);
}

const struct cfg_row *cfg_path_field(const char *name)
{
	const struct cfg_row *found = NULL;

	for (unsigned i = 0; i < CFG_NOUNS; i++) {
		const struct cfg_noun *n = cfg_noun_of((enum cfg_noun_id)i);
		const struct cfg_field *f =
			cfg_noun_field(n, name, strlen(name));

		if (!f)
			continue;
		found = cfg_field_row(f);
		if (f->shape != CFG_ONE || found->type != CFG_PATH)
			return NULL; /* state of an ALUA group */
	}
	return found;
}
