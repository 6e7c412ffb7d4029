/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_tree.h: the answer of "tree" as text. */
#ifndef TOOLS_CTL_TREE_H
#define TOOLS_CTL_TREE_H

#include <jansson.h>

/* ctl_print_tree prints the tree: a line for each backstore, portal group, target,
 * LUN and session, indented by what it is in. */
void ctl_print_tree(const json_t *tree);

#endif
