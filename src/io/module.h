/* SPDX-License-Identifier: BSD-2-Clause */
/* module.h: loads the modules of openiser, which are shared objects in the folder
 * of the installation, or in that of the environment variable OPENISER_MODULES. */
#ifndef IO_MODULE_H
#define IO_MODULE_H

#include <stddef.h>

/*
 * io_module_load loads the module `file` and returns its symbol; *handle is for
 * dlclose. NULL: why (size bytes) has the reason, and *err is -ENOENT if the
 * module is absent, -ELIBACC if it cannot be loaded, or -ELIBBAD if it lacks the
 * symbol.
 */
const void *io_module_load(const char *file, const char *symbol, void **handle,
			   int *err, char *why, size_t size);

#endif
