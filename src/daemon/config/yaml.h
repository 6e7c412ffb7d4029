/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * yaml.h: configuration files as documents (doc.h), by libyaml. Of YAML a file may use
 * mappings with scalar keys, sequences and scalars, so JSON is accepted, too.
 * Anchors, aliases, tags and a second document are refused: a file with them could
 * have a meaning that is hard to see, or a size that is far from its length.
 */
#ifndef DAEMON_CONFIG_YAML_H
#define DAEMON_CONFIG_YAML_H

#include "daemon/config/doc.h"

#define CFG_TEXT_MAX ((size_t)16 << 20) /* bytes of a file */

/* cfg_yaml_read returns the document of a text, and adds the places of its values to
 * *places, both for the caller to free. NULL: e has at least one error. */
json_t *cfg_yaml_read(struct cfg_places *places, const char *text, size_t len,
		      struct cfg_errors *e);
/* cfg_yaml_write returns the document as YAML, which the caller frees. NULL: no
 * memory. */
char *cfg_yaml_write(json_t *doc);

/* cfg_text_read returns the contents of the file at path ("-": standard input),
 * which the caller frees, with *len bytes. NULL: e has the reason. */
char *cfg_text_read(const char *path, size_t *len, struct cfg_errors *e);

#endif
