/* SPDX-License-Identifier: BSD-2-Clause */
/* module.c: finds and loads a module. */
#include "io/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef OPENISER_MODULE_DIR
# define OPENISER_MODULE_DIR "/usr/lib/openiser"
#endif

const void *io_module_load(const char *file, const char *symbol, void **handle,
			   int *err, char *why, size_t size)
{
	const char *dir = getenv("OPENISER_MODULES");
	const void *found;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : OPENISER_MODULE_DIR,
		 file);
	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle) {
		snprintf(why, size, "%s", dlerror());
		/* the module is absent, or one of its libraries */
		*err = strncmp(why, path, strlen(path)) == 0 ? -ENOENT
							     : -ELIBACC;
		return NULL;
	}
	found = dlsym(*handle, symbol);
	if (found)
		return found;
	*err = -ELIBBAD;
	snprintf(why, size, "%s is of another version", file);
	dlclose(*handle);
	*handle = NULL;
	return NULL;
}
