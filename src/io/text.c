/* SPDX-License-Identifier: BSD-2-Clause */
/* text.c: the small files in which Linux describes the machine: /sys, /etc. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "io/io.h"

size_t io_read_text(const char *path, void *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, size);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

bool io_read_number(const char *path, unsigned long *n)
{
	FILE *f = fopen(path, "re");
	bool good;

	if (!f)
		return false;
	good = fscanf(f, "%lu", n) == 1;
	fclose(f);
	return good;
}
